//! Reading logs, and writing them back.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::entry::Entry;
use super::header::Header;

/// A recorded session.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// Which session it is.
    pub header: Header,
    /// Its lines, in order.
    pub entries: Vec<Entry>,
    /// Whether the file ended in the middle of a line, as it does after a crash. What there
    /// was of that line is not among the entries.
    pub is_cut_off: bool,
}

/// The versions of the format that [`read_log`] reads.
pub const VERSIONS_READ: [u64; 2] = [1, 2];

impl Log {
    /// Reads a log's text. Blank lines are ignored; a last line that was cut off is dropped.
    ///
    /// # Errors
    ///
    /// The first line that is not what the format asks for.
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        let mut lines = Lines {
            rest: text,
            number: 0,
        };
        let first = lines.next().ok_or(ParseError::Empty)?;
        let header = read_header(&first)?;
        let mut entries = Vec::new();
        let mut is_cut_off = false;
        for line in lines {
            match read_entry(&line) {
                Ok(entry) => entries.push(entry),
                Err(_) if !line.is_whole => is_cut_off = true,
                Err(error) => return Err(error),
            }
        }
        Ok(Self {
            header,
            entries,
            is_cut_off,
        })
    }

    /// Writes the log as JSONL: the same content as was read, though not the same bytes.
    ///
    /// # Errors
    ///
    /// What `out` says.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        let mut line = Vec::new();
        self.header.encode(&mut line);
        out.write_all(&line)?;
        for entry in &self.entries {
            line.clear();
            serde_json::to_writer(&mut line, entry)?;
            line.push(b'\n');
            out.write_all(&line)?;
        }
        Ok(())
    }

    /// The session's messages in order, each with its entry; batches are taken apart.
    pub fn messages(&self) -> impl Iterator<Item = (&Entry, &Value)> {
        self.entries
            .iter()
            .flat_map(|entry| entry.messages().iter().map(move |message| (entry, message)))
    }
}

/// Reads the log at `path`.
///
/// # Errors
///
/// The file cannot be read, or a line of it is not what the format asks for. The error names
/// the path, and the line by its number.
pub fn read_log(path: &Path) -> Result<Log, LogError> {
    let text = fs::read(path).map_err(|source| LogError::Reading {
        path: path.to_owned(),
        source,
    })?;
    Log::parse(&text).map_err(|source| LogError::Parsing {
        path: path.to_owned(),
        source,
    })
}

/// Reads all session logs directly in `directory`, in the order of their sessions' names.
///
/// # Errors
///
/// The directory cannot be listed, or one of the logs cannot be read.
pub fn read_logs(directory: &Path) -> Result<Vec<Log>, LogError> {
    let mut logs = session_logs(directory)?
        .iter()
        .map(|path| read_log(path))
        .collect::<Result<Vec<_>, _>>()?;
    logs.sort_by(|one, other| one.header.session.cmp(&other.header.session));
    Ok(logs)
}

/// The session logs directly in `directory`, by name: files that end in `.jsonl`, but for flow
/// logs (`.flow.jsonl`) and confirmation logs (`.confirm.jsonl`).
///
/// # Errors
///
/// The directory cannot be listed.
pub fn session_logs(directory: &Path) -> Result<Vec<PathBuf>, LogError> {
    let list = || -> io::Result<Vec<PathBuf>> {
        let mut logs = Vec::new();
        for file in fs::read_dir(directory)? {
            let path = file?.path();
            if is_session_log(&path) && !path.is_dir() {
                logs.push(path);
            }
        }
        logs.sort();
        Ok(logs)
    };
    list().map_err(|source| LogError::Reading {
        path: directory.to_owned(),
        source,
    })
}

fn is_session_log(path: &Path) -> bool {
    file_name(path).ends_with(b".jsonl") && !is_side_log(path)
}

/// Whether this is, by its name, what a flow or a judge wrote beside a session log.
pub fn is_side_log(path: &Path) -> bool {
    let name = file_name(path);
    name.ends_with(b".flow.jsonl") || name.ends_with(b".confirm.jsonl")
}

fn file_name(path: &Path) -> &[u8] {
    path.file_name().unwrap_or_default().as_encoded_bytes()
}

