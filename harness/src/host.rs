//! The other end of the proxy's stdin and stdout.
//!
//! Both ends have a thread of their own, so a proxy that does not read, or writes without
//! end, never stops a run. The reading one can be told to stop, to go on and to close.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use crate::process::is_stopped;

/// What the reading end has to tell.
#[derive(Debug)]
enum Told {
    Line(Vec<u8>),
    Ended,
    Obeyed,
}

/// What came of waiting for a line.
#[derive(Debug)]
pub(crate) enum Waited {
    Line(Vec<u8>),
    /// The proxy closed its stdout.
    Ended,
    TimedOut,
}

/// The host's two ends of the proxy.
#[derive(Debug)]
pub(crate) struct Host {
    to_write: Option<Sender<Vec<u8>>>,
    told: Receiver<Told>,
    orders: Option<File>,
    has_ended: bool,
    /// Lines that came while an order was being obeyed.
    early: Vec<Vec<u8>>,
}

impl Host {
    pub(crate) fn new(stdin: ChildStdin, stdout: ChildStdout) -> std::io::Result<Self> {
        let (to_write, lines) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let (ear, orders) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        thread::Builder::new()
            .name("host-stdin".to_owned())
            .spawn(move || write(stdin, &lines))?;
        thread::Builder::new()
            .name("host-stdout".to_owned())
            .spawn(move || read(stdout.into(), ear.into(), &tell))?;
        Ok(Self {
            to_write: Some(to_write),
            told,
            orders: Some(orders.into()),
            has_ended: false,
            early: Vec::new(),
        })
    }

    /// Writes these bytes in one piece; what the proxy does not take is dropped.
    pub(crate) fn send(&self, bytes: Vec<u8>) {
        if let Some(to_write) = &self.to_write {
            // The writer is gone when the proxy is, and then nobody can be told any more.
            drop(to_write.send(bytes));
        }
    }

    /// Closes the proxy's stdin, after what was sent before.
    pub(crate) fn close_stdin(&mut self) {
        self.to_write = None;
    }

    /// Stops reading; what the proxy writes stays in the pipe.
    pub(crate) fn stop_reading(&mut self) {
        self.order(b's');
    }

    pub(crate) fn read_on(&mut self) {
        self.order(b'g');
    }

    /// Closes the proxy's stdout.
    pub(crate) fn close_stdout(&mut self) {
        self.order(b'c');
        self.orders = None;
        self.has_ended = true;
    }

    fn order(&mut self, order: u8) {
        let Some(orders) = &mut self.orders else {
            return;
        };
        if orders.write_all(&[order]).is_err() {
            return;
        }
        loop {
            match self.told.recv() {
                Ok(Told::Obeyed) | Err(_) => return,
                Ok(Told::Line(line)) => self.early.push(line),
                Ok(Told::Ended) => self.has_ended = true,
            }
        }
    }

    /// Waits for a line, at most until `deadline`.
    pub(crate) fn wait_until(&mut self, deadline: Instant) -> Waited {
        if !self.early.is_empty() {
            return Waited::Line(self.early.remove(0));
        }
        while !self.has_ended {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.told.recv_timeout(left.min(Duration::from_millis(100))) {
                Ok(Told::Line(line)) => return Waited::Line(line),
                Ok(Told::Ended) | Err(RecvTimeoutError::Disconnected) => self.has_ended = true,
                Err(RecvTimeoutError::Timeout) if left.is_zero() || is_stopped() => {
                    return Waited::TimedOut;
                }
                Ok(Told::Obeyed) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Waited::Ended
    }
}

fn write(mut stdin: ChildStdin, lines: &Receiver<Vec<u8>>) {
    for bytes in lines {
        if stdin
            .write_all(&bytes)
            .and_then(|()| stdin.flush())
            .is_err()
        {
            return;
        }
    }
}

fn read(stdout: OwnedFd, mut ear: File, tell: &Sender<Told>) {
    let mut stdout = Some(File::from(stdout));
    let mut is_listening = true;
    let mut unfinished = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let mut fds = vec![PollFd::new(&ear, PollFlags::IN)];
        if is_listening && let Some(stdout) = &stdout {
            fds.push(PollFd::new(stdout, PollFlags::IN));
        }
        if poll(&mut fds, None).is_err() {
            return;
        }
        let is_told = fds.first().is_some_and(|fd| !fd.revents().is_empty());
        let has_more = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        drop(fds);
        if is_told {
            let mut order = [0];
            match ear.read(&mut order) {
                Ok(1) => {}
                _ => return,
            }
            match order {
                [b's'] => is_listening = false,
                [b'g'] => is_listening = true,
                _ => stdout = None,
            }
            if tell.send(Told::Obeyed).is_err() {
                return;
            }
            continue;
        }
        let Some(open) = &mut stdout else { continue };
        if !has_more {
            continue;
        }
        match open.read(&mut piece) {
            Ok(0) | Err(_) => {
                stdout = None;
                if !unfinished.is_empty()
                    && tell
                        .send(Told::Line(std::mem::take(&mut unfinished)))
                        .is_err()
                {
                    return;
                }
                if tell.send(Told::Ended).is_err() {
                    return;
                }
            }
            Ok(read) => {
                let mut rest = piece.get(..read).unwrap_or_default();
                while let Some(end) = memchr::memchr(b'\n', rest) {
                    let (line, behind) = rest.split_at(end + 1);
                    unfinished.extend_from_slice(line);
                    rest = behind;
                    if tell
                        .send(Told::Line(std::mem::take(&mut unfinished)))
                        .is_err()
                    {
                        return;
                    }
                }
                unfinished.extend_from_slice(rest);
            }
        }
    }
}
