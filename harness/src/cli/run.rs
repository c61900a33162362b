//! `stretto-harness run`: many scenarios, with their reports.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;

use crate::collection::Collection;
use crate::event::Event;
use crate::process;
use crate::report::{Human, JUnit, Json, Verbosity};
use crate::runner::{self, Plan, run_all};
use crate::scenario::Transport;
use crate::snapshot::Update;

use super::{Exit, NoMatch, Over, ProgramArgs, WhichArgs, collect, options, usual_root};

#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(super) struct RunArgs {
    #[command(flatten)]
    which: WhichArgs,
    #[command(flatten)]
    programs: ProgramArgs,
    /// Only over this transport.
    #[arg(long, value_enum)]
    over: Option<Over>,
    /// How many at a time. Without it: three for each processor, since most of a scenario is waiting.
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Run each so often; the transcripts must be the same.
    #[arg(long, value_name = "N", default_value = "1")]
    repeat: NonZeroUsize,
    /// Run slow ones, too.
    #[arg(long)]
    slow: bool,
    /// Start no more after the first failure.
    #[arg(long)]
    fail_fast: bool,
    /// Take what happened as the snapshot.
    #[arg(long)]
    accept: bool,
    /// Write a `JUnit` file.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write events to stdout, one JSON object per line.
    #[arg(long)]
    json: bool,
    /// Say only what failed, and the summary.
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Show the transcripts of failed ones.
    #[arg(short, long)]
    verbose: bool,
}

pub(super) fn run(args: &RunArgs) -> anyhow::Result<Exit> {
    let (collection, mut choice) = collect(&args.which)?;
    choice.over = args.over.map(Transport::from);
    let jobs = collection.jobs(&choice);
    if jobs.is_empty() {
        bail!(NoMatch(args.which.which.clone()));
    }
    let is_all = choice.filters.is_empty() && choice.paths.is_empty();
    let plan = Plan {
        options: options(&args.programs, &collection.root)?,
        jobs: args.jobs.unwrap_or_else(runner::usual_jobs),
        repeat: args.repeat,
        slow: args.slow,
        fail_fast: args.fail_fast,
        update: if args.accept {
            Update::Accept
        } else {
            Update::from_environment()
        },
        rerun: rerun(&collection),
        unreferenced: is_all,
    };
    let verbosity = match (args.quiet, args.verbose) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
        _ => Verbosity::Usual,
    };
    let mut human = Human::new(verbosity);
    let mut json = args.json.then(|| Json::new(std::io::stdout()));
    let mut junit = JUnit::default();
    let mut broken: Option<std::io::Error> = None;
    let totals = run_all(&collection, &jobs, &plan, |event: &Event| {
        junit.event(event);
        let told = human
            .event(event)
            .and_then(|()| json.as_mut().map_or(Ok(()), |json| json.event(event)));
        if let Err(error) = told {
            broken.get_or_insert(error);
        }
    });
    if let Some(file) = &args.junit {
        junit
            .write(file)
            .with_context(|| format!("writing {}", file.display()))?;
    }
    if let Some(error) = broken.filter(|error| error.kind() != std::io::ErrorKind::BrokenPipe) {
        return Err(error).context("writing the report");
    }
    if process::is_stopped() {
        bail!("stopped by a signal; everything that it had started has been ended");
    }
    let is_fine = totals.failed == 0 && totals.unreferenced.is_empty();
    Ok(if is_fine { Exit::Passed } else { Exit::Failed })
}

/// How the command that runs one again begins: outside a checkout it names the folder.
pub(super) fn rerun(collection: &Collection) -> String {
    let is_usual = usual_root().is_ok_and(|root| root == collection.root);
    if is_usual {
        return "stretto-harness run ".to_owned();
    }
    format!(
        "stretto-harness run --scenarios {} ",
        collection.root.display()
    )
}
