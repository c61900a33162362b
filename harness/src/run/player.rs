//! The host of one run: it does what the steps say and waits for what they expect.

mod hearing;
mod looking;

use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::host::{Host, Waited};
use crate::message::{Message, usual_form};
use crate::process::{self, Ending, Owned};
use crate::record::Seen;
use crate::scenario::Scenario;
use crate::scenario::placeholders::{self, Places};
use crate::scenario::step::{Act, Awaited, ExitAs, HostEnd, Outcome, RawBytes, Step};
use crate::server::GREETING;

use super::Failure;
use super::stage::Stage;
use hearing::excerpt;

/// How long what belongs to a proxy may outlive it.
const GRACE: Duration = Duration::from_secs(2);

/// What the host saw, once it is over.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) sent: Vec<Vec<u8>>,
    pub(super) sent_at: Vec<Duration>,
    pub(super) heard: Vec<Message>,
    pub(super) view: Vec<Seen>,
    pub(super) ending: Option<Ending>,
    /// Commands of processes that were still there when the proxy had gone.
    pub(super) left_running: Vec<String>,
    pub(super) is_deaf: bool,
}

/// The host in the middle of its scenario.
#[derive(Debug)]
pub(super) struct Player<'a> {
    scenario: &'a Scenario,
    stage: &'a Stage,
    places: Places,
    proxy: Owned,
    host: Host,
    /// What goes out with the next write.
    held_back: Vec<u8>,
    sent: Vec<Vec<u8>>,
    sent_at: Vec<Duration>,
    /// How long the host has thought so far.
    thought: Duration,
    heard: Vec<Message>,
    /// Which of `heard` a step has waited for.
    is_consumed: Vec<bool>,
    /// Lines of `heard` before this one have been shown.
    shown: usize,
    /// The place behind the last line that a step waited for.
    mark: usize,
    view: Vec<Seen>,
    /// Whether an answer has come since the last call.
    has_answer: bool,
    is_stdin_open: bool,
    is_deaf: bool,
    ending: Option<Ending>,
}

/// What went wrong at a step.
struct Wrong {
    expected: String,
    came: String,
}

impl<'a> Player<'a> {
    pub(super) fn start(scenario: &'a Scenario, stage: &'a Stage) -> Result<Self, String> {
        let mut command = stage.proxy()?;
        let mut proxy =
            Owned::start(&mut command).map_err(|error| format!("starting the proxy: {error}"))?;
        let ends = proxy.child().stdin.take().zip(proxy.child().stdout.take());
        let (stdin, stdout) = ends.ok_or("the proxy was started without pipes")?;
        let host = Host::new(stdin, stdout)
            .map_err(|error| format!("connecting to the proxy: {error}"))?;
        Ok(Self {
            scenario,
            stage,
            places: stage.places.clone(),
            proxy,
            host,
            held_back: Vec::new(),
            sent: Vec::new(),
            sent_at: Vec::new(),
            thought: Duration::ZERO,
            heard: Vec::new(),
            is_consumed: Vec::new(),
            shown: 0,
            mark: 0,
            view: Vec::new(),
            has_answer: false,
            is_stdin_open: true,
            is_deaf: false,
            ending: None,
        })
    }

    /// Plays all steps, and the end if they do not say it.
    pub(super) fn play(&mut self) -> Result<(), Failure> {
        for step in &self.scenario.steps {
            self.step(step)
                .map_err(|Wrong { expected, came }| Failure::Step {
                    line: step.line,
                    expected,
                    came,
                })?;
        }
        if self.ending.is_some() {
            return Ok(());
        }
        let last = self.scenario.steps.last().map_or(1, |step| step.line);
        self.flush();
        if self.is_stdin_open {
            self.did("closes stdin");
            self.close_stdin();
        }
        self.exit(ExitAs::Code(0))
            .map_err(|Wrong { expected, came }| Failure::Step {
                line: last,
                expected: format!("{expected}, after the last step"),
                came,
            })
    }

