//! A line that crossed, as the host sees it: what kind of message it is, and its gist.

use crate::text::append;
use serde_json::Value;

/// What a line is, seen from a host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Request {
        id: Value,
        method: String,
    },
    Notification {
        method: String,
    },
    /// An answer; `id` is null when the error belongs to no request.
    Response {
        id: Value,
    },
    /// Anything that is no single JSON-RPC message: a batch, or text.
    Other,
}

/// A line, with what could be read of it.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// With its line end.
    pub(crate) bytes: Vec<u8>,
    pub(crate) kind: Kind,
    value: Option<Value>,
}

impl Message {
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        let value: Option<Value> = serde_json::from_slice(content(&bytes)).ok();
        let kind = value.as_ref().map_or(Kind::Other, kind_of);
        Self { bytes, kind, value }
    }

    /// The line less its line end.
    pub(crate) fn content(&self) -> &[u8] {
        content(&self.bytes)
    }

    /// The line less its line end, with what is no UTF-8 replaced.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(self.content()).into_owned()
    }

    /// Whether the line is written as [`usual_form`] writes it.
    pub(crate) fn is_usual(&self) -> bool {
        self.value
            .as_ref()
            .is_some_and(|value| usual_form(value).as_bytes() == self.content())
    }

    pub(crate) fn member(&self, name: &str) -> Option<&Value> {
        self.value
            .as_ref()?
            .get(name)
            .filter(|value| !value.is_null())
    }

    /// Whether the result is marked as an error.
    pub(crate) fn is_error(&self) -> bool {
        self.member("result")
            .and_then(|result| result.get("isError"))
            == Some(&Value::Bool(true))
    }

    /// The message of a JSON-RPC error, if this is one.
    pub(crate) fn failure(&self) -> Option<String> {
        let error = self.member("error")?;
        let message = error
            .get("message")
            .and_then(Value::as_str)
            .unwrap_or_default();
        Some(match error.get("code") {
            Some(code) => format!("{code} {message}"),
            None => message.to_owned(),
        })
    }

    /// What `contains` looks into: a call's text, an error's message, else the line itself.
    pub(crate) fn said(&self) -> String {
        if let Some(failure) = self.failure() {
            return failure;
        }
        self.member("result")
            .and_then(result_text)
            .unwrap_or_else(|| self.text())
    }

    /// How the line ended, when that was not LF.
    pub(crate) fn odd_end(&self) -> &'static str {
        if self.bytes.ends_with(b"\r\n") {
            " (CR LF)"
        } else if self.bytes.ends_with(b"\n") {
            ""
        } else {
            " (no line end)"
        }
    }
}

/// A line less its LF or CR LF.
pub(crate) fn content(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn kind_of(value: &Value) -> Kind {
    let Value::Object(members) = value else {
        return Kind::Other;
    };
    let id = members.get("id").filter(|id| !id.is_null());
    match (members.get("method").and_then(Value::as_str), id) {
        (Some(method), Some(id)) => Kind::Request {
            id: id.clone(),
            method: method.to_owned(),
        },
        (Some(method), None) => Kind::Notification {
            method: method.to_owned(),
        },
        (None, _) if members.contains_key("result") || members.contains_key("error") => {
            Kind::Response {
                id: id.cloned().unwrap_or(Value::Null),
            }
        }
        (None, _) => Kind::Other,
    }
}

/// The text of a result: its text items, one line each; nothing when it has no content list.
pub(crate) fn result_text(result: &Value) -> Option<String> {
    let items = result.get("content")?.as_array()?;
    let texts: Vec<&str> = items
        .iter()
        .filter_map(|item| item.get("text").and_then(Value::as_str))
        .collect();
    match (texts.is_empty(), result.get("structuredContent")) {
        (true, Some(structured)) => Some(structured.to_string()),
        _ => Some(texts.join("\n")),
    }
}

/// Bytes as one line of text: control characters escaped, what is no UTF-8 as `\xNN`.
pub(crate) fn visible(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        // Most texts have nothing to escape, and some are very long.
        if chunk.valid().contains(is_unseen) {
            escape_controls(chunk.valid(), &mut text);
        } else {
            text.push_str(chunk.valid());
        }
        for byte in chunk.invalid() {
            append(&mut text, format_args!("\\x{byte:02x}"));
        }
    }
    text
}

