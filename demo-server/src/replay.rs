//! Replay: a server that answers as the servers of recorded sessions did.
//!
//! ```text
//!   logs ──► Recording: asked, heard, and what the server said at each place
//!                │
//!   request ──► its key (method and params, less `_meta` and ids) ──► the next equal one
//!                                                       └─ none: the nearest, and what differs
//! ```
//!
//! The host's requests and the proxy's own are both served, so a flow's lookups find their answers
//! again. Ids and progress tokens are the live ones. Messages that the recorded server sent by
//! itself come at their place: before the answer of the request that was under way, or after what
//! was last heard of the host.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use stretto_trace::mcp::{Body, LogError, is_side_log, read_log, session_logs};

use crate::protocol::{Call, RpcError};
use crate::server::Note;
use crate::voice::say;
use recording::{Answer, Asked, Key, Recording, Said};

mod nearest;
mod recording;

/// The code of the error that a request gets which is not in the recording.
const NOT_RECORDED: i64 = -32001;
/// How many of the recorded requests that were never made are named at the end.
const NAMED: usize = 3;

/// How much of the recorded time is taken again.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Pace {
    /// None: everything comes at once.
    #[default]
    None,
    /// Every wait, times this.
    Times(f64),
}

impl Pace {
    /// `none`, `recorded` or a factor.
    pub(crate) fn of(text: &str) -> Option<Self> {
        match text {
            "none" => Some(Self::None),
            "recorded" => Some(Self::Times(1.0)),
            factor => {
                let factor: f64 = factor.parse().ok()?;
                (0.0..=1000.0)
                    .contains(&factor)
                    .then_some(Self::Times(factor))
            }
        }
    }

    fn wait(self, ms: u64) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Times(factor) => Duration::from_millis(ms).mul_f64(factor),
        }
    }
}

/// What to replay, and how.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReplaySettings {
    /// The logs, in the order of their sessions, and folders of logs.
    pub(crate) logs: Vec<PathBuf>,
    /// Whether requests must come in the recorded order, and all of them.
    pub(crate) strict: bool,
    /// Whether equal requests begin anew when the recorded ones are used up.
    pub(crate) loops: bool,
    pub(crate) pace: Pace,
}

/// A server made of recorded sessions.
#[derive(Debug)]
pub(crate) struct Replay {
    settings: ReplaySettings,
    recording: Recording,
    asked: BTreeMap<Key, Vec<usize>>,
    heard: BTreeMap<Key, Vec<usize>>,
    progress: Mutex<Progress>,
}

/// How far a replay is.
#[derive(Debug, Default)]
struct Progress {
    /// How many of the equal ones have been used.
    used: BTreeMap<Key, usize>,
    /// Which recorded requests were made again.
    made: Vec<bool>,
    /// The recorded request that strict order is at.
    at: usize,
    /// The live ids of requests, by their recorded ids, for what names them later.
    ids: BTreeMap<String, Value>,
}

/// What a replayed server does about a request.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) notes: Vec<Note>,
    pub(crate) delay: Duration,
    /// None when the recorded server never answered.
    pub(crate) outcome: Option<Result<Value, RpcError>>,
    /// The recorded answer, whatever it holds, under the live id.
    pub(crate) text: Option<String>,
    pub(crate) trailing: Vec<Note>,
}

impl Replay {
    /// Reads the recorded sessions. What a flow or a judge wrote beside them is passed over, so
    /// that all files of a folder may be named.
    ///
    /// # Errors
    ///
    /// When a log cannot be read, or none is there.
    pub(crate) fn load(settings: ReplaySettings) -> Result<Self, LogError> {
        let mut logs = Vec::new();
        for path in &settings.logs {
            if path.is_dir() {
                logs.extend(session_logs(path)?);
            } else if is_side_log(path) {
                say(&format!(
                    "{} is no session log; passed over",
                    path.display()
                ));
            } else {
                logs.push(path.clone());
            }
        }
        if logs.is_empty() {
            return Err(LogError::Reading {
                path: settings.logs.into_iter().next().unwrap_or_default(),
                source: io::Error::new(io::ErrorKind::NotFound, "no session log is there"),
            });
        }
        let mut recording = Recording::default();
        for path in &logs {
            recording.add(&read_log(path)?);
        }
        Ok(Self::of(recording, settings))
    }

