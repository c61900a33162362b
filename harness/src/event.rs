//! What happens while scenarios are run: all that a report is made from.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::run::{Failure, Job, Outcome};
use crate::scenario::Transport;

/// The version of the events as JSON; it grows when a member changes its meaning.
pub const EVENTS_VERSION: u32 = 1;

/// One thing that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Event {
    /// Before the first scenario.
    RunStarted {
        /// [`EVENTS_VERSION`].
        version: u32,
        /// How many runs there will be: a scenario counts once for each of its transports.
        scenarios: usize,
        /// How many go on at a time.
        jobs: usize,
    },
    /// A scenario starts.
    ScenarioStarted(About),
    /// A scenario has ended.
    ScenarioFinished(Box<Finished>),
    /// After the last scenario.
    RunFinished(Totals),
}

/// Which scenario an event is about.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// Its name, such as `passive/records-each-line`.
    pub name: String,
    /// The transport.
    #[serde(serialize_with = "word")]
    pub over: Transport,
    /// The promise, as a sentence.
    pub title: String,
    /// Its file.
    pub file: PathBuf,
}

impl About {
    /// What an event says about a run.
    pub fn of(job: Job<'_>) -> Self {
        let scenario = job.scenario;
        Self {
            name: scenario.name.clone(),
            over: job.over,
            title: scenario.title.clone(),
            file: seen_from_here(&scenario.file),
        }
    }

    /// The name, with the transport unless it is stdio.
    pub fn shown(&self) -> String {
        match self.over {
            Transport::Stdio => self.name.clone(),
            Transport::Http => format!("{} (http)", self.name),
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that the derive calls"
)]
fn word<S: Serializer>(over: &Transport, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(over.word())
}

/// How a scenario went.
#[derive(Clone, Debug, Serialize)]
pub struct Finished {
    /// Which one.
    #[serde(flatten)]
    pub about: About,
    /// Whether everything was as it must be.
    pub passed: bool,
    /// Whether it is one of the slow ones.
    pub slow: bool,
    /// How long it took.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub took: Duration,
    /// Why it failed.
    pub failures: Vec<Told>,
    /// The command that runs it again.
    pub again: String,
    /// The command that takes what happened as its snapshot, where only that differs.
    pub accept: Option<String>,
    /// Where what it left behind was kept.
    pub kept: Option<PathBuf>,
    /// What happened, as text.
    #[serde(skip)]
    pub transcript: String,
    /// What the proxy and its server wrote to stderr.
    #[serde(skip)]
    pub stderr: String,
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((time.as_secs_f64() * 1_000.0).round() / 1_000.0)
}

/// A failure as a report tells it.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    /// `step`, `promise`, `snapshot` or `start`.
    pub kind: &'static str,
    /// The file that the failure is about: the scenario's or the snapshot's.
    pub file: PathBuf,
    /// The line in the scenario's file, for a step.
    pub line: Option<usize>,
    /// That line.
    pub source: Option<String>,
    /// What must be.
    pub expected: Option<String>,
    /// What was; for a snapshot, what differs.
    pub came: String,
}

impl Finished {
    /// What an outcome says to a report; `rerun` is how the command that runs one again begins.
    pub fn of(job: Job<'_>, outcome: Outcome, rerun: &str) -> Self {
        let scenario = job.scenario;
        let tell = |failure: &Failure| {
            let file = seen_from_here(&scenario.file);
            match failure {
                Failure::Step {
                    line,
                    expected,
                    came,
                } => Told {
                    kind: "step",
                    file,
                    line: Some(*line),
                    source: Some(scenario.line(*line).to_owned()),
                    expected: Some(expected.clone()),
                    came: came.clone(),
                },
                Failure::Promise { name, what } => Told {
                    kind: "promise",
                    file,
                    line: None,
                    source: None,
                    expected: Some(format!("the promise `{name}` to hold")),
                    came: what.clone(),
                },
                Failure::Snapshot { file, what } => Told {
                    kind: "snapshot",
                    file: seen_from_here(file),
                    line: None,
                    source: None,
                    expected: None,
                    came: what.clone(),
                },
                Failure::Start { what } => Told {
                    kind: "start",
                    file,
                    line: None,
                    source: None,
                    expected: None,
                    came: what.clone(),
                },
            }
        };
        let again = format!("{rerun}{} --over {}", scenario.name, job.over.word());
        let differs = |failure: &Failure| matches!(failure, Failure::Snapshot { .. });
        let only_differs = !outcome.failures.is_empty() && outcome.failures.iter().all(differs);
        Self {
            about: About::of(job),
            passed: outcome.failures.is_empty(),
            slow: scenario.slow,
            took: outcome.took,
            failures: outcome.failures.iter().map(tell).collect(),
            accept: only_differs.then(|| format!("{again} --accept")),
            again,
            kept: outcome.kept.as_deref().map(seen_from_here),
            transcript: outcome.transcript,
            stderr: outcome.stderr,
        }
    }
}

/// A path as a person would type it: from the current folder, when it is below it.
fn seen_from_here(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).to_owned()
}

/// How the whole run went.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Totals {
    /// How many passed.
    pub passed: usize,
    /// How many failed.
    pub failed: usize,
    /// How many of those that ran are slow ones.
    pub slow: usize,
    /// How many were asked for and not run: slow ones, and those after the first failure.
    pub not_run: usize,
    /// How many of those were left out for being slow.
    pub too_slow: usize,
    /// Snapshots that no scenario asks for; they fail the run.
    pub unreferenced: Vec<PathBuf>,
    /// How long it took.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub took: Duration,
}
