//! Requests that bring no answer: the host gets one all the same, with its own id, once.

use serde_json::{Value, json};

use crate::{
    bare::{Bare, result},
    host::{Demo, Host},
};

const DEAD: &str = "http://127.0.0.1:9/mcp";

#[test]
fn nothing_that_listens_is_an_error_for_each_request() {
    let mut host = Host::before(DEAD);
    host.ask(0, "initialize", json!({}));
    assert!(host.error(0).starts_with("stretto-proxy: "));
    host.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    host.send(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":"1","method":"ping"}]"#);
    let mut batch = [host.message(), host.message()];
    batch.sort_by_key(|message| message["id"].is_string());
    assert_eq!([&batch[0]["id"], &batch[1]["id"]], [&json!(1), &json!("1")]);
    host.send("not a message");
    host.send(r#"{"jsonrpc":"2.0","id":5,"result":{}}"#);
    host.ask(6, "ping", json!({}));
    assert!(host.error(6).contains("could not be reached"));
    let left = host.finish();
    assert_eq!(left.status.code(), Some(0));
    assert_eq!(left.lines, [""; 0]);
    assert!(
        left.stderr.contains("could not be reached"),
        "{}",
        left.stderr
    );
    assert_eq!(
        left.count("server"),
        4,
        "errors are recorded as the server's"
    );
}

/// One call of a server that answers it so, and what the host gets.
fn after(
    answer: impl Fn(&crate::bare::Request, &mut crate::bare::Out) -> std::io::Result<()>
    + Send
    + Sync
    + 'static,
) -> (Vec<Value>, String) {
    let server = Bare::with_sessions(answer);
    let mut host = Host::before(&server.url);
    host.open();
    host.ask("a", "tools/call", json!({"name": "t"}));
    let left = host.finish();
    assert_eq!(left.status.code(), Some(0));
    let lines = left
        .lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or(Value::String(line.clone())));
    (lines.collect(), left.stderr)
}

fn refused(status: &'static str, body: &'static str) -> Value {
    let (lines, _) =
        after(move |_, out| out.send(status, "Content-Type: application/json\r\n", body));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["id"], "a");
    lines[0]["error"].clone()
}

#[test]
fn a_refusal_becomes_an_error_with_the_hosts_id() {
    let error = refused("500 Internal Server Error", "<html>");
    assert_eq!(error["code"], -32000);
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|message| message.contains("HTTP 500 Internal Server Error"))
    );
    let error = refused(
        "400 Bad Request",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no","data":[1.0]}}"#,
    );
    assert_eq!(
        (&error["code"], &error["data"]),
        (&json!(-32602), &json!([1.0]))
    );
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|message| message.ends_with("HTTP 400 Bad Request: no"))
    );
    let error = refused(
        "503 Service Unavailable",
        r#"{"error":{"code":-32022,"message":"no"},"id":9}"#,
    );
    assert_eq!(
        error["code"], -32000,
        "only under 400 and 404 is it the protocol's"
    );
    assert_eq!(refused("302 Found", "")["code"], -32000);
}

#[test]
fn a_refusal_that_is_the_answer_is_passed_on() {
    let error = refused(
        "400 Bad Request",
        "{\"jsonrpc\":\"2.0\",\n\"id\":\"a\",\"error\":{\"code\":-32022,\"message\":\"no\",\"data\":{}}}",
    );
    assert_eq!(error, json!({"code": -32022, "message": "no", "data": {}}));
}

#[test]
fn a_session_that_is_gone_stays_gone() {
    let demo = Demo::scripted(&json!({
        "script": 1,
        "tools": [{"name": "t", "inputSchema": {}}],
        "answers": [{"tool": "t", "nth": 2, "fault": {"end_session": true}}, {"tool": "t", "text": "fine"}],
    }));
    let mut host = Host::before(&demo.url);
    host.open();
    host.call(1, "t", json!({}));
    assert_eq!(host.answer(1)["result"]["content"][0]["text"], "fine");
    for id in 2..=4 {
        host.call(id, "t", json!({}));
        assert!(host.error(id).contains("has ended the session"));
    }
    let left = host.finish();
    assert_eq!(left.status.code(), Some(0));
    assert!(left.stderr.contains("has ended the session"));
}

#[test]
fn a_404_about_the_session_says_so_whatever_its_body_says() {
    let error = refused(
        "404 Not Found",
        r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32001,"message":"Session not found"}}"#,
    );
    let message = error["message"].as_str().expect("text");
    assert!(
        message.contains("has ended the session") && message.ends_with("Session not found"),
        "{message}"
    );
}

#[test]
fn a_body_that_breaks_off_is_an_error_and_nothing_of_it_arrives() {
    for framing in ["Content-Length: 100\r\n", "Transfer-Encoding: chunked\r\n"] {
        let (lines, stderr) = after(move |_, out| {
            out.raw(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{framing}\r\n6\r\n{{\"id\":"
            ))?;
            out.hang_up()
        });
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0]["error"]["message"]
                .as_str()
                .is_some_and(|message| message.contains("was cut off"))
        );
        assert!(stderr.contains("was cut off"));
    }
}

#[test]
fn a_connection_that_closes_without_an_answer_is_an_error() {
    let (lines, _) = after(|_, out| out.hang_up());
    assert!(
        lines[0]["error"]["message"]
            .as_str()
            .is_some_and(|message| message.contains("could not be reached"))
    );
}

