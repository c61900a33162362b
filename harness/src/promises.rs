//! What must hold in every run, whatever its scenario is about.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use stretto_trace::Event;
use stretto_trace::mcp::{Log, episode};

use crate::log_text::{self, LogLine, as_logged};
use crate::message::{Kind, Message};
use crate::process::Ending;
use crate::record::{Received, Record};
use crate::run::Failure;
use crate::scenario::{Scenario, Script, Server, Transport};

/// Each promise, by the name that a failure shows.
const PROMISES: [(&str, Promise); 11] = [
    ("bytes", bytes),
    ("log", log),
    ("stdout", stdout),
    ("answered", answered),
    ("own", own),
    ("episode", reads_into_an_episode),
    ("clean", clean),
    ("secret", secret),
    ("faults", faults),
    ("codes", codes),
    ("oracle", oracle),
];

type Promise = fn(&Run<'_>) -> Option<String>;

/// A run, as the promises look at it.
struct Run<'a> {
    scenario: &'a Scenario,
    record: &'a Record,
    /// The entries of the session's log, if there is exactly one.
    log: Option<Vec<LogLine<'a>>>,
    /// Whether the proxy may have kept a line: it is to check calls, or said something of its own on the wire.
    is_active: bool,
    /// Whether a call may reach the server after lines that the host sent later: it waits for the judge.
    may_hold: bool,
}

/// The promises that the run broke.
pub(crate) fn check(scenario: &Scenario, record: &Record) -> Vec<Failure> {
    let mut texts = record.session_logs();
    let log = match (texts.next(), texts.next()) {
        (Some((_, text)), None) => Some(log_text::lines(text).collect::<Vec<_>>()),
        _ => None,
    };
    // A call that nobody waits for may also be dropped without a word on the wire.
    let has = |option: &&str| scenario.proxy.iter().any(|word| word == option);
    let is_active = ["--guards", "--commit", "--flow"].iter().any(has)
        || log
            .as_ref()
            .is_none_or(|log| log.iter().any(|line| line.from == "proxy"));
    let run = Run {
        scenario,
        record,
        log,
        is_active,
        may_hold: has(&"--confirm-judge"),
    };
    PROMISES
        .iter()
        .filter_map(|(name, holds)| {
            Some(Failure::Promise {
                name,
                what: holds(&run)?,
            })
        })
        .collect()
}

impl Run<'_> {
    fn has_server(&self) -> bool {
        !matches!(self.scenario.server, Server::Absent)
    }

    /// The lines of one side in the log.
    fn logged(&self, from: &str) -> Vec<&str> {
        let log = self.log.iter().flatten();
        log.filter(|line| line.from == from)
            .map(|line| line.content.as_str())
            .collect()
    }
}

/// In both directions, bytes that the proxy had no reason to touch arrived as they were sent.
fn bytes(run: &Run<'_>) -> Option<String> {
    to_the_server(run).or_else(|| to_the_host(run))
}

fn to_the_server(run: &Run<'_>) -> Option<String> {
    let server = run.record.server.as_ref()?;
    if run.record.transport == Transport::Http {
        return posts_are_the_hosts(run);
    }
    let own: Vec<&str> = run.logged("proxy");
    let mut sent = run.record.sent.iter();
    // What the host sent before a line that has arrived, and what has not arrived itself.
    let mut skipped: Vec<&Vec<u8>> = Vec::new();
    for received in &server.received {
        let Received::Line(line) = received else {
            continue;
        };
        let same = |sent: &&Vec<u8>| *sent == line;
        if sent.as_slice().first().is_some_and(|next| same(&next)) {
            sent.next();
            continue;
        }
        let message = Message::of(line.clone());
        if is_own(&message) || own.contains(&as_logged(line).as_str()) {
            continue;
        }
        // In active mode the proxy may keep a line from the server, or hold it for a while.
        match sent.clone().position(|other| same(&other)) {
            Some(gap) if run.is_active => {
                skipped.extend(sent.by_ref().take(gap));
                sent.next();
            }
            None if run.may_hold && skipped.contains(&line) => {
                skipped.retain(|held| *held != line);
            }
            _ => {
                let next = sent
                    .next()
                    .map(|line| String::from_utf8_lossy(line).into_owned())
                    .unwrap_or_default();
                return Some(format!(
                    "the server received a line that the host did not send then\nreceived: {}\nthe host's next: {}",
                    message.text(),
                    next.trim_end()
                ));
            }
        }
    }
    // What is missing at the end is what a server that had ended could not receive any more.
    None
}

