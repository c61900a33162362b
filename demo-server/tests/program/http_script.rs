//! Scripts over HTTP: each fault, each manner, the timeline on the session's own stream.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};

use serde_json::{Value, json};

use crate::http::{Answer, GET, POST, Served};
use crate::script::Files;

/// A server whose tool `a` answers, with this fault, in JSON or on a stream.
fn fault(form: &str, fault: &Value) -> (Files, Served, String) {
    let files = Files::of(
        &json!({"http": {"answers": form}, "answers": [{"tool": "a", "text": "ok", "fault": fault}]}),
    );
    let served = Served::script(&files);
    let session = served.session();
    (files, served, session)
}

fn call() -> Value {
    json!({"id": 1, "method": "tools/call", "params": {"name": "a"}})
}

fn ping() -> Value {
    json!({"id": 2, "method": "ping"})
}

/// The answer to `call` when nothing goes wrong.
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"ok","type":"text"}],"isError":false}}"#;

pub(crate) fn status_stands_in_place_of_the_answer() {
    for form in ["json", "stream"] {
        for when in ["before", "after"] {
            let script = json!({"http": {"answers": form}, "answers": [
                {"tool": "a", "text": "ok", "when": when, "fault": {"status": 503, "body": "busy", "headers": {"Retry-After": "1"}}},
            ]});
            let files = Files::of(&script);
            let served = Served::script(&files);
            let answer = served.post(&served.session(), &call());
            assert_eq!(
                (
                    answer.status,
                    answer.body.as_str(),
                    answer.header("Retry-After")
                ),
                (503, "busy", "1"),
                "{form} {when}"
            );
            assert_eq!(files.fired().0, ["answers[0]"]);
        }
    }
}

pub(crate) fn end_session_is_404_from_here_on() {
    let (_files, served, session) = fault("auto", &json!({"end_session": true}));
    assert_eq!(served.post(&session, &ping()).status, 200);
    assert_eq!(served.post(&session, &call()).status, 404);
    assert_eq!(served.post(&session, &ping()).status, 404);
    assert_eq!(served.post(&served.session(), &ping()).status, 200);
}

pub(crate) fn accepted_and_no_body_leave_a_request_without_its_answer() {
    let (_files, served, session) = fault("json", &json!({"accepted": true}));
    let answer = served.post(&session, &call());
    assert_eq!((answer.status, answer.body.as_str()), (202, ""));
    let (_files, served, session) = fault("json", &json!({"no_body": true}));
    let answer = served.post(&session, &call());
    assert_eq!(
        (
            answer.status,
            answer.header("Content-Length"),
            answer.body.as_str()
        ),
        (200, "0", "")
    );
}

pub(crate) fn cut_breaks_the_body_off() {
    let (_files, served, session) = fault("json", &json!({"cut": 10}));
    let answer = served.post(&session, &call());
    assert_eq!(answer.body, ANSWER.get(..10).unwrap());
    assert_eq!(answer.header("Content-Length"), ANSWER.len().to_string());
    let (_files, served, session) = fault("stream", &json!({"cut": 10}));
    assert_eq!(served.post(&session, &call()).body, "event: mes");
}

pub(crate) fn drop_after_ends_the_stream_before_the_answer() {
    let (_files, served, session) = fault("auto", &json!({"drop_after": 1}));
    let events = served.post(&session, &call()).events();
    assert_eq!(
        (events.len(), &events[0]["method"]),
        (1, &json!("notifications/message"))
    );
    let (_files, served, session) = fault("auto", &json!({"drop_after": 0}));
    assert_eq!(served.post(&session, &call()).body, "");
}

pub(crate) fn cut_event_leaves_out_the_last_blank_line() {
    let (_files, served, session) = fault("auto", &json!({"cut_event": true}));
    let body = served.post(&session, &call()).body;
    assert!(
        body.ends_with(&format!("\n\nevent: message\ndata: {ANSWER}\n")),
        "{body}"
    );
}

