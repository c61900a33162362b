//! Learning a flow from recorded sessions.
//!
//! Everything is counted on the sessions that succeeded (unless all are asked for), in their order: what came next
//! (the habit), what came before the next write (reach), which lookups followed which call
//! (sites), and where their arguments came from (bindings).

mod agreement;
mod alpha;
mod features;
mod sources;
mod surprise;
mod thresholds;
mod whole;

pub(crate) use agreement::holds;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use stretto_trace::{Episode, ToolKind, ToolManifest};

use crate::decide::Decider;
use crate::file::{Action, BackOff, FeatureMap, FlowFile, Habit, Provenance, Sites};
use crate::flow::RESPOND;
use crate::step::{self, Outcome, Vocabulary};

/// The group of a flow without a goal.
const GROUP: u64 = 1;

/// A recorded session to learn from, or to score a flow on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    /// What happened. Its reward says whether it succeeded; an empty task id makes the
    /// session a task of its own.
    pub episode: Episode,
    /// How many calls of its turn had been answered when each call was sent, by call id;
    /// 0 for those that are not listed.
    pub answered_before: HashMap<String, usize>,
    /// The log with the contents of the episode's results, if they are empty here because
    /// they are more than memory should hold. [`learn`] reads them there, as long as its
    /// options do not [need results](LearnOptions::needs_results); whatever else looks at
    /// results must have them here.
    pub contents_in: Option<PathBuf>,
}

impl Session {
    /// The task that was worked on: the episode's, else the session itself.
    pub fn task(&self) -> &str {
        let Episode { id, task_id, .. } = &self.episode;
        if task_id.is_empty() { id } else { task_id }
    }
}

/// What a flow is learned from beside the sessions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surroundings {
    /// The tools, under the flow's domain.
    pub manifest: ToolManifest,
    /// The tools' input contracts.
    pub contracts: BTreeMap<String, String>,
}

/// How to learn.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnOptions {
    /// How many draws of alpha are kept; with 0, alpha is 1.
    pub draws: usize,
    /// How many draws come before those.
    pub warm_up: usize,
    /// The seed of the draws.
    pub seed: u64,
    /// Whether features of results are looked for.
    pub features: bool,
    /// Whether arguments that always take one value are bound to it.
    pub constants: bool,
    /// How many of the latest steps tell situations apart, at most: the order of the habit
    /// and of reach.
    pub order: usize,
    /// Whether sessions that did not succeed are learned from, too.
    pub every_session: bool,
    /// Whether each site gets a threshold of its own.
    pub site_thresholds: Option<SiteThresholds>,
    /// The share of training sessions below the surprise gate's threshold, if there is to
    /// be a gate.
    pub surprise: Option<f64>,
    /// The time that the flow names as its own, in milliseconds of Unix time.
    pub now_unix_ms: u64,
}

impl Default for LearnOptions {
    fn default() -> Self {
        Self {
            draws: 600,
            warm_up: 300,
            seed: 7,
            features: false,
            constants: false,
            order: 2,
            every_session: false,
            site_thresholds: None,
            surprise: None,
            now_unix_ms: 0,
        }
    }
}

/// How each site's own threshold is chosen: the one at which, on tasks left out, its lookups
/// were worth most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiteThresholds {
    /// What a lookup that the agent never made costs, when one that it did make is worth 1;
    /// not below 0.
    pub detour_cost: f64,
    /// Whose probabilities decide.
    pub decider: Decider,
}

impl LearnOptions {
    /// Whether results are looked at again and again, so that sessions must hold them.
    pub fn needs_results(&self) -> bool {
        self.features || self.surprise.is_some() || self.site_thresholds.is_some()
    }
}

/// What is being learned, for whoever waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Counting what came next.
    Counting,
    /// Drawing alpha.
    Alpha,
    /// Looking for features.
    Features,
    /// Tracing arguments to results.
    Sources,
    /// Comparing picks with the agent's.
    Agreement,
    /// Choosing thresholds.
    Thresholds,
    /// Measuring how surprising sessions are.
    Surprise,
}

