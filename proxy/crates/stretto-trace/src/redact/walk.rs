//! The one walk over a log that census and redaction share: which parts of which messages
//! hold values, and of what kind.
//!
//! What the protocol itself names stays: methods, ids, times, tools' names, and the members
//! that MCP defines. Everything else that somebody wrote is a value.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::mcp::{Body, Entry, Log, Who};

/// What is done with what is found on the way. Each returns what stands in its place.
pub(super) trait Sink {
    /// A value, or a member's name. `is_forced`: it stands under a field that is always hashed.
    fn value(&mut self, text: &str, is_forced: bool) -> String;

    /// A line of running text, word by word.
    fn line(&mut self, text: &str) -> String;

    /// A line that was no message, word by word.
    fn raw_line(&mut self, text: &str) -> String;

    /// Data that nobody reads, such as an image in base64.
    fn blob(&mut self, data: &str) -> String;

    /// Whether the members of this name, which the log has, are always hashed.
    fn is_field(&mut self, name: &str) -> bool;

    /// The result of a listing of tools, which stays as it is.
    fn listed(&mut self, result: &Value);
}

/// Walks `log`, and returns it with everything in the place of which `sink` put something else.
pub(super) fn log(log: &Log, sink: &mut impl Sink) -> Log {
    let mut walk = Walk {
        sink,
        asked: HashMap::new(),
    };
    Log {
        header: log.header.clone(),
        entries: log.entries.iter().map(|entry| walk.entry(entry)).collect(),
        is_cut_off: log.is_cut_off,
    }
}

/// Exchanges in which the two sides introduce themselves; they stay.
const STAYS: [&str; 4] = [
    "initialize",
    "ping",
    "server/discover",
    "notifications/initialized",
];

/// Members that MCP defines, in params, results and content: their names stay.
const PROTOCOL_NAMES: [&str; 76] = [
    "_meta",
    "action",
    "annotations",
    "argument",
    "arguments",
    "audience",
    "blob",
    "cacheScope",
    "completion",
    "content",
    "contents",
    "context",
    "createdAt",
    "cursor",
    "data",
    "description",
    "elicitationId",
    "hasMore",
    "icons",
    "includeContext",
    "inputRequests",
    "inputResponses",
    "isError",
    "lastModified",
    "lastUpdatedAt",
    "level",
    "logger",
    "maxTokens",
    "message",
    "messages",
    "metadata",
    "method",
    "mimeType",
    "mode",
    "model",
    "modelPreferences",
    "name",
    "nextCursor",
    "notifications",
    "params",
    "pollInterval",
    "priority",
    "progress",
    "progressToken",
    "prompts",
    "reason",
    "ref",
    "requestId",
    "requestState",
    "requestedSchema",
    "resource",
    "resourceTemplates",
    "resources",
    "result",
    "resultType",
    "role",
    "roots",
    "size",
    "status",
    "statusMessage",
    "stopReason",
    "stopSequences",
    "structuredContent",
    "systemPrompt",
    "task",
    "taskId",
    "temperature",
    "text",
    "title",
    "toolChoice",
    "total",
    "type",
    "uri",
    "uriTemplate",
    "url",
    "values",
];
/// Further ones, whose values are words of the protocol, too.
const PROTOCOL_WORDS: [&str; 14] = [
    "action",
    "audience",
    "cacheScope",
    "includeContext",
    "level",
    "method",
    "mimeType",
    "mode",
    "progressToken",
    "requestId",
    "resultType",
    "role",
    "stopReason",
    "type",
];
/// Members of `_meta` that MCP defines.
const META_PREFIX: &str = "io.modelcontextprotocol/";
/// How the text begins that the proxy puts before a flow's lookups.
const LOOKUPS_HEADER: &str = "--- Also looked up automatically";

struct Walk<'s, S> {
    sink: &'s mut S,
    /// What each request was, by who answers it and its id as JSON text.
    asked: HashMap<(Peer, String), Asked>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Peer {
    Host,
    Server,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Tools,
    Introduction,
    Other,
}

