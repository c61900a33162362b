//! A recording: what a server was asked in recorded sessions, and what it said.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use stretto_trace::mcp::{Body, Entry, Log, Who};

/// What recorded sessions hold of their server, in order.
#[derive(Debug, Default)]
pub(super) struct Recording {
    /// What the server said before it was asked anything.
    pub(super) at_first: Vec<Said>,
    /// What it was asked.
    pub(super) asked: Vec<Asked>,
    /// What else it was sent: notifications, and answers to its own requests.
    pub(super) heard: Vec<Heard>,
}

/// A recorded request.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) key: Key,
    pub(super) id: Value,
    /// The progress token that it carried.
    pub(super) token: Option<Value>,
    at_ms: u64,
    /// What the server said meanwhile.
    pub(super) before: Vec<Said>,
    pub(super) answer: Answer,
    /// What the server said next.
    pub(super) after: Vec<Said>,
}

/// What became of a recorded request.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// The server answered, so many milliseconds after it was last heard of.
    Given { wait_ms: u64, message: Value },
    /// The server never answered.
    Never,
    /// The proxy answered, and the server was not asked.
    ByTheProxy,
}

/// Something else that the server was sent.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) key: Key,
    /// What the server said next.
    pub(super) after: Vec<Said>,
}

/// Something that a server said by itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Said {
    /// How long after what came before it.
    pub(super) wait_ms: u64,
    pub(super) body: Body,
}

/// What makes two messages the same: the method and the params, less what differs each time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) method: String,
    /// The params as JSON with their members in order.
    params: String,
}

impl Key {
    pub(super) fn of(method: &str, params: &Value) -> Self {
        Self {
            method: method.to_owned(),
            params: Value::Object(less_what_differs(params)).to_string(),
        }
    }

    /// The key of an answer to a request of the server's.
    pub(super) fn of_response(id: &Value) -> Self {
        Self {
            method: String::new(),
            params: id.to_string(),
        }
    }

    /// The params, less what differs each time.
    pub(super) fn params(&self) -> Value {
        serde_json::from_str(&self.params).unwrap_or_default()
    }
}

/// A message's params without `_meta`, which also holds the progress token, and without the id of
/// another message.
fn less_what_differs(params: &Value) -> Map<String, Value> {
    let mut params = params.as_object().cloned().unwrap_or_default();
    params.remove("_meta");
    params.remove("requestId");
    params
}

/// After what the server says something.
#[derive(Clone, Copy)]
enum Place {
    AtFirst,
    Asked(usize),
    Answered(usize),
    Heard(usize),
}

/// What is known while a log is read.
struct Reading<'a> {
    recording: &'a mut Recording,
    /// The requests that wait for an answer, by id.
    open: Vec<(Value, usize)>,
    place: Place,
    /// When the last thing happened at the place.
    last_ms: u64,
}

impl Recording {
    /// Adds a recorded session.
    pub(super) fn add(&mut self, log: &Log) {
        let mut reading = Reading {
            recording: self,
            open: Vec::new(),
            place: Place::AtFirst,
            last_ms: 0,
        };
        for entry in &log.entries {
            match (&entry.body, entry.from) {
                (Body::Raw(_), Who::Server) => reading.says(entry.t_ms, entry.body.clone()),
                (Body::Raw(_), _) | (_, Who::Context) => {}
                (Body::Message(_), from) => reading.messages(entry, from),
            }
        }
    }
}

