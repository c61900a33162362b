//! `stretto learn`: a flow from recorded sessions.

mod report;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use stretto_flow::{
    CrossValidation, Decider, LearnOptions, PER_CALL, Session, SiteThresholds, Stage,
    cross_validate,
};
use stretto_trace::ToolManifest;

use crate::arbiter::ArbiterArgs;
use crate::bar;
use crate::files::{check_places, write_whole};
use crate::screen::{Screen, Voice};
use crate::sessions::{Known, Recorded, Results};

/// Arguments of `stretto learn`.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("scoring").multiple(true))]
pub struct Args {
    /// Learn from the session logs in this folder
    #[arg(long, value_name = "DIR")]
    sessions: PathBuf,
    /// The flow's domain; by default the one that the logs name
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
    #[command(flatten)]
    arbiter: ArbiterArgs,
    /// Write the flow to this file
    #[arg(long, value_name = "FILE", required_unless_present = "cross_validate")]
    out: Option<PathBuf>,
    #[command(flatten)]
    known: Known,
    /// The tools, in place of those that the logs list: a JSON object with `domain`, `tools`
    /// (read, write or generic, by name) and, if you like, `docs`
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Look for fields of results that tell situations apart
    #[arg(long)]
    features: bool,
    /// Bind arguments that were always passed with one value
    #[arg(long)]
    constants: bool,
    /// Learn from sessions that did not succeed, too
    #[arg(long)]
    every_session: bool,
    /// Tell situations apart by this many of the latest steps
    #[arg(
        long,
        value_name = "STEPS",
        default_value = "2",
        value_parser = clap::value_parser!(u8).range(1..=8)
    )]
    history: u8,
    /// Give each site a threshold of its own: the one at which, in sessions left out, used
    /// lookups less this cost for each detour came to most
    #[arg(long, value_name = "COST", value_parser = cost, group = "scoring")]
    detour_cost: Option<f64>,
    /// Add a surprise gate that this share of the sessions stays below
    #[arg(long, value_name = "SHARE", value_parser = share)]
    surprise: Option<f64>,
    /// Score flows that are learned without one of K folds of tasks on the tasks left out
    #[arg(
        long,
        value_name = "K",
        group = "scoring",
        num_args = 0..=1,
        default_missing_value = "5",
        value_parser = clap::value_parser!(u64).range(2..=1000)
    )]
    cross_validate: Option<u64>,
    /// Thresholds to score at
    #[arg(
        long = "threshold",
        value_name = "P",
        value_delimiter = ',',
        default_values_t = [0.3, 0.5, 0.7],
        requires = "cross_validate"
    )]
    thresholds: Vec<f64>,
    /// Whose probabilities decide when scoring, and in choosing thresholds: habit or reach
    #[arg(long, value_name = "DECIDER", value_parser = decider, requires = "scoring")]
    decider: Option<Decider>,
    /// Also write the scores to this file as JSON
    #[arg(long, value_name = "FILE", requires = "cross_validate")]
    json: Option<PathBuf>,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text
        .parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1".to_owned())
}

fn cost(text: &str) -> Result<f64, String> {
    let cost = text.parse().ok();
    let cost = cost.filter(|cost: &f64| cost.is_finite() && *cost >= 0.0);
    cost.ok_or_else(|| "a cost is a number from 0 on".to_owned())
}

pub(crate) fn decider(name: &str) -> Result<Decider, String> {
    match name.parse()? {
        Decider::Arbiter => {
            Err("a flow is scored here without an arbiter; habit or reach".to_owned())
        }
        decider => Ok(decider),
    }
}