/// Whether a message is a request of the proxy's own, by its id.
fn is_own(message: &Message) -> bool {
    match &message.kind {
        Kind::Request { id, .. } => id.as_str().is_some_and(|id| id.starts_with("stretto-")),
        _ => false,
    }
}

fn posts_are_the_hosts(run: &Run<'_>) -> Option<String> {
    let own = run.logged("proxy");
    let server = run.record.server.as_ref()?;
    for received in &server.received {
        let Received::Http(request) = received else {
            continue;
        };
        if request.method != "POST" {
            continue;
        }
        let body = as_logged(&request.body);
        let is_hosts = run
            .record
            .sent
            .iter()
            .any(|line| as_logged(line).trim() == body.trim());
        let is_known = match run.log {
            Some(_) => own.contains(&body.as_str()),
            None => is_own(&Message::of(request.body.clone())),
        };
        if !is_hosts && !is_known {
            return Some(format!(
                "the server received a body that the host did not send: {body}"
            ));
        }
    }
    None
}

fn to_the_host(run: &Run<'_>) -> Option<String> {
    run.log.as_ref()?;
    let mut logged = run.logged("server");
    logged.extend(run.logged("proxy"));
    // A proxy that was killed may have had lines in hand that the log never got.
    let was_killed = matches!(run.record.ending, Some(Ending::Signal(9)) | None);
    if !run.is_active
        && !run.record.is_deaf
        && !was_killed
        && run.record.heard.len() != logged.len()
    {
        let (heard, logged) = (run.record.heard.len(), logged.len());
        return Some(format!(
            "the host received {heard} lines, and the log holds {logged} of the server's"
        ));
    }
    for (i, message) in run.record.heard.iter().enumerate() {
        let content = as_logged(message.content());
        let is_logged = if run.is_active {
            logged.contains(&content.as_str())
        } else {
            logged.get(i) == Some(&content.as_str())
        };
        let was_in_hand = was_killed && i >= logged.len();
        if !is_logged && !was_in_hand {
            let other = logged.get(i).copied().unwrap_or("nothing");
            return Some(format!(
                "the host received a line that the log has not there\nreceived: {content}\nin the log: {other}"
            ));
        }
    }
    None
}

/// Compares the log with what the host sent and was sent, then its order and its times, then reads it.
fn log(run: &Run<'_>) -> Option<String> {
    for (name, text) in run.record.session_logs() {
        if let Err(error) = Log::parse(text.as_bytes()) {
            return Some(format!("{name} does not read back: {error}"));
        }
        let entries = text
            .lines()
            .skip(1)
            .filter(|line| !line.trim().is_empty())
            .count();
        let read = log_text::lines(text).count();
        let is_cut = !text.ends_with('\n');
        if entries != read && !is_cut {
            return Some(format!(
                "{name} holds {entries} lines, of which {read} are entries"
            ));
        }
    }
    let log = run.log.as_ref()?;
    for (before, after) in log.iter().zip(log.iter().skip(1)) {
        if before.t_ms > after.t_ms {
            return Some(format!(
                "times fall in the log, from {} to {} ms, at: {}",
                before.t_ms, after.t_ms, after.content
            ));
        }
    }
    let logged = run.logged("client");
    let sent: Vec<String> = run.record.sent.iter().map(|line| as_logged(line)).collect();
    let is_over_early = logged.len() < sent.len() && run.record.ending.is_some();
    for (i, line) in logged.iter().enumerate() {
        if sent.get(i).map(String::as_str) != Some(line) {
            let other = sent.get(i).map_or("nothing", String::as_str);
            return Some(format!(
                "the log has a line that the host did not send there\nin the log: {line}\nsent: {other}"
            ));
        }
    }
    if logged.len() < sent.len() && !is_over_early {
        return Some(format!(
            "the host sent {} lines, and the log holds {}",
            sent.len(),
            logged.len()
        ));
    }
    answers_follow_their_requests(log)
}