pub(crate) fn slow_and_split_bring_the_body_whole_in_the_end() {
    for fault_written in [json!({"slow": [7, 1]}), json!({"split": [7, 1]})] {
        for form in ["json", "stream"] {
            let (_files, served, session) = fault(form, &fault_written);
            assert!(served.post(&session, &call()).body.contains(ANSWER));
        }
    }
}

pub(crate) fn pretty_stands_on_several_lines() {
    let (_files, served, session) = fault("json", &json!({"pretty": true}));
    let answer = served.post(&session, &call());
    assert!(answer.body.starts_with("{\n  \"id\": 1,\n"), "{answer:?}");
    let (_files, served, session) = fault("stream", &json!({"pretty": true}));
    let body = served.post(&session, &call()).body;
    assert!(
        body.contains("event: message\ndata: {\ndata:   \"id\": 1,\n"),
        "{body}"
    );
}

pub(crate) fn keep_open_holds_the_stream_after_the_answer() {
    let (_files, served, session) = fault("auto", &json!({"keep_open_ms": 100_000}));
    let mut stream = served.connect();
    let body = call().to_string();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nContent-Length: {}\r\n{POST}{session}\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap())
        .lines()
        .map(Result::unwrap);
    assert!(lines.any(|line| line.contains(ANSWER)));
    // By the time that others have been answered, an end would have come.
    for _ in 0..10 {
        assert_eq!(served.post(&session, &ping()).status, 200);
    }
    stream.set_nonblocking(true).unwrap();
    // What is left of the answer's event may still come; the end does not.
    let mut rest = [0; 64];
    assert_ne!(stream.read(&mut rest).ok(), Some(0));
}

pub(crate) fn redirect_leads_elsewhere() {
    let (_files, served, session) = fault("auto", &json!({"redirect": "http://127.0.0.1:1/mcp"}));
    let answer = served.post(&session, &call());
    assert_eq!(
        (answer.status, answer.header("Location")),
        (302, "http://127.0.0.1:1/mcp")
    );
}

pub(crate) fn refuse_closes_the_connection_without_an_answer() {
    let (files, served, session) = fault("auto", &json!({"refuse": true}));
    assert_eq!(
        served.bytes(
            "POST",
            "/mcp",
            &format!("{POST}{session}"),
            &call().to_string()
        ),
        b""
    );
    assert_eq!(files.fired().0, ["answers[0]"]);
    assert_eq!(served.post(&session, &ping()).status, 200);
}

pub(crate) fn hang_answers_nothing_and_holds_up_nobody() {
    for when in ["before", "after"] {
        let script = json!({"answers": [{"tool": "a", "text": "ok", "when": when, "fault": {"hang": true}}]});
        let files = Files::of(&script);
        let served = Served::script(&files);
        let session = served.session();
        let mut stream = served.connect();
        let body = call().to_string();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nContent-Length: {}\r\n{POST}{session}\r\n{body}",
            body.len()
        )
        .unwrap();
        if when == "after" {
            // The stream has opened by then.
            let lines = BufReader::new(stream.try_clone().unwrap())
                .lines()
                .map(Result::unwrap);
            assert!(lines.take(20).any(|line| line.contains("calling a")));
        }
        assert_eq!(served.post(&session, &ping()).status, 200);
        stream.set_nonblocking(true).unwrap();
        let mut rest = Vec::new();
        assert_eq!(
            stream.read_to_end(&mut rest).unwrap_err().kind(),
            std::io::ErrorKind::WouldBlock
        );
        assert!(!String::from_utf8_lossy(&rest).contains("ok"));
    }
}

pub(crate) fn exit_ends_the_server_before_it_answers() {
    let (files, mut served, session) = fault("auto", &json!({"exit": 3}));
    assert_eq!(
        served.bytes(
            "POST",
            "/mcp",
            &format!("{POST}{session}"),
            &call().to_string()
        ),
        b""
    );
    assert_eq!(served.child.wait().unwrap().code(), Some(3));
    assert_eq!(files.fired(), (vec![json!("answers[0]")], json!([])));
}

