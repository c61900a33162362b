//! `stretto-harness simulate` and `soak`: sessions drawn from a seed.

use std::fs;
use std::io::IsTerminal as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;

use crate::bins::{self, Named};
use crate::runner;
use crate::simulate::{Arm, Lab};
use crate::soak::Soak;

use super::{Exit, Misuse, ProgramArgs, checkout, options, print, say};

#[derive(Debug, Args)]
pub(super) struct SimulateArgs {
    /// The arms, which are compared with `off`; all but `explore` where none is named. `arbiter` and `judge` ask a model of
    /// the lab's own.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Arm::USUAL)]
    arms: Vec<Arm>,
    /// How many sessions each arm plays.
    #[arg(long, value_name = "N", default_value = "60")]
    sessions: NonZeroUsize,
    /// How many sessions, of other seeds, the flow is learned from.
    #[arg(long, value_name = "N", default_value = "60")]
    lessons: NonZeroUsize,
    /// The seed of customers, agents, shops and lessons.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many sessions at a time. They mostly wait.
    #[arg(short, long, value_name = "N", default_value = "40")]
    jobs: NonZeroUsize,
    /// Write the report as JSON to FILE; `-` is stdout, in place of the table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the report as a picture to FILE.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Keep the logs, those of each arm in a folder of its name, and the flow in DIR, which must be empty or not there.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// The stretto-proxy to use. Without it: the checkout's, else the one beside this program or on the path.
    #[arg(long, value_name = "FILE")]
    proxy: Option<PathBuf>,
    /// In a checkout, use the proxy that is there.
    #[arg(long)]
    no_build: bool,
}

#[derive(Debug, Args)]
pub(super) struct SoakArgs {
    /// How many sessions.
    #[arg(long, value_name = "N", default_value = "200")]
    sessions: NonZeroUsize,
    /// The seed of all of them.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many at a time. Without it: three for each processor.
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Write the sessions that fail to this folder, as scenarios.
    #[arg(long, value_name = "DIR", default_value = "soaked")]
    failed: PathBuf,
    #[command(flatten)]
    programs: ProgramArgs,
}

pub(super) fn simulate(args: &SimulateArgs) -> anyhow::Result<Exit> {
    let named = Named {
        proxy: args.proxy.clone(),
        demo: args.proxy.clone(),
        no_build: args.no_build,
    };
    let programs = bins::find(&named, checkout().as_deref())?;
    let scratch;
    let folder = if let Some(keep) = &args.keep {
        if fs::read_dir(keep).is_ok_and(|mut entries| entries.next().is_some()) {
            bail!(Misuse(format!(
                "{} is not empty; name another folder for the logs",
                keep.display()
            )));
        }
        std::path::absolute(keep).with_context(|| format!("finding {}", keep.display()))?
    } else {
        scratch = tempfile::tempdir().context("making a folder for the logs")?;
        scratch.path().to_owned()
    };
    let lab = Lab {
        proxy: programs.proxy,
        shop: std::env::current_exe().context("finding this program, which serves the shop")?,
        arms: args.arms.clone(),
        sessions: args.sessions,
        lessons: args.lessons,
        seed: args.seed,
        jobs: args.jobs,
    };
    let bar = session_bar();
    let report = lab.run(&folder, &|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let report = report?;
    if let Some(file) = &args.plot {
        fs::write(file, report.svg()).with_context(|| format!("writing {}", file.display()))?;
    }
    let json = serde_json::to_string_pretty(&report).context("writing the report as JSON")? + "\n";
    match &args.json {
        Some(file) if file.as_os_str() == "-" => print(&json)?,
        Some(file) => {
            fs::write(file, json).with_context(|| format!("writing {}", file.display()))?;
            print(&report.table())?;
        }
        None => print(&report.table())?,
    }
    Ok(Exit::Passed)
}

pub(super) fn soak(args: &SoakArgs) -> anyhow::Result<Exit> {
    let soak = Soak {
        options: options(&args.programs, Path::new("scenarios"))?,
        seed: args.seed,
        sessions: args.sessions,
        jobs: args.jobs.unwrap_or_else(runner::usual_jobs),
        failed: args.failed.clone(),
    };
    let bar = session_bar();
    bar.set_length(args.sessions.get() as u64);
    let broken = soak.run(&|done| bar.set_position(done as u64));
    bar.finish_and_clear();
    let broken = broken?;
    for broken in &broken {
        let (session, scenario) = (broken.session, broken.scenario.display());
        say(&format!(
            "session {session}: {}\n  play it again: stretto-harness run {scenario}",
            broken.why.join("; ")
        ));
    }
    print(&format!(
        "{} sessions of seed {}: {} broke a promise\n",
        args.sessions,
        args.seed,
        broken.len()
    ))?;
    Ok(if broken.is_empty() {
        Exit::Passed
    } else {
        Exit::Failed
    })
}

/// A bar over sessions, where somebody sees it.
pub(super) fn session_bar() -> indicatif::ProgressBar {
    let bar = if std::io::stderr().is_terminal() {
        indicatif::ProgressBar::new(0)
    } else {
        indicatif::ProgressBar::hidden()
    };
    if let Ok(style) = indicatif::ProgressStyle::with_template("[{bar:22}] {pos}/{len} sessions") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}
