//! The decisions of recorded and worked sessions.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something unexpected happens"
)]

mod support;

use std::sync::Arc;

use serde_json::{Value, json};
use stretto_flow::{Decider, Explore, Flow, FlowFile, RunRecord, Settings};
use support::{Played, data, flow, flow_log, log};

#[test]
fn served_sessions_are_decided_as_they_were() {
    let shop = flow("shop.flow.json");
    for session in ["20260928T020401.117Z-14662", "20260928T020401.195Z-14715"] {
        let recorded = log(&format!("sessions/served/shop/{session}.jsonl"));
        let mut played = Played::new(&shop, &recorded, Settings::new(Decider::Reach, session));
        played.play(&recorded);
        let expected = flow_log(&format!("sessions/served/shop/{session}.flow.jsonl"));
        assert_eq!(played.lines, expected, "{session}");
    }
}

#[test]
fn shadow_sessions_are_decided_as_they_were() {
    let shop = flow("shop.flow.json");
    for session in [
        "20260928T020401.240Z-14750",
        "20260928T020401.259Z-14759",
        "20260928T020401.278Z-14768",
    ] {
        let recorded = log(&format!("sessions/shadow/shop/{session}.jsonl"));
        let mut played = Played::new(&shop, &recorded, Settings::new(Decider::Reach, session));
        played.shadow = true;
        played.play(&recorded);
        let expected = flow_log(&format!("sessions/shadow/shop/{session}.flow.jsonl"));
        assert_eq!(played.lines, expected, "{session}");
    }
}

#[test]
fn recorded_runs_score_as_they_were_logged() {
    let shop = flow("shop.flow.json");
    let mut runs = 0;
    for name in [
        "served/shop/20260928T020401.117Z-14662",
        "shadow/shop/20260928T020401.240Z-14750",
    ] {
        for line in flow_log(&format!("sessions/{name}.flow.jsonl")) {
            let Some(run) = line.get("run") else { continue };
            let record: RunRecord = serde_json::from_value(run.clone()).unwrap();
            assert_eq!(&serde_json::to_value(&record).unwrap(), run);
            assert!(shop.score(&record).unwrap().agrees(), "{run}");
            runs += 1;
        }
    }
    assert_eq!(runs, 7);
}

/// The worked example's live session, decided with the flow's alpha or another.
fn worked(
    decider: Decider,
    threshold: f64,
    alpha: Option<f64>,
    explore: Option<Explore>,
) -> Played {
    let text = std::fs::read_to_string(data("flows/worked-example/expected.flow.json")).unwrap();
    let mut file = FlowFile::parse(&text).unwrap();
    if let Some(alpha) = alpha {
        file.habit.base.alpha = alpha;
        file.habit.beta = alpha;
        file.reach.as_mut().unwrap().alpha = alpha;
    }
    let recorded = log("flows/worked-example/live/20260102T090000.000Z-4.jsonl");
    let settings = Settings {
        threshold,
        explore,
        ..Settings::new(decider, &recorded.header.session)
    };
    let mut played = Played::new(&Arc::new(Flow::new(file)), &recorded, settings);
    played.play(&recorded);
    let mut at = 3000;
    while let Some((_, tool, arguments)) = played.lookup() {
        at += 50;
        let answer = match tool.as_str() {
            "get_account" => json!({"account_id": "acct_9", "orders": ["o9a", "o9b"]}),
            _ => json!({"order_id": arguments["order_id"], "status": "open"}),
        };
        played.look_up(at, &answer.to_string());
    }
    played
}

fn close(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() <= 1e-12
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| close(value, &b[key]))
        }
        _ => a == b,
    }
}

#[test]
fn the_worked_example_is_decided_as_it_was_worked_out() {
    let text = std::fs::read_to_string(data("flows/worked-example/expected.json")).unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    for (name, decider, alpha) in [
        ("alpha_1_habit", Decider::Habit, Some(1.0)),
        ("alpha_1_reach", Decider::Reach, Some(1.0)),
        ("alpha_learned_habit", Decider::Habit, None),
        ("alpha_learned_reach", Decider::Reach, None),
    ] {
        let played = worked(decider, 0.3, alpha, None);
        let decisions = expected["runs"][name].as_array().unwrap();
        assert_eq!(played.decisions.len(), decisions.len(), "{name}");
        for (line, expected) in played.lines.iter().zip(decisions) {
            for (key, value) in expected.as_object().unwrap() {
                assert!(
                    close(&line[key], value),
                    "{name}: {key} of {line} is not {value}"
                );
            }
        }
    }
}

