//! Event streams: what is in them, how they break, and how they go on.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    bare::{Bare, Out, Request, result},
    host::{Demo, Host},
};

fn opened(
    answer: impl Fn(&Request, &mut Out) -> std::io::Result<()> + Send + Sync + 'static,
) -> (Bare, Host) {
    let server = Bare::with_sessions(answer);
    let mut host = Host::before(&server.url);
    host.open();
    (server, host)
}

#[test]
fn events_of_every_form_become_lines() {
    let (_server, mut host) = opened(|_, out| {
        out.stream()?;
        out.raw("\u{feff}: a comment\r\nid: 1\r\nretry: 5\r\ndata: \r\n\r\nevent: ping\r\ndata: {}\r\n\r\n")?;
        out.raw(
            "event: message\ndata: {\"method\":\ndata:  \"a\"}\n\ndata:{\"method\":\"b\"}\r\r",
        )?;
        out.raw("data: {\"id\":1,\"result\":{\"n\":1.0}}")?;
        out.hang_up()
    });
    host.ask(1, "x", json!({}));
    assert_eq!(host.line(), r#"{"method":  "a"}"#);
    assert_eq!(host.line(), r#"{"method":"b"}"#);
    assert_eq!(
        host.line(),
        r#"{"id":1,"result":{"n":1.0}}"#,
        "cut off, and whole"
    );
    assert_eq!(host.finish().lines, [""; 0]);
}

#[test]
fn lines_arrive_while_the_stream_goes_on() {
    let (_server, mut host) = opened(|request, out| {
        out.stream()?;
        out.event(&json!({"method": "notifications/progress"}))?;
        out.event(&json!({"id": 0, "method": "elicitation/create"}))?;
        out.event(&result(request, &json!({})))?;
        out.event(&json!({"method": "after"}))?;
        out.wait_for_hang_up();
        Ok(())
    });
    host.ask(1, "x", json!({}));
    let methods: Vec<Value> = (0..4).map(|_| host.message()["method"].clone()).collect();
    assert_eq!(
        methods,
        [
            json!("notifications/progress"),
            json!("elicitation/create"),
            Value::Null,
            json!("after")
        ]
    );
}

#[test]
fn a_stream_without_the_answer_is_an_error() {
    for cut in [
        "",
        "data: {\"method\":\"a\"}\n\n",
        "data: {\"id\":1,\"result\":{",
    ] {
        let (_server, mut host) = opened(move |_, out| {
            out.stream()?;
            out.raw(cut)?;
            out.hang_up()
        });
        host.ask(1, "x", json!({}));
        assert!(host.error(1).contains("ended before the answer"));
    }
}

#[test]
fn an_answer_that_comes_twice_reaches_the_host_once() {
    let demo = Demo::scripted(&json!({
        "script": 1, "tools": [{"name": "t", "inputSchema": {}}],
        "answers": [{"tool": "t", "text": "one", "fault": {"twice": true}}],
    }));
    let mut host = Host::before(&demo.url);
    host.open();
    host.call(1, "t", json!({}));
    host.answer(1);
    let left = host.finish();
    assert!(
        !left.lines.iter().any(|line| line.contains("result")),
        "{:?}",
        left.lines
    );
    let answers = left
        .said_by("server")
        .iter()
        .filter(|message| message["id"] == 1)
        .count();
    assert_eq!(answers, 1, "nor is it recorded twice");
}

#[test]
fn a_stream_that_ends_early_goes_on_where_it_ended() {
    let tries = AtomicU32::new(0);
    let (server, mut host) = opened(move |request, out| {
        let call = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}});
        match (
            request.method.as_str(),
            tries.fetch_add(1, Ordering::SeqCst),
        ) {
            ("POST", _) => {
                out.stream()?;
                out.raw("retry: 10\nid: p-1\ndata:\n\n")?;
                out.hang_up()
            }
            (_, 1) => out.send("503 Service Unavailable", "", ""),
            (_, 2) => {
                out.stream()?;
                out.raw("id: p-ü\ndata: {\"method\":\"late\"}\n\n")?;
                out.hang_up()
            }
            _ => {
                out.stream()?;
                // Everything again, as some servers do.
                out.event(&crate::bare::initialized(&json!(0)))?;
                out.event(&call)?;
                out.event(&call)?;
                out.hang_up()
            }
        }
    });
    host.call(1, "t", json!({}));
    assert_eq!(host.message()["method"], "late");
    assert_eq!(host.message()["result"]["content"], json!([]));
    let left = host.finish();
    assert_eq!(left.lines, [""; 0]);
    let gets: Vec<String> = server
        .seen()
        .iter()
        .filter(|request| !request.header("last-event-id").is_empty())
        .map(|request| request.header("last-event-id"))
        .collect();
    assert_eq!(gets, ["p-1", "p-1", "p-ü"]);
    let get = server
        .seen()
        .into_iter()
        .rfind(|request| request.method == "GET")
        .expect("one");
    assert_eq!(
        (
            get.header("mcp-session-id").as_str(),
            get.header("mcp-protocol-version").as_str()
        ),
        ("s-1", "2025-11-25")
    );
}

