//! The story on the screen, a row at a time.
//!
//! ```text
//!      0.613  turn 2   cancel_pending_order  order_id: "#W41a"
//!      +2 ms       →   {"order_id":"#W41a","status":"cancelled"}
//!     time     who      what
//! ```

use std::io::{self, Write};

use serde_json::Value;
use stretto_trace::mcp::Who;

use super::fold::{self, Part};
use super::story::{Call, Line, Other, Returned, Row, Step, Story, Turn, What};
use super::text::{
    clip, compact_json, count, duration, elapsed, head, indented_json, looks_like_json, name,
    number, safe_lines, size, width, wrap,
};
use crate::screen::safe;
use crate::screen::style::{AGENT, BAD, BOLD, DIM, PROXY, USER, WARN};

/// Columns of the time, and of who it was.
const TIME: usize = 10;
const WHO: usize = 9;
/// Where what happened begins: behind both, with gaps.
const INDENT: usize = TIME + 2 + WHO + 1;

/// How many lines of a result, and of something said, are shown at first; and how many in a
/// story with more rows than `SHORT`.
const RESULT_LINES: (usize, usize) = (3, 1);
const SAID_LINES: (usize, usize) = (6, 3);
const SHORT: usize = 40;
/// How many lines a group of other messages takes at first.
const GROUP_LINES: usize = 2;

/// How much of a story is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// Everything that was recorded, at full length.
    pub(super) full: bool,
    /// Only these turns, first and last, and what happened between them.
    pub(super) turns: Option<(usize, usize)>,
}

/// Writes the story, and at its end what was left out and how to see it.
pub(super) fn write(
    out: &mut impl Write,
    columns: usize,
    story: &Story<'_>,
    extent: Extent,
) -> io::Result<()> {
    let rows = match extent.turns {
        Some((first, last)) => between(&story.rows, first, last),
        None => story.rows.as_slice(),
    };
    let parts = if extent.full || extent.turns.is_some() {
        (0..rows.len()).map(Part::Shown).collect()
    } else {
        fold::rows(rows)
    };
    let parts: Vec<Part> = parts;
    let is_long = parts.len() > SHORT;
    let pick = |(few, fewer)| if is_long { fewer } else { few };
    let mut page = Page {
        out,
        columns,
        full: extent.full,
        result_lines: pick(RESULT_LINES),
        said_lines: pick(SAID_LINES),
        clipped: 0,
        stretches: 0,
        was_talk: None,
    };
    for part in parts {
        match part {
            Part::Shown(index) => {
                if let Some(row) = rows.get(index) {
                    page.row(story, row)?;
                }
            }
            Part::Folded(range) => {
                let (note, how) = fold::rows_note(rows.get(range).unwrap_or_default());
                page.folded(&note, &how)?;
            }
        }
    }
    page.farewell()
}

/// The rows from the turn numbered `first` to the one numbered `last`.
fn between<'s, 'a>(rows: &'s [Row<'a>], first: usize, last: usize) -> &'s [Row<'a>] {
    let number = |row: &Row<'_>| match row {
        Row::Turn(turn) => turn.number,
        Row::Said { .. } | Row::Others(_) => None,
    };
    let start = rows
        .iter()
        .position(|row| number(row).is_some_and(|number| number >= first));
    let rest = rows.get(start.unwrap_or(rows.len())..).unwrap_or_default();
    let end = rest
        .iter()
        .position(|row| number(row).is_some_and(|number| number > last));
    rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()
}

struct Page<'o, W> {
    out: &'o mut W,
    columns: usize,
    full: bool,
    result_lines: usize,
    said_lines: usize,
    /// How many results, arguments and messages were shortened.
    clipped: usize,
    /// How many stretches were folded.
    stretches: usize,
    /// Whether the last row was part of the conversation.
    was_talk: Option<bool>,
}

