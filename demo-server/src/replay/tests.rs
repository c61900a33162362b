use stretto_trace::mcp::Log;

use super::*;

const HEADER: &str = r#"{"stretto_mcp_log":2,"session":"s","started_unix_ms":0,"server_command":["x"],"domain":null,"agent_model":null}"#;

fn replay_with(entries: &[Value], settings: ReplaySettings) -> Replay {
    let mut text = HEADER.to_owned();
    for entry in entries {
        text.push('\n');
        text.push_str(&entry.to_string());
    }
    text.push('\n');
    let mut recording = Recording::default();
    recording.add(&Log::parse(text.as_bytes()).unwrap());
    Replay::of(recording, settings)
}

fn replay(entries: &[Value]) -> Replay {
    replay_with(entries, ReplaySettings::default())
}

fn entry(t_ms: u64, from: &str, message: Value) -> Value {
    json!({"t_ms": t_ms, "from": from, "message": message})
}

fn asked(t_ms: u64, id: Value, method: &str, params: Value) -> Value {
    entry(
        t_ms,
        "client",
        json!({"id": id, "method": method, "params": params}),
    )
}

fn answered(t_ms: u64, id: Value, result: Value) -> Value {
    entry(t_ms, "server", json!({"id": id, "result": result}))
}

fn call(method: &str, params: Value) -> Call {
    Call {
        method: method.into(),
        params,
    }
}

/// What a request gets: the result, or the error's code.
fn gets(replay: &Replay, method: &str, params: Value) -> Result<Value, i64> {
    replay
        .ask(&json!("live"), &call(method, params))
        .outcome
        .unwrap()
        .map_err(|error| error.code)
}

fn message(replay: &Replay, method: &str, params: Value) -> String {
    replay
        .ask(&json!(1), &call(method, params))
        .outcome
        .unwrap()
        .unwrap_err()
        .message
}

fn texts(notes: &[Note]) -> Vec<Value> {
    notes
        .iter()
        .map(|note| serde_json::from_str(&note.text).unwrap())
        .collect()
}

#[test]
fn equal_requests_are_answered_in_recorded_order_whatever_their_ids() {
    let replay = replay(&[
        asked(
            0,
            json!(1),
            "m",
            json!({"a": 1, "_meta": {"progressToken": 1}}),
        ),
        answered(1, json!(1), json!("first")),
        asked(2, json!(2), "m", json!({"a": 1})),
        answered(3, json!(2), json!("second")),
        asked(4, json!(3), "m", json!({"a": 2})),
        answered(5, json!(3), json!("other")),
    ]);
    assert_eq!(gets(&replay, "m", json!({"a": 2})), Ok(json!("other")));
    assert_eq!(
        gets(&replay, "m", json!({"a": 1, "_meta": {"x": 1}})),
        Ok(json!("first"))
    );
    assert_eq!(gets(&replay, "m", json!({"a": 1})), Ok(json!("second")));
    assert_eq!(gets(&replay, "m", json!({"a": 1})), Err(NOT_RECORDED));
}

#[test]
fn the_answer_has_the_live_id_and_all_that_was_recorded() {
    let replay = replay(&[
        asked(0, json!(1), "m", json!({})),
        entry(
            1,
            "server",
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -5, "message": "no", "data": [1]}, "odd": 1}),
        ),
    ]);
    let served = replay.ask(&json!("live"), &call("m", Value::Null));
    let text: Value = serde_json::from_str(&served.text.unwrap()).unwrap();
    assert_eq!(
        text,
        json!({"jsonrpc": "2.0", "id": "live", "error": {"code": -5, "message": "no", "data": [1]}, "odd": 1})
    );
}

#[test]
fn loop_begins_anew() {
    let settings = ReplaySettings {
        loops: true,
        ..ReplaySettings::default()
    };
    let replay = replay_with(
        &[
            asked(0, json!(1), "m", json!({})),
            answered(1, json!(1), json!("x")),
        ],
        settings,
    );
    for _ in 0..3 {
        assert_eq!(gets(&replay, "m", json!({})), Ok(json!("x")));
    }
}

