//! A log's other lines: one line of the wire each.

use std::fmt;
use std::io::Write as _;

use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::embeds::{Embeds, embeds};

/// Whose line it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Who {
    /// The host.
    Client,
    /// The MCP server.
    Server,
    /// The proxy, on its own account.
    Proxy,
    /// The conversation between user and agent, which does not cross the wire.
    Context,
}

impl Who {
    /// The name in the log, such as `client`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Proxy => "proxy",
            Self::Context => "context",
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One line of the wire, as a log holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// When it was read, in milliseconds since the session began. Never decreases down a log.
    pub t_ms: u64,
    /// Whose line it was.
    pub from: Who,
    /// What it said.
    pub body: Body,
}

/// What a line said.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// One JSON value: a JSON-RPC message, an array of them (a batch), or anything else.
    Message(Value),
    /// Text that is no JSON value, without its line end.
    Raw(String),
}

impl Entry {
    /// The JSON-RPC messages of the line: the items of a batch, or the one that it is.
    ///
    /// There are none in raw text and in `null`.
    pub fn messages(&self) -> &[Value] {
        match &self.body {
            Body::Message(Value::Array(batch)) => batch,
            Body::Message(Value::Null) | Body::Raw(_) => &[],
            Body::Message(message) => std::slice::from_ref(message),
        }
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut entry = serializer.serialize_struct("Entry", 3)?;
        entry.serialize_field("t_ms", &self.t_ms)?;
        entry.serialize_field("from", &self.from)?;
        match &self.body {
            Body::Message(message) => entry.serialize_field("message", message)?,
            Body::Raw(raw) => entry.serialize_field("raw", raw)?,
        }
        entry.end()
    }
}

impl<'de> Deserialize<'de> for Entry {
    /// Unknown members are ignored. Of `message` and `raw` there must be exactly one; a null
    /// message is one.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename = "a log entry")]
        struct Members {
            t_ms: u64,
            from: Who,
            #[serde(default, deserialize_with = "present")]
            message: Option<Value>,
            #[serde(default, deserialize_with = "present")]
            raw: Option<String>,
        }
        /// A member that is there, even if it is null.
        fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<T>, D::Error> {
            T::deserialize(deserializer).map(Some)
        }

        let members = Members::deserialize(deserializer)?;
        let body = match (members.message, members.raw) {
            (Some(message), None) => Body::Message(message),
            (None, Some(raw)) => Body::Raw(raw),
            (Some(_), Some(_)) => {
                return Err(serde::de::Error::custom("it has both `message` and `raw`"));
            }
            (None, None) => {
                return Err(serde::de::Error::custom(
                    "it has neither `message` nor `raw`",
                ));
            }
        };
        Ok(Self {
            t_ms: members.t_ms,
            from: members.from,
            body,
        })
    }
}

/// Appends the entry for one line of the wire, line feed included.
///
/// `t_ms` is when the line was read, in milliseconds since the session began. `line` comes
/// without its line feed; a carriage return at its end counts as part of the line end.
///
/// A line that is one JSON value is embedded as `message`, spelled as it was sent, without
/// blanks around it. Every other line becomes `raw` text, with U+FFFD for what is not UTF-8:
/// also JSON that a reader could not hold (nested 127 deep, half a surrogate pair, a number
/// out of range), and a value with anything behind it, which could pass for members of the
/// entry.
///
/// ```
/// use stretto_trace::mcp::{Who, encode_entry};
///
/// let mut log = Vec::new();
/// encode_entry(&mut log, 12, Who::Client, br#" {"b":1.0, "a":2}"#);
/// encode_entry(&mut log, 15, Who::Server, br#"1,"raw":"forged""#);
/// assert_eq!(
///     String::from_utf8_lossy(&log),
///     r#"{"t_ms":12,"from":"client","message":{"b":1.0, "a":2}}
/// {"t_ms":15,"from":"server","raw":"1,\"raw\":\"forged\""}
/// "#
/// );
/// ```
pub fn encode_entry(out: &mut Vec<u8>, t_ms: u64, from: Who, line: &[u8]) {
    // The longest frame around a message is 60 bytes.
    out.reserve(line.len() + 64);
    write!(out, "{{\"t_ms\":{t_ms},\"from\":\"{}\",", from.as_str())
        .expect("memory takes every write");
    let json = without_blanks(line);
    if let Some(embeds) = embeds(json) {
        out.extend_from_slice(b"\"message\":");
        let start = out.len();
        out.extend_from_slice(json);
        if embeds == Embeds::WithoutLineFeeds {
            for byte in out.iter_mut().skip(start).filter(|byte| **byte == b'\n') {
                *byte = b' ';
            }
        }
    } else {
        out.extend_from_slice(b"\"raw\":");
        serde_json::to_writer(&mut *out, &Text(without_line_end(line)))
            .expect("memory takes every write");
    }
    out.extend_from_slice(b"}\n");
}

/// What an entry's `message` is for `line`, when that is part of the line as it stands.
///
/// With [`encode_head`] before it and `}` and a line feed behind it, it is what
/// [`encode_entry`] makes of the line, without a copy of it. None for a line that becomes
/// `raw` text, or that holds a line feed.
pub fn embedded(line: &[u8]) -> Option<&[u8]> {
    let json = without_blanks(line);
    (embeds(json)? == Embeds::Verbatim).then_some(json)
}

/// Appends the beginning of an entry, up to where its message comes.
pub fn encode_head(out: &mut Vec<u8>, t_ms: u64, from: Who) {
    write!(
        out,
        "{{\"t_ms\":{t_ms},\"from\":\"{}\",\"message\":",
        from.as_str()
    )
    .expect("memory takes every write");
}

/// `line` without the blanks that JSON allows around a value, which are not all that ASCII has.
fn without_blanks(mut line: &[u8]) -> &[u8] {
    const BLANKS: &[u8] = b" \t\r\n";
    while let [first, rest @ ..] = line
        && BLANKS.contains(first)
    {
        line = rest;
    }
    while let [rest @ .., last] = line
        && BLANKS.contains(last)
    {
        line = rest;
    }
    line
}

/// `line` without the carriage return of its line end, and the line feed if it came along.
fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Bytes as text, written without a copy of them.
struct Text<'a>(&'a [u8]);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            f.write_str(chunk.valid())?;
            if !chunk.invalid().is_empty() {
                f.write_str("\u{FFFD}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
