//! The heads of messages: enough to tell what a line is, without reading what it carries.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::skim::{Members, Skim};

/// A request's id: the number 1 and the text "1" are two.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Id {
    /// A string, by what it says.
    Text(String),
    /// An integer that every program can hold exactly.
    Number(i64),
    /// Anything else that is not null, by its spelling: programs do not agree about it.
    Odd(String),
}

/// Integers from here on are rounded by programs that know only 64-bit floats: 2^53.
const UNSAFE_FROM: u64 = 1 << 53;

impl Id {
    /// The id that is spelled `json`; a null is none.
    pub(crate) fn of(json: &[u8]) -> Option<Self> {
        if json == b"null" {
            return None;
        }
        if let Some(text) = text(json) {
            return Some(Self::Text(text.into_owned()));
        }
        let spelling = String::from_utf8_lossy(json);
        Some(match spelling.parse::<i64>() {
            Ok(number) if number.unsigned_abs() < UNSAFE_FROM => Self::Number(number),
            _ => Self::Odd(spelling.into()),
        })
    }

    /// The id as JSON.
    pub(crate) fn to_json(&self) -> String {
        match self {
            Self::Text(said) => Value::from(said.as_str()).to_string(),
            Self::Number(number) => number.to_string(),
            Self::Odd(spelling) => spelling.clone(),
        }
    }
}

/// What a message is about.
#[derive(Debug, Default)]
pub(crate) struct Head<'a> {
    /// The id, unless it is missing or null.
    pub(crate) id: Option<Id>,
    /// The method, if it is text.
    pub(crate) method: Option<Cow<'a, str>>,
    /// Whether it holds a `result` or an `error`.
    pub(crate) has_outcome: bool,
}

impl Head<'_> {
    /// Whether this is a response, be it one that names no request.
    pub(crate) fn is_response(&self) -> bool {
        self.method.is_none() && self.has_outcome
    }
}

/// The heads of a line.
#[derive(Debug)]
pub(crate) enum Heads<'a> {
    /// A line that is one message.
    One(Head<'a>),
    /// An array of messages.
    Batch(Vec<Head<'a>>),
}

impl<'a> Heads<'a> {
    /// Reads a line's heads, leniently: of the rest, only the structure is looked at.
    ///
    /// Of a repeated member, the last counts, as it does for most servers. None when the line
    /// is no object or array of objects.
    pub(crate) fn of(line: &'a [u8]) -> Option<Self> {
        let mut skim = Skim::new(line);
        let heads = if skim.takes(b'[') {
            let mut heads = Vec::new();
            while skim.next_item(b']')? {
                heads.push(Head::of(&mut skim)?);
            }
            Self::Batch(heads)
        } else {
            Self::One(Head::of(&mut skim)?)
        };
        skim.is_at_end().then_some(heads)
    }

    /// The heads, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Head<'a>> {
        match self {
            Self::One(head) => std::slice::from_ref(head).iter(),
            Self::Batch(heads) => heads.iter(),
        }
    }

    /// The request that a `notifications/cancelled` is about.
    pub(crate) fn cancelled(line: &[u8]) -> Option<Id> {
        #[derive(Deserialize)]
        struct Notification<'a> {
            #[serde(borrow)]
            params: Params<'a>,
        }
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow, rename = "requestId")]
            request_id: &'a RawValue,
        }
        let notification: Notification<'_> = serde_json::from_slice(line).ok()?;
        Id::of(notification.params.request_id.get().as_bytes())
    }
}

impl<'a> Head<'a> {
    fn of(skim: &mut Skim<'a>) -> Option<Self> {
        let mut head = Self::default();
        let mut members = Members::of(skim)?;
        while let Some((name, value)) = members.next().ok()? {
            match &*unquoted(name) {
                b"id" => head.id = Id::of(value),
                b"method" => head.method = text(value),
                b"result" | b"error" => head.has_outcome = true,
                _ => {}
            }
        }
        Some(head)
    }
}

