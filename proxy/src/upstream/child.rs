//! A server that is a process of ours.

use std::{
    ffi::OsString,
    io::{self, IoSlice},
    process::Stdio,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{io::AsyncReadExt, net::unix::pipe, process};

use super::{Ending, Pressure, ServerTurn};
use crate::{
    line::{Line, LineBuffer},
    outbox::{Outbox, Sink},
};

/// The server's process, the pipes to and from it, and the group it leads.
///
/// Dropping it kills the process: nothing that the proxy starts outlives it.
#[derive(Debug)]
pub(crate) struct Child {
    process: process::Child,
    group: Option<Pid>,
    outbox: Outbox<pipe::Sender>,
    output: Option<pipe::Receiver>,
    lines: LineBuffer,
}

impl Child {
    /// Starts `command`, a program and its arguments, with our environment, stderr and working directory.
    ///
    /// To be called on the process's first thread: where the kernel offers it, the server is
    /// ended with the thread that started it.
    ///
    /// # Errors
    /// The program could not be started.
    pub(crate) fn start(command: &[OsString]) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let (to_server, stdin) = pipe::pipe()?;
        let (stdout, from_server) = pipe::pipe()?;
        let mut command = process::Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::from(stdin.into_blocking_fd()?))
            .stdout(Stdio::from(stdout.into_blocking_fd()?))
            // A group of its own: the server may be a grandchild behind `npx` or `sh -c`, and signals must find it.
            .process_group(0)
            .kill_on_drop(true);
        die_with_us(&mut command);
        let process = command.spawn()?;
        let group = process.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Self {
            process,
            group,
            outbox: Outbox::new(to_server),
            output: Some(from_server),
            lines: LineBuffer::default(),
        })
    }

    pub(super) fn take_line(&mut self) -> Option<Line> {
        self.lines.take().or_else(|| {
            if self.output.is_none() {
                self.lines.take_rest()
            } else {
                None
            }
        })
    }

    pub(super) fn push(&mut self, line: &Line) {
        self.outbox.push(line);
    }

    pub(super) fn flush_now(&mut self) -> io::Result<()> {
        self.outbox.flush_now()
    }

    pub(super) fn has_room(&self) -> bool {
        self.outbox.has_room()
    }

    pub(super) fn close(&mut self) {
        self.outbox.close();
    }

    pub(super) fn press(&mut self, pressure: Pressure) {
        self.outbox.abandon();
        let signal = match pressure {
            Pressure::Ask => Signal::TERM,
            Pressure::Force => Signal::KILL,
        };
        if let Some(group) = self.group {
            // The group may have ended by itself meanwhile, which is what is wanted.
            kill_process_group(group, signal).ok();
        }
    }

    pub(super) fn ending(&mut self) -> Option<Ending> {
        let status = self.process.try_wait().ok()?;
        status.map(Ending::Exited)
    }

    /// After the output has ended, the next step that is not a write is the end of the process.
    pub(super) async fn turn(&mut self, may_speak: bool) -> ServerTurn {
        let Self {
            process,
            outbox,
            output,
            lines,
            ..
        } = self;
        let listening = may_speak && output.is_some();
        let finished = output.is_none();
        tokio::select! {
            read = read(output.as_mut(), lines), if listening => match read {
                Ok(0) => {
                    *output = None;
                    ServerTurn::Ended
                }
                Ok(_) => ServerTurn::Spoke,
                Err(error) => {
                    *output = None;
                    lines.clear();
                    ServerTurn::Broke(error)
                }
            },
            wrote = outbox.turn() => match wrote {
                Ok(()) => ServerTurn::Took,
                Err(error) => ServerTurn::Left(error),
            },
            status = process.wait(), if finished => {
                ServerTurn::Gone(status.map_or(Ending::Unknown, Ending::Exited))
            }
        }
    }
}

async fn read(output: Option<&mut pipe::Receiver>, lines: &mut LineBuffer) -> io::Result<usize> {
    match output {
        Some(output) => output.read_buf(lines.space()).await,
        None => Ok(0),
    }
}

impl Sink for pipe::Sender {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        pipe::Sender::try_write(self, bytes)
    }

    fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        pipe::Sender::try_write_vectored(self, slices)
    }
}

/// Has the kernel end the server when the proxy is killed and can do nothing about it.
#[cfg(target_os = "linux")]
fn die_with_us(command: &mut process::Command) {
    use rustix::process::{getpid, getppid, set_parent_process_death_signal};

    let us = getpid();
    let die_with_us = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // Killed between the fork and the line above, we would never be missed.
        if getppid() == Some(us) {
            Ok(())
        } else {
            Err(io::ErrorKind::NotConnected.into())
        }
    };
    #[expect(
        unsafe_code,
        reason = "the only way to set the signal before the server's program runs"
    )]
    // SAFETY: between fork and exec only async-signal-safe work is allowed. The closure makes two
    // system calls (prctl, getppid) through wrappers that neither allocate nor lock, and both ways to
    // make an error here are free of allocation: from an errno, and from a kind.
    unsafe {
        command.pre_exec(die_with_us);
    }
}

/// Elsewhere the end of its input is what tells the server.
#[cfg(not(target_os = "linux"))]
fn die_with_us(_command: &mut process::Command) {}
