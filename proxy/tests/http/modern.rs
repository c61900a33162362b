//! Revision 2026-07-28: no sessions, headers that repeat the body, and hosts that try it first.

use serde_json::{Value, json};

use crate::{
    bare::{Bare, Out, Request, result},
    host::{Demo, Host},
};

/// The params of a request of the revision.
fn modern(params: Value) -> Value {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

fn tool(name: &str, annotated: &Value) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": {"text": annotated}}})
}

const GOOD: &str = r#"{"type":"string","x-mcp-header":"Text"}"#;

fn annotated(json: &str) -> Value {
    serde_json::from_str(json).expect("JSON")
}

#[test]
fn each_request_says_in_its_headers_what_its_body_says() {
    let server = Bare::start(|request, out| match request.what().as_str() {
        "tools/list" => out.json(&result(
            request,
            &json!({"tools": [tool("ünï", &annotated(GOOD))]}),
        )),
        "POST" | "notifications/x" => out.accepted(),
        _ => out.json(&result(request, &json!({}))),
    });
    let mut host = Host::before(&server.url);
    host.ask(1, "server/discover", modern(json!({})));
    host.answer(1);
    host.ask(2, "tools/list", modern(json!({})));
    host.answer(2);
    host.ask(
        3,
        "tools/call",
        modern(json!({"name": "ünï", "arguments": {"text": " a"}})),
    );
    host.answer(3);
    host.ask(4, "resources/read", modern(json!({"uri": "a:b"})));
    host.answer(4);
    host.send(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
    let left = host.finish();
    assert_eq!(left.status.code(), Some(0));
    assert_eq!((left.count("proxy"), left.stderr.lines().count()), (0, 1));

    let seen = server.seen();
    assert!(
        seen.iter().all(|request| request.method == "POST"),
        "no GET, no DELETE"
    );
    for request in &seen {
        assert_eq!(request.header("mcp-protocol-version"), "2026-07-28");
        assert_eq!(request.header("mcp-method"), request.what());
        assert_eq!(request.header("mcp-session-id"), "");
    }
    let call = &seen[2];
    assert_eq!(call.header("mcp-name"), "=?base64?w7xuw68=?=");
    assert_eq!(call.header("mcp-param-text"), "=?base64?IGE=?=");
    assert_eq!(seen[3].header("mcp-name"), "a:b");
}

#[test]
fn a_tool_that_breaks_the_rules_is_left_out_for_the_host_and_shown_in_the_log() {
    let server = Bare::start(|request, out| {
        let broken = annotated(r#"{"type":"number","x-mcp-header":"Text"}"#);
        out.json(&result(
            request,
            &json!({"tools": [tool("broken", &broken), tool("fine", &annotated(GOOD))]}),
        ))
    });
    for arguments in [&[][..], &["--commit"]] {
        let mut host = Host::start(&[&["--upstream", &server.url], arguments].concat(), &[]);
        let mut tools = Vec::new();
        for id in 1..=2 {
            host.ask(id, "tools/list", modern(json!({})));
            let answer = host.answer(id);
            let list = answer["result"]["tools"].as_array().expect("a list");
            tools = list.iter().map(|tool| tool["name"].clone()).collect();
        }
        assert_eq!(tools[0], "fine");
        assert_eq!(tools.len(), 1 + arguments.len());
        let left = host.finish();
        assert_eq!(
            left.said_by("server")[0]["result"]["tools"][0]["name"],
            "broken"
        );
        let amended = left.said_by("proxy");
        assert_eq!(amended.len(), 2, "one for each listing, as the host got it");
        assert_eq!(
            amended[0]["result"]["tools"]
                .as_array()
                .expect("a list")
                .len(),
            tools.len()
        );
        let said = left
            .stderr
            .lines()
            .filter(|line| line.contains("the tool broken is left out"));
        assert_eq!(said.count(), 1, "{}", left.stderr);
    }
}

#[test]
fn an_older_session_keeps_its_listings() {
    let server = Bare::with_sessions(|request, out| {
        out.json(&result(
            request,
            &json!({"tools": [tool("odd", &annotated(r#"{"x-mcp-header":7}"#))]}),
        ))
    });
    let mut host = Host::before(&server.url);
    host.open();
    host.ask(1, "tools/list", json!({}));
    assert_eq!(host.answer(1)["result"]["tools"][0]["name"], "odd");
    assert_eq!(host.finish().count("proxy"), 0);
}

/// A server that wants an argument in a header, and lists its tools on two pages.
fn wants_a_header(request: &Request, out: &mut Out) -> std::io::Result<()> {
    match request.what().as_str() {
        "tools/list" if request.json()["params"]["cursor"] == "2" => out.json(&result(
            request,
            &json!({"tools": [tool("t", &annotated(GOOD))]}),
        )),
        "tools/list" => out.json(&result(request, &json!({"tools": [], "nextCursor": "2"}))),
        _ if request.header("mcp-param-text") == "hi" => {
            out.json(&result(request, &json!({"content": []})))
        }
        _ => {
            let refusal = json!({"jsonrpc": "2.0", "id": request.json()["id"], "error": {"code": -32020, "message": "header"}});
            out.send(
                "400 Bad Request",
                "Content-Type: application/json\r\n",
                &refusal.to_string(),
            )
        }
    }
}

#[test]
fn a_call_of_a_tool_that_was_not_listed_is_repeated_with_its_headers() {
    let server = Bare::start(wants_a_header);
    let mut host = Host::before(&server.url);
    host.ask(
        "stretto-1",
        "tools/call",
        modern(json!({"name": "t", "arguments": {"text": "hi"}})),
    );
    assert_eq!(host.message()["result"]["content"], json!([]));
    host.ask(
        2,
        "tools/call",
        modern(json!({"name": "t", "arguments": {"text": "hi"}})),
    );
    host.answer(2);
    let left = host.finish();
    assert_eq!(left.lines, [""; 0]);
    let whats: Vec<String> = server.seen().iter().map(Request::what).collect();
    assert_eq!(
        whats,
        [
            "tools/call",
            "tools/list",
            "tools/list",
            "tools/call",
            "tools/call"
        ]
    );
    assert_eq!(server.seen()[1].header("mcp-method"), "tools/list");
    let own: Vec<Value> = left
        .said_by("proxy")
        .iter()
        .map(|message| message["id"].clone())
        .collect();
    assert_eq!(own, ["stretto-2", "stretto-3"], "the host uses the first");
    assert_eq!(
        left.count("server"),
        4,
        "two pages and two answers; not the refusal that was repeated"
    );
}

#[test]
fn a_refusal_that_no_header_helps_is_passed_on() {
    let server = Bare::start(wants_a_header);
    let mut host = Host::before(&server.url);
    host.ask(
        1,
        "tools/call",
        modern(json!({"name": "t", "arguments": {"text": "no"}})),
    );
    assert_eq!(
        host.answer(1)["error"],
        json!({"code": -32020, "message": "header"})
    );
    let calls = server
        .seen()
        .iter()
        .filter(|request| request.what() == "tools/call")
        .count();
    assert_eq!(calls, 2);
}

#[test]
fn cancelling_closes_the_stream_and_is_not_sent() {
    let (tell, closed) = std::sync::mpsc::channel();
    let server = Bare::start(move |request, out| {
        if request.what() == "ping" {
            return out.json(&result(request, &json!({})));
        }
        out.stream()?;
        out.event(&json!({"method": "under way"}))?;
        out.wait_for_hang_up();
        tell.send(request.json()["id"].clone())
            .expect("somebody listens");
        Ok(())
    });
    let mut host = Host::before(&server.url);
    host.ask(1, "tools/call", modern(json!({"name": "t"})));
    host.ask(
        "l",
        "subscriptions/listen",
        modern(json!({"notifications": {}})),
    );
    host.message();
    host.message();
    for id in [json!(1), json!(1), json!(99)] {
        host.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string());
    }
    assert_eq!(closed.recv().expect("closed"), 1);
    host.ask(2, "ping", modern(json!({})));
    assert_eq!(
        host.message()["id"],
        2,
        "a cancelled request gets no answer"
    );
    let left = host.finish();
    assert_eq!(
        left.status.code(),
        Some(0),
        "an open subscription is not waited for"
    );
    assert_eq!(left.lines, [""; 0]);
    assert_eq!(server.seen().len(), 3);
}

#[test]
fn a_broken_subscription_is_an_error_so_that_it_can_be_opened_again() {
    let server = Bare::start(|_, out| {
        out.stream()?;
        out.raw("id: 1\ndata: {\"method\":\"notifications/subscriptions/acknowledged\"}\n\n")?;
        out.hang_up()
    });
    let mut host = Host::before(&server.url);
    host.ask(
        "l",
        "subscriptions/listen",
        modern(json!({"notifications": {}})),
    );
    assert!(host.error("l").contains("ended before the answer"));
    assert_eq!(server.seen().len(), 1, "nothing is resumed");
}

#[test]
fn an_older_server_is_found_out_at_once() {
    // As the TypeScript kit refuses, without an id, and as the Python kit does.
    let server = Bare::with_sessions(|request, out| {
        match request.what().as_str() {
        "server/discover" => out.send("400 Bad Request", "Mcp-Session-Id: leads-nowhere\r\n", r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"No valid session ID provided"},"id":null}"#),
        _ => out.json(&result(request, &json!({}))),
    }
    });
    let mut host = Host::before(&server.url);
    host.ask(1, "server/discover", modern(json!({})));
    assert_eq!(host.answer(1)["error"]["code"], -32000);
    host.open();
    host.ask(2, "tools/list", json!({}));
    host.answer(2);
    host.finish();
    let initialize = &server.seen()[1];
    assert_eq!(
        (
            initialize.what().as_str(),
            initialize.header("mcp-session-id").as_str()
        ),
        ("initialize", "")
    );
    assert_eq!(
        server.seen().last().expect("some").header("mcp-session-id"),
        "s-1"
    );
}

#[test]
fn a_newer_server_that_knows_no_sessions_says_so_itself() {
    let demo = Demo::start(&["--era", "modern"]);
    let mut host = Host::before(&demo.url);
    host.ask(0, "initialize", json!({"protocolVersion": "2025-06-18"}));
    assert_eq!(host.answer(0)["error"]["code"], -32022);
    host.ask(1, "server/discover", modern(json!({})));
    assert!(host.answer(1).get("result").is_some());
    host.ask(
        2,
        "tools/call",
        modern(json!({"name": "lookup", "arguments": {"text": "hé"}})),
    );
    assert_eq!(
        host.answer(2)["result"]["content"][0]["text"],
        r#"{"text":"hé"}"#
    );
    host.ask(3, "no/such", modern(json!({})));
    assert_eq!(
        host.answer(3)["error"]["code"],
        -32601,
        "a 404 that means no session"
    );
    assert_eq!(host.finish().status.code(), Some(0));
}
