//! One message and what comes back for it: as JSON, as an event stream, or as a fault has it.

use std::io::{self, Read as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::live::Heard;
use super::sessions::{Session, StreamId};
use super::stream::{Stream, manner};
use super::wire::{self, Head, Manner, Request};
use super::{After, EVENTS, Endpoint, JSON};
use crate::process;
use crate::protocol::Message;
use crate::script::answers::{Aimed, When};
use crate::script::faults::Fault;
use crate::script::manners::{Form, SessionRule};
use crate::server::{Note, Reaction};
use crate::shape;
use crate::voice;

/// How long a connection is kept for a client that gets no answer and does not leave.
const LONGEST_SILENCE: Duration = Duration::from_mins(10);

/// How often a stream that has nothing to say says so, which shows whether anybody listens.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A request under way.
pub(super) struct Exchange<'a> {
    pub(super) endpoint: &'a Arc<Endpoint>,
    pub(super) request: &'a Request,
    pub(super) session: Option<Arc<Session>>,
    pub(super) out: &'a TcpStream,
    /// The headers of the answer, whatever its form.
    pub(super) head: Head,
    /// Whether the answer, if it is a result, begins a session.
    pub(super) begins_a_session: bool,
}

impl Exchange<'_> {
    /// Carries out what the server does about the request's message.
    pub(super) fn carry_out(
        mut self,
        mut reaction: Reaction,
        form: Form,
        notice: Option<&str>,
    ) -> io::Result<After> {
        let faults = std::mem::take(&mut reaction.faults);
        let before = self.fire(&faults, When::Before);
        self.befall(&before);
        if let Some(after) = self.answer_of_the_fault(&before) {
            self.come(&reaction);
            return after;
        }

        if self.begins_a_session {
            self.begin_a_session(&mut reaction)?;
        }
        // A fault in place of the answer's head keeps a stream from opening before it.
        let spoils_the_head = faults
            .iter()
            .any(|aimed| aimed.when == When::After && spoils_the_head(&aimed.fault));
        let after = if reaction.subscription.is_some() {
            self.subscription(&reaction)
        } else if (reaction.answer.is_some() || reaction.is_silent || reaction.is_live)
            && form == Form::Stream
            && !spoils_the_head
        {
            self.stream(&mut reaction, &faults, &before, notice)
        } else {
            self.whole(&mut reaction, &faults, &before)
        };
        self.trail(std::mem::take(&mut reaction.trailing));
        self.come(&reaction);
        after
    }

    /// Says what a recorded server said next, on the session's own stream.
    fn trail(&self, notes: Vec<Note>) {
        let Some(session) = self.session.clone().filter(|_| !notes.is_empty()) else {
            return;
        };
        thread::spawn(move || {
            for note in notes {
                thread::sleep(note.wait);
                session.say(note.text);
            }
        });
    }

    /// Begins the session that the answer agrees on, which the head of the answer names.
    fn begin_a_session(&mut self, reaction: &mut Reaction) -> io::Result<()> {
        // A live server has to be heard first.
        if let Some(told) = self.ask_the_live(reaction) {
            hear(reaction, &told, |note| {
                self.say(note);
                Ok(())
            })?;
        }
        let Some(version) = reaction.answer.as_deref().and_then(version) else {
            return Ok(());
        };
        let session = match self.endpoint.server.manners.session {
            SessionRule::Required => self.endpoint.sessions.begin(version),
            SessionRule::None | SessionRule::Wrong => {
                self.endpoint.nobody.agree(version);
                Arc::clone(&self.endpoint.nobody)
            }
        };
        if !session.id.is_empty() {
            self.head
                .headers
                .push((super::SESSION.to_owned(), session.id.clone()));
        }
        self.session = Some(session);
        Ok(())
    }

    /// Passes the request on to the live server, if that is to answer it.
    fn ask_the_live(&self, reaction: &Reaction) -> Option<Receiver<Heard>> {
        let live = self.endpoint.live.as_ref().filter(|_| reaction.is_live)?;
        let Message::Request(id, call) = Message::read(&self.request.body) else {
            return None;
        };
        Some(live.ask(
            &self.request.body,
            &id,
            call.params.pointer("/_meta/progressToken"),
        ))
    }

    /// Says something that has no stream of its own to stand on.
    fn say(&self, message: &str) {
        // A modern host without a stream has nowhere to hear it.
        if self.session.is_some() || self.begins_a_session {
            self.endpoint.say(message.to_owned(), self.session.as_ref());
        }
    }

    fn come(&self, reaction: &Reaction) {
        if let Some(moment) = &reaction.moment {
            self.endpoint.come(moment, self.session.as_ref());
        }
    }

    /// The answer as one body, or no answer.
    fn whole(
        &self,
        reaction: &mut Reaction,
        faults: &[Aimed],
        before: &Fault,
    ) -> io::Result<After> {
        for note in reaction.notes.drain(..) {
            thread::sleep(note.wait);
            self.say(&note.text);
        }
        thread::sleep(std::mem::take(&mut reaction.delay));
        if let Some(told) = self.ask_the_live(reaction) {
            hear(reaction, &told, |note| {
                self.say(note);
                Ok(())
            })?;
        } else if let Some(live) = self
            .endpoint
            .live
            .as_ref()
            .filter(|_| reaction.answer.is_none())
        {
            live.tell(&self.request.body);
        }
        let after = self.work(reaction, faults);
        if let Some(answer) = self.answer_of_the_fault(&after) {
            return answer;
        }
        if reaction.is_silent {
            self.wait_for_the_client();
            return Ok(After::Close);
        }
        let Some(answer) = &reaction.answer else {
            return self.send(&self.status(202), b"");
        };

        let fault = before.clone().and(&after);
        let mut body = Vec::new();
        if let Some(bytes) = &fault.bytes {
            body.extend_from_slice(bytes);
        }
        let messages = shape::messages(answer, &fault);
        let lines = fault
            .line
            .iter()
            .cloned()
            .chain(messages.iter().map(|message| pretty(message, &fault)));
        body.extend_from_slice(lines.collect::<Vec<_>>().join("\n").as_bytes());
        let head = Head {
            status: reaction.status,
            ..self.head.clone()
        }
        .with("Content-Type", JSON);
        wire::send(
            &mut &*self.out,
            &head,
            &body,
            self.keeps_alive(),
            manner(&fault),
        )?;
        Ok(if fault.cut.is_some() {
            After::Close
        } else {
            self.after()
        })
    }

    /// The answer on an event stream. The stream opens, and what comes first is sent, before the
    /// call takes its time: a client that waits for whole bodies is found that way.
    fn stream(
        &self,
        reaction: &mut Reaction,
        faults: &[Aimed],
        before: &Fault,
        notice: Option<&str>,
    ) -> io::Result<After> {
        let aimed_after = faults
            .iter()
            .filter(|aimed| aimed.when == When::After)
            .fold(Fault::default(), |all, aimed| all.and(&aimed.fault));
        let fault = before.clone().and(&aimed_after);
        let mut stream = self.open(&fault)?;
        stream.begin()?;
        if let Some(notice) = notice {
            stream.send(notice)?;
        }
        for note in reaction.notes.drain(..) {
            thread::sleep(note.wait);
            stream.send(&note.text)?;
        }
        thread::sleep(std::mem::take(&mut reaction.delay));
        if let Some(told) = self.ask_the_live(reaction) {
            hear(reaction, &told, |note| stream.send(note))?;
        }
        let after = self.work(reaction, faults);
        if after.hang || reaction.is_silent {
            self.wait_for_the_client();
            return Ok(After::Close);
        }
        if let Some(bytes) = &fault.bytes {
            stream.raw(bytes)?;
        }
        if let Some(line) = &fault.line {
            stream.send(line)?;
        }
        let answer = reaction.answer.as_deref().unwrap_or_default();
        let messages = shape::messages(answer, &fault);
        for (at, message) in messages.iter().enumerate() {
            stream.is_at_the_end = at + 1 == messages.len();
            stream.send(&pretty(message, &fault))?;
        }
        if let Some(ms) = fault.keep_open_ms {
            thread::sleep(Duration::from_millis(ms));
        }
        stream.end()?;
        Ok(self.after_stream())
    }

    /// A stream that stays open for what the server has to tell.
    fn subscription(&self, reaction: &Reaction) -> io::Result<After> {
        let Some(subscription) = reaction.subscription.clone() else {
            return Ok(After::Close);
        };
        let told = self.endpoint.subscribe(subscription);
        let mut stream = self.open(&Fault::default())?;
        for note in &reaction.notes {
            stream.send(&note.text)?;
        }
        self.come(reaction);
        loop {
            match told.recv_timeout(KEEP_ALIVE) {
                Ok(message) => stream.send(&message)?,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                    stream.raw(b": still here\n\n")?;
                }
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return Ok(After::Close),
            }
        }
    }

    /// The session's own stream, for as long as it may stay open.
    pub(super) fn own_stream(
        &self,
        session: &Session,
        longest: Duration,
        closes: bool,
        hello: Option<&str>,
    ) -> io::Result<After> {
        let until = Instant::now() + longest;
        let mut stream = self.open(&Fault::default())?;
        if longest.is_zero() {
            stream.end()?;
            return Ok(self.after_stream());
        }
        stream.begin_own()?;
        if let Some(hello) = hello {
            stream.send(hello)?;
        }
        let last = self
            .request
            .text("last-event-id")
            .and_then(|id| id.parse().ok())
            .filter(|_| self.endpoint.gives_ids());
        if let Some(id) = last
            && let Some(resumed) = session
                .stream_of(id)
                .filter(|resumed| *resumed != StreamId::OWN)
        {
            let mut id = id;
            while let super::sessions::Next::Event(event) = session.next_after(resumed, id, until) {
                id = event.id;
                stream.send_with_id(&event.message, Some(id))?;
            }
            stream.end()?;
            return Ok(self.after_stream());
        }
        if let Some(id) = last {
            session.rewind(id);
        }
        let listener = session.listen();
        while let super::sessions::Next::Event(event) = session.next(listener, until) {
            stream.send_with_id(
                &event.message,
                self.endpoint.gives_ids().then_some(event.id),
            )?;
            if closes {
                break;
            }
        }
        stream.end()?;
        Ok(self.after_stream())
    }

    /// Lets the time of a call pass, and its later faults happen.
    fn work(&self, reaction: &Reaction, faults: &[Aimed]) -> Fault {
        thread::sleep(reaction.delay);
        if let Some(tool) = &reaction.made {
            self.endpoint.server.made(tool);
        }
        let after = self.fire(faults, When::After);
        self.befall(&after);
        after
    }

    /// The faults of one side of the server's work, as one, noted as fired.
    fn fire(&self, faults: &[Aimed], when: When) -> Fault {
        let mut all = Fault::default();
        for aimed in faults.iter().filter(|aimed| aimed.when == when) {
            self.endpoint.server.fire(&aimed.label);
            all = all.and(&aimed.fault);
        }
        all
    }

    /// Lets happen what a fault does beside the answer.
    fn befall(&self, fault: &Fault) {
        self.endpoint.befall(fault);
        if fault.end_session
            && let Some(session) = &self.session
        {
            self.endpoint.sessions.end(&session.id);
        }
    }

    /// What is answered in place of the answer, if a fault has it so.
    fn answer_of_the_fault(&self, fault: &Fault) -> Option<io::Result<After>> {
        if fault.refuse {
            return Some(Ok(After::Close));
        }
        if fault.hang {
            self.wait_for_the_client();
            return Some(Ok(After::Close));
        }
        if let Some(status) = fault.status {
            let headers = fault.headers.iter().flatten();
            let head = headers.fold(Head::new(status), |head, (name, value)| {
                head.with(name, value)
            });
            let body = fault.body.as_deref().unwrap_or_default();
            return Some(self.send(&head, body.as_bytes()));
        }
        if let Some(location) = &fault.redirect {
            return Some(self.send(&Head::new(302).with("Location", location), b""));
        }
        if fault.end_session {
            return Some(self.send(&Head::new(404), b""));
        }
        if fault.accepted {
            return Some(self.send(&self.status(202), b""));
        }
        if fault.no_body {
            return Some(self.send(&self.status(200).with("Content-Type", JSON), b""));
        }
        None
    }

    fn status(&self, status: u16) -> Head {
        Head {
            status,
            ..self.head.clone()
        }
    }

    fn send(&self, head: &Head, body: &[u8]) -> io::Result<After> {
        wire::send(
            &mut &*self.out,
            head,
            body,
            self.keeps_alive(),
            Manner::default(),
        )?;
        Ok(self.after())
    }

    fn open(&self, fault: &Fault) -> io::Result<Stream<'_>> {
        let head = self
            .status(200)
            .with("Content-Type", EVENTS)
            .with("Cache-Control", "no-cache")
            .with("X-Accel-Buffering", "no");
        let session = self.session.as_ref().filter(|_| self.endpoint.gives_ids());
        Stream::open(
            self.endpoint,
            self.out,
            &head,
            self.stream_keeps_alive(),
            session,
            fault,
        )
    }

    /// Answers nothing, for as long as the client waits.
    pub(super) fn never(&self) {
        self.wait_for_the_client();
    }

    /// Waits until the client leaves, which gets nothing more.
    fn wait_for_the_client(&self) {
        let mut input = self.out;
        // A client that does not leave loses its connection in the end.
        drop(input.set_read_timeout(Some(LONGEST_SILENCE)));
        let mut bytes = [0; 4096];
        while matches!(input.read(&mut bytes), Ok(read) if read > 0) {}
    }

    fn keeps_alive(&self) -> bool {
        self.request.keeps_alive
    }

    /// Whether a stream to this client ends without ending the connection.
    fn stream_keeps_alive(&self) -> bool {
        self.request.keeps_alive && self.request.takes_chunks
    }

    fn after(&self) -> After {
        if self.keeps_alive() {
            After::Keep
        } else {
            After::Close
        }
    }

    fn after_stream(&self) -> After {
        if self.stream_keeps_alive() {
            After::Keep
        } else {
            After::Close
        }
    }
}

