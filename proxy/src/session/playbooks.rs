//! Plays events to a session and reads what it asks for: the tables of what active mode does,
//! row by row. Times are numbers, and nothing is waited for.

#![expect(
    clippy::needless_pass_by_value,
    reason = "a play reads like what is sent"
)]

mod any_order;
mod arbiter;
mod commit;
mod flows;
mod guards;
mod judge;
mod lines_nobody_acts_on;

use std::{path::Path, sync::Arc};

use serde_json::{Value, json};
use stretto_flow::Flow;
use stretto_guards::{Guards, confirm::Judge};
use stretto_oracle::Response;
use stretto_trace::mcp::Header;

use super::*;

/// A session that is played to.
struct Play {
    session: Session,
    at: Millis,
    /// What the conversation's file holds and nobody has read yet.
    unread: Vec<String>,
    asked: Vec<Ticket>,
    notes: Vec<(SideLog, Value)>,
    said: Vec<String>,
}

impl Play {
    fn new(options: Options) -> Self {
        let header = Header::new("20260101T000000.000Z-1", 0, Vec::new());
        Self {
            session: Session::active(Active::new(&header, options, OwnIds::default())),
            at: Millis(0),
            unread: Vec::new(),
            asked: Vec::new(),
            notes: Vec::new(),
            said: Vec::new(),
        }
    }

    /// A line from the host.
    fn host(&mut self, text: impl ToString) -> Vec<String> {
        let line = Line::own(text.to_string());
        if self.session.keeps_back(&line) {
            return vec!["kept back".into()];
        }
        if self.session.wants_conversation(&line) {
            self.listen();
        }
        self.event(Event::Line(Side::Host, line))
    }

    /// A line from the server.
    fn server(&mut self, text: impl ToString) -> Vec<String> {
        self.event(Event::Line(Side::Server, Line::own(text.to_string())))
    }

    fn host_closes(&mut self) -> Vec<String> {
        self.listen();
        self.event(Event::Closed(Side::Host))
    }

    fn server_closes(&mut self) -> Vec<String> {
        self.event(Event::Closed(Side::Server))
    }

    /// So much time passes.
    fn later(&mut self, ms: u64) -> Vec<String> {
        self.at = self.at + Millis(ms);
        self.event(Event::Tick)
    }

    /// The host writes into the conversation's file.
    fn says(&mut self, role: &str, content: &str) {
        self.unread
            .push(json!({"role": role, "content": content}).to_string());
    }

    /// The model answers the oldest open question.
    fn answers(&mut self, answer: Result<f64, &str>) -> Vec<String> {
        self.is_told(answer.map(confirmed).map_err(str::to_owned))
    }

    fn is_told(&mut self, answer: Result<Response, String>) -> Vec<String> {
        let ticket = self.asked.remove(0);
        self.event(Event::Answered(ticket, answer))
    }

    fn listen(&mut self) {
        for line in std::mem::take(&mut self.unread) {
            let acts = self.event(Event::Said(Line::own(line)));
            assert_eq!(acts, [""; 0], "words lead to nothing by themselves");
        }
    }

    fn event(&mut self, event: Event) -> Vec<String> {
        let mut acts = Vec::new();
        self.session.handle(self.at, event, &mut acts);
        let mut told = Vec::new();
        for act in acts {
            match act {
                Act::Forward(to, line) => told.push(format!("{} {}", name(to), text(&line))),
                Act::Send(to, line) => told.push(format!("{} (own) {}", name(to), text(&line))),
                Act::Close(side) => told.push(format!("close {}", name(side))),
                Act::Say(what) => self.said.push(what),
                Act::Note(log, line) => {
                    self.notes.push((log, serde_json::from_str(&line).unwrap()));
                }
                Act::Ask(ticket, _) => {
                    self.asked.push(ticket);
                    told.push("ask".into());
                }
                Act::Listen => {
                    self.listen();
                    told.extend(self.event(Event::Listened));
                }
                Act::Admit(line) => told.extend(self.host(text(&line))),
            }
        }
        told
    }

