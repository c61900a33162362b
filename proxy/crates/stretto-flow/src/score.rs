//! What a flow would have done in recorded sessions, held against what the agent did.

mod audit;
mod cross;
mod each;
mod promote;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};
use stretto_oracle::{Request, Response};
use stretto_trace::{AfterCall, Event, ToolCall};

pub use self::audit::{Audit, SessionAudit, SiteAudit, audit};
pub use self::cross::{CrossValidation, Scores, cross_validate};
pub use self::promote::{lower_bound, promote};
use crate::decide::{Decision, Opening, Settings, Verdict};
use crate::flow::Flow;
use crate::learn::{Session, holds};
use crate::live::{Live, OWN_ID};

/// The most lookups of a run, as a flow is usually served.
pub const PER_CALL: usize = 8;

/// What a flow would have done at one site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteScore {
    /// Decisions.
    pub decisions: u64,
    /// Lookups among them.
    pub lookups: u64,
    /// Lookups that the agent made itself later on.
    pub used: u64,
    /// The tasks with a lookup.
    pub tasks: BTreeSet<String>,
}

/// What a flow would have done in some sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Each site, by name.
    pub sites: BTreeMap<String, SiteScore>,
    /// Decisions that could not be taken.
    pub unanswered: u64,
    /// How many turns the agent took: its calls of one turn, or a message. Turns of a flow's
    /// own lookups are none of the agent's.
    pub turns: u64,
    /// Turns that the agent would not have needed: every call was looked up before.
    pub turns_spared: u64,
}

impl Score {
    /// All decisions.
    pub fn decisions(&self) -> u64 {
        self.sites.values().map(|site| site.decisions).sum()
    }

    /// All lookups.
    pub fn lookups(&self) -> u64 {
        self.sites.values().map(|site| site.lookups).sum()
    }

    /// Lookups that the agent made itself later on.
    pub fn used(&self) -> u64 {
        self.sites.values().map(|site| site.used).sum()
    }

    /// Lookups that the agent never made.
    pub fn detours(&self) -> u64 {
        self.lookups() - self.used()
    }

    /// Adds the score of other sessions.
    pub fn add(&mut self, other: &Self) {
        for (name, site) in &other.sites {
            let own = self.sites.entry(name.clone()).or_default();
            own.decisions += site.decisions;
            own.lookups += site.lookups;
            own.used += site.used;
            own.tasks.extend(site.tasks.iter().cloned());
        }
        self.unanswered += other.unanswered;
        self.turns += other.turns;
        self.turns_spared += other.turns_spared;
    }
}

/// Whoever answers an arbiter's questions: with a model's answers, or why there are none.
pub type Ask<'a> = dyn FnMut(&Request) -> Result<Response, String> + 'a;

/// Scores `flow` on one session, as it would be served with `settings`, but for its own
/// promotion. The arbiter's questions go to `ask`; no other decider has any.
///
/// Each call is scored once: what a lookup has covered starts no run of its own. A run may
/// chain on from a site only if `may_chain` says so, and makes `per_call` lookups at most.
pub fn score(
    flow: &Arc<Flow>,
    session: &Session,
    settings: &Settings,
    per_call: usize,
    may_chain: &(dyn Fn(&str) -> bool + Sync),
    ask: &mut Ask<'_>,
) -> Score {
    let recorded = Recorded::new(session);
    let mut scoring = Scoring {
        deciding: Deciding::new(&recorded, settings, ask),
        per_call,
        may_chain,
        covered: HashSet::new(),
        detours: HashSet::new(),
        score: Score::default(),
    };
    play(flow, &recorded, &mut |live, returned| {
        scoring.result(live, returned);
    });
    scoring.count_turns();
    scoring.score
}

/// The calls and results of a session.
pub(crate) struct Recorded<'a> {
    session: &'a Session,
    calls: HashMap<&'a str, Vec<(usize, &'a ToolCall)>>,
    results: HashMap<&'a str, (bool, &'a str)>,
    turns: HashMap<&'a str, usize>,
}

impl<'a> Recorded<'a> {
    pub(crate) fn new(session: &'a Session) -> Self {
        let mut calls = HashMap::<&str, Vec<_>>::new();
        let mut results = HashMap::new();
        let mut turns = HashMap::new();
        for (at, event) in session.episode.events.iter().enumerate() {
            match event {
                Event::Assistant { calls: made, .. } => {
                    for call in made {
                        turns.insert(call.id.as_str(), at);
                        calls
                            .entry(call.name.as_str())
                            .or_default()
                            .push((at, call));
                    }
                }
                Event::ToolResult {
                    call_id,
                    error,
                    content,
                    ..
                } => {
                    results
                        .entry(call_id.as_str())
                        .or_insert((*error, content.as_str()));
                }
                Event::User { .. } => {}
            }
        }
        Self {
            session,
            calls,
            results,
            turns,
        }
    }