#[test]
fn the_worked_examples_run_is_logged_and_scored_as_it_was_worked_out() {
    let played = worked(Decider::Reach, 0.3, None, None);
    let line = played.lines.last().unwrap();
    let expected = json!({"after": 3, "run": {"call": "find_account", "failed": false, "max_lookups": 8, "sites": [
        ["decide#0", 2, 0.0], ["outcome#0", true, -0.223_143_551_314_209_7],
        ["decide#1", 3, 0.0], ["outcome#1", true, -0.154_150_679_827_258_36],
        ["decide#2", 3, 0.0], ["outcome#2", true, -0.154_150_679_827_258_36],
        ["decide#3", 0, 0.0]], "surprise": 0.531_444_910_968_726_5}});
    assert_eq!(line["after"], expected["after"]);
    for (site, expected) in line["run"]["sites"]
        .as_array()
        .unwrap()
        .iter()
        .zip(expected["run"]["sites"].as_array().unwrap())
    {
        assert_eq!((&site[0], &site[1]), (&expected[0], &expected[1]));
        assert!(close(&site[2], &expected[2]));
    }
    assert!(close(
        &line["run"]["surprise"],
        &expected["run"]["surprise"]
    ));
    let record: RunRecord = serde_json::from_value(line["run"].clone()).unwrap();
    let scored = played.live.flow().score(&record).unwrap();
    assert!(scored.agrees());
    assert!(
        (scored.log_prior - -2.384_645_661_919_772_2).abs() < 1e-12,
        "{}",
        scored.log_prior
    );
}

#[test]
fn what_binding_fails_for_is_the_reason_when_the_threshold_is_reached() {
    let played = worked(Decider::Reach, 0.2, None, None);
    let last = &played.lines[played.lines.len() - 2];
    assert_eq!(
        last["reason"],
        "get_order: nothing left to pass as `order_id`"
    );
    assert!(close(&last["prob"], &json!(0.211_007_504_603_868_2)));
    assert_eq!(last["binding"], Value::Null);
}

#[test]
fn a_threshold_that_only_the_probability_reaches_names_the_arguments_chance() {
    let played = worked(Decider::Habit, 0.4, None, None);
    let last = &played.lines[2];
    assert_eq!(
        last["reason"],
        "get_order at 0.62, times 0.56 for its arguments, below 0.4"
    );
    assert!(close(&last["binding"], &json!(5.0 / 9.0)));
}

#[test]
fn exploring_nothing_still_logs_the_policies() {
    let explore = Explore {
        epsilon: 0.0,
        seed: 0,
    };
    let played = worked(Decider::Habit, 0.4, None, Some(explore));
    let policy = &played.lines[2]["policy"];
    assert_eq!(policy["greedy"], Value::Null);
    assert_eq!(policy["propensity"], 1.0);
    assert_eq!(policy["events"], 7);
    assert_eq!(policy["threshold"], 0.4);
    let option = &policy["options"][0];
    assert_eq!(option["arguments"], json!({"order_id": "o9a"}));
    assert!(close(&option["p"], &json!(0.621_990_325_348_539_9)));
    assert!(option.get("unbound").is_none());
    assert_eq!(played.lines[0]["policy"]["greedy"], "get_account");
}

#[test]
fn exploring_always_takes_what_the_rule_did_not() {
    let explore = Explore {
        epsilon: 1.0,
        seed: 0,
    };
    let played = worked(Decider::Habit, 0.4, None, Some(explore));
    // At the first two sites the rule's choice is the only one that binds.
    assert_eq!(played.lines[0]["policy"]["explored"], false);
    let third = &played.lines[2];
    assert_eq!(third["action"], "lookup");
    assert_eq!(third["policy"]["explored"], true);
    assert_eq!(third["policy"]["propensity"], 1.0);
    assert_eq!(third["arguments"], json!({"order_id": "o9a"}));
}

#[test]
fn exploring_is_the_same_each_time_and_not_the_same_for_each_seed() {
    let outcomes = |seed| {
        let played = worked(
            Decider::Habit,
            0.4,
            None,
            Some(Explore { epsilon: 0.5, seed }),
        );
        played.lines[2]["policy"]["explored"].as_bool().unwrap()
    };
    let first: Vec<bool> = (0..40).map(outcomes).collect();
    let again: Vec<bool> = (0..40).map(outcomes).collect();
    assert_eq!(first, again);
    let explored = first.iter().filter(|explored| **explored).count();
    assert!((8..=32).contains(&explored), "{explored} of 40");
}
