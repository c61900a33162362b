//! One event per line, as JSON.

use std::io::{self, Write};

use crate::event::Event;

/// Writes events as they happen.
#[derive(Debug)]
pub struct Json<W> {
    out: W,
}

impl<W: Write> Json<W> {
    /// A report to `out`.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// Writes an event and flushes.
    ///
    /// # Errors
    ///
    /// What `out` says.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, event)?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }
}
