//! Recorded sessions, served again.

use std::fs;

use serde_json::{Value, json};

use crate::http::Served;
use crate::script::Files;
use crate::{answers, run};

/// A log among this package's test data.
fn log(name: &str) -> String {
    format!("{}/tests/data/{name}.jsonl", env!("CARGO_MANIFEST_DIR"))
}

/// The messages of a log from those senders.
fn messages(name: &str, from: &[&str]) -> Vec<Value> {
    let text = fs::read_to_string(log(name)).unwrap();
    let entries = text
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    entries
        .filter(|entry| from.contains(&entry["from"].as_str().unwrap()))
        .map(|entry| entry["message"].clone())
        .collect()
}

/// What is sent to the server of a log: requests and notifications.
fn sent(name: &str) -> Vec<Value> {
    messages(name, &["client", "proxy"])
        .into_iter()
        .filter(|message| message.get("method").is_some())
        .collect()
}

fn lines(messages: &[Value]) -> String {
    messages
        .iter()
        .flat_map(|message| [message.to_string(), "\n".into()])
        .collect()
}

pub(crate) fn a_session_is_served_again_lookups_of_the_proxy_included() {
    for name in ["shop", "served"] {
        let served = answers(&["--replay", &log(name), "--strict"], &lines(&sent(name)));
        assert_eq!(served, messages(name, &["server"]), "{name}");
    }
    assert!(
        sent("served")
            .iter()
            .any(|message| message["id"] == "stretto-1")
    );
}

pub(crate) fn sessions_one_after_the_other_are_one_recording() {
    let input = lines(&sent("served")) + &lines(&sent("shop"));
    let served = answers(
        &["--replay", &log("served"), &log("shop"), "--strict"],
        &input,
    );
    assert_eq!(
        served,
        [
            messages("served", &["server"]),
            messages("shop", &["server"])
        ]
        .concat()
    );
}

pub(crate) fn a_folder_is_its_sessions_and_what_lies_beside_them_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let session = copy("a.jsonl", &fs::read_to_string(log("shop")).unwrap());
    let beside = copy("a.flow.jsonl", "{\"no\":\"session\"}\n");
    let judged = copy("a.confirm.jsonl", "");
    let input = lines(&sent("shop"));
    let folder = folder.path().to_str().unwrap();
    assert_eq!(
        answers(&["--replay", folder, "--strict"], &input),
        messages("shop", &["server"])
    );
    let output = run(
        &["--replay", &session, &beside, &judged, "--strict"],
        &input,
    );
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    for file in [&beside, &judged] {
        assert!(
            said.contains(&format!("{file} is no session log; passed over")),
            "{said}"
        );
    }
    let output = run(&["--replay", &beside], "");
    assert_eq!(output.status.code(), Some(1));
}

pub(crate) fn ids_are_the_live_ones_and_the_order_is_free() {
    let mut requests: Vec<Value> = sent("shop")
        .into_iter()
        .filter(|message| message.get("id").is_some())
        .collect();
    requests.reverse();
    for (at, request) in requests.iter_mut().enumerate() {
        request["id"] = json!(format!("live-{at}"));
    }
    let served = answers(&["--replay", &log("shop")], &lines(&requests));
    let ids: Vec<&Value> = served.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(
        ids,
        requests
            .iter()
            .map(|request| &request["id"])
            .collect::<Vec<_>>()
    );
    assert!(served.iter().all(|answer| answer.get("result").is_some()));
}

pub(crate) fn an_unrecorded_request_is_told_of_the_nearest() {
    let call = json!({"id": 1, "method": "tools/call", "params": {"name": "find_user_id_by_email", "arguments": {"email": "c9@example.com"}}});
    let served = answers(
        &["--replay", &log("shop")],
        &lines(&[call, json!({"id": 2, "method": "server/discover"})]),
    );
    let message = served[0]["error"]["message"].as_str().unwrap();
    assert!(
        message.contains(r#"arguments.email (recorded "c1@example.com", asked "c9@example.com")"#),
        "{message}"
    );
    assert_eq!(served[1]["error"]["code"], -32601);
}

pub(crate) fn a_strict_replay_that_misses_something_fails() {
    let log = log("shop");
    let output = run(&["--replay", &log, "--strict"], &lines(&sent("shop")[..2]));
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("recorded requests were never made: tools/list {}"),
        "{said}"
    );
    assert!(run(&["--replay", &log], "").status.success());
}

pub(crate) fn a_log_that_cannot_be_read_is_named() {
    let output = run(&["--replay", "nowhere.jsonl"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("nowhere.jsonl: ")
    );
}

pub(crate) fn faults_are_laid_over_a_replay() {
    let files = Files::of(&json!({"answers": [
        {"tool": "find_user_id_by_email", "fault": {"twice": true}},
        {"tool": "get_user_details", "error": "down"},
    ]}));
    let mut options = files.options();
    options.extend(["--replay".into(), log("shop")]);
    let served = answers(
        &options.iter().map(String::as_str).collect::<Vec<_>>(),
        &lines(&sent("shop")),
    );
    let recorded = messages("shop", &["server"]);
    assert_eq!(served[2..4], [recorded[2].clone(), recorded[2].clone()]);
    assert_eq!(served[4]["result"]["content"][0]["text"], "down");
    assert_eq!(served[5..], recorded[4..]);
    assert_eq!(files.fired().0, ["answers[0]"]);
}

pub(crate) fn a_session_recorded_on_stdio_is_served_over_http() {
    let served = Served::with(&["--replay", &log("served"), "--close"]);
    let session = served.session();
    let recorded = messages("served", &["server"]);
    for request in sent("served").into_iter().skip(1) {
        let answer = served.post(&session, &request);
        if let Some(id) = request.get("id") {
            let expected = recorded
                .iter()
                .find(|message| message["id"] == *id)
                .unwrap();
            let got = if request["method"] == "tools/call" {
                answer.events()[0].clone()
            } else {
                answer.json()
            };
            assert_eq!(got, *expected);
        } else {
            assert_eq!(answer.status, 202);
        }
    }
}
