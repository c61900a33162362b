//! Fitting an arbiter to recorded sessions.
//!
//! Some tasks are held out. A flow is learned from the others, and at each step of the sessions
//! held out the model is asked what it would be asked live. How its answers, the habit and the
//! predicates go together with what the agent then did is what the weights say.
//!
//! [`Fitting::prepare`] makes the questions, whoever has a model asks them, and
//! [`Fitting::finish`] fits the weights to the answers. Nothing here asks anyone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use stretto_oracle::{Key, Request, Response};
use stretto_trace::{AfterCall, Event, ToolCall};

use super::conditional_logit::{self, Chosen};
use super::{ArbiterFile, Cues, OWN_WEIGHTS, logit, predicates};
use crate::decide::{Decider, Open, Opening, Settings};
use crate::explore::{mixed, task_hash};
use crate::file::{Fit, FlowFile, Provenance, Rates, SiteRecord};
use crate::flow::{Flow, RESPOND, site_name};
use crate::learn::{LearnError, LearnOptions, Progress, Session, Surroundings, learn};
use crate::live::Live;

/// The share of tasks that is held out.
const HELD_OUT: f64 = 0.3;

/// An arbiter on its way: a flow learned from a part of the sessions, and the decisions in the
/// others that a model is to be asked about.
#[derive(Debug)]
pub struct Fitting {
    flow: Arc<Flow>,
    decisions: Vec<Decision>,
}

/// A decision in a session that was held out.
#[derive(Debug)]
struct Decision {
    open: Open,
    key: Key,
    request: Request,
    /// What the agent did: a lookup, or nothing for anything else.
    agent: Option<String>,
}

impl Fitting {
    /// Learns a flow without the tasks held out, and makes the questions about those.
    ///
    /// `model` is the model that will be asked.
    ///
    /// # Errors
    ///
    /// There are too few tasks, or nothing to learn from in those that are not held out.
    pub fn prepare(
        sessions: &[&Session],
        surroundings: &Surroundings,
        options: &LearnOptions,
        model: &str,
        progress: &mut Progress<'_>,
    ) -> Result<Self, FitError> {
        let tasks = sessions.iter().map(|session| session.task());
        let held_out = held_out(tasks).map_err(FitError::TooFew)?;
        let (asked, learned): (Vec<&Session>, Vec<&Session>) = sessions
            .iter()
            .partition(|session| held_out.contains(session.task()));
        let mut file = learn(&learned, surroundings, options, progress)?;
        file.set_arbiter(&unweighted(&file, model));
        file.provenance.sources = sources(sessions);
        let flow = Arc::new(Flow::new(file));
        let mut decisions = Vec::new();
        for session in asked {
            decide(&flow, session, &mut decisions);
        }
        Ok(Self { flow, decisions })
    }

    /// How many decisions there are. Some may ask the same.
    pub fn decisions(&self) -> usize {
        self.decisions.len()
    }

    /// What is to be asked, each question once.
    pub fn requests(&self) -> BTreeMap<Key, Request> {
        let keyed = self.decisions.iter();
        keyed
            .map(|decision| (decision.key, decision.request.clone()))
            .collect()
    }

    /// The decisions as they are asked, each with the lookup that the agent then made, or nothing
    /// where it did anything else. Some may ask the same.
    pub fn asked(&self) -> impl Iterator<Item = (&Key, &Request, Option<&str>)> {
        let decisions = self.decisions.iter();
        decisions.map(|decision| (&decision.key, &decision.request, decision.agent.as_deref()))
    }

    /// Fits the weights, and returns the flow with its arbiter.
    ///
    /// Decisions whose question has no answer in `answers`, or an incomplete one, are left out.
    ///
    /// # Errors
    ///
    /// No decision is left.
    pub fn finish(self, answers: &BTreeMap<Key, Response>) -> Result<FlowFile, FitError> {
        let flow = &self.flow;
        let cases: Vec<Case> = self
            .decisions
            .iter()
            .filter_map(|decision| {
                let response = answers.get(&decision.key)?;
                let cues = Cues::read(&decision.open, &flow.file().weighed, response)?;
                let agent = decision.agent.as_deref().unwrap_or(RESPOND);
                Some(Case {
                    site: site_name(&decision.open.tool, decision.open.failed),
                    agent: cues.options.iter().position(|option| option == agent),
                    cues,
                })
            })
            .collect();
        if cases.is_empty() {
            return Err(FitError::NoAnswers(self.decisions.len()));
        }
        let mut file = flow.file().clone();
        let fitted = fit(&cases, OWN_WEIGHTS + file.weighed.len());
        file.folds.fill(fitted);
        file.provenance.arbiter_cases = cases.len() as u64;
        Ok(file)
    }
}

