//! Signals that ask the proxy to stop.

use std::{io, sync::Arc};

use rustix::process::Signal;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    low_level::emulate_default_handler,
};
use tokio::{
    signal::unix::{self, SignalKind, signal},
    sync::oneshot,
    task::JoinSet,
};

/// A signal that ends the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop(i32);

impl Stop {
    /// Dies of the signal, as if nobody had listened to it.
    pub(crate) fn die(self) {
        // It returns only when the signal cannot be raised; then the exit code has to do.
        emulate_default_handler(self.0).ok();
    }

    /// What a shell says of a process that this signal has killed.
    pub(crate) fn exit_code(self) -> u8 {
        u8::try_from(128 + self.0).unwrap_or(u8::MAX)
    }
}

/// SIGTERM, SIGINT and SIGHUP, of which only the first to come counts.
///
/// A task of its own listens, so that looking for a signal costs the loop next to nothing.
#[derive(Debug)]
pub(crate) struct Signals {
    first: oneshot::Receiver<Stop>,
    _listener: JoinSet<()>,
}

impl Signals {
    /// Listens from now on. A signal that the parent had us ignore (`nohup`, a shell's `&`) stays ignored.
    ///
    /// # Errors
    /// The system takes no handler.
    pub(crate) fn listen() -> io::Result<Self> {
        let ignored = ignored_signals();
        let listen = |number: i32, kind: SignalKind| {
            if ignored & (1 << (number - 1)) == 0 {
                signal(kind).map(Some)
            } else {
                Ok(None)
            }
        };
        let mut term = listen(SIGTERM, SignalKind::terminate())?;
        let mut int = listen(SIGINT, SignalKind::interrupt())?;
        let mut hup = listen(SIGHUP, SignalKind::hangup())?;
        let (tell, first) = oneshot::channel();
        let mut listener = JoinSet::new();
        listener.spawn(async move {
            let stop = tokio::select! {
                () = arrival(&mut term) => Stop(SIGTERM),
                () = arrival(&mut int) => Stop(SIGINT),
                () = arrival(&mut hup) => Stop(SIGHUP),
            };
            // The session may be over already.
            tell.send(stop).ok();
        });
        Ok(Self {
            first,
            _listener: listener,
        })
    }

    /// Waits for the signal; for ever once it has come. Cancel safe.
    pub(crate) async fn next(&mut self) -> Stop {
        if !self.first.is_terminated()
            && let Ok(stop) = (&mut self.first).await
        {
            return stop;
        }
        std::future::pending().await
    }
}

async fn arrival(signal: &mut Option<unix::Signal>) {
    if let Some(signal) = signal
        && signal.recv().await.is_some()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// One bit a signal, the lowest for signal 1; none where the system does not tell.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default()
}

/// Makes a write past a limit on file sizes an error rather than our death.
///
/// # Errors
/// The system takes no handler.
pub(crate) fn survive_file_size_limits() -> io::Result<()> {
    signal_hook::flag::register(Signal::XFSZ.as_raw(), Arc::default())?;
    Ok(())
}
