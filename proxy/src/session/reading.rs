//! What is looked at: lines that are one JSON object, and with guards on, nothing else passes.

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;
use stretto_trace::mcp::embedded;

use crate::{
    message::Heads,
    session::replies,
    skim::{Members, Skim},
};

/// The line as a message, or a batch of them; nothing when the log would hold it as raw text.
pub(crate) fn message(content: &[u8]) -> Option<Value> {
    serde_json::from_slice(embedded(content)?).ok()
}

/// Why a host's line does not pass while guards are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// Programs may read it in more than one way, or in one that the proxy cannot follow.
    Unclear,
    /// It is a batch with a `tools/call` in it, which would escape the check.
    CallInBatch,
}

impl Unread {
    /// What the host and the user are told about it.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::Unclear => {
                "with --guards, a line must be one JSON object that reads the same everywhere \
                 (UTF-8, no repeated members, no carriage return inside, numbers and nesting within limits)"
            }
            Self::CallInBatch => "with --guards, calls must be sent one by one, not in a batch",
        }
    }
}

/// Whether a host's line may pass the guards as far as its form goes. Servers are often more
/// forgiving readers than the guards, so a line that two programs could take differently does not pass.
///
/// # Errors
/// It may not.
pub(crate) fn is_clear(content: &[u8]) -> Result<(), Unread> {
    if content.iter().all(u8::is_ascii_whitespace) {
        return Ok(());
    }
    let has_call = Heads::of(content).is_some_and(|heads| {
        matches!(heads, Heads::Batch(_))
            && heads
                .iter()
                .any(|head| head.method.as_deref() == Some("tools/call"))
    });
    if has_call {
        return Err(Unread::CallInBatch);
    }
    let clear =
        !content.contains(&b'\r') && embedded(content).is_some() && objects_are_clear(content);
    if clear { Ok(()) } else { Err(Unread::Unclear) }
}

/// Whether the line is an object, or an array of objects, none of them with a repeated member that matters.
fn objects_are_clear(content: &[u8]) -> bool {
    let mut skim = Skim::new(content);
    if skim.takes(b'[') {
        while let Some(true) = skim.next_item(b']') {
            if !skim.value().is_some_and(object_is_clear) {
                return false;
            }
        }
        return true;
    }
    skim.value().is_some_and(object_is_clear)
}

fn object_is_clear(object: &[u8]) -> bool {
    let Some(members) = clear_members(object, &MESSAGE) else {
        return false;
    };
    let find = |name: &str| {
        members
            .iter()
            .find(|(this, _)| this == name)
            .map(|(_, value)| *value)
    };
    let Some(params) = find("params").filter(|params| params.starts_with(b"{")) else {
        return true;
    };
    let is_call = find("method") == Some(br#""tools/call""#);
    let Some(members) = clear_members(params, if is_call { &CALL } else { &[] }) else {
        return false;
    };
    let arguments = members.iter().find(|(name, _)| name == "arguments");
    arguments.is_none_or(|(_, arguments)| serde_json::from_slice::<NoRepeats>(arguments).is_ok())
}

/// The members that a message has by name.
const MESSAGE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// The members that a call has by name.
const CALL: [&str; 2] = ["name", "arguments"];

/// An object's members; nothing when it is none, when a member is repeated, or when one is
/// spelled like one of the `known`, but for the case: there are readers that do not mind.
fn clear_members<'a>(object: &'a [u8], known: &[&str]) -> Option<Vec<(String, &'a [u8])>> {
    let mut skim = Skim::new(object);
    let mut members = Members::of(&mut skim)?;
    let mut names = HashSet::new();
    let mut found = Vec::new();
    while let Some((name, value)) = members.next().ok()? {
        let name: String = serde_json::from_slice(name).ok()?;
        let is_misspelled = known
            .iter()
            .any(|known| name != *known && name.to_lowercase() == *known);
        if is_misspelled || !names.insert(name.clone()) {
            return None;
        }
        found.push((name, value));
    }
    Some(found)
}

/// A value in which no object has a member twice, at any depth.
struct NoRepeats;

