//! Sessions of domains that have guards, wherever they were recorded.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use stretto_guards::{Guards, Step, replay, replay_episode};
use stretto_trace::Episode;
use stretto_trace::mcp::{Log, read_log};

use crate::bar;
use crate::checkout::{self, Checkout, Source};
use crate::outcomes::Outcomes;
use crate::screen::Voice;
use crate::sessions::logs_in;

/// Which sessions, of which domains.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("input").required(true).multiple(true))]
pub struct Input {
    /// The session logs in this folder
    #[arg(long, value_name = "DIR", group = "input")]
    sessions: Option<PathBuf>,
    /// The results that a checkout of τ²-bench publishes
    #[arg(long, value_name = "DIR", group = "input")]
    tau2: Option<PathBuf>,
    /// Another results file of τ²-bench; may be repeated
    #[arg(long = "source", value_name = "[LABEL=]FILE", group = "input")]
    sources: Vec<Source>,
    /// How the sessions of logs ended: a table with tabs between its columns, `session` and any
    /// of `task`, `trial` and `reward`; sessions without a reward count as successful
    #[arg(long, value_name = "FILE", requires = "sessions")]
    outcomes: Option<PathBuf>,
    /// This domain only; may be repeated
    #[arg(
        long = "domain",
        value_name = "NAME",
        value_parser = PossibleValuesParser::new(Guards::domains())
    )]
    pub(crate) domains: Vec<String>,
}

/// A session of a domain that has guards.
#[derive(Debug)]
pub struct Guarded {
    /// The session's name.
    pub id: String,
    /// The task; without one that is known, the session itself.
    pub task: String,
    /// Whether the task was solved, as far as that is known.
    pub is_successful: bool,
    /// The domain's guards.
    pub guards: Guards,
    recorded: Recorded,
}

#[derive(Debug)]
enum Recorded {
    Log(Box<Log>),
    Episode(Episode),
}

/// A reward this close to 1 counts as 1.
const REWARD_SLACK: f64 = 1e-9;

impl Guarded {
    /// Goes through the session, call by call.
    pub fn replay(&self, tell: impl FnMut(Step<'_>)) {
        match &self.recorded {
            Recorded::Log(log) => replay(log, tell),
            Recorded::Episode(episode) => replay_episode(episode, tell),
        }
    }

    fn of_log(log: Log, guards: Guards, outcomes: &Outcomes) -> Self {
        let id = log.header.session.clone();
        let outcome = outcomes.of(&id);
        let task = outcome.and_then(|outcome| outcome.task.clone());
        let reward = outcome.and_then(|outcome| outcome.reward);
        Self {
            task: task.unwrap_or_else(|| id.clone()),
            id,
            is_successful: reward.is_none_or(|reward| reward >= 1.0 - REWARD_SLACK),
            guards,
            recorded: Recorded::Log(Box::new(log)),
        }
    }

    fn of_episode(episode: Episode, guards: Guards) -> Self {
        Self {
            id: episode.id.clone(),
            task: episode.task_id.clone(),
            is_successful: episode.succeeded(),
            guards,
            recorded: Recorded::Episode(episode),
        }
    }
}

impl Input {
    /// That no session is of a domain that could be checked, though `others` are.
    fn none_of(&self, sessions: usize, others: &BTreeSet<String>) -> anyhow::Error {
        let wanted = if self.domains.is_empty() {
            Guards::domains().collect::<Vec<_>>().join(" or ")
        } else {
            self.domains.join(" or ")
        };
        let others: Vec<&str> = others
            .iter()
            .map(|domain| if domain.is_empty() { "none" } else { domain })
            .collect();
        anyhow::anyhow!(
            "of {sessions} sessions none is of the domain {wanted}, but of {}; sessions are recorded \
             with stretto-proxy --domain",
            others.join(", ")
        )
    }

    /// Tells each session, in no order that means anything. Those of logs, which may be more than
    /// fits into memory, are there one at a time. `voice` says how many were left out for their domain.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or holds something else than it should; no session is of a domain
    /// that has guards.
    pub fn each(&self, voice: &mut Voice, mut tell: impl FnMut(&Guarded)) -> anyhow::Result<()> {
        let outcomes = match &self.outcomes {
            Some(file) => Outcomes::read(file)?,
            None => Outcomes::default(),
        };
        let is_wanted = |domain: &str| {
            self.domains.is_empty() || self.domains.iter().any(|wanted| wanted == domain)
        };
        let guards = |domain: &str| {
            Guards::for_domain(domain)
                .ok()
                .filter(|_| is_wanted(domain))
        };
        let mut others = BTreeSet::new();
        let (mut told, mut left_out) = (0, 0);
        if let Some(folder) = &self.sessions {
            let logs = logs_in(folder)?;
            let bar = bar::new();
            for (done, path) in logs.iter().enumerate() {
                bar::show(&bar, "checking sessions", done, logs.len());
                let log = read_log(path)?;
                let domain = log.header.domain.clone().unwrap_or_default();
                if let Some(guards) = guards(&domain) {
                    told += 1;
                    tell(&Guarded::of_log(log, guards, &outcomes));
                } else {
                    left_out += 1;
                    others.insert(domain);
                }
            }
            bar.finish_and_clear();
        }
        let mut sources = match &self.tau2 {
            Some(folder) => Checkout(folder).published()?,
            None => Vec::new(),
        };
        sources.extend(self.sources.iter().cloned());
        for results in checkout::read(&sources, |_| true)? {
            for episode in results.episodes {
                if let Some(guards) = guards(&results.domain) {
                    told += 1;
                    tell(&Guarded::of_episode(episode, guards));
                } else {
                    left_out += 1;
                    others.insert(results.domain.clone());
                }
            }
        }
        if told == 0 {
            return Err(self.none_of(left_out, &others));
        }
        if left_out > 0 {
            let sessions = if left_out == 1 { "session" } else { "sessions" };
            voice.say(&format!("{left_out} {sessions} of other domains left out"));
        }
        Ok(())
    }
}
