//! Sessions drawn from a seed, in many odd orders, each held to what must hold in every run.
//!
//! A session is drawn as the text of a scenario, and played like one but for its snapshot. So the
//! same seed draws the same sessions, and one that breaks a promise is written out as a scenario
//! that plays it again.

mod drawn;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Context as _;

pub use drawn::text;

use crate::process;
use crate::run::{Job, RunOptions, run};
use crate::scenario;

/// Many drawn sessions.
#[derive(Clone, Debug)]
pub struct Soak {
    /// How each is run.
    pub options: RunOptions,
    /// The seed of all of them.
    pub seed: u64,
    /// How many.
    pub sessions: NonZeroUsize,
    /// How many at a time.
    pub jobs: NonZeroUsize,
    /// Where those that fail are written, as scenarios.
    pub failed: PathBuf,
}

/// A session that broke a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its number under the seed.
    pub session: usize,
    /// What was not as it must be, a line for each.
    pub why: Vec<String>,
    /// The scenario that plays it again.
    pub scenario: PathBuf,
}

impl Soak {
    /// Plays all of them; `tick` is told, after each, how many were played. Returns those that
    /// broke a promise, in their order.
    ///
    /// # Errors
    ///
    /// A drawn session is no scenario, or one that failed cannot be written.
    pub fn run(&self, tick: &(dyn Fn(usize) + Sync)) -> anyhow::Result<Vec<Broken>> {
        let next = AtomicUsize::new(0);
        let done = AtomicUsize::new(0);
        let broken = Mutex::new(Vec::new());
        let play_some = || -> anyhow::Result<()> {
            loop {
                let session = next.fetch_add(1, Ordering::Relaxed);
                if session >= self.sessions.get() || process::is_stopped() {
                    return Ok(());
                }
                let found = self.play(session)?;
                if let Ok(mut broken) = broken.lock() {
                    broken.extend(found);
                }
                tick(done.fetch_add(1, Ordering::Relaxed) + 1);
            }
        };
        thread::scope(|scope| {
            let players: Vec<_> = (0..self.jobs.get())
                .map(|_| scope.spawn(play_some))
                .collect();
            players
                .into_iter()
                .try_for_each(|player| player.join().expect("playing does not panic"))
        })?;
        let mut broken = broken.into_inner().unwrap_or_default();
        broken.sort_by_key(|broken: &Broken| broken.session);
        Ok(broken)
    }

    fn play(&self, session: usize) -> anyhow::Result<Option<Broken>> {
        let text = text(self.seed, session);
        let name = format!("soak-{}-{session}", self.seed);
        let file = self.failed.join(format!("{name}.toml"));
        let scenarios = scenario::read_text(&file, &name, &text)
            .with_context(|| format!("reading session {session} of seed {}", self.seed))?;
        let mut why = Vec::new();
        for scenario in &scenarios {
            for over in &scenario.over {
                let job = Job {
                    scenario,
                    over: *over,
                };
                let failures = run(job, &self.options).failures;
                why.extend(failures.iter().map(crate::run::Failure::headline));
            }
        }
        if why.is_empty() {
            return Ok(None);
        }
        write_whole(&file, &commented(&why, &text))?;
        Ok(Some(Broken {
            session,
            why,
            scenario: file,
        }))
    }
}

/// The scenario with what it broke at its head.
fn commented(why: &[String], text: &str) -> String {
    let lines = why.iter().flat_map(|why| why.lines());
    let head: Vec<String> = lines.map(|line| format!("# {line}")).collect();
    format!("{}\n{text}", head.join("\n"))
}

/// Writes beside the file first, so that none is ever half written.
fn write_whole(file: &Path, text: &str) -> anyhow::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let beside = tempfile::NamedTempFile::new_in(folder)?;
        std::fs::write(beside.path(), text)?;
        beside.persist(file)?;
        Ok(())
    };
    write().with_context(|| format!("writing {}", file.display()))
}
