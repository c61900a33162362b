//! A log's other lines: one line of the wire each.

use std::fmt;
use std::io::Write as _;

use serde::{Deserialize, Serialize};

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
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
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
mod tests {
    use super::*;

    fn entry(line: &[u8]) -> String {
        let mut out = Vec::new();
        encode_entry(&mut out, 7, Who::Server, line);
        let entry = String::from_utf8(out).unwrap();
        let start = "{\"t_ms\":7,\"from\":\"server\",";
        entry
            .strip_prefix(start)
            .unwrap()
            .strip_suffix("}\n")
            .unwrap()
            .to_owned()
    }

    #[test]
    fn one_json_value_is_embedded_as_it_was_spelled() {
        for json in [
            r#"{"b":1.0,"a":[ 1e2 , "A\/\ud83d\ude00" ],"a":-0}"#,
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            "\"text\"",
            "null",
            "18446744073709551616",
            "1e308",
            "\"\u{7f}\u{2028}\u{feff}\"",
        ] {
            for line in [
                json.to_owned(),
                format!("{json}\r"),
                format!(" \t{json} \r\n"),
            ] {
                assert_eq!(entry(line.as_bytes()), format!("\"message\":{json}"));
            }
        }
    }

    #[test]
    fn what_is_not_one_json_value_becomes_text() {
        for (line, raw) in [
            ("", r#""""#),
            ("\r", r#""""#),
            ("  ", r#""  ""#),
            ("\u{b}1", r#""\u000b1""#),
            ("Listening on stdio\r", r#""Listening on stdio""#),
            ("1 2", r#""1 2""#),
            (r#"1,"raw":"forged""#, r#""1,\"raw\":\"forged\"""#),
            ("1}", r#""1}""#),
            ("{} x", r#""{} x""#),
            ("\u{feff}{}", "\"\u{feff}{}\""),
            ("\0", r#""\u0000""#),
            (r#""\ud800""#, r#""\"\\ud800\"""#),
            (r#""\udc00\ud800""#, r#""\"\\udc00\\ud800\"""#),
            ("1e309", r#""1e309""#),
            ("[1,]", r#""[1,]""#),
            ("01", r#""01""#),
            ("NaN", r#""NaN""#),
        ] {
            assert_eq!(entry(line.as_bytes()), format!("\"raw\":{raw}"), "{line:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_marked() {
        assert_eq!(
            entry(b"\"a\xff\xfeb\xe2\x82\""),
            "\"raw\":\"\\\"a\u{fffd}\u{fffd}b\u{fffd}\\\"\""
        );
    }

    #[test]
    fn a_value_over_several_lines_becomes_one_line() {
        assert_eq!(entry(b"{\n\"a\":\r\n1}"), "\"message\":{ \"a\":\r 1}");
    }

    #[test]
    fn the_deepest_message_leaves_room_for_the_entry_around_it() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let message = |depth| entry(nested(depth).as_bytes()).starts_with("\"message\"");
        assert!(message(126));
        assert!(!message(127));
        assert!(!message(100_000));
    }
}
