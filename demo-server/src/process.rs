//! What a process can do to itself: end, be killed, close its ends.

use std::process;
use std::time::Duration;

/// Ends the process with this status.
pub(crate) fn exit(status: i32) -> ! {
    #[expect(clippy::exit, reason = "to end in the middle is what the fault is")]
    process::exit(status)
}

/// Sends the process this signal. It comes back when the signal does not end the process.
#[cfg(unix)]
pub(crate) fn kill(signal: i32) {
    use rustix::process::{Signal, getpid, kill_process};

    if let Some(signal) = Signal::from_named_raw(signal) {
        // A process may always signal itself.
        kill_process(getpid(), signal).ok();
    }
}

/// Ends the process as a shell would report this signal.
#[cfg(not(unix))]
pub(crate) fn kill(signal: i32) {
    exit(128 + signal)
}

/// Closes the process's end of stdout, for whoever reads it.
#[cfg(unix)]
pub(crate) fn close_stdout() -> std::io::Result<()> {
    rustix::stdio::dup2_stdout(std::fs::File::options().write(true).open("/dev/null")?)?;
    Ok(())
}

/// Closes the process's end of stdin, for whoever writes it.
#[cfg(unix)]
pub(crate) fn close_stdin() -> std::io::Result<()> {
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn close_stdout() -> std::io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn close_stdin() -> std::io::Result<()> {
    Ok(())
}

/// Waits until nobody reads stdout any more, but no longer than that.
#[cfg(unix)]
pub(crate) fn wait_until_stdout_is_unread(longest: Duration) {
    use rustix::event::{PollFd, PollFlags, poll};

    let stdout = std::io::stdout();
    let timeout = rustix::event::Timespec::try_from(longest).ok();
    // No event is asked for: the end of the other side is reported all the same.
    poll(
        &mut [PollFd::new(&stdout, PollFlags::empty())],
        timeout.as_ref(),
    )
    .ok();
}

#[cfg(not(unix))]
pub(crate) fn wait_until_stdout_is_unread(longest: Duration) {
    std::thread::sleep(longest);
}