    fn of(recording: Recording, settings: ReplaySettings) -> Self {
        let reached = recording
            .asked
            .iter()
            .enumerate()
            .filter(|(_, asked)| asked.reached_the_server());
        let asked = recording::index(reached.map(|(at, asked)| (at, asked.key.clone())));
        let heard = recording::index(
            recording
                .heard
                .iter()
                .enumerate()
                .map(|(at, heard)| (at, heard.key.clone())),
        );
        let progress = Progress {
            made: vec![false; recording.asked.len()],
            ..Progress::default()
        };
        Self {
            settings,
            recording,
            asked,
            heard,
            progress: Mutex::new(progress),
        }
    }

    /// What the server said before it was asked anything.
    pub(crate) fn at_first(&self) -> Vec<Note> {
        self.notes(&self.recording.at_first, &Progress::default(), None)
    }

    /// What the recorded server did about a request.
    pub(crate) fn ask(&self, id: &Value, call: &Call) -> Served {
        let key = Key::of(&call.method, &call.params);
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let at = match self.find(&mut progress, &key) {
            Ok(at) => at,
            Err(error) => {
                return Served {
                    notes: Vec::new(),
                    delay: Duration::ZERO,
                    outcome: Some(Err(error)),
                    text: None,
                    trailing: Vec::new(),
                };
            }
        };
        progress.made[at] = true;
        let asked = &self.recording.asked[at];
        progress.ids.insert(asked.id.to_string(), id.clone());

        let tokens = asked
            .token
            .as_ref()
            .map(|recorded| (recorded, call.params.pointer("/_meta/progressToken")));
        let (delay, outcome, text) = match &asked.answer {
            Answer::Given { wait_ms, message } => {
                let mut message = message.clone();
                message["id"] = id.clone();
                let outcome = match message.get("error") {
                    Some(error) => Err(RpcError::new(
                        error["code"].as_i64().unwrap_or_default(),
                        "as recorded",
                    )),
                    None => Ok(message["result"].clone()),
                };
                (
                    self.settings.pace.wait(*wait_ms),
                    Some(outcome),
                    Some(message.to_string()),
                )
            }
            Answer::Never | Answer::ByTheProxy => (Duration::ZERO, None, None),
        };
        Served {
            notes: self.notes(&asked.before, &progress, tokens),
            delay,
            outcome,
            text,
            trailing: self.notes(&asked.after, &progress, None),
        }
    }

    /// What the recorded server said after a notification.
    pub(crate) fn hear(&self, call: &Call) -> Vec<Note> {
        self.heard(&Key::of(&call.method, &call.params))
    }

    /// What the recorded server said after an answer to a request of its own.
    pub(crate) fn hear_response(&self, id: &Value) -> Vec<Note> {
        self.heard(&Key::of_response(id))
    }

