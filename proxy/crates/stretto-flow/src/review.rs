//! Flows as people read them: one by itself, and what changed from one to another.

mod diff;
mod facts;
mod show;

pub use diff::{Change, Diff, Topic, diff};
pub use show::show;