impl<'de> Deserialize<'de> for NoRepeats {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

macro_rules! takes {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E: Error>(self, _: $type) -> Result<Self, E> {
            Ok(self)
        })*
    };
}

impl<'de> Visitor<'de> for NoRepeats {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    takes!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_unit<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            members.next_value::<Self>()?;
            if !names.insert(name) {
                return Err(A::Error::custom("a repeated member"));
            }
        }
        Ok(self)
    }
}

/// What a host hears about a line that was not forwarded, if it may wait for an answer.
pub(crate) struct Unanswered {
    /// The line to send it.
    pub(crate) answer: Option<String>,
    /// The line's id, as it was spelled, where one can be read.
    pub(crate) id: Option<String>,
}

/// What is said about a line that does not pass.
pub(crate) fn unanswered(content: &[u8], unread: Unread) -> Unanswered {
    let why = unread.why();
    let mut skim = Skim::new(content);
    if skim.takes(b'[') {
        let mut errors = Vec::new();
        while let Some(true) = skim.next_item(b']') {
            let Some(item) = skim.value() else { break };
            if let Asked::Request(id) = Asked::of(item) {
                errors.push(replies::error(&id, replies::INVALID_REQUEST, why));
            }
        }
        let answer = (!errors.is_empty()).then(|| format!("[{}]", errors.join(",")));
        let answer = answer.or_else(|| Heads::of(content).is_none().then(|| parse_error(why)));
        return Unanswered { answer, id: None };
    }
    match Asked::of(content) {
        Asked::Request(id) => Unanswered {
            answer: Some(replies::error(&id, replies::INVALID_REQUEST, why)),
            id: Some(id),
        },
        Asked::Unknown => Unanswered {
            answer: Some(parse_error(why)),
            id: None,
        },
        Asked::Nothing => Unanswered {
            answer: None,
            id: None,
        },
    }
}

fn parse_error(why: &str) -> String {
    replies::error("null", replies::PARSE_ERROR, why)
}

/// Whether somebody waits for an answer to an unclear message.
enum Asked {
    /// A request with an id that can be read, spelled so.
    Request(String),
    /// It cannot be told to be none.
    Unknown,
    /// A notification or a response.
    Nothing,
}