impl Stage {
    /// What is being done, as a phrase.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Counting => "counting steps",
            Self::Alpha => "weighing short histories against long ones",
            Self::Features => "looking for telling fields",
            Self::Sources => "tracing arguments",
            Self::Agreement => "comparing picks",
            Self::Thresholds => "choosing thresholds",
            Self::Surprise => "measuring surprise",
        }
    }
}

/// Told, in each stage, how much of how much is done.
pub type Progress<'a> = dyn FnMut(Stage, usize, usize) + Send + 'a;

/// Why nothing could be learned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// There are no sessions.
    #[error("there are no sessions to learn from")]
    NoSessions,
    /// No session succeeded.
    #[error(
        "none of the {0} sessions was successful, so there is nothing to learn from; \
         check the rewards that were given for them"
    )]
    NoneSuccessful(usize),
    /// No tool is known.
    #[error(
        "no session lists the server's tools, so it is not known which of them only read; \
         record sessions in which the host asks for tools/list, or give a manifest"
    )]
    NoTools,
    /// The contents of a session's results are not there and cannot be read; why not.
    #[error("{0}")]
    Unread(String),
    /// No tool only reads.
    #[error(
        "none of the {0} tools is known to only read (readOnlyHint), so there is nothing \
         that a flow could look up; give a manifest that says which do"
    )]
    NoReads(usize),
    /// The sessions that a fold of a cross-validation leaves are not enough.
    #[error(
        "with {folds} folds, leaving out the {left_out} sessions of one: {why}; \
         score more sessions, or choose another number of folds"
    )]
    Fold {
        /// How many folds there are.
        folds: u64,
        /// How many sessions the fold has.
        left_out: usize,
        /// Why the others are not enough.
        why: Box<LearnError>,
    },
}

/// Learns a flow, without an arbiter.
///
/// # Errors
///
/// There is nothing to learn from; the error says what to do.
pub fn learn(
    sessions: &[&Session],
    surroundings: &Surroundings,
    options: &LearnOptions,
    progress: &mut Progress<'_>,
) -> Result<FlowFile, LearnError> {
    let Surroundings {
        manifest,
        contracts,
    } = surroundings;
    if sessions.is_empty() {
        return Err(LearnError::NoSessions);
    }
    if let Some(session) = sessions
        .iter()
        .find(|session| session.contents_in.is_some() && options.needs_results())
    {
        return Err(LearnError::Unread(format!(
            "session {} was read without its results, which features, sites' thresholds and a surprise gate need",
            session.episode.id
        )));
    }
    if manifest.tools.is_empty() {
        return Err(LearnError::NoTools);
    }
    let reads: Vec<String> = manifest
        .tools
        .iter()
        .filter(|(name, kind)| **kind == ToolKind::Read && *name != RESPOND)
        .map(|(name, _)| name.clone())
        .collect();
    if reads.is_empty() {
        return Err(LearnError::NoReads(manifest.tools.len()));
    }
    let training: Vec<&Session> = sessions
        .iter()
        .copied()
        .filter(|session| options.every_session || session.episode.succeeded())
        .collect();
    if training.is_empty() {
        return Err(LearnError::NoneSuccessful(sessions.len()));
    }

    let vocab = vocab(sessions, manifest);
    let vocabulary = Vocabulary::new(&vocab);
    let mut lesson = Lesson {
        training: &training,
        manifest,
        vocabulary: &vocabulary,
        vocab_size: vocab.len() + 1,
        map: FeatureMap::default(),
        order: options.order,
    };
    let mut alpha = alpha::draw(&lesson, options, progress);
    if options.features {
        lesson.map = features::select(&lesson, alpha, progress);
        if !lesson.map.fields.is_empty() {
            alpha = alpha::draw(&lesson, options, progress);
        }
    }
    let counted = lesson.count(alpha, progress);
    let mut bindings = sources::trace(&lesson, options.constants, progress)?;
    agreement::count(&lesson, &mut bindings, progress)?;

    let mut sources: Vec<String> = sessions
        .iter()
        .map(|session| session.episode.agent_model.clone())
        .collect();
    sources.sort_unstable();
    sources.dedup();
    let map = std::mem::take(&mut lesson.map);
    let mut file = FlowFile {
        stretto_flow: 1,
        provenance: Provenance {
            stretto: env!("CARGO_PKG_VERSION").to_owned(),
            sources,
            habit_episodes: training.len() as u64,
            arbiter_cases: 0,
            compiled_unix_ms: options.now_unix_ms,
            conventions: None,
        },
        vocab,
        manifest: manifest.clone(),
        map,
        group: GROUP,
        habit: counted.habit,
        sites: Sites {
            reads,
            next: counted.next,
            ..Sites::default()
        },
        predicates: Vec::new(),
        weighed: Vec::new(),
        folds: Vec::new(),
        bindings,
        model: String::new(),
        program: crate::program::standard(),
        promoted: None,
        thresholds: BTreeMap::new(),
        contracts: contracts.clone(),
        reach: Some(counted.reach),
        surprise: None,
    };
    if let Some(how) = options.site_thresholds {
        let known = thresholds::Known {
            surroundings,
            options,
            alpha,
        };
        file.thresholds = known.choose(&training, how, progress)?;
    }
    if let Some(quantile) = options.surprise {
        file.surprise = surprise::gate(&training, &file, quantile, progress);
    }
    file.set_format();
    Ok(file)
}