/// Why no arbiter was fitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// Some tasks have to be held out, and some left.
    #[error(
        "too few tasks to fit an arbiter: {0}, and it takes 2 or more; learn with --habit-only"
    )]
    TooFew(usize),
    /// There is nothing to learn from.
    #[error(transparent)]
    Learn(#[from] LearnError),
    /// No question was answered.
    #[error(
        "none of the {0} decisions in the sessions held out has an answer to fit an arbiter to"
    )]
    NoAnswers(usize),
}

/// A decision with the model's answer to it.
struct Case {
    site: String,
    cues: Cues,
    /// Which option the agent took, if it was on offer.
    agent: Option<usize>,
}

/// The tasks that are held out, which depend on nothing but the names of all.
fn held_out<'a, T: Iterator<Item = &'a str>>(tasks: T) -> Result<BTreeSet<String>, usize> {
    let tasks: BTreeSet<&str> = tasks.collect();
    let count = tasks.len();
    if count < 2 {
        return Err(count);
    }
    let mut ranked: Vec<&str> = tasks.into_iter().collect();
    ranked.sort_by_key(|task| mixed(task_hash(&format!("learn-split/{task}"))));
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a number of tasks"
    )]
    let share = (HELD_OUT * count as f64).round() as usize;
    ranked.truncate(share.clamp(1, count - 1));
    Ok(ranked.into_iter().map(str::to_owned).collect())
}

/// The models of all sessions, sorted.
fn sources(sessions: &[&Session]) -> Vec<String> {
    let sources = sessions
        .iter()
        .map(|session| session.episode.agent_model.clone());
    sources.collect::<BTreeSet<String>>().into_iter().collect()
}

/// An arbiter that weighs nothing yet, so that the flow's questions can be made.
fn unweighted(file: &FlowFile, model: &str) -> ArbiterFile {
    let predicates = predicates::usual();
    ArbiterFile {
        stretto_arbiter: 1,
        domain: file.manifest.domain.clone(),
        provenance: Provenance::default(),
        weighed: predicates.clone(),
        fitted: Fit {
            weights: vec![0.0; OWN_WEIGHTS + predicates.len()],
            rates: Rates {
                sites: BTreeMap::new(),
                agree: 0.5,
                cover: 1.0,
            },
        },
        predicates,
        model: model.to_owned(),
    }
}

/// Adds the decisions of a session: one at each step that follows a call with lookups on offer.
fn decide(flow: &Arc<Flow>, session: &Session, decisions: &mut Vec<Decision>) {
    let events = &session.episode.events;
    let mut results: HashMap<&str, &Event> = HashMap::new();
    for event in events {
        if let Event::ToolResult { call_id, .. } = event {
            results.entry(call_id).or_insert(event);
        }
    }
    let settings = Settings {
        ignore_promotion: true,
        ..Settings::new(Decider::Arbiter, session.task())
    };
    // The call of the step before, if that was one.
    let mut before: Option<&ToolCall> = None;
    for (at, event) in events.iter().enumerate() {
        let Event::Assistant { calls, .. } = event else {
            continue;
        };
        let steps = if calls.is_empty() { 1 } else { calls.len() };
        for step in 0..steps {
            if let Some(last) = before.filter(|last| results.contains_key(last.id.as_str())) {
                let seen = seen(events, at, step, &results);
                let agent = calls.get(step).map(|call| call.name.clone());
                decisions.extend(decision(flow, &seen, &last.id, &settings, agent));
            }
            before = calls.get(step);
        }
    }
}

/// The session before a step: the events before its turn, and of the turn the calls before the
/// step, with their results. Those may have come later; but live, a decision that follows a call
/// sees what it returned.
fn seen(events: &[Event], at: usize, step: usize, results: &HashMap<&str, &Event>) -> Vec<Event> {
    let (past, rest) = events.split_at(at);
    let mut seen = past.to_vec();
    let Some(Event::Assistant { text, calls, usage }) = rest.first() else {
        return seen;
    };
    let (made, _) = calls.split_at(step.min(calls.len()));
    if made.is_empty() {
        return seen;
    }
    seen.push(Event::Assistant {
        text: text.clone(),
        calls: made.to_vec(),
        usage: *usage,
    });
    let returned = made.iter().filter_map(|call| results.get(call.id.as_str()));
    seen.extend(returned.map(|result| (*result).clone()));
    seen
}

