//! Session logs: what crossed a proxy between an MCP host and a server, a line at a time.
//!
//! ```text
//!   wire ──► encode_entry ──► <session>.jsonl ──► read_log ──► Log
//! ```
//!
//! A log is JSONL. Its first line is the [`Header`]; every other line is one line of the
//! wire, with the time and the side it came from: as `message` when it is one JSON value,
//! as `raw` text when it is not.

mod embeds;
mod entry;
mod header;
mod read;
mod result;
mod tools;
mod turns;

pub use entry::{Body, Entry, Who, embedded, encode_entry, encode_head};
pub use header::{Header, LOG_VERSION};
pub use read::{
    Log, LogError, ParseError, VERSIONS_READ, is_side_log, read_log, read_logs, session_logs,
};
pub use result::CallResult;
pub use tools::{ListedTool, Tools, manifest, manifest_of};
pub use turns::{CallAt, Effect, EpisodeBuilder, episode, episode_with_answered};
