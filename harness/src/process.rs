//! Programs that a run starts: each in a process group of its own, none left behind.
//!
//! The server is started by the proxy, in a group that the run does not know. So every
//! program of a run carries a variable with the run's name, and on Linux what carries it
//! is found again by looking through `/proc`.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The variable by which the programs of a run are known.
pub(crate) const RUN_VARIABLE: &str = "STRETTO_HARNESS_RUN";

/// How long a program that was told to end may take before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// How often a program is asked whether it has ended.
const BEAT: Duration = Duration::from_millis(2);

static STOPPED: AtomicBool = AtomicBool::new(false);

/// Asks all runs in this program to end their programs and give up.
pub fn stop_all() {
    STOPPED.store(true, Ordering::Relaxed);
}

/// Whether [`stop_all`] was called.
pub fn is_stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

/// A program in a group of its own; dropping it ends the whole group.
#[derive(Debug)]
pub(crate) struct Owned {
    child: Child,
    group: Option<Pid>,
    status: Option<ExitStatus>,
}

impl Owned {
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Ok(Self {
            child,
            group,
            status: None,
        })
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits until no process can read what this one writes to its stdout, a pipe that was closed here: programs
    /// that start at that moment have copies of it until their own code runs.
    #[cfg(target_os = "linux")]
    pub(crate) fn wait_until_unheard(&self) {
        let stdout = format!("/proc/{}/fd/1", self.child.id());
        let Ok(stdout) = std::fs::OpenOptions::new().write(true).open(stdout) else {
            return;
        };
        let until = Instant::now() + GRACE;
        while Instant::now() < until && !is_stopped() {
            let mut end = [PollFd::new(&stdout, PollFlags::OUT)];
            let is_polled = poll(&mut end, Some(&Timespec::default())).is_ok();
            if !is_polled || end[0].revents().contains(PollFlags::ERR) {
                return;
            }
            std::thread::sleep(BEAT);
        }
    }

    /// Elsewhere, nobody can tell.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn wait_until_unheard(&self) {}

    pub(crate) fn signal(&self, signal: Signal) {
        // It may have ended meanwhile, and then there is nothing to do.
        if let (Some(pid), None) = (self.group, self.status) {
            kill_process(pid, signal).ok();
        }
    }

    /// Waits for the end, at most until `deadline`.
    pub(crate) fn wait_until(&mut self, deadline: Instant) -> io::Result<Option<ExitStatus>> {
        loop {
            if self.status.is_none() {
                self.status = self.child.try_wait()?;
            }
            if self.status.is_some() || Instant::now() >= deadline || is_stopped() {
                return Ok(self.status);
            }
            std::thread::sleep(BEAT);
        }
    }

    /// Ends the group: SIGTERM, two seconds, SIGKILL.
    pub(crate) fn end(&mut self) {
        let Some(group) = self.group.take() else {
            return;
        };
        // An empty group is what is wanted; a failure to signal it means just that.
        kill_process_group(group, Signal::TERM).ok();
        let deadline = Instant::now() + GRACE;
        while self.status.is_none() && Instant::now() < deadline {
            self.status = self.child.try_wait().ok().flatten();
            std::thread::sleep(BEAT);
        }
        kill_process_group(group, Signal::KILL).ok();
        if self.status.is_none() {
            self.status = self.child.wait().ok();
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.end();
    }
}

/// The processes that carry this run's name, less our own; none where there is no `/proc`.
pub(crate) fn of_run(run: &str) -> Vec<(Pid, String)> {
    let needle = format!("{RUN_VARIABLE}={run}");
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name
            .to_str()
            .and_then(|name| name.parse().ok())
            .and_then(Pid::from_raw)
        else {
            continue;
        };
        let Ok(environ) = std::fs::read(entry.path().join("environ")) else {
            continue;
        };
        if environ
            .split(|byte| *byte == 0)
            .any(|variable| variable == needle.as_bytes())
        {
            let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&words)
                .replace('\0', " ")
                .trim()
                .to_owned();
            found.push((pid, command));
        }
    }
    found
}

/// Waits until nothing of this run is left, then ends what is.
///
/// Returns the commands of what had to be ended.
pub(crate) fn end_rest(run: &str, patience: Duration) -> Vec<String> {
    let deadline = Instant::now() + patience;
    let mut left = of_run(run);
    while !left.is_empty() && Instant::now() < deadline {
        std::thread::sleep(BEAT);
        left = of_run(run);
    }
    let commands = left.iter().map(|(_, command)| command.clone()).collect();
    for (signal, pause) in [(Signal::TERM, GRACE), (Signal::KILL, GRACE)] {
        for (pid, _) in of_run(run) {
            // It may have ended meanwhile.
            kill_process(pid, signal).ok();
        }
        let deadline = Instant::now() + pause;
        while !of_run(run).is_empty() && Instant::now() < deadline {
            std::thread::sleep(BEAT);
        }
    }
    commands
}

/// How a program ended, as a shell would say it.
pub(crate) fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Code(code),
        (None, Some(signal)) => Ending::Signal(signal),
        (None, None) => Ending::Code(-1),
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Code(i32),
    Signal(i32),
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}
