//! How long a decision takes, and taking in what happened, early and late in a session.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use serde_json::json;
use stretto_flow::{Decider, Flow, Live, Settings};
use stretto_trace::{Event, ToolCall};

fn flow() -> Arc<Flow> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/flows/shop.flow.json"
    );
    Arc::new(Flow::load(path.as_ref()).expect("it is a flow"))
}

/// A session of `calls` calls: one customer after the other, each with two orders and a few
/// words, and ending where the flow decides about the second order.
fn session(calls: usize) -> Vec<Event> {
    let mut events = Vec::new();
    let call =
        |events: &mut Vec<Event>, name: &str, arguments: serde_json::Value, content: String| {
            let id = events.len().to_string();
            let call = ToolCall {
                id: id.clone(),
                name: name.to_owned(),
                arguments,
            };
            events.push(Event::Assistant {
                text: None,
                calls: vec![call],
                usage: None,
            });
            events.push(Event::ToolResult {
                call_id: id,
                name: name.to_owned(),
                error: false,
                content,
            });
        };
    for customer in 0.. {
        let text = format!(
            "Hello, c{customer}@example.com here. What about my order #W{customer}b, and the lamp?"
        );
        events.push(Event::User { text });
        let user = format!("user_{customer}");
        let orders = [format!("#W{customer}a"), format!("#W{customer}b")];
        let details = json!({"user_id": user, "orders": orders, "email": format!("c{customer}@example.com"), "zip": "10115"});
        let steps = [
            (
                "find_user_id_by_email",
                json!({"email": format!("c{customer}@example.com")}),
                user.clone(),
            ),
            (
                "get_user_details",
                json!({"user_id": user}),
                details.to_string(),
            ),
            (
                "get_order_details",
                json!({"order_id": orders[0]}),
                order(&orders[0], &user),
            ),
            (
                "get_order_details",
                json!({"order_id": orders[1]}),
                order(&orders[1], &user),
            ),
        ];
        for (at, (name, arguments, content)) in steps.into_iter().enumerate() {
            call(&mut events, name, arguments, content);
            // Two of four calls: the flow looks for the order that is left.
            if events
                .iter()
                .filter(|event| matches!(event, Event::ToolResult { .. }))
                .count()
                >= calls
                && at == 2
            {
                return events;
            }
        }
    }
    events
}

/// A session of `calls` calls that goes through one customer's long list of orders.
fn list(calls: usize) -> Vec<Event> {
    let orders: Vec<String> = (0..=calls).map(|n| format!("#W{n}x")).collect();
    let details = json!({"user_id": "user_1", "orders": orders});
    let mut made = vec![
        (
            "find_user_id_by_email",
            json!({"email": "c1@example.com"}),
            "user_1".to_owned(),
        ),
        (
            "get_user_details",
            json!({"user_id": "user_1"}),
            details.to_string(),
        ),
    ];
    for id in orders.iter().take(calls.saturating_sub(2)) {
        made.push((
            "get_order_details",
            json!({"order_id": id}),
            order(id, "user_1"),
        ));
    }
    let mut events = vec![Event::User {
        text: "c1@example.com: what did I order?".to_owned(),
    }];
    for (id, (name, arguments, content)) in made.into_iter().enumerate() {
        let id = id.to_string();
        let call = ToolCall {
            id: id.clone(),
            name: name.to_owned(),
            arguments,
        };
        events.push(Event::Assistant {
            text: None,
            calls: vec![call],
            usage: None,
        });
        events.push(Event::ToolResult {
            call_id: id,
            name: name.to_owned(),
            error: false,
            content,
        });
    }
    events
}

fn order(id: &str, user: &str) -> String {
    let items: Vec<_> = (0..5)
        .map(|item| json!({"item_id": format!("{id}-{item}"), "name": "lamp", "price": 12.5}))
        .collect();
    json!({"order_id": id, "user_id": user, "status": "pending", "items": items}).to_string()
}

/// How many events a copy takes in before it is measured.
const WARM: usize = 8;

/// A copy of a session, as large inside as one that grew: a copy has no room to grow, and its
/// first event would pay for that.
fn warm(almost: &Live, before: &[Event]) -> Live {
    let mut live = almost.clone();
    live.follow(before);
    live
}

fn decisions(criterion: &mut Criterion) {
    let flow = flow();
    for calls in [10, 1000] {
        let events = session(calls);
        let Some(Event::ToolResult { call_id: after, .. }) = events.last() else {
            return;
        };
        let mut live = Live::new(Arc::clone(&flow));
        live.follow(&events);
        for decider in [Decider::Habit, Decider::Reach] {
            let settings = Settings::new(decider, "task");
            let decision = live.decide(after, &settings).expect("the flow has both");
            assert_eq!(decision.tool(), Some("get_order_details"));
            criterion.bench_function(
                &format!("decide by {decider} after {calls} calls"),
                |bencher| {
                    bencher.iter(|| live.decide(black_box(after), &settings));
                },
            );
        }
        let (last, before) = events.split_last().expect("it has events");
        let mut almost = Live::new(Arc::clone(&flow));
        almost.follow(&before[..before.len() - WARM]);
        let grown = [before, std::slice::from_ref(last)].concat();
        criterion.bench_function(
            &format!("take in a result and decide after {calls} calls"),
            |bencher| {
                let settings = Settings::new(Decider::Reach, "task");
                bencher.iter_batched_ref(
                    || warm(&almost, before),
                    |live| {
                        live.follow(&grown);
                        live.decide(after, &settings)
                    },
                    BatchSize::LargeInput,
                );
            },
        );
    }
    for calls in [10, 1000] {
        let events = list(calls);
        let Some(Event::ToolResult { call_id: after, .. }) = events.last() else {
            return;
        };
        // A low threshold: an agent that reads everything is not what the flow has learned.
        let settings = Settings {
            threshold: 0.0,
            ..Settings::new(Decider::Reach, "task")
        };
        let mut live = Live::new(Arc::clone(&flow));
        let mut decided = 0;
        for count in 1..=events.len() {
            live.follow(&events[..count]);
            if let Event::ToolResult { call_id, .. } = &events[count - 1] {
                decided += usize::from(
                    live.decide(call_id, &settings)
                        .is_ok_and(|decision| decision.tool().is_some()),
                );
            }
        }
        assert_eq!(decided, calls);
        criterion.bench_function(
            &format!("decide in a list after {calls} calls"),
            |bencher| {
                bencher.iter(|| live.decide(black_box(after), &settings));
            },
        );
        let (last, before) = events.split_last().expect("it has events");
        let mut almost = Live::new(Arc::clone(&flow));
        for count in 1..=before.len() - WARM {
            almost.follow(&before[..count]);
            if let Event::ToolResult { call_id, .. } = &before[count - 1] {
                black_box(almost.decide(call_id, &settings).is_ok());
            }
        }
        let grown = [before, std::slice::from_ref(last)].concat();
        criterion.bench_function(
            &format!("take in a record of a list and decide after {calls} calls"),
            |bencher| {
                bencher.iter_batched_ref(
                    || warm(&almost, before),
                    |live| {
                        live.follow(&grown);
                        live.decide(after, &settings)
                    },
                    BatchSize::LargeInput,
                );
            },
        );
    }
    criterion.bench_function("a run without lookups", |bencher| {
        bencher.iter(|| {
            let (mut run, next) = flow.run("find_user_id_by_email", false, 8);
            black_box(next);
            run.resume(stretto_flow::Answer::HandBack)
        });
    });
}

criterion_group!(benches, decisions);
criterion_main!(benches);
