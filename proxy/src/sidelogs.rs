//! The logs beside the session log: a line for each thing that was decided.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;
use tracing::warn;

use crate::session::SideLog;

/// The logs that could be opened. What goes to another is dropped.
#[derive(Debug, Default)]
pub(crate) struct SideLogs {
    open: HashMap<SideLog, (PathBuf, File)>,
}

impl SideLogs {
    /// Opens a log to append to. The session goes on without one that cannot be opened, which is said.
    pub(crate) fn open(&mut self, log: SideLog, path: &Path) {
        match append_to(path) {
            Ok(file) => drop(self.open.insert(log, (path.to_owned(), file))),
            Err(error) => warn!(
                "opening the {} log {}: {error}; the session goes on without it",
                name(log),
                path.display()
            ),
        }
    }

    /// Appends a line, in one write. A log that cannot be written to any more is given up, which is said.
    pub(crate) fn append(&mut self, log: SideLog, line: &str) {
        let Some((path, file)) = self.open.get_mut(&log) else {
            return;
        };
        if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
            warn!(
                "writing the {} log {}: {error}; the session goes on without it",
                name(log),
                path.display()
            );
            self.open.remove(&log);
        }
    }
}

fn name(log: SideLog) -> &'static str {
    match log {
        SideLog::Flow => "flow",
        SideLog::Confirm => "confirmation",
        SideLog::Explain => "explain",
    }
}

/// Only its owner may read it: it holds what calls were given. A pipe of that name that nobody
/// reads is an error: the session does not wait for a reader.
fn append_to(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;

    File::options()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_that_nobody_reads_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        let mut logs = SideLogs::default();
        logs.open(SideLog::Explain, &pipe);
        assert!(logs.open.is_empty());
    }
}
