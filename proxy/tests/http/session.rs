//! Whole sessions, what goes with each request, and in which order they go.

use std::{
    sync::{Arc, Barrier},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    bare::{Bare, Out, Request, result},
    host::{Demo, Host},
};

#[test]
fn a_whole_session_crosses_and_is_recorded() {
    let demo = Demo::start(&[]);
    let url = format!("{}?token=s3cr3t&region=eu", demo.url);
    let mut host = Host::before(&url);
    let opened = host.open();
    assert_eq!(opened["result"]["serverInfo"]["name"], "stretto-mcp-demo");
    let own = host.message();
    assert_eq!(own["params"]["data"], "hello from the server's own stream");
    host.ask(1, "tools/list", json!({}));
    assert_eq!(host.answer(1)["result"]["tools"][0]["name"], "lookup");
    host.call(2, "lookup", json!({"text": "hé"}));
    assert_eq!(
        host.message()["params"]["data"],
        "calling lookup",
        "before the result"
    );
    assert_eq!(
        host.message()["result"]["content"][0]["text"],
        r#"{"text":"hé"}"#
    );
    host.ask(3, "ping", json!({}));
    assert_eq!(
        host.message(),
        json!({"jsonrpc": "2.0", "id": 3, "result": {}})
    );

    let left = host.finish();
    assert_eq!(left.status.code(), Some(0));
    assert_eq!(left.lines, [""; 0]);
    assert_eq!(
        (
            left.count("client"),
            left.count("server"),
            left.count("proxy")
        ),
        (5, 6, 0)
    );
    let shown = format!("{}?token=<redacted>&region=eu", demo.url);
    assert_eq!(left.log[0]["server_command"], json!([shown]));
    assert!(!left.files.contains("s3cr3t"));
    assert_eq!(left.stderr.lines().count(), 1, "{}", left.stderr);
}

#[test]
fn a_host_that_pipes_its_lines_gets_all_its_answers() {
    let demo = Demo::start(&[]);
    let mut host = Host::before(&demo.url);
    host.ask(0, "initialize", json!({"protocolVersion": "2025-06-18"}));
    host.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    for id in 1..=3 {
        host.call(id, "lookup", json!({"delay_ms": 300}));
    }
    let left = host.finish();
    assert_eq!(left.status.code(), Some(0));
    let ids: Vec<Value> = left
        .said_by("server")
        .iter()
        .filter(|message| message.get("result").is_some())
        .map(|message| message["id"].clone())
        .collect();
    assert_eq!(ids[0], 0);
    assert_eq!(ids.len(), 4, "{ids:?}");
}

fn answered(request: &Request, out: &mut Out) -> std::io::Result<()> {
    if request.json().get("id").is_some() && request.json().get("method").is_some() {
        out.json(&result(request, &json!({})))
    } else {
        out.accepted()
    }
}

