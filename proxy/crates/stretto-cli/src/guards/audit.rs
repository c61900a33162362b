//! What the rules say about recorded calls, counted.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use stretto_guards::{Checked, Facts, Guards, REFUSAL_START, Step, Verdict};
use stretto_trace::Event;
use stretto_trace::mcp::CallAt;

use crate::guarded::Guarded;

/// How many false alarms of a rule are listed.
const LISTED: usize = 5;

/// How often something was so in successful and in failed sessions.
pub(super) type ByOutcome = [usize; 2];

/// How often a rule passed, failed and could not tell.
pub(super) type Verdicts = [usize; 3];

/// The rules of a domain on all its recorded sessions.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Audit {
    pub(super) domain: String,
    /// Sessions.
    pub(super) episodes: ByOutcome,
    /// Checked calls, by whether the tool accepted or refused them.
    pub(super) writes: [usize; 2],
    /// Checked calls that the proxy itself refused, which are counted nowhere else.
    pub(super) refused_by_proxy: usize,
    /// Sessions in which an enforced rule fails an accepted write.
    pub(super) refused: ByOutcome,
    /// By the rules' ids.
    pub(super) rules: Vec<RuleAudit>,
    /// Per task, how many sessions were successful and failed, and in how many of either an
    /// enforced rule fails an accepted write.
    pub(super) tasks: BTreeMap<String, [usize; 4]>,
}

/// One rule on all recorded sessions.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RuleAudit {
    pub(super) rule: &'static str,
    pub(super) policy: &'static str,
    pub(super) enforced: bool,
    /// On accepted writes of successful sessions.
    pub(super) successful: Verdicts,
    /// On accepted writes of failed sessions.
    pub(super) failed: Verdicts,
    /// On writes that the tool refused.
    pub(super) refused_by_tool: Verdicts,
    /// Sessions in which it fails an accepted write.
    pub(super) episodes_failed: ByOutcome,
    /// Session, task and reason of the first failures on accepted writes of successful sessions.
    pub(super) false_alarms: Vec<(String, String, String)>,
}

/// A session, with the verdicts on each of its checked calls.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) id: String,
    task: String,
    is_successful: bool,
    calls: Vec<CheckedCall>,
}

#[derive(Clone, Debug)]
struct CheckedCall {
    checked: Checked,
    ending: Ending,
}

/// What became of a checked call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// It was done, or never answered.
    Accepted,
    /// The tool answered with an error.
    RefusedByTool,
    /// The proxy answered in the tool's place.
    RefusedByProxy,
}

impl Session {
    /// Checks the calls of a recorded session, each against what came before it.
    pub(super) fn replayed(session: &Guarded) -> Self {
        let mut facts = Facts::default();
        let mut calls = Vec::new();
        let mut places: HashMap<CallAt, usize> = HashMap::new();
        session.replay(|step| match step {
            Step::Said(event) => facts.observe(event),
            Step::Called { at, call } => {
                let checked = session.guards.check(&facts, call);
                if checked.applies() {
                    places.insert(at, calls.len());
                    calls.push(CheckedCall {
                        checked,
                        ending: Ending::Accepted,
                    });
                }
                facts.called(call);
            }
            Step::Returned { at, result } => {
                if let Some(call) = places.get(&at).and_then(|&place| calls.get_mut(place)) {
                    call.ending = Ending::of(result);
                }
                facts.observe(result);
            }
        });

        Self {
            id: session.id.clone(),
            task: session.task.clone(),
            is_successful: session.is_successful,
            calls,
        }
    }
}

impl Ending {
    fn of(result: &Event) -> Self {
        match result {
            Event::ToolResult { content, .. } if content.starts_with(REFUSAL_START) => {
                Self::RefusedByProxy
            }
            Event::ToolResult { error: true, .. } => Self::RefusedByTool,
            _ => Self::Accepted,
        }
    }
}

impl Audit {
    /// An audit of no session yet.
    pub(super) fn of(guards: &Guards) -> Self {
        let mut rules: Vec<RuleAudit> = guards.rules().iter().map(RuleAudit::of).collect();
        rules.sort_by_key(|audit| audit.rule);
        Self {
            domain: guards.domain().to_owned(),
            episodes: [0; 2],
            writes: [0; 2],
            refused_by_proxy: 0,
            refused: [0; 2],
            rules,
            tasks: BTreeMap::new(),
        }
    }

    /// Counts a session.
    pub(super) fn add(&mut self, session: &Session) {
        let outcome = usize::from(!session.is_successful);
        for call in &session.calls {
            match call.ending {
                Ending::Accepted => self.writes[0] += 1,
                Ending::RefusedByTool => self.writes[1] += 1,
                Ending::RefusedByProxy => self.refused_by_proxy += 1,
            }
        }
        for rule in &mut self.rules {
            rule.add(session);
        }
        let mut accepted = session
            .calls
            .iter()
            .filter(|call| call.ending == Ending::Accepted);
        let is_refused = accepted.any(|call| call.checked.refused_by().next().is_some());

        self.episodes[outcome] += 1;
        self.refused[outcome] += usize::from(is_refused);
        let task = self.tasks.entry(session.task.clone()).or_default();
        task[outcome] += 1;
        task[2 + outcome] += usize::from(is_refused);
    }
}

impl RuleAudit {
    fn of(rule: &stretto_guards::Rule) -> Self {
        Self {
            rule: rule.id,
            policy: rule.policy,
            enforced: rule.enforced,
            successful: [0; 3],
            failed: [0; 3],
            refused_by_tool: [0; 3],
            episodes_failed: [0; 2],
            false_alarms: Vec::new(),
        }
    }

    fn add(&mut self, session: &Session) {
        let mut fails_accepted = false;
        for call in &session.calls {
            let mut findings = call.checked.findings.iter();
            let Some(finding) = findings.find(|finding| finding.rule.id == self.rule) else {
                continue;
            };
            let verdicts = match (call.ending, session.is_successful) {
                (Ending::Accepted, true) => &mut self.successful,
                (Ending::Accepted, false) => &mut self.failed,
                (Ending::RefusedByTool, _) => &mut self.refused_by_tool,
                (Ending::RefusedByProxy, _) => continue,
            };
            match &finding.verdict {
                Verdict::Pass => verdicts[0] += 1,
                Verdict::Unknown { .. } => verdicts[2] += 1,
                Verdict::Fail { reason } => {
                    verdicts[1] += 1;
                    if call.ending == Ending::Accepted {
                        fails_accepted = true;
                        if session.is_successful && self.false_alarms.len() < LISTED {
                            let (id, task) = (session.id.clone(), session.task.clone());
                            self.false_alarms.push((id, task, reason.clone()));
                        }
                    }
                }
            }
        }
        self.episodes_failed[usize::from(!session.is_successful)] += usize::from(fails_accepted);
    }
}