fn answers_follow_their_requests(log: &[LogLine<'_>]) -> Option<String> {
    let mut asked: Vec<Value> = Vec::new();
    let mut late: Vec<Value> = Vec::new();
    for line in log {
        match (line.from, line.message().kind) {
            ("client" | "proxy", Kind::Request { id, .. }) => {
                if late.contains(&id) {
                    return Some(format!("the log has the answer to {id} before the request"));
                }
                asked.push(id);
            }
            ("server", Kind::Response { id }) if !asked.contains(&id) => late.push(id),
            _ => {}
        }
    }
    None
}

/// Nothing but JSON-RPC messages, and what the server itself wrote, came out of the proxy's stdout.
fn stdout(run: &Run<'_>) -> Option<String> {
    if !run.has_server() {
        return None;
    }
    // A batch is no message, and its answer may be the proxy's own.
    let known = [run.logged("server"), run.logged("proxy")].concat();
    let may_be_text = match &run.scenario.server {
        Server::Demo { script, .. } => script.is_some() && run.log.is_none(),
        Server::Command(_) => run.log.is_none(),
        Server::Absent => true,
    };
    run.record.heard.iter().find_map(|message| {
        let text = message.text();
        let is_fine = message.kind != Kind::Other
            || may_be_text
            || known.contains(&as_logged(message.content()).as_str());
        (!is_fine || text.starts_with("stretto-proxy:"))
            .then(|| format!("stdout held a line that is no message: {text}"))
    })
}

/// The host got as many answers to each request as the server gave: mostly one.
fn answered(run: &Run<'_>) -> Option<String> {
    if run.record.is_deaf || !run.has_server() {
        return None;
    }
    let count = |messages: &mut dyn Iterator<Item = Message>| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for message in messages {
            if let Kind::Response { id } = message.kind {
                *counts.entry(id.to_string()).or_default() += 1;
            }
        }
        counts
    };
    let heard = count(&mut run.record.heard.iter().cloned());
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    for line in &run.record.sent {
        if let Kind::Request { id, .. } = Message::of(line.clone()).kind {
            *asked.entry(id.to_string()).or_default() += 1;
        }
    }
    let Some(log) = &run.log else {
        let is_told = matches!(run.scenario.server, Server::Demo { script: None, .. });
        let twice = heard.iter().find(|(id, times)| {
            is_told && *id != "null" && **times > asked.get(*id).copied().unwrap_or_default()
        });
        return twice.map(|(id, times)| format!("the request {id} has {times} answers"));
    };
    let given = count(
        &mut log
            .iter()
            .filter(|line| ["server", "proxy"].contains(&line.from))
            .map(LogLine::message),
    );
    for (id, requests) in &asked {
        let (got, given) = (
            heard.get(id).copied().unwrap_or_default(),
            given.get(id).copied().unwrap_or_default(),
        );
        if got == 0 && given > 0 && !was_cancelled(log, id) {
            return Some(format!(
                "the request {id} was answered, and the host never got it"
            ));
        }
        if got > given.max(*requests) {
            return Some(format!(
                "the request {id} has {got} answers, and was asked {requests}×"
            ));
        }
    }
    None
}

