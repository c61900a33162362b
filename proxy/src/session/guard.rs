//! Calls are checked before the server sees them.

use serde_json::value::RawValue;
use stretto_guards::{Checked, Facts, Guards};
use stretto_trace::{
    ToolCall,
    mcp::{Effect, EpisodeBuilder},
};

use super::{Act, SideLog};

/// The policy of the session's domain, and what the session has shown.
#[derive(Debug)]
pub(crate) struct Guarding {
    guards: Guards,
    facts: Facts,
    explains: bool,
}

impl Guarding {
    /// Guards at the beginning of a session. With `explains`, each check leaves a line.
    pub(crate) fn new(guards: Guards, explains: bool) -> Self {
        Self {
            guards,
            facts: Facts::default(),
            explains,
        }
    }

    /// Checks a call against the session before it. `asked_as` is the id of the host's request, as it was spelled.
    pub(super) fn check(
        &self,
        call: &ToolCall,
        asked_as: Option<&str>,
        acts: &mut Vec<Act>,
    ) -> Checked {
        let checked = self.guards.check(&self.facts, call);
        if self.explains {
            let id = asked_as.and_then(|id| serde_json::from_str::<&RawValue>(id).ok());
            let line = serde_json::to_string(&checked.explain(id, call));
            acts.push(Act::Note(
                SideLog::Explain,
                line.expect("verdicts are text and JSON"),
            ));
        }
        checked
    }

    /// What the session has shown.
    pub(super) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Takes in what a message meant.
    pub(super) fn follow(&mut self, effect: Effect, episode: &EpisodeBuilder) {
        match effect {
            Effect::Said(event) | Effect::Returned { event, .. } => {
                if let Some(event) = episode.events().get(event) {
                    self.facts.observe(event);
                }
            }
            Effect::Called(at) => {
                if let Some(call) = episode.call(at) {
                    self.facts.called(call);
                }
            }
            Effect::None | Effect::Retried(_) | Effect::Cancelled(_) | Effect::Interim(_) => {}
        }
    }
}
