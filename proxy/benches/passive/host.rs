//! The host that is timed.

use std::{
    collections::HashSet,
    env, fs,
    io::{self, BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc,
    thread,
};

use tempfile::TempDir;

use crate::roles;

/// What stands between the host and the server.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    /// A program that copies bytes.
    Relay,
    /// The proxy.
    Forwarding,
    /// The proxy with `--record`.
    Recording,
    /// The proxy with `--upstream`, before a server that is reached over HTTP.
    Upstream,
}

impl Way {
    /// Those before a server that is started, what the others are compared with first.
    pub(crate) const ALL: [Self; 3] = [Self::Relay, Self::Forwarding, Self::Recording];
}

/// A host with a server that it has started.
pub(crate) struct Host {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The last request's id.
    id: u64,
    answer: Vec<u8>,
    _logs: TempDir,
}

impl Host {
    /// Starts what stands between, and behind it a server, which is this program in one of its
    /// roles. With [`Way::Upstream`], `server` is the URL of one that runs.
    pub(crate) fn start(way: Way, server: &str) -> io::Result<Self> {
        let us = env::current_exe()?;
        let logs = tempfile::tempdir()?;
        let mut command = match way {
            Way::Relay => {
                let mut relay = Command::new(&us);
                relay.arg(roles::RELAY);
                relay
            }
            Way::Forwarding | Way::Recording | Way::Upstream => {
                Command::new(env!("CARGO_BIN_EXE_stretto-proxy"))
            }
        };
        if matches!(way, Way::Recording) {
            command.arg("--record").arg(logs.path());
        }
        if matches!(way, Way::Upstream) {
            command.arg("--upstream").arg(server);
        } else {
            command.arg("--").arg(us).arg(server);
        }
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(io::Error::other("pipes were asked for"));
        };
        Ok(Self {
            process,
            input,
            output: BufReader::with_capacity(64 * 1024, output),
            id: 0,
            answer: Vec::new(),
            _logs: logs,
        })
    }

    /// A first request, and its answer.
    pub(crate) fn initialize(&mut self) -> io::Result<()> {
        self.call(0)
    }

    /// A call whose line has about `size` bytes, and its answer, which has as many.
    pub(crate) fn call(&mut self, size: usize) -> io::Result<()> {
        self.id += 1;
        self.input.write_all(&call(self.id, size))?;
        is_to(
            self.id,
            read_answer(&mut self.output, &mut self.answer, size)?,
        )
    }

    /// Calls of which some are in flight at once, and all their answers.
    pub(crate) fn pipeline(&mut self, count: u32, size: usize, window: usize) -> io::Result<()> {
        let ids = self.id + 1..=self.id + u64::from(count);
        self.id = *ids.end();
        // A call takes a place before it is sent, its answer gives the place back.
        let (take, give) = mpsc::sync_channel(window);
        let (input, output, answer) = (&mut self.input, &mut self.output, &mut self.answer);
        thread::scope(|scope| {
            let to_send = ids.clone();
            let sent = scope.spawn(move || {
                for id in to_send {
                    // The reader stops only when an answer is wrong, which it reports.
                    if take.send(()).is_err() {
                        return Ok(());
                    }
                    input.write_all(&call(id, size))?;
                }
                Ok(())
            });
            // Over HTTP answers come in any order, so each takes the place of the request it answers.
            let mut waiting: HashSet<u64> = ids.collect();
            while !waiting.is_empty() {
                let id = read_answer(output, answer, size)?;
                if !waiting.remove(&id) {
                    return Err(io::Error::other(format!("nobody waits for {id}")));
                }
                give.recv().map_err(io::Error::other)?;
            }
            drop(give);
            sent.join()
                .unwrap_or_else(|_| Err(io::Error::other("the sender panicked")))
        })
    }

    /// The most memory that what stands between has had resident so far, in megabytes.
    pub(crate) fn peak(&self) -> io::Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let peak = status.lines().find_map(|line| {
            let kilobytes = line.strip_prefix("VmHWM:")?.strip_suffix("kB")?;
            kilobytes.trim().parse::<u32>().ok()
        });
        peak.map(|kilobytes| f64::from(kilobytes) / 1024.0)
            .ok_or_else(|| io::Error::other("the system does not tell how much memory was used"))
    }

    /// Ends the session as hosts do.
    pub(crate) fn end(self) -> io::Result<()> {
        let Self {
            mut process, input, ..
        } = self;
        drop(input);
        let status = process.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(io::Error::other(format!("the session ended with {status}")))
        }
    }

    /// Ends the session at once.
    pub(crate) fn kill(mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process.wait().map(drop)
    }
}

/// A request that has the server say a text again.
pub(crate) fn call(id: u64, size: usize) -> Vec<u8> {
    let mut line = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":""#
    )
    .into_bytes();
    let end = b"\"}}}\n";
    let filled = size.saturating_sub(end.len()).max(line.len());
    line.extend((b'a'..=b'w').cycle().take(filled - line.len()));
    line.extend_from_slice(end);
    line
}

/// Reads an answer to a call of that size, and returns its id.
pub(crate) fn read_answer(
    output: &mut impl BufRead,
    answer: &mut Vec<u8>,
    size: usize,
) -> io::Result<u64> {
    answer.clear();
    output.read_until(b'\n', answer)?;
    let id = answer
        .strip_prefix(br#"{"jsonrpc":"2.0","id":"#)
        .and_then(|rest| rest.split(|byte| *byte == b',').next())
        .and_then(|id| std::str::from_utf8(id).ok()?.parse().ok());
    // What a line has beside its text is less than this.
    id.filter(|_| answer.len() + 100 > size && answer.ends_with(b"\"}]}}\n"))
        .ok_or_else(|| io::Error::other(format!("{} bytes are no answer", answer.len())))
}

/// Whether an answer is to that request.
pub(crate) fn is_to(id: u64, answered: u64) -> io::Result<()> {
    if answered == id {
        Ok(())
    } else {
        Err(io::Error::other(format!(
            "request {id} got the answer to {answered}"
        )))
    }
}
