//! The demo server over HTTP.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

/// What it insists on in every request.
pub(crate) const TOKEN: &str = "Bearer a-token-of-the-tests";

/// A server that is reached by its URL. Dropping it ends it.
pub(crate) struct Served {
    pub(crate) url: String,
    process: Child,
}

impl Served {
    pub(crate) fn start(script: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_stretto-mcp-demo"))
            .arg("--script")
            .arg(script)
            .args(["--http", "127.0.0.1:0", "--require-auth", TOKEN])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut first = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut first)
            .unwrap();
        let url = first
            .split_whitespace()
            .find(|word| word.starts_with("http://"));
        Self {
            url: url.unwrap_or_else(|| panic!("no URL: {first}")).to_owned(),
            process,
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
