//! A step of a scenario: one verb, what goes with it, and what is expected of the answer.

use std::collections::BTreeMap;
use std::time::Duration;

use regex::bytes::Regex as BytesRegex;
use serde_json::{Value, json};

use super::duration;
use super::form::StepForm;

/// One step, ready to be played.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The line of the scenario file, counted from 1.
    pub(crate) line: usize,
    pub(crate) act: Act,
    pub(crate) expected: Expected,
}

/// What the host does in a step.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Handshake {
        version: String,
        client: String,
        capabilities: Value,
        id: Value,
    },
    /// A request; tool calls are requests, too.
    Request {
        method: String,
        params: Option<Value>,
        id: Value,
        wait: bool,
    },
    Notify {
        method: String,
        params: Option<Value>,
        wait: bool,
    },
    Answer {
        id: Value,
        outcome: Outcome,
        wait: bool,
    },
    Raw {
        bytes: RawBytes,
        end: String,
        wait: bool,
    },
    Expect(Awaited),
    Say {
        role: String,
        text: String,
    },
    Think(Duration),
    ReachedServer {
        what: String,
        times: Option<u64>,
    },
    ReachedModel {
        question: String,
        times: Option<u64>,
    },
    /// The model gives the answers to this question that it holds back.
    Release {
        question: String,
        /// Only the lines that say so.
        about: Option<String>,
    },
    Stderr(String),
    Logged(String),
    Written(String),
    StopReading,
    ReadOn,
    Close(HostEnd),
    Signal(SignalName),
    Exit(ExitAs),
}

/// What the host answers to a request of the server's.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Result(Value),
    Error(Value),
}

/// A line that is sent as it is.
#[derive(Clone, Debug)]
pub(crate) enum RawBytes {
    Text(String),
    Bytes(Vec<u8>),
}

/// What a step waits for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Awaited {
    /// The answer with this id.
    Response(Value),
    /// A request or notification of the server's.
    Message(String),
    /// An error whose id is null or missing.
    ErrorWithoutId,
    /// A line that is no single JSON-RPC message.
    Line,
}

/// One of the two ends that the host holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostEnd {
    Stdin,
    Stdout,
}

/// The signals that a host may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalName {
    Term,
    Int,
    Hup,
    Kill,
}

impl SignalName {
    const ALL: [Self; 4] = [Self::Term, Self::Int, Self::Hup, Self::Kill];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Term => "TERM",
            Self::Int => "INT",
            Self::Hup => "HUP",
            Self::Kill => "KILL",
        }
    }

    pub(crate) fn number(self) -> i32 {
        self.signal().as_raw()
    }

    pub(crate) fn signal(self) -> rustix::process::Signal {
        use rustix::process::Signal;
        match self {
            Self::Term => Signal::TERM,
            Self::Int => Signal::INT,
            Self::Hup => Signal::HUP,
            Self::Kill => Signal::KILL,
        }
    }

    fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|signal| signal.word() == text)
    }
}

/// How the proxy is expected to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitAs {
    Code(i32),
    Signal(SignalName),
}

/// What a step expects of the line that it waited for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    pub(crate) contains: Option<String>,
    pub(crate) lacks: Option<String>,
    pub(crate) exactly: Option<String>,
    pub(crate) is_error: Option<bool>,
    pub(crate) fails: Option<String>,
    pub(crate) only: bool,
    pub(crate) take: BTreeMap<String, String>,
}

impl Expected {
    fn is_empty(&self) -> bool {
        self.contains.is_none()
            && self.lacks.is_none()
            && self.exactly.is_none()
            && self.is_error.is_none()
            && self.fails.is_none()
            && !self.only
            && self.take.is_empty()
    }
}

/// The ids that a scenario has used so far: new ones are given from 1 upwards.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// Ids of requests that the steps so far send, and the line of each.
    pub(crate) sent: Vec<Value>,
    /// Whether a line that cannot be read as one message has been sent, so that any id may come back.
    pub(crate) open: bool,
    highest: i64,
}

