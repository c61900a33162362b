//! What a recorded session becomes, and that it can be read.

use std::path::Path;

use super::*;
use crate::scenario;
use crate::text::append;

fn imported(entries: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let mut text = String::from(
        "{\"stretto_mcp_log\":2,\"session\":\"s\",\"started_unix_ms\":1,\"server_command\":[\"shop\",\"--fast\"],\"domain\":\"shop\",\"agent_model\":null}\n",
    );
    for (from, line) in entries {
        let is_json = serde_json::from_str::<Value>(line).is_ok();
        let body = if is_json {
            format!("\"message\":{line}")
        } else {
            format!("\"raw\":{}", Value::from(*line))
        };
        append(
            &mut text,
            format_args!("{{\"t_ms\":1,\"from\":\"{from}\",{body}}}\n"),
        );
    }
    std::fs::write(&file, text).unwrap();
    let written = scenario_of(&file, "s.jsonl").unwrap();
    // Whatever it says, it is a scenario.
    if let Err(slips) = scenario::read_text(Path::new("s.toml"), "s", &written) {
        panic!("{slips}\n{written}");
    }
    written
}

fn steps(entries: &[(&str, &str)]) -> Vec<String> {
    let written = imported(entries);
    let lines = written
        .lines()
        .skip_while(|line| *line != "steps = [")
        .skip(1);
    lines
        .take_while(|line| *line != "]")
        .map(|line| line.trim().to_owned())
        .collect()
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find","arguments":{"q":"a $5 \"lamp\""}}}"#;

fn answer(id: u32, text: &str) -> String {
    let text = Value::from(text);
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}]}}}}"
    )
}

#[test]
fn a_handshake_is_one_step_when_that_is_all_there_is_to_it() {
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"host","version":"0"}}}"#;
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let plain = [
        ("client", initialize),
        ("server", result),
        ("client", initialized),
    ];
    assert_eq!(
        steps(&plain),
        ["{ handshake = \"2025-06-18\", client = \"host\" },"]
    );

    let with_title = initialize.replace(
        "\"version\":\"0\"",
        "\"version\":\"0\",\"title\":\"My host\"",
    );
    let other = steps(&[
        ("client", &with_title),
        ("server", result),
        ("client", initialized),
    ]);
    assert!(
        other[0].starts_with("{ request = \"initialize\", params = {"),
        "{other:?}"
    );
    assert_eq!(other[1], "{ notify = \"notifications/initialized\" },");
}

#[test]
fn a_call_expects_a_part_of_its_answer_that_stays() {
    let found = answer(1, "found at 2026-11-30T22:00:00Z: a lamp");
    assert_eq!(
        steps(&[("client", CALL), ("server", &found)]),
        ["{ call = \"find\", args = { q = \"a $$5 \\\"lamp\\\"\" }, contains = \"found at\" },"]
    );
}

#[test]
fn calls_that_were_on_their_way_together_go_out_together() {
    let second = CALL.replace("\"id\":1", "\"id\":2");
    let (one, two) = (answer(1, "first lamp"), answer(2, "second lamp"));
    let written = steps(&[
        ("client", CALL),
        ("client", &second),
        ("server", &two),
        ("server", &one),
    ]);
    assert!(written[0].ends_with("wait = false },"), "{written:?}");
    assert!(
        written[1].ends_with("contains = \"second lamp\" },"),
        "{written:?}"
    );
    assert_eq!(written[2], "{ expect = 1, contains = \"first lamp\" },");
}

#[test]
fn what_the_format_has_no_words_for_is_sent_as_it_was() {
    let null_argument = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find","arguments":{"q":null}}}"#;
    let found = answer(1, "nothing");
    assert_eq!(
        steps(&[
            ("client", null_argument),
            ("server", &found),
            ("client", "no JSON")
        ]),
        [
            "{ raw = \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1,\\\"method\\\":\\\"tools/call\\\",\\\"params\\\":{\\\"name\\\":\\\"find\\\",\\\"arguments\\\":{\\\"q\\\":null}}}\" },",
            "{ expect = 1, contains = \"nothing\" },",
            "{ raw = \"no JSON\" },",
        ]
    );
}

#[test]
fn a_call_without_an_answer_is_marked_for_a_person() {
    let written = steps(&[("client", CALL)]);
    assert!(
        written[0].starts_with("# This was never answered."),
        "{written:?}"
    );
    assert!(written[1].ends_with("wait = false },"), "{written:?}");
    let refused = steps(&[
        ("client", CALL),
        ("proxy", &answer(1, "Refused by the policy check")),
    ]);
    assert!(
        refused[0].starts_with("# The proxy answered this itself"),
        "{refused:?}"
    );
    assert!(refused[1].ends_with(", wait = false },"), "{refused:?}");
}

#[test]
fn what_the_server_asked_and_the_host_answered_are_two_steps() {
    let asked = r#"{"jsonrpc":"2.0","id":"s1","method":"roots/list"}"#;
    let given = r#"{"jsonrpc":"2.0","id":"s1","result":{"roots":[]}}"#;
    assert_eq!(
        steps(&[
            ("client", r#"{"jsonrpc":"2.0","method":"notifications/x"}"#),
            ("server", asked),
            ("client", given)
        ]),
        [
            "{ notify = \"notifications/x\" },",
            "# The server asks the host.",
            "{ expect = \"roots/list\" },",
            "{ answer = \"s1\", result = { roots = [] } },"
        ]
    );
}

#[test]
fn a_value_that_is_passed_on_is_taken_and_put_in() {
    let id = "123e4567-e89b-12d3-a456-426614174000";
    let made = answer(1, &format!("made order {id}"));
    let cancel = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{{\"name\":\"cancel\",\"arguments\":{{\"order\":\"{id}\"}}}}}}"
    );
    let done = answer(2, "cancelled");
    let text = imported(&[
        ("client", CALL),
        ("server", &made),
        ("client", &cancel),
        ("server", &done),
    ]);
    assert!(text.contains("take = { uuid_1 = \"made order ("), "{text}");
    assert!(text.contains("args = { order = \"$uuid_1\" }"), "{text}");
    assert!(text.contains("changing = { UUID = "), "{text}");
}

#[test]
fn what_was_said_and_what_the_proxy_did_are_seen() {
    let said = r#"{"role":"user","content":"cancel it, for $5"}"#;
    let own = r#"{"jsonrpc":"2.0","id":"stretto-1","method":"tools/call","params":{"name":"a"}}"#;
    let text = imported(&[("context", said), ("client", CALL), ("proxy", own)]);
    assert!(
        text.contains("{ say = \"user\", text = \"cancel it, for $$5\" },"),
        "{text}"
    );
    assert!(text.contains("\"--context\", \"$CONTEXT\""), "{text}");
    assert!(
        text.contains("# Look: the proxy acted on its own"),
        "{text}"
    );
}

#[test]
fn a_log_without_a_host_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    std::fs::write(
        &file,
        "{\"stretto_mcp_log\":2,\"session\":\"s\",\"started_unix_ms\":1}\n",
    )
    .unwrap();
    assert!(matches!(
        scenario_of(&file, "s.jsonl"),
        Err(ImportError::NoHost(_))
    ));
    std::fs::write(&file, "{}\n").unwrap();
    assert!(matches!(
        scenario_of(&file, "s.jsonl"),
        Err(ImportError::Parse { .. })
    ));
}
