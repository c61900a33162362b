//! The sessions of an HTTP server.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// All sessions that have begun and not ended.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    begun: u64,
    open: HashMap<String, Arc<Session>>,
}

impl Sessions {
    /// Begins a session that agreed on a version, and gives it an id.
    pub(crate) fn begin(&self, version: String) -> Arc<Session> {
        let mut table = lock(&self.table);
        table.begun += 1;
        let id = format!("demo-session-{}", table.begun);
        let session = Arc::new(Session {
            id: id.clone(),
            version,
            ended: Mutex::new(false),
            changed: Condvar::new(),
        });
        table.open.insert(id, Arc::clone(&session));
        session
    }

    /// The open session of that id.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<Session>> {
        lock(&self.table).open.get(id).cloned()
    }

    /// Ends a session, and with it its own stream.
    pub(crate) fn end(&self, id: &str) {
        let session = lock(&self.table).open.remove(id);
        if let Some(session) = session {
            session.end();
        }
    }
}

/// A session between a host and the server.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    /// The version that the server answered to `initialize`.
    pub(crate) version: String,
    ended: Mutex<bool>,
    changed: Condvar,
}

impl Session {
    /// Waits for the session's end, but no longer than that.
    pub(crate) fn wait_for_end(&self, longest: Duration) {
        let until = Instant::now() + longest;
        let mut ended = lock(&self.ended);
        while !*ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            ended = self
                .changed
                .wait_timeout(ended, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn end(&self) {
        *lock(&self.ended) = true;
        self.changed.notify_all();
    }
}

/// Locks what is consistent after each statement, so that a panic elsewhere does not matter.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
