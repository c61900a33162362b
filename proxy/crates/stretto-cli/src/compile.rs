//! `stretto compile`: a flow from the results of τ²-bench.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::process::ExitCode;

use stretto_flow::{LearnOptions, Session, Stage, Surroundings};

use crate::arbiter::ArbiterArgs;
use crate::bar;
use crate::checkout::{self, Checkout, Source};
use crate::files::{check_place, write_whole};
use crate::learn::now_unix_ms;
use crate::screen::Voice;

/// Arguments of `stretto compile`.
#[derive(Debug, clap::Args)]
#[group(id = "compile", skip)]
pub struct Args {
    /// A checkout of τ²-bench: its published results, its split of tasks, its tools
    #[arg(long, value_name = "DIR")]
    tau2: PathBuf,
    /// The domain, such as retail
    #[arg(long, value_name = "NAME")]
    domain: String,
    /// Another results file; may be repeated
    #[arg(long = "source", value_name = "[LABEL=]FILE")]
    sources: Vec<Source>,
    #[command(flatten)]
    arbiter: ArbiterArgs,
    /// Write the flow to this file
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Learns a flow from the successful sessions with the domain's training tasks.
///
/// # Errors
///
/// A file that cannot be read or written, or holds something else than it should; nothing to
/// learn from.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    check_place(&args.out)?;
    args.arbiter.check()?;
    let mut voice = Voice::stderr();
    let checkout = Checkout(&args.tau2);
    let manifest = checkout.manifest(&args.domain)?;
    let split = checkout.split(&args.domain)?;
    let mut sources = checkout.published()?;
    sources.extend(args.sources.iter().cloned());
    let results = checkout::read(&sources, |domain| domain == args.domain)?;
    let sessions: Vec<Session> = results
        .into_iter()
        .flat_map(|results| results.episodes)
        .filter(|episode| split.train.contains(&episode.task_id))
        .map(|episode| Session {
            episode,
            // All calls of a turn were made at once.
            answered_before: HashMap::new(),
            contents_in: None,
        })
        .collect();
    anyhow::ensure!(
        !sessions.is_empty(),
        "none of the {} results files has sessions with training tasks of {}",
        sources.len(),
        args.domain
    );
    let sessions: Vec<&Session> = sessions.iter().collect();
    let surroundings = Surroundings {
        manifest,
        contracts: BTreeMap::new(),
    };
    let options = LearnOptions {
        now_unix_ms: now_unix_ms(),
        ..LearnOptions::default()
    };
    let bar = bar::new();
    let mut progress = |stage: Stage, done: usize, all: usize| {
        bar::show(&bar, stage.phrase(), done, all);
    };
    let flow = args
        .arbiter
        .learn(&sessions, &surroundings, &options, &mut progress)?;
    bar.finish_and_clear();
    write_whole(&args.out, flow.to_text().as_bytes())?;
    voice.say(&format!(
        "learned from {} successful sessions of {} with training tasks, in {} results files; wrote {}",
        flow.provenance.habit_episodes,
        sessions.len(),
        sources.len(),
        args.out.display()
    ));
    Ok(ExitCode::SUCCESS)
}
