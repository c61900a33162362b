//! What the program says on stderr, which is no part of the protocol.

use std::io::{self, Write as _};

/// Says one line, with the program's name before it.
pub(crate) fn say(what: &str) {
    show(&format!("stretto-mcp-demo: {what}\n"));
}

/// Shows a text as it is.
pub(crate) fn show(text: &str) {
    // Nobody is left to tell when stderr cannot be written, and the session goes on without it.
    drop(io::stderr().write_all(text.as_bytes()));
}