impl<S: Sink> Walk<'_, S> {
    fn entry(&mut self, entry: &Entry) -> Entry {
        let body = match &entry.body {
            Body::Raw(text) => Body::Raw(by_line(text, |line| self.sink.raw_line(line))),
            Body::Message(Value::Array(batch)) => {
                let items = batch.iter().map(|item| self.message(entry.from, item));
                Body::Message(Value::Array(items.collect()))
            }
            Body::Message(message) => Body::Message(self.message(entry.from, message)),
        };
        Entry {
            t_ms: entry.t_ms,
            from: entry.from,
            body,
        }
    }

    fn message(&mut self, from: Who, message: &Value) -> Value {
        let Value::Object(members) = message else {
            return self.data(message, false);
        };
        if from == Who::Context {
            return self.said(members);
        }
        let asked = match members.get("method").and_then(Value::as_str) {
            Some(method) => self.asks(from, method, members),
            None => self.answers(from, members),
        };
        let mut out = Map::new();
        for (name, member) in members {
            let member = match name.as_str() {
                "jsonrpc" | "id" | "method" => member.clone(),
                "params" | "result" | "error" if asked != Asked::Other => member.clone(),
                "params" => self.params(members, member),
                "result" => self.protocol(member, false, from),
                "error" => self.error(member),
                _ => self.member(name, member),
            };
            out.insert(name.clone(), member);
        }
        Value::Object(out)
    }

    /// A request or notification: remembers what its answer will be about.
    fn asks(&mut self, from: Who, method: &str, members: &Map<String, Value>) -> Asked {
        let asked = match method {
            "tools/list" => Asked::Tools,
            _ if STAYS.contains(&method) => Asked::Introduction,
            _ => Asked::Other,
        };
        let answers = if from == Who::Server {
            Peer::Host
        } else {
            Peer::Server
        };
        if let Some(id) = members.get("id").filter(|id| !id.is_null()) {
            self.asked.insert((answers, id.to_string()), asked);
        }
        asked
    }

    /// A response, or nothing that is known. What was asked stays known: there may be a second
    /// response, the proxy's own.
    fn answers(&mut self, from: Who, members: &Map<String, Value>) -> Asked {
        let peer = if from == Who::Client {
            Peer::Host
        } else {
            Peer::Server
        };
        let id = members.get("id").map(Value::to_string).unwrap_or_default();
        let asked = self.asked.get(&(peer, id)).copied().unwrap_or(Asked::Other);
        if asked == Asked::Tools
            && let Some(result) = members.get("result")
        {
            self.sink.listed(result);
        }
        asked
    }

    fn params(&mut self, message: &Map<String, Value>, params: &Value) -> Value {
        match (message.get("method").and_then(Value::as_str), params) {
            (Some("tools/call"), Value::Object(members)) => {
                // The tool's name is no value, and no field that could be forced.
                let mut members = members.clone();
                let tool = members.remove("name");
                let mut out = self.protocol_members(&members, false, Who::Client);
                out.extend(tool.map(|tool| ("name".to_owned(), tool)));
                Value::Object(out)
            }
            _ => self.protocol(params, false, Who::Client),
        }
    }

    fn error(&mut self, error: &Value) -> Value {
        let Value::Object(members) = error else {
            return self.data(error, false);
        };
        let mut out = Map::new();
        for (name, member) in members {
            let member = match (name.as_str(), member) {
                ("code", Value::Number(_)) => member.clone(),
                ("message", Value::String(text)) => {
                    by_line(text, |line| self.sink.line(line)).into()
                }
                _ => self.member(name, member),
            };
            out.insert(name.clone(), member);
        }
        Value::Object(out)
    }

    /// A line of the conversation.
    fn said(&mut self, members: &Map<String, Value>) -> Value {
        let mut out = Map::new();
        for (name, member) in members {
            let member = match name.as_str() {
                "role" => member.clone(),
                "content" => self.content(member),
                _ => self.member(name, member),
            };
            out.insert(name.clone(), member);
        }
        Value::Object(out)
    }

    /// What was said: a text, or parts that have one.
    fn content(&mut self, content: &Value) -> Value {
        match content {
            Value::String(text) => by_line(text, |line| self.sink.line(line)).into(),
            Value::Array(parts) => parts.iter().map(|part| self.content(part)).collect(),
            Value::Object(members) => {
                let mut out = Map::new();
                for (name, member) in members {
                    let member = match (name.as_str(), member) {
                        ("type", _) => member.clone(),
                        ("text", Value::String(text)) => {
                            by_line(text, |line| self.sink.line(line)).into()
                        }
                        _ => self.protocol_member(members, name, member, false, Who::Client),
                    };
                    out.insert(name.clone(), member);
                }
                Value::Object(out)
            }
            other => other.clone(),
        }
    }

    /// What a member of this name holds.
    fn member(&mut self, name: &str, value: &Value) -> Value {
        let is_forced = self.sink.is_field(name);
        self.data(value, is_forced)
    }

    /// What somebody else than the protocol has named: every name, string and number.
    fn data(&mut self, value: &Value, is_forced: bool) -> Value {
        match value {
            Value::Null | Value::Bool(_) => value.clone(),
            Value::String(text) => self.sink.value(text, is_forced).into(),
            Value::Number(number) => self.number(number, is_forced),
            Value::Array(items) => items
                .iter()
                .map(|item| self.data(item, is_forced))
                .collect(),
            Value::Object(members) => {
                let mut out = Map::new();
                for (name, member) in members {
                    let is_forced = is_forced || self.sink.is_field(name);
                    let member = self.data(member, is_forced);
                    // Names are never forced: they are what a field is called, not what it holds.
                    put(&mut out, self.sink.value(name, false), member);
                }
                Value::Object(out)
            }
        }
    }

    /// A number stays one, unless something else takes its place.
    fn number(&mut self, number: &serde_json::Number, is_forced: bool) -> Value {
        let text = number.to_string();
        let instead = self.sink.value(&text, is_forced);
        if instead == text {
            Value::Number(number.clone())
        } else {
            Value::String(instead)
        }
    }

    /// Params, results and content: the protocol's own names stay.
    fn protocol(&mut self, value: &Value, is_forced: bool, from: Who) -> Value {
        match value {
            Value::Object(members) => {
                Value::Object(self.protocol_members(members, is_forced, from))
            }
            Value::Array(items) => items
                .iter()
                .map(|item| self.protocol(item, is_forced, from))
                .collect(),
            _ => self.data(value, is_forced),
        }
    }

    fn protocol_members(
        &mut self,
        members: &Map<String, Value>,
        is_forced: bool,
        from: Who,
    ) -> Map<String, Value> {
        let mut out = Map::new();
        for (name, member) in members {
            let instead = self.protocol_member(members, name, member, is_forced, from);
            let name = if PROTOCOL_NAMES.contains(&name.as_str()) {
                name.clone()
            } else {
                self.sink.value(name, false)
            };
            put(&mut out, name, instead);
        }
        out
    }

    fn protocol_member(
        &mut self,
        members: &Map<String, Value>,
        name: &str,
        member: &Value,
        is_forced: bool,
        from: Who,
    ) -> Value {
        if PROTOCOL_WORDS.contains(&name) && !is_object(member) {
            return member.clone();
        }
        let is_forced = is_forced || self.sink.is_field(name);
        let is_media = members.contains_key("mimeType")
            || matches!(
                members.get("type").and_then(Value::as_str),
                Some("image" | "audio")
            );
        match (name, member) {
            ("_meta", Value::Object(meta)) => self.meta(meta),
            ("blob", Value::String(data)) => self.sink.blob(data).into(),
            ("data", Value::String(data)) if is_media => self.sink.blob(data).into(),
            ("text", Value::String(text)) => self.text(text, is_forced, from).into(),
            ("content", Value::Object(content)) if !is_content(content) => {
                self.data(member, is_forced)
            }
            ("inputRequests", Value::Object(requests)) => {
                let mut out = Map::new();
                for (key, request) in requests {
                    let request = self.protocol(request, is_forced, from);
                    put(&mut out, self.sink.value(key, false), request);
                }
                Value::Object(out)
            }
            (
                "arguments" | "structuredContent" | "inputResponses" | "metadata" | "data"
                | "context" | "requestedSchema",
                _,
            ) => self.data(member, is_forced),
            _ if PROTOCOL_NAMES.contains(&name) => self.protocol(member, is_forced, from),
            _ => self.data(member, is_forced),
        }
    }

    /// What either side adds to a message: the protocol's own members stay.
    fn meta(&mut self, meta: &Map<String, Value>) -> Value {
        let mut out = Map::new();
        for (name, member) in meta {
            if name == "progressToken" || name.starts_with(META_PREFIX) {
                put(&mut out, name.clone(), member.clone());
            } else {
                let member = self.member(name, member);
                put(&mut out, self.sink.value(name, false), member);
            }
        }
        Value::Object(out)
    }

    /// The text of a result: JSON as JSON, anything else a value a line.
    fn text(&mut self, text: &str, is_forced: bool, from: Who) -> String {
        if let Some(json) = self.json(text, is_forced) {
            return json;
        }
        if from != Who::Proxy {
            return by_line(text, |line| self.sink.value(line, is_forced));
        }
        // Several results in one text, each under a line that says whose it is.
        let parts: Vec<String> = text
            .split("\n\n")
            .map(|part| self.part(part, is_forced))
            .collect();
        parts.join("\n\n")
    }

    /// An object or array as compact JSON; nothing when the text is neither.
    fn json(&mut self, text: &str, is_forced: bool) -> Option<String> {
        let json: Value = serde_json::from_str(text).ok()?;
        is_object(&json).then(|| self.data(&json, is_forced).to_string())
    }

    /// A part of a text of the proxy's own: a line `TOOL ARGUMENTS:` and a result, or what it
    /// says of a call that was not made.
    fn part(&mut self, part: &str, is_forced: bool) -> String {
        if part.starts_with(LOOKUPS_HEADER) {
            return part.to_owned();
        }
        if let Some(json) = self.json(part, is_forced) {
            return json;
        }
        let (first, rest) = part
            .split_once('\n')
            .map_or((part, None), |(first, rest)| (first, Some(rest)));
        let head = self
            .head(first, is_forced)
            .unwrap_or_else(|| self.sink.value(first, is_forced));
        match rest {
            None => head,
            Some(rest) => {
                let rest = self
                    .json(rest, is_forced)
                    .unwrap_or_else(|| by_line(rest, |line| self.sink.value(line, is_forced)));
                format!("{head}\n{rest}")
            }
        }
    }

    /// A line that begins with a tool's name and its arguments as JSON.
    fn head(&mut self, line: &str, is_forced: bool) -> Option<String> {
        const REFUSED: &str = " was refused by the policy check: ";
        const ENDINGS: [&str; 4] = [
            ":",
            " (error):",
            " got no answer from the server",
            " was not run",
        ];
        let (tool, rest) = line.split_once(' ')?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let arguments = values.next()?.ok().filter(is_object)?;
        let (_, ending) = rest.split_at_checked(values.byte_offset())?;
        let ending = match ending.strip_prefix(REFUSED) {
            Some(reason) => format!("{REFUSED}{}", self.sink.line(reason)),
            None if ENDINGS.contains(&ending) => ending.to_owned(),
            None => return None,
        };
        Some(format!(
            "{tool} {}{ending}",
            self.data(&arguments, is_forced)
        ))
    }
}

fn is_object(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

/// Whether an object is an item of content, and not what a user filled into a form.
fn is_content(object: &Map<String, Value>) -> bool {
    const KINDS: [&str; 7] = [
        "text",
        "image",
        "audio",
        "resource",
        "resource_link",
        "tool_use",
        "tool_result",
    ];
    object
        .get("type")
        .and_then(Value::as_str)
        .is_some_and(|kind| KINDS.contains(&kind))
}

/// Each line of `text` rewritten; the line breaks stay.
fn by_line(text: &str, rewrite: impl FnMut(&str) -> String) -> String {
    text.split('\n').map(rewrite).collect::<Vec<_>>().join("\n")
}

/// Adds a member. When there is one of this name, by a hash or by chance, both are kept.
fn put(members: &mut Map<String, Value>, name: String, member: Value) {
    let mut unique = name;
    if members.contains_key(&unique) {
        let taken = unique;
        let mut count = 2;
        unique = format!("{taken}_{count}");
        while members.contains_key(&unique) {
            count += 1;
            unique = format!("{taken}_{count}");
        }
    }
    members.insert(unique, member);
}