impl Ids {
    fn take(&mut self, given: Option<Value>) -> Result<Value, String> {
        let id = match given {
            None => json!(self.highest + 1),
            Some(id @ (Value::Number(_) | Value::String(_))) => id,
            Some(other) => return Err(format!("an id is a number or a text, not {other}")),
        };
        self.note(&id);
        Ok(id)
    }

    fn note(&mut self, id: &Value) {
        self.highest = self.highest.max(id.as_i64().unwrap_or_default());
        self.sent.push(id.clone());
    }

    fn note_raw(&mut self, text: &str) {
        let message: Option<Value> = serde_json::from_str(text).ok();
        match message.as_ref().and_then(|message| message.get("id")) {
            Some(id) if id.is_number() || id.is_string() => self.note(id),
            _ => self.open = true,
        }
    }
}

const VERBS: &str = "handshake, request, call, notify, answer, raw, bytes, expect, say, think, reached_server, \
                     reached_model, release, stderr, logged, written, stop_reading, read_on, close, signal, exit";

/// Reads a step. `ids` grows by the ids it uses.
///
/// # Errors
///
/// What is wrong with it, as text for the step's line.
pub(crate) fn read(form: StepForm, line: usize, ids: &mut Ids) -> Result<Step, String> {
    let verbs = verbs_of(&form);
    let verb = match verbs.as_slice() {
        [verb] => *verb,
        [] => {
            return Err(format!(
                "a step does one thing, and this one says nothing; it is one of {VERBS}"
            ));
        }
        several => {
            return Err(format!(
                "a step does one thing, and this one says {}",
                several.join(" and ")
            ));
        }
    };
    companions_fit(&form, verb)?;

    let expected = Expected {
        contains: form.contains,
        lacks: form.lacks,
        exactly: form.exactly,
        is_error: form.is_error,
        fails: form.fails,
        only: form.only.unwrap_or_default(),
        take: form.take.unwrap_or_default(),
    };
    for pattern in expected.take.values() {
        let groups = BytesRegex::new(pattern)
            .map_err(|error| one_line(&error.to_string()))?
            .captures_len();
        if groups < 2 {
            return Err(format!(
                "`take` keeps what a group finds, and {pattern:?} has none; put it in brackets"
            ));
        }
    }
    let wait = form.wait.unwrap_or(true);
    if !wait && !expected.is_empty() {
        return Err(
            "with `wait = false` no answer is waited for, so nothing can be expected of it here; \
                    an `expect` step can"
                .to_owned(),
        );
    }

    let act = if let Some(version) = form.handshake {
        let client = form.client.unwrap_or_else(|| "harness".to_owned());
        let capabilities = form.capabilities.unwrap_or_else(|| json!({}));
        Act::Handshake {
            version,
            client,
            capabilities,
            id: ids.take(form.id)?,
        }
    } else if let Some(method) = form.request {
        let params = with_meta(form.params, form.meta)?;
        Act::Request {
            method,
            params,
            id: ids.take(form.id)?,
            wait,
        }
    } else if let Some(tool) = form.call {
        let arguments = form.args.unwrap_or_else(|| json!({}));
        let params = with_meta(
            Some(json!({ "name": tool, "arguments": arguments })),
            form.meta,
        )?;
        Act::Request {
            method: "tools/call".to_owned(),
            params,
            id: ids.take(form.id)?,
            wait,
        }
    } else if let Some(method) = form.notify {
        Act::Notify {
            method,
            params: with_meta(form.params, form.meta)?,
            wait,
        }
    } else if let Some(id) = form.answer {
        let outcome = match (form.result, form.error) {
            (Some(result), None) => Outcome::Result(result),
            (None, Some(error)) => Outcome::Error(error),
            (None, None) => Outcome::Result(json!({})),
            (Some(_), Some(_)) => {
                return Err("an answer has a result or an error, not both".to_owned());
            }
        };
        Act::Answer { id, outcome, wait }
    } else if let Some(text) = form.raw {
        ids.note_raw(&text);
        Act::Raw {
            bytes: RawBytes::Text(text),
            end: form.end.unwrap_or_else(|| "\n".to_owned()),
            wait,
        }
    } else if let Some(digits) = form.bytes {
        ids.open = true;
        let bytes = RawBytes::Bytes(from_hex(&digits)?);
        Act::Raw {
            bytes,
            end: form.end.unwrap_or_else(|| "\n".to_owned()),
            wait,
        }
    } else if let Some(awaited) = form.expect {
        Act::Expect(awaited_of(awaited, ids)?)
    } else if let Some(role) = form.say {
        if !["user", "assistant"].contains(&role.as_str()) {
            return Err(format!("`say` is \"user\" or \"assistant\", not {role:?}"));
        }
        Act::Say {
            role,
            text: form.text.ok_or("`say` needs the words, as `text`")?,
        }
    } else if let Some(time) = form.think {
        Act::Think(duration::read(&time)?)
    } else if let Some(what) = form.reached_server {
        Act::ReachedServer {
            what,
            times: form.times,
        }
    } else if let Some(question) = form.reached_model {
        Act::ReachedModel {
            question,
            times: form.times,
        }
    } else if let Some(question) = form.release {
        Act::Release {
            question,
            about: form.about,
        }
    } else if let Some(path) = form.written {
        Act::Written(path)
    } else if let Some(text) = form.stderr {
        Act::Stderr(text)
    } else if let Some(text) = form.logged {
        Act::Logged(text)
    } else if let Some(flag) = form.stop_reading {
        only_true("stop_reading", flag, Act::StopReading)?
    } else if let Some(flag) = form.read_on {
        only_true("read_on", flag, Act::ReadOn)?
    } else if let Some(end) = form.close {
        Act::Close(match end.as_str() {
            "stdin" => HostEnd::Stdin,
            "stdout" => HostEnd::Stdout,
            _ => return Err(format!("`close` is \"stdin\" or \"stdout\", not {end:?}")),
        })
    } else if let Some(name) = form.signal {
        Act::Signal(SignalName::named(&name).ok_or_else(|| no_signal("signal", &name))?)
    } else if let Some(how) = form.exit {
        Act::Exit(exit_as(&how)?)
    } else {
        return Err(format!("a step is one of {VERBS}"));
    };
    Ok(Step {
        line,
        act,
        expected,
    })
}

