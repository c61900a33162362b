//! What revision 2026-07-28 asks of a client over HTTP: headers that repeat what the body says.
//!
//! There is no session in that revision, so each line says for itself that it is of it.

use std::{borrow::Cow, fmt::Write as _};

use base64::{Engine, prelude::BASE64_STANDARD};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use memchr::memmem;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::tools::KnownTools;

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// What every key of the revision's `_meta` begins with.
const PREFIX: &[u8] = b"io.modelcontextprotocol";

/// What a line says of itself that its headers have to say too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Modern {
    /// The revision it is of.
    pub(super) version: String,
    method: Option<String>,
    /// What the method is about: a tool, a prompt, a resource or a task.
    name: Option<String>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, rename = "taskId")]
    task_id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'a RawValue>,
}

impl Modern {
    /// What `line` says, if it says that it is of a revision without sessions.
    pub(super) fn of(line: &[u8]) -> Option<Self> {
        memmem::find(line, PREFIX)?;
        let message: Message<'_> = serde_json::from_slice(line).ok()?;
        let params = message.params?;
        let version = text(params.meta?.version)?;
        let name = match message.method.as_deref() {
            Some("tools/call" | "prompts/get") => text(params.name),
            Some("resources/read") => text(params.uri),
            Some("tasks/get" | "tasks/update" | "tasks/cancel") => text(params.task_id),
            _ => None,
        };
        Some(Self {
            version,
            method: message.method.map(Cow::into_owned),
            name,
        })
    }

    /// The same revision, for a message that does not name it.
    pub(super) fn alike(version: String, method: Option<&str>) -> Self {
        Self {
            version,
            method: method.map(str::to_owned),
            name: None,
        }
    }

    /// The headers for a line, `body`, of which this was read.
    pub(super) fn headers(&self, body: &[u8], tools: &KnownTools) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(VERSION, header_value(&self.version));
        if let Some(method) = &self.method {
            headers.insert(METHOD, header_value(method));
        }
        if let Some(name) = &self.name {
            headers.insert(NAME, header_value(name));
        }
        if self.method.as_deref() == Some("tools/call")
            && let Some(tool) = self.name.as_deref()
        {
            tools.mirror(tool, body, &mut headers);
        }
        headers
    }
}

fn text(raw: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(raw?.get()).ok()
}

/// A text as a header's value: as it is, or marked and in base64 when HTTP would change it, or a
/// reader would take it for marked.
pub(super) fn header_value(text: &str) -> HeaderValue {
    const MARK: (&str, &str) = ("=?base64?", "?=");
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim_ascii() == text
        && !text.is_empty()
        && !(text.starts_with(MARK.0) && text.ends_with(MARK.1));
    let value = if is_plain {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!(
            "{}{}{}",
            MARK.0,
            BASE64_STANDARD.encode(text),
            MARK.1
        ))
    };
    HeaderValue::from_str(&value).expect("visible ASCII and inner blanks are allowed")
}

/// An argument as a header has it; nothing when it is no string, number or boolean.
pub(super) fn argument_text(argument: &Value) -> Option<Cow<'_, str>> {
    /// Up to here a float holds every integer: 2^53.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match argument {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Bool(value) => Some(Cow::Borrowed(if *value { "true" } else { "false" })),
        Value::Number(number) => {
            let mut text = String::new();
            match number.as_f64() {
                // The integer 2 may be spelled 2.0 or 2e0.
                Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT => {
                    write!(text, "{float:.0}").ok()?;
                }
                _ => write!(text, "{number}").ok()?,
            }
            Some(Cow::Owned(text))
        }
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(line: &str) -> Vec<(String, String)> {
        let modern = Modern::of(line.as_bytes()).expect("a modern line");
        let headers = modern.headers(line.as_bytes(), &KnownTools::default());
        let mut headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().expect("text").to_owned()))
            .collect();
        headers.sort();
        headers
    }

    fn line(method: &str, params: &Value) -> String {
        let mut params = params.clone();
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
    }

    #[test]
    fn headers_say_what_the_body_says() {
        let names = |method: &str, params: &Value| {
            let headers = headers(&line(method, params));
            headers
                .into_iter()
                .find(|(name, _)| name == "mcp-name")
                .map(|(_, value)| value)
        };
        assert_eq!(
            names("tools/call", &json!({"name": "echo"})).as_deref(),
            Some("echo")
        );
        assert_eq!(
            names("prompts/get", &json!({"name": "p"})).as_deref(),
            Some("p")
        );
        assert_eq!(
            names("resources/read", &json!({"uri": "a:b", "name": "x"})).as_deref(),
            Some("a:b")
        );
        assert_eq!(
            names("tasks/cancel", &json!({"taskId": "t"})).as_deref(),
            Some("t")
        );
        assert_eq!(names("tools/list", &json!({"name": "x"})), None);
        assert_eq!(names("tools/call", &json!({"name": 7})), None);
        assert_eq!(
            headers(&line("a b", &json!({})))[..],
            [
                ("mcp-method".into(), "a b".into()),
                ("mcp-protocol-version".into(), "2026-07-28".into())
            ]
        );
        assert_eq!(
            names("tools/call", &json!({"name": "ünïcode"})).as_deref(),
            Some("=?base64?w7xuw69jb2Rl?=")
        );
    }

    #[test]
    fn only_its_own_meta_makes_a_line_modern() {
        for old in [
            r#"{"id":1,"method":"tools/list"}"#,
            r#"{"id":1,"method":"tools/call","params":{"arguments":{"_meta":{"io.modelcontextprotocol/protocolVersion":"x"}}}}"#,
            r#"{"id":1,"method":"a","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}}"#,
            r#"{"id":1,"method":"a","params":{"_meta":{"io.modelcontextprotocol/related-task":{}}}}"#,
            "io.modelcontextprotocol",
        ] {
            assert_eq!(Modern::of(old.as_bytes()), None, "{old}");
        }
        let escaped = r#"{"id":1,"method":"a","params":{"_meta":{"io.modelcontextprotocol\/protocolVersion":"v"}}}"#;
        assert_eq!(Modern::of(escaped.as_bytes()).expect("modern").version, "v");
    }

    #[test]
    fn values_that_http_would_change_are_marked() {
        for plain in ["a", "a b", "=?base64?x", "~!"] {
            assert_eq!(header_value(plain), plain);
        }
        for (text, value) in [
            ("", "=?base64??="),
            (" a", "=?base64?IGE=?="),
            ("a\n", "=?base64?YQo=?="),
            ("a\tb", "=?base64?YQli?="),
            ("é", "=?base64?w6k=?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ] {
            assert_eq!(header_value(text), value, "{text:?}");
        }
    }

    #[test]
    fn arguments_are_written_as_servers_compare_them() {
        let text = |json: &str| {
            let value: Value = serde_json::from_str(json).expect("JSON");
            argument_text(&value).map(Cow::into_owned)
        };
        assert_eq!(text(r#""a""#).as_deref(), Some("a"));
        assert_eq!(text("true").as_deref(), Some("true"));
        assert_eq!(text("-42").as_deref(), Some("-42"));
        assert_eq!(text("2.0").as_deref(), Some("2"));
        assert_eq!(text("1e3").as_deref(), Some("1000"));
        assert_eq!(
            text("18446744073709551615").as_deref(),
            Some("18446744073709551615")
        );
        for none in ["null", "[]", "{}"] {
            assert_eq!(text(none), None);
        }
    }
}
