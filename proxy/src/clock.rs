//! Times of a session.

use std::{
    ops::{Add, Sub},
    time::{Duration, Instant},
};

/// Milliseconds since the session started, whole, on a clock that never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Millis(pub(crate) u64);

impl Add for Millis {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Millis {
    type Output = Self;

    /// How long `other` is ago; nothing when it is still to come.
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// The clock of one session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
}

impl Clock {
    /// A clock that stands at zero now.
    pub(crate) fn start() -> Self {
        Self {
            started: Instant::now(),
        }
    }

    /// The time since the session started.
    pub(crate) fn now(&self) -> Millis {
        Millis(
            self.started
                .elapsed()
                .as_millis()
                .try_into()
                .unwrap_or(u64::MAX),
        )
    }

    /// The moment on the system's clock that `at` stands for.
    pub(crate) fn instant(&self, at: Millis) -> Instant {
        self.started + Duration::from_millis(at.0)
    }
}