/// Learns a flow, or scores such flows, or both.
///
/// # Errors
///
/// A file that cannot be read or written, or holds something else than it should; nothing to
/// learn from.
pub fn run(args: &Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let mut voice = Voice::stderr();
    let options = LearnOptions {
        features: args.features,
        constants: args.constants,
        surprise: args.surprise,
        order: args.history.into(),
        every_session: args.every_session,
        site_thresholds: args.detour_cost.map(|detour_cost| SiteThresholds {
            detour_cost,
            // Every flow that is learned has the counts of reach, and is served by them.
            decider: args.decider.unwrap_or(Decider::Reach),
        }),
        now_unix_ms: now_unix_ms(),
        ..LearnOptions::default()
    };
    check_places([&args.out, &args.json])?;
    args.arbiter.check()?;
    // Scoring and fitting play sessions again, results and all.
    let plays = args.cross_validate.is_some() || args.arbiter.is_fitted();
    let results = if plays || options.needs_results() {
        Results::InMemory
    } else {
        Results::OnDisk
    };
    let recorded = recorded(args, results, &mut voice)?;
    let sessions: Vec<&Session> = recorded.sessions.iter().collect();
    let bar = bar::new();
    let mut progress = |stage: Stage, done: usize, all: usize| {
        bar::show(&bar, stage.phrase(), done, all);
    };
    if let Some(folds) = args.cross_validate {
        let how = CrossValidation {
            folds,
            decider: args.decider,
            thresholds: args.thresholds.clone(),
            per_call: PER_CALL,
        };
        let scores = cross_validate(
            &sessions,
            &recorded.surroundings,
            &options,
            &how,
            &mut progress,
        )?;
        bar.finish_and_clear();
        let report = report::Report::new(&how, &options, &sessions, &scores);
        if let Some(file) = &args.json {
            let mut json = serde_json::to_vec(&report)?;
            json.push(b'\n');
            write_whole(file, &json)?;
        }
        screen.write_all(report.markdown().as_bytes())?;
    }
    if let Some(file) = &args.out {
        let flow =
            args.arbiter
                .learn(&sessions, &recorded.surroundings, &options, &mut progress)?;
        bar.finish_and_clear();
        write_whole(file, flow.to_text().as_bytes())?;
        let (taught, all) = (flow.provenance.habit_episodes, sessions.len());
        let from = if args.arbiter.holds_out() {
            format!("{taught} of {all}")
        } else {
            learned_from(&options, taught, all)
        };
        voice.say(&format!(
            "learned from {from} sessions, with {} tools of which {} only read; wrote {}",
            flow.manifest.tools.len(),
            flow.sites.reads.len(),
            file.display()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Which sessions teach, as the beginning of a phrase that ends in "sessions".
fn learned_from(options: &LearnOptions, taught: u64, all: usize) -> String {
    if options.every_session {
        format!("all {taught}")
    } else {
        format!("the {taught} successful ones of {all}")
    }
}

/// The sessions, with everything that the command line says about them.
fn recorded(args: &Args, results: Results, voice: &mut Voice) -> anyhow::Result<Recorded> {
    let manifest = args.manifest.as_deref().map(read_manifest).transpose()?;
    let mut recorded = args.known.read(&args.sessions, results, voice)?;
    let named = manifest.as_ref().map(|manifest| manifest.domain.clone());
    if let Some(manifest) = manifest {
        recorded.surroundings.manifest = manifest;
    }
    recorded.surroundings.manifest.domain = match (&args.domain, named) {
        (Some(domain), _) => domain.clone(),
        (None, Some(domain)) => domain,
        (None, None) => only_domain(&recorded)?,
    };
    Ok(recorded)
}

fn only_domain(recorded: &Recorded) -> anyhow::Result<String> {
    let mut domains = recorded.domains.iter();
    match (domains.next(), domains.next()) {
        (Some(domain), None) => Ok(domain.clone()),
        (None, _) => anyhow::bail!("no session names a domain; name the flow's with --domain"),
        (Some(one), Some(other)) => anyhow::bail!(
            "the sessions are of several domains, such as {one} and {other}; name the flow's \
             with --domain"
        ),
    }
}

fn read_manifest(path: &Path) -> anyhow::Result<ToolManifest> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is no manifest of tools", path.display()))
}

pub(crate) fn now_unix_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
