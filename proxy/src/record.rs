//! The session log: every line, written down off the way of the lines.

use std::{
    fs::{self, File},
    io::{self, IoSlice, Write},
    mem,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use stretto_trace::mcp::{Header, Who, embedded, encode_entry, encode_head};
use tokio::sync::oneshot;
use tracing::{error, warn};

use crate::{clock::Millis, line::Line};

/// Entries up to this size in all go into one system call when they wait at the same time.
const TOGETHER: usize = 256 * 1024;

/// A log that is being written.
///
/// Lines are put into a queue without a limit, which a thread of its own empties into the
/// file: whatever the disk does, recording a line takes no longer than that.
///
/// Dropped before [`SessionLog::keep`], it deletes its file: a session that never started
/// leaves no log.
#[derive(Debug)]
pub(crate) struct SessionLog {
    path: PathBuf,
    queue: Arc<Queue>,
    writer: Option<JoinHandle<()>>,
    /// Hears when the writer has written all.
    done: Option<oneshot::Receiver<()>>,
    kept: bool,
}

/// Why a log could not be begun.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    #[error("creating {}", .0.display())]
    Create(PathBuf, #[source] io::Error),
    #[error("writing {}", .0.display())]
    Write(PathBuf, #[source] io::Error),
    #[error("starting the thread that writes {}", .0.display())]
    Thread(PathBuf, #[source] io::Error),
}

impl SessionLog {
    /// Creates the log `<session>.jsonl` in `directory`, which is created too if need be, and
    /// writes its header.
    ///
    /// Two processes with the same id (in containers, often) may start within a millisecond:
    /// if the log exists already, the header's session gets `-2` to `-9` at its end.
    ///
    /// # Errors
    /// The directory or the file cannot be created, or the header cannot be written.
    pub(crate) fn create(directory: &Path, header: &mut Header) -> Result<Self, LogError> {
        fs::create_dir_all(directory).map_err(|error| LogError::Create(directory.into(), error))?;
        let (path, mut file) = create_file(directory, header)?;
        let mut line = Vec::new();
        header.encode(&mut line);
        if let Err(error) = file.write_all(&line) {
            remove(&path);
            return Err(LogError::Write(path, error));
        }
        Self::write_into(path, file)
    }

    /// Starts the thread that writes into `file`.
    fn write_into(path: PathBuf, mut file: File) -> Result<Self, LogError> {
        let queue = Arc::new(Queue::default());
        let (tell, done) = oneshot::channel();
        let write = {
            let (queue, path) = (Arc::clone(&queue), path.clone());
            move || {
                queue.write_to(&mut file, &path);
                // Nobody listens when the session never started.
                tell.send(()).ok();
            }
        };
        match thread::Builder::new()
            .name("session-log".into())
            .spawn(write)
        {
            Ok(writer) => Ok(Self {
                path,
                queue,
                writer: Some(writer),
                done: Some(done),
                kept: false,
            }),
            Err(error) => {
                remove(&path);
                Err(LogError::Thread(path, error))
            }
        }
    }

    /// Where the log is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The session has started: the log stays, whatever comes.
    pub(crate) fn keep(&mut self) {
        self.kept = true;
    }

    /// Hands a line to the writer, which hears of it at the next [`SessionLog::nudge`].
    pub(crate) fn record(&self, at: Millis, from: Who, line: &Line) {
        let mut waiting = self.queue.lock();
        // Lines that were read together share a time, and what is said between them has a later one.
        let at = waiting.latest.max(at);
        waiting.latest = at;
        waiting.entries.push(Entry {
            at,
            from,
            line: line.clone(),
        });
    }

    /// Wakes the writer, if it sleeps and has something to write.
    pub(crate) fn nudge(&self) {
        let queue = self.queue.lock();
        if queue.writer_sleeps && !queue.entries.is_empty() {
            drop(queue);
            self.queue.changed.notify_one();
        }
    }

    /// Waits until everything that was recorded is written. Cancel safe.
    pub(crate) async fn finish(&mut self) {
        self.kept = true;
        self.queue.close();
        if let Some(done) = &mut self.done
            && done.await.is_err()
        {
            warn!(
                "the log {} may be incomplete: its writer stopped unexpectedly",
                self.path.display()
            );
        }
        self.done = None;
    }
}

impl Drop for SessionLog {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        self.queue.close();
        if let Some(writer) = self.writer.take() {
            // It has nothing to write, and a panic of its own was reported as it happened.
            writer.join().ok();
        }
        remove(&self.path);
    }
}

#[derive(Debug)]
struct Entry {
    at: Millis,
    from: Who,
    line: Line,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    entries: Vec<Entry>,
    /// The time of the last entry: times never fall down a log.
    latest: Millis,
    closed: bool,
    writer_sleeps: bool,
}

impl Queue {
    /// A panic cannot leave the queue half changed, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Fills the empty `entries` with all that waits. False when nothing will come any more.
    fn take(&self, entries: &mut Vec<Entry>) -> bool {
        let mut waiting = self.lock();
        while waiting.entries.is_empty() {
            if waiting.closed {
                return false;
            }
            waiting.writer_sleeps = true;
            waiting = self
                .changed
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
            waiting.writer_sleeps = false;
        }
        mem::swap(&mut waiting.entries, entries);
        true
    }

    /// Lets more lines come, when they come so fast that being woken for each would take more
    /// time than writing it.
    fn linger(&self, pace: &mut Pace) {
        if pace.is_fast() && !self.lock().closed {
            thread::sleep(LINGER);
        }
    }

    /// The writer's work, until the queue is closed and empty.
    fn write_to(&self, file: &mut File, path: &Path) {
        let mut entries = Vec::new();
        let mut text = Vec::new();
        let mut broken = false;
        let mut pace = Pace::default();
        while self.take(&mut entries) {
            if broken {
                entries.clear();
                continue;
            }
            if let Err(error) = write_entries(file, &mut entries, &mut text) {
                error!(
                    "recording stopped: {}: {error}; the session goes on without it",
                    path.display()
                );
                broken = true;
            }
            shrink(&mut entries);
            text.shrink_to(TOGETHER);
            self.linger(&mut pace);
        }
    }
}

/// How long the writer lets lines gather under a steady stream of them. What a kill of the proxy can cost then.
const LINGER: Duration = Duration::from_micros(50);

/// Lines that follow each other within this time make a steady stream.
const STEADY: Duration = Duration::from_millis(1);

/// So many wake-ups in a steady stream make it worth while to wait for more.
const MANY: u32 = 64;

/// How fast lines come.
#[derive(Debug, Default)]
struct Pace {
    last: Option<Instant>,
    steady: u32,
}

impl Pace {
    /// Takes note that lines were written just now.
    fn is_fast(&mut self) -> bool {
        let now = Instant::now();
        let is_steady = self
            .last
            .replace(now)
            .is_some_and(|last| now - last < STEADY);
        self.steady = if is_steady {
            self.steady.saturating_add(1)
        } else {
            0
        };
        self.steady >= MANY
    }
}

/// Gives back what a burst has taken, so that memory is flat over a long session.
fn shrink(entries: &mut Vec<Entry>) {
    const USUAL: usize = 1024;
    entries.clear();
    entries.shrink_to(USUAL);
}

fn write_entries(file: &mut File, entries: &mut Vec<Entry>, text: &mut Vec<u8>) -> io::Result<()> {
    for entry in entries.drain(..) {
        if entry.line.content().len() >= TOGETHER
            && let Some(json) = embedded(entry.line.content())
        {
            file.write_all(text)?;
            text.clear();
            encode_head(text, entry.at.0, entry.from);
            write_all_vectored(
                file,
                &mut [IoSlice::new(text), IoSlice::new(json), IoSlice::new(b"}\n")],
            )?;
            text.clear();
            continue;
        }
        encode_entry(text, entry.at.0, entry.from, entry.line.content());
        drop(entry.line);
        if text.len() >= TOGETHER {
            file.write_all(text)?;
            text.clear();
        }
    }
    let written = file.write_all(text);
    text.clear();
    written
}

/// A message of many bytes goes into the file without a copy of it.
fn write_all_vectored(file: &mut File, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !slices.is_empty() {
        match file.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn create_file(directory: &Path, header: &mut Header) -> Result<(PathBuf, File), LogError> {
    const TRIES: u32 = 9;
    let session = header.session.clone();
    let mut nth = 1;
    loop {
        let path = directory.join(format!("{}.jsonl", header.session));
        match create_new(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && nth < TRIES => {
                nth += 1;
                header.session = format!("{session}-{nth}");
            }
            Err(error) => return Err(LogError::Create(path, error)),
        }
    }
}

/// Only its owner may read a log: it holds everything that the tools return.
fn create_new(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;

    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        warn!(
            "removing {}: {error}; it holds nothing and can be deleted",
            path.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, os::fd::OwnedFd};

    use bytes::Bytes;
    use stretto_trace::mcp::read_log;

    use super::*;

    fn finish(mut log: SessionLog) {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(log.finish());
    }

    fn header() -> Header {
        Header::new("20260101T000000.000Z-7", 0, vec!["cat".into()])
    }

    #[test]
    fn what_is_recorded_is_in_the_file_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let log = SessionLog::create(folder.path(), &mut header()).unwrap();
        let path = log.path().to_owned();
        for n in 0..1000 {
            log.record(
                Millis(n),
                Who::Client,
                &Line::own(format!("{{\"id\":{n}}}")),
            );
            log.nudge();
        }
        finish(log);
        let log = read_log(&path).unwrap();
        let times: Vec<u64> = log.entries.iter().map(|entry| entry.t_ms).collect();
        assert_eq!(times, (0..1000).collect::<Vec<u64>>());
    }

    #[test]
    fn times_never_fall_though_a_line_that_was_read_before_is_recorded_later() {
        let folder = tempfile::tempdir().unwrap();
        let log = SessionLog::create(folder.path(), &mut header()).unwrap();
        let path = log.path().to_owned();
        for (t_ms, from) in [
            (5, Who::Client),
            (7, Who::Context),
            (5, Who::Client),
            (9, Who::Server),
        ] {
            log.record(Millis(t_ms), from, &Line::own("{}".to_owned()));
        }
        finish(log);
        let times: Vec<u64> = read_log(&path)
            .unwrap()
            .entries
            .iter()
            .map(|entry| entry.t_ms)
            .collect();
        assert_eq!(times, [5, 7, 7, 9]);
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let folder = tempfile::tempdir().unwrap();
        let mut logs: Vec<SessionLog> = Vec::new();
        for nth in 1..=9 {
            let mut header = header();
            logs.push(SessionLog::create(folder.path(), &mut header).unwrap());
            let expected = if nth == 1 {
                "20260101T000000.000Z-7".into()
            } else {
                format!("20260101T000000.000Z-7-{nth}")
            };
            assert_eq!(header.session, expected);
        }
        let error = SessionLog::create(folder.path(), &mut header()).unwrap_err();
        assert!(error.to_string().starts_with("creating "), "{error}");
        drop(logs);
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            0,
            "logs that were not kept are gone"
        );
    }

    #[test]
    fn a_log_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let log = SessionLog::create(folder.path(), &mut header()).unwrap();
        assert_eq!(
            fs::metadata(log.path()).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn a_disk_that_stalls_holds_up_nobody() {
        const LINES: u64 = 10_000;
        // A pipe that nobody reads yet, with far more to write than it holds.
        let (mut disk, file) = io::pipe().unwrap();
        let log = SessionLog::write_into("stalled.jsonl".into(), File::from(OwnedFd::from(file)));
        let log = log.unwrap();
        for n in 0..LINES {
            let line = Line::own(format!("{{\"id\":{n},\"pad\":\"{}\"}}", "p".repeat(1000)));
            log.record(Millis(n), Who::Client, &line);
            log.nudge();
        }
        let written = thread::spawn(move || {
            let mut written = String::new();
            disk.read_to_string(&mut written).map(|_| written)
        });
        finish(log);
        let written = written.join().unwrap().unwrap();
        for (n, line) in written.lines().enumerate() {
            assert!(
                line.starts_with(&format!("{{\"t_ms\":{n},")),
                "line {n} stands in its place"
            );
        }
        assert_eq!(written.lines().count() as u64, LINES);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_disk_without_room_ends_the_recording_and_nothing_else() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let log = SessionLog::write_into("full.jsonl".into(), full).unwrap();
        for n in 0..1000 {
            log.record(Millis(n), Who::Server, &Line::own("{}".into()));
            log.nudge();
        }
        finish(log);
    }

    #[test]
    fn a_line_without_a_line_feed_is_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let log = SessionLog::create(folder.path(), &mut header()).unwrap();
        let path = log.path().to_owned();
        log.record(
            Millis(1),
            Who::Server,
            &Line::from(Bytes::from_static(b"half")),
        );
        finish(log);
        let text = fs::read_to_string(path).unwrap();
        assert!(
            text.ends_with("{\"t_ms\":1,\"from\":\"server\",\"raw\":\"half\"}\n"),
            "{text}"
        );
    }
}
