//! Going through the contents of results, which may be more than memory holds.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use stretto_trace::Episode;
use stretto_trace::mcp::{episode, read_log};

use super::{LearnError, Progress, Session, Stage};

impl Session {
    /// The episode with the contents of its results, which are read if they were left on disk.
    fn whole(&self) -> Result<Cow<'_, Episode>, LearnError> {
        let Some(log) = &self.contents_in else {
            return Ok(Cow::Borrowed(&self.episode));
        };
        let log = read_log(log).map_err(|error| {
            let why = std::error::Error::source(&error).map(ToString::to_string);
            LearnError::Unread(format!("{error}: {}", why.unwrap_or_default()))
        })?;
        Ok(Cow::Owned(episode(&log)))
    }
}

/// Counts something over whole sessions, on as many threads as there are cores. Each thread
/// begins with `T::default()`, lets `count` add its sessions, and `join` puts the threads' counts
/// together. Which session is counted where is left open, so it must not matter.
pub(super) fn count<T: Default + Send>(
    sessions: &[&Session],
    stage: Stage,
    progress: &mut Progress<'_>,
    count: impl Fn(&mut T, &Episode) + Sync,
    join: impl Fn(&mut T, T),
) -> Result<T, LearnError> {
    let threads = thread::available_parallelism()
        .map_or(1, Into::into)
        .min(sessions.len());
    let next = AtomicUsize::new(0);
    let progress = Mutex::new(progress);
    let count_some = || {
        let mut counted = T::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(session) = sessions.get(number) else {
                return Ok(counted);
            };
            // A bar that panicked is no reason to stop.
            progress.lock().unwrap_or_else(PoisonError::into_inner)(stage, number, sessions.len());
            let episode = session.whole()?;
            count(&mut counted, &episode);
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(count_some)).collect();
        let mut all = T::default();
        for worker in workers {
            match worker.join() {
                Ok(counted) => join(&mut all, counted?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(all)
    })
}
