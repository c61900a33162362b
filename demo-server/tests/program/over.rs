//! Faults laid over a live server.

use std::env;
use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::{Value, json};

use crate::http::{POST, Served};
use crate::script::Files;
use crate::{PROGRAM, run};

/// The options of a server over the echo world, which runs by itself, with faults around it.
fn over(files: &Files) -> Vec<String> {
    let mut options = files.options();
    options.extend([
        "--over".into(),
        "--".into(),
        env::current_exe().unwrap().to_str().unwrap().to_owned(),
    ]);
    options
}

fn answers(script: &Value, input: &str) -> (Files, String, Option<i32>) {
    let files = Files::of(script);
    let options = over(&files);
    let output = run(
        &options.iter().map(String::as_str).collect::<Vec<_>>(),
        input,
    );
    (
        files,
        String::from_utf8(output.stdout).unwrap(),
        output.status.code(),
    )
}

const CALL: &str = "{\"id\":1.0,\"method\":\"tools/call\",\"params\":{\"name\":\"lookup\",\"arguments\":{\"text\":\"a\"}}}\n";

/// What the echo world answers by itself.
fn bare(input: &str) -> String {
    assert!(env::var_os(PROGRAM).is_none());
    String::from_utf8(run(&[], input).stdout).unwrap()
}

pub(crate) fn what_nothing_is_aimed_at_passes_as_it_is() {
    let input = format!(
        "{CALL}hello\n\n[1]\n{{\"id\":2,\"method\":\"tools/list\"}}\n{{\"id\":3,\"method\":\"ping\"}}"
    );
    let (files, text, status) = answers(&json!({}), &input);
    assert_eq!((text, status), (bare(&input), Some(0)));
    assert_eq!(files.transcript().len(), 6);
}

pub(crate) fn the_live_server_answers_and_the_fault_is_around_it() {
    let script =
        json!({"answers": [{"tool": "lookup", "nth": 2, "fault": {"twice": true, "line": "x"}}]});
    let (files, text, _) = answers(&script, &format!("{CALL}{CALL}{CALL}"));
    let answer = bare(CALL);
    let answer = answer.trim_end();
    let mut lines: Vec<&str> = text.lines().collect();
    // What comes before the server has the call may overtake its answer to the call before.
    lines.retain(|line| *line != "x");
    assert_eq!(lines, vec![answer; 4]);
    assert_eq!(files.fired().0, ["answers[0]"]);
}

pub(crate) fn a_fault_before_keeps_the_call_from_the_server() {
    for (when, seen) in [("before", 0), ("after", 1)] {
        let live = Files::of(&json!({"answers": [{"tool": "*", "text": "ok"}]}));
        let files = Files::of(
            &json!({"answers": [{"tool": "lookup", "fault": {"hang": true}, "when": when}]}),
        );
        let mut options = over(&files);
        options.extend(live.options());
        let output = run(
            &options.iter().map(String::as_str).collect::<Vec<_>>(),
            CALL,
        );
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "{when}");
        assert_eq!(live.transcript().len(), seen, "{when}");
    }
}

pub(crate) fn a_rule_with_an_answer_answers_in_place_of_the_server() {
    let script = json!({"answers": [{"tool": "lookup", "error": "no"}]});
    let (_files, text, _) = answers(&script, CALL);
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap()["result"]["isError"],
        true
    );
}

pub(crate) fn it_ends_with_the_servers_status() {
    let live = Files::of(&json!({"answers": [{"tool": "*", "fault": {"exit": 7}}]}));
    let files = Files::of(&json!({}));
    let mut options = over(&files);
    options.extend(live.options());
    let output = run(
        &options.iter().map(String::as_str).collect::<Vec<_>>(),
        CALL,
    );
    assert_eq!(output.status.code(), Some(7));
    let output = run(&["--over", "--", "/nowhere/at/all"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("starting /nowhere/at/all: ")
    );
}

pub(crate) fn a_script_over_a_live_server_brings_no_tools() {
    let files = Files::of(&json!({"tools": [{"name": "a"}]}));
    let options = over(&files);
    let output = run(&options.iter().map(String::as_str).collect::<Vec<_>>(), "");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("with --over, which brings a server")
    );
}