    /// The host sends those calls of a turn that come once `back` of its results are.
    fn send(&self, live: &mut Live, calls: &[ToolCall], entry: usize, back: usize) {
        let answered = &self.session.answered_before;
        for call in calls {
            if answered.get(&call.id).copied().unwrap_or(0) == back {
                live.call(entry, &call.id, &call.name, &call.arguments);
            }
        }
    }

    /// The turn that a call was made in, as the place of its event.
    pub(crate) fn turn_of(&self, call: &str) -> Option<usize> {
        self.turns.get(call).copied()
    }

    /// The first call, in a turn after `turn`, of `tool` with each of `arguments`, among those
    /// whose ids `counts` takes; and that turn.
    pub(crate) fn later(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        turn: usize,
        counts: &dyn Fn(&str) -> bool,
    ) -> Option<(usize, &'a ToolCall)> {
        let calls = self.calls.get(tool).into_iter().flatten();
        let same = |call: &ToolCall| {
            call.arguments
                .as_object()
                .is_some_and(|passed| holds(passed, arguments))
        };
        calls
            .copied()
            .filter(|(at, call)| *at > turn && counts(&call.id))
            .find(|(_, call)| same(call))
    }
}

/// A call that has just returned in a session that is played again.
#[derive(Clone, Copy)]
struct Returned<'a> {
    /// Its id.
    call: &'a str,
    /// The event of its turn.
    turn: usize,
    /// The event of its result.
    at: usize,
}

/// Plays a session up to each result of a call, and shows it to `visit` as it stands then. The
/// last event is none that anything follows, and is left out.
fn play<'a>(flow: &Arc<Flow>, recorded: &Recorded<'a>, visit: &mut dyn FnMut(&Live, Returned<'a>)) {
    let mut live = Live::new(Arc::clone(flow));
    let events = &recorded.session.episode.events;
    let mut entries = HashMap::new();
    let mut back = HashMap::<usize, usize>::new();
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::Assistant { calls, .. } if !calls.is_empty() => {
                let entry = live.begin_turn();
                entries.insert(at, entry);
                recorded.send(&mut live, calls, entry, 0);
            }
            Event::User { .. } | Event::Assistant { .. } => live.said(event),
            Event::ToolResult {
                call_id,
                name,
                error,
                content,
            } => {
                live.result(call_id, name, *error, content);
                let Some(turn) = recorded.turn_of(call_id) else {
                    continue;
                };
                let back = back.entry(turn).or_default();
                *back += 1;
                if let Event::Assistant { calls, .. } = &events[turn] {
                    recorded.send(&mut live, calls, entries[&turn], *back);
                }
                if at + 1 < events.len() {
                    let call = call_id.as_str();
                    visit(&live, Returned { call, turn, at });
                }
            }
        }
    }
}

/// Decisions in a recorded session.
struct Deciding<'a, 'ask> {
    recorded: &'a Recorded<'a>,
    settings: Settings,
    ask: &'a mut Ask<'ask>,
}

impl<'a, 'ask> Deciding<'a, 'ask> {
    /// As the flow would be served with `settings`, but for its own promotion.
    fn new(recorded: &'a Recorded<'a>, settings: &Settings, ask: &'a mut Ask<'ask>) -> Self {
        Self {
            recorded,
            settings: Settings {
                task_id: recorded.session.task().to_owned(),
                explore: None,
                ignore_promotion: true,
                ..settings.clone()
            },
            ask,
        }
    }

    /// Decides after a call; nothing when the decision has no probabilities that it should have.
    fn decide(
        &mut self,
        live: &mut Live,
        after: &str,
        seen: &mut Seen,
        at: usize,
    ) -> Option<Decision> {
        let open = match live.open(after, &self.settings).ok()? {
            Opening::Decided(decision) => return Some(decision),
            Opening::Open(open) => open,
        };
        let events = seen.events.get_or_insert_with(|| {
            let (past, _) = self.recorded.session.episode.events.split_at(at + 1);
            past.to_vec()
        });
        let flow = live.flow();
        let request = flow.question(&open, &AfterCall::new(events, after));
        let answer = (self.ask)(&request);
        let answer = answer.as_ref().map_err(String::as_str);
        let decision = flow.settle(open, &request.key(), &self.settings.task_id, answer);
        Some(decision).filter(|decision| !decision.probs.is_empty())
    }
}

