//! The transcript: what the server received, and which faults it played, as JSON lines.
//!
//! The crate's documentation has the format.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde_json::Value;

use crate::http::wire::Request;
use crate::voice;

/// The transcript of a server, if one is kept.
#[derive(Debug)]
pub(crate) struct Transcript {
    started: Instant,
    writer: Option<Mutex<Writer>>,
}

#[derive(Debug)]
struct Writer {
    file: File,
    n: u64,
}

#[derive(Serialize)]
struct Record<'a> {
    n: u64,
    ms: u128,
    #[serde(flatten)]
    what: What<'a>,
}

/// What a record holds, as one or two members beside `n` and `ms`.
#[derive(Serialize)]
#[serde(untagged)]
enum What<'a> {
    Line {
        line: &'a str,
        #[serde(skip_serializing_if = "is_false")]
        unended: bool,
    },
    Bytes {
        base64: String,
        #[serde(skip_serializing_if = "is_false")]
        unended: bool,
    },
    Http {
        http: Http<'a>,
    },
    Fired {
        fired: &'a str,
    },
    Unfired {
        unfired: &'a [String],
    },
}

#[derive(Serialize)]
struct Http<'a> {
    method: &'a str,
    path: &'a str,
    headers: BTreeMap<&'a str, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that the derive calls"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Transcript {
    /// No transcript.
    pub(crate) fn none() -> Self {
        Self {
            started: Instant::now(),
            writer: None,
        }
    }

    /// A transcript at the end of this file, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened.
    pub(crate) fn append_to(path: &Path) -> io::Result<Self> {
        let file = File::options().append(true).create(true).open(path)?;
        Ok(Self {
            started: Instant::now(),
            writer: Some(Mutex::new(Writer { file, n: 0 })),
        })
    }

    /// Notes a line as it was received.
    pub(crate) fn line(&self, line: &[u8]) {
        if self.writer.is_none() {
            return;
        }
        let (content, unended) = match line.strip_suffix(b"\n") {
            Some(content) => (content, false),
            None => (line, true),
        };
        self.write(match str::from_utf8(content) {
            Ok(line) => What::Line { line, unended },
            Err(_) => What::Bytes {
                base64: BASE64_STANDARD.encode(content),
                unended,
            },
        });
    }

    /// Notes an HTTP request as it was received.
    pub(crate) fn http(&self, request: &Request) {
        if self.writer.is_none() {
            return;
        }
        let mut headers: BTreeMap<&str, Value> = BTreeMap::new();
        for (name, value) in &request.headers {
            let value = Value::from(String::from_utf8_lossy(value));
            match headers.get_mut(name.as_str()) {
                None => drop(headers.insert(name, value)),
                Some(Value::Array(all)) => all.push(value),
                Some(one) => *one = Value::Array(vec![one.take(), value]),
            }
        }
        let body = str::from_utf8(&request.body).ok();
        let base64 = body
            .is_none()
            .then(|| BASE64_STANDARD.encode(&request.body));
        self.write(What::Http {
            http: Http {
                method: &request.method,
                path: &request.target,
                headers,
                body,
                base64,
            },
        });
    }

    /// Notes a fault that is about to happen.
    pub(crate) fn fired(&self, label: &str) {
        self.write(What::Fired { fired: label });
    }

    /// Notes what never happened.
    pub(crate) fn unfired(&self, labels: &[String]) {
        self.write(What::Unfired { unfired: labels });
    }

    fn write(&self, what: What<'_>) {
        let Some(writer) = &self.writer else { return };
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.n += 1;
        let record = Record {
            n: writer.n,
            ms: self.started.elapsed().as_millis(),
            what,
        };
        let mut text = serde_json::to_vec(&record).expect("a record's members have text names");
        text.push(b'\n');
        if let Err(error) = writer.file.write_all(&text) {
            voice::say(&format!("writing the transcript: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_of_record_has_its_shape() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("transcript.jsonl");
        let transcript = Transcript::append_to(&path).unwrap();
        transcript.line(b"{}\r\n");
        transcript.line(b"\xff\n");
        transcript.line(b"end");
        let header = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
        transcript.http(&Request {
            method: "POST".into(),
            target: "/mcp?x".into(),
            headers: vec![header("a", "1"), header("b", "2"), header("a", "3")],
            body: b"{}".to_vec(),
            ..Request::default()
        });
        transcript.fired("answers[0]");
        transcript.unfired(&["timeline[1]".into()]);
        drop(transcript);

        let text = fs::read_to_string(&path).unwrap();
        let records: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let without_ms: Vec<Value> = records
            .into_iter()
            .map(|mut record| {
                assert!(record["ms"].is_u64());
                record.as_object_mut().unwrap().remove("ms");
                record
            })
            .collect();
        assert_eq!(
            without_ms,
            [
                json!({"n": 1, "line": "{}\r"}),
                json!({"n": 2, "base64": "/w=="}),
                json!({"n": 3, "line": "end", "unended": true}),
                json!({"n": 4, "http": {"method": "POST", "path": "/mcp?x", "headers": {"a": ["1", "3"], "b": "2"}, "body": "{}"}}),
                json!({"n": 5, "fired": "answers[0]"}),
                json!({"n": 6, "unfired": ["timeline[1]"]}),
            ]
        );
    }

    #[test]
    fn a_transcript_goes_on_where_the_file_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("transcript.jsonl");
        Transcript::append_to(&path).unwrap().line(b"a\n");
        Transcript::append_to(&path).unwrap().line(b"b\n");
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    }
}
