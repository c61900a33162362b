//! What a session does with what happens in it: events in, acts out, and no I/O.
//!
//! A passive session forwards every line. An active one ([`Active`]) reads what crosses it,
//! and forwards every line that it does not act on just the same.

mod active;
mod commit;
mod flow;
mod guard;
mod judge;
mod questions;
mod reading;
mod replies;
mod requests;
mod splice;
mod tools;

#[cfg(test)]
mod playbooks;

pub(crate) use active::{Active, Options};
pub(crate) use flow::{Limits, Serving};
pub(crate) use guard::Guarding;
pub(crate) use judge::Judging;
pub(crate) use questions::Ticket;
pub(crate) use requests::OwnIds;

use stretto_oracle::{Request, Response};

use crate::{clock::Millis, line::Line};

/// One of the two that talk to each other through the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The program that started the proxy.
    Host,
    /// What the proxy stands in front of.
    Server,
}

impl Side {
    /// The one it talks to.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Host => Self::Server,
            Self::Server => Self::Host,
        }
    }
}

/// Something that happened. A side is where it came from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    /// A line was read and recorded.
    Line(Side, Line),
    /// A line of the server's was read and recorded that the host may not get as it is.
    Amended {
        /// What the server said.
        line: Line,
        /// What the host may get.
        instead: Line,
    },
    /// A line of the conversation was read and recorded.
    Said(Line),
    /// A question that [`Act::Ask`] put has been answered, or why it will not be, on one line.
    Answered(Ticket, Result<Response, String>),
    /// The conversation was read, as [`Act::Listen`] asked.
    Listened,
    /// A side will say no more.
    Closed(Side),
    /// A side takes no more.
    Left(Side),
    /// Time has passed.
    Tick,
}

/// Something to do. A side is where it goes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Act {
    /// Pass a line on as it came.
    Forward(Side, Line),
    /// Record a line of the proxy's own, and send it.
    Send(Side, Line),
    /// Read what is new in the conversation, and come back with [`Event::Listened`].
    Listen,
    /// Put a question to the model, and come back with [`Event::Answered`].
    Ask(Ticket, Box<Request>),
    /// Take a host's line that was [kept back](Session::keeps_back), as if it came now.
    Admit(Line),
    /// Append a line to a log beside the session's.
    Note(SideLog, String),
    /// Tell the user.
    Say(String),
    /// End a side's input, once what waits for it is written.
    Close(Side),
}

/// A log beside the session log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SideLog {
    /// What the flow decided.
    Flow,
    /// What the confirmation judge said.
    Confirm,
    /// Why calls passed the guards, or did not.
    Explain,
}

/// What a session knows, and decides by.
#[derive(Debug, Default)]
pub(crate) struct Session {
    active: Option<Box<Active>>,
}

impl Session {
    /// A session that reads what crosses it.
    pub(crate) fn active(active: Active) -> Self {
        Self {
            active: Some(Box::new(active)),
        }
    }

    /// Takes one event, and adds what is to be done about it to `acts`.
    pub(crate) fn handle(&mut self, at: Millis, event: Event, acts: &mut Vec<Act>) {
        match (event, &mut self.active) {
            (Event::Line(from, line), None) => acts.push(Act::Forward(from.other(), line)),
            (Event::Amended { instead, .. }, None) => acts.push(Act::Send(Side::Host, instead)),
            (Event::Closed(Side::Host), None) => acts.push(Act::Close(Side::Server)),
            (_, None) => {}
            (event, Some(active)) => active.handle(at, event, acts),
        }
    }

    /// Whether the conversation has to be read before this line of the host's is recorded.
    pub(crate) fn wants_conversation(&self, line: &Line) -> bool {
        self.active
            .as_ref()
            .is_some_and(|active| active.wants_conversation(line))
    }

    /// Keeps a host's line back, unrecorded, if it uses an id that the proxy itself uses just now.
    pub(crate) fn keeps_back(&mut self, line: &Line) -> bool {
        self.active
            .as_mut()
            .is_some_and(|active| active.keeps_back(line))
    }

    /// Whether the session waits for something that has a time limit, and needs [`Event::Tick`].
    pub(crate) fn is_waiting(&self) -> bool {
        self.active
            .as_ref()
            .is_some_and(|active| active.is_waiting())
    }
}
