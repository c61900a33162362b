//! A host that talks to an active proxy in front of the demo server, and waits for each answer.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// The program that is measured.
pub(crate) const PROXY: &str = env!("CARGO_BIN_EXE_stretto-proxy");

/// The server behind it.
pub(crate) const DEMO: &str = env!("CARGO_BIN_EXE_stretto-mcp-demo");

/// A session with a program that speaks MCP on its pipes.
pub(crate) struct Session {
    program: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_id: u64,
    answer: String,
}

impl Session {
    /// Starts the program, and opens the session as hosts do.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut program = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let input = program.stdin.take().expect("a pipe was asked for");
        let output = program.stdout.take().expect("a pipe was asked for");
        let mut session = Self {
            program,
            input,
            output: BufReader::new(output),
            last_id: 0,
            answer: String::new(),
        };
        let client = json!({"name": "bench", "version": "0"});
        session.ask(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}),
        );
        session.write("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
        session.ask("tools/list", &json!({}));
        session
    }

    /// Calls a tool and waits for its result: how long that took.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Duration {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool without waiting for its result: the call's id.
    pub(crate) fn send(&mut self, tool: &str, arguments: &Value) -> u64 {
        let line = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        self.write(&line);
        self.last_id
    }

    /// Waits for the next line, which is kept as [`answer`](Self::answer).
    pub(crate) fn read(&mut self) {
        self.answer.clear();
        self.output
            .read_line(&mut self.answer)
            .expect("the program answers");
    }

    /// The last line that was read.
    pub(crate) fn answer(&self) -> &str {
        &self.answer
    }

    fn ask(&mut self, method: &str, params: &Value) -> Duration {
        let line = self.request(method, params);
        let started = Instant::now();
        self.write(&line);
        self.read();
        let took = started.elapsed();
        let answer = &self.answer;
        let id = format!("\"id\":{},", self.last_id);
        assert!(
            answer.contains(&id) && answer.contains("\"result\""),
            "{answer}"
        );
        took
    }

    fn request(&mut self, method: &str, params: &Value) -> String {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        format!("{request}\n")
    }

    fn write(&mut self, line: &str) {
        self.input
            .write_all(line.as_bytes())
            .expect("the program reads");
    }

    /// Ends the session as hosts do.
    pub(crate) fn end(self) {
        let Self {
            mut program, input, ..
        } = self;
        drop(input);
        program.wait().expect("the program ends");
    }
}

/// The median, in microseconds.
pub(crate) fn median(times: &[Duration]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2].as_secs_f64() * 1e6
}
