//! A server behind a proxy, as a host's file names it.

use std::fmt::Write as _;

use thiserror::Error;

use crate::Host;

/// A proxy and its options, without a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// The program: its name, or its full path.
    pub command: String,
    /// Its options, up to but not including the server.
    pub options: Vec<String>,
}

/// The server that a proxy stands in front of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// A command that starts it: the program, then its arguments.
    Command(Vec<String>),
    /// A server that is reached over HTTP.
    Url {
        /// Its endpoint.
        url: String,
        /// Headers that go with each request, each as `NAME=VAR`: VAR is the environment variable
        /// that holds the value.
        headers: Vec<String>,
    },
}

/// A server behind a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The proxy.
    pub proxy: Proxy,
    /// What it stands in front of.
    pub server: Server,
}

impl Entry {
    /// All arguments of the proxy: its own, then the server.
    pub fn arguments(&self) -> Vec<&str> {
        let mut words: Vec<&str> = self.proxy.options.iter().map(String::as_str).collect();
        match &self.server {
            Server::Command(command) => {
                words.push("--");
                words.extend(command.iter().map(String::as_str));
            }
            Server::Url { url, headers } => {
                words.extend(["--upstream", url]);
                for header in headers {
                    words.extend(["--upstream-header", header]);
                }
            }
        }
        words
    }

    /// The entry as JSON, broken into lines that end in `line` and whose first starts where the
    /// caller is; `indent` stands before the closing brace, and with `unit` after it before each
    /// member.
    pub(crate) fn lines(&self, host: Host, line: &str, indent: &str, unit: &str) -> String {
        let mut text = "{".to_owned();
        for (place, member) in self.members(host).iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(text, "{comma}{line}{indent}{unit}{member}").expect("memory takes every write");
        }
        text + line + indent + "}"
    }

    /// The entry as JSON on one line.
    pub(crate) fn one_line(&self, host: Host) -> String {
        format!("{{{}}}", self.members(host).join(", "))
    }

    fn members(&self, host: Host) -> Vec<String> {
        let stdio = host.has_type().then(|| "\"type\": \"stdio\"".to_owned());
        let command = format!("\"command\": {}", literal(&self.proxy.command));
        let arguments = format!("\"args\": [{}]", literals(&self.arguments()));
        stdio.into_iter().chain([command, arguments]).collect()
    }

    /// A whole file with this one server in it.
    pub fn file(&self, host: Host, name: &str) -> String {
        let container = literal(host.container());
        let name = literal(name);
        let entry = self.lines(host, "\n", "    ", "  ");
        format!("{{\n  {container}: {{\n    {name}: {entry}\n  }}\n}}\n")
    }
}

/// A JSON string.
pub(crate) fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// JSON strings in a row.
pub(crate) fn literals(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().copied().map(literal).collect();
    words.join(", ")
}

/// A name that cannot be a server's.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "{name:?} cannot be a server's name, which is also part of file names: use letters, digits, \
     `-`, `_` and `.`, and begin with neither `.` nor `-`"
)]
pub struct NameError {
    name: String,
}

/// Whether a server, its sessions and its files may be called `name`.
///
/// # Errors
///
/// They may not.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let is_allowed =
        |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(is_allowed) {
        return Err(NameError {
            name: name.to_owned(),
        });
    }
    Ok(())
}
