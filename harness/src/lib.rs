//! Plays what a host does through the real proxy, against a real server, and compares
//! everything that came of it with a snapshot.
//!
//! ```text
//!  scenario file ──► Scenario ──► run ──► Outcome ──► transcript ──► snapshot
//!                                  │         │
//!                    proxy, server ┘         └──► promises (what holds in every run)
//! ```
//!
//! The scenario format is described in `FORMAT.md`; the program is `stretto-harness`.

pub mod bins;
pub mod cli;
pub mod collection;
pub mod event;
mod host;
pub mod import;
mod log_text;
mod message;
mod model;
mod normalise;
pub mod process;
mod promises;
mod record;
pub mod report;
pub mod run;
pub mod runner;
pub mod scenario;
mod server;
pub mod service;
pub mod simulate;
pub mod snapshot;
pub mod soak;
pub mod suite;
mod text;
mod transcript;
