//! What a decision could have taken, and exploring among it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::rule::{Bound, Offer};
use super::{Decider, Decision, Verdict};
use crate::explore::{Draws, Explore};

/// What a decision could have taken, so that another rule can be judged by the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// Where the probabilities came from.
    pub decider: Decider,
    /// The threshold that was applied.
    pub threshold: f64,
    /// The chance to explore.
    pub epsilon: f64,
    /// Whether this decision did.
    pub explored: bool,
    /// The rule's own choice; nothing when it handed back.
    pub greedy: Option<String>,
    /// The chance that the flow took what it took.
    pub propensity: f64,
    /// The task.
    pub task_id: String,
    /// How many events the session had.
    pub events: usize,
    /// Every lookup of the site, in the order of their names.
    pub options: Vec<Choice>,
}

/// One lookup of a site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The tool.
    pub tool: String,
    /// The decider's probability.
    pub p: f64,
    /// The habit's.
    pub habit: f64,
    /// The chance of its arguments, if it binds.
    pub binding: Option<f64>,
    /// Its arguments, if it binds.
    pub arguments: Option<Map<String, Value>>,
    /// Why it does not bind, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbound: Option<String>,
}

/// What exploring needs of the session.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) explore: Explore,
    pub(super) task_id: String,
    pub(super) events: usize,
    /// The hash of the session, when draws are made.
    pub(super) session: Option<u64>,
}

impl Setting {
    /// Adds the policy to a decision of the rule, and explores if the draw says so.
    pub(super) fn apply(
        self,
        decider: Decider,
        offer: &Offer<'_>,
        habit: &[f64],
        bind: &mut impl FnMut(usize) -> Bound,
        decision: &mut Decision,
    ) {
        let Explore { epsilon, seed } = self.explore;
        let greedy = decision.tool().map(str::to_owned);
        let options: Vec<Choice> = (0..offer.lookups.len())
            .map(|index| {
                let (binding, arguments, unbound) = match bind(index) {
                    Ok((pick, chance)) => (Some(chance), Some(pick.arguments), None),
                    Err(why) => (None, None, Some(why.to_string())),
                };
                Choice {
                    tool: offer.lookups[index].to_owned(),
                    p: offer.chances[index],
                    habit: habit[index],
                    binding,
                    arguments,
                    unbound,
                }
            })
            .collect();
        let others: Vec<&Choice> = options
            .iter()
            .filter(|choice| {
                choice.binding.is_some() && choice.p > 0.0 && Some(&choice.tool) != greedy.as_ref()
            })
            .collect();
        let mut explored = false;
        let mut propensity = 1.0;
        if let (Some(last), Some(session)) = (others.last(), self.session)
            && epsilon > 0.0
        {
            let mut draws = Draws::new(seed, session);
            let total: f64 = others.iter().map(|choice| choice.p).sum();
            if draws.draw() < epsilon {
                explored = true;
                let mut left = draws.draw() * total;
                let chosen = others.iter().find(|choice| {
                    left -= choice.p;
                    left < 0.0
                });
                let taken = chosen.unwrap_or(last);
                propensity = epsilon * taken.p / total;
                decision.prob = Some(taken.p);
                decision.binding = taken.binding;
                decision.verdict = Verdict::LookUp {
                    tool: taken.tool.clone(),
                    arguments: taken.arguments.clone().unwrap_or_default(),
                };
            } else {
                propensity = 1.0 - epsilon;
            }
        }
        decision.policy = Some(Policy {
            decider,
            threshold: offer.threshold,
            epsilon,
            explored,
            greedy,
            propensity,
            task_id: self.task_id,
            events: self.events,
            options,
        });
    }
}
