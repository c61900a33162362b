//! The server's end of the session.

use std::{io, process::ExitStatus};

use crate::line::Line;

pub(crate) mod child;

pub(crate) use child::Child;

/// What the server's end did in its turn.
#[derive(Debug)]
pub(crate) enum ServerTurn {
    /// It said something: [`Upstream::take_line`] has it.
    Spoke,
    /// It will say nothing more.
    Ended,
    /// Reading from it failed; it will say nothing more.
    Broke(io::Error),
    /// It took a piece of what waited.
    Took,
    /// Writing to it failed; nothing more will reach it.
    Left(io::Error),
    /// It is over.
    Gone(Ending),
}

/// How a server's end of the session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The server's process ended so.
    Exited(ExitStatus),
    /// The process ended, and the system does not say how.
    Unknown,
}

/// How hard a server that does not end by itself is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pressure {
    /// It is asked to end: SIGTERM.
    Ask,
    /// It is ended: SIGKILL.
    Force,
}

/// Where the server is.
#[derive(Debug)]
pub(crate) enum Upstream {
    /// A process that the proxy has started.
    Child(Child),
}

impl Upstream {
    /// A line that was read already.
    pub(crate) fn take_line(&mut self) -> Option<Line> {
        match self {
            Self::Child(child) => child.take_line(),
        }
    }

    /// Puts a line on its way to the server.
    pub(crate) fn push(&mut self, line: &Line) {
        match self {
            Self::Child(child) => child.push(line),
        }
    }

    /// Sends what the server takes at once.
    ///
    /// # Errors
    /// The write that failed; nothing more will reach the server.
    pub(crate) fn flush_now(&mut self) -> io::Result<()> {
        match self {
            Self::Child(child) => child.flush_now(),
        }
    }

    /// Whether the host may go on speaking.
    pub(crate) fn has_room(&self) -> bool {
        match self {
            Self::Child(child) => child.has_room(),
        }
    }

    /// Ends the server's input, once all that waits has been sent.
    pub(crate) fn close(&mut self) {
        match self {
            Self::Child(child) => child.close(),
        }
    }

    /// Presses the server to end.
    pub(crate) fn press(&mut self, pressure: Pressure) {
        match self {
            Self::Child(child) => child.press(pressure),
        }
    }

    /// One small step. The server is only listened to when it `may_speak`. Cancel safe.
    pub(crate) async fn turn(&mut self, may_speak: bool) -> ServerTurn {
        match self {
            Self::Child(child) => child.turn(may_speak).await,
        }
    }
}
