//! Sessions played again: a log's lines in their order, with a flow behind the calls.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::allow_attributes,
    clippy::unwrap_used,
    reason = "each test program uses some of it"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use stretto_flow::{
    Answer, Decision, Flow, Live, Next, Run, Session, Settings, Surroundings, Taken,
};
use stretto_trace::mcp::{
    EpisodeBuilder, Log, Who, episode_with_answered, manifest_of, read_log, read_logs,
};

pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

pub fn flow(name: &str) -> Arc<Flow> {
    Arc::new(Flow::load(&data("flows").join(name)).unwrap())
}

pub fn log(name: &str) -> Log {
    read_log(&data(name)).unwrap()
}

/// The sessions of a directory, all of them successful, and their tools.
pub fn sessions(directory: &str) -> (Vec<Session>, Surroundings) {
    let logs = read_logs(&data(directory)).unwrap();
    let sessions = logs
        .iter()
        .map(|log| {
            let (mut episode, answered_before) = episode_with_answered(log);
            episode.reward = 1.0;
            Session {
                episode,
                answered_before,
                contents_in: None,
            }
        })
        .collect();
    let contracts = stretto_trace::mcp::Tools::of_all(&logs).contracts().clone();
    (
        sessions,
        Surroundings {
            manifest: manifest_of(&logs, "shop"),
            contracts,
        },
    )
}

/// The lines of a flow log, without how long decisions took.
pub fn flow_log(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(data(name)).unwrap();
    text.lines()
        .map(|line| without_time(serde_json::from_str(line).unwrap()))
        .collect()
}

pub fn without_time(mut line: Value) -> Value {
    if let Value::Object(members) = &mut line {
        members.remove("ms");
    }
    line
}

/// A session with a flow behind it, as a proxy would hold it.
pub struct Played {
    pub live: Live,
    pub builder: EpisodeBuilder,
    pub settings: Settings,
    pub shadow: bool,
    pub lines: Vec<Value>,
    pub decisions: Vec<Decision>,
    run: Option<(Run, Value, String)>,
    waits_for: Option<(String, Value)>,
    own: usize,
}

impl Played {
    pub fn new(flow: &Arc<Flow>, log: &Log, settings: Settings) -> Self {
        Self {
            live: Live::new(Arc::clone(flow)).exploring(&settings),
            builder: EpisodeBuilder::new(&log.header),
            settings,
            shadow: false,
            lines: Vec::new(),
            decisions: Vec::new(),
            run: None,
            waits_for: None,
            own: 0,
        }
    }

    /// Takes in all lines of a log. The proxy's own are those of the log.
    pub fn play(&mut self, log: &Log) {
        for entry in &log.entries {
            for message in entry.messages() {
                self.message(entry.t_ms, entry.from, message);
            }
        }
    }

    /// Takes in a message, and goes on with a run as far as it can.
    pub fn message(&mut self, at: u64, from: Who, message: &Value) {
        self.builder.message(at, from, message);
        self.live.follow(self.builder.events());
        let Some(id) = message.get("id").filter(|_| from == Who::Server) else {
            return;
        };
        let is_call = self.builder.events().iter().any(|event| {
            matches!(event, stretto_trace::Event::ToolResult { call_id, .. } if *call_id == text(id))
        });
        if let Some((own, _)) = self.waits_for.take_if(|(own, _)| text(id) == *own) {
            let failed = stretto_flow::lookup_result(message).1;
            let (run, _, after) = self.run.as_mut().unwrap();
            *after = own;
            let next = run.resume(Answer::Returned(!failed));
            self.go_on(next);
        } else if is_call && message.get("result").is_some() && self.run.is_none() {
            let after = text(id);
            assert!(self.live.ends_in_call(&after));
            let (tool, failed) = self
                .builder
                .events()
                .iter()
                .find_map(|event| match event {
                    stretto_trace::Event::ToolResult {
                        call_id,
                        name,
                        error,
                        ..
                    } if *call_id == after => Some((name.clone(), *error)),
                    _ => None,
                })
                .unwrap();
            let (run, next) = self.live.flow().run(&tool, failed, 8);
            self.run = Some((run, id.clone(), after));
            self.go_on(next);
        }
    }

    fn go_on(&mut self, mut next: Next) {
        loop {
            let (_, held, after) = self.run.as_ref().unwrap();
            match next {
                Next::Decide(site) => {
                    let decision = self.live.decide(after, &self.settings).unwrap();
                    let taken = Taken {
                        after: held,
                        address: &site.address,
                        ms: 0,
                        shadow: self.shadow,
                        withheld: None,
                    };
                    self.lines.push(without_time(decision.line(&taken)));
                    let answer = match decision.tool() {
                        Some(tool) if !self.shadow && site.offers(tool) => {
                            Answer::LookUp(tool.to_owned())
                        }
                        _ => Answer::HandBack,
                    };
                    self.decisions.push(decision);
                    next = self.run.as_mut().unwrap().0.resume(answer);
                }
                Next::LookUp { tool, .. } => {
                    self.own += 1;
                    let own = format!("stretto-{}", self.own);
                    self.waits_for = Some((own, json!(tool)));
                    return;
                }
                Next::HandBack(record) => {
                    let record = record.expect("the standard run ends");
                    self.lines.push(record.line(held));
                    self.run = None;
                    return;
                }
            }
        }
    }

    /// What the run waits for: the id, the tool and the arguments of a lookup.
    pub fn lookup(&self) -> Option<(String, String, Value)> {
        let (own, tool) = self.waits_for.clone()?;
        let decision = self.decisions.last()?;
        let stretto_flow::Verdict::LookUp { arguments, .. } = &decision.verdict else {
            return None;
        };
        Some((
            own,
            tool.as_str()?.to_owned(),
            Value::Object(arguments.clone()),
        ))
    }

    /// Makes the lookup that the run waits for, with `answer` as what it returns.
    pub fn look_up(&mut self, at: u64, answer: &str) {
        let (id, tool, arguments) = self.lookup().unwrap();
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
        self.message(at, Who::Proxy, &request);
        let result = json!({"content": [{"type": "text", "text": answer}], "isError": false});
        let response = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.message(at, Who::Server, &response);
    }
}

fn text(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}
