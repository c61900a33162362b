//! How well a flow's probabilities fit what agents did.

use std::collections::BTreeMap;
use std::sync::Arc;

use stretto_trace::Event;

use super::each::each;
use super::{Ask, Deciding, Recorded, Returned, Seen, play};
use crate::decide::{Decision, Settings, Verdict};
use crate::flow::{Flow, RESPOND};
use crate::gate::FLOOR;
use crate::learn::Session;
use crate::live::{Live, OWN_ID};
use crate::run::{Answer, Next};

/// The decisions of a site, or of a session, beside what the agent did next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SiteAudit {
    /// Decisions that had probabilities.
    pub decisions: u64,
    /// How often the agent did what was likeliest; of equals, what comes first by name.
    pub likeliest: u64,
    /// The sum of `−ln max(p, 1e-6)`, in nats, where `p` was the probability of what it did.
    pub nats: f64,
}

impl SiteAudit {
    /// Nats a decision; none without decisions.
    #[expect(clippy::cast_precision_loss, reason = "decisions are far below 2^53")]
    pub fn mean(&self) -> Option<f64> {
        (self.decisions > 0).then(|| self.nats / self.decisions as f64)
    }

    fn add(&mut self, other: &Self) {
        self.decisions += other.decisions;
        self.likeliest += other.likeliest;
        self.nats += other.nats;
    }
}

/// One session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionAudit {
    /// Its id.
    pub session: String,
    /// Its decisions.
    pub steps: SiteAudit,
    /// The largest surprise of a run that the flow would have made in it; none without runs.
    pub surprise: Option<f64>,
}

/// What an audit found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Audit {
    /// Each site at which the flow decided.
    pub sites: BTreeMap<String, SiteAudit>,
    /// Each session, the one that fits worst first.
    pub sessions: Vec<SessionAudit>,
    /// Decisions that had no answer.
    pub unanswered: u64,
}

impl Audit {
    fn add(&mut self, other: Self) {
        for (name, site) in &other.sites {
            self.sites.entry(name.clone()).or_default().add(site);
        }
        self.sessions.extend(other.sessions);
        self.unanswered += other.unanswered;
    }

    /// All decisions.
    pub fn total(&self) -> SiteAudit {
        self.sites
            .values()
            .fold(SiteAudit::default(), |mut total, site| {
                total.add(site);
                total
            })
    }
}

/// Holds a flow's probabilities against what the agents of some sessions did.
///
/// A step is scored at each result that something else follows than another result, and that
/// the agent goes on from by itself. `per_call` bounds the runs, as when it is served.
pub fn audit(
    flow: &Arc<Flow>,
    sessions: &[&Session],
    settings: &Settings,
    per_call: usize,
    progress: &mut dyn FnMut(usize, usize),
    ask: &mut Ask<'_>,
) -> Audit {
    let audits = each(
        sessions,
        settings.decider,
        &mut |done| progress(done, sessions.len()),
        ask,
        &|session, ask| {
            let recorded = Recorded::new(session);
            let mut auditing = Auditing {
                deciding: Deciding::new(&recorded, settings, ask),
                per_call,
                steps: SiteAudit::default(),
                surprise: None,
                audit: Audit::default(),
            };
            play(flow, &recorded, &mut |live, returned| {
                auditing.result(live, returned);
            });
            let mut audit = auditing.audit;
            audit.sessions.push(SessionAudit {
                session: session.episode.id.clone(),
                steps: auditing.steps,
                surprise: auditing.surprise,
            });
            audit
        },
    );
    let mut audit = Audit::default();
    for session in audits {
        audit.add(session);
    }
    let worst = |one: &SessionAudit| one.steps.mean().unwrap_or(-1.0);
    audit
        .sessions
        .sort_by(|one, other| worst(other).total_cmp(&worst(one)));
    audit
}

struct Auditing<'a, 'ask> {
    deciding: Deciding<'a, 'ask>,
    per_call: usize,
    steps: SiteAudit,
    surprise: Option<f64>,
    audit: Audit,
}