fn is_unseen(c: char) -> bool {
    c.is_control() || c == '\u{feff}'
}

fn escape_controls(valid: &str, text: &mut String) {
    for c in valid.chars() {
        if is_unseen(c) {
            text.extend(c.escape_default());
        } else {
            text.push(c);
        }
    }
}

/// A message as hosts usually write it: compact, its envelope first.
pub(crate) fn usual_form(message: &Value) -> String {
    let Value::Object(members) = message else {
        return message.to_string();
    };
    let envelope = ["jsonrpc", "id", "method", "params", "result", "error"];
    let known = envelope
        .iter()
        .filter_map(|name| Some((*name, members.get(*name)?)));
    let others = members
        .iter()
        .filter(|(name, _)| !envelope.contains(&name.as_str()))
        .map(|(name, value)| (name.as_str(), value));
    let written: Vec<String> = known
        .chain(others)
        .map(|(name, value)| format!("{}:{value}", Value::from(name)))
        .collect();
    format!("{{{}}}", written.join(","))
}

/// Which method each of the host's requests had, to tell what an answer answers.
#[derive(Debug, Default)]
pub(crate) struct Asked(Vec<(Value, String)>);

impl Asked {
    pub(crate) fn note(&mut self, id: Value, method: &str) {
        self.0.push((id, method.to_owned()));
    }

    fn method(&self, id: &Value) -> Option<&str> {
        self.0
            .iter()
            .rev()
            .find(|(asked, _)| asked == id)
            .map(|(_, method)| method.as_str())
    }
}

/// What a message says, in a line or a few: what the transcript shows.
pub(crate) fn gist(message: &Message, asked: &Asked) -> Vec<String> {
    let mut lines = match &message.kind {
        Kind::Request { id, method } => vec![with(
            &format!("{id} {method}"),
            &params_gist(message, method),
        )],
        Kind::Notification { method } => vec![with(method, &params_gist(message, method))],
        Kind::Response { id } => answer_gist(message, id, asked.method(id)),
        Kind::Other => vec![format!("line {}", visible(message.content()))],
    };
    if let Some(last) = lines.last_mut() {
        last.push_str(message.odd_end());
    }
    lines
}

fn with(head: &str, rest: &str) -> String {
    if rest.is_empty() {
        head.to_owned()
    } else {
        format!("{head} {rest}")
    }
}

fn params_gist(message: &Message, method: &str) -> String {
    let Some(params) = message.member("params") else {
        return String::new();
    };
    let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default();
    match method {
        "initialize" => {
            let capabilities = params
                .get("capabilities")
                .filter(|can| can.as_object().is_some_and(|can| !can.is_empty()));
            with(
                text("protocolVersion"),
                &capabilities.map(Value::to_string).unwrap_or_default(),
            )
        }
        "tools/call" => {
            let arguments = params
                .get("arguments")
                .map(Value::to_string)
                .unwrap_or_default();
            let meta = params
                .get("_meta")
                .map(|meta| format!("_meta {meta}"))
                .unwrap_or_default();
            with(&with(text("name"), &arguments), &meta)
        }
        _ => params.to_string(),
    }
}

fn answer_gist(message: &Message, id: &Value, method: Option<&str>) -> Vec<String> {
    if let Some(error) = message.member("error") {
        let data = error.get("data").map(Value::to_string).unwrap_or_default();
        let code = error.get("code").map(Value::to_string).unwrap_or_default();
        let words = error
            .get("message")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let mut lines = vec![with(&format!("{id} fails {code}"), &data)];
        lines.extend(unfolded(words));
        return lines;
    }
    let Some(result) = message.member("result") else {
        return vec![format!("{id} result null")];
    };
    match method {
        Some("initialize") => vec![initialize_gist(id, result)],
        Some("tools/list") => vec![listing_gist(id, result)],
        Some("tools/call") if result.get("content").is_some() => call_gist(message, id, result),
        _ => vec![format!("{id} result {result}")],
    }
}

