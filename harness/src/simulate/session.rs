//! One session: the agent at a real proxy, in front of the shop as a process of its own.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use serde_json::{Value, json};
use stretto_flow::HEADING;

use super::agent::{Answer, Counts, Desk, Given, Intent, Speaker, serve};
use super::customer::Customer;
use super::mind::Mind;
use super::model::{KEY, Model, SharedMind, look_into};
use super::server::SHOP_SERVER;
use super::shop::Shop;
use crate::host::{Host, Waited};
use crate::process::Owned;

/// How long the agent's model thinks before a call. Calls closer than half a second together would
/// count as one turn of the model.
const THINKS: Duration = Duration::from_millis(600);

/// How long an answer, or the end, is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What it takes to play sessions.
#[derive(Clone, Debug)]
pub(crate) struct Bench<'a> {
    pub(crate) proxy: &'a Path,
    /// The program that serves the shop.
    pub(crate) shop: &'a Path,
    /// How long the shop takes for a call, in milliseconds.
    pub(crate) call_ms: u64,
    /// Who answers those that ask.
    pub(crate) model: &'a Model,
}

/// A session to play.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) seed: u64,
    /// What the proxy is told it is: a session's own name holds the time, and what a flow does and
    /// explores is to depend on the seed alone.
    pub(crate) task: String,
    /// The proxy's options.
    pub(crate) options: Vec<OsString>,
    /// Whether the proxy has a model to ask.
    pub(crate) asks: bool,
    /// An empty folder for what it leaves. Its logs come to lie beside it, with those of the other
    /// sessions, where the offline program reads them.
    pub(crate) folder: PathBuf,
}

/// What came of a session.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// What the proxy was told it is.
    pub(crate) task: String,
    pub(crate) counts: Counts,
    /// How long the agent waited for each of its calls, in milliseconds.
    pub(crate) waits: Vec<f64>,
    /// The session's log.
    pub(crate) log: PathBuf,
}

impl Bench<'_> {
    /// Plays a session.
    pub(crate) fn play(&self, job: &Job) -> anyhow::Result<Outcome> {
        let Job { seed, folder, .. } = job;
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        let (context, state) = (folder.join("conversation"), folder.join("shop.json"));
        let errors = folder.join("stderr");
        let mind: Option<SharedMind> = if job.asks {
            Some(SharedMind::new(Mind::new(*seed)?.into()))
        } else {
            None
        };
        // An address of its own tells the model whose question it is.
        let environment = mind.iter().flat_map(|mind| {
            let session = folder.display().to_string().replace(['/', '\\'], "-");
            [
                ("TYPESAFE_API_KEY", KEY.to_owned()),
                ("TYPESAFE_BASE_URL", self.model.base_url(&session, mind)),
            ]
        });
        let mut command = Command::new(self.proxy);
        command
            .args([
                "--domain",
                "retail",
                "--agent-model",
                "scripted",
                "--record",
            ])
            .arg(folder)
            .args(["--task-id", &job.task])
            .arg("--context")
            .arg(&context)
            .args(&job.options)
            .arg("--")
            .arg(self.shop)
            .args([SHOP_SERVER, &seed.to_string(), &self.call_ms.to_string()])
            .arg(&state)
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(
                File::create(&errors).with_context(|| format!("writing {}", errors.display()))?,
            );
        let mut proxy = Owned::start(&mut command)
            .with_context(|| format!("starting {}", self.proxy.display()))?;
        let (stdin, stdout) = (proxy.child().stdin.take(), proxy.child().stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            bail!("the proxy has no stdin and stdout");
        };
        let mut talk = Talk {
            host: Host::new(stdin, stdout).context("reading from the proxy")?,
            context: File::create(&context)
                .with_context(|| format!("writing {}", context.display()))?,
            mind: mind.clone(),
            last_id: 0,
            waits: Vec::new(),
        };
        let told = |error: anyhow::Error| {
            let said = fs::read_to_string(&errors).unwrap_or_default();
            error.context(format!(
                "in the session in {}: {}",
                folder.display(),
                said.trim()
            ))
        };
        let (mut shop, _) = Shop::new(*seed);
        talk.greet().map_err(told)?;
        let counts = serve(&Customer::new(*seed), &mut shop, &mut talk).map_err(told)?;
        talk.host.close_stdin();
        let status = proxy
            .wait_until(Instant::now() + PATIENCE)
            .context("waiting for the proxy")?;
        if !status.is_some_and(|status| status.success()) {
            return Err(told(anyhow!("the proxy did not end as it should")));
        }
        let found =
            fs::read_to_string(&state).with_context(|| format!("reading {}", state.display()))?;
        if found.parse::<Value>().ok() != Some(json!(shop)) {
            return Err(told(anyhow!(
                "the shop's state is not what its calls make of it"
            )));
        }
        let log = move_logs(folder)?;
        Ok(Outcome {
            task: job.task.clone(),
            counts,
            waits: talk.waits,
            log,
        })
    }
}

