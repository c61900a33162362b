use serde_json::json;
use stretto_trace::{Episode, Event, ToolCall};

use super::*;
use crate::learn::Session;

/// A decision at a site with the options `a` and `b`, both bound with the chance 1.
fn decision(greedy: Option<&str>, taken: Option<&str>, p: [f64; 2], used: [bool; 2]) -> Logged {
    let option = |tool: &str, p: f64, habit: f64| json!({"tool": tool, "p": p, "habit": habit, "binding": 1.0, "arguments": {"x": tool}});
    let label =
        |used: bool| json!({"used": used, "detour": !used, "turn": if used { 0.5 } else { 0.0 }});
    let line = json!({
        "site": "s", "after": 3, "tool": taken, "action": "…",
        "policy": {
            "decider": "arbiter", "threshold": 0.5, "epsilon": 0.2, "explored": greedy != taken,
            "greedy": greedy, "propensity": 0.8, "task_id": "t", "events": 4,
            "options": [option("a", p[0], 0.1), option("b", p[1], 0.9)],
        },
        "labels": {"a": label(used[0]), "b": label(used[1])},
    });
    Logged::read(&line.to_string()).unwrap().unwrap()
}

fn close(one: Measures, other: Measures) {
    for (one, other) in one.into_iter().zip(other) {
        assert!((one - other).abs() < 1e-12, "{one} is not {other}");
    }
}

/// Four records, worked by hand.
///
/// The target takes `a` at the first three, and hands back at the last. The log took `a` by its
/// rule (propensity 1 − 0.2), `b` by exploring, and `a` by exploring where its rule took `b`
/// (propensity 0.2 · 0.6 / 0.6).
fn four() -> Vec<Logged> {
    vec![
        decision(Some("a"), Some("a"), [0.7, 0.2], [true, false]),
        decision(Some("a"), Some("b"), [0.7, 0.2], [true, true]),
        decision(Some("b"), Some("a"), [0.6, 0.5], [false, true]),
        decision(None, None, [0.1, 0.2], [true, true]),
    ]
}

#[test]
fn estimates_are_those_worked_by_hand() {
    let target: Target = "arbiter@0.5".parse().unwrap();
    let Evaluation { sites, total } = evaluate(&four(), &target, 0.0);
    assert_eq!(sites["s"], total);
    assert_eq!((total.looks, total.unsupported), (3, 0));
    close(total.direct, [3.0, 2.0, 1.0, 1.0]);

    // The weights are 1.25, 0 and 5.
    let weighted = total.weighted.unwrap();
    close(weighted.ips.sum, [6.25, 1.25, 5.0, 0.625]);
    close(weighted.snips, [3.0, 0.6, 2.4, 0.3]);
    assert!((total.ess - 6.25 * 6.25 / (1.25 * 1.25 + 25.0)).abs() < 1e-12);
    // Of `used`, the terms are 1.25, 0 and 0.
    let spread: f64 = 1.5625 - 1.5625 / 3.0;
    assert!((weighted.ips.error[1] - (spread * 1.5).sqrt()).abs() < 1e-12);

    // `a` was taken twice, used once: its mean is (1, 0.5, 0.5, 0.25).
    // used: 0.5 + 1.25 · 0.5, then 0.5, then 0.5 − 5 · 0.5.
    close(weighted.dr.sum, [3.0, -0.375, 3.375, -0.1875]);
}

#[test]
fn a_small_sample_leaves_out_what_rests_on_it() {
    let target: Target = "arbiter@0.5".parse().unwrap();
    let total = evaluate(&four(), &target, 10.0).total;
    assert_eq!(total.weighted, None);
    close(total.direct, [3.0, 2.0, 1.0, 1.0]);
    let nowhere = evaluate(&four(), &"high=arbiter@0.9".parse().unwrap(), 10.0);
    assert_eq!(nowhere.total.looks, 0);
    assert_eq!(nowhere.total.weighted, Some(Weighted::default()));
    assert!(nowhere.sites.is_empty());
}

#[test]
fn a_target_of_the_habits_takes_what_the_habit_would() {
    let target: Target = "low=habit@0.5".parse().unwrap();
    assert_eq!(target.name, "low");
    let evaluation = evaluate(&four(), &target, 0.0);
    // `b`, at all four.
    assert_eq!(evaluation.total.looks, 4);
    close(evaluation.total.direct, [4.0, 3.0, 1.0, 1.5]);
}

#[test]
fn what_the_log_could_not_have_taken_is_counted() {
    let mut record = decision(Some("a"), Some("a"), [0.7, 0.0], [true, true]);
    record.policy.epsilon = 0.5;
    assert!(
        (record.propensity("a") - 1.0).abs() < 1e-12,
        "no alternative"
    );
    let evaluation = evaluate(&[record], &"habit@0.5".parse().unwrap(), 0.0);
    assert_eq!(evaluation.total.unsupported, 1);
}

#[test]
fn under_reach_each_option_is_judged_on_its_own() {
    let mut record = decision(Some("a"), Some("a"), [0.6, 0.55], [true, true]);
    record.policy.options[0].binding = None;
    let by = |record: &Logged| {
        let target: Target = "arbiter@0.5".parse().unwrap();
        target.takes(record).map(|option| option.tool.clone())
    };
    assert_eq!(by(&record), None, "only the likeliest is tried");
    record.policy.decider = crate::Decider::Reach;
    assert_eq!(by(&record).as_deref(), Some("b"));
    record.policy.options[1].binding = Some(0.9);
    assert_eq!(by(&record), None, "0.55 · 0.9 is below");
}

#[test]
fn targets_that_are_none_say_how_they_are_written() {
    for text in ["habit", "habit@x", "x=reach@0.3", "@0.3"] {
        assert!(text.parse::<Target>().is_err(), "{text}");
    }
}

#[test]
fn lines_without_a_policy_are_none_and_broken_ones_are_errors() {
    assert!(Logged::read(r#"{"after":3,"run":{}}"#).unwrap().is_none());
    assert!(
        Logged::read(r#"{"after":3,"policy":null}"#)
            .unwrap()
            .is_none()
    );
    assert!(Logged::read("{").is_err());
    assert!(Logged::read(r#"{"after":3,"policy":{}}"#).is_err());
}

#[test]
fn labels_are_what_the_agent_did_in_later_turns() {
    let call = |id: &str, name: &str, x: &str| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: json!({"x": x, "more": 1}),
    };
    let turn = |calls: Vec<ToolCall>| Event::Assistant {
        text: None,
        calls,
        usage: None,
    };
    let session = Session {
        episode: Episode {
            events: vec![
                turn(vec![call("3", "first", ""), call("4", "b", "b")]),
                turn(vec![call("stretto-1", "b", "b")]),
                turn(vec![call("5", "a", "a"), call("6", "c", "")]),
            ],
            ..Episode::default()
        },
        answered_before: HashMap::default(),
        contents_in: None,
    };
    let record = decision(Some("a"), Some("a"), [0.7, 0.2], [true, true]);
    let labels = label(&record, &session).unwrap();
    let used = Label {
        used: 1.0,
        detour: 0.0,
        turn: 0.5,
    };
    let detour = Label {
        used: 0.0,
        detour: 1.0,
        turn: 0.0,
    };
    assert_eq!(labels["a"], used);
    assert_eq!(
        labels["b"], detour,
        "its own turn and the flow's lookups do not count"
    );
    let stranger = Logged {
        after: json!("9"),
        ..record
    };
    assert_eq!(label(&stranger, &session), Err(NoSuchCall("9".into())));
}
