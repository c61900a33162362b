//! Small lessons, and what follows from them.

use std::sync::Arc;

use serde_json::{Value, json};
use stretto_trace::{Event, ToolCall, ToolDoc, ToolKind};

use super::{LearnError, LearnOptions, Session, SiteThresholds, Surroundings, learn};
use crate::decide::{Decider, Settings};
use crate::file::{Field, FlowFile, Tally};
use crate::flow::Flow;
use crate::live::Live;
use crate::memory::PickKind;

/// What happens in a session: something is said, or a turn of calls with their results.
enum Happens {
    Said(&'static str),
    Replied(&'static str),
    Calls(Vec<(&'static str, Value, Value)>),
}

fn said(text: &'static str) -> Happens {
    Happens::Said(text)
}

fn call(tool: &'static str, arguments: Value, result: Value) -> Happens {
    Happens::Calls(vec![(tool, arguments, result)])
}

fn events(happens: Vec<Happens>) -> Vec<Event> {
    let mut events = Vec::new();
    for (turn, happens) in happens.into_iter().enumerate() {
        match happens {
            Happens::Said(text) => events.push(Event::User {
                text: text.to_owned(),
            }),
            Happens::Replied(text) => events.push(Event::Assistant {
                text: Some(text.to_owned()),
                calls: Vec::new(),
                usage: None,
            }),
            Happens::Calls(made) => {
                let id = |place: usize| format!("{turn}.{place}");
                let calls = made
                    .iter()
                    .enumerate()
                    .map(|(place, (name, arguments, _))| ToolCall {
                        id: id(place),
                        name: (*name).to_owned(),
                        arguments: arguments.clone(),
                    });
                events.push(Event::Assistant {
                    text: None,
                    calls: calls.collect(),
                    usage: None,
                });
                for (place, (name, _, result)) in made.iter().enumerate() {
                    events.push(Event::ToolResult {
                        call_id: id(place),
                        name: (*name).to_owned(),
                        error: result.is_null(),
                        content: crate::value::text(result),
                    });
                }
            }
        }
    }
    events
}

fn session(number: usize, happens: Vec<Happens>) -> Session {
    let mut session = Session::default();
    session.episode.id = format!("s{number}");
    session.episode.reward = 1.0;
    session.episode.events = events(happens);
    session
}

const READS: [&str; 7] = [
    "find",
    "get_user",
    "get_order",
    "get_line",
    "search",
    "read",
    "read_all",
];

fn surroundings() -> Surroundings {
    let mut surroundings = Surroundings::default();
    let tools = &mut surroundings.manifest.tools;
    tools.extend(READS.map(|tool| (tool.to_owned(), ToolKind::Read)));
    tools.insert("cancel".to_owned(), ToolKind::Write);
    surroundings
}

fn fixed() -> LearnOptions {
    LearnOptions {
        draws: 0,
        ..LearnOptions::default()
    }
}

fn learned_with(sessions: &[Session], options: &LearnOptions) -> FlowFile {
    let sessions: Vec<&Session> = sessions.iter().collect();
    learn(&sessions, &surroundings(), options, &mut |_, _, _| {}).unwrap()
}

fn learned(sessions: &[Session]) -> FlowFile {
    learned_with(sessions, &fixed())
}

/// A live session in which some of it has happened.
fn live(file: &FlowFile, happens: Vec<Happens>) -> Live {
    let mut live = Live::new(Arc::new(Flow::new(file.clone())));
    live.follow(&events(happens));
    live
}

/// The arguments that are picked, with their chance; or why none are.
fn picked(live: &mut Live, lookup: &str) -> Result<(Value, f64), String> {
    let pick = live.memory.pick(lookup).map_err(|why| why.to_string())?;
    let chance = live.flow().chance(lookup, &pick);
    Ok((Value::Object(pick.arguments), chance))
}

fn is(picked: Result<(Value, f64), String>, arguments: &Value, chance: f64) {
    let (found, found_chance) = picked.unwrap();
    assert_eq!(&found, arguments);
    assert!(
        (found_chance - chance).abs() < 1e-12,
        "{found_chance} is not {chance}"
    );
}

fn user(orders: &[&str]) -> Happens {
    call(
        "get_user",
        json!({"user_id": "u1"}),
        json!({"orders": orders}),
    )
}

fn order(id: &str) -> Happens {
    call(
        "get_order",
        json!({"order_id": id}),
        json!({"status": "open"}),
    )
}

#[test]
fn a_named_order_is_picked_first_and_trusted_as_such() {
    let sessions =
        [1, 2, 3].map(|n| session(n, vec![user(&["#W1", "#W2"]), order("#W1"), order("#W2")]));
    let flow = learned(&sessions);
    let mut unnamed = live(&flow, vec![user(&["#W8", "#W9"])]);
    is(
        picked(&mut unnamed, "get_order"),
        &json!({"order_id": "#W8"}),
        7.0 / 8.0,
    );
    let mut named = live(&flow, vec![said("Where is W9?"), user(&["#W8", "#W9"])]);
    is(
        picked(&mut named, "get_order"),
        &json!({"order_id": "#W9"}),
        0.5,
    );
}

#[test]
fn another_order_than_the_named_one_is_trusted_as_often_as_it_was_used() {
    let sessions = [1, 2, 3, 4].map(|n| {
        session(
            n,
            vec![
                said("Where is #W2?"),
                user(&["#W1", "#W2", "#W3"]),
                order("#W2"),
            ],
        )
    });
    let mut flow = learned(&sessions);
    assert_eq!(
        flow.bindings.agreed["get_order"],
        [Tally(0, 0), Tally(4, 4)]
    );
    assert_eq!(flow.bindings.named_other["get_order"], Tally(0, 4));
    assert_eq!(flow.stretto_flow, 2);
    let happens = || vec![said("And #W7?"), user(&["#W6", "#W7", "#W8"])];
    is(
        picked(&mut live(&flow, happens()), "get_order"),
        &json!({"order_id": "#W7"}),
        5.0 / 6.0,
    );
    let after = || {
        let mut happens = happens();
        happens.push(order("#W7"));
        happens
    };
    is(
        picked(&mut live(&flow, after()), "get_order"),
        &json!({"order_id": "#W6"}),
        1.0 / 6.0,
    );
    flow.bindings.named_other.clear();
    is(
        picked(&mut live(&flow, after()), "get_order"),
        &json!({"order_id": "#W6"}),
        0.5,
    );
}

fn line(id: &str, phone: &str) -> Happens {
    call(
        "get_line",
        json!({"line_id": id}),
        json!({"phone": phone, "plan": "all"}),
    )
}

fn lines(phone: &str) -> Vec<Happens> {
    vec![
        call("find", json!({"phone": phone}), json!("u1")),
        call(
            "get_user",
            json!({"user_id": "u1"}),
            json!({"lines": ["L1", "L2", "L3"]}),
        ),
    ]
}

#[test]
fn once_the_described_line_is_read_the_next_is_trusted_less() {
    let sessions = [1, 2, 3, 4].map(|n| {
        let mut happens = lines("555-0102");
        happens.extend([line("L1", "555-0101"), line("L2", "555-0102")]);
        session(n, happens)
    });
    let flow = learned(&sessions);
    assert_eq!(flow.bindings.agreed["get_line"], [Tally(8, 8), Tally(0, 0)]);
    assert_eq!(flow.bindings.described_read["get_line"], Tally(0, 4));
    for (phone, chance) in [("555-0102", 0.3), ("555-0199", 0.9)] {
        let mut happens = lines(phone);
        happens.extend([line("L1", "555-0101"), line("L2", "555-0102")]);
        is(
            picked(&mut live(&flow, happens), "get_line"),
            &json!({"line_id": "L3"}),
            chance,
        );
    }
}

#[test]
fn the_order_of_sources_follows_the_tool_that_returned_last() {
    let related = |id: &str| {
        call(
            "get_order",
            json!({"order_id": id}),
            json!({"related": "#W9"}),
        )
    };
    let sessions: Vec<Session> = (0..10)
        .map(|n| {
            let second = if n < 8 { order("#W2") } else { order("#W9") };
            session(n, vec![user(&["#W1", "#W2"]), related("#W1"), second])
        })
        .collect();
    let mut flow = learned(&sessions);
    let happens = || vec![user(&["#W5", "#W6"]), related("#W5")];
    let mut next = live(&flow, happens());
    assert_eq!(
        picked(&mut next, "get_order").unwrap().0,
        json!({"order_id": "#W6"})
    );
    flow.bindings.site_sources.clear();
    let mut without = live(&flow, happens());
    assert_eq!(
        picked(&mut without, "get_order").unwrap().0,
        json!({"order_id": "#W9"})
    );
}

#[test]
fn lines_are_a_list_and_a_whole_list_is_passed_once() {
    let sessions = [1, 2, 3].map(|n| {
        let found = json!("  src/a.rs\n\nsrc/b.rs \n");
        session(
            n,
            vec![
                call("search", json!({"text": "x"}), found),
                call("read", json!({"path": "src/a.rs"}), json!("fn a() {}")),
                call("read", json!({"path": "src/b.rs"}), json!("fn b() {}")),
                call(
                    "read_all",
                    json!({"paths": ["src/a.rs", "src/b.rs"]}),
                    json!(""),
                ),
            ],
        )
    });
    let flow = learned(&sessions);
    let mut happens = vec![call("search", json!({"text": "y"}), json!("c.rs\nd.rs"))];
    let mut now = live(
        &flow,
        vec![call("search", json!({"text": "y"}), json!("c.rs\nd.rs"))],
    );
    assert_eq!(picked(&mut now, "read").unwrap().0, json!({"path": "c.rs"}));
    assert_eq!(
        picked(&mut now, "read_all").unwrap().0,
        json!({"paths": ["c.rs", "d.rs"]})
    );
    happens.push(call("read", json!({"path": "c.rs"}), json!("")));
    happens.push(call(
        "read_all",
        json!({"paths": ["c.rs", "d.rs"]}),
        json!(""),
    ));
    let mut then = live(&flow, happens);
    assert_eq!(
        picked(&mut then, "read").unwrap().0,
        json!({"path": "d.rs"})
    );
    assert_eq!(
        picked(&mut then, "read_all").unwrap_err(),
        "no list left to pass as `paths`"
    );
    assert_eq!(
        picked(&mut then, "search").unwrap_err(),
        "no source for `text` (the LLM supplies it)"
    );
}

#[test]
fn a_search_that_always_took_something_is_not_trusted_without_anything() {
    let with = |arg: &str| call("search", json!({arg: "x"}), json!("y"));
    let sessions = ["a", "b", "c", "d"].map(|arg| session(arg.len(), vec![with(arg)]));
    let flow = learned(&sessions);
    assert_eq!(flow.bindings.bare["search"], 0);
    is(
        picked(&mut live(&flow, vec![]), "search"),
        &json!({}),
        1.0 / 6.0,
    );
    let bare = || call("search", json!({}), json!("y"));
    let flow = learned(&[session(1, vec![bare()]), session(2, vec![bare()])]);
    assert!(flow.bindings.bare.is_empty());
    is(picked(&mut live(&flow, vec![]), "search"), &json!({}), 1.0);
    assert_eq!(
        picked(&mut live(&flow, vec![bare()]), "search").unwrap_err(),
        "already looked up"
    );
}

#[test]
fn numbers_are_never_bound() {
    let sessions = [1, 2].map(|n| {
        session(
            n,
            vec![call("get_order", json!({"order_id": 7}), json!("x"))],
        )
    });
    let mut now = live(&learned(&sessions), vec![]);
    assert_eq!(
        picked(&mut now, "get_order").unwrap_err(),
        "`order_id` never took a string in training"
    );
}

#[test]
fn the_proxys_own_lookups_are_left_out_of_agreement_only() {
    let mut sessions = [1, 2, 3].map(|n| session(n, vec![user(&["#W1", "#W2"]), order("#W1")]));
    for session in &mut sessions {
        for event in &mut session.episode.events {
            match event {
                Event::Assistant { calls, .. } if calls[0].name == "get_order" => {
                    calls[0].id = "stretto-1".to_owned();
                }
                Event::ToolResult { call_id, name, .. } if name == "get_order" => {
                    *call_id = "stretto-1".to_owned();
                }
                _ => {}
            }
        }
    }
    let flow = learned(&sessions);
    assert_eq!(flow.bindings.args["get_order"].0, 3);
    assert!(!flow.bindings.agreed.contains_key("get_order"));
    assert_eq!(
        flow.sites.next[&("get_user".to_owned(), false)]["get_order"],
        3
    );
}

#[test]
fn an_argument_with_one_value_is_constant_unless_somebody_gave_it() {
    let search = |text: &'static str| {
        call(
            "search",
            json!({"kind": "open", "text": text}),
            json!("none"),
        )
    };
    let sessions: Vec<Session> = (0..6)
        .map(|n| {
            session(
                n,
                vec![said("I am ann@example.com"), search("ann@example.com")],
            )
        })
        .collect();
    let flow = learned_with(
        &sessions,
        &LearnOptions {
            constants: true,
            ..fixed()
        },
    );
    let constants: Vec<_> = flow.bindings.constants.iter().collect();
    assert_eq!(
        constants,
        [(&("search".to_owned(), "kind".to_owned()), &json!("open"))]
    );
    assert!(learned(&sessions).bindings.constants.is_empty());
}

#[test]
fn a_telling_field_is_found_and_read_again() {
    // What the agent does after an order depends on its status alone.
    let sessions: Vec<Session> = (0..40)
        .map(|n| {
            let status = if n % 2 == 0 { "pending" } else { "delivered" };
            let order = call(
                "get_order",
                json!({"order_id": "#W1"}),
                json!({"status": status, "n": n}),
            );
            let next = if n % 2 == 0 {
                call("cancel", json!({"order_id": "#W1"}), json!("done"))
            } else {
                call("get_user", json!({"user_id": "u1"}), json!({"orders": []}))
            };
            session(n, vec![order, next, Happens::Replied("Done.")])
        })
        .collect();
    let flow = learned_with(
        &sessions,
        &LearnOptions {
            features: true,
            ..fixed()
        },
    );
    assert_eq!(
        flow.map.fields["get_order"],
        [Field::Scalar("status".to_owned())]
    );
    let ids: Vec<_> = flow
        .map
        .ids
        .iter()
        .map(|((_, values), id)| (values[0].as_str(), *id))
        .collect();
    assert_eq!(ids, [("delivered", 1), ("pending", 2)]);
    for (status, looks_up) in [("delivered", true), ("pending", false)] {
        let mut now = live(
            &flow,
            vec![call(
                "get_order",
                json!({"order_id": "#W5"}),
                json!({"status": status}),
            )],
        );
        let settings = Settings {
            threshold: 0.0,
            ..Settings::new(Decider::Habit, "t")
        };
        let decision = now.decide("0.0", &settings).unwrap();
        assert_eq!(decision.probs["get_user"] > 0.5, looks_up, "{status}");
    }
}

#[test]
fn a_gate_trips_for_good_in_a_session_unlike_all_others() {
    let usual = |n| {
        session(
            n,
            vec![
                user(&["#W1", "#W2", "#W3", "#W4", "#W5"]),
                order("#W1"),
                order("#W2"),
                order("#W3"),
                order("#W4"),
                order("#W5"),
                Happens::Replied("Done."),
            ],
        )
    };
    let sessions: Vec<Session> = (0..30).map(usual).collect();
    let flow = learned_with(
        &sessions,
        &LearnOptions {
            surprise: Some(1.0),
            ..fixed()
        },
    );
    let gate = flow.surprise.unwrap();
    assert_eq!((gate.window, gate.quantile), (5, Some(1.0)));
    assert!(gate.threshold < 1.0, "{gate:?}");
    let settings = Settings::new(Decider::Reach, "t");
    let odd = || (0..6).flat_map(|_| [user(&["#W1"]), call("cancel", json!({}), json!("done"))]);
    let mut surprising = live(&flow, odd().chain([user(&["#W7"])]).collect());
    let decision = surprising.decide("12.0", &settings).unwrap();
    assert_eq!(decision.tool(), None);
    let crate::decide::Verdict::HandBack { reason } = decision.verdict else {
        panic!()
    };
    assert!(
        reason.starts_with("the session surprised the flow: "),
        "{reason}"
    );
    let mut calm = live(&flow, vec![user(&["#W7"])]);
    assert_eq!(
        calm.decide("0.0", &settings).unwrap().tool(),
        Some("get_order")
    );
}

#[test]
fn with_every_read_on_offer_a_lookup_is_bound_by_name() {
    let sessions = [1, 2].map(|n| session(n, vec![user(&["#W1"]), order("#W1")]));
    let mut flow = learned(&sessions);
    flow.sites.every_read = true;
    let doc = |args: &[&str]| ToolDoc {
        summary: String::new(),
        args: args
            .iter()
            .map(|arg| ((*arg).to_owned(), String::new()))
            .collect(),
    };
    flow.manifest
        .docs
        .insert("get_line".to_owned(), doc(&["line_id"]));
    flow.manifest.docs.insert("search".to_owned(), doc(&[]));
    let lines = || {
        call(
            "get_user",
            json!({"user_id": "u1"}),
            json!({"line_id": "L1", "x": {"line_id": "L2"}}),
        )
    };
    let mut now = live(&flow, vec![said("my line is L2"), lines()]);
    assert_eq!(now.memory.pick("get_line").unwrap().kind, PickKind::ByName);
    is(picked(&mut now, "get_line"), &json!({"line_id": "L2"}), 0.5);
    is(picked(&mut now, "search"), &json!({}), 1.0);
    let settings = Settings {
        threshold: 0.0,
        ..Settings::new(Decider::Habit, "t")
    };
    let decision = now.decide("1.0", &settings).unwrap();
    assert_eq!(decision.probs.len(), READS.len() + 1);
    let mut none = live(&flow, vec![user(&["#W1"])]);
    assert_eq!(
        picked(&mut none, "get_line").unwrap_err(),
        "no `line_id` in earlier results to pass"
    );
}

#[test]
fn there_must_be_something_to_learn_from() {
    let good = session(1, vec![user(&["#W1"])]);
    let mut bad = good.clone();
    bad.episode.reward = 0.0;
    let learn = |sessions: &[&Session], surroundings: &Surroundings| {
        learn(sessions, surroundings, &fixed(), &mut |_, _, _| {}).map(drop)
    };
    assert_eq!(learn(&[], &surroundings()), Err(LearnError::NoSessions));
    assert_eq!(
        learn(&[&bad], &surroundings()),
        Err(LearnError::NoneSuccessful(1))
    );
    assert_eq!(
        learn(&[&good], &Surroundings::default()),
        Err(LearnError::NoTools)
    );
    let mut writes = Surroundings::default();
    writes
        .manifest
        .tools
        .insert("cancel".to_owned(), ToolKind::Write);
    assert_eq!(learn(&[&good], &writes), Err(LearnError::NoReads(1)));
    assert_eq!(learn(&[&good, &bad], &surroundings()), Ok(()));
}

#[test]
fn sessions_that_failed_teach_only_when_every_session_is_to() {
    let good = session(1, vec![user(&["#W1"]), order("#W1")]);
    let mut bad = session(
        2,
        vec![call("find", json!({}), json!("u1")), user(&["#W2"])],
    );
    bad.episode.reward = 0.0;
    let sessions = [good, bad];
    let site = ("find".to_owned(), false);
    assert!(!learned(&sessions).sites.next.contains_key(&site));
    let options = LearnOptions {
        every_session: true,
        ..fixed()
    };
    let flow = learned_with(&sessions, &options);
    assert_eq!(flow.sites.next[&site]["get_user"], 1);
    assert_eq!(flow.provenance.habit_episodes, 2);
    let none = learn(
        &[&sessions[1]],
        &surroundings(),
        &options,
        &mut |_, _, _| {},
    );
    assert_eq!(none.map(drop), Ok(()));
}

#[test]
fn a_longer_history_tells_apart_what_two_steps_cannot() {
    // The agent reads a line after two orders if it searched before them, and none otherwise.
    let search = || call("search", json!({"text": "x"}), json!("none"));
    let find = || call("find", json!({"email": "x"}), json!("u1"));
    let two_orders = || [order("#W1"), order("#W2")];
    let line = || call("get_line", json!({"line_id": "L1"}), json!("a line"));
    let sessions: Vec<Session> = (0..20)
        .map(|n| {
            let mut happens = vec![if n % 2 == 0 { search() } else { find() }];
            happens.extend(two_orders());
            happens.push(if n % 2 == 0 {
                line()
            } else {
                Happens::Replied("Done.")
            });
            session(n, happens)
        })
        .collect();
    let chance = |order: usize, first: Happens| {
        let options = LearnOptions { order, ..fixed() };
        let flow = learned_with(&sessions, &options);
        assert_eq!(flow.habit.base.levels.len(), order + 1);
        let flow = FlowFile::parse(&flow.to_text()).unwrap();
        let happens = [first].into_iter().chain(two_orders()).collect();
        let settings = Settings::new(Decider::Habit, "t");
        let decision = live(&flow, happens).decide("2.0", &settings).unwrap();
        decision.probs["get_line"]
    };
    assert!((chance(2, search()) - chance(2, find())).abs() < 1e-12);
    assert!(chance(3, search()) > 0.8);
    assert!(chance(3, find()) < 0.2);
}

#[test]
fn a_site_whose_lookups_are_detours_gets_a_threshold_that_stops_them() {
    // Of a user's orders the agent reads one of two, whichever: every other pick is a detour.
    let sessions: Vec<Session> = (0..40)
        .map(|n| {
            let read = if n % 2 == 0 { "#W1" } else { "#W2" };
            let found = call("find", json!({"email": "x"}), json!("u1"));
            session(n, vec![found, user(&["#W1", "#W2"]), order(read)])
        })
        .collect();
    let thresholds = |detour_cost: f64| {
        let site_thresholds = Some(SiteThresholds {
            detour_cost,
            decider: Decider::Reach,
        });
        let options = LearnOptions {
            site_thresholds,
            ..fixed()
        };
        let flow = learned_with(&sessions, &options);
        assert_eq!(flow.stretto_flow, 2);
        flow.thresholds
    };
    let (free, dear) = (thresholds(0.0), thresholds(3.0));
    assert!(free["get_user"] <= 0.5, "{free:?}");
    assert_eq!(dear.get("get_user"), Some(&2.0));
    // What follows the search for a user is always right, whatever a detour costs.
    assert_eq!(free.get("find"), dear.get("find"));
    assert!(dear["find"] <= 1.0, "{dear:?}");
    assert_eq!(learned(&sessions).thresholds.len(), 0);
}
