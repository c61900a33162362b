//! Flow files of any shape: an error, or a flow that can be served.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something unexpected happens"
)]

mod support;

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use stretto_flow::{Answer, Decider, Explore, Flow, FlowFile, Live, Next, Settings, diff, show};
use stretto_trace::mcp::episode;
use support::{data, flow, log};

const FILES: [&str; 3] = [
    "shop.promoted.flow.json",
    "worked-example/expected.flow.json",
    "retail-5-sessions-shipped-arbiter.flow.json",
];

/// Puts `value` at a place in `flow` that `choices` lead to.
fn put(flow: &mut Value, choices: &[u16], value: Value) {
    let Some((choice, rest)) = choices.split_first() else {
        *flow = value;
        return;
    };
    let choice = usize::from(*choice);
    let inner = match flow {
        Value::Array(items) if !items.is_empty() => {
            let place = choice % items.len();
            &mut items[place]
        }
        Value::Object(members) if !members.is_empty() => {
            let place = choice % members.len();
            members.values_mut().nth(place).unwrap()
        }
        _ => {
            *flow = value;
            return;
        }
    };
    put(inner, rest, value);
}

fn odd() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-1),
        json!(1),
        json!(7.5),
        json!(1e308),
        json!(-1e-308),
        json!(u64::MAX),
        json!(4_294_967_295_u32),
        json!(""),
        json!("respond"),
        json!("get_user_details"),
        json!("read"),
        json!("$..[*][x"),
        json!([]),
        json!([[]]),
        json!({}),
        json!([1, 2]),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn an_odd_flow_is_refused_or_served(
        which in 0..FILES.len(),
        choices in prop::collection::vec(any::<u16>(), 1..9),
        value in odd(),
    ) {
        let text = std::fs::read_to_string(data("flows").join(FILES[which])).unwrap();
        let mut changed: Value = serde_json::from_str(&text).unwrap();
        put(&mut changed, &choices, value);
        let Ok(file) = FlowFile::parse(&changed.to_string()) else { return Ok(()) };
        let flow = Arc::new(Flow::new(file));
        prop_assert_eq!(&FlowFile::parse(&flow.file().to_text()).unwrap(), flow.file());
        let page = show(&flow, 0.3);
        prop_assert!(page.starts_with("# Flow of "));
        let other = self::flow("shop.flow.json");
        drop(diff(&other, &flow, 0.05, 0.3).markdown());
        drop(diff(&flow, &other, 0.05, 0.3).markdown());
        for name in ["flows/worked-example/live/20260102T090000.000Z-4.jsonl", "sessions/shadow/shop/20260928T020401.240Z-14750.jsonl"] {
            let events = episode(&log(name)).events;
            for decider in [Decider::Habit, Decider::Reach, Decider::Arbiter] {
                let explore = Some(Explore { epsilon: 0.5, seed: 1 });
                let settings = Settings { threshold: 0.0, explore, ..Settings::new(decider, "t") };
                let mut live = Live::new(Arc::clone(&flow)).exploring(&settings);
                for count in 1..=events.len() {
                    live.follow(&events[..count]);
                    if let stretto_trace::Event::ToolResult { call_id, name, error, .. } = &events[count - 1] {
                        drop(live.open(call_id, &settings));
                        let (mut run, mut next) = flow.run(name, *error, 3);
                        for _ in 0..10 {
                            next = match next {
                                Next::Decide(site) => match site.offered.first() {
                                    Some(tool) => run.resume(Answer::LookUp(tool.clone())),
                                    None => run.resume(Answer::HandBack),
                                },
                                Next::LookUp { .. } => run.resume(Answer::Returned(true)),
                                Next::HandBack(record) => {
                                    if let Some(record) = record {
                                        drop(flow.score(&record));
                                    }
                                    break;
                                }
                            };
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_cut_or_changed_text_is_no_panic(at in 0..4000_usize, byte in any::<char>()) {
        let text = std::fs::read_to_string(data("flows/shop.flow.json")).unwrap();
        let (before, after) = text.split_at(at.min(text.len()));
        drop(FlowFile::parse(before));
        drop(FlowFile::parse(&format!("{before}{byte}{after}")));
    }
}