fn initialize_gist(id: &Value, result: &Value) -> String {
    let name = |path: &str| {
        result
            .pointer(path)
            .and_then(Value::as_str)
            .unwrap_or("?")
            .to_owned()
    };
    // The log names the version the same way: it changes with every release.
    format!(
        "{id} result {} [VERSION], {}",
        name("/serverInfo/name"),
        name("/protocolVersion")
    )
}

fn listing_gist(id: &Value, result: &Value) -> String {
    let tools = result
        .get("tools")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool.get("name").and_then(Value::as_str))
        .collect();
    let more = result
        .get("nextCursor")
        .map(|cursor| format!(", more at {cursor}"))
        .unwrap_or_default();
    format!("{id} result {}{more}", names.join(", "))
}

fn call_gist(message: &Message, id: &Value, result: &Value) -> Vec<String> {
    let kind = if message.is_error() { "error" } else { "text" };
    let mut lines = vec![format!("{id} {kind}")];
    let items = result
        .get("content")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    for item in items {
        match (
            item.get("type").and_then(Value::as_str),
            item.get("text").and_then(Value::as_str),
        ) {
            (Some("text") | None, Some(text)) => lines.extend(unfolded(text)),
            _ => lines.push(format!("   | {item}")),
        }
    }
    if let Some(structured) = result.get("structuredContent") {
        lines.push(format!("   | structured {structured}"));
    }
    lines
}

fn unfolded(text: &str) -> impl Iterator<Item = String> {
    text.split('\n').map(|line| {
        format!("   | {}", visible(line.as_bytes()))
            .trim_end()
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message {
        Message::of(text.as_bytes().to_vec())
    }

    #[test]
    fn a_message_is_known_by_its_members() {
        let kinds = [
            (
                r#"{"id":1,"method":"ping"}"#,
                Kind::Request {
                    id: 1.into(),
                    method: "ping".into(),
                },
            ),
            (
                r#"{"id":null,"method":"ping"}"#,
                Kind::Notification {
                    method: "ping".into(),
                },
            ),
            (
                r#"{"id":"a","result":{}}"#,
                Kind::Response { id: "a".into() },
            ),
            (
                r#"{"id":null,"error":{}}"#,
                Kind::Response { id: Value::Null },
            ),
            (r#"[{"id":1,"result":{}}]"#, Kind::Other),
            (r#"{"id":1}"#, Kind::Other),
            ("{} {}", Kind::Other),
        ];
        for (text, kind) in kinds {
            assert_eq!(message(text).kind, kind, "{text}");
        }
    }

    #[test]
    fn the_gist_unfolds_a_result_and_names_its_line_end() {
        let mut asked = Asked::default();
        asked.note(3.into(), "tools/call");
        let answer = message(
            "{\"id\":3,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a\\nb\"}],\"isError\":true}}\r\n",
        );
        assert_eq!(
            gist(&answer, &asked),
            ["3 error", "   | a", "   | b (CR LF)"]
        );
    }

    #[test]
    fn what_cannot_be_seen_is_escaped() {
        assert_eq!(visible(b"a\tb\xff\xc3\xa9\0"), "a\\tb\\xff\u{e9}\\u{0}");
    }

    #[test]
    fn the_text_of_a_call_is_its_text_items_or_its_structured_content() {
        let said = |result: &str| message(&format!("{{\"id\":1,\"result\":{result}}}\n")).said();
        assert_eq!(
            said(
                r#"{"content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}"#
            ),
            "a\nb"
        );
        assert_eq!(
            said(r#"{"content":[],"structuredContent":{"x":1}}"#),
            "{\"x\":1}"
        );
    }
}