#[test]
fn a_stream_that_says_nothing_new_is_resumed_five_times() {
    let (server, mut host) = opened(|_, out| {
        out.stream()?;
        out.raw("retry: 1\n")?;
        out.raw("id: 1\n")?;
        // Only the first event ends.
        out.hang_up()
    });
    host.ask(1, "x", json!({}));
    assert!(
        host.error(1).contains("ended before the answer"),
        "no event, so nothing to resume from"
    );
    assert!(
        !server
            .seen()
            .iter()
            .any(|request| !request.header("last-event-id").is_empty())
    );

    let (server, mut host) = opened(|request, out| {
        out.stream()?;
        if request.method == "POST" {
            out.raw("retry: 1\nid: 1\n\n")?;
        }
        out.hang_up()
    });
    host.ask(1, "x", json!({}));
    assert!(host.error(1).contains("ended before the answer"));
    let gets = server
        .seen()
        .iter()
        .filter(|request| request.header("last-event-id") == "1")
        .count();
    assert_eq!(gets, 5);
}

#[test]
fn a_server_that_cannot_resume_is_asked_once() {
    let (server, mut host) = opened(|request, out| {
        if request.method == "GET" {
            return out.send("405 Method Not Allowed", "", "");
        }
        out.stream()?;
        out.raw("retry: 1\nid: 1\n\n")?;
        out.hang_up()
    });
    host.ask(1, "x", json!({}));
    assert!(host.error(1).contains("HTTP 405"));
    assert_eq!(
        server
            .seen()
            .iter()
            .filter(|request| request.header("last-event-id") == "1")
            .count(),
        1
    );
}

#[test]
fn an_answer_on_the_servers_own_stream_is_an_answer() {
    let server = Bare::start(|request, out| match request.what().as_str() {
        "GET" => {
            out.stream()?;
            // The host asks for 1 before the server is done with it.
            std::thread::sleep(Duration::from_millis(300));
            out.event(&json!({"jsonrpc": "2.0", "id": 1, "result": {"by": "get"}}))?;
            out.event(&json!({"jsonrpc": "2.0", "id": 77, "result": {}}))?;
            out.wait_for_hang_up();
            Ok(())
        }
        "x" => {
            out.stream()?;
            out.raw("retry: 2000\nid: 1\n\n")?;
            out.hang_up()
        }
        "initialize" => out.json(&crate::bare::initialized(&json!(0))),
        _ => out.accepted(),
    });
    let mut host = Host::before(&server.url);
    host.open();
    host.ask(1, "x", json!({}));
    assert_eq!(host.message()["result"]["by"], "get");
    assert_eq!(host.finish().lines, [""; 0], "and no error comes after it");
}

#[test]
fn the_servers_own_stream_is_opened_again_and_given_up_in_the_end() {
    let gets = AtomicU32::new(0);
    let server = Bare::start(move |request, out| match request.what().as_str() {
        "GET" if gets.fetch_add(1, Ordering::SeqCst) == 0 => {
            out.stream()?;
            out.raw("id: 1\ndata: {\"method\":\"one\"}\n\nid: 2\ndata: {\"method\":\"two\"}\n\n")?;
            out.hang_up()
        }
        "GET" => out.send("403 Forbidden", "", ""),
        "initialize" => out.json(&crate::bare::initialized(&json!(0))),
        _ => out.accepted(),
    });
    let mut host = Host::before(&server.url);
    host.open();
    assert_eq!(host.message()["method"], "one");
    assert_eq!(host.message()["method"], "two");
    server.wait_for(|request| request.header("last-event-id") == "2");
    host.is_told("HTTP 403");
    assert_eq!(host.finish().status.code(), Some(0));
}

#[test]
fn an_endless_stream_on_initialize_holds_nothing_up() {
    let demo = Demo::scripted(&json!({
        "script": 1, "tools": [{"name": "t", "inputSchema": {}}], "http": {"answers": "stream"},
        "answers": [
            {"method": "initialize", "fault": {"keep_open_ms": 600_000}},
            {"tool": "t", "text": "fine"},
        ],
    }));
    let mut host = Host::before(&demo.url);
    host.open();
    host.call(1, "t", json!({}));
    assert_eq!(host.answer(1)["result"]["content"][0]["text"], "fine");
    assert_eq!(host.finish().status.code(), Some(0));
}
