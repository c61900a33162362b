//! Recorded sessions as data: the log format, its reader, and the episodes made from it.

pub mod episode;
pub mod mcp;

pub use episode::{Episode, Event, ToolCall, ToolDoc, ToolKind, ToolManifest, TurnUsage};
