//! Reactions: what a server does about a message, before a transport has done it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::era;
use crate::protocol::{self, Call, RpcError};
use crate::script::answers::Aimed;
use crate::script::timeline::Moment;

/// What a server does about a message, in this order.
#[derive(Debug)]
pub(crate) struct Reaction {
    /// What goes wrong, before or after it has waited.
    pub(crate) faults: Vec<Aimed>,
    /// What it sends before the answer.
    pub(crate) notes: Vec<Note>,
    /// How long it then takes.
    pub(crate) delay: Duration,
    /// The status of the answer over HTTP.
    pub(crate) status: u16,
    /// The answer, without a line's end; none when there is nothing to answer.
    pub(crate) answer: Option<String>,
    /// Whether the live server is to answer.
    pub(crate) is_live: bool,
    /// Whether the request stays without an answer.
    pub(crate) is_silent: bool,
    /// What it sends after the answer.
    pub(crate) trailing: Vec<Note>,
    /// The tool whose call counts as made with success then.
    pub(crate) made: Option<String>,
    /// What may wait for this in the timeline.
    pub(crate) moment: Option<Moment>,
    /// The subscription that the message opens.
    pub(crate) subscription: Option<Subscription>,
}

/// A message of the server's own around an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// How long it waits first.
    pub(crate) wait: Duration,
    /// The message, without a line's end.
    pub(crate) text: String,
}

/// A host's wish to hear of changes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Subscription {
    pub(crate) id: Value,
    /// Whether it wants to hear that the tools have changed.
    pub(crate) to_tools: bool,
}

impl Default for Reaction {
    fn default() -> Self {
        Self {
            faults: Vec::new(),
            notes: Vec::new(),
            delay: Duration::ZERO,
            status: 200,
            answer: None,
            is_live: false,
            is_silent: false,
            trailing: Vec::new(),
            made: None,
            moment: None,
            subscription: None,
        }
    }
}

impl Reaction {
    /// An answer, completed as a modern one if the server's info is given.
    pub(super) fn to(
        id: &Value,
        call: &Call,
        mut outcome: Result<Value, RpcError>,
        is_modern: bool,
        info: Option<&Value>,
    ) -> Self {
        let is_success = outcome
            .as_ref()
            .is_ok_and(|result| result["isError"] != true);
        if let (Some(info), Ok(result)) = (info, &mut outcome) {
            era::complete(result, info);
        }
        Self {
            status: if is_modern {
                era::status(&outcome)
            } else {
                200
            },
            answer: Some(protocol::answer(id, &outcome)),
            made: (is_success && call.method == "tools/call").then(|| call.tool().to_owned()),
            ..Self::default()
        }
    }

    /// Whether it takes longer than it takes to write it.
    pub(crate) fn takes_time(&self) -> bool {
        let is_slow = |aimed: &Aimed| aimed.fault.split.is_some() || aimed.fault.slow.is_some();
        let mut notes = self.notes.iter().chain(&self.trailing);
        !self.delay.is_zero()
            || notes.any(|note| !note.wait.is_zero())
            || self.faults.iter().any(is_slow)
    }
}

/// An error in answer to a message.
pub(super) fn refusal(id: &Value, error: RpcError) -> Reaction {
    Reaction {
        answer: Some(protocol::answer(id, &Err(error))),
        ..Reaction::default()
    }
}

/// A subscription, acknowledged.
pub(super) fn listen(id: &Value, call: &Call) -> Reaction {
    let to_tools =
        call.params.pointer("/notifications/toolsListChanged") == Some(&Value::Bool(true));
    let granted = if to_tools {
        json!({"toolsListChanged": true})
    } else {
        json!({})
    };
    let mut params = json!({"notifications": granted});
    era::subscribe(&mut params, id);
    Reaction {
        notes: vec![Note {
            wait: Duration::ZERO,
            text: protocol::notification("notifications/subscriptions/acknowledged", &params),
        }],
        subscription: Some(Subscription {
            id: id.clone(),
            to_tools,
        }),
        moment: Some(Moment::Listen),
        ..Reaction::default()
    }
}

/// The progress of a call, in so many steps.
pub(super) fn progress(token: &Value, total: u64, wait: Duration) -> Vec<Note> {
    let note = |progress| Note {
        wait,
        text: protocol::notification(
            "notifications/progress",
            &json!({"progressToken": token, "progress": progress, "total": total}),
        ),
    };
    (1..=total).map(note).collect()
}