pub(crate) fn a_live_server_is_served_over_http() {
    let live = Files::of(
        &json!({"answers": [{"tool": "a", "text": "ok", "progress": 1}],
        "timeline": [{"after": "initialized", "send": {"jsonrpc": "2.0", "method": "hello"}}]}),
    );
    let files = Files::of(
        &json!({"http": {"get": "closes"}, "answers": [{"tool": "a", "nth": 2, "fault": {"drop_after": 0}}, {"tool": "b", "fault": {"status": 500}}]}),
    );
    let mut options = over(&files);
    options.extend(live.options());
    let served = Served::with(&options.iter().map(String::as_str).collect::<Vec<_>>());
    let session = served.session();
    assert_eq!(
        served
            .post(&session, &json!({"method": "notifications/initialized"}))
            .status,
        202
    );
    let get = format!("Accept: text/event-stream\r\n{session}");
    assert_eq!(
        served.ask("GET", "/mcp", &get, "").events(),
        [json!({"jsonrpc": "2.0", "method": "hello"})]
    );
    let call = json!({"id": "mine", "method": "tools/call", "params": {"name": "a", "_meta": {"progressToken": 5}}});
    let events = served.post(&session, &call).events();
    assert_eq!(
        (&events[0]["params"]["progressToken"], &events[1]["id"]),
        (&json!(5), &json!("mine"))
    );
    assert_eq!(served.post(&session, &call).body, "");
    assert_eq!(
        served
            .post(
                &session,
                &json!({"id": 3, "method": "tools/call", "params": {"name": "b"}})
            )
            .status,
        500
    );
    assert_eq!(
        served
            .post(&session, &json!({"id": 4, "method": "ping"}))
            .json()["id"],
        4
    );
    assert_eq!(
        served
            .ask("POST", "/mcp", &format!("{POST}{session}"), "x")
            .json()["error"]["code"],
        -32700
    );
    let tools: Vec<Value> = live
        .transcript()
        .iter()
        .filter_map(|record| record["line"].as_str().map(Value::from))
        .collect();
    assert_eq!(tools.len(), 5, "{tools:?}");
}

pub(crate) fn a_live_server_that_is_gone_answers_nobody() {
    let live = Files::of(&json!({"answers": [{"tool": "a", "fault": {"exit": 7}}]}));
    let files = Files::of(&json!({}));
    let mut options = over(&files);
    options.extend(live.options());
    let served = Served::with(&options.iter().map(String::as_str).collect::<Vec<_>>());
    let session = served.session();
    let call = json!({"id": 1, "method": "tools/call", "params": {"name": "a"}});
    assert!(!served.post(&session, &call).body.contains("\"id\""));
    let ping = served.bytes(
        "POST",
        "/mcp",
        &format!("{POST}{session}"),
        r#"{"id":2,"method":"ping"}"#,
    );
    assert_eq!(ping, b"");
}

pub(crate) fn a_subscription_of_a_live_server_is_a_stream_under_the_hosts_id() {
    let modern = |id: &str, method: &str, mut params: Value| {
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
        json!({"id": id, "method": method, "params": params})
    };
    let headers =
        |method: &str| format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n");
    let live = Files::of(
        &json!({"listings": {"v2": {}}, "answers": [{"tool": "a", "text": "ok"}],
        "timeline": [{"after": "call:a", "relist": "v2"}]}),
    );
    let files = Files::of(&json!({}));
    let mut options = over(&files);
    options.extend(live.options());
    options.extend(["--era".into(), "modern".into()]);
    // The server in front speaks the newest revision, too: its options come before the command.
    options.splice(0..0, ["--era".into(), "modern".into()]);
    let served = Served::with(&options.iter().map(String::as_str).collect::<Vec<_>>());
    let body = modern(
        "mine",
        "subscriptions/listen",
        json!({"notifications": {"toolsListChanged": true}}),
    )
    .to_string();
    let mut stream = served.connect();
    let listen = headers("subscriptions/listen");
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nContent-Length: {}\r\n{POST}{listen}\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(
        lines.any(|line| line.contains("subscriptions/acknowledged") && line.contains("\"mine\""))
    );
    let call = modern("2", "tools/call", json!({"name": "a"}));
    served.post(&format!("{}Mcp-Name: a\r\n", headers("tools/call")), &call);
    assert!(lines.any(|line| line.contains("tools/list_changed") && line.contains("\"mine\"")));
}
