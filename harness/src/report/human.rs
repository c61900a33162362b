//! The report on a terminal, or in the log of a build.

use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};

use crate::event::{Event, Finished, Told, Totals};
use crate::text::append;

/// How much is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// Failures and the summary.
    Quiet,
    /// A line for each scenario, failures whole.
    #[default]
    Usual,
    /// Transcripts of failed ones as well.
    Verbose,
}

/// More failures than this are shown again before the summary.
const MANY: usize = 10;

/// The longest text of a failure that is shown whole, in lines.
const MOST_LINES: usize = 60;

/// The longest line that is shown whole, in characters; what was kept has all of it.
const WIDEST: usize = 300;

/// Writes for a person, to stderr, with a bar where that is a terminal.
#[derive(Debug)]
pub struct Human {
    verbosity: Verbosity,
    bar: ProgressBar,
    failed: Vec<Finished>,
    total: usize,
}

const PASS: Style = AnsiColor::Green.on_default().bold();
const FAIL: Style = AnsiColor::Red.on_default().bold();
const HEAD: Style = AnsiColor::Cyan.on_default();
const DIM: Style = Style::new().dimmed();

impl Human {
    /// A report that says so much.
    pub fn new(verbosity: Verbosity) -> Self {
        let bar = if io::stderr().is_terminal() {
            ProgressBar::new(0)
        } else {
            ProgressBar::hidden()
        };
        let style = ProgressStyle::with_template("[{bar:22}] {pos}/{len}  {msg}");
        bar.set_style(
            style
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("=> "),
        );
        Self {
            verbosity,
            bar,
            failed: Vec::new(),
            total: 0,
        }
    }

    /// Tells an event.
    ///
    /// # Errors
    ///
    /// When stderr cannot be written.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::RunStarted {
                scenarios, jobs, ..
            } => {
                self.total = *scenarios;
                self.bar.set_length(*scenarios as u64);
                if self.verbosity == Verbosity::Quiet {
                    return Ok(());
                }
                let (word, at) = (plural(*scenarios), jobs.min(scenarios));
                self.say(&format!(
                    "{:>12} {scenarios} {word}, {at} at a time\n",
                    "Running"
                ))
            }
            Event::ScenarioStarted(about) => {
                self.bar.set_message(about.shown());
                Ok(())
            }
            Event::ScenarioFinished(finished) => {
                self.bar.inc(1);
                self.finished(finished)
            }
            Event::RunFinished(totals) => {
                self.bar.finish_and_clear();
                if self.failed.len() > MANY {
                    let list: String = self.failed.iter().map(verdict).collect();
                    self.say(&list)?;
                }
                self.say(&summary(self.total, totals))
            }
        }
    }

    fn finished(&mut self, finished: &Finished) -> io::Result<()> {
        if finished.passed {
            return if self.verbosity == Verbosity::Quiet {
                Ok(())
            } else {
                self.say(&verdict(finished))
            };
        }
        self.failed.push(finished.clone());
        let mut text = verdict(finished);
        text.push_str(&why(finished));
        if self.verbosity == Verbosity::Verbose && !finished.transcript.is_empty() {
            text.push_str(&indented("  transcript", &finished.transcript));
        }
        text.push('\n');
        self.say(&text)
    }

    fn say(&self, text: &str) -> io::Result<()> {
        self.bar.suspend(|| {
            let mut stderr = anstream::stderr().lock();
            stderr.write_all(text.as_bytes())?;
            stderr.flush()
        })
    }
}

/// Why a scenario failed, without colours.
pub fn plain(finished: &Finished) -> String {
    anstream::adapter::strip_str(&why(finished)).to_string()
}

fn why(finished: &Finished) -> String {
    let mut text = String::new();
    for failure in &finished.failures {
        text.push('\n');
        text.push_str(&told(failure));
    }
    if let Some(kept) = &finished.kept {
        append(
            &mut text,
            format_args!(
                "  {DIM}kept:{DIM:#}  {}   (log, transcript, stderr)\n",
                kept.display()
            ),
        );
    }
    append(
        &mut text,
        format_args!("  {DIM}again:{DIM:#} {}\n", finished.again),
    );
    if let Some(accept) = &finished.accept {
        append(
            &mut text,
            format_args!("  {DIM}if it is right:{DIM:#} {accept}\n"),
        );
    }
    text
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "scenario" } else { "scenarios" }
}

