//! The sessions of a directory, a line each.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use stretto_trace::mcp::{Log, Who, read_log, session_logs};

use super::story::Story;
use super::text::{clip, count, duration, name, number, width};
use crate::FAILED;
use crate::screen::style::{BAD, BOLD, DIM, WARN};
use crate::screen::{Screen, one_line, safe};

/// Lists the sessions in `directory`, newest first. A log that cannot be read is listed as such,
/// and makes the command fail at its end.
pub(super) fn run(directory: &Path, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let mut logs = session_logs(directory)?;
    logs.reverse();
    if logs.is_empty() {
        anyhow::bail!("no session log (*.jsonl) is in {}", directory.display());
    }
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
        "\n{DIM}{} in {}{DIM:#}",
        count(logs.len(), "session"),
        safe(&directory.display().to_string())
    )?;
    Ok(if is_broken {
        ExitCode::from(FAILED)
    } else {
        ExitCode::SUCCESS
    })
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
