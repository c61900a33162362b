//! What the steps could never do: send after the host has closed its end, go on after the
//! exit, name a placeholder that nothing sets.

use std::ops::Range;

use serde_json::Value;

use super::placeholders::{self, OWN};
use super::slip::{Slip, Source};
use super::step::{Act, HostEnd, Outcome, RawBytes, Step};
use super::{Scenario, Script, Server};

/// The first step that cannot be reached or cannot be done, with its line.
pub(crate) fn check(steps: &[(Range<usize>, Step)], server: &Server) -> Option<(usize, String)> {
    let mut exited: Option<usize> = None;
    let mut stdin_closed: Option<usize> = None;
    let mut stdout_closed: Option<usize> = None;
    let mut deaf: Option<usize> = None;
    for (_, step) in steps {
        let line = step.line;
        let sends = matches!(
            step.act,
            Act::Handshake { .. }
                | Act::Request { .. }
                | Act::Notify { .. }
                | Act::Answer { .. }
                | Act::Raw { .. }
        );
        let waits = match &step.act {
            Act::Handshake { .. } | Act::Expect(_) => true,
            Act::Request { wait, .. } => *wait,
            _ => false,
        };
        let looks_back = matches!(
            step.act,
            Act::ReachedServer { .. }
                | Act::ReachedModel { .. }
                | Act::Stderr(_)
                | Act::Logged(_)
                | Act::Written(_)
        );
        if let Some(exit) = exited
            && !looks_back
        {
            return Some((
                line,
                format!("this step is never reached: the proxy has ended at line {exit}"),
            ));
        }
        if let Some(closed) = stdin_closed
            && (sends || step.act.closes(HostEnd::Stdin))
        {
            return Some((
                line,
                format!("the host closed the proxy's stdin at line {closed}, so it cannot do this"),
            ));
        }
        if let Some(closed) = stdout_closed
            && (waits
                || step.act.closes(HostEnd::Stdout)
                || matches!(step.act, Act::StopReading | Act::ReadOn))
        {
            return Some((
                line,
                format!("the host closed the proxy's stdout at line {closed}, so it hears nothing"),
            ));
        }
        if let Some(stopped) = deaf
            && (waits || matches!(step.act, Act::StopReading))
        {
            return Some((
                line,
                format!("the host stopped reading at line {stopped}; `read_on` comes first"),
            ));
        }
        match &step.act {
            Act::Close(HostEnd::Stdin) => stdin_closed = Some(line),
            Act::Close(HostEnd::Stdout) => stdout_closed = Some(line),
            Act::StopReading => deaf = Some(line),
            Act::ReadOn if deaf.is_none() => {
                return Some((line, "the host has not stopped reading".to_owned()));
            }
            Act::ReadOn => deaf = None,
            Act::Exit(_) => exited = Some(line),
            Act::ReachedServer { .. } if !matches!(server, Server::Demo { .. }) => {
                let what = "only the demo server tells what has reached it; this scenario has another server";
                return Some((line, what.to_owned()));
            }
            _ => {}
        }
    }
    None
}

impl Act {
    fn closes(&self, end: HostEnd) -> bool {
        matches!(self, Self::Close(closed) if *closed == end)
    }
}

/// Every placeholder that nothing sets before it is used.
pub(crate) fn unknown_placeholders(source: Source<'_>, scenario: &Scenario) -> Vec<Slip> {
    let mut slips = Vec::new();
    let mut misnamed: Vec<(usize, &String)> = Vec::new();
    let mut known: Vec<String> = Vec::new();
    let mut see = |text: &str, line: Option<usize>, known: &[String]| {
        for name in placeholders::names(text) {
            if OWN.iter().any(|(own, _)| *own == name) || known.iter().any(|other| other == name) {
                continue;
            }
            let written = format!("${name}");
            let at = source
                .text
                .find(&written)
                .map_or(1, |at| source.line_of(at));
            slips.push(source.slip_on(line.unwrap_or(at), placeholders::unknown(name, known)));
        }
    };

    let header = [&scenario.title]
        .into_iter()
        .chain(&scenario.proxy)
        .chain(&scenario.needs);
    for text in header
        .chain(scenario.env.values())
        .chain(scenario.files.values())
    {
        see(text, None, &known);
    }
    match &scenario.server {
        Server::Demo { options, script } => {
            for text in options {
                see(text, None, &known);
            }
            match script {
                Some(Script::Path(path)) => see(path, None, &known),
                Some(Script::Table(table)) => {
                    for text in texts(table) {
                        see(text, None, &known);
                    }
                }
                None => {}
            }
        }
        Server::Command(words) => {
            for text in words {
                see(text, None, &known);
            }
        }
        Server::Absent => {}
    }
    for step in &scenario.steps {
        for text in step_texts(step) {
            see(text, Some(step.line), &known);
        }
        for name in step.expected.take.keys() {
            let is_small = name.starts_with(|c: char| c.is_ascii_lowercase())
                && name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if is_small {
                known.push(name.clone());
            } else {
                misnamed.push((step.line, name));
            }
        }
    }
    slips.extend(misnamed.into_iter().map(|(line, name)| {
        source.slip_on(
            line,
            format!("what is taken has a name in small letters, such as order_id, not {name:?}"),
        )
    }));
    slips
}

/// All texts in a step that may hold placeholders.
fn step_texts(step: &Step) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    match &step.act {
        Act::Handshake {
            version,
            client,
            capabilities,
            id,
        } => {
            found.extend([version.as_str(), client]);
            found.extend(texts(capabilities));
            found.extend(texts(id));
        }
        Act::Request {
            method, params, id, ..
        } => {
            found.push(method);
            found.extend(params.iter().flat_map(texts));
            found.extend(texts(id));
        }
        Act::Notify { method, params, .. } => {
            found.push(method);
            found.extend(params.iter().flat_map(texts));
        }
        Act::Answer {
            id,
            outcome: Outcome::Result(body) | Outcome::Error(body),
            ..
        } => {
            found.extend(texts(id));
            found.extend(texts(body));
        }
        Act::Raw {
            bytes: RawBytes::Text(text),
            ..
        }
        | Act::Say { text, .. }
        | Act::Stderr(text)
        | Act::Logged(text)
        | Act::Written(text) => found.push(text),
        Act::ReachedServer { what, .. }
        | Act::ReachedModel { question: what, .. }
        | Act::Release { question: what, .. } => {
            found.push(what);
        }
        Act::Raw {
            bytes: RawBytes::Bytes(_),
            ..
        }
        | Act::Expect(_)
        | Act::Think(_)
        | Act::StopReading
        | Act::ReadOn
        | Act::Close(_)
        | Act::Signal(_)
        | Act::Exit(_) => {}
    }
    let expected = &step.expected;
    found.extend(
        [
            &expected.contains,
            &expected.lacks,
            &expected.exactly,
            &expected.fails,
        ]
        .into_iter()
        .flatten()
        .map(String::as_str),
    );
    found
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
