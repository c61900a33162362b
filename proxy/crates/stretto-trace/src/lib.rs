//! Recorded sessions as data: the log format, its reader, and the episodes made from it.
//!
//! ```no_run
//! use std::path::Path;
//! use stretto_trace::mcp::{episode, manifest, read_log};
//!
//! # fn main() -> Result<(), stretto_trace::mcp::LogError> {
//! let log = read_log(Path::new("/home/me/.stretto/logs/20260923T212000.123Z-4242.jsonl"))?;
//! let mut ep = episode(&log);
//! ep.reward = 1.0; // if you know the task was solved
//! let tools = manifest(&log, &ep.domain); // tool kinds from `readOnlyHint`
//! # let _ = tools;
//! # Ok(())
//! # }
//! ```

mod after_call;
pub mod episode;
pub mod mcp;
pub mod redact;

pub use after_call::AfterCall;
pub use episode::{Episode, Event, ToolCall, ToolDoc, ToolKind, ToolManifest, TurnUsage};