/// Puts a session's logs beside its folder, and returns where the session log is now.
fn move_logs(folder: &Path) -> anyhow::Result<PathBuf> {
    let log = stretto_trace::mcp::session_logs(folder)?.into_iter().next();
    let log = log.with_context(|| format!("the proxy left no log in {}", folder.display()))?;
    let beside = folder.parent().unwrap_or(folder);
    for name in ["jsonl", "flow.jsonl", "confirm.jsonl"] {
        let from = log.with_extension(name);
        if let Some(name) = from.file_name().filter(|_| from.exists()) {
            fs::rename(&from, beside.join(name))
                .with_context(|| format!("moving {} to {}", from.display(), beside.display()))?;
        }
    }
    Ok(beside.join(log.file_name().unwrap_or_default()))
}

/// The host's side of a session.
struct Talk {
    host: Host,
    context: File,
    /// What a model is asked about, if one is.
    mind: Option<SharedMind>,
    last_id: u64,
    waits: Vec<f64>,
}

impl Talk {
    fn greet(&mut self) -> anyhow::Result<()> {
        let client = json!({"name": "stretto-lab", "version": env!("CARGO_PKG_VERSION")});
        self.ask(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}),
        )?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        self.ask("tools/list", &json!({}))?;
        Ok(())
    }

    fn send(&self, message: &Value) {
        self.host.send(format!("{message}\n").into_bytes());
    }

    /// Sends a request and waits for its result.
    fn ask(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.last_id += 1;
        self.send(
            &json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}),
        );
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.host.wait_until(deadline) {
                Waited::Line(line) => {
                    let mut message: Value =
                        serde_json::from_slice(&line).context("the proxy wrote no JSON")?;
                    if message["id"] == self.last_id {
                        let result = message.get_mut("result").map(Value::take);
                        return result
                            .with_context(|| format!("{method} was answered with {message}"));
                    }
                }
                Waited::Ended => bail!("the proxy ended before it answered {method}"),
                Waited::TimedOut if crate::process::is_stopped() => bail!("stopped by a signal"),
                Waited::TimedOut => bail!("{method} was not answered in {} s", PATIENCE.as_secs()),
            }
        }
    }
}

impl Desk for Talk {
    fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Answer> {
        thread::sleep(THINKS);
        if let Some(mind) = &self.mind {
            look_into(mind).calls(tool, arguments);
        }
        let began = Instant::now();
        let result = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        self.waits.push(began.elapsed().as_secs_f64() * 1000.0);
        let content = result["content"].as_array();
        let texts = content
            .into_iter()
            .flatten()
            .filter_map(|item| item["text"].as_str());
        let (given, own): (Vec<&str>, Vec<&str>) =
            texts.partition(|text| text.starts_with(HEADING));
        Ok(Answer {
            text: own.join("\n"),
            failed: result["isError"] == true,
            given: given
                .into_iter()
                .map(read_given)
                .collect::<anyhow::Result<Vec<_>>>()?
                .concat(),
        })
    }

    fn say(&mut self, who: Speaker, text: &str) -> anyhow::Result<()> {
        let role = match who {
            Speaker::Customer => "user",
            Speaker::Agent => "assistant",
        };
        let line = format!("{}\n", json!({"role": role, "content": text}));
        self.context
            .write_all(line.as_bytes())
            .context("writing the conversation")
    }

    fn intend(&mut self, intent: Intent) {
        if let Some(mind) = &self.mind {
            look_into(mind).intends(intent);
        }
    }
}

/// The lookups in the text that was appended to a result. Each of the shop's results is one line.
fn read_given(text: &str) -> anyhow::Result<Vec<Given>> {
    let blocks = text.split("\n\n").skip(1);
    let given = blocks.map(|block| {
        let (head, text) = block.split_once(":\n")?;
        let (head, failed) = match head.strip_suffix(" (error)") {
            Some(head) => (head, true),
            None => (head, false),
        };
        let (tool, arguments) = head.split_once(' ')?;
        Some(Given {
            tool: tool.to_owned(),
            arguments: serde_json::from_str(arguments).ok()?,
            text: text.to_owned(),
            failed,
        })
    });
    given
        .collect::<Option<_>>()
        .with_context(|| format!("this tells no lookups: {text:?}"))
}

#[cfg(test)]
mod tests {
    use stretto_flow::{LookedUp, appended_text};

    use super::*;

    #[test]
    fn what_a_flow_appends_is_read_back() {
        let looked_up = |failed| LookedUp {
            tool: "get_order_details".to_owned(),
            arguments: serde_json::from_str(r##"{"order_id":"#W1"}"##).unwrap(),
            failed,
            text: "{\"a\":1}".to_owned(),
        };
        let given =
            read_given(&appended_text(&[looked_up(false), looked_up(true)]).unwrap()).unwrap();
        assert_eq!(
            given.iter().map(|given| given.failed).collect::<Vec<_>>(),
            [false, true]
        );
        assert_eq!(given[1].arguments, json!({"order_id": "#W1"}));
        assert_eq!(given[1].text, "{\"a\":1}");
        assert!(read_given(&format!("{HEADING}\n\nnothing")).is_err());
    }
}
