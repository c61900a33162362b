//! Faults: what goes wrong around an answer.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Which transport a fault can happen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Stdio,
    Http,
    Both,
    /// It says more about the fault beside it, and is none by itself.
    Detail,
}

/// A member of a fault that may be absent.
trait Slot {
    fn is_set(&self) -> bool;
}

impl Slot for bool {
    fn is_set(&self) -> bool {
        *self
    }
}

impl<T> Slot for Option<T> {
    fn is_set(&self) -> bool {
        self.is_some()
    }
}

macro_rules! faults {
    ($($(#[$meta:meta])* $name:ident: $type:ty, $on:ident;)*) => {
        /// What goes wrong, as a script writes it: one member, or several at once.
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct Fault {
            $($(#[$meta])* pub(crate) $name: $type,)*
        }

        impl Fault {
            /// What is set, and where it can happen.
            pub(crate) fn members(&self) -> Vec<(&'static str, On)> {
                let all = [$((stringify!($name), On::$on, self.$name.is_set())),*];
                all.into_iter().filter(|(.., is_set)| *is_set).map(|(name, on, _)| (name, on)).collect()
            }

            /// Both faults at once; where both say something, this one counts.
            pub(crate) fn and(self, other: &Self) -> Self {
                Self { $($name: if self.$name.is_set() { self.$name } else { other.$name.clone() }),* }
            }
        }
    };
}

faults! {
    /// The process ends with this status.
    exit: Option<i32>, Both;
    /// The process ends by this signal.
    signal: Option<i32>, Both;
    /// There is no answer, ever.
    hang: bool, Both;
    /// The server's end of stdout closes; the process lives on.
    close_stdout: bool, Stdio;
    /// The server's end of stdin closes; the process lives on.
    close_stdin: bool, Stdio;
    /// A line before the answer.
    line: Option<String>, Both;
    /// Bytes before the answer: on stdio with a line's end after them, in a body without.
    #[serde(deserialize_with = "bytes")]
    bytes: Option<Vec<u8>>, Both;
    /// The answer has no line's end, and the process ends with status 0.
    no_newline: bool, Stdio;
    /// The answer comes in pieces of that many bytes, that many milliseconds apart.
    split: Option<(usize, u64)>, Both;
    /// The answer's text has at least so many bytes.
    pad: Option<usize>, Both;
    /// The answer stands in an array.
    batch: bool, Both;
    /// The answer comes two times.
    twice: bool, Both;
    /// The answer has this id.
    #[serde(deserialize_with = "even_null")]
    id: Option<Value>, Both;
    /// Lines end in CR LF from here on: on stdio all lines, over HTTP those of event streams.
    crlf: bool, Both;
    /// A line on stderr.
    stderr: Option<String>, Both;
    /// The process does not end when its input does.
    ignore_eof: bool, Stdio;
    /// For how many milliseconds the end of input is ignored.
    ms: Option<u64>, Detail;

    /// The answer has this status, and nothing of the message's.
    status: Option<u16>, Http;
    /// The body beside `status`.
    body: Option<String>, Detail;
    /// The headers beside `status`.
    headers: Option<BTreeMap<String, String>>, Detail;
    /// The session ends, and the answer is 404.
    end_session: bool, Http;
    /// The answer is 202.
    accepted: bool, Http;
    /// The answer is 200, and has no body.
    no_body: bool, Http;
    /// The body breaks off after so many bytes.
    cut: Option<u64>, Http;
    /// The event stream ends after so many events.
    drop_after: Option<usize>, Http;
    /// The last event has no blank line after it.
    cut_event: bool, Http;
    /// The body comes in pieces of that many bytes, that many milliseconds apart.
    slow: Option<(usize, u64)>, Http;
    /// The answer's JSON stands on several lines.
    pretty: bool, Http;
    /// The event stream stays open after the answer, for so many milliseconds.
    keep_open_ms: Option<u64>, Http;
    /// The answer is 302, and leads there.
    redirect: Option<String>, Http;
    /// The connection closes without an answer.
    refuse: bool, Http;
}

impl Fault {
    /// What is wrong with it as it is written.
    pub(crate) fn check(&self) -> Result<(), String> {
        let members = self.members();
        if members.iter().all(|(_, on)| *on == On::Detail) {
            return Err("a fault that is none: it needs a member such as `exit` or `hang`".into());
        }
        let details = [
            ("ms", self.ms.is_some(), "ignore_eof", self.ignore_eof),
            ("body", self.body.is_some(), "status", self.status.is_some()),
            (
                "headers",
                self.headers.is_some(),
                "status",
                self.status.is_some(),
            ),
        ];
        for (detail, is_set, fault, is_there) in details {
            if is_set && !is_there {
                return Err(format!("`{detail}` goes with `{fault}`"));
            }
        }
        let ranges = [
            ("exit", self.exit.map(i64::from), 0, 255),
            ("signal", self.signal.map(i64::from), 1, 31),
            ("status", self.status.map(i64::from), 200, 599),
        ];
        for (name, value, least, most) in ranges {
            if value.is_some_and(|value| !(least..=most).contains(&value)) {
                return Err(format!("`{name}` is between {least} and {most}"));
            }
        }
        for (name, pieces) in [("split", self.split), ("slow", self.slow)] {
            if pieces.is_some_and(|(size, _)| size == 0) {
                return Err(format!("`{name}` needs pieces of at least one byte"));
            }
        }
        let mut breaks = self
            .headers
            .iter()
            .flatten()
            .flat_map(|(name, value)| [name, value])
            .chain(&self.redirect);
        if breaks.any(|text| text.contains(['\r', '\n'])) {
            return Err("a header has no line break".into());
        }
        Ok(())
    }
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
    let text = String::deserialize(deserializer)?;
    BASE64_STANDARD
        .decode(text)
        .map(Some)
        .map_err(serde::de::Error::custom)
}

/// A member whose `null` is a value, and does not mean that it is absent.
pub(crate) fn even_null<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Result<Fault, String> {
        let fault: Fault = serde_json::from_str(text).map_err(|error| error.to_string())?;
        fault.check().map(|()| fault)
    }

    #[test]
    fn every_fault_of_the_reference_reads() {
        for text in [
            r#"{"exit": 3}"#,
            r#"{"signal": 9}"#,
            r#"{"hang": true}"#,
            r#"{"close_stdout": true}"#,
            r#"{"close_stdin": true}"#,
            r#"{"line": "not json"}"#,
            r#"{"bytes": "AAEC"}"#,
            r#"{"no_newline": true}"#,
            r#"{"split": [10, 50]}"#,
            r#"{"pad": 67108864}"#,
            r#"{"batch": true}"#,
            r#"{"twice": true}"#,
            r#"{"id": 99}"#,
            r#"{"id": null}"#,
            r#"{"crlf": true}"#,
            r#"{"stderr": "…"}"#,
            r#"{"ignore_eof": true, "ms": 50}"#,
            r#"{"status": 500, "body": "…", "headers": {}}"#,
            r#"{"end_session": true}"#,
            r#"{"accepted": true}"#,
            r#"{"no_body": true}"#,
            r#"{"cut": 10}"#,
            r#"{"drop_after": 1}"#,
            r#"{"cut_event": true}"#,
            r#"{"slow": [1, 20]}"#,
            r#"{"pretty": true}"#,
            r#"{"keep_open_ms": 60000}"#,
            r#"{"redirect": "http://localhost/"}"#,
            r#"{"refuse": true}"#,
        ] {
            assert_eq!(
                fault(text).map(|fault| !fault.members().is_empty()),
                Ok(true),
                "{text}"
            );
        }
    }

    #[test]
    fn a_fault_that_means_nothing_is_refused() {
        for (text, why) in [
            ("{}", "is none"),
            (r#"{"hang": false}"#, "is none"),
            (r#"{"ms": 5}"#, "is none"),
            (r#"{"hang": true, "ms": 5}"#, "`ms` goes with `ignore_eof`"),
            (
                r#"{"hang": true, "body": "x"}"#,
                "`body` goes with `status`",
            ),
            (r#"{"exit": 256}"#, "between 0 and 255"),
            (r#"{"signal": 0}"#, "between 1 and 31"),
            (r#"{"status": 100}"#, "between 200 and 599"),
            (r#"{"split": [0, 1]}"#, "at least one byte"),
            (r#"{"redirect": "a\nb"}"#, "no line break"),
            (r#"{"bytes": "?"}"#, "Invalid"),
            (
                r#"{"hnag": true}"#,
                "unknown field `hnag`, expected one of `exit`",
            ),
        ] {
            let said = fault(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn of_two_faults_the_first_counts_where_both_speak() {
        let both = fault(r#"{"exit": 3}"#)
            .unwrap()
            .and(&fault(r#"{"exit": 4, "twice": true}"#).unwrap());
        assert_eq!((both.exit, both.twice), (Some(3), true));
    }
}
