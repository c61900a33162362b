//! The session after a call as it is kept, against the session read again.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use stretto_trace::{AfterCall, Event, ToolCall};

use super::Live;
use crate::explore::{Trail, task_hash};
use crate::file::{FeatureMap, Field, FlowFile};
use crate::flow::Flow;
use crate::step::{self, Outcome, Vocabulary};

fn flow() -> Arc<Flow> {
    let text = include_str!("../../tests/data/flows/shop.flow.json");
    let mut file = FlowFile::parse(text).unwrap();
    let field = Field::Scalar("status".to_owned());
    let id = |status: &str| ("get_order_details".to_owned(), vec![status.to_owned()]);
    file.map = FeatureMap {
        fields: [("get_order_details".to_owned(), vec![field])].into(),
        ids: [(id("open"), 1), (id("closed"), 2)].into(),
    };
    Arc::new(Flow::new(file))
}

#[derive(Clone, Debug)]
enum Happens {
    User,
    Message,
    Turn(u8),
    /// One more call joins the last turn.
    Joins,
    /// One of the calls that have not returned does.
    Returns(u8, bool, bool),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        1 => Just(Happens::User),
        1 => Just(Happens::Message),
        3 => (1..4_u8).prop_map(Happens::Turn),
        1 => Just(Happens::Joins),
        6 => (any::<u8>(), any::<bool>(), any::<bool>()).prop_map(|(n, error, open)| Happens::Returns(n, error, open)),
    ]
}

const TOOLS: [&str; 4] = [
    "find_user_id_by_email",
    "get_order_details",
    "cancel_pending_order",
    "unknown",
];

proptest! {
    #[test]
    fn the_session_after_a_call_is_as_if_it_were_read_again(session in prop::collection::vec(happens(), 0..30)) {
        let flow = flow();
        let mut live = Live::new(Arc::clone(&flow));
        live.trail = Some(Trail::new("task"));
        let mut events: Vec<Event> = Vec::new();
        let mut waiting: Vec<ToolCall> = Vec::new();
        let mut turn = None;
        let mut next = 0;
        let mut call = || {
            next += 1;
            let name = TOOLS[next % TOOLS.len()].to_owned();
            ToolCall { id: next.to_string(), name, arguments: json!({"id": next, "n": next}) }
        };
        for happens in session {
            match happens {
                Happens::User => events.push(Event::User { text: "hello".to_owned() }),
                Happens::Message => {
                    events.push(Event::Assistant { text: Some("hi".to_owned()), calls: vec![], usage: None });
                }
                Happens::Turn(count) => {
                    let calls: Vec<ToolCall> = (0..count).map(|_| call()).collect();
                    waiting.extend(calls.iter().cloned());
                    turn = Some(events.len());
                    events.push(Event::Assistant { text: None, calls, usage: None });
                }
                Happens::Joins => {
                    let Some(turn) = turn else { continue };
                    let Event::Assistant { calls, .. } = &mut events[turn] else { continue };
                    calls.push(call());
                    waiting.push(calls[calls.len() - 1].clone());
                }
                Happens::Returns(which, error, open) => {
                    if waiting.is_empty() {
                        continue;
                    }
                    let call = waiting.remove(usize::from(which) % waiting.len());
                    let status = if open { "open" } else { "closed" };
                    let content = json!({"status": status}).to_string();
                    events.push(Event::ToolResult { call_id: call.id.clone(), name: call.name, error, content });
                    live.follow(&events);
                    same(&live, &events, &call.id)?;
                    continue;
                }
            }
            live.follow(&events);
        }
    }
}

fn same(live: &Live, events: &[Event], after: &str) -> Result<(), TestCaseError> {
    let flow = live.flow();
    let seen = AfterCall::new(events, after);
    let seen: Vec<Event> = seen.events().cloned().collect();
    let vocabulary = Vocabulary::new(&flow.file().vocab);
    let steps = step::steps(&seen, &vocabulary, &flow.file().map);
    let view = live.view(after);
    let last = steps.last().and_then(|(step, tool)| {
        tool.map(|tool| (tool.to_owned(), step.outcome == Outcome::Error))
    });
    prop_assert_eq!(&view.last, &last);
    let symbols: Vec<u32> = steps.iter().map(|(step, _)| step.symbol()).collect();
    prop_assert_eq!(
        &view.history[..],
        &symbols[symbols.len().saturating_sub(2)..]
    );

    // The draws see the same, when the call is of the last turn.
    let turn = live.turn_order(after);
    if turn.is_some() {
        let mut value = serde_json::to_value(&seen).unwrap();
        for event in value.as_array_mut().unwrap() {
            strip(event);
        }
        let trail = live.trail.as_ref().unwrap().hash(turn.as_ref());
        prop_assert_eq!(trail, task_hash(&format!("task/{value}")));
    }
    Ok(())
}

fn strip(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(members) => {
            for name in ["id", "call_id", "usage"] {
                members.remove(name);
            }
            members.values_mut().for_each(strip);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
