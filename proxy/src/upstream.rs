//! The server's end of the session.

use std::{io, process::ExitStatus};

use crate::line::Line;

pub(crate) mod child;
pub(crate) mod http;
mod sse;
mod stream;

pub(crate) use child::Child;
pub(crate) use http::{Endpoint, EndpointError, Http};

/// Something that came from the server's end, in the order in which it came.
///
/// A child process only has lines. A transport that must not pass everything on as it is, or that
/// has to ask something itself, shows what it did: all of it is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A line of the server's, for the host.
    Line(Line),
    /// A line of the server's that the host may not get as it is, and what it may get.
    Amended {
        /// What the server said.
        line: Line,
        /// The same without what is not for the host.
        instead: Line,
    },
    /// A request of the transport's own, which is on its way already.
    Asked(Line),
    /// A line of the server's that only the transport asked for.
    Aside(Line),
}

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
    /// A session with a server that is no process of ours is over.
    SessionOver,
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
    /// A URL.
    Http(Http),
}

impl Upstream {
    /// What was read already.
    pub(crate) fn take_line(&mut self) -> Option<Said> {
        match self {
            Self::Child(child) => child.take_line().map(Said::Line),
            Self::Http(http) => http.take_line(),
        }
    }

    /// Puts a line on its way to the server.
    pub(crate) fn push(&mut self, line: &Line) {
        match self {
            Self::Child(child) => child.push(line),
            Self::Http(http) => http.push(line),
        }
    }

    /// Sends what the server takes at once.
    ///
    /// # Errors
    /// The write that failed; nothing more will reach the server.
    pub(crate) fn flush_now(&mut self) -> io::Result<()> {
        match self {
            Self::Child(child) => child.flush_now(),
            Self::Http(http) => {
                http.flush_now();
                Ok(())
            }
        }
    }

    /// Whether the host may go on speaking.
    pub(crate) fn has_room(&self) -> bool {
        match self {
            Self::Child(child) => child.has_room(),
            Self::Http(http) => http.has_room(),
        }
    }

    /// Ends the server's input, once all that waits has been sent.
    pub(crate) fn close(&mut self) {
        match self {
            Self::Child(child) => child.close(),
            Self::Http(http) => http.close(),
        }
    }

    /// Presses the server to end.
    pub(crate) fn press(&mut self, pressure: Pressure) {
        match self {
            Self::Child(child) => child.press(pressure),
            Self::Http(http) => http.press(pressure),
        }
    }

    /// The session ends now: nobody is there any more, or the proxy was told to stop.
    ///
    /// A process hears of it by the end of its input.
    pub(crate) fn cut_short(&mut self) {
        match self {
            Self::Child(child) => child.close(),
            Self::Http(http) => http.cut_short(),
        }
    }

    /// The host can neither speak nor hear any more. A process has its time all the same.
    pub(crate) fn host_is_gone(&mut self) {
        if let Self::Http(http) = self {
            http.cut_short();
        }
    }

    /// What became of a server that was pressed, if that is worth saying.
    pub(crate) fn after_pressure(&self, pressure: Pressure) -> Option<&'static str> {
        match (self, pressure) {
            (Self::Child(_), Pressure::Ask) => {
                Some("the server ran on after the end of its input and was ended with SIGTERM")
            }
            (Self::Child(_), Pressure::Force) => {
                Some("the server ran on after the end of its input and was ended with SIGKILL")
            }
            (Self::Http(http), _) => http.gave_up().then_some(
                "exchanges with the server went on after the end of the session's input, with nothing asked, and were given up",
            ),
        }
    }

    /// How the server's process ended, if it has; the rest of its output is not waited for.
    pub(crate) fn ending(&mut self) -> Option<Ending> {
        match self {
            Self::Child(child) => child.ending(),
            // Its end is the session's, which came or did not.
            Self::Http(_) => None,
        }
    }

    /// One small step. The server is only listened to when it `may_speak`. Cancel safe.
    pub(crate) async fn turn(&mut self, may_speak: bool) -> ServerTurn {
        match self {
            Self::Child(child) => child.turn(may_speak).await,
            Self::Http(http) => http.turn(may_speak).await,
        }
    }
}
