//! Everything that a run left behind, before it is judged or shown.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::Value;

use crate::message::Message;
use crate::model::Asked;
use crate::process::Ending;
use crate::scenario::Transport;

/// What happened in one run.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) transport: Transport,
    /// Every line that the host sent, with its line end, in order.
    pub(crate) sent: Vec<Vec<u8>>,
    /// When each of them was sent, on a clock that only the host's thinking moves.
    pub(crate) sent_at: Vec<Duration>,
    /// Every line that came from the proxy's stdout, in order.
    pub(crate) heard: Vec<Message>,
    /// The host's view: what it did and what it was shown, in the order of its steps.
    pub(crate) view: Vec<Seen>,
    /// What reached the demo server, as it says; nothing when the server tells nothing.
    pub(crate) server: Option<ServerRecord>,
    /// What the proxy asked the model.
    pub(crate) asked: Vec<Asked>,
    /// Session logs and the logs beside them, by their path below the run's folder.
    pub(crate) logs: BTreeMap<String, String>,
    /// What is in `$DIR` at the end, by path; folders end in `/`.
    pub(crate) files: Vec<String>,
    pub(crate) stderr: String,
    pub(crate) ending: Option<Ending>,
    /// Commands of processes that were still there when the proxy had gone.
    pub(crate) left_running: Vec<String>,
    /// Whether the host closed the proxy's stdout, or did not read it to the end.
    pub(crate) is_deaf: bool,
    /// Canaries that were found where none may be: which, and where.
    pub(crate) leaks: Vec<String>,
    /// Values that differ from run to run, longest first, and the names they get.
    pub(crate) names: Vec<(String, String)>,
    /// What was put into `$DIR` before the start.
    pub(crate) given_files: Vec<String>,
    /// Paths below `$DIR` that the proxy's options name, so that they may be there at the end.
    pub(crate) named_files: Vec<PathBuf>,
}

impl Record {
    /// The session logs among the logs.
    pub(crate) fn session_logs(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_session = |text: &str| text.starts_with("{\"stretto_mcp_log\":");
        self.logs
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .filter(move |(_, text)| is_session(text))
    }
}

/// One thing in the host's view.
#[derive(Debug)]
pub(crate) enum Seen {
    /// The host sent this line.
    Sent(Vec<u8>),
    /// The line of [`Record::heard`] with this index.
    Heard(usize),
    /// The host did something else.
    Did(String),
}

/// What the demo server's transcript says.
#[derive(Debug, Default)]
pub(crate) struct ServerRecord {
    /// What was received, in order.
    pub(crate) received: Vec<Received>,
    /// Faults of the script that came to pass.
    pub(crate) fired: Vec<String>,
    /// Faults of the script that never did; nothing when the server was killed before it could say so.
    pub(crate) unfired: Option<Vec<String>>,
    /// Lines of the transcript that could not be read.
    pub(crate) unread: Vec<String>,
}

/// A line or an HTTP request that the server received.
#[derive(Debug)]
pub(crate) enum Received {
    /// With its line end, if it came with one.
    Line(Vec<u8>),
    Http(HttpRequest),
}

/// An HTTP request that the server received.
#[derive(Clone, Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    /// The message in it, if it is one.
    pub(crate) fn message(&self) -> Message {
        match self {
            Self::Line(line) => Message::of(line.clone()),
            Self::Http(request) => Message::of(request.body.clone()),
        }
    }
}

/// A line of the transcript; unknown members are additions.
#[derive(Deserialize)]
struct TranscriptLine {
    line: Option<String>,
    base64: Option<String>,
    /// Whether the line came without its line end.
    #[serde(default)]
    unended: bool,
    http: Option<TranscriptHttp>,
    fired: Option<String>,
    unfired: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct TranscriptHttp {
    method: String,
    #[serde(default)]
    headers: Value,
    body: Option<String>,
    base64: Option<String>,
}

impl ServerRecord {
    /// Reads the transcript that the demo server wrote.
    pub(crate) fn read(text: &str) -> Self {
        let mut record = Self::default();
        for line in text.lines() {
            let Ok(entry) = serde_json::from_str::<TranscriptLine>(line) else {
                record.unread.push(line.to_owned());
                continue;
            };
            if let Some(http) = entry.http {
                let body = bytes_of(http.body, http.base64.as_deref());
                let request = HttpRequest {
                    method: http.method,
                    headers: headers_of(&http.headers),
                    body,
                };
                record.received.push(Received::Http(request));
            } else if entry.line.is_some() || entry.base64.is_some() {
                let mut bytes = bytes_of(entry.line, entry.base64.as_deref());
                if !entry.unended {
                    bytes.push(b'\n');
                }
                record.received.push(Received::Line(bytes));
            } else if let Some(unfired) = entry.unfired {
                record.unfired = Some(unfired);
            } else if let Some(fired) = entry.fired {
                record.fired.push(fired);
            } else {
                record.unread.push(line.to_owned());
            }
        }
        record
    }

    /// How often a call of this tool, a message of this method, or an HTTP request of this kind has arrived.
    pub(crate) fn count(&self, what: &str) -> u64 {
        let fits = |received: &&Received| {
            let message = received.message();
            let method = message
                .member("method")
                .and_then(Value::as_str)
                .map(str::to_owned);
            let tool = message
                .member("params")
                .and_then(|params| params.get("name"))
                .and_then(Value::as_str);
            let is_http = matches!(received, Received::Http(request) if request.method == what);
            is_http
                || method.as_deref() == Some(what)
                || (method.as_deref() == Some("tools/call") && tool == Some(what))
        };
        self.received.iter().filter(fits).count() as u64
    }
}

fn bytes_of(text: Option<String>, base64: Option<&str>) -> Vec<u8> {
    match (text, base64) {
        (Some(text), _) => text.into_bytes(),
        (None, Some(digits)) => BASE64_STANDARD.decode(digits).unwrap_or_default(),
        (None, None) => Vec::new(),
    }
}

/// Headers by their names in small letters; one that came several times as the list of its values.
fn headers_of(value: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.to_lowercase(), text(value)))
            .collect(),
        _ => BTreeMap::new(),
    }
}