struct Scoring<'a, 'ask> {
    deciding: Deciding<'a, 'ask>,
    per_call: usize,
    may_chain: &'a dyn Fn(&str) -> bool,
    /// The calls that a lookup has covered, by id.
    covered: HashSet<&'a str>,
    /// Lookups that were counted as detours: the tool, and its arguments as text.
    detours: HashSet<(String, String)>,
    score: Score,
}

impl<'a> Scoring<'a, '_> {
    fn result(&mut self, live: &Live, returned: Returned<'a>) {
        if !Live::is_own(returned.call) && !self.covered.contains(returned.call) {
            self.run(live, returned);
        }
    }

    fn count_turns(&mut self) {
        for event in &self.deciding.recorded.session.episode.events {
            let Event::Assistant { calls, .. } = event else {
                continue;
            };
            if !calls.is_empty() && calls.iter().all(|call| Live::is_own(&call.id)) {
                continue;
            }
            self.score.turns += 1;
            let is_spared = !calls.is_empty()
                && calls
                    .iter()
                    .all(|call| self.covered.contains(call.id.as_str()));
            self.score.turns_spared += u64::from(is_spared);
        }
    }

    /// The run that would have followed a call that has just returned.
    fn run(&mut self, now: &Live, Returned { call, turn, at }: Returned<'a>) {
        let recorded = self.deciding.recorded;
        let mut live = None;
        let mut seen = Seen { events: None, turn };
        let mut after = call.to_owned();
        let mut used = 0;
        loop {
            let live = live.get_or_insert_with(|| now.clone());
            if !live.ends_in_call(&after) {
                return;
            }
            let Some(decision) = self.deciding.decide(live, &after, &mut seen, at) else {
                self.score.unanswered += 1;
                return;
            };
            let Some(name) = decision.site else { return };
            let site = self.score.sites.entry(name.clone()).or_default();
            let Verdict::LookUp { tool, arguments } = decision.verdict else {
                site.decisions += 1;
                return;
            };
            site.decisions += 1;
            let key = (tool.clone(), Value::Object(arguments.clone()).to_string());
            let found = recorded.later(&tool, &arguments, turn, &|_| true);
            let Some((_, found)) = found else {
                if self.detours.insert(key) {
                    site.lookups += 1;
                    site.tasks.insert(self.deciding.settings.task_id.clone());
                }
                return;
            };
            // What an earlier run looked up already is not counted again; that run's result
            // is not in the recorded session, so this one comes upon it anew. What a flow
            // looked up when the session was recorded says nothing of the agent.
            if !Live::is_own(&found.id) && self.covered.insert(found.id.as_str()) {
                site.lookups += 1;
                site.used += 1;
                site.tasks.insert(self.deciding.settings.task_id.clone());
            }
            used += 1;
            let result = recorded.results.get(found.id.as_str());
            let Some((failed, content)) =
                result.filter(|_| used < self.per_call && (self.may_chain)(&name))
            else {
                return;
            };
            let Some(entry) = live.turn_of(call) else {
                return;
            };
            after = format!("{OWN_ID}{used}");
            let arguments = Value::Object(arguments);
            live.call(entry, &after, &tool, &arguments);
            live.result(&after, &tool, *failed, content);
            seen.looked_up(&after, &tool, arguments, (*failed, content));
        }
    }
}

/// The session as a run sees it, as far as somebody asks.
struct Seen {
    /// The events so far, and the run's lookups.
    events: Option<Vec<Event>>,
    /// The turn of the call that the run follows.
    turn: usize,
}

impl Seen {
    /// Adds a lookup to the turn, and its result to the events.
    fn looked_up(&mut self, id: &str, tool: &str, arguments: Value, result: (bool, &str)) {
        let Some(events) = &mut self.events else {
            return;
        };
        if let Some(Event::Assistant { calls, .. }) = events.get_mut(self.turn) {
            calls.push(ToolCall {
                id: id.to_owned(),
                name: tool.to_owned(),
                arguments,
            });
        }
        let (error, content) = result;
        events.push(Event::ToolResult {
            call_id: id.to_owned(),
            name: tool.to_owned(),
            error,
            content: content.to_owned(),
        });
    }
}
