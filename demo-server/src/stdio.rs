//! The server on stdin and stdout: a line in, a line out.
//!
//! Synchronous on purpose. The proxy is measured in front of it, so a line costs one read, one
//! pass of the server and one write, on one thread. Only what waits, in a script that lets other
//! calls pass meanwhile, gets a thread of its own.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::era::{self, Era};
use crate::process;
use crate::protocol::{self, Message};
use crate::script::answers::{Aimed, When};
use crate::script::faults::Fault;
use crate::script::timeline::{Deed, Entry, Moment};
use crate::server::{Reaction, Server, Subscription};
use crate::shape;
use crate::voice;

mod over;

pub(crate) use over::serve_over;

/// How much is read at once.
const READ_AT_ONCE: usize = 64 * 1024;

/// How long a process lives on that was to live on without its input, and without a word of how
/// long. A test's proxy ends it long before; nobody else would.
const LONGEST_AFTERLIFE: Duration = Duration::from_mins(10);

/// How many calls may wait side by side. One more waits where the lines are read, and holds up
/// those behind it; so a burst of slow calls costs no more threads than a system has.
const MOST_AT_ONCE: usize = 4096;

/// Serves stdin until its end.
///
/// # Errors
///
/// When stdin cannot be read, or when a strict replay misses something. A host that no longer reads stdout is no error.
pub(crate) fn serve(server: &Server) -> io::Result<()> {
    let mut input = Input::open(server.may_close_stdin())?;
    let wire = Wire::new(server, input.waker.take());
    let ended = thread::scope(|threads| {
        for note in server.at_first() {
            sleep(note.wait);
            wire.write(note.text.as_bytes());
        }
        wire.come(threads, &Moment::Start);
        let ended = wire.lines(threads, &mut input);
        wire.linger();
        ended
    });
    server.finish();
    ended?;
    server
        .missing()
        .map_or(Ok(()), |missing| Err(io::Error::other(missing)))
}

/// Both ends of the process, and what is going on between them.
struct Wire<'a> {
    server: &'a Server,
    out: Mutex<Out>,
    listeners: Mutex<Vec<Subscription>>,
    /// Whether a legacy host has begun, which hears of changes unasked.
    has_begun: AtomicBool,
    clock: Clock,
    at_once: AtomicUsize,
    afterlife: Mutex<Option<Duration>>,
    input_is_closed: AtomicBool,
    waker: Option<io::PipeWriter>,
}

struct Out {
    stdout: io::Stdout,
    end: &'static [u8],
}

impl<'a> Wire<'a> {
    fn new(server: &'a Server, waker: Option<io::PipeWriter>) -> Self {
        Self {
            server,
            out: Mutex::new(Out {
                stdout: io::stdout(),
                end: b"\n",
            }),
            listeners: Mutex::default(),
            has_begun: AtomicBool::new(false),
            clock: Clock::default(),
            at_once: AtomicUsize::new(0),
            afterlife: Mutex::new(None),
            input_is_closed: AtomicBool::new(false),
            waker,
        }
    }