#[test]
fn headers_go_with_each_request_as_its_kind_asks() {
    let server = Bare::with_sessions(answered);
    let url = server.url.replace("http://", "http://me:pa%20ss@");
    let mut host = Host::start(
        &[
            "--upstream",
            &url,
            "--upstream-header",
            "X-Key=TEST_KEY",
            "--upstream-header",
            "x-key=TEST_KEY_2",
        ],
        &[("TEST_KEY", "one"), ("TEST_KEY_2", "two")],
    );
    host.open();
    server.wait_for(|request| request.method == "GET");
    host.send(r#" {"jsonrpc":"2.0","id":1, "method":"ping"} "#);
    host.answer(1);
    host.ask(2, "initialize", json!({}));
    host.answer(2);
    host.finish();

    let seen = server.seen();
    let kinds: Vec<String> = seen.iter().map(Request::what).collect();
    assert_eq!(
        kinds,
        [
            "initialize",
            "notifications/initialized",
            "GET",
            "ping",
            "initialize",
            "DELETE"
        ]
    );
    for request in &seen {
        let is_first = request.json()["id"] == 0;
        let (session, version) = if is_first {
            ("", "")
        } else {
            ("s-1", "2025-11-25")
        };
        assert_eq!(request.header("mcp-session-id"), session, "{request:?}");
        assert_eq!(
            request.header("mcp-protocol-version"),
            version,
            "{request:?}"
        );
        assert_eq!(request.header("x-key"), "one, two");
        assert_eq!(request.header("authorization"), "Basic bWU6cGEgc3M=");
        assert_eq!(request.target, "/mcp");
        let (accept, content) = match request.method.as_str() {
            "POST" => ("application/json, text/event-stream", "application/json"),
            "GET" => ("text/event-stream", ""),
            _ => ("", ""),
        };
        assert_eq!(request.header("accept"), accept);
        assert_eq!(request.header("content-type"), content);
        assert_eq!(request.header("last-event-id"), "");
        assert_eq!(request.header("accept-encoding"), "");
        assert_eq!(request.header("cookie"), "");
    }
    assert_eq!(
        seen[3].body, r#" {"jsonrpc":"2.0","id":1, "method":"ping"}"#,
        "as the host wrote it"
    );
}

#[test]
fn a_header_of_the_hosts_wins_over_the_urls_user() {
    let server = Bare::with_sessions(answered);
    let url = server.url.replace("http://", "http://me:x@");
    let mut host = Host::start(
        &[
            "--upstream",
            &url,
            "--upstream-header",
            "authorization=TEST_AUTH",
        ],
        &[("TEST_AUTH", "Bearer t")],
    );
    host.open();
    host.finish();
    assert!(
        server
            .seen()
            .iter()
            .all(|request| request.header("authorization") == "Bearer t")
    );
}

#[test]
fn a_server_without_sessions_is_sent_none() {
    let server = Bare::start(|request, out| match request.method.as_str() {
        "POST" => answered(request, out),
        _ => out.send("405 Method Not Allowed", "", ""),
    });
    let mut host = Host::before(&server.url);
    host.open();
    server.wait_for(|request| request.method == "GET");
    host.finish();
    let seen = server.seen();
    assert!(
        seen.iter()
            .all(|request| request.header("mcp-session-id").is_empty())
    );
    assert!(!seen.iter().any(|request| request.method == "DELETE"));
}

#[test]
fn blank_lines_and_a_second_initialized_change_nothing() {
    let server = Bare::with_sessions(answered);
    let mut host = Host::before(&server.url);
    host.open();
    host.send("");
    host.send("  \r");
    host.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    host.ask(1, "ping", json!({}));
    host.answer(1);
    let left = host.finish();
    assert_eq!(left.count("client"), 6, "blank lines are recorded");
    let seen = server.seen();
    assert_eq!(
        seen.iter()
            .filter(|request| request.method == "POST")
            .count(),
        4
    );
    assert_eq!(
        seen.iter()
            .filter(|request| request.method == "GET")
            .count(),
        1
    );
}

#[test]
fn a_slow_call_delays_nobody() {
    let demo = Demo::start(&[]);
    let mut host = Host::before(&demo.url);
    host.open();
    host.call(1, "lookup", json!({"delay_ms": 1500}));
    host.call(2, "lookup", json!({}));
    let ids: Vec<Value> = std::iter::repeat_with(|| host.message())
        .filter(|message| message.get("result").is_some())
        .map(|message| message["id"].clone())
        .take(2)
        .collect();
    assert_eq!(ids, [json!(2), json!(1)]);
}

#[test]
fn two_hundred_parallel_calls_each_get_their_own_answer_once() {
    const CALLS: u16 = 200;
    // All are in before the first is answered, and they are answered in another order.
    let all_in = Arc::new(Barrier::new(CALLS.into()));
    let server = Bare::with_sessions(move |request, out| {
        let call = request.json();
        let n = call["params"]["arguments"]["n"].as_u64().expect("a number");
        all_in.wait();
        std::thread::sleep(Duration::from_millis(n * 7919 % u64::from(CALLS)));
        let answer = result(
            request,
            &json!({"content": [{"type": "text", "text": n.to_string()}]}),
        );
        if n % 2 == 0 {
            return out.json(&answer);
        }
        out.stream()?;
        out.event(&answer)?;
        out.hang_up()
    });
    let mut host = Host::before(&server.url);
    host.open();
    for n in 0..CALLS {
        host.call(format!("call-{n}"), "t", json!({"n": n}));
    }
    let mut texts: Vec<u64> = (0..CALLS)
        .map(|_| {
            let answer = host.message();
            let n: u64 = answer["result"]["content"][0]["text"]
                .as_str()
                .expect("text")
                .parse()
                .expect("a number");
            assert_eq!(answer["id"], format!("call-{n}"));
            n
        })
        .collect();
    assert!(!texts.is_sorted(), "they came in another order");
    texts.sort_unstable();
    assert!(texts.iter().copied().eq(0..u64::from(CALLS)));
    assert_eq!(host.finish().lines, [""; 0]);
}

#[test]
fn nothing_but_responses_goes_out_before_initialize_is_answered() {
    // The server asks on the stream that answers, and answers only when it was answered.
    let (tell, told) = std::sync::mpsc::channel::<()>();
    let told = std::sync::Mutex::new(told);
    let server = Bare::start(move |request, out| match request.what().as_str() {
        "initialize" => {
            out.raw(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nMcp-Session-Id: s-7\r\n\r\n",
            )?;
            out.event(&json!({"jsonrpc": "2.0", "id": 0, "method": "ping"}))?;
            told.lock().expect("no panics").recv().expect("told");
            out.event(&crate::bare::initialized(&json!(0)))?;
            // And it keeps the stream open.
            out.wait_for_hang_up();
            Ok(())
        }
        "POST" => {
            tell.send(()).expect("somebody listens");
            out.accepted()
        }
        _ => answered(request, out),
    });
    let mut host = Host::before(&server.url);
    host.ask(0, "initialize", json!({}));
    host.ask(1, "tools/list", json!({}));
    assert_eq!(host.message()["method"], "ping");
    host.send(r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
    assert!(host.message()["result"]["protocolVersion"].is_string());
    host.answer(1);
    let seen = server.seen();
    assert_eq!(seen[1].body, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
    assert_eq!(
        seen[1].header("mcp-session-id"),
        "s-7",
        "known since the head of the answer"
    );
    assert_eq!(seen[2].what(), "tools/list");
    assert_eq!(seen[2].header("mcp-protocol-version"), "2025-11-25");
}

#[test]
fn initialized_goes_alone() {
    let answered_it = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let noted = Arc::clone(&answered_it);
    let server = Bare::start(move |request, out| match request.what().as_str() {
        "notifications/initialized" => {
            std::thread::sleep(Duration::from_millis(200));
            noted.store(true, std::sync::atomic::Ordering::SeqCst);
            out.send("500 Internal Server Error", "", "no")
        }
        "tools/list" if !answered_it.load(std::sync::atomic::Ordering::SeqCst) => {
            out.send("400 Bad Request", "", "too early")
        }
        _ => answered(request, out),
    });
    let mut host = Host::before(&server.url);
    host.open();
    host.ask(1, "tools/list", json!({}));
    assert!(
        host.answer(1).get("result").is_some(),
        "whether it succeeded does not matter"
    );
    server.wait_for(|request| request.method == "GET");
    assert!(
        host.finish()
            .stderr
            .contains("notifications/initialized: the server answered HTTP 500")
    );
}

#[test]
fn a_commit_carries_the_session_and_is_recorded_as_the_proxys() {
    let demo = Demo::start(&["--world", "retail"]);
    let mut host = Host::start(&["--upstream", &demo.url, "--commit"], &[]);
    host.open();
    host.call("stretto-1", "stretto_commit", json!({"calls": [
        {"name": "get_order_details", "arguments": {"order_id": "#W7a"}},
        {"name": "cancel_pending_order", "arguments": {"order_id": "#W7a", "reason": "no longer needed"}},
    ]}));
    let answer = host.answer("stretto-1");
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let left = host.finish();
    let own: Vec<Value> = left
        .said_by("proxy")
        .into_iter()
        .filter(|message| message.get("method").is_some())
        .map(|message| message["params"]["name"].clone())
        .collect();
    assert_eq!(own, ["get_order_details", "cancel_pending_order"]);
}

#[test]
fn a_flows_lookups_carry_the_session_and_are_recorded_as_the_proxys() {
    let server = Bare::with_sessions(|request, out| {
        let asked = request.json();
        let tool = |name: &str, needs: &str| {
            json!({"name": name, "annotations": {"readOnlyHint": true}, "inputSchema":
                {"type": "object", "properties": {needs: {"type": "string"}}, "required": [needs]}})
        };
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        let said = match (request.what().as_str(), asked["params"]["name"].as_str()) {
            ("tools/list", _) => json!({"tools": [
                tool("find_user_id_by_email", "email"), tool("get_user_details", "user_id"),
            ]}),
            (_, Some("find_user_id_by_email")) => text("user_7"),
            _ => text(r##"{"user_id":"user_7","orders":["#W7a"]}"##),
        };
        out.json(&result(request, &said))
    });
    let flow = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../scenarios/flows/shop.flow.json"
    );
    let options = [
        "--upstream",
        &server.url,
        "--upstream-header",
        "X-Key=TEST_KEY",
    ];
    let mut host = Host::start(
        &[&options[..], &["--flow", flow, "--flow-per-call", "1"]].concat(),
        &[("TEST_KEY", "one")],
    );
    host.open();
    host.ask(1, "tools/list", json!({}));
    host.answer(1);
    host.call(
        2,
        "find_user_id_by_email",
        json!({"email": "c7@example.com"}),
    );
    let answer = host.answer(2).to_string();
    assert!(
        answer.contains("#W7a"),
        "the lookup's result came with it: {answer}"
    );
    let left = host.finish();
    let own: Vec<Value> = left
        .said_by("proxy")
        .into_iter()
        .filter(|message| message.get("method").is_some())
        .map(|message| message["params"]["name"].clone())
        .collect();
    assert_eq!(own, ["get_user_details"]);

    let lookup = server
        .seen()
        .into_iter()
        .find(|request| request.json()["params"]["name"] == "get_user_details")
        .expect("it was asked");
    for (header, value) in [
        ("mcp-session-id", "s-1"),
        ("mcp-protocol-version", "2025-11-25"),
        ("x-key", "one"),
    ] {
        assert_eq!(lookup.header(header), value, "{header}");
    }
}