    /// Ends what is left of the proxy and tells what the host saw.
    pub(super) fn end(mut self) -> Played {
        self.host.close_stdin();
        if self.ending.is_none() {
            self.proxy.end();
        }
        // A server whose proxy was killed is ended by the system, which takes a moment. What then
        // still holds the pipe is ended here, so that the pipe's end can be read.
        let grace = if self.ending.is_some() {
            GRACE
        } else {
            Duration::ZERO
        };
        let mut left_running = process::end_rest(&self.stage.name, grace);
        if self.ending.is_none() {
            // The runner gave up on the proxy, so what is left is nobody's fault.
            left_running.clear();
        }
        let deadline = Instant::now() + Duration::from_secs(5);
        if !self.is_deaf {
            while let Waited::Line(line) = self.host.wait_until(deadline) {
                self.hear(line);
            }
        }
        self.show_up_to(self.heard.len());
        Played {
            sent: self.sent,
            sent_at: self.sent_at,
            heard: self.heard,
            view: self.view,
            ending: self.ending,
            left_running,
            is_deaf: self.is_deaf,
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), Wrong> {
        match &step.act {
            Act::Handshake {
                version,
                client,
                capabilities,
                id,
            } => {
                let params = json!({
                    "protocolVersion": self.filled(version)?,
                    "capabilities": self.filled_value(capabilities)?,
                    "clientInfo": { "name": self.filled(client)?, "version": "0" },
                });
                self.request("initialize", Some(&params), id, true)?;
                self.wait_for(&Awaited::Response(id.clone()), &step.expected)?;
                self.send_message(
                    &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
                    true,
                );
                self.own_stream_is_open()
            }
            Act::Request {
                method,
                params,
                id,
                wait,
            } => {
                let method = self.filled(method)?;
                let params = params
                    .as_ref()
                    .map(|params| self.filled_value(params))
                    .transpose()?;
                self.request(&method, params.as_ref(), id, *wait)?;
                if *wait {
                    self.wait_for(&Awaited::Response(id.clone()), &step.expected)
                } else {
                    Ok(())
                }
            }
            Act::Notify {
                method,
                params,
                wait,
            } => {
                let mut message = json!({ "jsonrpc": "2.0", "method": self.filled(method)? });
                if let (Some(params), Some(members)) = (params, message.as_object_mut()) {
                    members.insert("params".to_owned(), self.filled_value(params)?);
                }
                self.send_message(&message, *wait);
                Ok(())
            }
            Act::Answer { id, outcome, wait } => {
                let (member, body) = match outcome {
                    Outcome::Result(body) => ("result", body),
                    Outcome::Error(body) => ("error", body),
                };
                let message =
                    json!({ "jsonrpc": "2.0", "id": id, member: self.filled_value(body)? });
                self.send_message(&message, *wait);
                Ok(())
            }
            Act::Raw { bytes, end, wait } => {
                let mut line = match bytes {
                    RawBytes::Text(text) => self.filled(text)?.into_bytes(),
                    RawBytes::Bytes(bytes) => bytes.clone(),
                };
                line.extend_from_slice(end.as_bytes());
                self.send_line(line, *wait);
                Ok(())
            }
            Act::Expect(awaited) => {
                self.flush();
                self.wait_for(awaited, &step.expected)
            }
            Act::Say { role, text } => {
                self.flush();
                self.say(role, text)
            }
            Act::Think(time) => {
                self.flush();
                self.think(*time);
                Ok(())
            }
            Act::ReachedServer { what, times } => {
                self.flush();
                let what = self.filled(what)?;
                self.reached_server(&what, *times)
            }
            Act::ReachedModel { question, times } => {
                self.flush();
                let question = self.filled(question)?;
                let stage = self.stage;
                self.reached("the model", &question, *times, || stage.asked(&question))
            }
            Act::Release { question, about } => {
                self.flush();
                let question = self.filled(question)?;
                let which = about.as_ref().map(|about| format!(" about {about:?}"));
                let which = which.unwrap_or_default();
                self.did(&format!("has the model answer {question}{which}"));
                self.stage.release(&question, about.as_deref());
                Ok(())
            }
            Act::Written(path) => {
                self.flush();
                let path = self.filled(path)?;
                self.is_written(&path)
            }
            Act::Stderr(text) => {
                self.flush();
                let text = self.filled(text)?;
                self.stderr_holds(&text)
            }
            Act::Logged(text) => {
                self.flush();
                let text = self.filled(text)?;
                self.logs_hold(&text)
            }
            Act::StopReading => {
                self.flush();
                self.did("stops reading");
                self.is_deaf = true;
                self.host.stop_reading();
                Ok(())
            }
            Act::ReadOn => {
                self.flush();
                self.did("reads on");
                self.is_deaf = false;
                self.host.read_on();
                Ok(())
            }
            Act::Close(HostEnd::Stdin) => {
                self.flush();
                self.did("closes stdin");
                self.close_stdin();
                Ok(())
            }
            Act::Close(HostEnd::Stdout) => {
                self.flush();
                self.did("closes stdout");
                self.is_deaf = true;
                self.host.close_stdout();
                self.proxy.wait_until_unheard();
                Ok(())
            }
            Act::Signal(name) => {
                self.flush();
                self.did(&format!("sends SIG{}", name.word()));
                self.proxy.signal(name.signal());
                Ok(())
            }
            Act::Exit(how) => {
                self.flush();
                self.exit(*how)
            }
        }
    }

    /// Waits for the greeting on the server's own stream, where there is one: it comes beside
    /// everything else, and in a short session it might otherwise come too late.
    fn own_stream_is_open(&mut self) -> Result<(), Wrong> {
        let deadline = Instant::now() + self.stage.patience;
        let mut looked_at = 0;
        while self.stage.is_greeted() {
            let fresh = self.heard.iter().skip(looked_at);
            if fresh
                .into_iter()
                .any(|message| message.text().contains(GREETING))
            {
                break;
            }
            looked_at = self.heard.len();
            match self.host.wait_until(deadline) {
                Waited::Line(line) => self.hear(line),
                Waited::Ended | Waited::TimedOut => {
                    return Err(Wrong {
                        expected: "the greeting on the server's own stream".to_owned(),
                        came: self
                            .heard
                            .iter()
                            .map(excerpt)
                            .collect::<Vec<_>>()
                            .join("\n"),
                    });
                }
            }
        }
        Ok(())
    }

    fn did(&mut self, what: &str) {
        self.view.push(Seen::Did(what.to_owned()));
    }

    fn think(&mut self, time: Duration) {
        std::thread::sleep(time);
        self.thought += time;
    }

    fn close_stdin(&mut self) {
        self.is_stdin_open = false;
        self.host.close_stdin();
    }

    fn filled(&self, text: &str) -> Result<String, Wrong> {
        self.places.fill(text).map_err(|name| unset(&name))
    }

    fn filled_value(&self, value: &Value) -> Result<Value, Wrong> {
        self.places.fill_value(value).map_err(|name| unset(&name))
    }

    fn request(
        &mut self,
        method: &str,
        params: Option<&Value>,
        id: &Value,
        wait: bool,
    ) -> Result<(), Wrong> {
        if method == "tools/call" && self.has_answer && self.held_back.is_empty() {
            self.has_answer = false;
            if let Some(time) = self.scenario.think {
                self.think(time);
            }
        }
        let mut message =
            json!({ "jsonrpc": "2.0", "id": self.filled_value(id)?, "method": method });
        if let (Some(params), Some(members)) = (params, message.as_object_mut()) {
            members.insert("params".to_owned(), params.clone());
        }
        self.send_message(&message, wait);
        Ok(())
    }

    fn send_message(&mut self, message: &Value, now: bool) {
        self.send_line(format!("{}\n", usual_form(message)).into_bytes(), now);
    }

    fn send_line(&mut self, line: Vec<u8>, now: bool) {
        self.held_back.extend_from_slice(&line);
        self.view.push(Seen::Sent(line.clone()));
        self.sent.push(line);
        self.sent_at.push(self.thought);
        if now {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.held_back.is_empty() {
            self.host.send(std::mem::take(&mut self.held_back));
        }
    }

    fn say(&mut self, role: &str, text: &str) -> Result<(), Wrong> {
        let text = self.filled(text)?;
        self.did(&format!("{role} says {text:?}"));
        let path = self.places.get("CONTEXT").unwrap_or_default().to_owned();
        let line = format!("{}\n", json!({ "role": role, "content": text }));
        let written = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(line.as_bytes()));
        written.map_err(|error| Wrong {
            expected: format!("to append to {path}"),
            came: error.to_string(),
        })
    }

    fn exit(&mut self, how: ExitAs) -> Result<(), Wrong> {
        let deadline = Instant::now() + self.stage.patience;
        let expected = match how {
            ExitAs::Code(code) => format!("the proxy to exit with {code}"),
            ExitAs::Signal(name) => format!("the proxy to die of SIG{}", name.word()),
        };
        let status = self.proxy.wait_until(deadline);
        let Ok(Some(status)) = status else {
            let why = format!(
                "it was still running after {} s",
                self.stage.patience.as_secs()
            );
            return Err(Wrong {
                expected,
                came: why,
            });
        };
        let ending = process::ending(status);
        self.ending = Some(ending);
        let wanted = match how {
            ExitAs::Code(code) => Ending::Code(code),
            ExitAs::Signal(name) => Ending::Signal(name.number()),
        };
        if ending == wanted {
            return Ok(());
        }
        let stderr = self.stage.stderr_text();
        let last: Vec<&str> = stderr.lines().rev().take(5).collect();
        Err(Wrong {
            expected,
            came: format!("it ended with {ending}; stderr: {}", last.join(" / ")),
        })
    }
}

fn unset(name: &str) -> Wrong {
    Wrong {
        expected: format!("${name} to have a value here"),
        came: placeholders::unknown(name, &[]),
    }
}
