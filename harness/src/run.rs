//! One scenario, from an empty folder to an [`Outcome`].

mod player;
mod stage;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::bins::{self, Programs};
use crate::promises;
use crate::record::Record;
use crate::scenario::{Scenario, Transport, script};
use crate::transcript;

use self::player::Player;
use self::stage::Stage;

/// How a scenario is run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The programs to play with.
    pub programs: Programs,
    /// The folder of all scenarios.
    pub scenarios: PathBuf,
    /// Where a run's folder is kept when it fails, or always; nowhere if nothing is given.
    pub keep: Option<PathBuf>,
    /// Whether the folders of passed runs are kept, too.
    pub keep_passed: bool,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was not as it must be; empty for a run that passed.
    pub failures: Vec<Failure>,
    /// What happened, as text.
    pub transcript: String,
    /// What the proxy and its server wrote to stderr.
    pub stderr: String,
    /// How long it took.
    pub took: Duration,
    /// Where the run's folder was kept.
    pub kept: Option<PathBuf>,
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A step did not go as it says.
    Step {
        /// The step's line, counted from 1.
        line: usize,
        /// What the step expects.
        expected: String,
        /// What came instead.
        came: String,
    },
    /// Something that must hold in every run did not.
    Promise {
        /// The promise.
        name: &'static str,
        /// What broke it.
        what: String,
    },
    /// The transcript is not what the snapshot holds.
    Snapshot {
        /// The snapshot.
        file: PathBuf,
        /// What differs, line by line; or what is wrong with the snapshot.
        what: String,
    },
    /// The run could not start.
    Start {
        /// What is missing or could not be done.
        what: String,
    },
}

impl Failure {
    /// The failure in one line.
    pub fn headline(&self) -> String {
        match self {
            Self::Step { line, expected, .. } => format!("line {line}: expected {expected}"),
            Self::Promise { name, what } => format!(
                "the promise `{name}`: {}",
                what.lines().next().unwrap_or_default()
            ),
            Self::Snapshot { file, .. } => format!("the snapshot {}", file.display()),
            Self::Start { what } => what.clone(),
        }
    }
}

/// A scenario and the transport to run it over.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The transport.
    pub over: Transport,
}

impl Job<'_> {
    /// The name under which the run is reported: the scenario's, and the transport unless it is stdio.
    pub fn name(&self) -> String {
        match self.over {
            Transport::Stdio => self.scenario.name.clone(),
            Transport::Http => format!("{} (http)", self.scenario.name),
        }
    }
}

/// Runs a scenario over one transport.
///
/// All processes of the run have ended when this returns.
pub fn run(job: Job<'_>, options: &RunOptions) -> Outcome {
    let began = Instant::now();
    let mut outcome = match play(job, options) {
        Ok(outcome) => outcome,
        Err(what) => Outcome {
            failures: vec![Failure::Start { what }],
            transcript: String::new(),
            stderr: String::new(),
            took: Duration::ZERO,
            kept: None,
        },
    };
    outcome.took = began.elapsed();
    outcome
}

fn play(job: Job<'_>, options: &RunOptions) -> Result<Outcome, String> {
    if let Some(missing) = job
        .scenario
        .needs
        .iter()
        .find(|program| !bins::is_there(program))
    {
        return Err(format!(
            "it needs the program {missing}, which is not on the path"
        ));
    }
    let stage = Stage::set(job, options)?;
    let mut failures = Vec::new();
    let played = match Player::start(job.scenario, &stage) {
        Ok(mut player) => {
            failures.extend(player.play().err());
            player.end()
        }
        Err(what) => return Err(what),
    };
    let record = stage.collect(job, played);
    if let Some((line, came)) = script::complaint(job.scenario, &record.stderr) {
        // Whatever else went wrong came of this.
        let expected = "a script that the demo server can read".to_owned();
        failures = vec![Failure::Step {
            line,
            expected,
            came,
        }];
    }
    if failures.is_empty() {
        failures.extend(promises::check(job.scenario, &record));
    }
    let transcript = transcript::of(job.scenario, &record);
    let kept = keep(
        job,
        options,
        &stage,
        &record,
        &transcript,
        failures.is_empty(),
    );
    Ok(Outcome {
        failures,
        transcript,
        stderr: record.stderr,
        took: Duration::ZERO,
        kept,
    })
}

/// Copies what a person may want to look at to where it stays.
fn keep(
    job: Job<'_>,
    options: &RunOptions,
    stage: &Stage,
    record: &Record,
    transcript: &str,
    passed: bool,
) -> Option<PathBuf> {
    let keep = options
        .keep
        .as_ref()
        .filter(|_| !passed || options.keep_passed)?;
    let suffix = if job.over == Transport::Http {
        "@http"
    } else {
        ""
    };
    let folder = keep.join(format!("{}{suffix}", job.scenario.name));
    let copied = copy_folder(stage.root(), &folder)
        .and_then(|()| fs::write(folder.join("transcript.txt"), transcript))
        .and_then(|()| fs::write(folder.join("stderr.txt"), &record.stderr));
    copied.is_ok().then_some(folder)
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry?;
        let target = to.join(entry.path().strip_prefix(from).unwrap_or(entry.path()));
        if entry.file_type().is_dir() {
            fs::create_dir_all(&target)?;
        } else if entry.file_type().is_file() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
