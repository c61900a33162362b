//! `stretto-harness new`: a scenario from a recorded session.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;

use crate::collection::{Choice, Collection};
use crate::event::Finished;
use crate::import;
use crate::report::plain;
use crate::runner::{Plan, run_repeatedly};
use crate::snapshot::Update;

use super::run::rerun;
use super::{Exit, Misuse, ProgramArgs, options, say, usual_root};

#[derive(Debug, Args)]
pub(super) struct NewArgs {
    /// The name of the scenario, such as `hosts/claude-code`.
    name: String,
    /// The session log that it is made from.
    #[arg(long, value_name = "LOG")]
    from: PathBuf,
    /// The folder of all scenarios. Without it: ./scenarios or the checkout's.
    #[arg(long, value_name = "DIR")]
    scenarios: Option<PathBuf>,
    /// Only write the files.
    #[arg(long)]
    no_run: bool,
    #[command(flatten)]
    programs: ProgramArgs,
}

pub(super) fn new(args: &NewArgs) -> anyhow::Result<Exit> {
    let is_name = !args.name.is_empty()
        && args.name.split('/').all(|part| {
            !part.is_empty()
                && part
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        });
    if !is_name {
        bail!(Misuse(format!(
            "{:?} is no name for a scenario: small letters, digits and hyphens, such as hosts/my-host",
            args.name
        )));
    }
    let root = match &args.scenarios {
        Some(root) => std::path::absolute(root).unwrap_or_else(|_| root.clone()),
        None => usual_root()?,
    };
    let file = root.join(format!("{}.toml", args.name));
    let log = root.join(format!("{}.jsonl", args.name));
    let stem = args.name.rsplit('/').next().unwrap_or(&args.name);
    let is_same_log = args
        .from
        .canonicalize()
        .ok()
        .zip(log.canonicalize().ok())
        .is_some_and(|(from, to)| from == to);
    for taken in [&file, &log].into_iter().filter(|path| path.exists()) {
        if !(is_same_log && *taken == log) {
            bail!(Misuse(format!(
                "{} is there already; choose another name",
                taken.display()
            )));
        }
    }
    let text = import::scenario_of(&args.from, &format!("{stem}.jsonl"))?;
    let folder = file.parent().unwrap_or(&root);
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    if !is_same_log {
        fs::copy(&args.from, &log)
            .with_context(|| format!("copying the log to {}", log.display()))?;
    }
    fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    say(&format!("wrote {} and {}", file.display(), log.display()));
    if args.no_run {
        return Ok(Exit::Passed);
    }
    run_new(args, &root, &file)
}

/// Runs what was just written, so that it comes with its snapshot.
pub(super) fn run_new(args: &NewArgs, root: &Path, file: &Path) -> anyhow::Result<Exit> {
    let collection = Collection::read(root, None)?;
    let choice = Choice {
        paths: vec![file.to_owned()],
        ..Choice::default()
    };
    let plan = Plan {
        options: options(&args.programs, root)?,
        jobs: NonZeroUsize::MIN,
        repeat: NonZeroUsize::new(2).unwrap_or(NonZeroUsize::MIN),
        slow: true,
        fail_fast: false,
        update: Update::Accept,
        rerun: rerun(&collection),
        unreferenced: false,
    };
    let mut exit = Exit::Passed;
    for job in collection.jobs(&choice) {
        let outcome = run_repeatedly(&collection, job, &plan);
        if outcome.failures.is_empty() {
            say(&format!(
                "it passes; read its snapshot in {}",
                collection.snapshot(job).display()
            ));
        } else {
            say("it does not pass yet:");
            let finished = Finished::of(job, outcome, &plan.rerun);
            say(&plain(&finished));
            exit = Exit::Failed;
        }
    }
    Ok(exit)
}
