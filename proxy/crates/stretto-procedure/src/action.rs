//! Actions, as trees write them.

use serde_json::{Map, Value};

use crate::file::Procedure;

/// What an action has a run do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Stop,
    Call {
        tool: String,
        arguments: Map<String, Value>,
        /// Whether arguments that begin with `@` stand for something.
        is_symbolic: bool,
    },
}

/// An action whose arguments are no JSON object.
#[derive(Debug, thiserror::Error)]
#[error("the arguments of the action `{action}` cannot be read")]
pub struct ActionError {
    /// The action.
    pub action: String,
    /// Why.
    #[source]
    source: serde_json::Error,
}

impl Action {
    /// Reads an action of a procedure: the stop, a tool, or a tool and its arguments.
    pub(crate) fn read(action: &str, procedure: &Procedure) -> Result<Self, ActionError> {
        if action == procedure.stop {
            return Ok(Self::Stop);
        }
        let Some(at) = action.find('{') else {
            let is_handoff = action == procedure.handoff;
            return Ok(Self::Call {
                tool: action.to_owned(),
                arguments: if is_handoff {
                    procedure.handoff_arguments.clone()
                } else {
                    Map::new()
                },
                is_symbolic: false,
            });
        };
        let (tool, arguments) = action.split_at(at);
        let arguments = serde_json::from_str(arguments).map_err(|source| ActionError {
            action: action.to_owned(),
            source,
        })?;
        Ok(Self::Call {
            tool: tool.to_owned(),
            arguments,
            is_symbolic: procedure.symbolic && tool != procedure.handoff,
        })
    }
}
