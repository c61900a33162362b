//! The host: our stdin and stdout.
//!
//! A pipe or a socket is read and written on the loop's own thread, without blocking and
//! without changing the mode of the host's end: a pipe is opened anew, a socket is asked
//! call by call. Handing each line to a thread and back would cost more than all the rest
//! of the way. What is neither (a file, a terminal) goes through threads.

use std::{
    io::{self, IoSlice},
    os::fd::{AsFd, OwnedFd},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::BytesMut;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::FileType,
    net::{RecvFlags, SendAncillaryBuffer, SendFlags},
};
use tokio::{
    io::{AsyncReadExt, AsyncWrite, Interest, unix::AsyncFd},
    net::unix::pipe,
};

use crate::{
    line::{Line, LineBuffer},
    outbox::{Outbox, Sink},
};

/// What the host did in its turn.
#[derive(Debug)]
pub(crate) enum HostTurn {
    /// It said something: [`Host::take_line`] has it.
    Spoke,
    /// It will say nothing more.
    Ended,
    /// Reading from it failed; it will say nothing more.
    Broke(io::Error),
    /// It took a piece of what waited.
    Took,
    /// Writing to it failed; nothing more will reach it.
    Left(io::Error),
}

/// The host's end of the session.
#[derive(Debug)]
pub(crate) struct Host {
    input: Option<Input>,
    lines: LineBuffer,
    outbox: Outbox<Output>,
}

impl Host {
    /// The host on our stdin and stdout. To be called within the runtime.
    pub(crate) fn on_stdio() -> Self {
        Self {
            input: Some(Input::stdin()),
            lines: LineBuffer::default(),
            outbox: Outbox::new(Output::stdout()),
        }
    }

    /// A line that was read already.
    pub(crate) fn take_line(&mut self) -> Option<Line> {
        self.lines.take().or_else(|| {
            if self.input.is_none() {
                self.lines.take_rest()
            } else {
                None
            }
        })
    }

    /// Puts a line on its way to the host.
    pub(crate) fn push(&mut self, line: &Line) {
        self.outbox.push(line);
    }

    /// Writes what the host takes at once.
    ///
    /// # Errors
    /// As [`Outbox::flush_now`].
    pub(crate) fn flush_now(&mut self) -> io::Result<()> {
        self.outbox.flush_now()
    }

    /// Whether the server may go on speaking.
    pub(crate) fn has_room(&self) -> bool {
        self.outbox.has_room()
    }

    /// Whether the host has all that was for it, or can get nothing any more.
    pub(crate) fn is_drained(&self) -> bool {
        self.outbox.is_drained()
    }

    /// Whether nobody can read what we write: the host is gone, or has closed its end.
    pub(crate) fn is_gone(&self) -> bool {
        !self.outbox.is_open()
            || polls(
                io::stdout(),
                PollFlags::OUT,
                PollFlags::ERR | PollFlags::HUP,
            )
    }

    /// Whether nobody can write what we read, though something may be left to read.
    pub(crate) fn has_hung_up(&self) -> bool {
        self.input.is_none() || polls(io::stdin(), PollFlags::IN, PollFlags::HUP)
    }

    /// Gives up what the host has not taken.
    pub(crate) fn abandon(&mut self) {
        self.outbox.abandon();
    }

    /// One small step. The host is only listened to when it `may_speak`. Cancel safe.
    pub(crate) async fn turn(&mut self, may_speak: bool) -> HostTurn {
        let Self {
            input,
            lines,
            outbox,
        } = self;
        let listening = may_speak && input.is_some();
        tokio::select! {
            read = read(input.as_mut(), lines), if listening => match read {
                Ok(0) => {
                    *input = None;
                    HostTurn::Ended
                }
                Ok(_) => HostTurn::Spoke,
                Err(error) => {
                    *input = None;
                    lines.clear();
                    HostTurn::Broke(error)
                }
            },
            wrote = outbox.turn() => match wrote {
                Ok(()) => HostTurn::Took,
                Err(error) => HostTurn::Left(error),
            },
        }
    }
}

async fn read(input: Option<&mut Input>, lines: &mut LineBuffer) -> io::Result<usize> {
    match input {
        Some(input) => input.read(lines.space()).await,
        None => Ok(0),
    }
}

