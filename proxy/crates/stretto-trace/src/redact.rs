//! Sessions that can be shared: what is rare in them becomes salted hashes.
//!
//! ```text
//!            ┌─► Census ── what is how common, declared or forced ──┐
//!   Log ─────┤                                                      ▼
//!            └──────────────────────────────────────────────────► Redactor ─► Log
//! ```
//!
//! A value that few sessions have tells who it is about; one that many have is how the
//! system talks. So rare values become hashes, the same wherever they appear, and all else
//! stays. A flow learned from the copy is the flow learned from the originals.
//!
//! One number may move where common values are hashed by name of their field: a flow takes only
//! what has a digit for the key of a record, and hashes have digits. A customer who gives their
//! name then counts as having described the record that holds it, which changes the chance of a
//! binding whose described record was read, and nothing else.
//!
//! Both passes walk a log in the same way (`walk.rs`); they differ in what they do with a value.

mod census;
mod phrases;
mod rewrite;
mod walk;
mod words;

use std::fmt;

use sha2::{Digest as _, Sha256};

pub use census::Census;
pub use rewrite::{Hashes, Redactor};

use crate::mcp::Log;

/// In how many sessions a value must appear to be kept, unless told otherwise.
pub const KEEP_SHARED: usize = 3;

/// How to redact.
#[derive(Clone)]
pub struct Options {
    /// What makes the hashes one's own: with the same salt they are the same in another batch,
    /// and without it nobody can tell which value a hash stands for by trying values.
    pub salt: String,
    /// In how many sessions a value must appear to be kept. With 0 or 1 only forced values
    /// are hashed.
    pub keep_shared: usize,
    /// Members whose values are always hashed, and each word of them, wherever they appear.
    pub hash_fields: Vec<String>,
}

impl Options {
    /// The usual options, with `salt`.
    pub fn new(salt: impl Into<String>) -> Self {
        Self {
            salt: salt.into(),
            keep_shared: KEEP_SHARED,
            hash_fields: Vec::new(),
        }
    }
}

/// The salt is a secret.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("keep_shared", &self.keep_shared)
            .field("hash_fields", &self.hash_fields)
            .finish_non_exhaustive()
    }
}

/// Redacts a batch of logs.
///
/// To redact more logs than fit into memory, take a [`Census`] of them and give each to the
/// [`Redactor`] that comes of it. Both can be done on several threads.
pub fn redact(logs: &[Log], options: &Options) -> Vec<Log> {
    let mut census = Census::new(options);
    for log in logs {
        census.count(log);
    }
    let redactor = census.finish();
    let mut hashes = Hashes::default();
    let redact = |log| redactor.redact(log, &mut hashes);
    logs.iter().map(redact).collect()
}

/// What of a value is compared: without blanks around it, in lower case, without `#` before it.
fn normal(value: &str) -> String {
    value
        .trim()
        .to_lowercase()
        .trim_start_matches('#')
        .to_owned()
}

/// What stands for a value of this normal form: `h_`, and the first 12 hex digits of the
/// SHA-256 of salt, a NUL and the normal form.
fn hash(salt: &str, normal: &str) -> String {
    use fmt::Write as _;
    let digest = Sha256::new()
        .chain_update(salt)
        .chain_update([0])
        .chain_update(normal)
        .finalize();
    let mut hash = String::from("h_");
    for byte in digest.iter().take(6) {
        write!(hash, "{byte:02x}").expect("memory takes every write");
    }
    hash
}

#[cfg(test)]
mod tests;
