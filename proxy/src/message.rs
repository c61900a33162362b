//! The heads of messages: enough to tell what a line is, without reading what it carries.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// A request's id. Two ids are the same only if they are the same JSON value.
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
    /// The id in `raw`; a null is none.
    pub(crate) fn of(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        if text == "null" {
            return None;
        }
        if let Ok(said) = serde_json::from_str::<String>(text) {
            return Some(Self::Text(said));
        }
        match text.parse::<i64>() {
            Ok(number) if number.unsigned_abs() < UNSAFE_FROM => Some(Self::Number(number)),
            _ => Some(Self::Odd(text.to_owned())),
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
    /// Reads a line's heads, leniently: only the structure of the rest is looked at.
    ///
    /// Of a repeated member, the last counts, as it does for most servers.
    ///
    /// # Errors
    /// The line is no JSON object or array of objects.
    pub(crate) fn of(line: &'a [u8]) -> serde_json::Result<Self> {
        match line.trim_ascii_start().first() {
            Some(b'[') => serde_json::from_slice(line).map(Self::Batch),
            _ => serde_json::from_slice(line).map(Self::One),
        }
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
        Id::of(notification.params.request_id)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Head<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HeadVisitor)
    }
}

struct HeadVisitor;

impl<'de> Visitor<'de> for HeadVisitor {
    type Value = Head<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Head<'de>, A::Error> {
        let mut head = Head::default();
        while let Some(name) = members.next_key_seed(Text)? {
            match name.as_deref() {
                Some("id") => head.id = Id::of(members.next_value::<&RawValue>()?),
                Some("method") => head.method = members.next_value_seed(Text)?,
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(head)
    }
}

/// Text, borrowed where it holds no escapes; nothing for any other value.
struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Option<Cow<'de, str>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
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
    fn what_is_no_message_is_an_error() {
        for line in ["", "7", "hello", "{", r#"{"id":1}{"id":2}"#, "[1]"] {
            assert!(Heads::of(line.as_bytes()).is_err(), "{line}");
        }
    }
}