impl<'a> Auditing<'a, '_> {
    fn result(&mut self, live: &Live, returned: Returned<'a>) {
        if Live::is_own(returned.call) {
            return;
        }
        let mut live = live.clone();
        if !live.ends_in_call(returned.call) {
            return;
        }
        let mut seen = Seen {
            events: None,
            turn: returned.turn,
        };
        let Some(first) = self
            .deciding
            .decide(&mut live, returned.call, &mut seen, returned.at)
        else {
            self.audit.unanswered += 1;
            return;
        };
        if let Some(step) = self.step_after(returned.at) {
            self.score(&first, step);
        }
        self.run(live, first, seen, returned);
    }

    /// What the agent did after an event: its first call's tool, or a message; none when its
    /// turn is not over, and when a flow went on for it.
    fn step_after(&self, at: usize) -> Option<&'a str> {
        match self.deciding.recorded.session.episode.events.get(at + 1)? {
            Event::ToolResult { .. } => None,
            Event::User { .. } => Some(RESPOND),
            Event::Assistant { calls, .. } => match calls.first() {
                Some(call) if Live::is_own(&call.id) => None,
                Some(call) => Some(&call.name),
                None => Some(RESPOND),
            },
        }
    }

    fn score(&mut self, decision: &Decision, step: &str) {
        let Some(site) = decision
            .site
            .as_ref()
            .filter(|_| !decision.probs.is_empty())
        else {
            return;
        };
        let step = if decision.probs.contains_key(step) {
            step
        } else {
            RESPOND
        };
        let chance = decision.probs.get(step).copied().unwrap_or_default();
        let mut likeliest: Option<(&str, f64)> = None;
        for (option, chance) in &decision.probs {
            if likeliest.is_none_or(|(_, largest)| *chance > largest) {
                likeliest = Some((option, *chance));
            }
        }
        let one = SiteAudit {
            decisions: 1,
            likeliest: u64::from(likeliest.is_some_and(|(option, _)| option == step)),
            nats: -chance.max(FLOOR).ln(),
        };
        self.steps.add(&one);
        self.audit.sites.entry(site.clone()).or_default().add(&one);
    }

    /// The run that the flow would have made, as far as the session tells what it would have
    /// found.
    fn run(&mut self, mut live: Live, first: Decision, mut seen: Seen, returned: Returned<'a>) {
        let recorded = self.deciding.recorded;
        let Returned { call, turn, at } = returned;
        let Some((tool, failed)) = live.view(call).last else {
            return;
        };
        let most = u32::try_from(self.per_call).unwrap_or(u32::MAX);
        let flow = live.flow();
        let (mut run, mut next) = flow.run(&tool, failed, most);
        let mut decision = Some(first);
        let mut after = call.to_owned();
        let mut found = None;
        let mut made = 0;
        let record = loop {
            next = match next {
                Next::Decide(site) => {
                    let decided = decision
                        .take()
                        .or_else(|| self.deciding.decide(&mut live, &after, &mut seen, at));
                    let lookup = decided.and_then(|decided| match decided.verdict {
                        Verdict::LookUp { tool, arguments } if site.offers(&tool) => {
                            let (_, call) = recorded.later(&tool, &arguments, turn, &|_| true)?;
                            let result = recorded.results.get(call.id.as_str())?;
                            Some((tool, arguments, *result))
                        }
                        _ => None,
                    });
                    match lookup {
                        Some((tool, arguments, result)) => {
                            found = Some((tool.clone(), arguments, result));
                            run.resume(Answer::LookUp(tool))
                        }
                        None => run.resume(Answer::HandBack),
                    }
                }
                Next::LookUp { .. } => {
                    let (Some((tool, arguments, (failed, content))), Some(entry)) =
                        (found.take(), live.turn_of(call))
                    else {
                        return;
                    };
                    made += 1;
                    after = format!("{OWN_ID}{made}");
                    let arguments = serde_json::Value::Object(arguments);
                    live.call(entry, &after, &tool, &arguments);
                    live.result(&after, &tool, failed, content);
                    seen.looked_up(&after, &tool, arguments, (failed, content));
                    run.resume(Answer::Returned(!failed))
                }
                Next::HandBack(record) => break record,
            };
        };
        if let Some(record) = record.filter(|_| made > 0) {
            let surprise = self.surprise.unwrap_or_default().max(record.surprise);
            self.surprise = Some(surprise);
        }
    }
}
