//! How a scripted server behaves over HTTP, whatever it is asked.

use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};

/// The `http` member of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Manners {
    /// As what requests are answered.
    pub(crate) answers: Form,
    pub(crate) session: SessionRule,
    pub(crate) version: VersionRule,
    /// What a GET gets.
    pub(crate) get: Get,
    /// Whether events carry ids, and a GET goes on after the one it names.
    pub(crate) get_ids: bool,
    /// The `retry` field that event streams begin with.
    pub(crate) retry_ms: Option<u64>,
    /// What a DELETE gets.
    pub(crate) delete: Delete,
    /// The `Authorization` that every request must carry.
    pub(crate) auth: Option<Secret>,
}

/// The form of an answer to a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    /// One JSON body.
    Json,
    /// An event stream.
    Stream,
    /// An event stream for calls, JSON for the rest.
    #[default]
    Auto,
}

/// How the server keeps sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SessionRule {
    /// It gives an id, and insists on it.
    #[default]
    Required,
    /// It gives none, and needs none.
    None,
    /// It puts a new id on each answer, and takes any.
    Wrong,
}

/// Whether the version of a session is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum VersionRule {
    /// Each request must name it.
    #[default]
    Checked,
    /// It does not matter.
    Free,
}

/// What a GET gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Get {
    /// The session's own stream, for as long as the session lasts.
    #[default]
    Open,
    /// This status, and nothing else.
    Status(u16),
    /// The stream, which ends after each event.
    Closes,
    /// A stream that ends at once.
    Empty,
    /// A page of HTML.
    Html,
}

/// What a DELETE gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delete {
    /// This status.
    Status(u16),
    /// No answer.
    Hang,
}

impl Default for Delete {
    fn default() -> Self {
        Self::Status(200)
    }
}

/// A value that no message shows.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl<'de> Deserialize<'de> for Get {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = [
            ("open", Self::Open),
            ("closes", Self::Closes),
            ("empty", Self::Empty),
            ("html", Self::Html),
        ];
        deserializer.deserialize_any(StatusOr {
            words: &words,
            status: Self::Status,
            expected: "`open`, `closes`, `empty`, `html` or a status",
        })
    }
}

impl<'de> Deserialize<'de> for Delete {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StatusOr {
            words: &[("hang", Self::Hang)],
            status: Self::Status,
            expected: "`hang` or a status",
        })
    }
}

/// Reads a word, or a status as a number or as text.
struct StatusOr<'a, T> {
    words: &'a [(&'static str, T)],
    status: fn(u16) -> T,
    expected: &'static str,
}

impl<T: Copy> Visitor<'_> for StatusOr<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        match u16::try_from(number) {
            Ok(status @ 200..=599) => Ok((self.status)(status)),
            _ => Err(E::invalid_value(de::Unexpected::Unsigned(number), &self)),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        if let Some((_, word)) = self.words.iter().find(|(word, _)| *word == text) {
            return Ok(*word);
        }
        match text.parse() {
            Ok(status @ 200..=599) => Ok((self.status)(status)),
            _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manners(text: &str) -> Result<Manners, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_said_is_the_strict_server() {
        let manners = manners("{}").unwrap();
        assert_eq!(
            (manners.answers, manners.session, manners.version),
            (Form::Auto, SessionRule::Required, VersionRule::Checked)
        );
        assert_eq!(
            (manners.get, manners.delete),
            (Get::Open, Delete::Status(200))
        );
    }

    #[test]
    fn a_status_may_be_a_number_or_text() {
        for text in [
            r#"{"get": 405, "delete": "405"}"#,
            r#"{"get": "405", "delete": 405}"#,
        ] {
            let manners = manners(text).unwrap();
            assert_eq!(
                (manners.get, manners.delete),
                (Get::Status(405), Delete::Status(405))
            );
        }
    }

    #[test]
    fn other_values_are_refused_with_those_that_are_allowed() {
        for (text, why) in [
            (
                r#"{"get": "opne"}"#,
                "expected `open`, `closes`, `empty`, `html` or a status",
            ),
            (r#"{"get": 7}"#, "or a status"),
            (r#"{"delete": "open"}"#, "expected `hang` or a status"),
            (
                r#"{"answers": "xml"}"#,
                "expected one of `json`, `stream`, `auto`",
            ),
            (
                r#"{"session": "no"}"#,
                "expected one of `required`, `none`, `wrong`",
            ),
            (r#"{"gets": 1}"#, "unknown field `gets`"),
        ] {
            let said = manners(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn the_authorization_is_not_in_debug_output() {
        assert!(!format!("{:?}", manners(r#"{"auth": "hunter2"}"#).unwrap()).contains("hunter2"));
    }
}
