//! The server over HTTP: every check, every answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::demo;
use crate::script::Files;

/// A server of a test's own, ended with the test.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) address: String,
}

/// An answer, with its body put together.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// The headers of a client that does all right, but for the session's.
pub(crate) const POST: &str =
    "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n";
pub(crate) const GET: &str = "Accept: text/event-stream\r\n";

impl Served {
    /// A server that plays a script.
    pub(crate) fn script(files: &Files) -> Self {
        let options = files.options();
        Self::with(&options.iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub(crate) fn with(options: &[&str]) -> Self {
        let mut all = vec!["--http", "127.0.0.1:0"];
        all.extend(options);
        let mut child = demo(&all)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .strip_prefix("http://")
            .and_then(|rest| rest.strip_suffix("/mcp"))
            .unwrap()
            .to_owned();
        Self { child, address }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    }

    /// What comes back for a request, up to the end of its connection.
    pub(crate) fn bytes(&self, method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
        let mut stream = self.connect();
        let length = body.len();
        write!(stream, "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}").unwrap();
        let mut bytes = Vec::new();
        // A connection that is reset has ended too; one that stays open has not.
        if let Err(error) = stream.read_to_end(&mut bytes) {
            assert_ne!(
                error.kind(),
                std::io::ErrorKind::WouldBlock,
                "no end of {bytes:?}"
            );
        }
        bytes
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        Answer::of(&self.bytes(method, path, headers, body))
    }

    /// Posts a message as a client that has a session, if a session is given.
    pub(crate) fn post(&self, session: &str, message: &Value) -> Answer {
        self.ask(
            "POST",
            "/mcp",
            &format!("{POST}{session}"),
            &message.to_string(),
        )
    }

    /// The headers of a new session.
    pub(crate) fn session(&self) -> String {
        let answer = self.post(
            "",
            &json!({"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}),
        );
        format!(
            "Mcp-Session-Id: {}\r\nMCP-Protocol-Version: 2025-06-18\r\n",
            answer.header("Mcp-Session-Id")
        )
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Answer {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or(0);
        Self {
            status,
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let wanted = format!("{}: ", name.to_ascii_lowercase());
        let line = self
            .head
            .lines()
            .find(|line| line.to_ascii_lowercase().starts_with(&wanted));
        line.and_then(|line| line.split_once(": "))
            .map(|(_, value)| value)
            .unwrap_or_default()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The data of each event.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }
}

fn call(id: u64, arguments: &Value) -> Value {
    json!({"id": id, "method": "tools/call", "params": {"name": "lookup", "arguments": arguments}})
}

pub(crate) fn the_path_is_checked_first() {
    let served = Served::with(&["--require-auth", "Bearer x"]);
    let answer = served.ask("POST", "/", "", "");
    assert_eq!((answer.status, answer.body.as_str()), (404, ""));
    assert_eq!(served.ask("PUT", "/mcp/", "", "").status, 404);
}

pub(crate) fn the_authorization_is_checked_before_the_method() {
    let served = Served::with(&["--require-auth", "Bearer x"]);
    assert_eq!(served.ask("PUT", "/mcp", "", "").status, 401);
    assert_eq!(
        served
            .ask("PUT", "/mcp", "Authorization: bearer x\r\n", "")
            .status,
        401
    );
    assert_eq!(
        served
            .ask("PUT", "/mcp", "authorization: Bearer x\r\n", "")
            .status,
        405
    );
}

pub(crate) fn other_methods_are_told_which_there_are() {
    let answer = Served::with(&[]).ask("PUT", "/mcp?x=1", "", "");
    assert_eq!(
        (answer.status, answer.header("Allow")),
        (405, "GET, POST, DELETE")
    );
}

pub(crate) fn a_client_must_accept_what_may_come() {
    let served = Served::with(&[]);
    for accept in [
        "",
        "Accept: */*\r\n",
        "Accept: application/json\r\n",
        "Accept: text/event-stream\r\n",
    ] {
        assert_eq!(
            served.ask("POST", "/mcp", accept, "{}").status,
            406,
            "{accept}"
        );
    }
    assert_eq!(
        served
            .ask(
                "POST",
                "/mcp",
                "Accept: Application/JSON;q=1\r\nAccept: text/event-stream\r\n",
                "{}"
            )
            .status,
        400
    );
    assert_eq!(
        served
            .ask("GET", "/mcp", "Accept: application/json\r\n", "")
            .status,
        406
    );
}

pub(crate) fn initialize_begins_a_session_and_needs_an_id() {
    let served = Served::with(&[]);
    assert_eq!(
        served.post("", &json!({"method": "initialize"})).status,
        400
    );
    for k in 1..3 {
        let answer = served.post(
            "Mcp-Session-Id: gone\r\n",
            &json!({"id": 1, "method": "initialize"}),
        );
        assert_eq!(
            (answer.status, answer.header("Content-Type")),
            (200, "application/json")
        );
        assert_eq!(answer.header("Mcp-Session-Id"), format!("demo-session-{k}"));
        assert_eq!(answer.json()["result"]["protocolVersion"], "2025-06-18");
    }
}

pub(crate) fn session_and_version_are_needed_afterwards() {
    let served = Served::with(&[]);
    let initialize =
        json!({"id": 1, "method": "initialize", "params": {"protocolVersion": "2024-11-05"}});
    let id = served
        .post("", &initialize)
        .header("Mcp-Session-Id")
        .to_owned();
    let ping = json!({"id": 2, "method": "ping"});
    assert_eq!(served.post("", &ping).status, 400);
    assert_eq!(served.post("Mcp-Session-Id: other\r\n", &ping).status, 404);
    assert_eq!(
        served
            .post(&format!("Mcp-Session-Id: {id}\r\n"), &ping)
            .status,
        400
    );
    assert_eq!(
        served
            .post(
                &format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-06-18\r\n"),
                &ping
            )
            .status,
        400
    );
    let answer = served.post(
        &format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2024-11-05\r\n"),
        &ping,
    );
    assert_eq!(
        (answer.status, answer.json()["id"].clone()),
        (200, json!(2))
    );
}

pub(crate) fn what_needs_no_answer_is_accepted() {
    let served = Served::with(&[]);
    let session = served.session();
    for message in [
        json!({"method": "notifications/initialized"}),
        json!({"id": 1, "result": {}}),
        json!({}),
    ] {
        let answer = served.post(&session, &message);
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (202, ""),
            "{message}"
        );
    }
    assert_eq!(
        served
            .ask("POST", "/mcp", &format!("{POST}{session}"), "  ")
            .status,
        202
    );
}

pub(crate) fn errors_of_the_protocol_are_answers_like_others() {
    let served = Served::with(&[]);
    let session = served.session();
    let answer = served.ask("POST", "/mcp", &format!("{POST}{session}"), "nonsense");
    assert_eq!(
        (answer.status, answer.json()["error"]["code"].clone()),
        (200, json!(-32700))
    );
    assert_eq!(
        served.post(&session, &json!([])).json()["error"]["code"],
        -32600
    );
    assert_eq!(
        served
            .post(&session, &json!({"id": 1, "method": "x"}))
            .json()["error"]["code"],
        -32601
    );
}

pub(crate) fn a_call_is_answered_on_an_event_stream() {
    let served = Served::with(&["--close"]);
    let session = served.session();
    let answer = served.post(&session, &call(3, &json!({"text": "a"})));
    assert_eq!(
        (answer.status, answer.header("Content-Type")),
        (200, "text/event-stream")
    );
    let events = answer.events();
    assert_eq!(events[0]["method"], "notifications/message");
    assert_eq!(
        events[0]["params"],
        json!({"level": "info", "data": "calling lookup"})
    );
    assert_eq!(events[1]["id"], 3);
    assert_eq!(events.len(), 2);
    assert!(
        answer.body.starts_with("event: message\ndata: {") && answer.body.ends_with("}\n\n"),
        "{answer:?}"
    );
    assert_eq!(
        served
            .post(&session, &json!({"id": 4, "method": "tools/call"}))
            .events()[1]["error"]["code"],
        -32602
    );
}

pub(crate) fn the_notification_comes_before_the_call_takes_its_time() {
    let served = Served::with(&["--close"]);
    let session = served.session();
    let body = call(3, &json!({"delay_ms": 10_000})).to_string();
    let mut stream = served.connect();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nContent-Length: {}\r\n{POST}{session}\r\n{body}",
        body.len()
    )
    .unwrap();
    let lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.take(12).any(|line| line.contains("calling lookup")));
}

pub(crate) fn a_slow_call_does_not_hold_up_another() {
    let served = Served::with(&[]);
    let session = served.session();
    let (tell, told) = mpsc::channel();
    thread::scope(|threads| {
        let slow = threads.spawn(|| {
            let mut stream = served.connect();
            let body = call(1, &json!({"delay_ms": 10_000})).to_string();
            write!(
                stream,
                "POST /mcp HTTP/1.1\r\nContent-Length: {}\r\n{POST}{session}\r\n{body}",
                body.len()
            )
            .unwrap();
            assert!(
                BufReader::new(stream)
                    .lines()
                    .map(Result::unwrap)
                    .any(|line| line.contains("calling lookup"))
            );
            tell.send(()).unwrap();
            // Closing here gives the call up; its thread in the server waits alone.
        });
        told.recv().unwrap();
        assert_eq!(served.post(&session, &call(2, &json!({}))).status, 200);
        slow.join().unwrap();
    });
}

pub(crate) fn a_connection_carries_several_requests_unless_it_is_told_not_to() {
    for (options, expected) in [(&[][..], 2), (&["--close"], 1)] {
        let served = Served::with(options);
        let mut stream = served.connect();
        let body = json!({"id": 1, "method": "initialize"}).to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nContent-Length: {}\r\n{POST}\r\n{body}",
            body.len()
        );
        stream
            .write_all(format!("{request}{request}").as_bytes())
            .unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut bytes = Vec::new();
        drop(stream.read_to_end(&mut bytes));
        assert_eq!(
            String::from_utf8(bytes)
                .unwrap()
                .matches("HTTP/1.1 200 OK")
                .count(),
            expected,
            "{options:?}"
        );
    }
}

pub(crate) fn the_sessions_own_stream_ends_with_the_session() {
    let served = Served::with(&["--close"]);
    assert_eq!(served.ask("GET", "/mcp", GET, "").status, 404);
    assert_eq!(
        served
            .ask("GET", "/mcp", &format!("{GET}Mcp-Session-Id: x\r\n"), "")
            .status,
        404
    );
    let session = served.session();
    let id = session.lines().next().unwrap();
    let mut stream = served.connect();
    write!(stream, "GET /mcp HTTP/1.1\r\n{GET}{id}\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("hello from the server's own stream")));
    assert_eq!(served.ask("DELETE", "/mcp", &session, "").status, 200);
    assert_eq!(lines.next().as_deref(), Some(""));
    assert_eq!(lines.next(), None);
    assert_eq!(
        served
            .post(&session, &json!({"id": 2, "method": "ping"}))
            .status,
        404
    );
}

pub(crate) fn a_delete_of_nothing_is_fine() {
    let served = Served::with(&[]);
    assert_eq!(served.ask("DELETE", "/mcp", "", "").status, 200);
    assert_eq!(
        served
            .ask("DELETE", "/mcp", "Mcp-Session-Id: x\r\n", "")
            .status,
        200
    );
}

pub(crate) fn a_body_in_chunks_is_refused() {
    let served = Served::with(&[]);
    let mut stream = served.connect();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n{POST}\r\n2\r\n{{}}\r\n0\r\n\r\n"
    )
    .unwrap();
    let mut bytes = Vec::new();
    drop(stream.read_to_end(&mut bytes));
    assert_eq!(Answer::of(&bytes).status, 411);
}

pub(crate) fn large_bodies_come_back_whole() {
    let served = Served::with(&["--close"]);
    let session = served.session();
    let text = "x".repeat(8 * 1024 * 1024);
    let events = served
        .post(&session, &call(1, &json!({"text": text})))
        .events();
    assert_eq!(
        events[1]["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .len(),
        text.len() + r#"{"text":""}"#.len()
    );
}
