//! An audit of recorded shadow sessions finds what their flow logs say.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use stretto_flow::{Decider, Flow, Session, Settings, audit};
use stretto_trace::Event;
use stretto_trace::mcp::{episode_with_answered, read_log, session_logs};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// The step that the agent took after the result of a call.
fn step_after(session: &Session, call: &str) -> Option<String> {
    let events = &session.episode.events;
    let at = events
        .iter()
        .position(|event| matches!(event, Event::ToolResult { call_id, .. } if call_id == call))?;
    match events.get(at + 1)? {
        Event::Assistant { calls, .. } if !calls.is_empty() => Some(calls[0].name.clone()),
        Event::ToolResult { .. } => None,
        Event::User { .. } | Event::Assistant { .. } => Some("respond".to_owned()),
    }
}

#[test]
fn steps_are_scored_by_the_probabilities_that_were_logged() {
    let flow = Arc::new(Flow::load(&data("flows/shop.flow.json")).unwrap());
    for path in session_logs(&data("sessions/shadow/shop")).unwrap() {
        let (episode, answered_before) = episode_with_answered(&read_log(&path).unwrap());
        let session = Session {
            episode,
            answered_before,
            contents_in: None,
        };
        let logged = fs::read_to_string(path.with_extension("flow.jsonl")).unwrap();
        let (mut decisions, mut likeliest, mut nats) = (0, 0, 0.0);
        for line in logged.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let Some(probs) = line["probs"].as_object().filter(|probs| !probs.is_empty()) else {
                continue;
            };
            let Some(step) = step_after(&session, &line["after"].to_string()) else {
                continue;
            };
            let p = |option: &str| probs.get(option).and_then(Value::as_f64);
            let step = if p(&step).is_some() {
                step
            } else {
                "respond".to_owned()
            };
            let largest = probs.values().filter_map(Value::as_f64).fold(0.0, f64::max);
            decisions += 1;
            likeliest += u64::from(p(&step) == Some(largest));
            nats -= p(&step).unwrap().max(1e-6).ln();
        }
        assert!(decisions > 0);

        let settings = Settings::new(Decider::Reach, "");
        let nobody = &mut |_: &_| Err("nobody is asked".to_owned());
        let found = audit(&flow, &[&session], &settings, 8, &mut |_, _| {}, nobody);
        let total = found.total();
        assert_eq!((total.decisions, total.likeliest), (decisions, likeliest));
        assert!(
            (total.nats - nats).abs() < 1e-9,
            "{} is not {nats}",
            total.nats
        );
        assert_eq!(found.unanswered, 0);
        assert_eq!(found.sessions[0].steps, total);
    }
}

#[test]
fn a_runs_surprise_is_that_of_the_outcomes_that_the_session_shows() {
    let flow = Arc::new(Flow::load(&data("flows/shop.flow.json")).unwrap());
    let path = session_logs(&data("sessions/shadow/shop"))
        .unwrap()
        .remove(0);
    let (episode, answered_before) = episode_with_answered(&read_log(&path).unwrap());
    let session = Session {
        episode,
        answered_before,
        contents_in: None,
    };
    let settings = Settings::new(Decider::Reach, "");
    let nobody = &mut |_: &_| Err("nobody is asked".to_owned());
    let found = audit(&flow, &[&session], &settings, 8, &mut |_, _| {}, nobody);
    // The run after `find_user_id_by_email` looks up a user and two orders, and all succeed. The
    // served session that was recorded with the same flow has the same run in its log.
    let served = fs::read_to_string(data(
        "sessions/served/shop/20260928T020401.117Z-14662.flow.jsonl",
    ))
    .unwrap();
    let recorded = served
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).unwrap()["run"]["surprise"].as_f64())
        .fold(0.0, f64::max);
    let surprise = found.sessions[0].surprise.unwrap();
    assert!(
        (surprise - recorded).abs() < 1e-12,
        "{surprise} is not {recorded}"
    );
    assert!(surprise > 0.0);
}

#[test]
fn the_session_that_fits_worst_comes_first() {
    let flow = Arc::new(Flow::load(&data("flows/retail-5-sessions.flow.json")).unwrap());
    let mut sessions: Vec<Session> = session_logs(&data("sessions/logs/shop"))
        .unwrap()
        .iter()
        .map(|path| {
            let (episode, answered_before) = episode_with_answered(&read_log(path).unwrap());
            Session {
                episode,
                answered_before,
                contents_in: None,
            }
        })
        .collect();
    // Another agent, which reads no orders.
    let is_order = |name: &str| name == "get_order_details";
    let odd = &mut sessions[3].episode;
    odd.events.retain(|event| match event {
        Event::Assistant { calls, .. } => !calls.iter().any(|call| is_order(&call.name)),
        Event::ToolResult { name, .. } => !is_order(name),
        Event::User { .. } => true,
    });
    let odd = odd.id.clone();
    let all: Vec<&Session> = sessions.iter().collect();
    let settings = Settings::new(Decider::Habit, "");
    let nobody = &mut |_: &_| Err("nobody is asked".to_owned());
    let found = audit(&flow, &all, &settings, 8, &mut |_, _| {}, nobody);
    let means: Vec<f64> = found
        .sessions
        .iter()
        .map(|session| session.steps.mean().unwrap())
        .collect();
    assert!(means.is_sorted_by(|one, other| one >= other), "{means:?}");
    assert_eq!(found.sessions[0].session, odd);
    assert!(means[0] > means[1], "{means:?}");
}
