//! A host with its proxy, and the model's service.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use stretto_harness::service::{Call, Reply, Service};

use crate::Result;

/// A key that may be found nowhere.
pub(crate) const KEY: &str = "sk-never-written-anywhere";

/// A model that hears a yes in what the customer replied, and otherwise takes the first step that is on
/// offer. It keeps what it was asked.
pub(crate) struct Model {
    service: Service,
    heard: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    /// Starts one whose responses have so many answers beside those that were asked for, as a
    /// response that takes several writes to a file has.
    pub(crate) fn start(besides: usize) -> Result<Self> {
        let heard = Arc::default();
        let requests = Arc::clone(&heard);
        let service = Service::start(move |call| Some(answer(call, besides, &requests)))?;
        Ok(Self { service, heard })
    }

    /// Where it is, for the environment.
    pub(crate) fn address(&self) -> String {
        format!("http://{}", self.service.address())
    }

    /// The requests so far.
    pub(crate) fn heard(&self) -> Vec<Value> {
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn answer(call: &Call, besides: usize, heard: &Mutex<Vec<Value>>) -> Reply {
    if call.authorization != Some(format!("Bearer {KEY}")) {
        return Reply::refused(401, "not the key");
    }
    let request: Value = serde_json::from_slice(&call.body).unwrap_or_default();
    let agrees = request["state"]["customer_replied"]
        .as_str()
        .is_some_and(|reply| reply.to_lowercase().contains("yes"));
    let noul = json!({"type": "noul", "noul": if agrees { 0.93 } else { 0.12 }});
    let asked = request["questions"].as_object().into_iter().flatten();
    let besides = (0..besides).map(|number| (format!("beside {number}"), noul.clone()));
    let answers: Map<String, Value> = asked
        .map(|(id, question)| {
            let options = question["criteria"].as_object();
            let answer = match options {
                Some(options) if question["type"] == "choice" => first_of(options),
                _ => noul.clone(),
            };
            (id.clone(), answer)
        })
        .chain(besides)
        .collect();
    heard
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(request);
    Reply::answers("stand-in", &answers)
}

fn first_of(options: &Map<String, Value>) -> Value {
    let first = options.keys().next();
    let probabilities: Map<String, Value> = options
        .keys()
        .map(|option| {
            let is_first = Some(option) == first;
            (option.clone(), json!(if is_first { 1.0 } else { 0.0 }))
        })
        .collect();
    json!({"type": "choice", "choice": first, "probabilities": probabilities, "confidence": 1.0})
}

/// A host with its proxy, in front of the demo shop.
pub(crate) struct Session {
    proxy: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    conversation: File,
    pub(crate) errors: PathBuf,
    last_id: u64,
}

/// What a session is started with.
pub(crate) struct Setup<'a> {
    /// A folder for the conversation and for what goes to stderr.
    pub(crate) own: &'a Path,
    /// The proxy's options, but for the conversation.
    pub(crate) options: Vec<OsString>,
    /// The server's command.
    pub(crate) server: Vec<OsString>,
    pub(crate) environment: Vec<(&'static str, OsString)>,
}

impl Session {
    /// Starts the proxy, and opens the session.
    pub(crate) fn start(setup: Setup<'_>) -> Result<Self> {
        fs::create_dir_all(setup.own)?;
        let [conversation, errors] = ["conversation", "stderr"].map(|name| setup.own.join(name));
        let mut proxy = Command::new(env!("CARGO_BIN_EXE_stretto-proxy"))
            .arg("--context")
            .arg(&conversation)
            .args(setup.options)
            .arg("--")
            .args(setup.server)
            .env_remove("TYPESAFE_API_KEY")
            // However much it says, the key is not in it.
            .env("STRETTO_LOG", "trace")
            .envs(setup.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&errors)?)
            .spawn()?;
        let stdin = proxy.stdin.take();
        let stdout = BufReader::new(proxy.stdout.take().ok_or("no stdout")?);
        let mut session = Self {
            proxy,
            stdin,
            stdout,
            conversation: File::create(&conversation)?,
            errors,
            last_id: 0,
        };
        let client = json!({"name": "test", "version": "0"});
        session.ask(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}),
        )?;
        Ok(session)
    }

    pub(crate) fn say(&mut self, role: &str, content: &str) -> Result {
        let line = format!("{}\n", json!({"role": role, "content": content}));
        Ok(self.conversation.write_all(line.as_bytes())?)
    }

    /// Sends a request, without waiting for its answer.
    pub(crate) fn send(&mut self, method: &str, params: &Value) -> Result {
        self.last_id += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        let stdin = self.stdin.as_mut().ok_or("stdin is closed")?;
        stdin.write_all(format!("{request}\n").as_bytes())?;
        Ok(stdin.flush()?)
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.send(method, params)?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.stdout.read_line(&mut line)? == 0 {
                return Err(format!("the proxy ended: {}", self.said()?).into());
            }
            let message: Value = serde_json::from_str(&line)?;
            if message["id"] == self.last_id {
                return Ok(message["result"].clone());
            }
        }
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// What the proxy has said on stderr so far.
    fn said(&self) -> Result<String> {
        Ok(fs::read_to_string(&self.errors)?)
    }

    /// Closes the proxy's stdin and waits for its end.
    pub(crate) fn end(mut self) -> Result<String> {
        drop(self.stdin.take());
        let status = self.proxy.wait()?;
        let said = self.said()?;
        if status.success() {
            Ok(said)
        } else {
            Err(format!("the proxy ended with {status}: {said}").into())
        }
    }
}

impl Drop for Session {
    /// Kills the proxy where it stands; one that has ended is not there to be killed.
    fn drop(&mut self) {
        drop(self.proxy.kill());
        drop(self.proxy.wait());
    }
}
