//! The newest revision, on stdio and over HTTP.

use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::{Value, json};

use crate::answers;
use crate::http::{Answer, POST, Served};
use crate::script::Files;

const VERSION: &str = "2026-07-28";

fn request(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    json!({"id": id, "method": method, "params": params})
}

fn lines(messages: &[Value]) -> String {
    messages
        .iter()
        .flat_map(|message| {
            [
                message.to_string(),
                "
"
                .into(),
            ]
        })
        .collect()
}

pub(crate) fn a_modern_server_answers_each_request_by_itself() {
    let input = lines(&[
        request(1, "server/discover", json!({})),
        request(2, "tools/list", json!({})),
        request(
            3,
            "tools/call",
            json!({"name": "lookup", "arguments": {"text": "x"}}),
        ),
        request(4, "ping", json!({})),
        request(5, "tools/call", json!({"name": "nobody"})),
    ]);
    let answers = answers(&["--era", "modern"], &input);
    let discovered = &answers[0]["result"];
    assert_eq!(discovered["supportedVersions"], json!([VERSION]));
    assert_eq!(discovered["resultType"], "complete");
    assert!(
        discovered["ttlMs"].is_u64()
            && discovered["cacheScope"] == "public"
            && discovered["instructions"].is_string()
    );
    assert_eq!(
        discovered["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "stretto-mcp-demo"
    );
    let listed = &answers[1]["result"];
    assert!(
        listed["ttlMs"].is_u64()
            && listed["cacheScope"] == "public"
            && listed["resultType"] == "complete"
    );
    assert_eq!(
        listed["tools"][0]["inputSchema"]["properties"]["text"]["x-mcp-header"],
        "Text"
    );
    assert_eq!(answers[2]["result"]["resultType"], "complete");
    assert_eq!(answers[3]["error"]["code"], -32601);
    assert_eq!(answers[4]["error"]["code"], -32602);
}

pub(crate) fn a_modern_server_refuses_what_is_not() {
    let mut other = request(3, "tools/list", json!({}));
    other["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let input = lines(&[
        json!({"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}),
        json!({"id": 2, "method": "tools/list"}),
        other,
    ]);
    let answers = answers(&["--era", "modern"], &input);
    assert_eq!(answers[0]["error"]["code"], -32022);
    assert_eq!(
        answers[0]["error"]["data"],
        json!({"supported": [VERSION], "requested": "2025-06-18"})
    );
    assert_eq!(answers[1]["error"]["code"], -32602);
    assert_eq!(answers[2]["error"]["data"]["requested"], "2099-01-01");
}

pub(crate) fn a_dual_server_serves_both_by_the_line() {
    let input = lines(&[
        json!({"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}),
        json!({"id": 2, "method": "tools/list"}),
        request(3, "tools/list", json!({})),
        json!({"id": 4, "method": "server/discover"}),
        request(5, "server/discover", json!({})),
        json!({"id": 6, "method": "tools/call", "params": {"name": "ask"}}),
    ]);
    let answers = answers(&["--era", "dual"], &input);
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(answers[1]["result"]["tools"].as_array().unwrap().len(), 2);
    assert!(answers[1]["result"].get("resultType").is_none());
    assert_eq!(answers[2]["result"]["tools"].as_array().unwrap().len(), 3);
    assert_eq!(answers[3]["error"]["code"], -32601);
    assert_eq!(answers[4]["result"]["resultType"], "complete");
    assert_eq!(answers[5]["error"]["code"], -32602);
}

pub(crate) fn a_legacy_server_knows_nothing_of_the_newest_revision() {
    let answers = answers(
        &[],
        &lines(&[
            request(1, "server/discover", json!({})),
            request(2, "tools/list", json!({})),
        ]),
    );
    assert_eq!(answers[0]["error"]["code"], -32601);
    assert!(answers[1]["result"].get("resultType").is_none());
}

pub(crate) fn ask_asks_back_once() {
    let retry = json!({"name": "ask", "requestState": "ask-1", "inputResponses": {"name": {"action": "accept", "content": {"name": "Ada"}}}});
    let input = lines(&[
        request(1, "tools/call", json!({"name": "ask"})),
        request(2, "tools/call", retry),
    ]);
    let answers = answers(&["--era", "modern"], &input);
    assert_eq!(answers[0]["result"]["resultType"], "input_required");
    assert_eq!(answers[0]["result"]["requestState"], "ask-1");
    assert_eq!(answers[1]["result"]["resultType"], "complete");
    assert_eq!(
        answers[1]["result"]["content"][0]["text"],
        "The name is Ada."
    );
}

/// A script whose tools change after the first call.
fn changing() -> Files {
    Files::of(
        &json!({"tools": [{"name": "a"}], "answers": [{"tool": "a", "text": "ok"}],
        "listings": {"v2": {"hide": ["a"]}}, "timeline": [{"after": "call:a", "relist": "v2"}]}),
    )
}

pub(crate) fn a_subscription_is_acknowledged_and_told_of_changes() {
    let files = changing();
    let mut options = files.options();
    options.extend(["--era".into(), "modern".into()]);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let listen = |id: u64, wish: &str| {
        request(
            id,
            "subscriptions/listen",
            json!({"notifications": {wish: true}}),
        )
    };
    let input = lines(&[
        listen(1, "toolsListChanged"),
        listen(2, "promptsListChanged"),
        listen(3, "toolsListChanged"),
        json!({"method": "notifications/cancelled", "params": {"requestId": 3}}),
        request(4, "tools/call", json!({"name": "a"})),
    ]);
    let told = answers(&options, &input);
    let key = "io.modelcontextprotocol/subscriptionId";
    assert_eq!(
        told[0]["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert_eq!(
        (
            &told[0]["params"]["_meta"][key],
            &told[0]["params"]["notifications"]
        ),
        (&json!(1), &json!({"toolsListChanged": true}))
    );
    assert_eq!(
        (
            &told[1]["params"]["_meta"][key],
            &told[1]["params"]["notifications"]
        ),
        (&json!(2), &json!({}))
    );
    assert_eq!(told[3]["id"], 4);
    assert_eq!(
        (&told[4]["method"], &told[4]["params"]["_meta"][key]),
        (&json!("notifications/tools/list_changed"), &json!(1))
    );
    assert_eq!(told.len(), 5);
}

fn headers(method: &str, name: &str, more: &str) -> String {
    let name = if name.is_empty() {
        String::new()
    } else {
        format!("Mcp-Name: {name}\r\n")
    };
    format!("MCP-Protocol-Version: {VERSION}\r\nMcp-Method: {method}\r\n{name}{more}")
}

fn call(served: &Served, more: &str, arguments: &Value) -> Answer {
    let message = request(
        3,
        "tools/call",
        json!({"name": "lookup", "arguments": arguments}),
    );
    served.post(&headers("tools/call", "lookup", more), &message)
}

pub(crate) fn over_http_the_headers_repeat_the_body() {
    let served = Served::with(&["--era", "modern", "--close"]);
    let list = request(1, "tools/list", json!({}));
    assert_eq!(
        served.post(&headers("tools/list", "", ""), &list).status,
        200
    );
    let refused = served.post("", &list);
    assert_eq!(
        (
            refused.status,
            refused.json()["error"]["code"].clone(),
            refused.json()["id"].clone()
        ),
        (400, json!(-32020), json!(1))
    );
    assert_eq!(call(&served, "", &json!({"text": "x"})).status, 400);
    let answer = call(&served, "Mcp-Param-Text: x\r\n", &json!({"text": "x"}));
    assert_eq!(
        (answer.status, answer.header("Content-Type")),
        (200, "text/event-stream")
    );
    assert_eq!(answer.events().len(), 1);
    assert_eq!(answer.header("Mcp-Session-Id"), "");
}

pub(crate) fn over_http_refusals_have_their_status() {
    let served = Served::with(&["--era", "modern", "--close"]);
    let initialize =
        json!({"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}});
    let refused = served.post("", &initialize);
    assert_eq!(
        (refused.status, refused.json()["error"]["code"].clone()),
        (400, json!(-32022))
    );
    let missing = served.post("", &json!({"id": 1, "method": "tools/list"}));
    assert_eq!(
        (missing.status, missing.json()["error"]["code"].clone()),
        (400, json!(-32602))
    );
    let unknown = served.post(&headers("ping", "", ""), &request(1, "ping", json!({})));
    assert_eq!(
        (unknown.status, unknown.json()["error"]["code"].clone()),
        (404, json!(-32601))
    );
    let no_tool = served.post(
        &headers("tools/call", "nobody", ""),
        &request(1, "tools/call", json!({"name": "nobody"})),
    );
    assert_eq!(
        (no_tool.status, no_tool.events()[0]["error"]["code"].clone()),
        (200, json!(-32602))
    );
    let mut unasked = request(1, "tools/call", json!({"name": "ask"}));
    unasked["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let refused = served.post(&headers("tools/call", "ask", ""), &unasked);
    assert_eq!(
        (refused.status, refused.json()["error"]["code"].clone()),
        (400, json!(-32021))
    );
    for method in ["GET", "DELETE"] {
        let answer = served.ask(method, "/mcp", "Accept: text/event-stream\r\n", "");
        assert_eq!((answer.status, answer.header("Allow")), (405, "POST"));
    }
}

pub(crate) fn over_http_log_messages_come_to_those_who_ask() {
    let served = Served::with(&["--era", "modern", "--close"]);
    let mut message = request(3, "tools/call", json!({"name": "update"}));
    message["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("info");
    let events = served
        .post(&headers("tools/call", "update", ""), &message)
        .events();
    assert_eq!(
        (events.len(), &events[0]["method"]),
        (2, &json!("notifications/message"))
    );
}

pub(crate) fn over_http_a_dual_server_serves_both_side_by_side() {
    let served = Served::with(&["--era", "dual", "--close"]);
    let session = served.session();
    assert_eq!(
        served
            .post(&session, &json!({"id": 1, "method": "ping"}))
            .status,
        200
    );
    assert_eq!(
        served
            .post(
                &headers("tools/list", "", ""),
                &request(1, "tools/list", json!({}))
            )
            .status,
        200
    );
    assert_eq!(
        served
            .post("", &json!({"id": 1, "method": "tools/list"}))
            .status,
        400
    );
}

pub(crate) fn over_http_a_subscription_is_a_stream() {
    let files = changing();
    let mut options = files.options();
    options.extend(["--era".into(), "modern".into()]);
    let served = Served::with(&options.iter().map(String::as_str).collect::<Vec<_>>());
    let body = request(
        7,
        "subscriptions/listen",
        json!({"notifications": {"toolsListChanged": true}}),
    )
    .to_string();
    let mut stream = served.connect();
    let headers_of = headers("subscriptions/listen", "", "");
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nContent-Length: {}\r\n{POST}{headers_of}\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("notifications/subscriptions/acknowledged")));
    served.post(
        &headers("tools/call", "a", ""),
        &request(8, "tools/call", json!({"name": "a"})),
    );
    let told = lines.find(|line| line.contains("list_changed")).unwrap();
    assert!(
        told.contains(r#""io.modelcontextprotocol/subscriptionId":7"#),
        "{told}"
    );
}
