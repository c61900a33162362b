//! What happened in a run, as text: in sections, each in the order it happened.

use std::time::Duration;

use stretto_trace::mcp::{Log, Who, episode};
use stretto_trace::{Episode, Event};

use crate::log_text;
use crate::message::{Asked, Kind, Message, gist, visible};
use crate::normalise;
use crate::record::{HttpRequest, Received, Record, Seen, ServerRecord};
use crate::scenario::{Scenario, Transport};
use crate::text::append;

/// What the proxy starts its own lines on stderr with.
const OWN_WORDS: &str = "stretto-proxy: ";

/// The transcript of a run, with what differs from run to run named.
pub(crate) fn of(scenario: &Scenario, record: &Record) -> String {
    let mut sections = vec![host(record)];
    sections.extend(told(record));
    sections.extend(
        record
            .server
            .as_ref()
            .map(|server| server_saw(server, record)),
    );
    sections.extend(asked(record));
    sections.extend(logs(record));
    sections.extend(episodes(record));
    sections.extend(stderr(record));
    if !record.files.is_empty() {
        sections.push(section(record, "files", record.files.iter().cloned()));
    }
    sections.push(match record.ending {
        Some(ending) => format!("exit {ending}\n"),
        None => "no exit: ended by the runner\n".to_owned(),
    });
    normalise::changing(&sections.join("\n"), &scenario.changing)
}

/// A section, with what the run knows named in it and very long lines cut.
fn section(record: &Record, title: &str, lines: impl IntoIterator<Item = String>) -> String {
    let mut text = format!("{}\n", normalise::by_value(title, &record.names));
    for line in lines {
        let line = normalise::versions(&line);
        let line = normalise::by_value(&line, &record.names);
        append(
            &mut text,
            format_args!("  {}\n", normalise::shortened(&line).trim_end()),
        );
    }
    text
}

/// Whether a message of the server's own comes at a time of its own: over HTTP it may overtake anything.
fn is_untimed(record: &Record, message: &Message) -> bool {
    record.transport == Transport::Http
        && matches!(
            message.kind,
            Kind::Request { .. } | Kind::Notification { .. }
        )
}

fn host(record: &Record) -> String {
    let mut asked = Asked::default();
    let mut lines = Vec::new();
    for seen in &record.view {
        match seen {
            Seen::Did(what) => lines.push(format!("-- {what}")),
            Seen::Sent(bytes) => {
                let message = Message::of(bytes.clone());
                if let Kind::Request { id, method } = &message.kind {
                    asked.note(id.clone(), method);
                }
                lines.extend(arrow(">>", sent_gist(&message, &asked)));
            }
            Seen::Heard(at) => {
                let Some(message) = record.heard.get(*at) else {
                    continue;
                };
                lines.extend(arrow("<<", heard_gist(message, &asked)));
            }
        }
    }
    section(record, "host", lines)
}

fn arrow(arrow: &str, gist: Vec<String>) -> impl Iterator<Item = String> {
    gist.into_iter().enumerate().map(move |(i, line)| {
        if i == 0 {
            format!("{arrow} {line}")
        } else {
            line
        }
    })
}

fn sent_gist(message: &Message, asked: &Asked) -> Vec<String> {
    match &message.kind {
        // A host's answer goes to the server, which used its own ids.
        Kind::Response { id } => {
            let (word, body) = match (message.member("result"), message.member("error")) {
                (_, Some(error)) => ("error", error.to_string()),
                (Some(result), None) => ("result", result.to_string()),
                (None, None) => ("result", "null".to_owned()),
            };
            vec![format!("answer {id} {word} {body}")]
        }
        // What is written by hand is shown to the letter.
        _ if !message.is_usual() => {
            vec![format!(
                "raw {}{}",
                visible(message.content()),
                message.odd_end()
            )]
        }
        _ => gist(message, asked),
    }
}

fn heard_gist(message: &Message, asked: &Asked) -> Vec<String> {
    match message.kind {
        Kind::Request { .. } => {
            let mut lines = gist(message, asked);
            if let Some(first) = lines.first_mut() {
                first.insert_str(0, "request ");
            }
            lines
        }
        _ => gist(message, asked),
    }
}

/// The server's own messages over HTTP that no step waited for, sorted: their place means nothing.
fn told(record: &Record) -> Option<String> {
    let is_shown = |at: usize| {
        record
            .view
            .iter()
            .any(|seen| matches!(seen, Seen::Heard(shown) if *shown == at))
    };
    let asked = Asked::default();
    let mut lines: Vec<String> = record
        .heard
        .iter()
        .enumerate()
        .filter(|(at, message)| !is_shown(*at) && is_untimed(record, message))
        .flat_map(|(_, message)| heard_gist(message, &asked))
        .collect();
    lines.sort_unstable();
    (!lines.is_empty()).then(|| section(record, "told, in no fixed order", lines))
}

fn server_saw(server: &ServerRecord, record: &Record) -> String {
    let asked = Asked::default();
    let mut lines = Vec::new();
    let mut exchanges = Vec::new();
    for received in &server.received {
        match received {
            Received::Line(line) => lines.extend(sent_gist(&Message::of(line.clone()), &asked)),
            // The stream for the server's own messages is opened beside everything else, and in a short
            // session it may come too late; a step can wait for it.
            Received::Http(request) if request.method == "GET" => {}
            Received::Http(request) => exchanges.push(request),
        }
    }
    // Requests that were sent at once may arrive in any order; the host's order is the one that means something.
    exchanges.sort_by_key(|request| place_of(request, record));
    lines.extend(exchanges.into_iter().flat_map(http_gist));
    section(record, "server saw", lines)
}