fn verdict(finished: &Finished) -> String {
    let (style, word) = if finished.passed {
        (PASS, "PASS")
    } else {
        (FAIL, "FAIL")
    };
    format!(
        "{style}{word:>12}{style:#} [{:>7.3}s] {}\n",
        finished.took.as_secs_f64(),
        finished.about.shown()
    )
}

fn told(told: &Told) -> String {
    let place = told.line.map(|line| format!(":{line}")).unwrap_or_default();
    let mut text = format!("  {HEAD}{}{place}{HEAD:#}\n", told.file.display());
    let gutter = told.line.map_or(2, |line| line.to_string().len().max(2));
    if let (Some(line), Some(source)) = (told.line, &told.source) {
        append(
            &mut text,
            format_args!("  {DIM}{line:>gutter$} |{DIM:#}  {source}\n"),
        );
    }
    if let Some(expected) = &told.expected {
        text.push_str(&framed(gutter, "expected", expected));
        text.push_str(&framed(gutter, "it was:  ", &told.came));
    } else {
        for line in shortened(&told.came) {
            let style = match line.as_bytes().first() {
                Some(b'-') => FAIL,
                Some(b'+') => PASS,
                _ => Style::new(),
            };
            append(&mut text, format_args!("    {style}{line}{style:#}\n"));
        }
    }
    text
}

fn framed(gutter: usize, head: &str, text: &str) -> String {
    let mut framed = String::new();
    for (i, line) in shortened(text).into_iter().enumerate() {
        let head = if i == 0 { head } else { "         " };
        append(
            &mut framed,
            format_args!("  {:gutter$} {DIM}|{DIM:#} {head} {line}\n", ""),
        );
    }
    framed
}

fn shortened(text: &str) -> Vec<String> {
    let all: Vec<&str> = text.lines().collect();
    let mut lines: Vec<String> = all.iter().take(MOST_LINES).map(|line| cut(line)).collect();
    if all.len() > MOST_LINES {
        lines.push(format!("… {} more lines", all.len() - MOST_LINES));
    }
    lines
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(WIDEST) {
        Some((at, _)) => format!("{}…", line.split_at(at).0),
        None => line.to_owned(),
    }
}

fn indented(title: &str, text: &str) -> String {
    text.lines().fold(format!("{title}\n"), |mut all, line| {
        append(&mut all, format_args!("    {line}\n"));
        all
    })
}

fn summary(total: usize, totals: &Totals) -> String {
    let mut parts = Vec::new();
    let slow = if totals.slow > 0 {
        format!(" ({} slow)", totals.slow)
    } else {
        String::new()
    };
    parts.push(format!("{} passed{slow}", totals.passed));
    if totals.failed > 0 {
        parts.push(format!("{} failed", totals.failed));
    }
    if totals.too_slow > 0 {
        parts.push(format!("{} not run (slow: --slow)", totals.too_slow));
    }
    let stopped = totals.not_run - totals.too_slow;
    if stopped > 0 {
        parts.push(format!("{stopped} not run (the run was stopped)"));
    }
    let mut text = String::new();
    for file in &totals.unreferenced {
        append(
            &mut text,
            format_args!(
                "{FAIL}{:>12}{FAIL:#} {}: no scenario asks for this snapshot\n",
                "FAIL",
                file.display()
            ),
        );
    }
    let style = if totals.failed == 0 && totals.unreferenced.is_empty() {
        PASS
    } else {
        FAIL
    };
    let took = short(totals.took);
    append(
        &mut text,
        format_args!(
            "{style}{:>12}{style:#} [{took:>7}] {total} {}: {}\n",
            "Summary",
            plural(total),
            parts.join(", ")
        ),
    );
    text
}

fn short(time: Duration) -> String {
    format!("{:.1}s", time.as_secs_f64())
}