#[test]
fn an_answer_without_an_answer_is_an_error() {
    for (status, body, before) in [
        ("202 Accepted", "", 0),
        ("200 OK", "", 0),
        ("204 No Content", "", 0),
        ("200 OK", " \r\n", 0),
        ("200 OK", "null", 0),
        ("200 OK", "\"OK\"", 0),
        ("200 OK", "{\"ok\":true}", 0),
        ("200 OK", "<html>\nhello", 1),
        (
            "200 OK",
            r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
            1,
        ),
        ("200 OK", r#"{"jsonrpc":"2.0","id":"b","result":{}}"#, 0),
    ] {
        let (lines, _) = after(move |_, out| out.send(status, "", body));
        assert_eq!(lines.len(), before + 1, "{status} {body}: {lines:?}");
        let error = lines.last().expect("one");
        assert_eq!(error["id"], "a");
        assert!(
            error["error"]["message"]
                .as_str()
                .is_some_and(|message| message.contains("gave no answer")),
            "{error}"
        );
    }
}

#[test]
fn an_error_without_an_id_is_for_the_request_that_it_answers() {
    let (lines, _) = after(|_, out| {
        out.send(
            "200 OK",
            "Content-Type: application/json\r\n",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#,
        )
    });
    assert_eq!(lines.len(), 1);
    assert_eq!(
        (&lines[0]["id"], &lines[0]["error"]["code"]),
        (&json!("a"), &json!(-32600))
    );
}

#[test]
fn what_answers_a_notification_is_for_nobody() {
    let server = Bare::with_sessions(|request, out| match request.what().as_str() {
        "ping" => out.json(&result(request, &json!({}))),
        _ => out.send("200 OK", "Content-Type: application/json\r\n", "null"),
    });
    let mut host = Host::before(&server.url);
    host.open();
    host.send(r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#);
    host.send(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
    host.ask(1, "ping", json!({}));
    host.answer(1);
    assert_eq!(host.finish().lines, [""; 0]);
}

#[test]
fn what_answers_a_line_that_is_no_message_is_for_stderr() {
    let server = Bare::with_sessions(|request, out| match request.what().as_str() {
        "ping" => out.json(&result(request, &json!({}))),
        _ => out.json(
            &json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "what?"}}),
        ),
    });
    let mut host = Host::before(&server.url);
    host.open();
    host.send("hello {");
    server.wait_for(|request| request.body == "hello {");
    host.is_told("a line that is no message: the server answered HTTP 200 OK: what?");
    host.ask(1, "ping", json!({}));
    host.answer(1);
    // An array is a batch, whatever is in it, and a batch is told what comes of it.
    host.send("[1]");
    assert_eq!(host.message()["error"]["code"], -32700);
    assert_eq!(host.finish().lines, [""; 0]);
}

#[test]
fn a_body_over_several_lines_arrives_as_one_with_its_spelling() {
    let (lines, _) = after(|_, out| {
        out.send("200 OK", "Content-Type: application/json\r\n", "{\r\n  \"id\": \"a\",\r\n  \"result\": {\"n\": 1.0, \"big\": 12345678901234567890123, \"n\": 2e0}\r\n}\r\n")
    });
    assert_eq!(lines.len(), 1);
    let server = Bare::with_sessions(|_, out| {
        out.send(
            "200 OK",
            "",
            "{\n\"id\":1,\n\"result\":{\"n\":1.0,\"n\":2e0}}\n",
        )
    });
    let mut host = Host::before(&server.url);
    host.open();
    host.ask(1, "x", json!({}));
    assert_eq!(host.line(), r#"{ "id":1, "result":{"n":1.0,"n":2e0}}"#);
}

#[test]
fn a_batch_gets_an_answer_to_each_of_its_requests() {
    let server = Bare::with_sessions(|_, out| {
        out.send("200 OK", "", r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#)
    });
    let mut host = Host::before(&server.url);
    host.open();
    host.send(r#"[{"id":1,"method":"a"},{"id":2,"method":"b"}]"#);
    assert_eq!(host.line(), r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#);
    assert!(host.error(2).contains("gave no answer"));
}

#[test]
fn a_redirect_is_followed_within_the_origin_only_and_only_if_it_repeats_the_request() {
    let other = Bare::start(|_, out| out.send("200 OK", "", r#"{"id":1,"result":{}}"#));
    let elsewhere = other.url.clone();
    let server = Bare::with_sessions(move |request, out| {
        let to = |out: &mut crate::bare::Out, status: &str, to: &str| {
            out.send(status, &format!("Location: {to}\r\n"), "")
        };
        match request.json()["method"].as_str().unwrap_or_default() {
            _ if request.target == "/moved" => out.json(&result(request, &json!({}))),
            "here" => to(out, "307 Temporary Redirect", "/moved"),
            "there" => to(out, "308 Permanent Redirect", &elsewhere),
            "get" => to(out, "303 See Other", "/moved"),
            _ => to(out, "307 Temporary Redirect", "/mcp"),
        }
    });
    let mut host = Host::start(
        &[
            "--upstream",
            &server.url,
            "--upstream-header",
            "X-Key=TEST_KEY",
        ],
        &[("TEST_KEY", "k")],
    );
    host.open();
    host.ask(1, "here", json!({}));
    assert_eq!(host.answer(1)["result"], json!({}));
    for (id, method, status) in [
        (2, "there", "HTTP 308"),
        (3, "get", "HTTP 303"),
        (4, "round and round", "HTTP 307"),
    ] {
        host.ask(id, method, json!({}));
        assert!(host.error(id).contains(status));
    }
    host.finish();
    let moved: Vec<_> = server
        .seen()
        .into_iter()
        .filter(|request| request.target == "/moved")
        .collect();
    assert_eq!(moved.len(), 1);
    assert_eq!(
        (moved[0].header("x-key").as_str(), moved[0].method.as_str()),
        ("k", "POST")
    );
    assert_eq!(
        server
            .seen()
            .iter()
            .filter(|request| request.what() == "round and round")
            .count(),
        6
    );
    assert!(other.seen().is_empty(), "headers never leave the origin");
}
