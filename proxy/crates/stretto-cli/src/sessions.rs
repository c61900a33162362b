//! A directory of recorded sessions, read to learn from or to score a flow on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Context as _;
use indicatif::ProgressBar;
use stretto_flow::{Session, Surroundings};
use stretto_trace::mcp::{LogError, Tools, episode_with_answered, read_log, session_logs};
use stretto_trace::{Episode, Event};

use crate::bar;
use crate::outcomes::Outcomes;
use crate::screen::Voice;

/// The sessions of a directory, in the order of their names, and their servers' tools.
#[derive(Debug)]
pub struct Recorded {
    /// The sessions. Those without a known reward count as successful.
    pub sessions: Vec<Session>,
    /// The domains that logs name.
    pub domains: BTreeSet<String>,
    /// What servers have listed; later sessions count.
    pub surroundings: Surroundings,
}

/// What else is known of sessions than their logs tell.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Known {
    /// Rewards: a JSON object of numbers by session; sessions without one count as successful
    #[arg(long, value_name = "FILE")]
    rewards: Option<PathBuf>,
    /// How the sessions ended: a table with tabs between its columns, `session` and any of
    /// `task`, `trial` and `reward`; sessions without a reward count as successful
    #[arg(long, value_name = "FILE")]
    outcomes: Option<PathBuf>,
}

impl Known {
    /// Reads the sessions in `directory`, with what is known of them. `voice` says which of
    /// the sessions that the files name are not there.
    ///
    /// # Errors
    ///
    /// A file or the directory cannot be read, or holds something else than it should.
    pub fn read(
        &self,
        directory: &Path,
        results: Results,
        voice: &mut Voice,
    ) -> anyhow::Result<Recorded> {
        // Short files first: a mistake in them is told before the sessions are read.
        let outcomes = self.outcomes.as_deref().map(Outcomes::read).transpose()?;
        let rewards = self.rewards.as_deref().map(read_rewards).transpose()?;
        let bar = bar::new();
        let mut recorded = Recorded::read(directory, results, &bar)?;
        bar.finish_and_clear();
        let mut strangers = |file: &Option<PathBuf>, count: usize| {
            if let Some(file) = file.as_ref().filter(|_| count > 0) {
                let (file, folder) = (file.display(), directory.display());
                voice.say(&format!(
                    "{count} of the sessions that {file} names are not in {folder}"
                ));
            }
        };
        if let Some(outcomes) = &outcomes {
            strangers(&self.outcomes, recorded.apply(outcomes));
        }
        if let Some(rewards) = &rewards {
            strangers(&self.rewards, recorded.reward(rewards));
        }
        Ok(recorded)
    }
}

/// One log, with what is not part of its episode.
struct Read {
    session: Session,
    domain: Option<String>,
    tools: Arc<Tools>,
}

/// The session logs directly in `directory`, by name.
///
/// # Errors
///
/// The directory cannot be listed, or has none.
pub(crate) fn logs_in(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let logs = session_logs(directory)?;
    if !logs.is_empty() {
        return Ok(logs);
    }
    let has_logs = |folder: &PathBuf| session_logs(folder).is_ok_and(|logs| !logs.is_empty());
    let mut folders: Vec<PathBuf> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    folders.sort();
    let directory = directory.display();
    match folders.into_iter().find(has_logs) {
        Some(folder) => anyhow::bail!(
            "{directory} has no session logs (files that end in .jsonl) itself; name a folder in it \
             that has some, such as {}",
            folder.display()
        ),
        None => anyhow::bail!(
            "{directory} has no session logs (files that end in .jsonl); record some with \
             stretto-proxy --record {directory}"
        ),
    }
}

