//! Which lookup to make, given each option's probability.

use std::collections::BTreeMap;

use super::{Decision, Heard, Verdict};
use crate::memory::{Pick, Unbound};

/// What a site offers.
pub(super) struct Offer<'a> {
    /// The lookups, in the order of their names.
    pub(super) lookups: Vec<&'a str>,
    /// Each one's probability.
    pub(super) chances: Vec<f64>,
    /// What a lookup must reach.
    pub(super) threshold: f64,
}

/// Arguments with their chance, or why there are none.
pub(super) type Bound = Result<(Pick, f64), Unbound>;

/// What a rule chose.
pub(super) struct Ruled {
    verdict: Verdict,
    prob: Option<f64>,
    binding: Option<f64>,
}

impl Ruled {
    fn hand_back(reason: String, prob: Option<f64>, binding: Option<f64>) -> Self {
        Self {
            verdict: Verdict::HandBack { reason },
            prob,
            binding,
        }
    }

    pub(super) fn into_decision(self, site: String, probs: BTreeMap<String, f64>) -> Decision {
        Decision {
            verdict: self.verdict,
            site: Some(site),
            probs,
            prob: self.prob,
            binding: self.binding,
            heard: Heard::default(),
            policy: None,
        }
    }
}

impl Offer<'_> {
    /// The rule of the arbiter and the habit: the likeliest lookup, or none.
    pub(super) fn likeliest(&self, bind: &mut impl FnMut(usize) -> Bound) -> Ruled {
        let Some(index) = first_largest(&self.chances) else {
            return nothing();
        };
        let chance = self.chances[index];
        if chance < self.threshold {
            return self.below(index);
        }
        match bind(index) {
            Err(why) => self.unbound(index, &why),
            Ok(bound) => self.weigh(index, bound),
        }
    }

    /// The rule of reach: of the lookups that reach the threshold and bind, the one with
    /// the best product of probability and binding.
    pub(super) fn best(&self, bind: &mut impl FnMut(usize) -> Bound) -> Ruled {
        let mut best: Option<(usize, (Pick, f64), f64)> = None;
        let mut failed = None;
        let mut low: Option<usize> = None;
        for (index, chance) in self.chances.iter().enumerate() {
            if *chance < self.threshold {
                if low.is_none_or(|low| *chance > self.chances[low]) {
                    low = Some(index);
                }
                continue;
            }
            match bind(index) {
                Err(why) => failed = Some((index, why)),
                Ok((pick, binding)) => {
                    let product = chance * binding;
                    if best.as_ref().is_none_or(|(.., best)| product > *best) {
                        best = Some((index, (pick, binding), product));
                    }
                }
            }
        }
        match (best, failed, low) {
            (Some((index, bound, _)), ..) => self.weigh(index, bound),
            (None, Some((index, why)), _) => self.unbound(index, &why),
            (None, None, Some(index)) => self.below(index),
            (None, None, None) => nothing(),
        }
    }

    /// Takes a bound lookup if its arguments leave it above the threshold.
    fn weigh(&self, index: usize, (pick, binding): (Pick, f64)) -> Ruled {
        let (tool, chance) = (self.lookups[index], self.chances[index]);
        if chance * binding < self.threshold {
            let reason = format!(
                "{tool} at {chance:.2}, times {binding:.2} for its arguments, below {}",
                self.threshold
            );
            return Ruled::hand_back(reason, Some(chance), Some(binding));
        }
        Ruled {
            verdict: Verdict::LookUp {
                tool: tool.to_owned(),
                arguments: pick.arguments,
            },
            prob: Some(chance),
            binding: Some(binding),
        }
    }

    fn below(&self, index: usize) -> Ruled {
        let (tool, chance) = (self.lookups[index], self.chances[index]);
        let reason = format!("{tool} at {chance:.2}, below {}", self.threshold);
        Ruled::hand_back(reason, Some(chance), None)
    }

    fn unbound(&self, index: usize, why: &Unbound) -> Ruled {
        let reason = format!("{}: {why}", self.lookups[index]);
        Ruled::hand_back(reason, Some(self.chances[index]), None)
    }
}

fn nothing() -> Ruled {
    Ruled::hand_back("no lookup to make".to_owned(), None, None)
}

/// The first of the largest.
fn first_largest(chances: &[f64]) -> Option<usize> {
    let mut largest: Option<usize> = None;
    for (index, chance) in chances.iter().enumerate() {
        if largest.is_none_or(|largest| *chance > chances[largest]) {
            largest = Some(index);
        }
    }
    largest
}