impl Reading<'_> {
    fn messages(&mut self, entry: &Entry, from: Who) {
        for message in entry.messages() {
            let id = message.get("id").filter(|id| !id.is_null());
            let method = message.get("method").and_then(Value::as_str);
            match (from, id, method) {
                (Who::Server, Some(id), None) => self.server_answers(entry.t_ms, id, message),
                (Who::Server, ..) => self.says(entry.t_ms, Body::Message(message.clone())),
                (Who::Proxy, Some(id), None) => self.proxy_answers(id),
                (_, Some(id), Some(method)) => {
                    self.asks(entry.t_ms, id, method, &message["params"]);
                }
                (_, None, Some(method)) => {
                    self.hears(entry.t_ms, Key::of(method, &message["params"]));
                }
                (Who::Client, Some(id), None) => self.hears(entry.t_ms, Key::of_response(id)),
                _ => {}
            }
        }
    }

    fn asks(&mut self, at_ms: u64, id: &Value, method: &str, params: &Value) {
        let index = self.recording.asked.len();
        self.recording.asked.push(Asked {
            key: Key::of(method, params),
            id: id.clone(),
            token: params.pointer("/_meta/progressToken").cloned(),
            at_ms,
            before: Vec::new(),
            answer: Answer::Never,
            after: Vec::new(),
        });
        self.open.push((id.clone(), index));
        self.place = Place::Asked(index);
        self.last_ms = at_ms;
    }

    fn hears(&mut self, at_ms: u64, key: Key) {
        self.place = Place::Heard(self.recording.heard.len());
        self.last_ms = at_ms;
        self.recording.heard.push(Heard {
            key,
            after: Vec::new(),
        });
    }

    /// The request that a response is for. Of two with one id it is the later.
    fn close(&mut self, id: &Value) -> Option<usize> {
        let at = self.open.iter().rposition(|(open, _)| open == id)?;
        Some(self.open.remove(at).1)
    }

    fn server_answers(&mut self, at_ms: u64, id: &Value, message: &Value) {
        let Some(index) = self.close(id) else { return };
        let asked = &mut self.recording.asked[index];
        let said_ms: u64 = asked.before.iter().map(|said| said.wait_ms).sum();
        let wait_ms = at_ms.saturating_sub(asked.at_ms + said_ms);
        asked.answer = Answer::Given {
            wait_ms,
            message: message.clone(),
        };
        self.place = Place::Answered(index);
        self.last_ms = at_ms;
    }

    /// An answer of the proxy's to a request that the server has not answered: it was never asked.
    fn proxy_answers(&mut self, id: &Value) {
        if let Some(index) = self.close(id) {
            self.recording.asked[index].answer = Answer::ByTheProxy;
            if matches!(self.place, Place::Asked(asked) if asked == index) {
                self.place = Place::Answered(index);
            }
        }
    }

    fn says(&mut self, at_ms: u64, body: Body) {
        let token = match &body {
            Body::Message(message) => message.pointer("/params/progressToken"),
            Body::Raw(_) => None,
        };
        let of_token = token.and_then(|token| {
            self.open
                .iter()
                .map(|(_, index)| *index)
                .find(|index| self.recording.asked[*index].token.as_ref() == Some(token))
        });
        // Progress belongs to its request, wherever in the log it stands.
        if let Some(index) = of_token {
            let asked = &mut self.recording.asked[index];
            let said_ms: u64 = asked.before.iter().map(|said| said.wait_ms).sum();
            let wait_ms = at_ms.saturating_sub(asked.at_ms + said_ms);
            asked.before.push(Said { wait_ms, body });
            return;
        }
        let said = Said {
            wait_ms: at_ms.saturating_sub(self.last_ms),
            body,
        };
        self.last_ms = at_ms;
        match self.place {
            Place::AtFirst => self.recording.at_first.push(said),
            Place::Asked(index) => {
                let asked = &mut self.recording.asked[index];
                let said_ms: u64 = asked.before.iter().map(|said| said.wait_ms).sum();
                let wait_ms = at_ms.saturating_sub(asked.at_ms + said_ms);
                asked.before.push(Said { wait_ms, ..said });
            }
            Place::Answered(index) => self.recording.asked[index].after.push(said),
            Place::Heard(index) => self.recording.heard[index].after.push(said),
        }
    }
}

impl Asked {
    /// Whether the server was asked at all.
    pub(super) fn reached_the_server(&self) -> bool {
        self.answer != Answer::ByTheProxy
    }
}

/// Where the recorded messages of one kind stand, by what makes them the same.
pub(super) fn index(keys: impl Iterator<Item = (usize, Key)>) -> BTreeMap<Key, Vec<usize>> {
    let mut index: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
    for (at, key) in keys {
        index.entry(key).or_default().push(at);
    }
    index
}