    /// Takes line after line, until the input ends or is closed.
    fn lines<'scope>(
        &'scope self,
        threads: &'scope Scope<'scope, '_>,
        input: &mut Input,
    ) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if input.reader.read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            self.server.transcript.line(&line);
            self.take(threads, &Message::read(&line));
            if self.input_is_closed.load(Ordering::Acquire) {
                return Ok(());
            }
        }
    }

    fn take<'scope>(&'scope self, threads: &'scope Scope<'scope, '_>, message: &Message) {
        if let Message::Notification(call) = message
            && call.method == "notifications/cancelled"
            && let Some(id) = call.params.get("requestId")
        {
            lock(&self.listeners).retain(|listener| listener.id != *id);
        }
        let reaction = self.server.react(message);
        let takes_time = reaction.takes_time();
        self.beside(threads, takes_time, move || self.perform(threads, reaction));
    }

    /// Does something that takes time beside what comes next, if calls may pass each other.
    fn beside<'scope>(
        &'scope self,
        threads: &'scope Scope<'scope, '_>,
        takes_time: bool,
        work: impl FnOnce() + Send + 'scope,
    ) {
        if !(takes_time
            && self.server.concurrent
            && self.at_once.load(Ordering::Relaxed) < MOST_AT_ONCE)
        {
            work();
            return;
        }
        self.at_once.fetch_add(1, Ordering::Relaxed);
        threads.spawn(move || {
            work();
            self.at_once.fetch_sub(1, Ordering::Relaxed);
        });
    }

    /// Does what the server does about a message, in the order of the reaction.
    fn perform<'scope>(&'scope self, threads: &'scope Scope<'scope, '_>, mut reaction: Reaction) {
        let faults = mem::take(&mut reaction.faults);
        let before = self.fire(&faults, When::Before);
        if self.befall(&before)
            && let Some(after) = self.wait_and_befall(&mut reaction, &faults)
            && let Some(answer) = &reaction.answer
        {
            self.answer(answer, &before.and(&after));
        }
        for note in reaction.trailing.drain(..) {
            sleep(note.wait);
            self.write(note.text.as_bytes());
        }
        if let Some(subscription) = reaction.subscription {
            lock(&self.listeners).push(subscription);
        }
        if let Some(moment) = &reaction.moment {
            if *moment == Moment::Initialize {
                self.has_begun.store(true, Ordering::Release);
            }
            self.come(threads, moment);
        }
    }

    /// Lets the time of a call pass, with what is sent meanwhile, and then its later faults happen.
    fn wait_and_befall(&self, reaction: &mut Reaction, faults: &[Aimed]) -> Option<Fault> {
        for note in reaction.notes.drain(..) {
            sleep(note.wait);
            self.write(note.text.as_bytes());
        }
        sleep(reaction.delay);
        if let Some(tool) = &reaction.made {
            self.server.made(tool);
        }
        let after = self.fire(faults, When::After);
        self.befall(&after).then_some(after)
    }

    /// The faults of one side of the server's work, as one, noted as fired.
    fn fire(&self, faults: &[Aimed], when: When) -> Fault {
        let mut all = Fault::default();
        for aimed in faults.iter().filter(|aimed| aimed.when == when) {
            self.server.fire(&aimed.label);
            all = all.and(&aimed.fault);
        }
        all
    }

    /// Lets a fault happen, as far as it is not about the answer. Says whether an answer follows.
    fn befall(&self, fault: &Fault) -> bool {
        if let Some(text) = &fault.stderr {
            voice::show(&format!("{text}\n"));
        }
        if fault.ignore_eof {
            *lock(&self.afterlife) =
                Some(fault.ms.map_or(LONGEST_AFTERLIFE, Duration::from_millis));
        }
        if fault.crlf {
            lock(&self.out).end = b"\r\n";
        }
        if let Some(line) = &fault.line {
            self.write(line.as_bytes());
        }
        if let Some(bytes) = &fault.bytes {
            self.write(bytes);
        }
        if fault.close_stdout {
            // The lock keeps a line from being torn apart.
            let out = lock(&self.out);
            tell(process::close_stdout(), "closing stdout");
            drop(out);
        }
        if fault.close_stdin {
            self.input_is_closed.store(true, Ordering::Release);
            if let Some(mut waker) = self.waker.as_ref() {
                tell(waker.write_all(b"!"), "closing stdin");
            }
        }
        if let Some(status) = fault.exit {
            self.server.finish();
            process::exit(status);
        }
        if let Some(signal) = fault.signal {
            process::kill(signal);
        }
        !fault.hang
    }

    /// Writes an answer, in the shape that a fault gives it.
    fn answer(&self, answer: &str, fault: &Fault) {
        for answer in shape::messages(answer, fault) {
            let mut out = lock(&self.out);
            let mut bytes = answer.into_owned().into_bytes();
            if fault.no_newline {
                tell_unless_broken(out.write(&bytes));
                self.server.finish();
                process::exit(0);
            }
            bytes.extend_from_slice(out.end);
            let written = match fault.split {
                None => out.write(&bytes),
                Some((size, wait)) => bytes.chunks(size.max(1)).try_for_each(|piece| {
                    out.write(piece)?;
                    sleep(Duration::from_millis(wait));
                    Ok(())
                }),
            };
            tell_unless_broken(written);
        }
    }

    /// Writes a line of the server's own.
    fn write(&self, text: &[u8]) {
        let mut out = lock(&self.out);
        let mut bytes = text.to_vec();
        bytes.extend_from_slice(out.end);
        tell_unless_broken(out.write(&bytes));
    }

    /// Starts what the timeline has for a moment.
    fn come<'scope>(&'scope self, threads: &'scope Scope<'scope, '_>, moment: &Moment) {
        for entry in self.server.due(moment) {
            if entry.wait.is_zero() {
                self.enact(&entry);
            } else {
                threads.spawn(move || {
                    if self.clock.wait(entry.wait) {
                        self.enact(&entry);
                    }
                });
            }
        }
    }

    fn enact(&self, entry: &Entry) {
        self.server.fire(&entry.label);
        match &entry.deed {
            Deed::Send(message) => self.write(message.to_string().as_bytes()),
            Deed::Line(text) => self.write(text.as_bytes()),
            Deed::Relist(listing) => {
                self.server.relist(listing);
                self.tell_of_changed_tools();
            }
            Deed::Fault(fault) => {
                self.befall(fault);
            }
        }
    }

    fn tell_of_changed_tools(&self) {
        const CHANGED: &str = "notifications/tools/list_changed";
        let listeners: Vec<Value> = lock(&self.listeners)
            .iter()
            .filter(|listener| listener.to_tools)
            .map(|listener| listener.id.clone())
            .collect();
        for id in listeners {
            let mut params = json!({});
            era::subscribe(&mut params, &id);
            self.write(protocol::notification(CHANGED, &params).as_bytes());
        }
        let hears_unasked = match self.server.era() {
            Era::Legacy => true,
            Era::Modern => false,
            Era::Dual => self.has_begun.load(Ordering::Acquire),
        };
        if hears_unasked {
            self.write(
                json!({"jsonrpc": "2.0", "method": CHANGED})
                    .to_string()
                    .as_bytes(),
            );
        }
    }

    /// What comes after the input: nothing, or the afterlife that a fault gave the process.
    fn linger(&self) {
        if self.input_is_closed.load(Ordering::Acquire) {
            tell(process::close_stdin(), "closing stdin");
            process::wait_until_stdout_is_unread(LONGEST_AFTERLIFE);
        } else if let Some(afterlife) = *lock(&self.afterlife) {
            sleep(afterlife);
        }
        // What the timeline still had in mind does not keep the process.
        self.clock.end();
    }
}