impl Recorded {
    /// Reads all session logs directly in `directory`.
    ///
    /// # Errors
    ///
    /// The directory cannot be listed or has no session logs, or one cannot be read.
    fn read(directory: &Path, results: Results, bar: &ProgressBar) -> anyhow::Result<Self> {
        let paths = logs_in(directory)?;
        bar::show(bar, "reading sessions", 0, paths.len());
        let mut read = read_all(&paths, results, bar)?;
        read.sort_by(|one, other| one.session.episode.id.cmp(&other.session.episode.id));

        let mut recorded = Self {
            sessions: Vec::with_capacity(read.len()),
            domains: BTreeSet::new(),
            surroundings: Surroundings::default(),
        };
        let mut last: Option<Arc<Tools>> = None;
        for Read {
            session,
            domain,
            tools,
        } in read
        {
            recorded.sessions.push(session);
            recorded.domains.extend(domain);
            // Most sessions list the same tools as the one before.
            if last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &tools)) {
                continue;
            }
            let listed = tools.manifest("");
            let Surroundings {
                manifest,
                contracts,
            } = &mut recorded.surroundings;
            manifest.tools.extend(listed.tools);
            manifest.docs.extend(listed.docs);
            contracts.extend(tools.contracts().clone());
            last = Some(tools);
        }
        Ok(recorded)
    }

    /// Takes over what is known of how sessions ended. Returns how many of the sessions it
    /// names are not there.
    fn apply(&mut self, outcomes: &Outcomes) -> usize {
        let mut known = 0;
        for session in &mut self.sessions {
            let Some(outcome) = outcomes.of(&session.episode.id) else {
                continue;
            };
            known += 1;
            if let Some(task) = &outcome.task {
                session.episode.task_id.clone_from(task);
            }
            session.episode.trial = outcome.trial.unwrap_or(session.episode.trial);
            session.episode.reward = outcome.reward.unwrap_or(session.episode.reward);
        }
        outcomes.sessions().count() - known
    }

    /// Takes over rewards, by session. Returns how many of the sessions it names are not
    /// there.
    fn reward(&mut self, rewards: &BTreeMap<String, f64>) -> usize {
        let mut known = 0;
        for session in &mut self.sessions {
            if let Some(reward) = rewards.get(&session.episode.id) {
                known += 1;
                session.episode.reward = *reward;
            }
        }
        rewards.len() - known
    }
}

/// Where the contents of results stay, which are nearly all that there is of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Results {
    /// In memory.
    InMemory,
    /// In the logs, for who reads them there again.
    OnDisk,
}

fn leave_out(episode: &mut Episode) {
    for event in &mut episode.events {
        if let Event::ToolResult { content, .. } = event {
            *content = String::new();
        }
    }
}

/// Reads logs on as many threads as there are cores.
fn read_all(paths: &[PathBuf], results: Results, bar: &ProgressBar) -> Result<Vec<Read>, LogError> {
    let threads = thread::available_parallelism()
        .map_or(1, Into::into)
        .min(paths.len());
    let next = AtomicUsize::new(0);
    let read_some = || {
        let mut read = Vec::new();
        let mut last: Option<Arc<Tools>> = None;
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            let log = read_log(path)?;
            let listed = Tools::of(&log);
            let tools = match last.take() {
                Some(same) if *same == listed => same,
                _ => Arc::new(listed),
            };
            last = Some(Arc::clone(&tools));
            let (mut episode, mut answered_before) = episode_with_answered(&log);
            episode.reward = 1.0;
            answered_before.retain(|_, answered| *answered > 0);
            answered_before.shrink_to_fit();
            let contents_in = (results == Results::OnDisk).then(|| {
                leave_out(&mut episode);
                path.clone()
            });
            let session = Session {
                episode,
                answered_before,
                contents_in,
            };
            read.push(Read {
                session,
                domain: log.header.domain,
                tools,
            });
            bar.inc(1);
        }
        Ok(read)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(read_some)).collect();
        let mut all = Vec::with_capacity(paths.len());
        for worker in workers {
            all.extend(worker.join().expect("reading a log does not panic")?);
        }
        Ok(all)
    })
}

/// Reads a file of rewards: a JSON object of numbers, by session.
///
/// # Errors
///
/// The file cannot be read, or is something else.
fn read_rewards(path: &Path) -> anyhow::Result<BTreeMap<String, f64>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is no object of rewards by session", path.display()))
}