/// Whether the host took back the request whose id is this as JSON.
fn was_cancelled(log: &[LogLine<'_>], id: &str) -> bool {
    let Ok(id) = serde_json::from_str::<Value>(id) else {
        return false;
    };
    log.iter().any(|line| {
        let message = line.message();
        let is_cancel = matches!(&message.kind, Kind::Notification { method } if method == "notifications/cancelled");
        let named = message
            .member("params")
            .and_then(|params| params.get("requestId"));
        is_cancel && named == Some(&id)
    })
}

/// Answers to the proxy's own requests never reached the host; none of its ids was used twice.
fn own(run: &Run<'_>) -> Option<String> {
    let log = run.log.as_ref()?;
    let mut own: Vec<Value> = Vec::new();
    for line in log.iter().filter(|line| line.from == "proxy") {
        if let Kind::Request { id, .. } = line.message().kind {
            if own.contains(&id) {
                return Some(format!("the proxy used the id {id} twice"));
            }
            own.push(id);
        }
    }
    let is_hosts = |id: &Value| {
        run.record.sent.iter().any(|line| matches!(Message::of(line.clone()).kind, Kind::Request { id: other, .. } if other == *id))
    };
    run.record
        .heard
        .iter()
        .find_map(|message| match &message.kind {
            Kind::Response { id } if own.contains(id) && !is_hosts(id) => Some(format!(
                "the host received the answer to the proxy's own {id}"
            )),
            _ => None,
        })
}

/// `stretto-trace` makes an episode of the log, in which each call carries its earliest answer.
fn reads_into_an_episode(run: &Run<'_>) -> Option<String> {
    let log = run.log.as_ref()?;
    let (_, text) = run.record.session_logs().next()?;
    let episode = episode(&Log::parse(text.as_bytes()).ok()?);
    let mut calls: Vec<&str> = episode.tool_calls().map(|call| call.id.as_str()).collect();
    let is_once = {
        let all = calls.len();
        calls.sort_unstable();
        calls.dedup();
        calls.len() == all
    };
    for event in episode.events.iter().filter(|_| is_once) {
        let Event::ToolResult { call_id, error, .. } = event else {
            continue;
        };
        let first = log.iter().filter(|line| ["server", "proxy"].contains(&line.from)).map(LogLine::message).find(|message| {
            matches!(&message.kind, Kind::Response { id } if id.as_str().map_or_else(|| id.to_string(), str::to_owned) == *call_id)
        });
        // Within a batch the answer is no message of its own.
        let Some(first) = first else { continue };
        let is_error = first.failure().is_some() || first.is_error();
        if is_error != *error {
            return Some(format!(
                "the episode's result of call {call_id} is not the first response to it"
            ));
        }
    }
    None
}

/// Nothing is left behind: no process, and no file but those asked for; after a failure of its own, no log.
fn clean(run: &Run<'_>) -> Option<String> {
    let record = run.record;
    if let Some(left) = record.left_running.first() {
        return Some(format!("still running after the proxy had gone: {left}"));
    }
    if record.ending == Some(Ending::Code(125)) && !record.logs.is_empty() {
        return Some(format!(
            "the proxy failed and left a log: {:?}",
            record.logs.keys().collect::<Vec<_>>()
        ));
    }
    record.files.iter().find_map(|file| {
        let path = Path::new(file.trim_end_matches('/'));
        let is_given = record
            .given_files
            .iter()
            .any(|given| Path::new(given.trim_end_matches('/')).starts_with(path));
        let is_named = record
            .named_files
            .iter()
            .any(|named| path.starts_with(named) || named.starts_with(path));
        let is_usual = ["context.jsonl", "home"]
            .iter()
            .any(|usual| path.starts_with(usual));
        (!is_given && !is_named && !is_usual)
            .then(|| format!("{file} is in the folder, and nobody asked for it"))
    })
}

/// None of the canaries is in any file or on stderr.
fn secret(run: &Run<'_>) -> Option<String> {
    run.record.leaks.first().cloned()
}

/// Every fault of the script came to pass, and the server's transcript could be read.
fn faults(run: &Run<'_>) -> Option<String> {
    let server = run.record.server.as_ref()?;
    let unfired = server.unfired.clone().unwrap_or_else(|| {
        let mut named = faults_of(&run.scenario.server);
        named.retain(|fault| !server.fired.contains(fault));
        named
    });
    if let Some(fault) = unfired.first() {
        return Some(format!("a fault of the script never came to pass: {fault}"));
    }
    server
        .unread
        .first()
        .map(|line| format!("the server's transcript has a line that means nothing: {line}"))
}

/// The faults of a script, as the server's transcript names them.
fn faults_of(server: &Server) -> Vec<String> {
    let Server::Demo {
        script: Some(Script::Table(table)),
        ..
    } = server
    else {
        return Vec::new();
    };
    let mut named = Vec::new();
    for list in ["answers", "timeline"] {
        let entries = table
            .get(list)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let is_fault = |entry: &Value| {
            entry.get("fault").is_some() || (list == "timeline" && entry.get("exit").is_some())
        };
        for (i, entry) in entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| is_fault(entry))
        {
            let name = entry.get("name").and_then(Value::as_str);
            named.push(name.map_or_else(|| format!("{list}[{i}]"), str::to_owned));
        }
    }
    named
}

/// The model was asked only what the scenario lets it answer.
fn oracle(run: &Run<'_>) -> Option<String> {
    run.record.asked.iter().find_map(|asked| {
        let (question, _) = asked.questions.iter().find(|(_, told)| told.is_none())?;
        Some(format!(
            "no line of `oracle` fits the question {question}, about {}",
            asked.state
        ))
    })
}

/// The proxy ended by a code or a signal that its table of exits has.
fn codes(run: &Run<'_>) -> Option<String> {
    match run.record.ending {
        Some(Ending::Code(101)) => Some("the proxy panicked".to_owned()),
        Some(Ending::Signal(signal)) if [4, 6, 8, 11].contains(&signal) => {
            Some(format!("the proxy crashed with signal {signal}"))
        }
        _ if run.record.stderr.contains("panicked at") => {
            Some("the proxy or its server panicked".to_owned())
        }
        _ => None,
    }
}
