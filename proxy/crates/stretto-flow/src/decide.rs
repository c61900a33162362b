//! Decisions: what a flow would look up after a call, or why it hands back.
//!
//! [`Live::open`] looks at the session and settles what can be settled without asking
//! anyone. With the habit and with reach that is everything; the arbiter's decision stays
//! [`Open`] until somebody brings the probabilities, and [`Open::decide`] then applies the
//! same rule.

mod policy;
mod rule;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::policy::{Choice, Policy};
use self::rule::Offer;
use crate::explore::{Explore, Trail};
use crate::flow::{Flow, RESPOND, site_name};
use crate::live::Live;
use crate::memory::{Pick, Unbound};

/// Where a lookup's probability comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decider {
    /// The habit, a model's answers and predicates, combined.
    Arbiter,
    /// How often the agent made the lookup next.
    Habit,
    /// How often the agent made the lookup before its next write.
    Reach,
}

impl Decider {
    /// The decider's name, as options and logs have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Arbiter => "arbiter",
            Self::Habit => "habit",
            Self::Reach => "reach",
        }
    }
}

impl fmt::Display for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Decider {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        [Self::Arbiter, Self::Habit, Self::Reach]
            .into_iter()
            .find(|decider| decider.name() == name)
            .ok_or_else(|| format!("`{name}` is none of arbiter, habit and reach"))
    }
}

/// Why a decider cannot decide for a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeciderError {
    /// The arbiter was asked for, and the flow has none.
    #[error(
        "this flow has no arbiter, so it decides with the habit alone; use --flow-decider habit or reach"
    )]
    NoArbiter,
    /// Reach was asked for, and the flow has no counts for it.
    #[error(
        "this flow was learned without the counts --decider reach reads; learn it again, or use habit"
    )]
    NoReach,
    /// The arbiter decides, which takes a model's answers.
    #[error("the arbiter decides only with a model's answers, and none was asked for here")]
    NeedsAnswers,
}

/// How a flow is served.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where probabilities come from.
    pub decider: Decider,
    /// The probability that a lookup must reach, with its arguments; above 1 nothing is
    /// ever looked up.
    pub threshold: f64,
    /// Exploration, if policies are wanted.
    pub explore: Option<Explore>,
    /// The task: the fold of the arbiter, and part of the draws' seed.
    pub task_id: String,
    /// Whether the flow's own promotion is set aside, so that its sites can be scored.
    pub ignore_promotion: bool,
}

impl Settings {
    /// A served flow's usual settings.
    pub fn new(decider: Decider, task_id: &str) -> Self {
        Self {
            decider,
            threshold: 0.3,
            explore: None,
            task_id: task_id.to_owned(),
            ignore_promotion: false,
        }
    }
}

/// What a flow decided.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// To make a lookup.
    LookUp {
        /// The tool.
        tool: String,
        /// Its arguments.
        arguments: Map<String, Value>,
    },
    /// To hand back to the agent.
    HandBack {
        /// Why.
        reason: String,
    },
}

/// A decision, with everything that its line in the flow log says of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What was decided.
    pub verdict: Verdict,
    /// The site's name, unless the session's last step was no call.
    pub site: Option<String>,
    /// Each option's probability; empty when the decision ended before that.
    pub probs: BTreeMap<String, f64>,
    /// The probability of the lookup that the rule weighed.
    pub prob: Option<f64>,
    /// The chance of its arguments, if it was bound.
    pub binding: Option<f64>,
    /// What a model said, if one was asked.
    pub heard: Heard,
    /// What could have been taken, when policies are logged.
    pub policy: Option<Policy>,
}

/// What a model that was asked has said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heard {
    /// Its answer to what comes next: each option's probability.
    pub oracle: BTreeMap<String, f64>,
    /// Each predicate's probability of a yes, by id.
    pub predicates: BTreeMap<String, f64>,
    /// The request's key.
    pub key: Option<String>,
}