/// The actions: a message, then every tool that was listed or called, by name.
fn vocab(sessions: &[&Session], manifest: &ToolManifest) -> Vec<Action> {
    let called = sessions
        .iter()
        .flat_map(|session| session.episode.tool_calls());
    let tools: BTreeSet<&str> = called
        .map(|call| call.name.as_str())
        .chain(manifest.tools.keys().map(String::as_str))
        .collect();
    let tools = tools.into_iter().map(|tool| Action::Tool(tool.to_owned()));
    std::iter::once(Action::Respond).chain(tools).collect()
}

/// What all parts of learning read.
struct Lesson<'a> {
    /// The sessions that are learned from.
    training: &'a [&'a Session],
    manifest: &'a ToolManifest,
    vocabulary: &'a Vocabulary,
    vocab_size: usize,
    map: FeatureMap,
    /// The longest history.
    order: usize,
}

/// What was counted of steps.
struct Counted {
    habit: Habit,
    reach: BackOff,
    next: BTreeMap<(String, bool), BTreeMap<String, u64>>,
}

impl Lesson<'_> {
    fn is_read(&self, tool: &str) -> bool {
        self.manifest.kind(tool) == Some(ToolKind::Read) && tool != RESPOND
    }

    fn count(&self, alpha: f64, progress: &mut Progress<'_>) -> Counted {
        let mut base = BackOff::new(self.order, alpha, self.vocab_size);
        let mut reach = base.clone();
        let mut next = BTreeMap::<(String, bool), BTreeMap<String, u64>>::new();
        for (done, session) in self.training.iter().enumerate() {
            progress(Stage::Counting, done, self.training.len());
            let steps = step::steps(&session.episode.events, self.vocabulary, &self.map);
            let symbols: Vec<u32> = steps.iter().map(|(step, _)| step.symbol()).collect();
            for (at, (step, _)) in steps.iter().enumerate() {
                let history = &symbols[at.saturating_sub(self.order)..at];
                base.learn(history, &[step.action], 1.0);
            }
            // From the end, so that what lies ahead of the next write is known at each step.
            let mut ahead = BTreeSet::new();
            for (at, (step, tool)) in steps.iter().enumerate().rev() {
                if tool.is_some_and(|tool| self.manifest.is_write(tool)) {
                    ahead.clear();
                } else {
                    ahead.insert(step.action);
                }
                let history = &symbols[at.saturating_sub(self.order)..at];
                let actions: Vec<u32> = ahead.iter().copied().collect();
                reach.learn(history, &actions, 1.0);
            }
            for pair in steps.windows(2) {
                if let [(step, Some(tool)), (_, Some(lookup))] = pair
                    && self.is_read(lookup)
                {
                    let site = ((*tool).to_owned(), step.outcome == Outcome::Error);
                    *next
                        .entry(site)
                        .or_default()
                        .entry((*lookup).to_owned())
                        .or_default() += 1;
                }
            }
        }
        let top = BTreeMap::from([(GROUP, base.levels[self.order].clone())]);
        Counted {
            habit: Habit {
                base,
                beta: alpha,
                top,
            },
            reach,
            next,
        }
    }
}

#[cfg(test)]
mod tests;
