//! Each promise, kept and broken, in a small session of one call.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::record::{HttpRequest, ServerRecord};
use crate::scenario;
use crate::text::append;

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}"#;
const ANSWER: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}],"isError":false}}"#;

/// A session as it was recorded: who, when, and what.
fn log_text(entries: &[(&str, u64, &str)]) -> String {
    let mut text = String::from(
        "{\"stretto_mcp_log\":2,\"session\":\"s\",\"started_unix_ms\":1,\"server_command\":[\"x\"],\"domain\":null,\"agent_model\":null}\n",
    );
    for (from, t_ms, line) in entries {
        let is_json = serde_json::from_str::<Value>(line).is_ok();
        let body = if is_json {
            format!("\"message\":{line}")
        } else {
            format!("\"raw\":{}", Value::from(*line))
        };
        append(
            &mut text,
            format_args!("{{\"t_ms\":{t_ms},\"from\":\"{from}\",{body}}}\n"),
        );
    }
    text
}

/// A run in which all promises hold: one call, its answer, both logged, the call at the server.
fn good() -> Record {
    let lines = |line: &str| format!("{line}\n").into_bytes();
    Record {
        transport: Transport::Stdio,
        sent: vec![lines(CALL)],
        sent_at: vec![Duration::ZERO],
        heard: vec![Message::of(lines(ANSWER))],
        view: Vec::new(),
        server: Some(ServerRecord {
            received: vec![Received::Line(lines(CALL))],
            unfired: Some(Vec::new()),
            ..ServerRecord::default()
        }),
        asked: Vec::new(),
        logs: BTreeMap::from([(
            "logs/s.jsonl".to_owned(),
            log_text(&[("client", 1, CALL), ("server", 2, ANSWER)]),
        )]),
        files: vec!["logs/".to_owned(), "logs/s.jsonl".to_owned()],
        stderr: String::new(),
        ending: Some(Ending::Code(0)),
        left_running: Vec::new(),
        is_deaf: false,
        leaks: Vec::new(),
        names: Vec::new(),
        given_files: Vec::new(),
        named_files: vec!["logs".into()],
    }
}

fn relog(record: &mut Record, entries: &[(&str, u64, &str)]) {
    record.logs = BTreeMap::from([("logs/s.jsonl".to_owned(), log_text(entries))]);
}

fn broken(record: &Record) -> Vec<&'static str> {
    let text = "title = \"x\"\nsteps = [{ request = \"ping\" }]";
    let scenario = scenario::read_text(Path::new("x.toml"), "x", text)
        .unwrap()
        .remove(0);
    let named = |failure: Failure| match failure {
        Failure::Promise { name, .. } => name,
        other => panic!("{other:?}"),
    };
    check(&scenario, record).into_iter().map(named).collect()
}

#[test]
fn a_good_run_breaks_none() {
    assert_eq!(broken(&good()), Vec::<&str>::new());
}

#[test]
fn a_line_that_changed_on_its_way_breaks_bytes() {
    let mut to_server = good();
    to_server.server.as_mut().unwrap().received =
        vec![Received::Line(format!("{CALL}\r\n").into_bytes())];
    assert_eq!(broken(&to_server), ["bytes"]);

    let mut to_host = good();
    to_host.heard = vec![Message::of(
        ANSWER.replace("\"id\":1", "\"id\": 1").into_bytes(),
    )];
    assert_eq!(broken(&to_host), ["bytes"]);
}

#[test]
fn a_killed_proxy_may_have_had_its_last_lines_in_hand() {
    let mut run = good();
    relog(&mut run, &[("client", 1, CALL)]);
    assert_eq!(broken(&run), ["bytes"]);
    run.ending = Some(Ending::Signal(9));
    assert_eq!(broken(&run), Vec::<&str>::new());
}

#[test]
fn a_line_that_the_server_got_twice_or_in_another_order_breaks_bytes() {
    let ping = "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}\n"
        .as_bytes()
        .to_vec();
    let call = format!("{CALL}\n").into_bytes();
    let mut run = good();
    run.sent = vec![call.clone(), ping.clone()];
    relog(
        &mut run,
        &[
            ("client", 1, CALL),
            ("client", 1, "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}"),
            ("server", 2, ANSWER),
        ],
    );
    run.server.as_mut().unwrap().received =
        vec![Received::Line(ping), Received::Line(call.clone())];
    assert_eq!(broken(&run), ["bytes"]);
    run.server.as_mut().unwrap().received =
        vec![Received::Line(call.clone()), Received::Line(call)];
    assert_eq!(broken(&run), ["bytes"]);
}

#[test]
fn a_server_that_ended_early_need_not_have_got_everything() {
    let mut run = good();
    run.sent
        .push(b"{\"jsonrpc\":\"2.0\",\"method\":\"late\"}\n".to_vec());
    assert_eq!(broken(&run), Vec::<&str>::new());
}

#[test]
fn a_call_that_the_proxy_answered_itself_need_not_reach_the_server() {
    let mut run = good();
    relog(&mut run, &[("client", 1, CALL), ("proxy", 2, ANSWER)]);
    run.server.as_mut().unwrap().received.clear();
    assert_eq!(broken(&run), Vec::<&str>::new());
}