#[test]
fn the_proxys_own_lookups_are_served_and_what_it_answered_itself_is_not() {
    let replay = replay(&[
        entry(
            0,
            "proxy",
            json!({"id": "stretto-1", "method": "tools/call", "params": {"name": "look", "arguments": {}}}),
        ),
        answered(1, json!("stretto-1"), json!("looked up")),
        asked(
            2,
            json!(1),
            "tools/call",
            json!({"name": "cancel", "arguments": {}}),
        ),
        entry(3, "proxy", json!({"id": 1, "result": "refused"})),
        asked(
            4,
            json!(2),
            "tools/call",
            json!({"name": "get", "arguments": {}}),
        ),
        answered(5, json!(2), json!("the server's")),
        entry(6, "proxy", json!({"id": 2, "result": "with lookups"})),
    ]);
    assert_eq!(
        gets(
            &replay,
            "tools/call",
            json!({"name": "look", "arguments": {}})
        ),
        Ok(json!("looked up"))
    );
    assert_eq!(
        gets(
            &replay,
            "tools/call",
            json!({"name": "get", "arguments": {}})
        ),
        Ok(json!("the server's"))
    );
    let said = message(
        &replay,
        "tools/call",
        json!({"name": "cancel", "arguments": {}}),
    );
    assert_eq!(
        said,
        "the recorded server was never asked, for the proxy answered: tools/call cancel {}"
    );
}

#[test]
fn a_request_that_was_never_answered_stays_without_an_answer() {
    let replay = replay(&[asked(0, json!(1), "m", json!({}))]);
    assert!(
        replay
            .ask(&json!(1), &call("m", json!({})))
            .outcome
            .is_none()
    );
}

#[test]
fn an_unrecorded_request_is_told_of_the_nearest_one() {
    let order =
        |id: &str| json!({"name": "get_order", "arguments": {"order_id": id, "deep": {"a": 1}}});
    let replay = replay(&[
        asked(
            0,
            json!(1),
            "tools/call",
            json!({"name": "other", "arguments": {"order_id": "#W9a"}}),
        ),
        answered(1, json!(1), json!({})),
        asked(2, json!(2), "tools/call", order("#W7a")),
        answered(3, json!(2), json!({})),
    ]);
    let error = replay
        .ask(&json!(1), &call("tools/call", order("#W9a")))
        .outcome
        .unwrap()
        .unwrap_err();
    assert_eq!(error.code, NOT_RECORDED);
    assert!(
        error
            .message
            .ends_with("differs in arguments.order_id (recorded \"#W7a\", asked \"#W9a\")"),
        "{}",
        error.message
    );
    assert_eq!(
        error.data.unwrap()["differs"],
        json!([{"at": "arguments.order_id", "recorded": "#W7a", "asked": "#W9a"}])
    );
}

#[test]
fn a_method_that_was_never_recorded_is_not_found() {
    let replay = replay(&[
        asked(0, json!(1), "ping", json!({})),
        answered(1, json!(1), json!({})),
    ]);
    assert_eq!(gets(&replay, "server/discover", json!({})), Err(-32601));
}

#[test]
fn another_host_may_shake_hands_unless_it_is_strict() {
    let entries = [
        asked(
            0,
            json!(1),
            "initialize",
            json!({"clientInfo": {"name": "a"}}),
        ),
        answered(1, json!(1), json!("hi")),
    ];
    let other = json!({"clientInfo": {"name": "b"}});
    assert_eq!(
        gets(&replay(&entries), "initialize", other.clone()),
        Ok(json!("hi"))
    );
    let strict = replay_with(
        &entries,
        ReplaySettings {
            strict: true,
            ..ReplaySettings::default()
        },
    );
    assert_eq!(gets(&strict, "initialize", other), Err(NOT_RECORDED));
}

#[test]
fn strict_insists_on_the_order_and_on_all_of_it() {
    let settings = ReplaySettings {
        strict: true,
        ..ReplaySettings::default()
    };
    let replay = replay_with(
        &[
            asked(0, json!(1), "a", json!({})),
            answered(1, json!(1), json!(1)),
            asked(2, json!(2), "b", json!({})),
            answered(3, json!(2), json!(2)),
        ],
        settings,
    );
    assert_eq!(
        message(&replay, "b", json!({})),
        "out of order: asked b {}, and recorded next is a {}"
    );
    assert_eq!(gets(&replay, "a", json!({})), Ok(json!(1)));
    assert_eq!(
        replay.missing().as_deref(),
        Some("1 recorded requests were never made: b {}")
    );
    assert_eq!(gets(&replay, "b", json!({})), Ok(json!(2)));
    assert_eq!(replay.missing(), None);
    assert_eq!(
        message(&replay, "a", json!({})),
        "after the end of the recording: a {}"
    );
}

