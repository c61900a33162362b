//! A flow that is ready to serve: its file, and what follows from it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::decide::{Decider, DeciderError};
use crate::file::{FlowError, FlowFile, LoadError, Promoted, Sites, Tally};
use crate::memory::{Pick, PickKind};
use crate::plan::Plan;
use crate::program::Statistics;
use crate::step::Vocabulary;

/// The name of the option to hand back to the agent. A tool of that name could not be told
/// from it, so it is never looked up.
pub const RESPOND: &str = "respond";

/// A flow that is ready to serve.
///
/// It never changes, so that one flow serves any number of sessions.
#[derive(Debug)]
pub struct Flow {
    file: Arc<FlowFile>,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) plan: Arc<Plan>,
    pub(crate) statistics: Arc<Statistics>,
}

impl Flow {
    /// Loads a flow.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no flow that this version serves. The error names it.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        FlowFile::load(path).map(Self::new)
    }

    /// Reads a flow from the text of its file.
    ///
    /// # Errors
    ///
    /// The text is no flow that this version serves.
    pub fn parse(text: &str) -> Result<Self, FlowError> {
        FlowFile::parse(text).map(Self::new)
    }

    /// Prepares a flow.
    pub fn new(file: FlowFile) -> Self {
        let file = Arc::new(file);
        let vocabulary = Vocabulary::new(&file.vocab);
        let plan = Plan::new(&file.bindings, &file.sites.reads, &file.manifest);
        let statistics = Statistics::new(Arc::clone(&file), vocabulary.clone());
        Self {
            vocabulary,
            plan: Arc::new(plan),
            statistics: Arc::new(statistics),
            file,
        }
    }

    /// The flow as it stands in its file.
    pub fn file(&self) -> &FlowFile {
        &self.file
    }

    /// The decider that serves when none is named: the arbiter if the flow has one, else
    /// reach if it has the counts, else the habit.
    pub fn default_decider(&self) -> Decider {
        if !self.file.folds.is_empty() {
            Decider::Arbiter
        } else if self.file.reach.is_some() {
            Decider::Reach
        } else {
            Decider::Habit
        }
    }

    /// The decider whose probabilities are those of the very next step, and so can be held against
    /// it: the arbiter if the flow has one, else the habit.
    pub fn next_step_decider(&self) -> Decider {
        if self.file.folds.is_empty() {
            Decider::Habit
        } else {
            Decider::Arbiter
        }
    }

    /// Whether `decider` can decide for this flow.
    ///
    /// # Errors
    ///
    /// The flow lacks what the decider reads.
    pub fn check_decider(&self, decider: Decider) -> Result<(), DeciderError> {
        match decider {
            Decider::Arbiter if self.file.folds.is_empty() => Err(DeciderError::NoArbiter),
            Decider::Reach if self.file.reach.is_none() => Err(DeciderError::NoReach),
            Decider::Arbiter | Decider::Reach | Decider::Habit => Ok(()),
        }
    }

    /// The lookups on offer after a call of `tool`, in the order of their names.
    pub fn lookups(&self, tool: &str, failed: bool) -> Vec<&str> {
        self.file.sites.lookups(tool, failed)
    }

    /// Whether the site may act, by its name.
    pub(crate) fn is_promoted(&self, site: &str) -> bool {
        let stands =
            |Promoted { sites, .. }: &Promoted| sites.get(site).is_some_and(|site| site.promoted);
        self.file.promoted.as_ref().is_none_or(stands)
    }

    /// The chance that the arguments of `pick` are the agent's own.
    pub fn chance(&self, lookup: &str, pick: &Pick) -> f64 {
        let bindings = &self.file.bindings;
        if pick.kind == PickKind::ByName {
            return if pick.arguments.is_empty() { 1.0 } else { 0.5 };
        }
        if pick.arguments.is_empty() {
            let calls = bindings.args.get(lookup).map_or(0, |(calls, _)| *calls);
            return bindings
                .bare
                .get(lookup)
                .map_or(1.0, |bare| Tally(*bare, calls).smooth());
        }
        let [unmentioned, mentioned] = bindings.agreed.get(lookup).copied().unwrap_or_default();
        let usual = unmentioned.smooth();
        let against = |counted: &BTreeMap<String, Tally>| {
            counted
                .get(lookup)
                .map_or(usual, |tally| tally.against(usual))
        };
        match pick.kind {
            PickKind::Mentioned => mentioned.smooth(),
            PickKind::NamedOther => against(&bindings.named_other),
            PickKind::Described => against(&bindings.described_read),
            PickKind::Unmentioned | PickKind::ByName => usual,
        }
    }
}

impl Sites {
    /// The lookups on offer after a call of `tool`, in the order of their names.
    ///
    /// In a flow over several servers, whose tools are named `server::tool`, only those of
    /// the call's own server.
    pub fn lookups(&self, tool: &str, failed: bool) -> Vec<&str> {
        fn server(tool: &str) -> Option<&str> {
            tool.split_once("::").map(|(server, _)| server)
        }
        let mut lookups: Vec<&str> = if self.every_read {
            self.reads.iter().map(String::as_str).collect()
        } else {
            let followed = self.next.get(&(tool.to_owned(), failed));
            followed
                .into_iter()
                .flat_map(BTreeMap::keys)
                .map(String::as_str)
                .collect()
        };
        lookups.retain(|lookup| {
            *lookup != RESPOND && server(tool).is_none_or(|own| server(lookup) == Some(own))
        });
        lookups.sort_unstable();
        lookups.dedup();
        lookups
    }
}

/// A site's name: the tool, marked when its call failed.
pub fn site_name(tool: &str, failed: bool) -> String {
    if failed {
        format!("{tool} (error)")
    } else {
        tool.to_owned()
    }
}
