//! Labels from a recorded session.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use stretto_trace::Event;

use super::{Label, Logged};
use crate::learn::Session;
use crate::live::Live;
use crate::score::Recorded;

/// A decision follows a call that the session does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session has no call {0}")]
pub struct NoSuchCall(
    /// Its id.
    pub String,
);

/// What each option of a decision was worth in the session that it was taken in.
///
/// An option is used if the agent made that call itself in a later turn, with each of the
/// arguments, and a detour otherwise. A used one spares a share of that turn: one of the calls
/// that the agent made in it.
///
/// # Errors
///
/// The session does not have the call that the decision follows.
pub fn label(logged: &Logged, session: &Session) -> Result<BTreeMap<String, Label>, NoSuchCall> {
    let after = match &logged.after {
        Value::String(id) => id.clone(),
        id => id.to_string(),
    };
    let recorded = Recorded::new(session);
    let turn = recorded
        .turn_of(&after)
        .ok_or_else(|| NoSuchCall(after.clone()))?;
    let label = |tool: &str, arguments: &Map<String, Value>| {
        let of_the_agent = |id: &str| !Live::is_own(id);
        let Some((at, _)) = recorded.later(tool, arguments, turn, &of_the_agent) else {
            return Label {
                detour: 1.0,
                ..Label::default()
            };
        };
        let calls = match &session.episode.events[at] {
            Event::Assistant { calls, .. } => {
                calls.iter().filter(|call| of_the_agent(&call.id)).count()
            }
            Event::User { .. } | Event::ToolResult { .. } => 0,
        };
        Label {
            used: 1.0,
            detour: 0.0,
            turn: 1.0 / super::count(calls),
        }
    };
    let bound = logged.policy.options.iter().filter_map(|option| {
        let arguments = option.arguments.as_ref()?;
        Some((option.tool.clone(), label(&option.tool, arguments)))
    });
    Ok(bound.collect())
}