pub(crate) fn shapes_of_answers_are_the_same_as_on_stdio() {
    for (written, expected) in [
        (json!({"twice": true}), format!("{ANSWER}\n{ANSWER}")),
        (json!({"batch": true}), format!("[{ANSWER}]")),
        (json!({"line": "x"}), format!("x\n{ANSWER}")),
        (json!({"bytes": "eA=="}), format!("x{ANSWER}")),
    ] {
        let (_files, served, session) = fault("json", &written);
        assert_eq!(served.post(&session, &call()).body, expected, "{written}");
    }
    let (_files, served, session) = fault("stream", &json!({"twice": true, "line": "1"}));
    assert_eq!(served.post(&session, &call()).events().len(), 4);
    let (_files, served, session) = fault("json", &json!({"id": 99}));
    assert_eq!(served.post(&session, &call()).json()["id"], 99);
    let (_files, served, session) = fault("json", &json!({"pad": 2_000_000}));
    assert_eq!(
        served.post(&session, &call()).json()["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .len(),
        2_000_000
    );
}

pub(crate) fn crlf_ends_the_lines_of_event_streams() {
    let (_files, served, session) = fault("auto", &json!({"crlf": true}));
    let body = served.post(&session, &call()).body;
    assert!(
        body.ends_with(&format!("event: message\r\ndata: {ANSWER}\r\n\r\n")),
        "{body}"
    );
}

pub(crate) fn faults_may_be_for_other_methods_and_notifications() {
    let files = Files::of(&json!({"answers": [
        {"method": "initialize", "nth": 2, "fault": {"status": 500}},
        {"method": "notifications/initialized", "fault": {"status": 400}},
        {"method": "ping", "rpc_error": {"code": -5, "message": "no"}},
    ]}));
    let served = Served::script(&files);
    let session = served.session();
    let initialize = json!({"id": 1, "method": "initialize"});
    let refused = served.post("", &initialize);
    assert_eq!(
        (refused.status, refused.header("Mcp-Session-Id")),
        (500, "")
    );
    assert_eq!(
        served
            .post(&session, &json!({"method": "notifications/initialized"}))
            .status,
        400
    );
    assert_eq!(served.post(&session, &ping()).json()["error"]["code"], -5);
}

fn manners(http: &Value) -> (Files, Served) {
    let files = Files::of(
        &json!({"http": http, "answers": [{"tool": "a", "text": "ok"}],
        "timeline": [{"after": "initialized", "send": {"n": 1}}, {"after": "initialized", "send": {"n": 2}}]}),
    );
    let served = Served::script(&files);
    (files, served)
}

pub(crate) fn answers_come_in_the_form_that_is_asked_for() {
    for (form, ping_type, call_type) in [
        ("json", "application/json", "application/json"),
        ("stream", "text/event-stream", "text/event-stream"),
        ("auto", "application/json", "text/event-stream"),
    ] {
        let (_files, served) = manners(&json!({"answers": form}));
        let session = served.session();
        assert_eq!(
            served.post(&session, &ping()).header("Content-Type"),
            ping_type
        );
        assert_eq!(
            served.post(&session, &call()).header("Content-Type"),
            call_type
        );
    }
}

pub(crate) fn a_server_may_have_no_sessions_or_lose_them() {
    let (_files, served) = manners(&json!({"session": "none"}));
    let initialized = served.post(
        "",
        &json!({"id": 1, "method": "initialize", "params": {"protocolVersion": "v"}}),
    );
    assert_eq!(
        (initialized.status, initialized.header("Mcp-Session-Id")),
        (200, "")
    );
    assert_eq!(
        served.post("MCP-Protocol-Version: v\r\n", &ping()).status,
        200
    );
    assert_eq!(served.post("", &ping()).status, 400);

    let (_files, served) = manners(&json!({"session": "wrong", "version": "free"}));
    let ids: Vec<String> = (0..3)
        .map(|_| served.post("", &ping()).header("Mcp-Session-Id").to_owned())
        .collect();
    assert_eq!(ids, ["demo-session-1", "demo-session-2", "demo-session-3"]);
}

pub(crate) fn the_version_may_be_free() {
    let (_files, served) = manners(&json!({"version": "free"}));
    let session = served.session();
    let id = session.lines().next().unwrap();
    assert_eq!(served.post(&format!("{id}\r\n"), &ping()).status, 200);
}

/// What a GET gets in a session that is initialized.
fn get(http: &Value, more: &str) -> Answer {
    let (_files, served) = manners(http);
    let session = served.session();
    served.post(&session, &json!({"method": "notifications/initialized"}));
    served.ask("GET", "/mcp", &format!("{GET}{session}{more}"), "")
}

pub(crate) fn get_gets_what_is_asked_for() {
    let refused = get(&json!({"get": "405"}), "");
    assert_eq!(
        (refused.status, refused.header("Allow")),
        (405, "POST, DELETE")
    );
    assert_eq!(get(&json!({"get": 404}), "").status, 404);
    let page = get(&json!({"get": "html"}), "");
    assert_eq!(
        (page.status, page.header("Content-Type")),
        (200, "text/html; charset=utf-8")
    );
    let empty = get(&json!({"get": "empty"}), "");
    assert_eq!(
        (
            empty.status,
            empty.header("Content-Type"),
            empty.body.as_str()
        ),
        (200, "text/event-stream", "")
    );
    let one = get(&json!({"get": "closes"}), "");
    assert_eq!(one.body, "event: message\ndata: {\"n\":1}\n\n");
    let with_retry = get(&json!({"get": "closes", "retry_ms": 20}), "");
    assert_eq!(
        with_retry.body,
        "retry: 20\n\nevent: message\ndata: {\"n\":1}\n\n"
    );
}

pub(crate) fn a_get_goes_on_where_the_last_ended() {
    let (_files, served) = manners(&json!({"get": "closes", "get_ids": true}));
    let session = served.session();
    served.post(&session, &json!({"method": "notifications/initialized"}));
    let next = |more: &str| {
        served
            .ask("GET", "/mcp", &format!("{GET}{session}{more}"), "")
            .body
    };
    assert_eq!(next(""), "id: 1\nevent: message\ndata: {\"n\":1}\n\n");
    assert_eq!(
        next("Last-Event-ID: 1\r\n"),
        "id: 2\nevent: message\ndata: {\"n\":2}\n\n"
    );
    assert_eq!(
        next("Last-Event-ID: 1\r\n"),
        "id: 2\nevent: message\ndata: {\"n\":2}\n\n"
    );
}

pub(crate) fn the_stream_of_a_post_is_resumed_by_a_get() {
    let files = Files::of(&json!({"http": {"get_ids": true, "retry_ms": 10},
        "answers": [{"tool": "a", "text": "ok", "delay_ms": 30, "fault": {"drop_after": 0}}]}));
    let served = Served::script(&files);
    let session = served.session();
    let body = served.post(&session, &call()).body;
    assert_eq!(body, "retry: 10\n\nid: 1\ndata:\n\n");
    let rest = served
        .ask(
            "GET",
            "/mcp",
            &format!("{GET}{session}Last-Event-ID: 1\r\n"),
            "",
        )
        .events();
    assert_eq!(rest[0]["params"]["data"], "calling a");
    assert_eq!(rest[1], serde_json::from_str::<Value>(ANSWER).unwrap());
    assert_eq!(rest.len(), 2);
}

pub(crate) fn a_dropped_stream_ends_at_once_though_the_call_goes_on() {
    let files = Files::of(
        &json!({"http": {"get_ids": true}, "answers": [{"tool": "a", "text": "ok", "delay_ms": 600_000, "fault": {"drop_after": 0}}]}),
    );
    let served = Served::script(&files);
    let session = served.session();
    let body = call().to_string();
    let mut stream = served.connect();
    write!(stream, "POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n{POST}{session}\r\n{body}", body.len()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(Answer::of(&answer).body, "id: 1\ndata:\n\n");
}

pub(crate) fn the_rest_of_a_body_that_breaks_off_is_kept_for_a_get() {
    let files = Files::of(
        &json!({"http": {"get_ids": true}, "answers": [{"tool": "a", "text": "ok", "fault": {"cut": 12}}]}),
    );
    let served = Served::script(&files);
    let session = served.session();
    assert_eq!(served.post(&session, &call()).body, "id: 1\ndata:\n");
    let rest = served
        .ask(
            "GET",
            "/mcp",
            &format!("{GET}{session}Last-Event-ID: 1\r\n"),
            "",
        )
        .events();
    assert_eq!(rest.len(), 2);
}

pub(crate) fn delete_has_the_status_that_is_asked_for_or_none() {
    let (_files, served) = manners(&json!({"delete": 405}));
    let session = served.session();
    assert_eq!(served.ask("DELETE", "/mcp", &session, "").status, 405);
    assert_eq!(served.post(&session, &ping()).status, 200);
    let (_files, served) = manners(&json!({"delete": "hang"}));
    let mut stream = served.connect();
    write!(stream, "DELETE /mcp HTTP/1.1\r\n{}\r\n", served.session()).unwrap();
    served.session();
    stream.set_nonblocking(true).unwrap();
    assert_eq!(
        stream.read(&mut [0; 1]).unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
}

pub(crate) fn auth_is_required_as_by_the_option() {
    let (_files, served) = manners(&json!({"auth": "Bearer x"}));
    assert_eq!(served.post("", &ping()).status, 401);
    assert_eq!(
        served.post("Authorization: Bearer x\r\n", &ping()).status,
        400
    );
}

pub(crate) fn what_the_timeline_sends_waits_for_a_stream() {
    let files = Files::of(
        &json!({"http": {"get": "closes"}, "tools": [{"name": "a"}], "answers": [{"tool": "a", "text": "ok"}],
        "listings": {"v2": {"hide": ["a"]}},
        "timeline": [{"after": "start", "send": {"at": "start"}}, {"after": "call:a", "relist": "v2"}, {"after": "call:a", "fault": {"end_session": true}, "ms": 60}]}),
    );
    let served = Served::script(&files);
    let session = served.session();
    let next = || served.ask("GET", "/mcp", &format!("{GET}{session}"), "");
    assert_eq!(next().events(), [json!({"at": "start"})]);
    served.post(&session, &call());
    assert_eq!(
        next().events(),
        [json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})]
    );
    // The session's own stream stays open until the session ends.
    next();
    assert_eq!(served.post(&session, &ping()).status, 404);
}

pub(crate) fn progress_comes_on_the_stream_of_its_call() {
    let files = Files::of(&json!({"answers": [{"tool": "a", "text": "ok", "progress": 2}]}));
    let served = Served::script(&files);
    let mut asked = call();
    asked["params"]["_meta"] = json!({"progressToken": "t"});
    let events = served.post(&served.session(), &asked).events();
    assert_eq!(
        (
            &events[1]["params"]["progress"],
            &events[2]["params"]["progress"]
        ),
        (&json!(1), &json!(2))
    );
    assert_eq!(events.len(), 4);
}

pub(crate) fn the_transcript_has_each_request() {
    let (files, served) = manners(&json!({}));
    let session = served.session();
    served.ask("DELETE", "/mcp?x=1", &session, "");
    let records = files.transcript();
    let body = r#"{"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
    assert_eq!(records[0]["http"]["method"], "POST");
    assert_eq!(
        records[0]["http"]["headers"]["accept"],
        "application/json, text/event-stream"
    );
    assert_eq!(records[0]["http"]["body"], body);
    let delete = &records[1]["http"];
    assert_eq!(
        (&delete["method"], &delete["path"], &delete["body"]),
        (&json!("DELETE"), &json!("/mcp?x=1"), &json!(""))
    );
    assert_eq!(delete["headers"]["mcp-session-id"], "demo-session-1");
}
