//! Lines on their way out of one side.

use std::{
    collections::VecDeque,
    future::poll_fn,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use tokio::io::AsyncWrite;

use crate::line::Line;

/// So many bytes wait for one side at most before nothing more is read from the other.
///
/// Bursts of small lines stay well below it, and a side that has stopped reading costs no more.
const HIGH_WATER: usize = 1024 * 1024;

/// How many lines go into one system call at most; the system's own limit is 1,024.
const SLICES: usize = 64;

/// Where an outbox writes to.
pub(crate) trait Sink: AsyncWrite + Unpin {
    /// Writes what can be written at once. [`io::ErrorKind::WouldBlock`] when that is nothing.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// The same for several pieces, one after the other.
    fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;
}

/// Lines that wait for a writer, and the writer.
///
/// A write that fails ends it: what waits is dropped, and so is all that comes later. The
/// side that speaks is not stopped by that.
#[derive(Debug)]
pub(crate) struct Outbox<W> {
    waiting: VecDeque<Bytes>,
    size: usize,
    sink: Option<W>,
    /// Whether the last lines still have to be flushed out of the sink.
    unflushed: bool,
    closing: bool,
}

impl<W: Sink> Outbox<W> {
    pub(crate) fn new(sink: W) -> Self {
        Self {
            waiting: VecDeque::new(),
            size: 0,
            sink: Some(sink),
            unflushed: false,
            closing: false,
        }
    }

    /// Puts a line behind those that wait.
    pub(crate) fn push(&mut self, line: &Line) {
        if self.sink.is_some() && !self.closing {
            self.size += line.bytes().len();
            self.waiting.push_back(line.bytes().clone());
        }
    }

    /// Whether the side that speaks may go on.
    pub(crate) fn has_room(&self) -> bool {
        self.size < HIGH_WATER
    }

    /// Whether nothing waits and nothing will have to be waited for.
    pub(crate) fn is_drained(&self) -> bool {
        self.waiting.is_empty() && !self.unflushed && !(self.closing && self.sink.is_some())
    }

    /// Whether lines can still be delivered.
    pub(crate) fn is_open(&self) -> bool {
        self.sink.is_some() && !self.closing
    }

    /// Closes the writer once all that waits is written.
    pub(crate) fn close(&mut self) {
        self.closing = true;
        if self.waiting.is_empty() && !self.unflushed {
            self.sink = None;
        }
    }

    /// Drops what waits, and the writer.
    pub(crate) fn abandon(&mut self) {
        self.waiting.clear();
        self.size = 0;
        self.unflushed = false;
        self.sink = None;
    }

    /// Writes what can be written without waiting.
    ///
    /// # Errors
    /// The write that failed. The outbox has ended.
    pub(crate) fn flush_now(&mut self) -> io::Result<()> {
        while let Some(sink) = &self.sink
            && let Some(first) = self.waiting.front()
        {
            // One line is the usual case, and the system takes it faster so.
            let written = if self.waiting.len() == 1 {
                sink.try_write(first)
            } else {
                sink.try_write_vectored(&slices(&self.waiting))
            };
            match written {
                Ok(written) => self.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.abandon();
                    return Err(error);
                }
            }
        }
        if self.closing && !self.unflushed {
            self.sink = None;
        }
        Ok(())
    }

    /// Writes a piece of what waits; for ever pending when nothing does. Cancel safe.
    ///
    /// # Errors
    /// The write that failed. The outbox has ended.
    pub(crate) async fn turn(&mut self) -> io::Result<()> {
        poll_fn(|context| self.poll_turn(context)).await
    }

    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(sink) = &mut self.sink else {
            return Poll::Pending;
        };
        let outcome = if !self.waiting.is_empty() {
            ready!(Pin::new(sink).poll_write_vectored(context, &slices(&self.waiting)))
        } else if self.unflushed {
            ready!(Pin::new(sink).poll_flush(context)).map(|()| 0)
        } else {
            return Poll::Pending;
        };
        match outcome {
            Ok(0) if !self.waiting.is_empty() => {
                self.abandon();
                Poll::Ready(Err(io::ErrorKind::WriteZero.into()))
            }
            Ok(0) => {
                self.unflushed = false;
                if self.closing {
                    self.sink = None;
                }
                Poll::Ready(Ok(()))
            }
            Ok(written) => {
                self.advance(written);
                self.unflushed = true;
                Poll::Ready(Ok(()))
            }
            Err(error) => {
                self.abandon();
                Poll::Ready(Err(error))
            }
        }
    }

    fn advance(&mut self, mut written: usize) {
        self.size -= written;
        while let Some(first) = self.waiting.front_mut() {
            if written < first.len() {
                first.advance(written);
                return;
            }
            written -= first.len();
            self.waiting.pop_front();
        }
    }
}

fn slices(waiting: &VecDeque<Bytes>) -> Vec<IoSlice<'_>> {
    waiting
        .iter()
        .take(SLICES)
        .map(|bytes| IoSlice::new(bytes))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use tokio::{io::AsyncReadExt, net::unix::pipe};

    #[tokio::test]
    async fn a_side_that_takes_nothing_stops_the_other_until_it_reads_on() {
        let (sender, mut receiver) = pipe::pipe().unwrap();
        let mut outbox = Outbox::new(sender);
        let line = Line::own("x".repeat(99_999));
        let mut pushed = 0;
        while outbox.has_room() {
            assert!(pushed < 3 * HIGH_WATER, "lines gather without a limit");
            outbox.push(&line);
            outbox.flush_now().unwrap();
            pushed += line.bytes().len();
        }
        let mut taken = Vec::new();
        while !outbox.has_room() {
            tokio::select! {
                written = outbox.turn() => written.unwrap(),
                read = receiver.read_buf(&mut taken) => assert_ne!(read.unwrap(), 0, "the outbox has ended"),
            }
        }
    }
}