/// Our stdin, by what it is.
#[derive(Debug)]
enum Input {
    Pipe(pipe::Receiver),
    Socket {
        socket: AsyncFd<OwnedFd>,
        received: Box<[u8]>,
    },
    Other(tokio::io::Stdin),
}

/// How much is asked of a socket at once.
const RECEIVED_AT_ONCE: usize = 64 * 1024;

impl Input {
    fn stdin() -> Self {
        if let Ok(pipe) = pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
            return Self::Pipe(pipe);
        }
        if let Some(socket) = watched_socket(io::stdin(), Interest::READABLE) {
            return Self::Socket {
                socket,
                received: vec![0; RECEIVED_AT_ONCE].into(),
            };
        }
        Self::Other(tokio::io::stdin())
    }

    /// Cancel safe: what was taken is in `space`.
    async fn read(&mut self, space: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.read_buf(space).await,
            Self::Other(stdin) => stdin.read_buf(space).await,
            Self::Socket { socket, received } => {
                let received: &mut [u8] = received;
                let count = socket
                    .async_io(Interest::READABLE, |socket| {
                        Ok(rustix::net::recv(socket, &mut *received, RecvFlags::DONTWAIT)?.0)
                    })
                    .await?;
                space.extend_from_slice(&received[..count]);
                Ok(count)
            }
        }
    }
}

/// Our stdout, by what it is.
#[derive(Debug)]
enum Output {
    Pipe(pipe::Sender),
    Socket(AsyncFd<OwnedFd>),
    Other(tokio::io::Stdout),
}

impl Output {
    fn stdout() -> Self {
        if let Ok(pipe) = pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
            return Self::Pipe(pipe);
        }
        if let Some(socket) = watched_socket(io::stdout(), Interest::WRITABLE) {
            return Self::Socket(socket);
        }
        Self::Other(tokio::io::stdout())
    }
}

/// Whether asking `end` for `asked` finds one of `wanted` at once.
fn polls(end: impl AsFd, asked: PollFlags, wanted: PollFlags) -> bool {
    let mut ends = [PollFd::new(&end, asked)];
    poll(&mut ends, Some(&Timespec::default())).is_ok() && ends[0].revents().intersects(wanted)
}

/// `end`, ready to be waited for, if it is a socket.
fn watched_socket(end: impl AsFd, interest: Interest) -> Option<AsyncFd<OwnedFd>> {
    let mode = rustix::fs::fstat(&end).ok()?.st_mode;
    if FileType::from_raw_mode(mode) != FileType::Socket {
        return None;
    }
    let socket = end.as_fd().try_clone_to_owned().ok()?;
    #[expect(
        unsafe_code,
        reason = "the only way to register a descriptor that is not deprecated"
    )]
    // SAFETY: the descriptor has to stay open and the same for as long as it is registered. An
    // OwnedFd names one descriptor and keeps it open until it is dropped, and the AsyncFd, which
    // owns it and deregisters it first, gives out only shared references that cannot close it.
    let watched = unsafe { AsyncFd::register_with_interest(socket, interest) };
    watched.ok()
}

fn send(socket: &OwnedFd, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    Ok(rustix::net::sendmsg(
        socket,
        slices,
        &mut SendAncillaryBuffer::default(),
        flags,
    )?)
}

impl Sink for Output {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.try_write(bytes),
            Self::Socket(_) | Self::Other(_) => self.try_write_vectored(&[IoSlice::new(bytes)]),
        }
    }

    fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.try_write_vectored(slices),
            Self::Socket(socket) => {
                socket.try_io(Interest::WRITABLE, |socket| send(socket, slices))
            }
            Self::Other(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_write_vectored(context, slices),
            Self::Other(stdout) => Pin::new(stdout).poll_write_vectored(context, slices),
            Self::Socket(socket) => loop {
                let mut writable = ready!(socket.poll_write_ready(context))?;
                if let Ok(sent) = writable.try_io(|socket| send(socket.get_ref(), slices)) {
                    return Poll::Ready(sent);
                }
            },
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Other(stdout) => Pin::new(stdout).poll_flush(context),
            Self::Pipe(_) | Self::Socket(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}
