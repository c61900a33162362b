//! A session as it was when one call had returned.

use crate::episode::{Episode, Event, ToolCall};

/// A session as somebody saw it who had just read one call's result.
///
/// Of the call's turn it keeps the calls that have returned, that one last. The turn's other
/// calls were under way: asked for already, with nothing known of what they return. Borrowed
/// from the events it was made of, but for the one turn.
#[derive(Clone, Debug, PartialEq)]
pub struct AfterCall<'a> {
    before: &'a [Event],
    turn: Option<Event>,
    after: &'a [Event],
    asked_for: Vec<&'a ToolCall>,
}

impl<'a> AfterCall<'a> {
    /// The session in `events` after the call `call_id`.
    ///
    /// When several calls have that id, the last one is meant. When none has, the session is as
    /// it is, and nothing was asked for.
    pub fn new(events: &'a [Event], call_id: &str) -> Self {
        let has_call = |event: &Event| matches!(event, Event::Assistant { calls, .. } if calls.iter().any(|call| call.id == call_id));
        match events.iter().rposition(has_call) {
            Some(turn) => Self::in_turn(events, turn, call_id),
            None => Self {
                before: events,
                turn: None,
                after: &[],
                asked_for: Vec::new(),
            },
        }
    }

    /// The same, when it is known that the event numbered `turn` made the call.
    pub(crate) fn in_turn(events: &'a [Event], turn: usize, call_id: &str) -> Self {
        let (before, rest) = events.split_at(turn.min(events.len()));
        let Some((Event::Assistant { text, calls, usage }, after)) = rest.split_first() else {
            return Self {
                before: events,
                turn: None,
                after: &[],
                asked_for: Vec::new(),
            };
        };
        let returned: std::collections::HashSet<&str> = after
            .iter()
            .filter_map(|event| match event {
                Event::ToolResult { call_id, .. } => Some(call_id.as_str()),
                Event::User { .. } | Event::Assistant { .. } => None,
            })
            .collect();
        let (mut stay, asked_for): (Vec<_>, Vec<_>) = calls
            .iter()
            .partition(|call| returned.contains(call.id.as_str()));
        if let Some(place) = stay.iter().rposition(|call| call.id == call_id) {
            let call = stay.remove(place);
            stay.push(call);
        }
        let turn = Event::Assistant {
            text: text.clone(),
            calls: stay.into_iter().cloned().collect(),
            usage: *usage,
        };
        Self {
            before,
            turn: Some(turn),
            after,
            asked_for,
        }
    }

    /// What had happened, in order.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &Event> {
        self.before.iter().chain(&self.turn).chain(self.after)
    }

    /// The calls of the turn that had not returned.
    pub fn asked_for(&self) -> &[&'a ToolCall] {
        &self.asked_for
    }
}

impl Episode {
    /// The session after the call `call_id`; see [`AfterCall::new`].
    pub fn after_call(&self, call_id: &str) -> AfterCall<'_> {
        AfterCall::new(&self.events, call_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn turn(ids: &[&str]) -> Event {
        let call = |id: &&str| ToolCall {
            id: (*id).to_owned(),
            name: "look".to_owned(),
            arguments: Value::Null,
        };
        Event::Assistant {
            text: None,
            calls: ids.iter().map(call).collect(),
            usage: None,
        }
    }

    fn result(id: &str) -> Event {
        Event::ToolResult {
            call_id: id.to_owned(),
            name: "look".to_owned(),
            error: false,
            content: String::new(),
        }
    }

    fn said(text: &str) -> Event {
        Event::User {
            text: text.to_owned(),
        }
    }

    fn after(events: &[Event], call_id: &str) -> (Vec<Event>, Vec<String>) {
        let after = AfterCall::new(events, call_id);
        let asked_for = after
            .asked_for()
            .iter()
            .map(|call| call.id.clone())
            .collect();
        (after.events().cloned().collect(), asked_for)
    }

    #[test]
    fn the_call_moves_behind_the_others_that_returned_and_the_rest_was_asked_for() {
        let events = [
            said("hi"),
            turn(&["a", "b", "c", "d"]),
            result("c"),
            result("b"),
            said("so"),
            turn(&["e"]),
        ];
        let (seen, asked_for) = after(&events, "b");
        assert_eq!(
            seen,
            [
                said("hi"),
                turn(&["c", "b"]),
                result("c"),
                result("b"),
                said("so"),
                turn(&["e"])
            ]
        );
        assert_eq!(asked_for, ["a", "d"]);
    }

    #[test]
    fn a_call_that_has_not_returned_was_asked_for_itself() {
        let events = [turn(&["a", "b"]), result("a")];
        assert_eq!(
            after(&events, "b"),
            (vec![turn(&["a"]), result("a")], vec!["b".to_owned()])
        );
    }

    #[test]
    fn without_such_a_call_the_session_is_as_it_is() {
        let events = [turn(&["a", "b"]), result("a")];
        assert_eq!(after(&events, "x"), (events.to_vec(), Vec::new()));
        assert_eq!(after(&[], "x"), (Vec::new(), Vec::new()));
    }

    #[test]
    fn an_id_used_again_means_its_last_call() {
        let events = [turn(&["a"]), result("a"), turn(&["b", "a"]), result("b")];
        assert_eq!(after(&events, "a").1, ["a"]);
        assert_eq!(after(&events, "b").1, ["a"]);
    }
}
