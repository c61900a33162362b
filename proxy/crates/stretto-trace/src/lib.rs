//! Recorded sessions as data: the log format, its reader, and the episodes made from it.
//!
//! ```no_run
//! use std::path::Path;
//! use stretto_trace::mcp::{episode, manifest, read_log};
//!
//! # fn main() -> Result<(), stretto_trace::mcp::LogError> {
//! let log = read_log(Path::new("recorded/20261130T181500.007Z-311.jsonl"))?;
//! let mut session = episode(&log);
//! session.reward = 1.0; // The log cannot know whether the task was solved.
//! let tools = manifest(&log, &session.domain);
//! # let _ = tools;
//! # Ok(())
//! # }
//! ```

mod after_call;
pub mod episode;
pub mod files;
pub mod home;
pub mod mcp;
pub mod redact;
pub mod tau2;

pub use after_call::AfterCall;
pub use episode::{Episode, Event, ToolCall, ToolDoc, ToolKind, ToolManifest, TurnUsage};