    fn flow_notes(&self) -> Vec<&Value> {
        let flow = self.notes.iter().filter(|(log, _)| *log == SideLog::Flow);
        flow.map(|(_, line)| line).collect()
    }
}

fn name(side: Side) -> &'static str {
    match side {
        Side::Host => "host",
        Side::Server => "server",
    }
}

fn text(line: &Line) -> String {
    String::from_utf8(line.content().to_vec()).unwrap()
}

fn confirmed(p: f64) -> Response {
    let text =
        json!({"model": "m", "answers": {"confirmed": {"type": "noul", "noul": p}}, "usage": {}})
            .to_string();
    Response::parse(text.as_bytes()).unwrap()
}

fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        .to_string()
}

fn request(id: impl Into<Value>, method: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method}).to_string()
}

fn cancel(id: impl Into<Value>) -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id.into()}}).to_string()
}

fn result(id: impl Into<Value>, text: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id.into(), "result": {"content": [{"type": "text", "text": text}]}}).to_string()
}

/// The line that forwards this to the server.
fn to_server(line: &str) -> String {
    format!("server {line}")
}

fn to_host(line: &str) -> String {
    format!("host {line}")
}

/// The request of our own with that number, as the server gets it.
fn own_call(number: u32, tool: &str, arguments: Value) -> String {
    format!(
        r#"server (own) {{"jsonrpc":"2.0","id":"stretto-{number}","method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

fn own_cancellation(number: u32) -> Value {
    json!({"requestId": format!("stretto-{number}")})
}

/// What the host is told of its own, as JSON.
fn own_answer(told: &[String]) -> Value {
    let [answer] = told else {
        panic!("one act: {told:?}")
    };
    serde_json::from_str(
        answer
            .strip_prefix("host (own) ")
            .unwrap_or_else(|| panic!("own: {answer}")),
    )
    .unwrap()
}

fn answer_text(told: &[String]) -> String {
    own_answer(told)["result"]["content"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn guarding() -> Options {
    Options {
        guarding: Some(Guarding::new(Guards::for_domain("retail").unwrap(), true)),
        ..Options::default()
    }
}

fn committing() -> Options {
    Options {
        commit: true,
        ..Options::default()
    }
}

fn judging() -> Options {
    let judge = Judge {
        is_enforced: true,
        ..Judge::new("jev-latest")
    };
    Options {
        judging: Some(Judging::new(judge, 100)),
        listens: true,
        ..guarding()
    }
}

/// The flow of the demo shop: after an email, the user's details and both orders.
fn serving_with(limits: Limits, is_shadow: bool, granted: Option<&[&str]>) -> Options {
    serving_flow("shop", limits, is_shadow, granted)
}

fn serving_flow(name: &str, limits: Limits, is_shadow: bool, granted: Option<&[&str]>) -> Options {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!(
        "crates/stretto-flow/tests/data/flows/{name}.flow.json"
    ));
    let flow = Arc::new(Flow::load(&path).unwrap());
    let settings = stretto_flow::Settings::new(flow.default_decider(), "task");
    let granted = granted.map(|tools| tools.iter().map(|&tool| tool.to_owned()).collect());
    Options {
        serving: Some(Serving::new(flow, settings, limits, granted, is_shadow)),
        ..Options::default()
    }
}

const LIMITS: Limits = Limits {
    per_call: 8,
    per_session: 40,
    questions: 300,
};

fn serving() -> Options {
    serving_with(LIMITS, false, None)
}

fn find(id: impl Into<Value>) -> String {
    call(
        id,
        "find_user_id_by_email",
        json!({"email": "c7@example.com"}),
    )
}

fn details() -> String {
    json!({"user_id": "user_7", "orders": ["#W7a", "#W7b"]}).to_string()
}

/// A session whose flow has just sent its first lookup behind call 1.
fn looking_up(options: Options) -> Play {
    let mut play = Play::new(options);
    assert_eq!(play.host(find(1)), [to_server(&find(1))]);
    assert_eq!(
        play.server(result(1, "user_7")),
        [own_call(
            1,
            "get_user_details",
            json!({"user_id": "user_7"})
        )],
        "{:?}",
        play.said
    );
    play
}