/// Which verbs a step says.
fn verbs_of(form: &StepForm) -> Vec<&'static str> {
    let said = [
        ("handshake", form.handshake.is_some()),
        ("request", form.request.is_some()),
        ("call", form.call.is_some()),
        ("notify", form.notify.is_some()),
        ("answer", form.answer.is_some()),
        ("raw", form.raw.is_some()),
        ("bytes", form.bytes.is_some()),
        ("expect", form.expect.is_some()),
        ("say", form.say.is_some()),
        ("think", form.think.is_some()),
        ("reached_server", form.reached_server.is_some()),
        ("reached_model", form.reached_model.is_some()),
        ("release", form.release.is_some()),
        ("written", form.written.is_some()),
        ("stderr", form.stderr.is_some()),
        ("logged", form.logged.is_some()),
        ("stop_reading", form.stop_reading.is_some()),
        ("read_on", form.read_on.is_some()),
        ("close", form.close.is_some()),
        ("signal", form.signal.is_some()),
        ("exit", form.exit.is_some()),
    ];
    said.into_iter()
        .filter(|(_, is_said)| *is_said)
        .map(|(verb, _)| verb)
        .collect()
}

/// What goes with each verb, as far as it is not for every verb that waits for a line.
fn companions_fit(form: &StepForm, verb: &str) -> Result<(), String> {
    let waits = ["handshake", "request", "call", "expect"];
    let sends = ["request", "call", "notify", "answer", "raw", "bytes"];
    let table: [(&str, bool, &[&str]); 20] = [
        ("client", form.client.is_some(), &["handshake"]),
        ("capabilities", form.capabilities.is_some(), &["handshake"]),
        ("params", form.params.is_some(), &["request", "notify"]),
        ("args", form.args.is_some(), &["call"]),
        ("meta", form.meta.is_some(), &["request", "call", "notify"]),
        ("id", form.id.is_some(), &["handshake", "request", "call"]),
        ("wait", form.wait.is_some(), &sends),
        ("result", form.result.is_some(), &["answer"]),
        ("error", form.error.is_some(), &["answer"]),
        ("end", form.end.is_some(), &["raw", "bytes"]),
        ("text", form.text.is_some(), &["say"]),
        ("about", form.about.is_some(), &["release"]),
        (
            "times",
            form.times.is_some(),
            &["reached_server", "reached_model"],
        ),
        ("contains", form.contains.is_some(), &waits),
        ("lacks", form.lacks.is_some(), &waits),
        ("exactly", form.exactly.is_some(), &waits),
        ("is_error", form.is_error.is_some(), &waits),
        ("fails", form.fails.is_some(), &waits),
        ("only", form.only.is_some(), &waits),
        ("take", form.take.is_some(), &waits),
    ];
    for (companion, is_said, verbs) in table {
        if is_said && !verbs.contains(&verb) {
            return Err(format!(
                "`{companion}` goes with {}, and this step says {verb}",
                verbs.join(", ")
            ));
        }
    }
    if form.only == Some(false) {
        return Err("`only` is true or left out".to_owned());
    }
    if form.is_error.is_some() && form.fails.is_some() {
        return Err("`is_error` is about a result and `fails` about a JSON-RPC error; an answer is one of them".to_owned());
    }
    Ok(())
}

