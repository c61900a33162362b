//! What a session was, before it is told.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};

use stretto_trace::mcp::{Log, Who};

use super::fold::tool_counts;
use super::parties::Protocol;
use super::story::{Call, Row, Story, What};
use super::text::{clip, count, duration, elapsed, name, number, size, wrap};
use crate::screen::safe;
use crate::screen::style::{BAD, BOLD, DIM, WARN};

/// How many calls are named as the slowest, and how many of a kind in the notes.
const SLOWEST: usize = 3;
const NAMED: usize = 3;
/// Below this, no call is called slow, in milliseconds.
const SLOW_MS: u64 = 10;

/// Writes the summary of a session.
pub(super) fn write(
    out: &mut impl Write,
    columns: usize,
    log: &Log,
    story: &Story<'_>,
) -> io::Result<()> {
    writeln!(out, "{BOLD}Session {}{BOLD:#}\n", name(&log.header.session))?;
    let mut card = Card { out, columns };
    let parties = &story.parties;
    let unnamed = || format!("{DIM}not named{DIM:#}");
    card.line(
        "host",
        &parties
            .host
            .as_deref()
            .map_or_else(unnamed, |host| safe(host).into_owned()),
    )?;
    card.line("server", &server(log, story, columns))?;
    if let Some(protocol) = &parties.protocol {
        card.line("protocol", &revision(protocol))?;
    }
    let domain = log
        .header
        .domain
        .as_deref()
        .map(|domain| safe(domain).into_owned());
    let model = log
        .header
        .agent_model
        .as_deref()
        .map(|model| format!("model {}", safe(model)));
    let about: Vec<String> = domain.into_iter().chain(model).collect();
    if !about.is_empty() {
        card.line("about", &about.join(", "))?;
    }
    card.line("when", &when(log, story))?;
    card.line("calls", &calls(story))?;
    card.wrapped("tools", &tools(story))?;
    let (user, agent) = story.tally.said;
    if user + agent > 0 {
        let said = format!(
            "{} by the user, {} by the agent",
            number(user),
            number(agent)
        );
        card.line("said", &said)?;
    }
    card.line("size", &sizes(story))?;
    card.wrapped("slowest", &slowest(story))?;
    let unusual = unusual(log, story);
    if unusual.is_empty() {
        card.line("unusual", &format!("{DIM}nothing{DIM:#}"))?;
    }
    for (index, note) in unusual.iter().enumerate() {
        card.note(if index == 0 { "unusual" } else { "" }, note)?;
    }
    writeln!(card.out)
}

struct Card<'o, W> {
    out: &'o mut W,
    columns: usize,
}

impl<W: Write> Card<'_, W> {
    /// A line of what is known. What is longer than the screen is left to the terminal.
    fn line(&mut self, name: &str, text: &str) -> io::Result<()> {
        writeln!(self.out, "  {DIM}{name:<9}{DIM:#} {text}")
    }

    /// What is no longer than the screen allows: on several lines if need be, on none if empty.
    fn wrapped(&mut self, name: &str, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        for (index, line) in wrap(text, self.columns.saturating_sub(12))
            .iter()
            .enumerate()
        {
            self.line(if index == 0 { name } else { "" }, line)?;
        }
        Ok(())
    }

    /// A note, on as many lines as it takes.
    fn note(&mut self, name: &str, text: &str) -> io::Result<()> {
        for (index, line) in wrap(text, self.columns.saturating_sub(12))
            .iter()
            .enumerate()
        {
            let name = if index == 0 { name } else { "" };
            writeln!(self.out, "  {DIM}{name:<9}{DIM:#} {WARN}{line}{WARN:#}")?;
        }
        Ok(())
    }
}

fn server(log: &Log, story: &Story<'_>, columns: usize) -> String {
    let command = safe(&log.header.server_command.join(" ")).into_owned();
    let room = columns.saturating_sub(12);
    match &story.parties.server {
        Some(server) if command.is_empty() => safe(server).into_owned(),
        Some(server) => {
            let server = safe(server);
            let (command, _) = clip(
                &command,
                room.saturating_sub(super::text::width(&server) + 2),
            );
            format!("{server}  {DIM}{command}{DIM:#}")
        }
        None if command.is_empty() => format!("{DIM}not named{DIM:#}"),
        None => clip(&command, room).0,
    }
}

fn revision(protocol: &Protocol) -> String {
    match protocol {
        Protocol::Agreed {
            revision,
            asked: None,
        } => safe(revision).into_owned(),
        Protocol::Agreed {
            revision,
            asked: Some(asked),
        } => {
            format!(
                "{}  {DIM}the host asked for {}{DIM:#}",
                safe(revision),
                safe(asked)
            )
        }
        Protocol::Asked(revision) => {
            format!("{}  {DIM}asked for, not agreed{DIM:#}", safe(revision))
        }
        Protocol::PerRequest(revision) => {
            format!("{}  {DIM}named by each request{DIM:#}", safe(revision))
        }
    }
}

fn when(log: &Log, story: &Story<'_>) -> String {
    let started = i64::try_from(log.header.started_unix_ms)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok())
        .map_or_else(
            || "at no time there is".to_owned(),
            |started| started.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        );
    format!("{started}, for {}", duration(story.tally.ended_ms))
}

fn calls(story: &Story<'_>) -> String {
    let mut agents = 0;
    let mut own = 0;
    let mut errors = 0;
    for call in story.calls() {
        match call.by {
            Who::Proxy => own += 1,
            _ => agents += 1,
        }
        errors += usize::from(call.is_error());
    }
    let mut text = format!(
        "{} in {}",
        count(agents, "call"),
        count(story.tally.turns, "turn")
    );
    if errors > 0 {
        text.push_str(&format_args!(", {BAD}{}{BAD:#}", count(errors, "error")).to_string());
    }
    if own > 0 {
        text.push_str(&format_args!(", and {} of the proxy's own", count(own, "call")).to_string());
    }
    text
}

