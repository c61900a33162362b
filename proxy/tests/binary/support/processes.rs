//! Processes that belong to a test.

use std::{
    fs,
    os::unix::ffi::OsStrExt,
    path::Path,
    process::{Child, ExitStatus},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};

use super::patience;

/// The variable by which a test finds all that it started, however deep.
pub(crate) const MARK: &str = "STRETTO_TEST_SESSION";

/// The processes that run with this mark, and what each of them is.
pub(crate) fn marked(mark: &Path) -> Vec<(Pid, String)> {
    let mut wanted = format!("{MARK}=").into_bytes();
    wanted.extend_from_slice(mark.as_os_str().as_bytes());
    let processes = fs::read_dir("/proc").expect("a list of processes");
    processes
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let id = entry.file_name().to_str()?.parse().ok()?;
            // A process that has ended, and only waits to be asked for its status, has none.
            let environment = fs::read(entry.path().join("environ")).ok()?;
            let command = fs::read(entry.path().join("cmdline")).ok()?;
            environment
                .split(|&byte| byte == 0)
                .any(|variable| variable == wanted)
                .then_some((
                    Pid::from_raw(id)?,
                    String::from_utf8_lossy(&command).replace('\0', " "),
                ))
        })
        .collect()
}

/// Ends all processes with this mark, and those that they start meanwhile.
pub(crate) fn end_all(mark: &Path) {
    loop {
        let running = marked(mark);
        if running.is_empty() {
            return;
        }
        for (process, _) in running {
            kill_process(process, Signal::KILL).ok();
        }
    }
}

/// Waits for the end of a process, with patience.
pub(crate) fn wait(process: &mut Child) -> ExitStatus {
    let id = Pid::from_raw(process.id().cast_signed()).expect("a process id");
    // It is a child of ours, so its id is its own until it is waited for.
    if let Ok(end) = pidfd_open(id, PidfdFlags::empty()) {
        let mut ends = [PollFd::new(&end, PollFlags::IN)];
        let limit = patience().try_into().expect("a time");
        let ended = poll(&mut ends, Some(&limit)).expect("a process can be waited for");
        assert_ne!(ended, 0, "the proxy still runs");
    }
    process.wait().expect("a child of ours")
}
