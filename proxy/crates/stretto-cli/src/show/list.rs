//! Several sessions, a line each.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use stretto_trace::mcp::{Log, Who, is_side_log, read_log, session_logs};

use super::story::Story;
use super::text::{clip, count, duration, name, number, width};
use crate::FAILED;
use crate::screen::style::{BAD, BOLD, DIM, WARN};
use crate::screen::{Screen, one_line, safe};
use crate::sessions::logs_in;

/// Lists the sessions of `places`, which are logs and directories of them, newest first. A log
/// that cannot be read is listed as such, and makes the command fail at its end.
pub(super) fn run(places: &[PathBuf], screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let logs = find(places)?;
    let columns = screen.width();
    writeln!(
        screen,
        "{DIM}{:<28} {:>12} {:>6} {:>6} {:>6}  between{DIM:#}",
        "session", "for", "turns", "calls", "errors"
    )?;
    let mut is_broken = false;
    for path in &logs {
        match read_log(path) {
            Ok(log) => line(&log, columns, screen)?,
            Err(error) => {
                is_broken = true;
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                let why = one_line(&anyhow::Error::new(error));
                let why = clip(&safe(&why), columns.saturating_sub(30).max(40)).0;
                writeln!(screen, "{:<28} {BAD}{why}{BAD:#}", name(&file))?;
            }
        }
    }
    writeln!(
        screen,
        "\n{DIM}{}{}{DIM:#}",
        count(logs.len(), "session"),
        match places {
            [directory] if directory.is_dir() =>
                format!(" in {}", safe(&directory.display().to_string())),
            _ => String::new(),
        }
    )?;
    Ok(if is_broken {
        ExitCode::from(FAILED)
    } else {
        ExitCode::SUCCESS
    })
}

/// The session logs of `places`, newest first, each once.
fn find(places: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut logs = Vec::new();
    for place in places {
        if place.is_dir() {
            logs.extend(session_logs(place)?);
        } else if !is_side_log(place) {
            // A shell's `*.jsonl` names what flows and judges wrote beside the sessions, too.
            logs.push(place.clone());
        }
    }
    if logs.is_empty() {
        if let Some(folder) = places.iter().find(|place| place.is_dir()) {
            logs_in(folder)?;
        }
        anyhow::bail!(
            "none of these files is a session log; name those of sessions, or their folder"
        );
    }
    // Sessions are named by their start. Equal names in two directories are two sessions.
    logs.sort_by(|one, other| (other.file_name(), other).cmp(&(one.file_name(), one)));
    logs.dedup();
    Ok(logs)
}

fn line(log: &Log, columns: usize, screen: &mut Screen) -> anyhow::Result<()> {
    let story = Story::of(log);
    let calls = story.calls().filter(|call| call.by == Who::Client).count();
    let errors = story.calls().filter(|call| call.is_error()).count();
    let session = name(&log.header.session);
    let pad = 28_usize.saturating_sub(width(&session));
    let parties = [&story.parties.host, &story.parties.server]
        .map(|party| safe(party.as_deref().unwrap_or("?")).into_owned())
        .join(" and ");
    let parties = clip(&parties, columns.saturating_sub(64).max(20)).0;
    let cut = if log.is_cut_off { " (cut off)" } else { "" };
    let style = if errors > 0 { BAD } else { DIM };
    writeln!(
        screen,
        "{BOLD}{session}{BOLD:#}{:pad$} {:>12} {:>6} {:>6} {style}{:>6}{style:#}  {parties}{WARN}{cut}{WARN:#}",
        "",
        duration(story.tally.ended_ms),
        number(story.tally.turns),
        number(calls),
        number(errors),
    )?;
    Ok(())
}
