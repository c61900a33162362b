//! A session as a flow sees it while it goes on.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use stretto_trace::Event;

use crate::explore::Trail;
use crate::flow::Flow;
use crate::gate::Gate;
use crate::memory::{CallIndex, Memory};
use crate::step::{self, Outcome, Step};
use crate::value;

/// What ids of the proxy's own requests begin with.
pub const OWN_ID: &str = "stretto-";

/// A session as a flow sees it while it goes on.
///
/// [`follow`](Self::follow) takes in what is new; nothing is read twice.
#[derive(Clone, Debug)]
pub struct Live {
    pub(crate) flow: Arc<Flow>,
    pub(crate) memory: Memory,
    entries: Vec<Entry>,
    calls: Vec<Call>,
    by_id: HashMap<String, CallIndex>,
    /// How many events were taken in.
    followed: usize,
    /// The last turn: its event, its entry, and how many of its calls were taken in.
    turn: Option<(usize, usize, usize)>,
    /// What exploration draws from, when it does.
    pub(crate) trail: Option<Trail>,
    pub(crate) gate: Option<Gate>,
    /// Whether the last event was a result.
    at_result: Option<CallIndex>,
}

#[derive(Clone, Debug)]
enum Entry {
    User,
    Message,
    /// A turn with calls, and how many results there were when it began.
    Turn {
        calls: Vec<CallIndex>,
        outputs: usize,
    },
}

#[derive(Clone, Debug)]
struct Call {
    id: String,
    tool: String,
    action: u32,
    /// The entry of its turn.
    turn: usize,
    /// Whether it failed, and its features, once it has returned.
    returned: Option<(bool, u32)>,
}

impl Call {
    fn has_failed(&self) -> bool {
        self.returned.is_none_or(|(failed, _)| failed)
    }

    fn step(&self) -> Step {
        let outcome = if self.has_failed() {
            Outcome::Error
        } else {
            Outcome::Ok
        };
        let feature = self.returned.map_or(0, |(_, feature)| feature);
        Step {
            action: self.action,
            outcome,
            feature,
        }
    }
}

/// The session after one call, as far as a decision looks back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// The call that was the last step, if it was one: its tool, and whether it failed.
    pub(crate) last: Option<(String, bool)>,
    /// The last symbols, oldest first; fewer at a session's beginning.
    pub(crate) history: Vec<u32>,
}

impl Live {
    /// A session in which nothing has happened.
    pub fn new(flow: Arc<Flow>) -> Self {
        let memory = Memory::new(Arc::clone(&flow.plan));
        let gate = flow.file().surprise.map(Gate::new);
        Self {
            flow,
            memory,
            entries: Vec::new(),
            calls: Vec::new(),
            by_id: HashMap::new(),
            followed: 0,
            turn: None,
            trail: None,
            gate,
            at_result: None,
        }
    }

