//! `stretto promote`: let a flow act where its lookups were the agent's own.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use stretto_flow::file::{Bar, Promoted};
use stretto_flow::{Decider, Flow, Score, Session, promote};

use crate::bar;
use crate::deciding::{Deciding, say_unanswered};
use crate::files::{check_place, write_whole};
use crate::screen::{Screen, Voice, safe};
use crate::sessions::{Known, Results};

/// Arguments of `stretto promote`.
#[derive(Debug, clap::Args)]
#[group(id = "promote", skip)]
pub struct Args {
    /// The flow
    #[arg(long, value_name = "FILE")]
    flow: PathBuf,
    /// Score it on the session logs in this folder
    #[arg(long, value_name = "DIR")]
    sessions: PathBuf,
    /// Write the promoted flow to this file
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    known: Known,
    /// Whose probabilities decide: arbiter, habit or reach; by default as the flow is served
    #[arg(long, value_name = "DECIDER")]
    decider: Option<Decider>,
    #[command(flatten)]
    deciding: Deciding,
    /// The smallest share of a site's lookups that the agent made itself
    #[arg(long, value_name = "SHARE", default_value_t = 0.7)]
    min_used: f64,
    /// The smallest lower bound of that share
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    min_lower: f64,
    /// The smallest number of distinct tasks with a lookup
    #[arg(long, value_name = "N", default_value_t = 3)]
    min_tasks: u64,
}

/// Scores every site of a flow, and writes the flow with those promoted that pass the bar.
///
/// # Errors
///
/// A file that cannot be read or written, or holds something else than it should.
pub fn run(args: &Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    check_place(&args.out)?;
    let mut voice = Voice::stderr();
    let (flow, decider) = Deciding::flow(&args.flow, args.decider, Flow::default_decider)?;
    let recorded = args
        .known
        .read(&args.sessions, Results::InMemory, &mut voice)?;
    let sessions: Vec<&Session> = recorded.sessions.iter().collect();
    let settings = args.deciding.settings(decider);
    let limits = Bar {
        threshold: args.deciding.threshold,
        min_used: args.min_used,
        min_lower: args.min_lower,
        min_tasks: args.min_tasks,
    };
    let mut asking = args.deciding.asking()?;
    let bar = bar::new();
    let mut progress = |done: usize, all: usize| bar::show(&bar, "scoring", done, all);
    let (promoted, score) = promote(
        &flow,
        &sessions,
        &settings,
        args.deciding.per_call,
        limits,
        &mut progress,
        &mut |request| asking.ask(request),
    );
    bar.finish_and_clear();
    say_unanswered(&asking, &mut voice);

    for line in report(&promoted, &score, decider, sessions.len()).lines() {
        writeln!(screen, "{}", safe(line))?;
    }
    let count = promoted.sites.values().filter(|site| site.promoted).count();
    let all = promoted.sites.len();
    let mut file = flow.file().clone();
    file.promoted = Some(promoted);
    file.set_format();
    write_whole(&args.out, file.to_text().as_bytes())?;
    voice.say(&format!(
        "{count} of {all} sites are promoted; wrote {}",
        args.out.display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn report(promoted: &Promoted, score: &Score, decider: Decider, sessions: usize) -> String {
    let Promoted { bar, sites } = promoted;
    let mut text = format!(
        "# Promotion\n\n\
         Scored on {sessions} sessions, decided by {decider} at {}. A site is promoted when the \
         agent made {} of its lookups itself, {} by the lower bound, over {} tasks or more.\n\n\
         | site | decisions | lookups | used | lower bound | tasks | promoted |\n\
         |---|---:|---:|---:|---:|---:|---|\n",
        bar.threshold, bar.min_used, bar.min_lower, bar.min_tasks
    );
    for (name, site) in sites {
        #[expect(clippy::cast_precision_loss, reason = "lookups are far below 2^53")]
        let share = match site.lookups {
            0 => String::new(),
            lookups => format!(" ({:.0}%)", 100.0 * site.used as f64 / lookups as f64),
        };
        let is_promoted = if site.promoted { "yes" } else { "no" };
        writeln!(
            text,
            "| `{name}` | {} | {} | {}{share} | {:.2} | {} | {is_promoted} |",
            site.decisions, site.lookups, site.used, site.lower, site.tasks
        )
        .expect("memory takes every write");
    }
    if score.unanswered > 0 {
        writeln!(text, "\n{} decisions could not be taken.", score.unanswered)
            .expect("memory takes every write");
    }
    text
}