fn awaited_of(awaited: Value, ids: &Ids) -> Result<Awaited, String> {
    let is_sent = ids.sent.contains(&awaited);
    match awaited {
        Value::Number(_) if !is_sent && !ids.open => Err(format!(
            "no step before this one sends a request with the id {awaited}"
        )),
        Value::Number(_) => Ok(Awaited::Response(awaited)),
        Value::String(_) if is_sent => Ok(Awaited::Response(awaited)),
        Value::String(word) => Ok(match word.as_str() {
            "error" => Awaited::ErrorWithoutId,
            "line" => Awaited::Line,
            _ => Awaited::Message(word),
        }),
        other => Err(format!(
            "`expect` is an id, a method, \"error\" or \"line\", not {other}"
        )),
    }
}

fn exit_as(how: &Value) -> Result<ExitAs, String> {
    if let Value::String(name) = how {
        return SignalName::named(name)
            .map(ExitAs::Signal)
            .ok_or_else(|| no_signal("exit", name));
    }
    let code = how.as_i64().filter(|code| (0..=255).contains(code));
    code.and_then(|code| i32::try_from(code).ok())
        .map(ExitAs::Code)
        .ok_or_else(|| format!("`exit` is a code from 0 to 255 or a signal's name, not {how}"))
}

fn no_signal(verb: &str, name: &str) -> String {
    let known: Vec<&str> = SignalName::ALL.into_iter().map(SignalName::word).collect();
    format!(
        "`{verb}` knows the signals {}, not {name:?}",
        known.join(", ")
    )
}

fn only_true(verb: &str, flag: bool, act: Act) -> Result<Act, String> {
    if flag {
        Ok(act)
    } else {
        Err(format!("`{verb}` is true or left out"))
    }
}

/// Parameters with a `_meta` member, if one is given.
fn with_meta(params: Option<Value>, meta: Option<Value>) -> Result<Option<Value>, String> {
    let Some(meta) = meta else { return Ok(params) };
    match params.unwrap_or_else(|| json!({})) {
        Value::Object(mut members) => {
            members.insert("_meta".to_owned(), meta);
            Ok(Some(Value::Object(members)))
        }
        _ => Err("`meta` needs parameters that are a table".to_owned()),
    }
}

fn from_hex(digits: &str) -> Result<Vec<u8>, String> {
    let wrong =
        || format!("`bytes` is pairs of hexadecimal digits, such as \"7b ff\", not {digits:?}");
    let nibbles: Vec<u32> = digits
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).ok_or_else(wrong))
        .collect::<Result<_, _>>()?;
    nibbles
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => u8::try_from(high * 16 + low).map_err(|_| wrong()),
            _ => Err(wrong()),
        })
        .collect()
}

pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
