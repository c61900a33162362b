//! `stretto show`: a recorded session as a person reads it.

mod fold;
mod list;
mod parties;
mod story;
mod summary;
mod text;
mod timeline;
mod wire;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use stretto_trace::mcp::{Log, episode, read_log};

use self::story::Story;
use self::timeline::Extent;
use crate::screen::Screen;
use crate::screen::style::DIM;
use crate::sessions::logs_in;

/// Arguments of `stretto show`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A session log, or a directory of them, of which the newest is shown; several are listed
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// Show everything at full length, and fold nothing
    #[arg(long)]
    full: bool,
    /// Show these turns only: 7, 4-20 or 4-
    #[arg(long, value_name = "FROM-TO")]
    turns: Option<Turns>,
    /// Print the episode as JSON: the events, turns and results that other commands work with
    #[arg(long, conflicts_with_all = ["full", "turns"])]
    json: bool,
    /// List the sessions, newest first, instead of showing one; so it is for several logs
    #[arg(long, conflicts_with_all = ["full", "turns", "json"])]
    list: bool,
}

/// Which turns to show.
#[derive(Clone, Copy, Debug)]
struct Turns {
    first: usize,
    last: usize,
}

impl FromStr for Turns {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "turns are numbers, as in 7, 4-20 or 4-";
        let number = |text: &str| text.parse::<usize>().map_err(|_| FORM);
        let (first, last) = match text.split_once('-') {
            None => (number(text)?, number(text)?),
            Some((first, "")) => (number(first)?, usize::MAX),
            Some((first, last)) => (number(first)?, number(last)?),
        };
        if first > last {
            return Err("the first turn comes after the last");
        }
        Ok(Self { first, last })
    }
}

/// Shows the session.
///
/// # Errors
///
/// The log cannot be read, or the screen not be written to; options for one session with
/// several logs.
pub fn run(args: &Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let [log_or_directory] = args.logs.as_slice() else {
        anyhow::ensure!(
            !args.full && !args.json && args.turns.is_none(),
            "--full, --turns and --json are for one session, and {} are named; name one",
            text::count(args.logs.len(), "log")
        );
        return list::run(&args.logs, screen);
    };
    if args.list {
        return list::run(&args.logs, screen);
    }
    let (path, of) = find(log_or_directory)?;
    let log = read_log(&path)?;
    if args.json {
        write_json(&log, screen)?;
    } else {
        let columns = screen.width();
        if let Some(of) = of {
            let directory = log_or_directory.display().to_string();
            let directory = crate::screen::safe(&directory);
            writeln!(
                screen,
                "{DIM}The newest of {} in {directory}; --list names them all.{DIM:#}\n",
                text::count(of, "session")
            )?;
        }
        let story = Story::of(&log);
        let turns = args.turns.map(|turns| (turns.first, turns.last));
        if let Some((first, _)) = turns {
            let has = story.tally.turns;
            anyhow::ensure!(
                (1..=has).contains(&first),
                "turn {first} is not in this session, which has {}",
                text::count(has, "turn")
            );
        }
        if turns.is_none() {
            summary::write(screen, columns, &log, &story)?;
        }
        let extent = Extent {
            full: args.full,
            turns,
        };
        timeline::write(screen, columns, &story, extent)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The log to show; for a directory that holds several, the newest, and how many there are.
fn find(path: &Path) -> anyhow::Result<(PathBuf, Option<usize>)> {
    if !path.is_dir() {
        return Ok((path.to_owned(), None));
    }
    // Sessions are named by their start, so the last name is the newest.
    let mut logs = logs_in(path)?;
    let count = logs.len();
    Ok((logs.pop().unwrap_or_default(), (count > 1).then_some(count)))
}

/// Writes the episode as JSON, in which nothing steers a terminal.
fn write_json(log: &Log, screen: &mut Screen) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(&episode(log))?;
    // Between tokens there are only blanks, so what is unsafe stands in a string, where an
    // escape means the same.
    for line in json.lines() {
        writeln!(screen, "{}", crate::screen::safe_json(line))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