/// What stands between a name's quotes, without escapes. It need not be UTF-8.
fn unquoted(name: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', name).is_some() {
        text(name).map_or(Cow::Borrowed(name), |text| {
            text.into_owned().into_bytes().into()
        })
    } else {
        Cow::Borrowed(
            name.get(1..name.len().saturating_sub(1))
                .unwrap_or_default(),
        )
    }
}

/// Text, borrowed where it holds no escapes; nothing for any other value.
fn text(json: &[u8]) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if inner.contains(&b'\\') {
        serde_json::from_slice(json).ok().map(Cow::Owned)
    } else {
        str::from_utf8(inner).ok().map(Cow::Borrowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(line: &str) -> (Option<Id>, Option<String>) {
        match Heads::of(line.as_bytes()).expect("a message") {
            Heads::One(head) => (head.id, head.method.map(Cow::into_owned)),
            Heads::Batch(_) => panic!("a batch"),
        }
    }

    #[test]
    fn a_head_is_found_wherever_it_stands() {
        let line =
            r#"{"params":{"id":2,"method":"no"},"m\u0065thod":"a\/b","id":"x","jsonrpc":"2.0"}"#;
        assert_eq!(head(line), (Some(Id::Text("x".into())), Some("a/b".into())));
    }

    #[test]
    fn a_method_that_is_no_text_is_none() {
        for odd in ["1", "-1", "1.5", "true", "null", "[1,[2]]", r#"{"a":{}}"#] {
            assert_eq!(
                head(&format!(r#"{{"method":{odd},"id":3}}"#)),
                (Some(Id::Number(3)), None),
                "{odd}"
            );
        }
    }

    #[test]
    fn the_last_of_repeated_members_counts() {
        assert_eq!(
            head(r#"{"id":1,"id":2,"method":"a","method":"b"}"#),
            (Some(Id::Number(2)), Some("b".into()))
        );
    }

    #[test]
    fn ids_keep_their_kind() {
        let id = |text: &str| head(&format!(r#"{{"id":{text}}}"#)).0;
        assert_eq!(id("null"), None);
        assert_eq!(id("0"), Some(Id::Number(0)));
        assert_eq!(id("-7"), Some(Id::Number(-7)));
        assert_eq!(id(r#""0""#), Some(Id::Text("0".into())));
        assert_eq!(id("9007199254740991"), Some(Id::Number((1 << 53) - 1)));
        assert_eq!(
            id("9007199254740992"),
            Some(Id::Odd("9007199254740992".into()))
        );
        assert_eq!(id("2.0"), Some(Id::Odd("2.0".into())));
        assert_eq!(id("[]"), Some(Id::Odd("[]".into())));
    }

    #[test]
    fn an_id_is_written_as_the_same_json_value() {
        for text in ["0", "-7", r#""a\"b""#, "9007199254740993", "2.0", "[1]"] {
            let id = head(&format!(r#"{{"id":{text}}}"#)).0.expect("an id");
            assert_eq!(id.to_json(), text);
        }
    }

    #[test]
    fn a_response_has_an_outcome_and_no_method() {
        let is_response = |line: &str| match Heads::of(line.as_bytes()).expect("a message") {
            Heads::One(head) => head.is_response(),
            Heads::Batch(_) => panic!("a batch"),
        };
        assert!(is_response(r#"{"id":1,"result":null}"#));
        assert!(is_response(r#"{"id":null,"error":{"code":1}}"#));
        assert!(!is_response(r#"{"id":1}"#));
        assert!(!is_response(r#"{"id":1,"method":"x","result":{}}"#));
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        for line in [
            "",
            "7",
            "hello",
            "{",
            r#"{"id":1}{"id":2}"#,
            "[1]",
            r#"{"id"}"#,
            r#"{"id":1,"x":"}"#,
            "[{}",
            "[{}]]",
        ] {
            assert!(Heads::of(line.as_bytes()).is_none(), "{line}");
        }
    }
}
