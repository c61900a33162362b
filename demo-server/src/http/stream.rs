//! An event stream to a client, and what may become of it on the way.

use std::io;
use std::mem;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Endpoint;
use super::sessions::{Session, StreamId};
use super::wire::{self, Body, Head, Manner};
use crate::script::faults::Fault;

/// An event stream to a client.
pub(super) struct Stream<'a> {
    state: State<'a>,
    out: &'a TcpStream,
    keeps_alive: bool,
    endpoint: &'a Endpoint,
    /// The session that keeps the events, and under which stream.
    kept: Option<(Arc<Session>, Option<StreamId>)>,
    /// After how many events the stream is dropped.
    left: Option<usize>,
    cuts_the_last: bool,
    /// Whether the next event is the last.
    pub(super) is_at_the_end: bool,
}

/// How far a stream is.
enum State<'a> {
    Open(Body<&'a TcpStream>),
    /// It has ended early, as a fault had it.
    Dropped,
    /// It has ended in the middle, and its connection with it.
    Broken,
}

impl<'a> Stream<'a> {
    /// Opens a stream. A session that is given keeps its events.
    pub(super) fn open(
        endpoint: &'a Endpoint,
        out: &'a TcpStream,
        head: &Head,
        keeps_alive: bool,
        session: Option<&Arc<Session>>,
        fault: &Fault,
    ) -> io::Result<Self> {
        Ok(Self {
            state: State::Open(wire::open(out, head, keeps_alive, manner(fault))?),
            out,
            keeps_alive,
            endpoint,
            kept: session.map(|session| (Arc::clone(session), None)),
            left: fault.drop_after,
            cuts_the_last: fault.cut_event,
            is_at_the_end: false,
        })
    }

    /// What the stream of a POST begins with.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        self.begin_own()?;
        if let Some((session, stream)) = &mut self.kept {
            let opened = session.open_stream();
            *stream = Some(opened);
            // An id alone, from which the client may go on when the stream is dropped at once.
            let id = session.keep(opened, "");
            self.write(&format!("id: {id}\ndata:\n\n"))?;
        }
        self.drop_if_over()
    }

    /// What every stream begins with.
    pub(super) fn begin_own(&mut self) -> io::Result<()> {
        match self.endpoint.server.manners.retry_ms {
            Some(ms) => self.write(&format!("retry: {ms}\n\n")),
            None => Ok(()),
        }
    }

    /// Sends a message, and keeps it if events are kept.
    pub(super) fn send(&mut self, message: &str) -> io::Result<()> {
        let id = match &self.kept {
            Some((session, Some(stream))) => Some(session.keep(*stream, message)),
            _ => None,
        };
        self.send_with_id(message, id)
    }

    pub(super) fn send_with_id(&mut self, message: &str, id: Option<u64>) -> io::Result<()> {
        let mut event = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        event.push_str("event: message\n");
        for line in message.split('\n') {
            for part in ["data: ", line, "\n"] {
                event.push_str(part);
            }
        }
        if !(self.cuts_the_last && self.is_at_the_end) {
            event.push('\n');
        }
        self.write(&event)?;
        self.left = self.left.map(|left| left.saturating_sub(1));
        self.drop_if_over()
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        let ends_in_crlf = self.endpoint.crlf.load(Ordering::Acquire);
        if ends_in_crlf {
            self.raw(text.replace('\n', "\r\n").as_bytes())
        } else {
            self.raw(text.as_bytes())
        }
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        let State::Open(body) = &mut self.state else {
            return Ok(());
        };
        match body.write(bytes) {
            Err(_) if self.kept.is_some() => {
                // The rest is kept for a client that asks for it, and this one hears of the end now.
                self.state = State::Broken;
                self.out.shutdown(Shutdown::Both).ok();
                Ok(())
            }
            written => written,
        }
    }

    /// Ends the stream early when its events are used up. What comes later is kept, if events
    /// are, for a client that asks for the rest.
    fn drop_if_over(&mut self) -> io::Result<()> {
        if self.left != Some(0) || !matches!(self.state, State::Open(_)) {
            return Ok(());
        }
        let State::Open(body) = mem::replace(&mut self.state, State::Dropped) else {
            return Ok(());
        };
        body.end()?;
        if !self.keeps_alive {
            // Only the end of the connection ends such a body.
            self.out.shutdown(Shutdown::Write)?;
        }
        Ok(())
    }

    pub(super) fn end(self) -> io::Result<()> {
        if let Some((session, Some(stream))) = &self.kept {
            session.close_stream(*stream);
        }
        match self.state {
            State::Open(body) => body.end(),
            State::Dropped => Ok(()),
            State::Broken => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
}

/// How a fault has a body sent.
pub(super) fn manner(fault: &Fault) -> Manner {
    let pieces = fault
        .slow
        .or(fault.split)
        .map(|(size, wait)| (size, Duration::from_millis(wait)));
    Manner {
        cut: fault.cut,
        pieces,
    }
}
