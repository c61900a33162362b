//! How often a pick was the agent's own.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};
use stretto_trace::{Episode, Event, ToolCall, ToolManifest};

use super::{LearnError, Lesson, Progress, Stage, whole};
use crate::file::{Bindings, Tally};
use crate::live::Live;
use crate::memory::{Memory, PickKind};
use crate::plan::Plan;
use crate::value;

/// Compares what would have been picked with what the agent passed, in every training
/// session.
pub(super) fn count(
    lesson: &Lesson<'_>,
    bindings: &mut Bindings,
    progress: &mut Progress<'_>,
) -> Result<(), LearnError> {
    let plan = Arc::new(Plan::new(bindings, &[], &ToolManifest::default()));
    let lookups: Vec<String> = bindings.args.keys().cloned().collect();
    let count = |tallies: &mut Tallies, episode: &Episode| {
        tallies.episode(lesson, episode, &plan, &lookups);
    };
    let tallies = whole::count(
        lesson.training,
        Stage::Agreement,
        progress,
        count,
        Tallies::join,
    )?;
    bindings.agreed = tallies.agreed;
    bindings.named_other = tallies.named_other;
    bindings.described_read = tallies.described_read;
    Ok(())
}

#[derive(Default)]
struct Tallies {
    agreed: BTreeMap<String, [Tally; 2]>,
    named_other: BTreeMap<String, Tally>,
    described_read: BTreeMap<String, Tally>,
}

impl Tallies {
    fn join(&mut self, other: Self) {
        let Self {
            agreed,
            named_other,
            described_read,
        } = other;
        for (lookup, tallies) in agreed {
            let own = self.agreed.entry(lookup).or_default();
            for (own, other) in own.iter_mut().zip(tallies) {
                *own += other;
            }
        }
        for (lookup, tally) in named_other {
            *self.named_other.entry(lookup).or_default() += tally;
        }
        for (lookup, tally) in described_read {
            *self.described_read.entry(lookup).or_default() += tally;
        }
    }

    fn episode(
        &mut self,
        lesson: &Lesson<'_>,
        episode: &Episode,
        plan: &Arc<Plan>,
        lookups: &[String],
    ) {
        let mut memory = Memory::new(Arc::clone(plan));
        let mut calls = HashMap::new();
        let mut counted = HashSet::new();
        let later = Later::new(&episode.events);
        for (at, event) in episode.events.iter().enumerate() {
            match event {
                Event::User { text } => memory.hear(text),
                Event::Assistant { calls: made, .. } => {
                    let begun = memory.outputs();
                    for call in made {
                        // The proxy's own lookups were picked by this very rule.
                        if lesson.is_read(&call.name) && !Live::is_own(&call.id) {
                            self.compare(&mut memory, call);
                        }
                        let index = memory.call(&call.name, &call.arguments, begun);
                        calls.insert(call.id.as_str(), index);
                    }
                }
                Event::ToolResult {
                    call_id,
                    name,
                    error,
                    content,
                } => {
                    let call = calls.get(call_id.as_str()).copied();
                    if !error {
                        memory.output(call, name, &value::parse(content));
                    }
                    if let Some(call) = call {
                        memory.returned(call);
                    }
                    if !error {
                        for lookup in lookups {
                            self.watch(&mut memory, lookup, at, &later, &mut counted);
                        }
                    }
                }
            }
        }
    }

    /// Compares the pick for a call with the call.
    fn compare(&mut self, memory: &mut Memory, call: &ToolCall) {
        let Value::Object(passed) = &call.arguments else {
            return;
        };
        let Ok(pick) = memory.pick(&call.name) else {
            return;
        };
        if pick.arguments.is_empty() {
            return;
        }
        let which = usize::from(pick.kind == PickKind::Mentioned);
        let agrees = holds(passed, &pick.arguments);
        self.agreed.entry(call.name.clone()).or_default()[which].add(agrees);
    }

    /// Looks whether the pick for a lookup is one that speaks against itself, and if so
    /// whether the agent went on to use it.
    fn watch<'a>(
        &mut self,
        memory: &mut Memory,
        lookup: &'a str,
        at: usize,
        later: &Later<'_>,
        counted: &mut HashSet<(bool, &'a str, String)>,
    ) {
        let Ok(pick) = memory.pick(lookup) else {
            return;
        };
        let (is_named, tallies) = match pick.kind {
            PickKind::NamedOther => (true, &mut self.named_other),
            PickKind::Described => (false, &mut self.described_read),
            PickKind::Mentioned | PickKind::Unmentioned | PickKind::ByName => return,
        };
        let text = Value::Object(pick.arguments.clone()).to_string();
        if counted.insert((is_named, lookup, text))
            && let Some(used) = later.uses(lookup, &pick.arguments, at)
        {
            tallies.entry(lookup.to_owned()).or_default().add(used);
        }
    }
}

/// Whether a call passed each of `arguments`, compared as text.
pub(crate) fn holds(passed: &Map<String, Value>, arguments: &Map<String, Value>) -> bool {
    arguments.iter().all(|(arg, value)| {
        passed
            .get(arg)
            .is_some_and(|passed| value::text(passed) == value::text(value))
    })
}

/// The calls of a session, by tool, with the places of their turns.
struct Later<'a> {
    calls: HashMap<&'a str, Vec<(usize, &'a ToolCall)>>,
}

impl<'a> Later<'a> {
    fn new(events: &'a [Event]) -> Self {
        let mut calls = HashMap::<&str, Vec<_>>::new();
        for (at, event) in events.iter().enumerate() {
            let Event::Assistant { calls: made, .. } = event else {
                continue;
            };
            for call in made {
                calls
                    .entry(call.name.as_str())
                    .or_default()
                    .push((at, call));
            }
        }
        Self { calls }
    }

    /// Whether the agent made the lookup with these arguments in a turn after `at`; nothing
    /// when the proxy made it, because then the agent had no need to.
    fn uses(&self, lookup: &str, arguments: &Map<String, Value>, at: usize) -> Option<bool> {
        let calls = self.calls.get(lookup).into_iter().flatten();
        let same = calls.filter(|(turn, call)| {
            *turn > at
                && call
                    .arguments
                    .as_object()
                    .is_some_and(|passed| holds(passed, arguments))
        });
        let mut used = false;
        for (_, call) in same {
            if Live::is_own(&call.id) {
                return None;
            }
            used = true;
        }
        Some(used)
    }
}