/// Why a log could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The file or directory cannot be read.
    #[error("reading {}", path.display())]
    Reading {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is no log.
    #[error("parsing {}", path.display())]
    Parsing {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: ParseError,
    },
}

/// Why a text is no log. Lines count from 1, blank ones included.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// There is nothing but blank lines.
    #[error("the file is empty: it has no header; leave it out")]
    Empty,
    /// The first line is not a log's.
    #[error("line {line} is not a session log's header: {why}; leave out what is no session log")]
    NotAHeader {
        /// The line's number.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The log's format is not one of [`VERSIONS_READ`].
    #[error(
        "line {line}: a log of version {version}; versions 1 and 2 can be read, so read it with the \
         release that recorded it"
    )]
    Version {
        /// The header's line number.
        line: usize,
        /// The version it names.
        version: u64,
    },
    /// A line is not an entry.
    #[error("line {line} is not a log entry: {why}; mend the line, or leave the file out")]
    NotAnEntry {
        /// The line's number.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

fn read_header(line: &Line<'_>) -> Result<Header, ParseError> {
    let not_a_header = |why| ParseError::NotAHeader {
        line: line.number,
        why,
    };
    let text = line.text().map_err(not_a_header)?;
    // The version is looked at first: another one may have other members.
    let version = serde_json::from_str::<Value>(text)
        .map_err(|error| not_a_header(reason(&error)))?
        .get("stretto_mcp_log")
        .and_then(Value::as_u64)
        .ok_or_else(|| not_a_header("it has no `stretto_mcp_log`".to_owned()))?;
    if !VERSIONS_READ.contains(&version) {
        return Err(ParseError::Version {
            line: line.number,
            version,
        });
    }
    serde_json::from_str(text).map_err(|error| not_a_header(reason(&error)))
}

fn read_entry(line: &Line<'_>) -> Result<Entry, ParseError> {
    line.text()
        .and_then(|text| serde_json::from_str(text).map_err(|error| reason(&error)))
        .map_err(|why| ParseError::NotAnEntry {
            line: line.number,
            why,
        })
}

/// What a JSON error says, with its place as a column alone: the line is ours to name.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&place) {
        Some(what) if error.is_data() => what.to_owned(),
        Some(what) => format!("{what} at column {}", error.column()),
        None => text,
    }
}

/// The lines of a text that are not blank.
struct Lines<'a> {
    rest: &'a [u8],
    number: usize,
}

struct Line<'a> {
    bytes: &'a [u8],
    /// Counted from 1, blank lines included.
    number: usize,
    /// Whether its line feed is there.
    is_whole: bool,
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        while !self.rest.is_empty() {
            let end = memchr::memchr(b'\n', self.rest);
            let (bytes, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
            self.rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            self.number += 1;
            if !bytes.trim_ascii().is_empty() {
                return Some(Line {
                    bytes,
                    number: self.number,
                    is_whole: end.is_some(),
                });
            }
        }
        None
    }
}

