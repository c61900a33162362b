//! A recorded session as a scenario, which replays without the server that it was recorded from.

mod changing;
#[cfg(test)]
mod tests;
mod toml_text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use stretto_trace::mcp::{Log, ParseError};
use thiserror::Error;

use crate::log_text::{self, LogLine};
use crate::message::{Kind, Message};
use crate::scenario::placeholders::escape;
use crate::text::append;

use self::changing::Changes;
use self::toml_text::{inline, quoted};

/// Why a log could not become a scenario.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The text is no log.
    #[error("parsing {}", .file.display())]
    Parse {
        /// The log.
        file: PathBuf,
        /// What is wrong with it.
        #[source]
        error: ParseError,
    },
    /// The file is no text.
    #[error("reading {}", .file.display())]
    Read {
        /// The log.
        file: PathBuf,
        /// What the system said.
        #[source]
        error: std::io::Error,
    },
    /// Nothing was recorded of the host.
    #[error("{} holds no line of a host, so there is nothing to play", .0.display())]
    NoHost(PathBuf),
}

/// Writes the scenario that plays what the log holds; `beside` is the log's name beside the scenario.
///
/// # Errors
///
/// When the log cannot be read, or holds nothing of a host.
pub fn scenario_of(log: &Path, beside: &str) -> Result<String, ImportError> {
    let text = std::fs::read_to_string(log).map_err(|error| ImportError::Read {
        file: log.to_owned(),
        error,
    })?;
    let parsed = Log::parse(text.as_bytes()).map_err(|error| ImportError::Parse {
        file: log.to_owned(),
        error,
    })?;
    let lines: Vec<LogLine<'_>> = log_text::lines(&text).collect();
    if !lines.iter().any(|line| line.from == "client") {
        return Err(ImportError::NoHost(log.to_owned()));
    }
    let mut importer = Importer::of(&lines);
    importer.walk();
    Ok(importer.file(&parsed, beside))
}

/// A step, as it will be written.
#[derive(Debug)]
struct Written {
    comment: Option<String>,
    text: String,
}

#[derive(Debug)]
struct Importer<'a> {
    lines: &'a [LogLine<'a>],
    messages: Vec<Message>,
    /// Where the answer to a request stands, by where the request stands.
    answers: BTreeMap<usize, usize>,
    changes: Changes,
    steps: Vec<Written>,
    highest_id: i64,
    /// Requests of the host that were not waited for, by where their answers stand.
    open: BTreeMap<usize, Value>,
}