#[test]
fn what_is_missing_or_changed_in_the_log_breaks_log() {
    let mut changed = good();
    relog(
        &mut changed,
        &[
            ("client", 1, &CALL.replace(":1,", ": 1,")),
            ("server", 2, ANSWER),
        ],
    );
    assert_eq!(broken(&changed), ["log"]);

    let mut falling = good();
    relog(&mut falling, &[("client", 2, CALL), ("server", 1, ANSWER)]);
    assert_eq!(broken(&falling), ["log"]);

    let mut early = good();
    relog(&mut early, &[("server", 1, ANSWER), ("client", 2, CALL)]);
    assert_eq!(broken(&early), ["log"]);

    let mut unreadable = good();
    unreadable
        .logs
        .values_mut()
        .for_each(|text| text.push_str("{\"t_ms\":3,\"from\":\"nobody\",\"raw\":\"\"}\n"));
    assert_eq!(broken(&unreadable), ["log"]);
}

#[test]
fn text_that_the_server_never_said_breaks_stdout() {
    let mut run = good();
    run.heard.push(Message::of(b"hello\n".to_vec()));
    assert!(broken(&run).contains(&"stdout"));
    relog(
        &mut run,
        &[
            ("client", 1, CALL),
            ("server", 2, ANSWER),
            ("server", 3, "hello"),
        ],
    );
    assert_eq!(broken(&run), Vec::<&str>::new());
}

#[test]
fn an_answer_that_is_lost_or_doubled_breaks_answered() {
    let mut lost = good();
    lost.heard.clear();
    assert!(broken(&lost).contains(&"answered"));
    lost.is_deaf = true;
    assert_eq!(broken(&lost), Vec::<&str>::new());

    let mut doubled = good();
    doubled
        .heard
        .push(Message::of(format!("{ANSWER}\n").into_bytes()));
    assert!(broken(&doubled).contains(&"answered"));
    // The server gave it twice, and a proxy that does nothing of its own takes nothing away.
    relog(
        &mut doubled,
        &[
            ("client", 1, CALL),
            ("server", 2, ANSWER),
            ("server", 2, ANSWER),
        ],
    );
    assert_eq!(broken(&doubled), Vec::<&str>::new());
}

#[test]
fn an_answer_to_the_proxys_own_request_breaks_own_when_it_reaches_the_host() {
    let own = CALL.replace("\"id\":1", "\"id\":\"stretto-1\"");
    let answer = ANSWER.replace("\"id\":1", "\"id\":\"stretto-1\"");
    let mut run = good();
    relog(
        &mut run,
        &[
            ("client", 1, CALL),
            ("server", 2, ANSWER),
            ("proxy", 2, &own),
            ("server", 3, &answer),
        ],
    );
    run.server
        .as_mut()
        .unwrap()
        .received
        .push(Received::Line(format!("{own}\n").into_bytes()));
    assert_eq!(broken(&run), Vec::<&str>::new());
    run.heard
        .push(Message::of(format!("{answer}\n").into_bytes()));
    assert_eq!(broken(&run), ["own"]);

    let mut twice = good();
    relog(
        &mut twice,
        &[
            ("client", 1, CALL),
            ("server", 2, ANSWER),
            ("proxy", 2, &own),
            ("proxy", 3, &own),
        ],
    );
    assert_eq!(broken(&twice), ["own"]);
}

#[test]
fn what_is_left_behind_breaks_clean() {
    let mut process = good();
    process.left_running.push("sleep 60".to_owned());
    assert_eq!(broken(&process), ["clean"]);

    let mut file = good();
    file.files.push("core".to_owned());
    assert_eq!(broken(&file), ["clean"]);
    file.given_files.push("core".to_owned());
    assert_eq!(broken(&file), Vec::<&str>::new());

    let mut failed = good();
    failed.ending = Some(Ending::Code(125));
    assert_eq!(broken(&failed), ["clean"]);
}

#[test]
fn a_canary_in_a_file_breaks_secret_and_a_panic_breaks_codes() {
    let mut leak = good();
    leak.leaks.push("canary-key is in logs/s.jsonl".to_owned());
    assert_eq!(broken(&leak), ["secret"]);

    let mut panic = good();
    panic.ending = Some(Ending::Code(101));
    assert_eq!(broken(&panic), ["codes"]);
}

#[test]
fn a_fault_that_never_came_to_pass_breaks_faults() {
    let mut run = good();
    run.server.as_mut().unwrap().unfired = Some(vec!["answers[0]".to_owned()]);
    assert_eq!(broken(&run), ["faults"]);
}

#[test]
fn the_faults_of_a_killed_server_are_those_of_its_script_less_those_that_it_told() {
    let text = "title = \"x\"\nscript.answers = [{ tool = \"a\", fault = { hang = true } }, { tool = \"b\" }, { name = \"third\", fault = { twice = true } }]\n\
                script.timeline = [{ after = \"start\", exit = 0 }, { after = \"start\", line = \"x\" }]\nsteps = [{ request = \"ping\" }]";
    let scenario = scenario::read_text(Path::new("x.toml"), "x", text)
        .unwrap()
        .remove(0);
    assert_eq!(
        faults_of(&scenario.server),
        ["answers[0]", "third", "timeline[0]"]
    );
}

#[test]
fn over_http_a_body_that_the_host_did_not_send_breaks_bytes() {
    let post = |body: &str| {
        let headers = BTreeMap::new();
        Received::Http(HttpRequest {
            method: "POST".to_owned(),
            headers,
            body: body.as_bytes().to_vec(),
        })
    };
    let mut run = good();
    run.transport = Transport::Http;
    run.server.as_mut().unwrap().received = vec![post(CALL)];
    assert_eq!(broken(&run), Vec::<&str>::new());
    run.server.as_mut().unwrap().received.push(post("{}"));
    assert_eq!(broken(&run), ["bytes"]);
}