fn tools(story: &Story<'_>) -> String {
    let mut tools: BTreeMap<&str, usize> = BTreeMap::new();
    for call in story.calls() {
        *tools.entry(call.tool).or_default() += 1;
    }
    tool_counts(&tools, 6)
}

fn sizes(story: &Story<'_>) -> String {
    let (host, server, proxy) = story.tally.bytes;
    let mut text = format!(
        "{}: {} from the host, {} from the server",
        count(story.tally.lines, "line"),
        size(host),
        size(server)
    );
    if proxy > 0 {
        text.push_str(", ");
        text.push_str(&size(proxy));
        text.push_str(" from the proxy");
    }
    text
}

/// The calls that took longest, if any took long.
fn slowest(story: &Story<'_>) -> String {
    let mut timed: Vec<(u64, &Call<'_>)> = story
        .calls()
        .filter_map(|call| Some((call.took_ms()?, call)))
        .filter(|(took_ms, _)| *took_ms >= SLOW_MS)
        .collect();
    timed.sort_by_key(|(took_ms, _)| std::cmp::Reverse(*took_ms));
    let named: Vec<String> = timed
        .iter()
        .take(SLOWEST)
        .map(|(took_ms, call)| {
            format!(
                "{} {} (at {})",
                name(call.tool),
                duration(*took_ms),
                elapsed(call.t_ms)
            )
        })
        .collect();
    named.join(", ")
}

/// What a reader should know before trusting what the session shows.
fn unusual(log: &Log, story: &Story<'_>) -> Vec<String> {
    let tally = &story.tally;
    let mut notes = Vec::new();
    if log.is_cut_off {
        notes.push("the log's last line was cut off, as by a crash, and is left out".to_owned());
    }
    if log.entries.is_empty() {
        notes.push("nothing was recorded".to_owned());
    } else if story.parties.is_probe {
        notes.push(
            "the host only asked which revisions the server speaks; the session is another log"
                .to_owned(),
        );
    }
    let open: Vec<&Call<'_>> = story
        .calls()
        .filter(|call| call.returned.is_none() && !call.is_cancelled())
        .collect();
    push_calls(&mut notes, &open, "was", "were", "never answered");
    let cancelled: Vec<&Call<'_>> = story.calls().filter(|call| call.is_cancelled()).collect();
    push_calls(&mut notes, &cancelled, "was", "were", "cancelled");
    let is_refused = |call: &&Call<'_>| {
        call.is_error()
            && call
                .returned
                .as_ref()
                .is_some_and(|returned| returned.by == Who::Proxy)
    };
    let refused: Vec<&Call<'_>> = story.calls().filter(is_refused).collect();
    push_calls(&mut notes, &refused, "was", "were", "refused by the proxy");

    let mut unanswered: Vec<String> = Vec::new();
    let (mut stray, mut odd) = (0, 0);
    for other in &story.others {
        match &other.what {
            // An open subscription is how it is meant to be.
            What::Request {
                method: "subscriptions/listen",
                ..
            } => {}
            What::Request {
                method,
                answer: None,
                is_cancelled: false,
                ..
            } => {
                unanswered.push(name(method));
            }
            What::Stray => stray += 1,
            What::Odd => odd += 1,
            What::Request { .. } | What::Notification { .. } | What::Text => {}
        }
    }
    if !unanswered.is_empty() {
        let total = unanswered.len();
        let mut seen = HashSet::new();
        unanswered.retain(|method| seen.insert(method.clone()));
        let named = unanswered.join(", ");
        notes.push(format!(
            "{} without an answer: {named}",
            count(total, "other request")
        ));
    }
    let mut push = |amount: usize, one: &str, many: &str| match amount {
        0 => {}
        1 => notes.push(format!("1 {one}")),
        _ => notes.push(format!("{} {many}", number(amount))),
    };
    push(tally.raw, "line is no JSON", "lines are no JSON");
    push(
        odd,
        "line is JSON but no message",
        "lines are JSON but no message",
    );
    push(
        stray,
        "answer to nothing that was asked",
        "answers to nothing that was asked",
    );
    push(
        tally.repeated,
        "answer came a second time",
        "answers came a second time",
    );
    push(
        tally.displaced,
        "call's id was used again before its answer",
        "calls' ids were used again before their answers",
    );
    push(tally.batches, "batch", "batches");
    if tally.goes_back {
        notes.push("times go back: the log was put together or changed".to_owned());
    }
    let is_continued = |row: &Row<'_>| matches!(row, Row::Turn(turn) if turn.is_continued);
    if story.rows.iter().any(is_continued) {
        notes.push(
            "a turn goes on after something was said: one of its calls was not answered by then"
                .to_owned(),
        );
    }
    notes
}

fn push_calls(notes: &mut Vec<String>, calls: &[&Call<'_>], one: &str, many: &str, what: &str) {
    if calls.is_empty() {
        return;
    }
    let mut named: Vec<String> = calls
        .iter()
        .take(NAMED)
        .map(|call| format!("{} at {}", name(call.tool), elapsed(call.t_ms)))
        .collect();
    if calls.len() > NAMED {
        named.push("…".to_owned());
    }
    let verb = if calls.len() == 1 { one } else { many };
    notes.push(format!(
        "{} {verb} {what}: {}",
        count(calls.len(), "call"),
        named.join(", ")
    ));
}