/// Waits for the live server's answer, and sends what it says before.
///
/// # Errors
///
/// Of the kind `ConnectionAborted` when the live server is gone: the caller then drops the connection.
fn hear(
    reaction: &mut Reaction,
    told: &Receiver<Heard>,
    mut note: impl FnMut(&str) -> io::Result<()>,
) -> io::Result<()> {
    reaction.is_live = false;
    for heard in told {
        match heard {
            Heard::Note(text) => note(&text)?,
            Heard::Answer(answer) => {
                let value: Value = serde_json::from_str(&answer).unwrap_or_default();
                if value.get("result").is_none() || value["result"]["isError"] == true {
                    reaction.made = None;
                }
                reaction.answer = Some(answer);
                return Ok(());
            }
        }
    }
    Err(io::ErrorKind::ConnectionAborted.into())
}

/// The version that an answer to `initialize` agrees on, if it does.
fn version(answer: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    match answer.get("result")?.get("protocolVersion")? {
        Value::String(version) => Some(version.clone()),
        other => Some(other.to_string()),
    }
}

fn spoils_the_head(fault: &Fault) -> bool {
    fault.status.is_some()
        || fault.redirect.is_some()
        || fault.end_session
        || fault.accepted
        || fault.no_body
        || fault.refuse
}

/// A message on several lines, if a fault has it so.
fn pretty(message: &str, fault: &Fault) -> String {
    if fault.pretty
        && let Ok(value) = serde_json::from_str::<Value>(message)
        && let Ok(text) = serde_json::to_string_pretty(&value)
    {
        return text;
    }
    message.to_owned()
}

impl Endpoint {
    /// Lets happen what a fault does to the process.
    pub(super) fn befall(&self, fault: &Fault) {
        if let Some(text) = &fault.stderr {
            voice::show(&format!("{text}\n"));
        }
        if fault.crlf {
            self.crlf.store(true, Ordering::Release);
        }
        if let Some(status) = fault.exit {
            self.server.finish();
            process::exit(status);
        }
        if let Some(signal) = fault.signal {
            process::kill(signal);
        }
    }
}