impl Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdout.write_all(bytes)?;
        self.stdout.flush()
    }
}

/// A host that no longer reads is no news.
fn tell_unless_broken(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        voice::say(&format!("writing stdout: {error}"));
    }
}

fn tell(done: io::Result<()>, what: &str) {
    if let Err(error) = done {
        voice::say(&format!("{what}: {error}"));
    }
}

fn sleep(time: Duration) {
    if !time.is_zero() {
        thread::sleep(time);
    }
}

/// Waits that end early when the session does.
#[derive(Debug, Default)]
struct Clock {
    has_ended: Mutex<bool>,
    ended: Condvar,
}

impl Clock {
    /// Waits, and says whether the session goes on.
    fn wait(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut has_ended = lock(&self.has_ended);
        while !*has_ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            has_ended = self
                .ended
                .wait_timeout(has_ended, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        false
    }

    fn end(&self) {
        *lock(&self.has_ended) = true;
        self.ended.notify_all();
    }
}

/// The process's input, which a fault may close while it is waited for.
struct Input {
    reader: BufReader<Box<dyn Read>>,
    waker: Option<io::PipeWriter>,
}

impl Input {
    fn open(may_be_closed: bool) -> io::Result<Self> {
        if cfg!(unix) && may_be_closed {
            let (woken, waker) = io::pipe()?;
            let reader = Wakeable {
                stdin: io::stdin(),
                woken,
            };
            return Ok(Self {
                reader: BufReader::with_capacity(READ_AT_ONCE, Box::new(reader)),
                waker: Some(waker),
            });
        }
        Ok(Self {
            reader: BufReader::with_capacity(READ_AT_ONCE, Box::new(io::stdin().lock())),
            waker: None,
        })
    }
}

/// stdin, whose wait for input can be ended from another thread. A read that is under way keeps
/// its pipe open, so closing the descriptor alone would not close the end.
struct Wakeable {
    stdin: io::Stdin,
    woken: io::PipeReader,
}

#[cfg(unix)]
impl Read for Wakeable {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        use rustix::event::{PollFd, PollFlags, poll};

        let mut ends = [
            PollFd::new(&self.stdin, PollFlags::IN),
            PollFd::new(&self.woken, PollFlags::IN),
        ];
        poll(&mut ends, None)?;
        let [_, woken] = &ends;
        if woken.revents().is_empty() {
            self.stdin.read(into)
        } else {
            Ok(0)
        }
    }
}

#[cfg(not(unix))]
impl Read for Wakeable {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stdin.read(into)
    }
}

/// Each statement leaves what is locked whole, so a panic elsewhere does not matter.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