impl Asked {
    fn of(object: &[u8]) -> Self {
        let mut skim = Skim::new(object);
        let (mut ids, mut has_method) = (Vec::new(), false);
        let Some(mut members) = Members::of(&mut skim) else {
            return Self::Unknown;
        };
        loop {
            match members.next() {
                Ok(Some((name, value))) => {
                    match serde_json::from_slice::<String>(name).as_deref() {
                        Ok("id") => ids.push(value),
                        Ok("method") => has_method = true,
                        _ => {}
                    }
                }
                Ok(None) => break,
                Err(_) => return Self::Unknown,
            }
        }
        if !skim.is_at_end() {
            return Self::Unknown;
        }
        match (has_method, ids.as_slice()) {
            (false, _) | (true, [] | [b"null"]) => Self::Nothing,
            (true, [id]) => match embedded(id).and_then(|id| str::from_utf8(id).ok()) {
                Some(id) => Self::Request(id.to_owned()),
                None => Self::Unknown,
            },
            (true, _) => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(arguments: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"x","arguments":{arguments}}}}}"#
        )
    }

    #[test]
    fn what_reads_the_same_everywhere_passes() {
        for line in [
            "",
            "  \t",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"id":1,"result":{"a":1,"a":2}}"#,
            r#"[{"id":1,"method":"ping"},{"id":2,"method":"tools/list"}]"#,
            &call(r#"{"a":{"b":[{"c":1}]},"b":{"c":1}}"#),
            &format!(
                r#"{{"id":1,"method":"x","params":{}{}}}"#,
                "[".repeat(120),
                "]".repeat(120)
            ),
        ] {
            assert_eq!(is_clear(line.as_bytes()), Ok(()), "{line}");
        }
    }

    #[test]
    fn what_programs_read_differently_does_not_pass() {
        for line in [
            "hello".into(),
            "7".into(),
            "null".into(),
            "[1]".into(),
            format!("\u{feff}{}", call("{}")),
            format!("{} {}", call("{}"), call("{}")),
            format!("{}\r{}", call("{}"), call("{}")),
            call(r#"{"a":1,"a":2}"#),
            call(r#"{"a":[{"b":1,"b":2}]}"#),
            call(r#"{"a":1,"\u0061":2}"#),
            call(r#"{"a":1e999}"#),
            call(r#"{"a":"\ud800"}"#),
            call(&format!("{}{}", "[".repeat(200), "]".repeat(200))),
            r#"{"id":1,"method":"ping","method":"tools/call"}"#.into(),
            r#"{"id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#.into(),
            r#"{"id":1,"id":2,"result":{}}"#.into(),
            r#"{"id":1,"method":"ping","Method":"tools/call"}"#.into(),
            r#"{"id":1,"METHOD":"tools/call"}"#.into(),
            r#"{"id":1,"method":"tools/call","params":{"name":"a","Name":"b"}}"#.into(),
            r#"[{"id":1,"method":"ping","method":"x"}]"#.into(),
        ] {
            assert_eq!(is_clear(line.as_bytes()), Err(Unread::Unclear), "{line}");
        }
        assert_eq!(
            is_clear(b"{\"id\":1,\"method\":\"\xff\"}"),
            Err(Unread::Unclear)
        );
    }

    #[test]
    fn a_batch_with_a_call_does_not_pass() {
        for line in [
            format!("[{}]", call("{}")),
            format!(
                r#"[{{"id":1,"method":"ping"}},{}]"#,
                call(r#"{"a":1,"a":2}"#)
            ),
        ] {
            assert_eq!(
                is_clear(line.as_bytes()),
                Err(Unread::CallInBatch),
                "{line}"
            );
        }
    }

    fn answer(line: &str) -> Option<String> {
        unanswered(line.as_bytes(), is_clear(line.as_bytes()).unwrap_err()).answer
    }

    fn code_and_id(line: &str) -> Option<(i64, Value)> {
        let answer: Value = serde_json::from_str(&answer(line)?).unwrap();
        Some((
            answer["error"]["code"].as_i64().unwrap(),
            answer["id"].clone(),
        ))
    }

    #[test]
    fn who_may_wait_for_an_answer_gets_an_error() {
        assert_eq!(
            code_and_id(&call(r#"{"a":1,"a":1}"#)),
            Some((-32600, 7.into()))
        );
        assert_eq!(
            code_and_id(r#"{"id":"a\u0062","method":"x","x":1e999}"#),
            Some((-32600, "ab".into()))
        );
        assert_eq!(code_and_id("hello"), Some((-32700, Value::Null)));
        assert_eq!(
            code_and_id(r#"{"id":1,"id":2,"method":"x"}"#),
            Some((-32700, Value::Null))
        );
        assert_eq!(
            code_and_id(&format!("{}\r{}", call("{}"), call("{}"))),
            Some((-32700, Value::Null))
        );
        assert_eq!(code_and_id(r#"{"method":"x","method":"y"}"#), None);
        assert_eq!(
            code_and_id(r#"{"id":null,"method":"x","method":"y"}"#),
            None
        );
        assert_eq!(code_and_id(r#"{"id":1,"id":1,"result":{}}"#), None);
    }

    #[test]
    fn each_request_of_a_batch_gets_an_error() {
        let batch = format!(
            r#"[{{"method":"n"}},{},{{"id":"p","method":"ping"}},{{"id":3,"result":1}}]"#,
            call("{}")
        );
        let errors: Value = serde_json::from_str(&answer(&batch).unwrap()).unwrap();
        let ids: Vec<&Value> = errors
            .as_array()
            .unwrap()
            .iter()
            .map(|error| &error["id"])
            .collect();
        assert_eq!(ids, [&Value::from(7), &Value::from("p")]);
        assert_eq!(errors[0]["error"]["code"], -32600);
        assert_eq!(answer(r#"[{"method":"tools/call"}]"#), None);
    }
}
