//! The host's end: starts the proxy, speaks to it, and looks at what is left.

use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc, Condvar, Mutex,
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take before a test fails instead of hanging.
const TOO_LONG: Duration = Duration::from_secs(30);

/// A proxy under way.
pub(crate) struct Host {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Option<JoinHandle<()>>,
    said: Arc<(Mutex<String>, Condvar)>,
    folder: TempDir,
}

/// What a proxy has left behind.
pub(crate) struct Left {
    pub(crate) status: ExitStatus,
    /// What the host had not received yet.
    pub(crate) lines: Vec<String>,
    pub(crate) stderr: String,
    /// The log, the header first.
    pub(crate) log: Vec<Value>,
    /// Every file, as text.
    pub(crate) files: String,
}

impl Host {
    /// A host whose proxy records and stands in front of `url`.
    pub(crate) fn before(url: &str) -> Self {
        Self::start(&["--upstream", url], &[])
    }

    /// A host whose proxy records, with more arguments and variables.
    pub(crate) fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut child = Command::new(env!("CARGO_BIN_EXE_stretto-proxy"))
            .args(["--record".as_ref(), folder.path().join("logs").as_os_str()])
            .args(arguments)
            .envs(variables.iter().copied())
            .env("HOME", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the proxy starts");
        let (tell, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        let said = Arc::new((Mutex::new(String::new()), Condvar::new()));
        let noted = Arc::clone(&said);
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let stderr = thread::spawn(move || {
            for line in stderr.lines() {
                let mut said = noted.0.lock().expect("no panics");
                said.push_str(&line.expect("text"));
                said.push('\n');
                noted.1.notify_all();
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            stderr: Some(stderr),
            said,
            folder,
        }
    }

    pub(crate) fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("not closed");
        stdin
            .write_all(format!("{line}\n").as_bytes())
            .expect("the proxy reads");
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "a literal reads better without a reference"
    )]
    pub(crate) fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        let id: Value = id.into();
        self.send(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "a literal reads better without a reference"
    )]
    pub(crate) fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) {
        self.ask(
            id,
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
        );
    }

    /// The next line.
    pub(crate) fn line(&self) -> String {
        match self.lines.recv_timeout(TOO_LONG) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("the host waits for a line in vain"),
            Err(RecvTimeoutError::Disconnected) => panic!("the proxy has closed its stdout"),
        }
    }

    /// The next line, as JSON.
    pub(crate) fn message(&self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"))
    }

    /// The next response to `id`, past everything else.
    pub(crate) fn answer(&self, id: impl Into<Value>) -> Value {
        let id: Value = id.into();
        loop {
            let message = self.message();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// The message of the error that answers `id`.
    pub(crate) fn error(&self, id: impl Into<Value>) -> String {
        let answer = self.answer(id);
        match answer["error"]["message"].as_str() {
            Some(message) => message.to_owned(),
            None => panic!("no error: {answer}"),
        }
    }

    /// `initialize`, its answer, and `notifications/initialized`.
    pub(crate) fn open(&mut self) -> Value {
        self.ask(0, "initialize", json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"},
        }));
        let answer = self.answer(0);
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }

    /// Waits until the proxy has said this on its stderr.
    pub(crate) fn is_told(&self, what: &str) {
        let said = self.said.0.lock().expect("no panics");
        let waits = |said: &mut String| !said.contains(what);
        let told = self.said.1.wait_timeout_while(said, TOO_LONG, waits);
        let (said, waited) = told.expect("no panics");
        assert!(!waited.timed_out(), "{what} was not said: {said}");
    }

    /// Ends the proxy's input.
    pub(crate) fn close(&mut self) {
        self.stdin = None;
    }

    /// Ends the proxy's input, and waits for it.
    pub(crate) fn finish(mut self) -> Left {
        self.close();
        self.wait()
    }

    /// Waits until the proxy has ended by itself.
    pub(crate) fn wait(mut self) -> Left {
        let mut lines = Vec::new();
        loop {
            match self.lines.recv_timeout(TOO_LONG) {
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("the proxy does not end; it said {lines:?}")
                }
            }
        }
        let status = self.child.wait().expect("it was started");
        self.stderr.take().expect("once").join().expect("text");
        let stderr = self.said.0.lock().expect("no panics").clone();
        let mut files = String::new();
        let mut log = Vec::new();
        let entries = std::fs::read_dir(self.folder.path().join("logs"));
        for entry in entries.into_iter().flatten() {
            let path: PathBuf = entry.expect("an entry").path();
            let text = std::fs::read_to_string(path).expect("text");
            let entries: Vec<Value> = text
                .lines()
                .map(|line| serde_json::from_str(line).expect("JSON lines"))
                .collect();
            // What a flow decided is in a file of its own beside it.
            let is_session = |header: &Value| header.get("stretto_mcp_log").is_some();
            if entries.first().is_some_and(is_session) {
                log = entries;
            }
            files.push_str(&text);
        }
        Left {
            status,
            lines,
            stderr,
            log,
            files,
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Left {
    /// How many entries of the log are from `from`.
    pub(crate) fn count(&self, from: &str) -> usize {
        self.log
            .iter()
            .filter(|entry| entry["from"] == from)
            .count()
    }

    /// The messages in the log that are from `from`.
    pub(crate) fn said_by(&self, from: &str) -> Vec<Value> {
        let entries = self.log.iter().filter(|entry| entry["from"] == from);
        entries.map(|entry| entry["message"].clone()).collect()
    }
}

/// The demo server over HTTP, until it is dropped.
pub(crate) struct Demo {
    child: Child,
    pub(crate) url: String,
    /// Of its script.
    folder: Option<TempDir>,
}

impl Demo {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_stretto-mcp-demo"))
            .args(["--http", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the demo server starts");
        let mut url = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        stdout.read_line(&mut url).expect("its address");
        Self {
            child,
            url: url.trim().to_owned(),
            folder: None,
        }
    }

    /// The demo server with a script.
    pub(crate) fn scripted(script: &Value) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("script.json");
        std::fs::write(&path, script.to_string()).expect("a file");
        let mut demo = Self::start(&["--script", path.to_str().expect("text")]);
        demo.folder = Some(folder);
        demo
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
