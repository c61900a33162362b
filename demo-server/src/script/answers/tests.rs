use super::*;

fn rule(rule: Value) -> Result<Rule, String> {
    let written: Written = serde_json::from_value(rule).map_err(|error| error.to_string())?;
    Rule::of(written, "answers[0]")
}

fn answers(rules: &[Value]) -> Answers {
    Answers::new(
        rules
            .iter()
            .map(|written| rule(written.clone()).unwrap())
            .collect(),
    )
}

fn call(tool: &str, arguments: Value) -> Call {
    Call {
        method: "tools/call".into(),
        params: json!({"name": tool, "arguments": arguments}),
    }
}

/// The text that a call gets, or its error.
fn text(answers: &mut Answers, tool: &str, arguments: Value) -> String {
    match answers.judge(&call(tool, arguments)).answer {
        None => "none".into(),
        Some(Answered {
            outcome: Ok(result),
            ..
        }) => result["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        Some(Answered {
            outcome: Err(error),
            ..
        }) => error.message,
    }
}

#[test]
fn the_first_rule_that_matches_answers() {
    let mut answers = answers(&[
        json!({"tool": "a", "args": {"x": 1}, "text": "one"}),
        json!({"tool": "a", "text": "any"}),
        json!({"tool": "*", "text": "star"}),
    ]);
    assert_eq!(text(&mut answers, "a", json!({"x": 1})), "one");
    assert_eq!(text(&mut answers, "a", json!({"x": "1"})), "any");
    assert_eq!(text(&mut answers, "b", json!({})), "star");
}

#[test]
fn a_call_that_no_rule_matches_has_no_answer() {
    assert_eq!(
        text(
            &mut answers(&[json!({"tool": "a", "text": "x"})]),
            "b",
            json!({})
        ),
        "none"
    );
}

#[test]
fn a_pattern_matches_texts_only_and_gives_its_groups() {
    let mut answers = answers(&[
        json!({"tool": "a", "args": {"id": "re:^#W(\\d+)(a|b)$"}, "json": {"u{1}": "{2}"}}),
    ]);
    assert_eq!(
        text(&mut answers, "a", json!({"id": "#W12b"})),
        r#"{"u12":"b"}"#
    );
    assert_eq!(text(&mut answers, "a", json!({"id": "#W12c"})), "none");
    assert_eq!(text(&mut answers, "a", json!({"id": 12})), "none");
    assert_eq!(text(&mut answers, "a", json!({})), "none");
}

#[test]
fn nth_counts_the_calls_that_match_otherwise() {
    let mut answers = answers(&[
        json!({"tool": "a", "args": {"x": 1}, "nth": 2, "text": "second"}),
        json!({"tool": "a", "nth": [1, 4], "text": "first or fourth, {n}"}),
        json!({"tool": "a", "text": "{n}"}),
    ]);
    assert_eq!(
        text(&mut answers, "a", json!({"x": 1})),
        "first or fourth, 1"
    );
    assert_eq!(text(&mut answers, "a", json!({"x": 2})), "2");
    assert_eq!(text(&mut answers, "a", json!({"x": 1})), "second");
    assert_eq!(text(&mut answers, "a", json!({})), "first or fourth, 4");
    assert_eq!(text(&mut answers, "a", json!({})), "5");
}

#[test]
fn after_waits_for_calls_that_were_made_with_success() {
    let mut answers = answers(&[
        json!({"tool": "b", "after": ["a"], "text": "now"}),
        json!({"tool": "b", "error": "not yet"}),
    ]);
    assert_eq!(text(&mut answers, "b", json!({})), "not yet");
    answers.made("a");
    assert_eq!(text(&mut answers, "b", json!({})), "now");
}

#[test]
fn each_form_of_answer_is_a_result_of_its_shape() {
    for (written, outcome) in [
        (
            json!({"text": "t"}),
            json!({"content": [{"type": "text", "text": "t"}], "isError": false}),
        ),
        (
            json!({"json": null}),
            json!({"content": [{"type": "text", "text": "null"}], "isError": false}),
        ),
        (
            json!({"structured": {"a": 1}}),
            json!({"content": [], "structuredContent": {"a": 1}, "isError": false}),
        ),
        (
            json!({"structured": {"a": 1}, "text": "t"}),
            json!({"content": [{"type": "text", "text": "t"}], "structuredContent": {"a": 1}, "isError": false}),
        ),
        (
            json!({"content": [{"type": "image"}]}),
            json!({"content": [{"type": "image"}], "isError": false}),
        ),
        (
            json!({"error": "e"}),
            json!({"content": [{"type": "text", "text": "e"}], "isError": true}),
        ),
        (
            json!({"result": {"resultType": "task"}}),
            json!({"resultType": "task"}),
        ),
    ] {
        let mut written = written;
        written["tool"] = json!("a");
        let answer = answers(&[written.clone()])
            .judge(&call("a", json!({})))
            .answer
            .unwrap();
        assert_eq!(answer.outcome, Ok(outcome), "{written}");
    }
}

#[test]
fn an_rpc_error_stands_in_place_of_a_result() {
    let mut answers = answers(&[
        json!({"tool": "a", "rpc_error": {"code": -5, "message": "no {args.x}", "data": null}}),
    ]);
    let answer = answers.judge(&call("a", json!({"x": "y"}))).answer.unwrap();
    assert_eq!(
        answer.outcome,
        Err(RpcError {
            code: -5,
            message: "no y".into(),
            data: Some(Value::Null)
        })
    );
}

