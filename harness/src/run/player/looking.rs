//! What a step looks for outside the host's own pipes: at the server, the model, in files and on stderr.

use std::time::{Duration, Instant};

use crate::process;

use super::{Player, Wrong};

/// How often a file is looked at that another process writes.
const BEAT: Duration = Duration::from_millis(2);

impl Player<'_> {
    pub(super) fn reached_server(&mut self, what: &str, times: Option<u64>) -> Result<(), Wrong> {
        let stage = self.stage;
        self.reached("the server", what, times, || {
            let record = stage.server_record();
            record.map(|record| record.count(what)).unwrap_or_default()
        })
    }

    /// Waits until somebody has it so often; what must not have come cannot be waited for.
    pub(super) fn reached(
        &mut self,
        whom: &str,
        what: &str,
        times: Option<u64>,
        count: impl Fn() -> u64,
    ) -> Result<(), Wrong> {
        let deadline = Instant::now() + self.stage.patience;
        let wanted = times.unwrap_or(1);
        loop {
            let count = count();
            let is_enough = if times.is_some() {
                count == wanted
            } else {
                count >= wanted
            };
            if is_enough {
                return Ok(());
            }
            if count > wanted
                || Instant::now() >= deadline
                || self.ending.is_some()
                || process::is_stopped()
            {
                let how_often = if times.is_some() {
                    format!("{wanted}×")
                } else {
                    "at least once".to_owned()
                };
                return Err(Wrong {
                    expected: format!("{what} to have reached {whom} {how_often}"),
                    came: format!("it has reached it {count}×"),
                });
            }
            std::thread::sleep(BEAT);
        }
    }

    /// Waits until a file is there, as one that is renamed into its place is.
    pub(super) fn is_written(&mut self, path: &str) -> Result<(), Wrong> {
        let deadline = Instant::now() + self.stage.patience;
        let place = self.stage.in_folder(path);
        while !place.is_file() {
            if Instant::now() >= deadline || process::is_stopped() {
                return Err(Wrong {
                    expected: format!("the file {path} to be in the run's folder"),
                    came: "it is not".to_owned(),
                });
            }
            std::thread::sleep(BEAT);
        }
        Ok(())
    }

    /// Waits until a log holds this: the proxy writes it beside everything else.
    pub(super) fn logs_hold(&mut self, text: &str) -> Result<(), Wrong> {
        let deadline = Instant::now() + self.stage.patience;
        loop {
            if self.stage.logs().values().any(|log| log.contains(text)) {
                return Ok(());
            }
            if Instant::now() >= deadline || process::is_stopped() {
                let logs = self.stage.logs().into_keys().collect::<Vec<_>>().join(", ");
                return Err(Wrong {
                    expected: format!("a log to hold {text:?}"),
                    came: format!("none of these does: {logs}"),
                });
            }
            std::thread::sleep(BEAT);
        }
    }

    pub(super) fn stderr_holds(&mut self, text: &str) -> Result<(), Wrong> {
        let deadline = Instant::now() + self.stage.patience;
        loop {
            let stderr = self.stage.stderr_text();
            if stderr.contains(text) {
                return Ok(());
            }
            if Instant::now() >= deadline || self.ending.is_some() || process::is_stopped() {
                return Err(Wrong {
                    expected: format!("stderr to hold {text:?}"),
                    came: stderr,
                });
            }
            std::thread::sleep(BEAT);
        }
    }
}
