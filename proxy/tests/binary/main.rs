//! The built program, run as hosts run it: bytes, files, signals, exits.
//!
//! Every test starts real processes and owns them; none is left when a test ends, however it
//! ends. What is waited for is an event (a line, an end), never a time; how long at most can
//! be stretched with `STRETTO_TEST_PATIENCE`, in seconds.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "a test whose surroundings are broken has failed"
)]

mod bounds;
mod bytes;
mod command_line;
mod killed;
mod privacy;
mod retain;
mod shutdown;
mod stdio;
mod support;