impl Decision {
    fn hand_back(site: Option<String>, reason: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::HandBack {
                reason: reason.into(),
            },
            site,
            probs: BTreeMap::new(),
            prob: None,
            binding: None,
            heard: Heard::default(),
            policy: None,
        }
    }

    /// The tool to look up, if one is.
    pub fn tool(&self) -> Option<&str> {
        match &self.verdict {
            Verdict::LookUp { tool, .. } => Some(tool),
            Verdict::HandBack { .. } => None,
        }
    }
}

/// What is known of a decision before anyone has been asked.
#[derive(Clone, Debug)]
pub enum Opening {
    /// It is settled.
    Decided(Decision),
    /// It waits for the options' probabilities.
    Open(Open),
}

/// A decision that waits for its options' probabilities.
///
/// It holds everything it needs: the session may go on meanwhile.
#[derive(Clone, Debug)]
pub struct Open {
    /// The tool that returned last.
    pub tool: String,
    /// Whether it failed.
    pub failed: bool,
    /// The lookups on offer, in the order of their names.
    pub lookups: Vec<String>,
    /// The habit's chance of each of them.
    pub habit: Vec<f64>,
    /// What the habit leaves for handing back.
    pub habit_respond: f64,
    threshold: f64,
    picks: Vec<Result<(Pick, f64), Unbound>>,
    explore: Option<policy::Setting>,
}

impl Open {
    /// Decides by the rule of the arbiter and the habit, with each option's probability.
    pub fn decide(self, probs: BTreeMap<String, f64>, heard: Heard) -> Decision {
        let chances: Vec<f64> = self
            .lookups
            .iter()
            .map(|tool| probs.get(tool).copied().unwrap_or(0.0))
            .collect();
        let offer = Offer {
            lookups: self.lookups.iter().map(String::as_str).collect(),
            chances,
            threshold: self.threshold,
        };
        let picks = self.picks;
        let mut bind = |index: usize| picks[index].clone();
        let ruled = offer.likeliest(&mut bind);
        let mut decision = ruled.into_decision(site_name(&self.tool, self.failed), probs);
        if let Some(setting) = self.explore {
            setting.apply(
                Decider::Arbiter,
                &offer,
                &self.habit,
                &mut bind,
                &mut decision,
            );
        }
        decision.heard = heard;
        decision
    }

    /// Hands back, because the model failed or its answer was incomplete.
    pub fn hand_back(self, reason: impl Into<String>, heard: Heard) -> Decision {
        let site = site_name(&self.tool, self.failed);
        Decision {
            heard,
            ..Decision::hand_back(Some(site), reason)
        }
    }
}

impl Live {
    /// Whether the session after the call `after` ends in a call, so that a run may start.
    pub fn ends_in_call(&self, after: &str) -> bool {
        self.view(after).last.is_some()
    }

    /// Prepares for exploring, which has to see the session from its beginning.
    #[must_use]
    pub fn exploring(mut self, settings: &Settings) -> Self {
        if settings
            .explore
            .is_some_and(|explore| explore.epsilon > 0.0)
        {
            self.trail = Some(Trail::new(&settings.task_id));
        }
        self
    }