impl<W: Write> Page<'_, W> {
    /// How many columns there are for what happened.
    fn room(&self) -> usize {
        self.columns.saturating_sub(INDENT).max(20)
    }

    fn row(&mut self, story: &Story<'_>, row: &Row<'_>) -> io::Result<()> {
        let is_talk = matches!(row, Row::Said { .. });
        // Blank lines set what was said apart from what was done.
        if self.was_talk.is_some_and(|was_talk| was_talk != is_talk) {
            writeln!(self.out)?;
        }
        self.was_talk = Some(is_talk);
        match row {
            Row::Said {
                t_ms,
                by_user,
                text,
            } => self.said(*t_ms, *by_user, text),
            Row::Turn(turn) => self.turn(story, turn),
            Row::Others(group) => self.others(story, group),
        }
    }

    fn said(&mut self, t_ms: u64, by_user: bool, text: &str) -> io::Result<()> {
        let (who, style) = if by_user {
            ("user", USER)
        } else {
            ("agent", AGENT)
        };
        let room = self.room();
        let shown = if self.full {
            text
        } else {
            head(text, room * 4 * (self.said_lines + 1))
        };
        let mut lines = wrap(shown, room);
        if !self.full && lines.len() > self.said_lines {
            lines.truncate(self.said_lines);
            if let Some(last) = lines.last_mut() {
                let note = format!(" … ({})", size(text.len()));
                *last = clip(last, room.saturating_sub(note.len())).0 + &note;
            }
            self.clipped += 1;
        }
        for (index, line) in lines.iter().enumerate() {
            if index == 0 {
                self.gutter(&elapsed(t_ms), who, style)?;
                writeln!(self.out, "{line}")?;
            } else {
                self.below(line)?;
            }
        }
        Ok(())
    }

    fn turn(&mut self, story: &Story<'_>, turn: &Turn<'_>) -> io::Result<()> {
        let parts = if self.full {
            (0..turn.calls.len()).map(Part::Shown).collect()
        } else {
            fold::calls(&turn.calls)
        };
        for part in parts {
            match part {
                Part::Shown(index) => {
                    if let Some(call) = turn.calls.get(index) {
                        self.call(turn, index, call)?;
                    }
                }
                Part::Folded(range) => {
                    let calls: Vec<_> = turn.calls.get(range).unwrap_or_default().iter().collect();
                    self.folded(&fold::calls_note(&calls), "--full")?;
                }
            }
        }
        self.others(story, &turn.others)
    }

    fn call(&mut self, turn: &Turn<'_>, index: usize, call: &Call<'_>) -> io::Result<()> {
        let (who, style) = match (call.by, turn.number) {
            (Who::Proxy, _) => ("proxy".to_owned(), PROXY),
            (_, Some(number)) if index == 0 => {
                let goes_on = if turn.is_continued { "…" } else { "" };
                (format!("turn {number}{goes_on}"), BOLD)
            }
            _ => (String::new(), BOLD),
        };
        self.gutter(&elapsed(call.t_ms), &who, style)?;
        let tool = name(call.tool);
        let batch = match call.batch {
            Some(messages) => format!("  (in a batch of {messages})"),
            None => String::new(),
        };
        let room = self.room().saturating_sub(width(&tool) + 2 + width(&batch));
        let arguments = call.arguments.map(arguments).unwrap_or_default();
        let arguments = if self.full {
            arguments
        } else {
            self.clip(&arguments, room)
        };
        let gap = if arguments.is_empty() { "" } else { "  " };
        writeln!(
            self.out,
            "{BOLD}{tool}{BOLD:#}{gap}{arguments}{DIM}{batch}{DIM:#}"
        )?;

        let (after, before): (Vec<_>, Vec<_>) = call
            .steps
            .iter()
            .partition(|step| matches!(step, Step::Rewritten { .. }));
        for step in before {
            self.step(call, step)?;
        }
        match &call.returned {
            Some(returned) => self.result(call, returned)?,
            None if call.is_cancelled() => {}
            None => {
                self.gutter("", "?", WARN)?;
                writeln!(self.out, "{WARN}no answer{WARN:#}")?;
            }
        }
        for step in after {
            self.step(call, step)?;
        }
        Ok(())
    }

    fn step(&mut self, call: &Call<'_>, step: &Step) -> io::Result<()> {
        let since = |t_ms: u64| format!("+{}", duration(t_ms.saturating_sub(call.t_ms)));
        let room = self.room();
        match step {
            Step::Interim { t_ms, what } => {
                self.gutter(&since(*t_ms), "…", WARN)?;
                writeln!(self.out, "{}", clip(&safe(head(what, room * 4)), room).0)
            }
            Step::Retried { t_ms } => {
                self.gutter(&since(*t_ms), "again", DIM)?;
                writeln!(self.out, "{DIM}with the answer{DIM:#}")
            }
            Step::Cancelled { t_ms, reason } => {
                self.gutter(&since(*t_ms), "?", WARN)?;
                let reason = match reason {
                    Some(reason) => format!(": {}", safe(head(reason, room * 4))),
                    None => String::new(),
                };
                let text = clip(&format!("cancelled by the host{reason}"), room).0;
                writeln!(self.out, "{WARN}{text}{WARN:#}")
            }
            Step::Rewritten { t_ms, bytes } => {
                self.gutter(&since(*t_ms), "proxy", PROXY)?;
                let size = size(*bytes);
                writeln!(
                    self.out,
                    "{DIM}gave the host its own version of the result, {size}{DIM:#}"
                )
            }
        }
    }

    fn result(&mut self, call: &Call<'_>, returned: &Returned) -> io::Result<()> {
        let took = format!("+{}", duration(returned.t_ms.saturating_sub(call.t_ms)));
        let (mark, style) = match (returned.result.error, returned.by) {
            (true, Who::Proxy) => ("refused", BAD),
            (true, _) => ("error", BAD),
            (false, Who::Proxy) => ("proxy →", PROXY),
            (false, _) => ("→", DIM),
        };
        self.gutter(&took, mark, style)?;
        let content = returned.result.content.as_str();
        let lines = if self.full {
            whole(content, self.room())
        } else {
            self.beginning(content)
        };
        for (index, line) in lines.iter().enumerate() {
            let line = if returned.result.error && !line.is_empty() {
                &format!("{BAD}{line}{BAD:#}")
            } else {
                line
            };
            if index == 0 {
                writeln!(self.out, "{line}")?;
            } else {
                self.below(line)?;
            }
        }
        Ok(())
    }

    /// The first lines of a result, with its size if there is more.
    fn beginning(&mut self, content: &str) -> Vec<String> {
        if content.trim().is_empty() {
            return vec![format!("{DIM}(empty){DIM:#}")];
        }
        let room = self.room();
        // A character takes four bytes at most; blanks that are left out may take some more.
        let shown = head(content, room * 8 * (self.result_lines + 1));
        let is_json = looks_like_json(content);
        let (mut lines, mut is_all) = if is_json {
            (wrap_anywhere(&safe(&compact_json(shown)), room), true)
        } else {
            let mut all = true;
            let clipped = safe_lines(shown).map(|line| {
                let (line, is_whole) = clip(&line, room);
                all &= is_whole;
                line
            });
            (clipped.collect(), all)
        };
        is_all &= shown.len() == content.len() && lines.len() <= self.result_lines;
        if !is_all {
            lines.truncate(self.result_lines);
            let line_count = content.trim_end().lines().count();
            let amount = if is_json || line_count < 2 {
                size(content.len())
            } else {
                format!("{}, {}", size(content.len()), count(line_count, "line"))
            };
            let note = format!(" … ({amount})");
            if let Some(last) = lines.last_mut() {
                let kept = clip(last, room.saturating_sub(width(&note))).0;
                *last = format!("{}{DIM}{note}{DIM:#}", kept.trim_end_matches('…'));
            }
            self.clipped += 1;
        }
        lines
    }

    /// Messages beside the turns: each by itself when all is shown, else in a few words.
    fn others(&mut self, story: &Story<'_>, group: &[usize]) -> io::Result<()> {
        let others: Vec<&Other<'_>> = group
            .iter()
            .filter_map(|&index| story.others.get(index))
            .collect();
        if self.full {
            return others.iter().try_for_each(|other| self.other(other));
        }
        let mut rest = others.as_slice();
        while let Some(first) = rest.first() {
            let from = first.from;
            let same = rest.iter().take_while(|other| other.from == from).count();
            let (these, more) = rest.split_at(same);
            rest = more;
            self.brief(first.t_ms, from, these)?;
        }
        Ok(())
    }

    /// Messages of one side in a line or two.
    fn brief(&mut self, t_ms: u64, from: Who, others: &[&Other<'_>]) -> io::Result<()> {
        const GAP: &str = " · ";
        let room = self.room();
        let mut told: Vec<(String, usize)> = Vec::new();
        // What went unanswered should be seen before what servers chat.
        let mut others = others.to_vec();
        others.sort_by_key(|other| match other.what {
            What::Request { .. } | What::Stray | What::Odd => 0,
            What::Notification { .. } => 1,
            What::Text => 2,
        });
        for other in &others {
            let words = words(other);
            match told
                .iter_mut()
                .rev()
                .take(8)
                .find(|(earlier, _)| *earlier == words)
            {
                Some((_, times)) => *times += 1,
                None => told.push((words, 1)),
            }
        }
        let mut lines = vec![String::new()];
        let mut shown = 0;
        for (words, times) in &told {
            let words = match times {
                1 => clip(words, room).0,
                times => {
                    let times = format!(" ×{}", number(*times));
                    clip(words, room.saturating_sub(width(&times))).0 + &times
                }
            };
            let line_count = lines.len();
            let Some(line) = lines.last_mut() else { break };
            if line.is_empty() {
                line.push_str(&words);
            } else if width(line) + width(GAP) + width(&words) <= room {
                line.push_str(GAP);
                line.push_str(&words);
            } else if line_count == GROUP_LINES {
                break;
            } else {
                lines.push(words);
            }
            shown += times;
        }
        let who = match from {
            Who::Client => "host",
            Who::Server => "server",
            Who::Proxy => "proxy",
            Who::Context => "talk",
        };
        for (index, line) in lines.iter().enumerate() {
            let line = format!("{DIM}{line}{DIM:#}");
            if index == 0 {
                self.gutter(&elapsed(t_ms), who, DIM)?;
                writeln!(self.out, "{line}")?;
            } else {
                self.below(&line)?;
            }
        }
        if shown < others.len() {
            let note = format!("{} more of its lines", number(others.len() - shown));
            self.folded(&note, "--full")?;
        }
        Ok(())
    }

    /// One message beside the turns, whole.
    fn other(&mut self, other: &Other<'_>) -> io::Result<()> {
        let who = match other.from {
            Who::Client => "host",
            from => from.as_str(),
        };
        self.gutter(&elapsed(other.t_ms), who, DIM)?;
        writeln!(self.out, "{}", words(other))?;
        let answer = match &other.what {
            What::Request { answer, .. } => answer.as_ref().map(|answer| answer.message),
            What::Notification { .. } | What::Stray | What::Text | What::Odd => None,
        };
        let message = match other.line {
            Line::Message(message) => Some(message),
            Line::Text(_) => None,
        };
        for message in message.into_iter().chain(answer) {
            self.below(&format!("{DIM}{}{DIM:#}", safe(&message.to_string())))?;
        }
        Ok(())
    }

    fn folded(&mut self, note: &str, how: &str) -> io::Result<()> {
        self.stretches += 1;
        let room = self.room();
        let note = clip(note, room.saturating_sub(width(how) + 3)).0;
        self.gutter("", "⋯", DIM)?;
        writeln!(self.out, "{note}  {DIM}{how}{DIM:#}")
    }

    fn farewell(&mut self) -> io::Result<()> {
        let mut left_out = Vec::new();
        if self.stretches > 0 {
            left_out.push(format!("{} folded", count(self.stretches, "part")));
        }
        if self.clipped > 0 {
            left_out.push(format!("{} shortened", count(self.clipped, "text")));
        }
        if left_out.is_empty() {
            return Ok(());
        }
        writeln!(
            self.out,
            "\n{DIM}{}; --full shows all{DIM:#}",
            left_out.join(", ")
        )
    }

    fn clip(&mut self, text: &str, room: usize) -> String {
        let (clipped, is_all) = clip(text, room);
        self.clipped += usize::from(!is_all);
        clipped
    }

    /// Time and who, brought to their columns by hand: escapes would count as width.
    fn gutter(&mut self, time: &str, who: &str, style: anstyle::Style) -> io::Result<()> {
        let before = TIME.saturating_sub(width(time));
        let after = WHO.saturating_sub(width(who));
        // Marks stand near what they mark, names at the beginning of their column.
        let (left, right) = if matches!(
            who,
            "→" | "error" | "refused" | "?" | "…" | "⋯" | "again" | "proxy →"
        ) {
            (after.saturating_sub(1), after.min(1))
        } else {
            (0, after)
        };
        write!(
            self.out,
            "{:before$}{DIM}{time}{DIM:#}  {:left$}{style}{who}{style:#}{:right$} ",
            "", "", ""
        )
    }

    /// A further line of what happened.
    fn below(&mut self, line: &str) -> io::Result<()> {
        if line.is_empty() {
            return writeln!(self.out);
        }
        writeln!(self.out, "{:INDENT$}{line}", "")
    }
}