impl<'a> Importer<'a> {
    fn of(lines: &'a [LogLine<'a>]) -> Self {
        let messages: Vec<Message> = lines.iter().map(LogLine::message).collect();
        let answers = answers(lines, &messages);
        let is_result = |at: &usize| lines.get(*at).is_some_and(|line| line.from == "server");
        let texts = (0..lines.len())
            .filter(is_result)
            .filter_map(|at| messages.get(at))
            .map(Message::said);
        let changes = Changes::of(texts);
        Self {
            lines,
            messages,
            answers,
            changes,
            steps: Vec::new(),
            highest_id: 0,
            open: BTreeMap::new(),
        }
    }

    fn walk(&mut self) {
        let mut at = 0;
        while let (Some(line), Some(message)) = (self.lines.get(at), self.messages.get(at).cloned())
        {
            match line.from {
                "client" => at += self.client(at, &message),
                "server" => {
                    self.server(at, &message);
                    at += 1;
                }
                "context" => {
                    self.context(&message);
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    /// Writes what the host did; returns how many lines of the log that was.
    fn client(&mut self, at: usize, message: &Message) -> usize {
        if let Some(taken) = self.handshake(at, message) {
            return taken;
        }
        let written = match &message.kind {
            Kind::Request { id, method } => self.request(at, message, id, method),
            Kind::Notification { method } => notification(message, method),
            Kind::Response { id } => Self::answer(message, id),
            Kind::Other => None,
        };
        match written {
            Some(text) => self.push(None, text),
            None => self.raw(at, message),
        }
        1
    }

    fn push(&mut self, comment: Option<&str>, text: String) {
        self.steps.push(Written {
            comment: comment.map(str::to_owned),
            text,
        });
    }

    /// `initialize`, its answer and `notifications/initialized`, when that is all there is to them.
    fn handshake(&mut self, at: usize, message: &Message) -> Option<usize> {
        let Kind::Request { id, method } = &message.kind else {
            return None;
        };
        let params = message.member("params")?.as_object()?;
        let client = params.get("clientInfo")?;
        let name = client.get("name")?.as_str()?;
        let is_plain = method == "initialize"
            && params.len() == 3
            && *client == json!({ "name": name, "version": "0" })
            && self.answers.get(&at) == Some(&(at + 1))
            && self.messages.get(at + 2)?.content()
                == br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        if !is_plain {
            return None;
        }
        let version = params.get("protocolVersion")?.as_str()?;
        let mut text = format!(
            "handshake = {}, client = {}",
            quoted(version),
            quoted(&escape(name))
        );
        let capabilities = params.get("capabilities")?;
        if *capabilities != json!({}) {
            append(
                &mut text,
                format_args!(", capabilities = {}", inline(&escaped(capabilities))?),
            );
        }
        text.push_str(&self.id_text(id)?);
        self.push(None, text);
        Some(3)
    }

    fn request(
        &mut self,
        at: usize,
        message: &Message,
        id: &Value,
        method: &str,
    ) -> Option<String> {
        let params = message.member("params");
        let tool = params.filter(|_| method == "tools/call").and_then(call_of);
        let mut text = if let Some((tool, arguments, meta)) = tool {
            let mut text = format!("call = {}", quoted(&escape(tool)));
            let arguments = self.changes.put_in(&escaped(arguments));
            if arguments != json!({}) {
                append(&mut text, format_args!(", args = {}", inline(&arguments)?));
            }
            if let Some(meta) = meta {
                append(
                    &mut text,
                    format_args!(", meta = {}", inline(&escaped(meta))?),
                );
            }
            text
        } else {
            let mut text = format!("request = {}", quoted(&escape(method)));
            if let Some(params) = params {
                append(
                    &mut text,
                    format_args!(
                        ", params = {}",
                        inline(&self.changes.put_in(&escaped(params)))?
                    ),
                );
            }
            text
        };
        text.push_str(&self.id_text(id)?);
        let next = self
            .lines
            .iter()
            .skip(at + 1)
            .position(|line| line.from == "client")
            .map_or(usize::MAX, |gap| at + 1 + gap);
        match self.answers.get(&at).copied() {
            Some(answer) if answer < next => text.push_str(&self.expectations(answer)),
            Some(answer) => {
                self.open.insert(answer, id.clone());
                text.push_str(", wait = false");
            }
            None => {
                text.push_str(", wait = false");
                let comment = if self.is_answered_by_proxy(at, id) {
                    "The proxy answered this itself, as it does with the options that it had: then take `wait = false` out."
                } else {
                    "This was never answered. If the server answers it now, the snapshot shows it."
                };
                self.push(Some(comment), text);
                return Some(String::new());
            }
        }
        Some(text)
    }

    /// Whether the proxy answered a request, which the server then was never asked.
    fn is_answered_by_proxy(&self, at: usize, id: &Value) -> bool {
        let later = self.lines.iter().zip(&self.messages).skip(at + 1);
        later
            .filter(|(line, _)| line.from == "proxy")
            .any(|(_, message)| matches!(&message.kind, Kind::Response { id: own } if own == id))
    }

    /// `, id = …` where the id is not the one that the runner would give.
    fn id_text(&mut self, id: &Value) -> Option<String> {
        let usual = json!(self.highest_id + 1);
        self.highest_id = self.highest_id.max(id.as_i64().unwrap_or_default());
        if *id == usual {
            return Some(String::new());
        }
        let is_plain = id.is_i64() || id.as_str().is_some_and(|text| !text.contains('$'));
        is_plain
            .then(|| inline(id))
            .flatten()
            .map(|id| format!(", id = {id}"))
    }

    fn answer(message: &Message, id: &Value) -> Option<String> {
        let id = inline(id).filter(|_| id.is_i64() || id.is_string())?;
        match (message.member("result"), message.member("error")) {
            (Some(result), None) => Some(format!(
                "answer = {id}, result = {}",
                inline(&escaped(result))?
            )),
            (None, Some(error)) => Some(format!(
                "answer = {id}, error = {}",
                inline(&escaped(error))?
            )),
            _ => None,
        }
    }

    /// A line that the format has no words for, to the letter.
    fn raw(&mut self, at: usize, message: &Message) {
        let text = format!("raw = {}", quoted(&escape(&message.text())));
        match (&message.kind, self.answers.get(&at).copied()) {
            (Kind::Request { id, .. }, Some(answer)) => {
                self.highest_id = self.highest_id.max(id.as_i64().unwrap_or_default());
                self.open.insert(answer, id.clone());
                self.push(None, text);
            }
            _ => self.push(None, text),
        }
    }

    fn server(&mut self, at: usize, message: &Message) {
        if let Some(id) = self.open.remove(&at) {
            let Some(id) = inline(&id) else { return };
            let text = format!("expect = {id}{}", self.expectations(at));
            self.push(None, text);
            return;
        }
        match &message.kind {
            Kind::Request { method, id } if self.host_answers(at, id) => {
                let text = format!("expect = {}", quoted(method));
                self.push(Some("The server asks the host."), text);
            }
            Kind::Response { id: Value::Null } => {
                let said = message.failure().unwrap_or_default();
                let fails = Changes::steady_part(&said)
                    .map(|part| format!(", contains = {}", quoted(&escape(&part))));
                self.push(
                    None,
                    format!("expect = \"error\"{}", fails.unwrap_or_default()),
                );
            }
            _ => {}
        }
    }

    fn host_answers(&self, at: usize, id: &Value) -> bool {
        let later = self.lines.iter().zip(&self.messages).skip(at);
        later
            .filter(|(line, _)| line.from == "client")
            .any(|(_, message)| message.kind == Kind::Response { id: id.clone() })
    }

    fn context(&mut self, message: &Message) {
        let role = message.member("role").and_then(Value::as_str);
        let content = message.member("content").and_then(Value::as_str);
        if let (Some(role @ ("user" | "assistant")), Some(content)) = (role, content) {
            self.push(
                None,
                format!(
                    "say = {}, text = {}",
                    quoted(role),
                    quoted(&escape(content))
                ),
            );
        }
    }

    /// What a person would expect of this answer: whether it is an error, and a part that stays.
    fn expectations(&mut self, answer: usize) -> String {
        let Some(message) = self.messages.get(answer) else {
            return String::new();
        };
        let said = message.said();
        let is_call_result = message
            .member("result")
            .is_some_and(|result| result.get("content").is_some());
        let part = Changes::steady_part(&said).map(|part| quoted(&escape(&part)));
        let mut text = match (message.failure(), message.is_error()) {
            (Some(_), _) => part
                .map(|part| format!(", fails = {part}"))
                .unwrap_or_default(),
            (None, true) => format!(
                ", is_error = true{}",
                part.map(|part| format!(", contains = {part}"))
                    .unwrap_or_default()
            ),
            (None, false) if is_call_result => part
                .map(|part| format!(", contains = {part}"))
                .unwrap_or_default(),
            (None, false) => String::new(),
        };
        let later: Vec<String> = self
            .lines
            .iter()
            .skip(answer)
            .filter(|line| line.from == "client")
            .map(|line| line.content.clone())
            .collect();
        if is_call_result && let Some(take) = self.changes.take_from(&said, &later) {
            append(&mut text, format_args!(", take = {{ {take} }}"));
        }
        text
    }

    /// The whole file.
    fn file(&self, log: &Log, beside: &str) -> String {
        let mut text = String::new();
        let client = self.messages.iter().find_map(|message| {
            message
                .member("params")?
                .pointer("/clientInfo/name")?
                .as_str()
                .map(str::to_owned)
        });
        let who = client.unwrap_or_else(|| "a host".to_owned());
        let server = log.header.server_command.join(" ");
        append(
            &mut text,
            format_args!("# Recorded from {who}, before: {}\n", visible_line(&server)),
        );
        text.push_str("# The log beside this file holds all that crossed then. Read both before you share them.\n");
        text.push_str("# Look: say what this session is the proof of.\n");
        append(
            &mut text,
            format_args!(
                "title  = {}\n",
                quoted(&escape(&format!(
                    "a session of {who} goes as it was recorded"
                )))
            ),
        );
        let mut options = vec!["--record".to_owned(), "$LOGS".to_owned()];
        if let Some(domain) = &log.header.domain {
            options.extend(["--domain".to_owned(), escape(domain)]);
        }
        if let Some(model) = &log.header.agent_model {
            options.extend(["--agent-model".to_owned(), escape(model)]);
        }
        if self.lines.iter().any(|line| line.from == "context") {
            options.extend(["--context".to_owned(), "$CONTEXT".to_owned()]);
        }
        if self.lines.iter().any(|line| line.from == "proxy") {
            text.push_str("# Look: the proxy acted on its own in this session. Add the options that it had.\n");
        }
        append(
            &mut text,
            format_args!("proxy  = {}\n", inline(&json!(options)).unwrap_or_default()),
        );
        text.push_str(
            "# To play it against the server itself: command = [\"…\"] in place of this line.\n",
        );
        let replay = json!(["--replay", format!("$HERE/{}", escape(beside))]);
        append(
            &mut text,
            format_args!("server = {}\n", inline(&replay).unwrap_or_default()),
        );
        text.push_str(&self.changes.table());
        text.push_str("\nsteps = [\n");
        for step in self.steps.iter().filter(|step| !step.text.is_empty()) {
            if let Some(comment) = &step.comment {
                append(&mut text, format_args!("  # {comment}\n"));
            }
            append(&mut text, format_args!("  {{ {} }},\n", step.text));
        }
        text.push_str("]\n");
        text
    }
}

fn visible_line(text: &str) -> String {
    crate::message::visible(text.as_bytes())
}

/// Where the answers of the host's requests stand.
fn answers(lines: &[LogLine<'_>], messages: &[Message]) -> BTreeMap<usize, usize> {
    let mut waiting: Vec<(usize, Value)> = Vec::new();
    let mut answers = BTreeMap::new();
    for (at, (line, message)) in lines.iter().zip(messages).enumerate() {
        match (line.from, &message.kind) {
            ("client", Kind::Request { id, .. }) => waiting.push((at, id.clone())),
            ("server", Kind::Response { id }) => {
                if let Some(found) = waiting.iter().position(|(_, asked)| asked == id) {
                    answers.insert(waiting.remove(found).0, at);
                }
            }
            _ => {}
        }
    }
    answers
}

/// A call's tool, arguments and `_meta`, when it has nothing else.
fn call_of(params: &Value) -> Option<(&str, &Value, Option<&Value>)> {
    let members = params.as_object()?;
    let is_usual = members
        .keys()
        .all(|name| ["name", "arguments", "_meta"].contains(&name.as_str()));
    let arguments = members
        .get("arguments")
        .filter(|arguments| arguments.is_object())?;
    is_usual.then_some(())?;
    Some((
        members.get("name")?.as_str()?,
        arguments,
        members.get("_meta"),
    ))
}

fn notification(message: &Message, method: &str) -> Option<String> {
    match message.member("params") {
        None => Some(format!("notify = {}", quoted(&escape(method)))),
        Some(params) => Some(format!(
            "notify = {}, params = {}",
            quoted(&escape(method)),
            inline(&escaped(params))?
        )),
    }
}

/// The value with dollar signs that are no placeholders.
fn escaped(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(escape(text)),
        Value::Array(items) => items.iter().map(escaped).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| (name.clone(), escaped(member)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