#[test]
fn what_the_server_said_by_itself_comes_at_its_place() {
    let replay = replay(&[
        json!({"t_ms": 0, "from": "server", "raw": "Listening"}),
        asked(1, json!(1), "initialize", json!({})),
        entry(2, "server", json!({"method": "during"})),
        answered(3, json!(1), json!({})),
        entry(4, "server", json!({"method": "after"})),
        entry(5, "client", json!({"method": "notifications/initialized"})),
        entry(6, "server", json!({"id": "s1", "method": "roots/list"})),
        entry(7, "client", json!({"id": "s1", "result": {}})),
        entry(8, "server", json!({"method": "thanks"})),
    ]);
    assert_eq!(replay.at_first()[0].text, "Listening");
    let served = replay.ask(&json!(9), &call("initialize", json!({})));
    assert_eq!(
        (texts(&served.notes), texts(&served.trailing)),
        (
            vec![json!({"method": "during"})],
            vec![json!({"method": "after"})]
        )
    );
    let initialized = replay.hear(&call("notifications/initialized", Value::Null));
    assert_eq!(
        texts(&initialized),
        [json!({"id": "s1", "method": "roots/list"})]
    );
    assert_eq!(
        texts(&replay.hear_response(&json!("s1"))),
        [json!({"method": "thanks"})]
    );
    assert!(
        replay
            .hear(&call("notifications/initialized", Value::Null))
            .is_empty()
    );
}

#[test]
fn progress_belongs_to_its_request_and_has_the_live_token() {
    let progress = |t_ms: u64, token: u64| {
        entry(
            t_ms,
            "server",
            json!({"method": "notifications/progress", "params": {"progressToken": token}}),
        )
    };
    let replay = replay(&[
        asked(
            0,
            json!(1),
            "m",
            json!({"a": 1, "_meta": {"progressToken": 1}}),
        ),
        asked(
            1,
            json!(2),
            "m",
            json!({"a": 2, "_meta": {"progressToken": 2}}),
        ),
        progress(2, 1),
        answered(3, json!(2), json!({})),
        progress(4, 1),
        answered(5, json!(1), json!({})),
    ]);
    let ask = |a: u64, meta: Value| {
        texts(
            &replay
                .ask(&json!(9), &call("m", json!({"a": a, "_meta": meta})))
                .notes,
        )
    };
    assert!(ask(2, json!({"progressToken": "y"})).is_empty());
    let notes = ask(1, json!({"progressToken": "x"}));
    assert_eq!(
        notes,
        vec![json!({"method": "notifications/progress", "params": {"progressToken": "x"}}); 2]
    );
}

#[test]
fn progress_without_a_live_token_is_left_out() {
    let replay = replay(&[
        asked(0, json!(1), "m", json!({"_meta": {"progressToken": 1}})),
        entry(
            1,
            "server",
            json!({"method": "notifications/progress", "params": {"progressToken": 1}}),
        ),
        answered(2, json!(1), json!({})),
    ]);
    assert!(
        replay
            .ask(&json!(9), &call("m", json!({})))
            .notes
            .is_empty()
    );
}

#[test]
fn a_subscription_is_named_by_its_live_id() {
    let key = "io.modelcontextprotocol/subscriptionId";
    let replay = replay(&[
        asked(0, json!(1), "subscriptions/listen", json!({})),
        entry(
            1,
            "server",
            json!({"method": "notifications/subscriptions/acknowledged", "params": {"_meta": {key: 1}}}),
        ),
    ]);
    let served = replay.ask(&json!("live"), &call("subscriptions/listen", json!({})));
    assert_eq!(texts(&served.notes)[0]["params"]["_meta"][key], "live");
    assert!(served.outcome.is_none());
}

#[test]
fn the_pace_is_none_or_the_recorded_one_times_a_factor() {
    let entries = [
        asked(100, json!(1), "m", json!({})),
        entry(140, "server", json!({"method": "n"})),
        answered(200, json!(1), json!({})),
        entry(230, "server", json!({"method": "n"})),
    ];
    let waits = |pace: Pace| {
        let served = replay_with(
            &entries,
            ReplaySettings {
                pace,
                ..ReplaySettings::default()
            },
        )
        .ask(&json!(1), &call("m", json!({})));
        [served.notes[0].wait, served.delay, served.trailing[0].wait].map(|wait| wait.as_millis())
    };
    assert_eq!(waits(Pace::None), [0, 0, 0]);
    assert_eq!(waits(Pace::Times(1.0)), [40, 60, 30]);
    assert_eq!(waits(Pace::Times(0.5)), [20, 30, 15]);
    assert_eq!(Pace::of("recorded"), Some(Pace::Times(1.0)));
    assert_eq!(Pace::of("0.1"), Some(Pace::Times(0.1)));
    for wrong in ["fast", "-1", "NaN", "inf", ""] {
        assert_eq!(Pace::of(wrong), None, "{wrong}");
    }
}