#[test]
fn rules_without_an_answer_add_to_the_one_that_has() {
    let mut answers = answers(&[
        json!({"tool": "*", "delay_ms": 5, "fault": {"twice": true}}),
        json!({"tool": "a", "nth": 2, "fault": {"exit": 3}, "when": "after", "name": "end"}),
        json!({"tool": "a", "delay_ms": "{args.wait}", "progress": 2, "text": "x"}),
        json!({"tool": "a", "fault": {"hang": true}}),
    ]);
    let verdict = answers.judge(&call("a", json!({"wait": 7})));
    assert_eq!(
        (verdict.delay, verdict.progress),
        (Duration::from_millis(12), 2)
    );
    assert_eq!(
        verdict
            .faults
            .iter()
            .map(|aimed| aimed.label.as_str())
            .collect::<Vec<_>>(),
        ["answers[0]"]
    );
    let verdict = answers.judge(&call("a", json!({"wait": -7})));
    assert_eq!(verdict.delay, Duration::from_millis(5));
    assert_eq!(
        (verdict.faults[1].label.as_str(), verdict.faults[1].when),
        ("end", When::After)
    );
    assert_eq!(verdict.faults.len(), 2);
}

#[test]
fn odds_aim_the_same_calls_with_the_same_seed() {
    let aimed = |odds: f64, seed: u64| {
        let mut answers = answers(&[
            json!({"tool": "a", "text": "x", "fault": {"hang": true}, "odds": odds, "seed": seed}),
        ]);
        (0..200)
            .map(|_| answers.judge(&call("a", json!({}))).faults.len())
            .collect::<Vec<_>>()
    };
    assert_eq!(aimed(0.0, 1).iter().sum::<usize>(), 0);
    assert_eq!(aimed(1.0, 1).iter().sum::<usize>(), 200);
    assert_eq!(aimed(0.5, 1), aimed(0.5, 1));
    assert_ne!(aimed(0.5, 1), aimed(0.5, 2));
    assert!((60..140).contains(&aimed(0.5, 1).iter().sum::<usize>()));
}

#[test]
fn a_rule_may_be_for_another_method() {
    let mut answers = answers(&[
        json!({"method": "initialize", "fault": {"hang": true}}),
        json!({"method": "prompts/list", "result": {"prompts": []}}),
    ]);
    let ask = |method: &str| Call {
        method: method.into(),
        params: Value::Null,
    };
    assert_eq!(answers.judge(&ask("initialize")).faults.len(), 1);
    assert_eq!(
        answers.judge(&ask("prompts/list")).answer.unwrap().outcome,
        Ok(json!({"prompts": []}))
    );
}

#[test]
fn a_rule_that_cannot_be_meant_is_refused() {
    for (written, why) in [
        (json!({"text": "x"}), "a rule is for a `tool`"),
        (
            json!({"tool": "a", "method": "b", "text": "x"}),
            "not for both",
        ),
        (json!({"tool": "a"}), "does nothing"),
        (
            json!({"tool": "a", "text": "x", "json": 1}),
            "has `text` and `json`",
        ),
        (
            json!({"tool": "a", "result": {}, "structured": 1}),
            "structured: it does not go with `result`",
        ),
        (
            json!({"tool": "a", "args": {"x": "re:("}, "text": "x"}),
            "args.x: regex parse error",
        ),
        (
            json!({"tool": "a", "args": {"x": "re:(a)"}, "text": "{1} {2}"}),
            "{2} names a group",
        ),
        (
            json!({"tool": "a", "nth": 0, "text": "x"}),
            "a number from 1",
        ),
        (
            json!({"tool": "a", "nth": [], "text": "x"}),
            "a number from 1",
        ),
        (
            json!({"tool": "a", "nth": "1", "text": "x"}),
            "a number from 1",
        ),
        (
            json!({"tool": "a", "delay_ms": "soon", "text": "x"}),
            "milliseconds",
        ),
        (
            json!({"tool": "a", "text": "x", "odds": 0.5}),
            "odds: it aims a `fault`",
        ),
        (
            json!({"tool": "a", "text": "x", "when": "after"}),
            "when: it aims a `fault`",
        ),
        (
            json!({"tool": "a", "fault": {"hang": true}, "odds": 1.5}),
            "between 0 and 1",
        ),
        (
            json!({"tool": "a", "fault": {"hang": true}, "seed": 1}),
            "seed: it goes with `odds`",
        ),
        (
            json!({"tool": "a", "fault": {"hang": true}, "when": "during"}),
            "unknown variant `during`",
        ),
        (
            json!({"tool": "a", "fault": {}}),
            "fault: a fault that is none",
        ),
        (
            json!({"tool": "a", "rpc_error": {"code": 1}}),
            "missing field `message`",
        ),
        (
            json!({"method": "ping", "text": "x"}),
            "text: only calls of tools",
        ),
        (
            json!({"tool": "a", "arg": {}}),
            "unknown field `arg`, expected one of `name`, `tool`",
        ),
    ] {
        let said = rule(written.clone()).unwrap_err();
        assert!(said.contains(why), "{written}: {said}");
    }
}
