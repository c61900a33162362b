//! A server that runs, behind this one.

use std::ffi::OsString;
use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};

use serde::Deserialize;
use serde_json::value::RawValue;

/// Starts the server.
///
/// # Errors
///
/// When it cannot be started.
pub(crate) fn start(command: &[OsString]) -> io::Result<Child> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("starting {}: {error}", program.display()),
            )
        })
}

/// The status with which this process ends after its server has: the same, or 128 + n after
/// signal n.
pub(crate) fn status(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(signal) = status.signal() {
            return 128 + signal;
        }
    }
    status.code().unwrap_or(1)
}

/// A message under another id, with every other byte as it was. None when it has no id that can
/// be found.
pub(crate) fn with_id(message: &str, id: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    // A list would be read as the head's members, one after another.
    if !message.trim_start().starts_with('{') {
        return None;
    }
    let head: Head<'_> = serde_json::from_str(message).ok()?;
    let old = head.id.get();
    // The borrowed id is a part of the message, so its place is where it begins.
    let start = (old.as_ptr() as usize).checked_sub(message.as_ptr() as usize)?;
    let (before, after) = (message.get(..start)?, message.get(start + old.len()..)?);
    Some(format!("{before}{id}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_id_changes() {
        assert_eq!(
            with_id(r#"{ "id" : 1.0, "n": 7.0e1, "id2": 1 }"#, "\"x\"").as_deref(),
            Some(r#"{ "id" : "x", "n": 7.0e1, "id2": 1 }"#)
        );
        assert_eq!(
            with_id(r#"{"params":{"id":1},"id":"é"}"#, "2").as_deref(),
            Some(r#"{"params":{"id":1},"id":2}"#)
        );
        assert_eq!(with_id(r#"{"params":{"id":1}}"#, "2"), None);
        assert_eq!(with_id("[1]", "2"), None);
    }
}