    /// The flow.
    pub fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }

    /// How many events have been taken in.
    pub fn events(&self) -> usize {
        self.followed
    }

    /// Takes in what is new in `events`: the events after those of the last time, and the
    /// calls that have joined the last turn since.
    ///
    /// `events` is the whole episode so far, as [`stretto_trace::mcp`] builds it; those
    /// taken in already are not looked at again.
    pub fn follow(&mut self, events: &[Event]) {
        if let Some((event, entry, taken)) = self.turn
            && let Some(Event::Assistant { calls, .. }) = events.get(event)
            && calls.len() > taken
        {
            for call in &calls[taken..] {
                self.call(entry, &call.id, &call.name, &call.arguments);
            }
            self.turn = Some((event, entry, calls.len()));
            if let Some(trail) = &mut self.trail {
                trail.turn_grew(event, &events[event]);
            }
        }
        for (index, event) in events.iter().enumerate().skip(self.followed) {
            self.take(index, event);
            if let Some(trail) = &mut self.trail {
                trail.take(index, event);
            }
        }
        self.followed = self.followed.max(events.len());
    }

    fn take(&mut self, index: usize, event: &Event) {
        if !matches!(event, Event::ToolResult { .. }) {
            self.score_step(event);
        }
        match event {
            Event::User { text } => {
                self.memory.hear(text);
                self.entries.push(Entry::User);
            }
            Event::Assistant { calls, .. } if calls.is_empty() => self.entries.push(Entry::Message),
            Event::Assistant { calls, .. } => {
                let entry = self.begin_turn();
                for call in calls {
                    self.call(entry, &call.id, &call.name, &call.arguments);
                }
                self.turn = Some((index, entry, calls.len()));
            }
            Event::ToolResult {
                call_id,
                name,
                error,
                content,
            } => {
                self.result(call_id, name, *error, content);
            }
        }
    }

    /// Something is said, by either side.
    pub(crate) fn said(&mut self, event: &Event) {
        self.take(self.followed, event);
    }

    /// A turn begins. Returns its entry, for the calls to come.
    pub(crate) fn begin_turn(&mut self) -> usize {
        self.entries.push(Entry::Turn {
            calls: Vec::new(),
            outputs: self.memory.outputs(),
        });
        self.entries.len() - 1
    }

    /// The turn in which the call with this id is.
    pub(crate) fn turn_of(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).map(|call| self.calls[*call].turn)
    }

    /// A call is made in a turn.
    pub(crate) fn call(&mut self, turn: usize, id: &str, tool: &str, arguments: &Value) {
        let Entry::Turn { calls, outputs } = &mut self.entries[turn] else {
            return;
        };
        let index = self.memory.call(tool, arguments, *outputs);
        calls.push(index);
        self.calls.push(Call {
            id: id.to_owned(),
            tool: tool.to_owned(),
            action: self.flow.vocabulary.tool(tool),
            turn,
            returned: None,
        });
        self.by_id.insert(id.to_owned(), index);
    }

    /// A call returns.
    pub(crate) fn result(&mut self, id: &str, tool: &str, failed: bool, content: &str) {
        let call = self.by_id.get(id).copied();
        if !failed {
            self.memory.output(call, tool, &value::parse(content));
        }
        if let Some(call) = call {
            let feature = step::feature(&self.flow.file().map, tool, content);
            self.calls[call].returned.get_or_insert((failed, feature));
            self.memory.returned(call);
        }
        self.at_result = call;
    }

    /// Whether `id` is of one of the proxy's own calls.
    pub(crate) fn is_own(id: &str) -> bool {
        id.starts_with(OWN_ID)
    }

    /// The session after the call with the id `after`: in its turn, the calls that have
    /// returned, with this one last. Calls of the turn that have not are left out.
    pub(crate) fn view(&self, after: &str) -> View {
        let own_turn = self.turn_of(after);
        let after = self.by_id.get(after).copied();
        let file = self.flow.file();
        let reach_order = file.reach.as_ref().map_or(0, |reach| reach.order);
        let needed = file.habit.base.order.max(reach_order).max(1);
        let mut last = None;
        let mut is_first = true;
        let mut newest_first = Vec::new();
        let mut replied = false;
        for (index, entry) in self.entries.iter().enumerate().rev() {
            if newest_first.len() >= needed {
                break;
            }
            match entry {
                Entry::User => replied = true,
                Entry::Message => {
                    let outcome = if replied {
                        Outcome::Replied
                    } else {
                        Outcome::Ended
                    };
                    let action = self.flow.vocabulary.respond();
                    newest_first.push(
                        Step {
                            action,
                            outcome,
                            feature: 0,
                        }
                        .symbol(),
                    );
                    is_first = false;
                    replied = false;
                }
                Entry::Turn { calls, .. } => {
                    // Newest first, and no further back than is looked: a turn may have
                    // thousands of calls.
                    let is_own = Some(index) == own_turn;
                    let others = calls.iter().rev().copied().filter(|call| {
                        !is_own || Some(*call) != after && self.calls[*call].returned.is_some()
                    });
                    let seen = after.filter(|_| is_own).into_iter().chain(others);
                    for call in seen.take(needed - newest_first.len()) {
                        let call = &self.calls[call];
                        if is_first {
                            last = Some((call.tool.clone(), call.has_failed()));
                            is_first = false;
                        }
                        newest_first.push(call.step().symbol());
                    }
                    replied = false;
                }
            }
        }
        newest_first.reverse();
        View {
            last,
            history: newest_first,
        }
    }

    /// The ids of the calls in the turn of `after`, those that have returned first and
    /// `after` last; the others are left out.
    pub(crate) fn turn_order(&self, after: &str) -> Option<(usize, Vec<usize>)> {
        let turn = self.turn_of(after)?;
        let Entry::Turn { calls, .. } = &self.entries[turn] else {
            return None;
        };
        let (event, entry, _) = self.turn?;
        if entry != turn {
            return None;
        }
        let own = self.by_id[after];
        let positions = calls.iter().enumerate();
        let mut order: Vec<usize> = positions
            .clone()
            .filter(|(_, call)| **call != own && self.calls[**call].returned.is_some())
            .map(|(position, _)| position)
            .collect();
        order.extend(
            positions
                .filter(|(_, call)| **call == own)
                .map(|(position, _)| position),
        );
        Some((event, order))
    }

    /// Scores the agent's step for the surprise gate, when the flow would have decided
    /// before it.
    fn score_step(&mut self, event: &Event) {
        let Some(after) = self.at_result.take() else {
            return;
        };
        let Some(mut gate) = self.gate.take() else {
            return;
        };
        let turn = &self.entries[self.calls[after].turn];
        let is_settled = match turn {
            Entry::Turn { calls, .. } => calls
                .iter()
                .all(|call| self.calls[*call].returned.is_some()),
            Entry::User | Entry::Message => false,
        };
        let is_own = matches!(
            event,
            Event::Assistant { calls, .. } if calls.first().is_some_and(|call| Self::is_own(&call.id))
        );
        if is_settled && !is_own {
            let next = match event {
                Event::Assistant { calls, .. } => calls.first().map(|call| call.name.as_str()),
                Event::User { .. } | Event::ToolResult { .. } => None,
            };
            let view = self.view(&self.calls[after].id);
            gate.score(&self.flow, &view, next);
        }
        self.gate = Some(gate);
    }
}

#[cfg(test)]
mod tests;
