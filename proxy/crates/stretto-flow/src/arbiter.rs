//! The arbiter: the habit, a model's answers and predicates, combined into probabilities.
//!
//! Each option has a row of features, and the options' probabilities are a conditional logit
//! over them: `P(o) = coverage · exp(w·x(o)) / Σ exp(w·x)`. The coverage is the chance that the
//! agent's step is on offer at all, so the probabilities sum to it.
//!
//! | Feature | Of an option |
//! |---|---|
//! | 1 | `ln` of the habit's chance |
//! | 2 | `ln` of the model's probability in the question for the next step |
//! | 3 | `ln` of its probability by the two questions that split that one: whether another lookup comes, and which |
//! | 4 | 1 for handing back |
//! | one per weighed predicate | the `logit` of its answer, on the options it favors |
//! | the last | the `logit` of how often the model was right at the site, on its pick |

mod conditional_logit;
mod fit;
mod predicates;
mod shipped;

use std::collections::BTreeMap;

use stretto_oracle::{Key, Response};

use crate::decide::{Decision, Heard, Open};
use crate::explore::fold;
use crate::file::{Favors, Fit, Predicate, Rates};
use crate::flow::{Flow, RESPOND, site_name};
use crate::questions::{GO_ON, NEXT, TOOL, predicate_id};

pub use fit::{FitError, Fitting};
pub use shipped::{ArbiterError, ArbiterFile, ArbiterLoadError, NoArbiter};

/// How many weights a fit has beside those of the weighed predicates.
const OWN_WEIGHTS: usize = 5;

/// The least probability that a logarithm is taken of.
const LEAST: f64 = 1e-6;

/// How far a probability is kept from 0 and 1 in a logit.
const MARGIN: f64 = 1e-4;

/// How many decisions the rates over all sites count as, at each site.
const PRIOR_DECISIONS: f64 = 10.0;

impl Flow {
    /// Settles an open decision with what came of its [question](Flow::question): the answers,
    /// or why there are none, on one line.
    ///
    /// `key` is the request's, and `task_id` the task, which tells the fit to use.
    pub fn settle(
        &self,
        open: Open,
        key: &Key,
        task_id: &str,
        answer: Result<&Response, &str>,
    ) -> Decision {
        let asked = Heard {
            key: Some(key.to_string()),
            ..Heard::default()
        };
        let response = match answer {
            Ok(response) => response,
            Err(why) => {
                return open.hand_back(format!("the System-One model failed: {why}"), asked);
            }
        };
        let file = self.file();
        let cues = Cues::read(&open, &file.weighed, response);
        let fit = usize::try_from(fold(task_id, file.folds.len() as u64));
        let fit = fit.ok().and_then(|fold| file.folds.get(fold));
        let (Some(cues), Some(fit)) = (cues, fit) else {
            return open.hand_back("the System-One answer was incomplete", asked);
        };
        let probs = cues.probabilities(fit, &site_name(&open.tool, open.failed));
        let predicates = file.predicates.iter().filter_map(|predicate| {
            Some((
                predicate.id.clone(),
                response.noul(&predicate_id(predicate))?,
            ))
        });
        let heard = Heard {
            oracle: cues.oracle,
            predicates: predicates.collect(),
            ..asked
        };
        open.decide(probs, heard)
    }
}

/// What speaks for each option of a decision.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cues {
    /// The options in the order of their names, handing back among them.
    options: Vec<String>,
    /// Each option's features, without the last.
    rows: Vec<Vec<f64>>,
    /// Which option the model chose.
    pick: usize,
    /// What the model said of the next step.
    oracle: BTreeMap<String, f64>,
}

impl Cues {
    /// Reads a model's answers; nothing when one of its own three questions was not answered.
    fn read(open: &Open, weighed: &[Predicate], response: &Response) -> Option<Self> {
        let (choice, next) = response.choice(NEXT)?;
        let go_on = response.noul(GO_ON)?;
        let tool = match open.lookups.as_slice() {
            [_] => None,
            _ => Some(response.choice(TOOL)?.1),
        };
        let mut options: Vec<(&str, f64)> = open
            .lookups
            .iter()
            .map(String::as_str)
            .zip(open.habit.iter().copied())
            .collect();
        options.push((RESPOND, open.habit_respond));
        options.sort_by_key(|(option, _)| *option);

        let given = |answers: &BTreeMap<String, f64>, option: &str| {
            answers.get(option).copied().unwrap_or(0.0)
        };
        let row = |(option, habit): &(&str, f64)| {
            let is_respond = *option == RESPOND;
            let split = match tool {
                _ if is_respond => 1.0 - go_on,
                Some(tool) => go_on * given(tool, option),
                None => go_on,
            };
            let own = [
                ln(*habit),
                ln(given(next, option)),
                ln(split),
                f64::from(is_respond),
            ];
            let predicates = weighed.iter().map(|predicate| {
                let answer = response.noul(&predicate_id(predicate));
                let is_favored = favors(&predicate.favors, option, &open.tool);
                answer.filter(|_| is_favored).map_or(0.0, logit)
            });
            own.into_iter().chain(predicates).collect()
        };
        let place = |wanted: &str| options.iter().position(|(option, _)| *option == wanted);
        Some(Self {
            rows: options.iter().map(row).collect(),
            // A choice that is no option is anything but a lookup.
            pick: place(choice).or_else(|| place(RESPOND))?,
            options: options
                .iter()
                .map(|(option, _)| (*option).to_owned())
                .collect(),
            oracle: next.clone(),
        })
    }

    /// Each option's probability. They sum to the site's coverage.
    fn probabilities(&self, fit: &Fit, site: &str) -> BTreeMap<String, f64> {
        let (reliability, coverage) = fit.rates.at(site);
        let scores: Vec<f64> = self
            .rows
            .iter()
            .enumerate()
            .map(|(option, row)| {
                let last = if option == self.pick {
                    logit(reliability)
                } else {
                    0.0
                };
                let features = row.iter().copied().chain([last]);
                features
                    .zip(&fit.weights)
                    .map(|(x, weight)| x * weight)
                    .sum()
            })
            .collect();
        let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - highest).exp()).collect();
        let total: f64 = weights.iter().sum();
        let probabilities = weights.into_iter().map(|weight| coverage * weight / total);
        self.options.iter().cloned().zip(probabilities).collect()
    }
}

impl Rates {
    /// How often the model is right at a site, and how often the agent's step is on offer
    /// there, both drawn towards what they are over all sites.
    fn at(&self, site: &str) -> (f64, f64) {
        let record = self.sites.get(site).copied().unwrap_or_default();
        let drawn = |count: f64, over_all: f64| {
            (count + PRIOR_DECISIONS * over_all) / (record.0 + PRIOR_DECISIONS)
        };
        (drawn(record.1, self.agree), drawn(record.2, self.cover))
    }
}

/// Whether a yes to a predicate speaks for an option, after a call of `tool`.
fn favors(favors: &Favors, option: &str, tool: &str) -> bool {
    match favors {
        Favors::SameLookup => option == tool,
        Favors::AnyLookup => option != RESPOND,
        Favors::HandBack => option == RESPOND,
        Favors::Lookup(lookup) => option == lookup,
    }
}

fn ln(p: f64) -> f64 {
    p.max(LEAST).ln()
}

fn logit(p: f64) -> f64 {
    let p = p.clamp(MARGIN, 1.0 - MARGIN);
    (p / (1.0 - p)).ln()
}

#[cfg(test)]
mod tests;
