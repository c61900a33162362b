//! Arbiters: fitted to sessions, taken from elsewhere, and exported.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use serde::Deserialize;
use serde::de::IgnoredAny;
use stretto_flow::{
    ArbiterFile, Fitting, FlowFile, LearnOptions, NoArbiter, Session, Stage, Surroundings, learn,
};

use crate::files::{check_places, write_whole};
use crate::oracle::{self, Answerer, CacheArgs, Who, dollars};

/// What `stretto learn` is told about the flow's arbiter.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct ArbiterArgs {
    /// Learn habit, reach and bindings, and no arbiter
    #[arg(long, conflicts_with = "arbiter_from")]
    habit_only: bool,
    /// Fit no arbiter, but take the one in this file: an arbiter, or a flow that has one
    #[arg(long, value_name = "FILE")]
    arbiter_from: Option<PathBuf>,
    /// Who answers the questions that an arbiter is fitted to
    #[arg(long, value_name = "WHO", default_value = "jev")]
    oracle: Who,
    #[command(flatten)]
    cache: CacheArgs,
    /// Refuse to start when asking may cost more than this
    #[arg(long, value_name = "DOLLARS", default_value = "1", value_parser = dollars)]
    oracle_budget: f64,
    /// Ask this many questions at most; a sample that stays the same
    #[arg(long, value_name = "N")]
    oracle_limit: Option<usize>,
    /// Write every request with its key to this file; it holds what was said in the sessions
    #[arg(long, value_name = "FILE")]
    oracle_dump: Option<PathBuf>,
    /// Once the arbiter is fitted, learn all else again from every session
    #[arg(long, conflicts_with_all = ["habit_only", "arbiter_from"])]
    refit_habit: bool,
}

impl ArbiterArgs {
    /// Whether an arbiter is fitted to the sessions.
    pub fn is_fitted(&self) -> bool {
        !self.habit_only && self.arbiter_from.is_none()
    }

    /// Whether some sessions are held out of everything else that is learned, for the arbiter.
    pub fn holds_out(&self) -> bool {
        self.is_fitted() && !self.refit_habit
    }

    /// Makes sure that what the command line asks for can be had, before any session is read: the
    /// arbiter of another file, somebody who answers, a place for the questions.
    ///
    /// # Errors
    ///
    /// One of them cannot.
    pub fn check(&self) -> anyhow::Result<()> {
        check_places([&self.oracle_dump])?;
        if let Some(file) = &self.arbiter_from {
            Source::read(file)?;
        } else if self.is_fitted() {
            Answerer::new(self.oracle, self.cache.cache())?;
        }
        Ok(())
    }

    /// Learns a flow with the arbiter that the command line asks for, if any.
    ///
    /// # Errors
    ///
    /// There is nothing to learn from; the file with the arbiter cannot be used; asking would
    /// cost too much, or most questions get no answer.
    pub fn learn(
        &self,
        sessions: &[&Session],
        surroundings: &Surroundings,
        options: &LearnOptions,
        progress: &mut (dyn FnMut(Stage, usize, usize) + Send),
    ) -> anyhow::Result<FlowFile> {
        if self.habit_only {
            return Ok(learn(sessions, surroundings, options, progress)?);
        }
        if let Some(file) = &self.arbiter_from {
            let source = Source::read(file)?;
            let mut flow = learn(sessions, surroundings, options, progress)?;
            source.give(&mut flow);
            return Ok(flow);
        }
        let answerer = Answerer::new(self.oracle, self.cache.cache())?;
        let model = &answerer.model;
        let fitting = Fitting::prepare(sessions, surroundings, options, model, progress)?;
        let mut requests = fitting.requests();
        if let Some(limit) = self.oracle_limit {
            requests = requests.into_iter().take(limit).collect();
        }
        if let Some(file) = &self.oracle_dump {
            oracle::dump(&requests, file)?;
        }
        answerer.check_cost(&requests, self.oracle_budget)?;
        let without = "fitting an arbiter, without which --habit-only learns";
        let asked = answerer.ask(&requests).context(without)?;
        let fitted = fitting.finish(&asked.answers).context(without)?;
        if !self.refit_habit {
            return Ok(fitted);
        }
        let mut flow = learn(sessions, surroundings, options, progress)?;
        flow.take_arbiter(&fitted);
        Ok(flow)
    }
}

/// A file with an arbiter in it.
enum Source {
    Arbiter(Box<ArbiterFile>),
    Flow(Box<FlowFile>),
}

impl Source {
    fn read(path: &Path) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct Kind {
            stretto_flow: Option<IgnoredAny>,
        }
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("reading {}", path.display()))?;
        let is_flow =
            serde_json::from_str::<Kind>(&text).is_ok_and(|kind| kind.stretto_flow.is_some());
        let name = || format!("loading {}", path.display());
        if !is_flow {
            let arbiter = ArbiterFile::parse(&text).with_context(name)?;
            return Ok(Self::Arbiter(Box::new(arbiter)));
        }
        let flow = FlowFile::parse(&text).with_context(name)?;
        if flow.folds.is_empty() {
            return Err(NoArbiter::None).with_context(name);
        }
        Ok(Self::Flow(Box::new(flow)))
    }

    fn give(&self, flow: &mut FlowFile) {
        match self {
            Self::Arbiter(arbiter) => flow.set_arbiter(arbiter),
            Self::Flow(other) => {
                flow.take_arbiter(other);
                let sources = other.provenance.sources.iter();
                let sources = sources.map(|source| format!("arbiter: {source}"));
                flow.provenance.sources.extend(sources);
            }
        }
    }
}

/// Arguments of `stretto export-arbiter`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct ExportArgs {
    /// A flow with an arbiter
    #[arg(value_name = "FLOW")]
    flow: PathBuf,
    /// Write the arbiter to this file
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Writes a flow's arbiter to a file of its own, for other flows to take.
///
/// # Errors
///
/// A file cannot be read or written, or the flow has no arbiter that is the same for all tasks.
pub fn run_export(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let flow = FlowFile::load(&args.flow)?;
    let arbiter = flow.arbiter();
    let arbiter = arbiter.with_context(|| format!("exporting from {}", args.flow.display()))?;
    write_whole(&args.out, arbiter.to_text().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