/// A call's arguments as `name: value, …`, or as they are when they are no object.
fn arguments(arguments: &Value) -> String {
    let text = match arguments {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    };
    safe(&text).into_owned()
}

/// All lines of a result; JSON that is longer than a line gets one for each member.
fn whole(content: &str, room: usize) -> Vec<String> {
    if content.trim().is_empty() {
        return vec![format!("{DIM}(empty){DIM:#}")];
    }
    if looks_like_json(content) && content.len() > room {
        return safe_lines(&indented_json(content)).collect();
    }
    safe_lines(content).collect()
}

/// Lines of `columns` each, broken wherever they are full.
fn wrap_anywhere(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for character in text.chars() {
        let wide = unicode_width::UnicodeWidthChar::width(character).unwrap_or(0);
        if used + wide > columns {
            lines.push(String::new());
            used = 0;
        }
        used += wide;
        if let Some(line) = lines.last_mut() {
            line.push(character);
        }
    }
    lines
}

/// A message beside the turns in a few words, safe to show.
fn words(other: &Other<'_>) -> String {
    /// Nobody reads more of it than this on one line.
    const LONGEST: usize = 2000;
    let named = |method: &str, detail: &Option<String>| {
        let mut words = name(method);
        if let Some(detail) = detail {
            words.push(' ');
            words.push_str(&safe(head(detail, LONGEST)));
        }
        words
    };
    match &other.what {
        What::Request {
            method,
            detail,
            answer: Some(answer),
            ..
        } => {
            let took = answer.t_ms.saturating_sub(other.t_ms);
            let took = if took >= 1000 {
                format!(" after {}", duration(took))
            } else {
                String::new()
            };
            let mark = if answer.is_error { "error: " } else { "" };
            let summary = safe(head(&answer.summary, LONGEST));
            format!("{} → {mark}{summary}{took}", named(method, detail))
        }
        What::Request {
            method,
            detail,
            is_cancelled: true,
            ..
        } => {
            format!("{} (cancelled)", named(method, detail))
        }
        What::Request { method, detail, .. } => format!("{} (no answer)", named(method, detail)),
        What::Notification { method, detail } => named(method, detail),
        What::Stray => "an answer to nothing that was asked".to_owned(),
        What::Odd => "JSON that is no message".to_owned(),
        What::Text => match other.line {
            Line::Text(text) if text.trim().is_empty() => "a blank line".to_owned(),
            Line::Text(text) => format!("“{}”", safe(head(text, LONGEST))),
            Line::Message(_) => "text".to_owned(),
        },
    }
}
