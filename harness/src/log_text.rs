//! A session log with its lines as they were written, which is what the promises and the
//! transcript compare.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::message::Message;

/// One entry of a log.
#[derive(Debug)]
pub(crate) struct LogLine<'a> {
    pub(crate) t_ms: u64,
    pub(crate) from: &'a str,
    /// The wire's line as the log holds it: JSON as it was sent, or text.
    pub(crate) content: String,
}

#[derive(Deserialize)]
struct Members<'a> {
    t_ms: u64,
    from: &'a str,
    // A null message is one, and is not the same as none.
    #[serde(borrow, default, deserialize_with = "present")]
    message: Option<&'a RawValue>,
    raw: Option<String>,
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl LogLine<'_> {
    pub(crate) fn message(&self) -> Message {
        Message::of(self.content.clone().into_bytes())
    }
}

/// The entries of a log; lines that are none are left out, and the promise `log` says so.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = LogLine<'_>> {
    text.lines().skip(1).filter_map(entry)
}

/// One line of a log as an entry, if it is one.
pub(crate) fn entry(line: &str) -> Option<LogLine<'_>> {
    let members: Members<'_> = serde_json::from_str(line).ok()?;
    let content = members
        .message
        .map(|message| message.get().to_owned())
        .or(members.raw)?;
    Some(LogLine {
        t_ms: members.t_ms,
        from: members.from,
        content,
    })
}

/// What the log holds of a line that crossed: JSON less the blanks around it, or text with what is no UTF-8 replaced.
pub(crate) fn as_logged(line: &[u8]) -> String {
    let content = crate::message::content(line);
    let text = String::from_utf8_lossy(content).into_owned();
    let is_json =
        std::str::from_utf8(content).is_ok() && serde_json::from_str::<Value>(&text).is_ok();
    if is_json {
        text.trim_matches([' ', '\t', '\r', '\n']).to_owned()
    } else {
        text
    }
}