impl<'a> Line<'a> {
    fn text(&self) -> Result<&'a str, String> {
        std::str::from_utf8(self.bytes).map_err(|error| {
            format!(
                "it is not UTF-8 after its first {} bytes",
                error.valid_up_to()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Body, Who};

    const HEADER: &str = r#"{"stretto_mcp_log":2,"session":"s","started_unix_ms":1}"#;
    const ENTRY: &str = r#"{"t_ms":3,"from":"server","raw":"hello"}"#;

    fn parse(text: &str) -> Result<Log, String> {
        Log::parse(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn blank_lines_and_carriage_returns_are_ignored() {
        let log = parse(&format!("\n \r\n{HEADER}\r\n\n{ENTRY}\r\n\t\n")).unwrap();
        assert_eq!(log.header.session, "s");
        assert_eq!(
            log.entries,
            [Entry {
                t_ms: 3,
                from: Who::Server,
                body: Body::Raw("hello".into())
            }]
        );
        assert!(!log.is_cut_off);
    }

    #[test]
    fn a_text_without_lines_has_no_header() {
        for text in ["", "\n", " \r\n\n"] {
            assert_eq!(
                parse(text).unwrap_err(),
                "the file is empty: it has no header; leave it out"
            );
        }
    }

    #[test]
    fn errors_name_the_line_and_what_is_wrong_with_it() {
        let long = |entry: &str| format!("{HEADER}\n\n{ENTRY}\n{entry}\n");
        for (text, message) in [
            (
                format!("\n{ENTRY}\n"),
                "line 2 is not a session log's header: it has no `stretto_mcp_log`; leave out what is no session log",
            ),
            (
                "x\n".into(),
                "line 1 is not a session log's header: expected value at column 1; leave out what is no session log",
            ),
            (
                r#"{"stretto_mcp_log":2,"session":"s"}"#.into(),
                "line 1 is not a session log's header: missing field `started_unix_ms`; leave out what is no session log",
            ),
            (
                r#"{"stretto_mcp_log":3}"#.into(),
                "line 1: a log of version 3; versions 1 and 2 can be read, so read it with the \
                 release that recorded it",
            ),
            (
                long("{"),
                "line 4 is not a log entry: EOF while parsing an object at column 1; mend the line, or leave the file out",
            ),
            (
                long(r#"{"t_ms":1,"from":"nobody","raw":""}"#),
                "line 4 is not a log entry: unknown variant `nobody`, expected one of \
                 `client`, `server`, `proxy`, `context`; mend the line, or leave the file out",
            ),
            (
                long(r#"{"t_ms":1,"from":"client"}"#),
                "line 4 is not a log entry: it has neither `message` nor `raw`; mend the line, or leave the file out",
            ),
            (
                long(r#"{"t_ms":-1,"from":"client","raw":""}"#),
                "line 4 is not a log entry: invalid value: integer `-1`, expected u64; mend the line, or leave the file out",
            ),
        ] {
            assert_eq!(parse(&text).unwrap_err(), message);
        }
        let not_text = [HEADER.as_bytes(), b"\n{\"t_ms\":\xff}\n"].concat();
        assert_eq!(
            Log::parse(&not_text).unwrap_err().to_string(),
            "line 2 is not a log entry: it is not UTF-8 after its first 8 bytes; mend the line, or leave the file \
             out"
        );
    }

    #[test]
    fn a_last_line_that_was_cut_off_is_dropped_wherever_it_was_cut() {
        let line = r#"{"t_ms":4,"from":"server","raw":"€"}"#.as_bytes();
        for length in 1..line.len() {
            let text = [HEADER.as_bytes(), b"\n", &line[..length]].concat();
            let log = Log::parse(&text).unwrap();
            assert_eq!((log.entries.len(), log.is_cut_off), (0, true), "{length}");
            assert!(
                Log::parse(&[text, b"\n".to_vec()].concat()).is_err(),
                "{length}"
            );
        }
        let whole = [HEADER.as_bytes(), b"\n", line].concat();
        let log = Log::parse(&whole).unwrap();
        assert_eq!((log.entries.len(), log.is_cut_off), (1, false));
    }

    #[test]
    fn a_log_of_version_1_may_have_entries_of_any_kind() {
        let header = HEADER.replace(":2,", ":1,");
        let entry = ENTRY.replace("server", "context");
        let log = parse(&format!("{header}\n{entry}\n")).unwrap();
        assert_eq!(log.header.stretto_mcp_log, 1);
        assert_eq!(log.entries[0].from, Who::Context);
    }

    #[test]
    fn messages_are_the_lines_with_batches_taken_apart() {
        let lines = [
            "\"message\":[1,[2],null]",
            "\"raw\":\"x\"",
            "\"message\":null",
            "\"message\":{}",
            "\"message\":[]",
        ];
        let text = lines
            .map(|line| format!("{{\"t_ms\":1,\"from\":\"client\",{line}}}\n"))
            .concat();
        let log = parse(&format!("{HEADER}\n{text}")).unwrap();
        let messages: Vec<String> = log
            .messages()
            .map(|(_, message)| message.to_string())
            .collect();
        assert_eq!(messages, ["1", "[2]", "null", "{}"]);
    }

    #[test]
    fn a_log_written_back_has_the_same_content() {
        let text = format!(
            "{HEADER}\n{ENTRY}\n{}\n",
            r#"{"t_ms":4,"from":"proxy","message":{"b":[1.50,1e300,-0.0,18446744073709551615],"a":"é\u0000"}}"#
        );
        let log = parse(&text).unwrap();
        let mut written = Vec::new();
        log.write(&mut written).unwrap();
        assert_eq!(Log::parse(&written).unwrap(), log);
    }
}
