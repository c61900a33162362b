//! The server of a run: the demo server or another program, as the proxy's child or over HTTP.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::process::Owned;

/// What a built-in world says first on its own stream, as soon as that is open.
pub(crate) const GREETING: &str = "hello from the server's own stream";

/// A demo server that listens on a local port.
#[derive(Debug)]
pub(crate) struct HttpServer {
    // Dropped with it, and the server with that.
    _process: Owned,
    pub(crate) url: String,
}

impl HttpServer {
    /// Starts the demo server and waits until it says where it listens.
    ///
    /// # Errors
    ///
    /// When it cannot be started, or ends without an address.
    pub(crate) fn start(
        mut command: Command,
        stderr: &Path,
        patience: Duration,
    ) -> io::Result<Self> {
        command.args(["--http", "127.0.0.1:0"]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::options().create(true).append(true).open(stderr)?);
        let mut process = Owned::start(&mut command)?;
        let stdout = process
            .child()
            .stdout
            .take()
            .ok_or_else(|| io::Error::other("it has no stdout"))?;
        let (tell, told) = mpsc::channel();
        thread::Builder::new()
            .name("server-stdout".to_owned())
            .spawn(move || {
                let mut line = String::new();
                let mut stdout = BufReader::new(stdout);
                let read = stdout.read_line(&mut line).map(|_| line);
                // The run may have given up on it.
                drop(tell.send(read));
                // The pipe stays open as long as the server does, so that it can say more.
                drop(io::copy(&mut stdout, &mut io::sink()));
            })?;
        let line = told
            .recv_timeout(patience)
            .map_err(|_| io::Error::other("it has not said where it listens"))??;
        let url = line.trim().to_owned();
        if !url.starts_with("http://") {
            let said = std::fs::read_to_string(stderr).unwrap_or_default();
            return Err(io::Error::other(format!(
                "it ended without an address: {}",
                said.trim()
            )));
        }
        Ok(Self {
            _process: process,
            url,
        })
    }

    /// The address and port in the URL.
    pub(crate) fn address(&self) -> &str {
        let rest = self.url.strip_prefix("http://").unwrap_or(&self.url);
        rest.split('/').next().unwrap_or(rest)
    }
}
