//! Faults laid over a live server: what nothing is aimed at passes, byte for byte.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::ChildStdin;
use std::sync::Mutex;
use std::thread::{self, Scope};

use serde_json::Value;

use super::{Input, READ_AT_ONCE, Wire, lock, sleep};
use crate::live;
use crate::process;
use crate::protocol::Message;
use crate::script::answers::{Aimed, When};
use crate::script::faults::Fault;
use crate::script::timeline::Moment;
use crate::server::{Reaction, Server};

/// Passes everything between the host and the server that the command starts, with the faults of
/// the script around it, and ends with the server's status.
///
/// # Errors
///
/// When the server cannot be started, or an end cannot be read.
pub(crate) fn serve_over(server: &Server, command: &[OsString]) -> io::Result<()> {
    let mut child = live::start(command)?;
    let ends = child.stdin.take().zip(child.stdout.take());
    let (stdin, stdout) = ends.expect("both were asked to be pipes");
    let mut input = Input::open(server.may_close_stdin())?;
    let over = Over {
        wire: Wire::new(server, input.waker.take()),
        to_server: Mutex::new(Some(stdin)),
        asked: Mutex::default(),
    };
    thread::scope(|threads| {
        over.wire.come(threads, &Moment::Start);
        threads.spawn(|| {
            let read =
                over.hear_the_server(threads, BufReader::with_capacity(READ_AT_ONCE, stdout));
            let status = child.wait();
            server.finish();
            // The host's next line may still be waited for, and has nobody to go to.
            match (read, status) {
                (Ok(()), Ok(status)) => process::exit(live::status(status)),
                (Err(error), _) | (_, Err(error)) => {
                    crate::voice::say(&format!("the server behind: {error}"));
                    process::exit(1)
                }
            }
        });
        over.hear_the_host(threads, &mut input);
    });
    Ok(())
}

struct Over<'a> {
    wire: Wire<'a>,
    /// The server's input, until the host's ends.
    to_server: Mutex<Option<ChildStdin>>,
    /// The requests that the server has, by id; those of one id are answered in order.
    asked: Mutex<HashMap<String, VecDeque<Asked>>>,
}

/// A request that the server has.
struct Asked {
    faults: Vec<Aimed>,
    /// The faults of before, as far as they are about the answer.
    before: Fault,
    made: Option<String>,
    moment: Option<Moment>,
}

impl Over<'_> {
    fn hear_the_host<'scope>(&'scope self, threads: &'scope Scope<'scope, '_>, input: &mut Input) {
        let mut line = Vec::new();
        loop {
            line.clear();
            match input.reader.read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    crate::voice::say(&format!("reading stdin: {error}"));
                    break;
                }
            }
            self.wire.server.transcript.line(&line);
            self.take(threads, std::mem::take(&mut line));
        }
        self.wire.linger();
        *lock(&self.to_server) = None;
    }

    fn take<'scope>(&'scope self, threads: &'scope Scope<'scope, '_>, line: Vec<u8>) {
        let message = Message::read(&line);
        let (id, reaction) = match &message {
            Message::Request(id, _) => (Some(id.clone()), self.wire.server.react(&message)),
            Message::Notification(_) => (None, self.wire.server.react(&message)),
            // What is no message is the server's to answer, like the rest.
            _ => return self.pass(&line),
        };
        let takes_time = reaction.takes_time();
        if reaction.answer.is_some() {
            self.wire.beside(threads, takes_time, move || {
                self.wire.perform(threads, reaction);
            });
        } else {
            self.wire.beside(threads, takes_time, move || {
                self.ask(threads, id.as_ref(), reaction, &line);
            });
        }
    }

    /// Passes a request or notification on, after what happens before the server has it.
    fn ask<'scope>(
        &'scope self,
        threads: &'scope Scope<'scope, '_>,
        id: Option<&Value>,
        reaction: Reaction,
        line: &[u8],
    ) {
        let before = self.wire.fire(&reaction.faults, When::Before);
        if !self.wire.befall(&before) {
            return;
        }
        for note in &reaction.notes {
            sleep(note.wait);
            self.wire.write(note.text.as_bytes());
        }
        sleep(reaction.delay);
        if let Some(id) = id {
            let asked = Asked {
                faults: reaction.faults,
                before,
                made: reaction.made,
                moment: reaction.moment,
            };
            lock(&self.asked)
                .entry(id.to_string())
                .or_default()
                .push_back(asked);
            self.pass(line);
            return;
        }
        self.pass(line);
        let after = self.wire.fire(&reaction.faults, When::After);
        self.wire.befall(&after);
        if let Some(moment) = &reaction.moment {
            self.wire.come(threads, moment);
        }
    }

    fn pass(&self, line: &[u8]) {
        if let Some(server) = lock(&self.to_server).as_mut() {
            // A server that no longer reads still has things to say.
            drop(server.write_all(line).and_then(|()| server.flush()));
        }
    }

    fn hear_the_server<'scope>(
        &'scope self,
        threads: &'scope Scope<'scope, '_>,
        mut stdout: impl io::BufRead,
    ) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if stdout.read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            let asked = match Message::read(&line) {
                Message::Response(id) => self.take_back(&id),
                _ => None,
            };
            match asked {
                Some(asked) => self.answered(threads, asked, &line),
                None => self.hand_on(&line),
            }
        }
    }

    /// The request that an answer is for.
    fn take_back(&self, id: &Value) -> Option<Asked> {
        let mut all = lock(&self.asked);
        let of_id = all.get_mut(&id.to_string())?;
        let asked = of_id.pop_front();
        if of_id.is_empty() {
            all.remove(&id.to_string());
        }
        asked
    }

    fn answered<'scope>(
        &'scope self,
        threads: &'scope Scope<'scope, '_>,
        asked: Asked,
        line: &[u8],
    ) {
        let text = String::from_utf8_lossy(line.trim_ascii_end());
        if let Some(tool) = &asked.made
            && serde_json::from_str::<Value>(&text).is_ok_and(|answer| {
                answer.get("result").is_some() && answer["result"]["isError"] != true
            })
        {
            self.wire.server.made(tool);
        }
        let after = self.wire.fire(&asked.faults, When::After);
        if self.wire.befall(&after) {
            if asked.faults.is_empty() {
                self.hand_on(line);
            } else {
                self.wire.answer(&text, &asked.before.and(&after));
            }
        }
        if let Some(moment) = &asked.moment {
            self.wire.come(threads, moment);
        }
    }

    /// Hands a line on as it is, but for the end that a fault gave all lines.
    fn hand_on(&self, line: &[u8]) {
        let mut out = lock(&self.wire.out);
        let written = match line.strip_suffix(b"\n") {
            Some(content) if out.end == b"\r\n" => {
                let content = content.strip_suffix(b"\r").unwrap_or(content);
                let whole = [content, out.end].concat();
                out.write(&whole)
            }
            _ => out.write(line),
        };
        super::tell_unless_broken(written);
    }
}