    fn heard(&self, key: &Key) -> Vec<Note> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(places) = self.heard.get(key) else {
            return Vec::new();
        };
        let used = progress.used.entry(key.clone()).or_default();
        let place = if self.settings.loops {
            places.get(*used % places.len())
        } else {
            places.get(*used)
        };
        *used += 1;
        place
            .map(|at| self.notes(&self.recording.heard[*at].after, &progress, None))
            .unwrap_or_default()
    }

    /// The place of the recorded request that answers this one.
    fn find(&self, progress: &mut Progress, key: &Key) -> Result<usize, RpcError> {
        if self.settings.strict {
            return self.find_in_order(progress, key);
        }
        let key = match self.asked.get(key) {
            Some(_) => key,
            // A handshake with another host is a handshake: what hosts say of themselves differs.
            None if key.method == "initialize" => self
                .asked
                .keys()
                .find(|known| known.method == key.method)
                .ok_or_else(|| self.unknown(key))?,
            None => return Err(self.unknown(key)),
        };
        let places = &self.asked[key];
        let used = progress.used.entry(key.clone()).or_default();
        let place = if self.settings.loops {
            places.get(*used % places.len())
        } else {
            places.get(*used)
        };
        match place {
            Some(at) => {
                *used += 1;
                Ok(*at)
            }
            None => Err(RpcError::new(
                NOT_RECORDED,
                format!(
                    "asked once more than the {} times in the recording: {}; --loop begins anew",
                    places.len(),
                    nearest::words(key)
                ),
            )),
        }
    }

    fn find_in_order(&self, progress: &mut Progress, key: &Key) -> Result<usize, RpcError> {
        let mut rest = self.recording.asked.iter().enumerate().skip(progress.at);
        let mut next = rest.find(|(_, asked)| asked.reached_the_server());
        if next.is_none() && self.settings.loops {
            next = self
                .recording
                .asked
                .iter()
                .enumerate()
                .find(|(_, asked)| asked.reached_the_server());
        }
        match next {
            Some((at, asked)) if asked.key == *key => {
                progress.at = at + 1;
                Ok(at)
            }
            _ if !self.asked.contains_key(key) => Err(self.unknown(key)),
            Some((_, asked)) => {
                let (said, due) = (nearest::words(key), nearest::words(&asked.key));
                Err(RpcError::new(
                    NOT_RECORDED,
                    format!("out of order: asked {said}, and recorded next is {due}"),
                ))
            }
            None => Err(RpcError::new(
                NOT_RECORDED,
                format!("after the end of the recording: {}", nearest::words(key)),
            )),
        }
    }

    /// The error that a request gets which nobody recorded.
    fn unknown(&self, key: &Key) -> RpcError {
        let of_method = |asked: &&Asked| asked.key.method == key.method;
        let refused = self
            .recording
            .asked
            .iter()
            .find(|asked| !asked.reached_the_server() && asked.key == *key);
        if refused.is_some() {
            let words = nearest::words(key);
            return RpcError::new(
                NOT_RECORDED,
                format!("the recorded server was never asked, for the proxy answered: {words}"),
            );
        }
        // As of a server that has not the method, which is also how a host's probe falls back.
        if !self.recording.asked.iter().any(|asked| of_method(&asked)) {
            return RpcError::new(
                -32601,
                format!("Method not found in the recording: {}", key.method),
            );
        }
        let reached = self
            .recording
            .asked
            .iter()
            .filter(|asked| asked.reached_the_server());
        let Some(nearest) = nearest::nearest(reached, key) else {
            return RpcError::new(
                NOT_RECORDED,
                format!("not in the recording: {}", nearest::words(key)),
            );
        };
        let differs: Vec<String> = nearest
            .differs
            .iter()
            .map(nearest::Difference::words)
            .collect();
        let data: Vec<Value> = nearest
            .differs
            .iter()
            .map(nearest::Difference::data)
            .collect();
        RpcError {
            code: NOT_RECORDED,
            message: format!(
                "not in the recording: {}; the nearest, {}, differs in {}",
                nearest::words(key),
                nearest::words(&nearest.asked.key),
                differs.join(", ")
            ),
            data: Some(json!({"nearest": nearest.asked.key.params(), "differs": data})),
        }
    }

    /// What was said, with live ids and tokens. Progress without a live token is left out.
    fn notes(
        &self,
        said: &[Said],
        progress: &Progress,
        tokens: Option<(&Value, Option<&Value>)>,
    ) -> Vec<Note> {
        let mut notes = Vec::new();
        let mut wait = Duration::ZERO;
        for said in said {
            wait += self.settings.pace.wait(said.wait_ms);
            let text = match &said.body {
                Body::Raw(text) => text.clone(),
                Body::Message(message) => {
                    let mut message = message.clone();
                    if let (Some((recorded, live)), Some(token)) =
                        (tokens, message.pointer_mut("/params/progressToken"))
                        && token == recorded
                    {
                        let Some(live) = live else { continue };
                        *token = live.clone();
                    }
                    for place in [
                        "/params/_meta/io.modelcontextprotocol~1subscriptionId",
                        "/params/requestId",
                    ] {
                        if let Some(id) = message.pointer_mut(place)
                            && let Some(live) = progress.ids.get(&id.to_string())
                        {
                            *id = live.clone();
                        }
                    }
                    message.to_string()
                }
            };
            notes.push(Note {
                wait: std::mem::take(&mut wait),
                text,
            });
        }
        notes
    }

    /// In words, which recorded requests were never made; none when all were, or when it does not matter.
    pub(crate) fn missing(&self) -> Option<String> {
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let missing: Vec<&Asked> = self
            .recording
            .asked
            .iter()
            .zip(&progress.made)
            .filter(|(asked, made)| !**made && asked.reached_the_server())
            .map(|(asked, _)| asked)
            .collect();
        if !self.settings.strict || missing.is_empty() {
            return None;
        }
        let named: Vec<String> = missing
            .iter()
            .take(NAMED)
            .map(|asked| nearest::words(&asked.key))
            .collect();
        let more = if missing.len() > NAMED { ", …" } else { "" };
        Some(format!(
            "{} recorded requests were never made: {}{more}",
            missing.len(),
            named.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests;
