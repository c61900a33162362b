//! A live server on stdio, behind this one over HTTP.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::Value;

use super::sessions::lock;
use crate::live;
use crate::protocol::{self, Message};

/// The live server's input, and who waits for what it says.
#[derive(Debug)]
pub(super) struct Live {
    stdin: Mutex<ChildStdin>,
    asked: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    last: u64,
    /// Whether the server has ended: nobody who asks now is answered.
    is_gone: bool,
    waiting: HashMap<String, Waiting>,
}

/// A request that the live server has.
#[derive(Debug)]
struct Waiting {
    /// The id that its host gave it.
    id: Value,
    token: Option<Value>,
    tell: Sender<Heard>,
}

impl Table {
    /// The request that a notification belongs to: by its progress token, or by the subscription
    /// that the request is, whose id its host knows under another name.
    fn request_of(&self, params: &Value) -> Option<(&Waiting, Option<Value>)> {
        const SUBSCRIPTION: &str = "/_meta/io.modelcontextprotocol~1subscriptionId";

        if let Some(own) = params.pointer(SUBSCRIPTION) {
            let waiting = self.waiting.get(&own.to_string())?;
            let mut params = params.clone();
            if let Some(id) = params.pointer_mut(SUBSCRIPTION) {
                *id = waiting.id.clone();
            }
            return Some((waiting, Some(params)));
        }
        let token = params.get("progressToken")?;
        let waiting = self
            .waiting
            .values()
            .find(|waiting| waiting.token.as_ref() == Some(token))?;
        Some((waiting, None))
    }
}

/// What the live server says to a request.
#[derive(Debug)]
pub(super) enum Heard {
    /// Progress of it.
    Note(String),
    /// Its answer, under the id that its host gave it.
    Answer(String),
}

impl Live {
    /// Starts the server, and gives what it will say.
    pub(super) fn start(command: &[OsString]) -> io::Result<(Self, ChildStdout)> {
        let mut child = live::start(command)?;
        let ends = child.stdin.take().zip(child.stdout.take());
        let (stdin, stdout) = ends.expect("both were asked to be pipes");
        // Nobody waits for the process itself: its output's end says that it is gone, and its
        // input's end, which comes with ours, tells it to go.
        drop(child);
        Ok((
            Self {
                stdin: Mutex::new(stdin),
                asked: Mutex::default(),
            },
            stdout,
        ))
    }

    /// Asks the server, under an id of its own, since two hosts may use one id at a time.
    pub(super) fn ask(&self, body: &[u8], id: &Value, token: Option<&Value>) -> Receiver<Heard> {
        let (tell, told) = channel();
        let mut table = lock(&self.asked);
        if table.is_gone {
            return told;
        }
        table.last += 1;
        let own = Value::from(format!("demo-{}", table.last)).to_string();
        let text = String::from_utf8_lossy(body);
        if let Some(line) = live::with_id(&text, &own) {
            table.waiting.insert(
                own,
                Waiting {
                    id: id.clone(),
                    token: token.cloned(),
                    tell,
                },
            );
            drop(table);
            self.tell(line.as_bytes());
        }
        told
    }

    /// Sends the server a message on one line.
    pub(super) fn tell(&self, message: &[u8]) {
        let mut line: Vec<u8> = message
            .iter()
            .map(|byte| {
                if matches!(byte, b'\n' | b'\r') {
                    b' '
                } else {
                    *byte
                }
            })
            .collect();
        line.push(b'\n');
        // A server that is gone is found by the end of its output.
        drop(lock(&self.stdin).write_all(&line));
    }

    /// Reads what the server says until it ends. What is no answer and no progress of a request
    /// is given to `other`.
    pub(super) fn listen(&self, stdout: ChildStdout, other: impl Fn(String)) {
        let mut lines = BufReader::new(stdout);
        let mut line = Vec::new();
        loop {
            line.clear();
            if !matches!(lines.read_until(b'\n', &mut line), Ok(read) if read > 0) {
                // Whoever waits is told by the end of their channel.
                let mut table = lock(&self.asked);
                table.is_gone = true;
                table.waiting.clear();
                return;
            }
            let text = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
            match Message::read(&line) {
                Message::Response(own) => {
                    let Some(waiting) = lock(&self.asked).waiting.remove(&own.to_string()) else {
                        continue;
                    };
                    let answer = live::with_id(&text, &waiting.id.to_string()).unwrap_or(text);
                    // A host that has left does not hear it.
                    drop(waiting.tell.send(Heard::Answer(answer)));
                }
                Message::Notification(call) => {
                    let table = lock(&self.asked);
                    match table.request_of(&call.params) {
                        Some((waiting, params)) => {
                            let note = match params {
                                Some(params) => protocol::notification(&call.method, &params),
                                None => text,
                            };
                            drop(waiting.tell.send(Heard::Note(note)));
                        }
                        None => other(text),
                    }
                }
                Message::Request(..) => other(text),
                Message::Blank | Message::Unreadable | Message::NotAnObject => {}
            }
        }
    }
}