    /// Looks at the session after the call with the id `after`, and decides what can be
    /// decided without asking a model.
    ///
    /// # Errors
    ///
    /// The flow lacks what the decider reads. That is no decision, and nothing to log.
    pub fn open(&mut self, after: &str, settings: &Settings) -> Result<Opening, DeciderError> {
        let flow = std::sync::Arc::clone(&self.flow);
        let view = self.view(after);
        let Some((tool, failed)) = view.last else {
            let decision = Decision::hand_back(None, "the last step is not a tool call");
            return Ok(Opening::Decided(decision));
        };
        let site = site_name(&tool, failed);
        let hand_back = |reason: String| {
            Ok(Opening::Decided(Decision::hand_back(
                Some(site.clone()),
                reason,
            )))
        };
        if !settings.ignore_promotion && !flow.is_promoted(&site) {
            return hand_back("the site is not promoted".to_owned());
        }
        if let Some(reason) = self.gate.as_ref().and_then(crate::gate::Gate::reason) {
            return hand_back(reason);
        }
        let threshold = match flow.file().thresholds.get(&site) {
            Some(own) if *own > 1.0 => return hand_back("the site is switched off".to_owned()),
            Some(own) => *own,
            None => settings.threshold,
        };
        let lookups = flow.lookups(&tool, failed);
        if lookups.is_empty() {
            return hand_back("no lookups followed here in training".to_owned());
        }
        flow.check_decider(settings.decider)?;
        let explore = settings.explore.map(|explore| policy::Setting {
            explore,
            task_id: settings.task_id.clone(),
            events: self.events(),
            session: self
                .trail
                .as_ref()
                .map(|trail| trail.hash(self.turn_order(after).as_ref())),
        });
        let habit = || prior(&flow, &view.history, &lookups);
        let mut bind = |index: usize| self.bind(&flow, lookups[index]);
        let (chances, respond, is_reach) = match (settings.decider, &flow.file().reach) {
            (Decider::Reach, Some(reach)) => (
                reach.chances(&view.history, &actions(&flow, &lookups)),
                0.0,
                true,
            ),
            (Decider::Arbiter, _) => {
                let (habit, habit_respond) = habit();
                return Ok(Opening::Open(Open {
                    picks: (0..lookups.len()).map(&mut bind).collect(),
                    lookups: lookups.into_iter().map(str::to_owned).collect(),
                    tool,
                    failed,
                    habit,
                    habit_respond,
                    threshold,
                    explore,
                }));
            }
            (Decider::Habit | Decider::Reach, _) => {
                let (chances, respond) = habit();
                (chances, respond, false)
            }
        };
        let mut probs: BTreeMap<String, f64> = lookups
            .iter()
            .map(|tool| (*tool).to_owned())
            .zip(chances.iter().copied())
            .collect();
        probs.insert(RESPOND.to_owned(), respond);
        let offer = Offer {
            lookups: lookups.clone(),
            chances,
            threshold,
        };
        let ruled = if is_reach {
            offer.best(&mut bind)
        } else {
            offer.likeliest(&mut bind)
        };
        let mut decision = ruled.into_decision(site, probs);
        if let Some(setting) = explore {
            setting.apply(
                settings.decider,
                &offer,
                &habit().0,
                &mut bind,
                &mut decision,
            );
        }
        Ok(Opening::Decided(decision))
    }

    /// Decides after the call with the id `after`, when no model has to be asked.
    ///
    /// # Errors
    ///
    /// The flow lacks what the decider reads, or the decider is the arbiter, which has to
    /// be asked by way of [`open`](Self::open).
    pub fn decide(&mut self, after: &str, settings: &Settings) -> Result<Decision, DeciderError> {
        match self.open(after, settings)? {
            Opening::Decided(decision) => Ok(decision),
            Opening::Open(_) => Err(DeciderError::NeedsAnswers),
        }
    }

    /// Binds a lookup's arguments, with their chance.
    fn bind(&mut self, flow: &Flow, lookup: &str) -> Result<(Pick, f64), Unbound> {
        if !flow.plan.lookups.contains_key(lookup) {
            return Err(Unbound::Unknown);
        }
        let pick = self.memory.pick(lookup)?;
        let chance = flow.chance(lookup, &pick);
        Ok((pick, chance))
    }
}

fn actions(flow: &Flow, lookups: &[&str]) -> Vec<u32> {
    lookups
        .iter()
        .map(|lookup| flow.vocabulary.tool(lookup))
        .collect()
}

/// The habit's chance of each lookup, and what is left for everything else.
pub(crate) fn prior(flow: &Flow, history: &[u32], lookups: &[&str]) -> (Vec<f64>, f64) {
    let file = flow.file();
    let chances = file
        .habit
        .chances(file.group, history, &actions(flow, lookups));
    let respond = (1.0 - chances.iter().sum::<f64>()).max(0.0);
    (chances, respond)
}