fn decision(
    flow: &Arc<Flow>,
    seen: &[Event],
    after: &str,
    settings: &Settings,
    agent: Option<String>,
) -> Option<Decision> {
    let mut live = Live::new(Arc::clone(flow));
    live.follow(seen);
    let Ok(Opening::Open(open)) = live.open(after, settings) else {
        return None;
    };
    let request = flow.question(&open, &AfterCall::new(seen, after));
    // Whatever is no lookup is handing back.
    let agent = agent.filter(|tool| flow.file().sites.reads.contains(tool));
    Some(Decision {
        open,
        key: request.key(),
        request,
        agent,
    })
}

/// The weights and rates that go with the cases.
fn fit(cases: &[Case], width: usize) -> Fit {
    let rates = rates(cases);
    let chosen: Vec<Chosen> = cases
        .iter()
        .filter_map(|case| {
            let (reliability, _) = rates.at(&case.site);
            let rows = case.cues.rows.iter().enumerate().map(|(option, row)| {
                let last = if option == case.cues.pick {
                    logit(reliability)
                } else {
                    0.0
                };
                row.iter().copied().chain([last]).collect()
            });
            Some(Chosen {
                rows: rows.collect(),
                chosen: case.agent?,
            })
        })
        .collect();
    Fit {
        weights: conditional_logit::fit(&chosen, width),
        rates,
    }
}

/// How often the model was right, and the agent's step on offer.
fn rates(cases: &[Case]) -> Rates {
    let mut sites: BTreeMap<String, SiteRecord> = BTreeMap::new();
    let mut all = SiteRecord::default();
    for case in cases {
        let agreed = f64::from(case.agent == Some(case.cues.pick));
        let covered = f64::from(case.agent.is_some());
        for record in [sites.entry(case.site.clone()).or_default(), &mut all] {
            record.0 += 1.0;
            record.1 += agreed;
            record.2 += covered;
        }
    }
    let share = |count: f64, without: f64| if all.0 > 0.0 { count / all.0 } else { without };
    Rates {
        agree: share(all.1, 0.5),
        cover: share(all.2, 1.0),
        sites,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_of_ten_tasks_are_held_out_and_always_the_same() {
        let tasks: Vec<String> = (0..10).map(|task| task.to_string()).collect();
        let of = |tasks: &[String]| held_out(tasks.iter().map(String::as_str));
        let held = of(&tasks).unwrap();
        assert_eq!(held.len(), 3);
        let mut shuffled = tasks.clone();
        shuffled.reverse();
        shuffled.push("3".to_owned());
        assert_eq!(of(&shuffled).unwrap(), held);
        assert_eq!(of(&tasks[..2]).unwrap().len(), 1);
        assert_eq!(of(&tasks[..5]).unwrap().len(), 2);
        assert_eq!(of(&tasks[..1]), Err(1));
        assert_eq!(of(&[]), Err(0));
    }

    #[test]
    fn the_usual_predicates_each_have_their_own_id_and_favor() {
        let ids: Vec<String> = predicates::usual()
            .into_iter()
            .map(|predicate| predicate.id)
            .collect();
        assert_eq!(ids, ["list_pending", "needs_options", "must_ask"]);
    }

    fn case(site: &str, pick: usize, agent: Option<usize>) -> Case {
        Case {
            site: site.to_owned(),
            agent,
            cues: Cues {
                options: vec!["a".to_owned(), RESPOND.to_owned()],
                rows: vec![vec![-1.0, -0.5, -0.5, 0.0], vec![-0.5, -1.0, -1.0, 1.0]],
                pick,
                oracle: BTreeMap::new(),
            },
        }
    }

    #[test]
    fn rates_count_picks_that_were_the_agents_and_steps_that_were_on_offer() {
        let cases = [
            case("x", 0, Some(0)),
            case("x", 0, Some(1)),
            case("x", 0, None),
            case("y", 1, Some(1)),
        ];
        let rates = rates(&cases);
        assert_eq!(rates.sites["x"], SiteRecord(3.0, 1.0, 2.0));
        assert_eq!(rates.sites["y"], SiteRecord(1.0, 1.0, 1.0));
        assert!((rates.agree - 0.5).abs() < 1e-12 && (rates.cover - 0.75).abs() < 1e-12);
        let none = super::rates(&[]);
        assert!((none.agree - 0.5).abs() < 1e-12 && (none.cover - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_model_that_is_always_right_is_given_weight() {
        let cases: Vec<Case> = (0..40).map(|n| case("x", n % 2, Some(n % 2))).collect();
        let fitted = fit(&cases, 5);
        assert_eq!(fitted.weights.len(), 5);
        for case in &cases {
            let probabilities = case.cues.probabilities(&fitted, "x");
            let picked = &case.cues.options[case.cues.pick];
            assert!(probabilities[picked] > 0.9, "{probabilities:?}");
        }
    }
}
