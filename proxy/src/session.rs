//! What a session does with what happens in it: events in, acts out, and no I/O.

use crate::line::Line;

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A line was read and recorded.
    Line(Side, Line),
    /// A side will say no more.
    Closed(Side),
}

/// Something to do. A side is where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Pass a line on as it came.
    Forward(Side, Line),
    /// End a side's input, once what waits for it is written.
    Close(Side),
}

/// What a session knows, and decides by.
#[derive(Debug, Default)]
pub(crate) struct Session {}

impl Session {
    /// Takes one event, and adds what is to be done about it to `acts`.
    pub(crate) fn handle(&mut self, event: Event, acts: &mut Vec<Act>) {
        match event {
            Event::Line(from, line) => acts.push(Act::Forward(from.other(), line)),
            Event::Closed(Side::Host) => acts.push(Act::Close(Side::Server)),
            Event::Closed(Side::Server) => {}
        }
    }
}