fn place_of(request: &HttpRequest, record: &Record) -> usize {
    let body = log_text::as_logged(&request.body);
    let place = record
        .sent
        .iter()
        .position(|line| log_text::as_logged(line) == body);
    match request.method.as_str() {
        "DELETE" => usize::MAX,
        _ => place.unwrap_or(usize::MAX - 1),
    }
}

fn http_gist(request: &HttpRequest) -> Vec<String> {
    let has = |name: &str| {
        request
            .headers
            .get(name)
            .is_some_and(|value| !value.is_empty())
    };
    let mut with = Vec::new();
    if has("mcp-session-id") {
        with.push("session".to_owned());
    }
    if let Some(version) = request.headers.get("mcp-protocol-version") {
        with.push(version.clone());
    }
    let with = if with.is_empty() {
        String::new()
    } else {
        format!(" ({})", with.join(", "))
    };
    if request.body.is_empty() {
        return vec![format!("{}{with}", request.method)];
    }
    let mut lines = sent_gist(
        &Message::of([request.body.as_slice(), b"\n"].concat()),
        &Asked::default(),
    );
    if let Some(first) = lines.first_mut() {
        *first = format!("{}{with} {first}", request.method);
    }
    lines
}

/// What the model was asked about, and what it said: a line for each request.
fn asked(record: &Record) -> Option<String> {
    let lines = record.asked.iter().map(|asked| {
        let told: Vec<String> = asked
            .questions
            .iter()
            .map(|(question, told)| {
                let told = told.as_deref().unwrap_or("nothing that the scenario knows");
                format!("{question} → {told}")
            })
            .collect();
        format!("{}, about {}", told.join("; "), asked.state)
    });
    (!record.asked.is_empty()).then(|| section(record, "model asked", lines))
}

fn logs(record: &Record) -> Vec<String> {
    let mut sections = Vec::new();
    for (name, text) in &record.logs {
        let mut lines: Vec<String> = Vec::new();
        let mut untimed: Vec<String> = Vec::new();
        for line in text.lines() {
            let entry = log_text::entry(line);
            if entry
                .is_some_and(|entry| entry.from == "server" && is_untimed(record, &entry.message()))
            {
                untimed.push(normalise::log_line(line).into_owned());
            } else {
                lines.push(normalise::log_line(line).into_owned());
            }
        }
        if !untimed.is_empty() {
            untimed.sort_unstable();
            lines.push("in no fixed order".to_owned());
            lines.append(&mut untimed);
        }
        sections.push(section(record, &format!("log {name}"), lines));
    }
    sections
}

fn episodes(record: &Record) -> Vec<String> {
    let mut sections = Vec::new();
    for (_, text) in record.session_logs() {
        let lines = match Log::parse(text.as_bytes()) {
            Ok(mut log) => {
                give_ideal_times(&mut log, &record.sent_at);
                let episode = episode(&log);
                if episode.events.is_empty() {
                    continue;
                }
                episode_lines(&episode)
            }
            Err(error) => vec![error.to_string()],
        };
        sections.push(section(record, "episode", lines));
    }
    sections
}

/// Turns are told apart by time, and a loaded machine takes its own. So the log is read
/// with the times of a machine that takes none: only the host's thinking passes.
fn give_ideal_times(log: &mut Log, sent_at: &[Duration]) {
    let mut sent_at = sent_at.iter();
    let mut now = 0;
    for entry in &mut log.entries {
        if entry.from == Who::Client
            && let Some(time) = sent_at.next()
        {
            now = u64::try_from(time.as_millis()).unwrap_or(now);
        }
        entry.t_ms = now;
    }
}

fn episode_lines(episode: &Episode) -> Vec<String> {
    let result_of = |id: &str| {
        episode.events.iter().find_map(|event| match event {
            Event::ToolResult {
                call_id,
                error,
                content,
                ..
            } if call_id == id => Some((*error, content)),
            _ => None,
        })
    };
    let mut lines = Vec::new();
    for event in &episode.events {
        match event {
            Event::User { text } => lines.push(format!("user       {}", visible(text.as_bytes()))),
            Event::Assistant { text, calls, .. } => {
                lines.extend(
                    text.iter()
                        .map(|text| format!("assistant  {}", visible(text.as_bytes()))),
                );
                for (i, call) in calls.iter().enumerate() {
                    let word = if i == 0 { "turn  " } else { "   and" };
                    let result = match result_of(&call.id) {
                        None => "no result".to_owned(),
                        Some((is_error, content)) => {
                            let mark = if is_error { "error: " } else { "" };
                            format!("{mark}{}", visible(content.as_bytes()))
                        }
                    };
                    lines.push(format!(
                        "{word}     {} {} → {result}",
                        call.name, call.arguments
                    ));
                }
            }
            Event::ToolResult { .. } => {}
        }
    }
    lines
}

/// The proxy's words and the server's apart: they are written by two processes into one file.
fn stderr(record: &Record) -> Vec<String> {
    let (own, other): (Vec<&str>, Vec<&str>) = record
        .stderr
        .lines()
        .partition(|line| line.starts_with(OWN_WORDS));
    let titled = |title: &str, lines: Vec<&str>| {
        (!lines.is_empty()).then(|| {
            section(
                record,
                title,
                lines.into_iter().map(|line| visible(line.as_bytes())),
            )
        })
    };
    titled("stderr", own)
        .into_iter()
        .chain(titled("stderr, not the proxy's", other))
        .collect()
}
