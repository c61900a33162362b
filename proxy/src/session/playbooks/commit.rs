//! The commit tool: how it is listed, and the calls that it makes.

use super::*;

fn commit(id: u32) -> String {
    let calls = json!([{"name": "a", "arguments": {"x": 1}}, {"name": "b"}, {"name": "c", "arguments": {}}]);
    call(id, "stretto_commit", json!({"calls": calls}))
}

fn begun() -> Play {
    let mut play = Play::new(committing());
    assert_eq!(play.host(commit(6)), [own_call(1, "a", json!({"x": 1}))]);
    play
}

fn listed(id: u32, tools: Value, next: Option<&str>) -> String {
    let mut result = json!({"tools": tools});
    if let Some(next) = next {
        result["nextCursor"] = next.into();
    }
    json!({"id": id, "result": result}).to_string()
}

#[test]
fn the_tool_is_listed_last_and_the_rest_stays_as_it_was() {
    let mut play = Play::new(committing());
    play.host(request(1, "tools/list"));
    let told = play.server(r#"{"id":1, "result":{ "tools":[ {"name":"a","x":1.0} ]}}"#);
    let own = told[0]
        .strip_prefix(r#"host (own) {"id":1, "result":{ "tools":[ {"name":"a","x":1.0} ,"#)
        .unwrap();
    let tool: Value = serde_json::from_str(own.strip_suffix("]}}").unwrap()).unwrap();
    assert_eq!(tool["name"], "stretto_commit");
    assert_eq!(
        tool["annotations"],
        json!({"readOnlyHint": false, "destructiveHint": true})
    );
    assert_eq!(tool["inputSchema"]["required"], json!(["calls"]));
    assert_eq!(tool["inputSchema"]["properties"]["calls"]["minItems"], 1);
}

#[test]
fn only_the_last_page_has_it() {
    let mut play = Play::new(committing());
    play.host(request(1, "tools/list"));
    let first = listed(1, json!([]), Some(""));
    assert_eq!(play.server(&first), [to_host(&first)]);
    play.host(r#"{"id":2,"method":"tools/list","params":{"cursor":""}}"#);
    let told = play.server(listed(2, json!([]), None));
    assert_eq!(
        own_answer(&told)["result"]["tools"][0]["name"],
        "stretto_commit"
    );
}

#[test]
fn an_answer_without_a_list_of_tools_is_left_alone() {
    for answer in [
        r#"{"id":1,"error":{"code":1}}"#,
        r#"{"id":1,"result":{}}"#,
        r#"{"id":1,"result":{"tools":{}}}"#,
    ] {
        let mut play = Play::new(committing());
        play.host(request(1, "tools/list"));
        assert_eq!(play.server(answer), [to_host(answer)]);
    }
}

#[test]
fn a_tool_of_the_server_s_with_that_name_is_the_server_s() {
    let mut play = Play::new(committing());
    play.host(request(1, "tools/list"));
    let listing = listed(1, json!([{"name": "stretto_commit"}]), None);
    assert_eq!(play.server(&listing), [to_host(&listing)]);
    assert_eq!(play.said.len(), 1);
    assert_eq!(play.host(commit(6)), [to_server(&commit(6))]);
}

#[test]
fn the_calls_are_made_in_order_and_all_reported() {
    let mut play = begun();
    assert_eq!(
        play.server(result("stretto-1", "one")),
        [own_call(2, "b", json!({}))]
    );
    assert_eq!(
        play.server(result("stretto-2", "two")),
        [own_call(3, "c", json!({}))]
    );
    let told = play.server(result("stretto-3", "three"));
    assert_eq!(
        answer_text(&told),
        "a {\"x\":1}:\none\n\nb {}:\ntwo\n\nc {}:\nthree"
    );
    assert_eq!(own_answer(&told)["result"]["isError"], false);
    assert_eq!(own_answer(&told)["id"], 6);
}

#[test]
fn a_call_that_fails_ends_it() {
    for failed in [
        r#"{"id":"stretto-1","result":{"isError":true,"content":[{"type":"text","text":"no"}]}}"#,
        r#"{"id":"stretto-1","error":{"code":1,"message":"no"}}"#,
    ] {
        let told = begun().server(failed);
        assert_eq!(
            answer_text(&told),
            "a {\"x\":1} (error):\nno\n\nb {} was not run\n\nc {} was not run"
        );
        assert_eq!(own_answer(&told)["result"]["isError"], true);
    }
}

#[test]
fn an_answer_that_is_not_final_is_a_failure() {
    let told = begun().server(
        r#"{"id":"stretto-1","result":{"resultType":"input_required","inputRequests":{}}}"#,
    );
    assert!(
        answer_text(&told).starts_with("a {\"x\":1} (error):\n"),
        "{told:?}"
    );
}

#[test]
fn a_call_that_the_guards_refuse_ends_it() {
    let mut play = Play::new(Options {
        commit: true,
        ..guarding()
    });
    let write =
        json!({"name": "cancel_pending_order", "arguments": {"order_id": "#W7a", "reason": "x"}});
    let told = play.host(call(
        1,
        "stretto_commit",
        json!({"calls": [write, {"name": "b"}]}),
    ));
    let text = answer_text(&told);
    assert!(text.starts_with("cancel_pending_order {\"order_id\":\"#W7a\",\"reason\":\"x\"} was refused by the policy check: "));
    assert!(
        text.ends_with("(policy check retail.cancel_reason)\n\nb {} was not run"),
        "{text}"
    );
}

#[test]
fn each_call_is_checked_against_the_earlier_ones() {
    let mut play = Play::new(Options {
        commit: true,
        ..guarding()
    });
    play.host(find(1));
    play.server(result(1, "user_7"));
    let calls = json!([{"name": "get_order_details", "arguments": {"order_id": "#W7a"}},
        {"name": "cancel_pending_order", "arguments": {"order_id": "#W7a", "reason": "no longer needed"}}]);
    play.host(call(2, "stretto_commit", json!({"calls": calls})));
    let order = json!({"order_id": "#W7a", "user_id": "user_7", "status": "pending"}).to_string();
    let told = play.server(result("stretto-1", &order));
    assert!(told[0].contains("cancel_pending_order"), "{told:?}");
    assert!(told[0].starts_with("server (own)"), "{told:?}");
}

#[test]
fn wrong_arguments_run_nothing() {
    let mut play = Play::new(committing());
    let told = play.host(call(1, "stretto_commit", json!({"calls": []})));
    assert!(answer_text(&told).ends_with("nothing was run."));
    assert_eq!(own_answer(&told)["result"]["isError"], true);
}

#[test]
fn no_answer_within_a_minute_ends_it_and_a_late_one_is_swallowed() {
    let mut play = begun();
    assert_eq!(play.later(60_000), [""; 0]);
    let told = play.later(1);
    let cancelled: Value =
        serde_json::from_str(told[0].strip_prefix("server (own) ").unwrap()).unwrap();
    assert_eq!(
        cancelled["params"]["requestId"],
        own_cancellation(1)["requestId"]
    );
    assert_eq!(
        answer_text(&told[1..]),
        "a {\"x\":1} got no answer from the server\n\nb {} was not run\n\nc {} was not run"
    );
    assert_eq!(play.server(result("stretto-1", "late")), [""; 0]);
    assert!(
        play.said[0].contains("call of a") && play.said[0].contains("60 s"),
        "{:?}",
        play.said
    );
}

#[test]
fn a_host_that_cancels_gets_no_answer_and_no_further_call_is_made() {
    let mut play = begun();
    let told = play.host(cancel(6));
    assert_eq!(
        told.len(),
        1,
        "only our own cancellation goes to the server: {told:?}"
    );
    assert!(
        told[0].starts_with("server (own) ") && told[0].contains("stretto-1"),
        "{told:?}"
    );
    assert_eq!(play.server(result("stretto-1", "late")), [""; 0]);
}

#[test]
fn after_the_host_s_end_the_call_under_way_is_waited_for_and_no_other_is_made() {
    let mut play = begun();
    assert_eq!(play.host_closes(), ["close server"]);
    let told = play.server(result("stretto-1", "one"));
    assert_eq!(
        answer_text(&told),
        "a {\"x\":1}:\none\n\nb {} got no answer from the server\n\nc {} was not run"
    );
}

#[test]
fn a_server_that_ends_leaves_the_commit_answered() {
    let told = begun().server_closes();
    assert_eq!(
        answer_text(&told),
        "a {\"x\":1} got no answer from the server\n\nb {} was not run\n\nc {} was not run"
    );
}

#[test]
fn two_commits_at_once_are_independent() {
    let mut play = begun();
    assert_eq!(play.host(commit(7)), [own_call(2, "a", json!({"x": 1}))]);
    assert_eq!(
        play.server(result("stretto-2", "x")),
        [own_call(3, "b", json!({}))]
    );
    assert_eq!(
        play.server(result("stretto-1", "x")),
        [own_call(4, "b", json!({}))]
    );
}

#[test]
fn two_commits_with_one_id_are_two() {
    let mut play = begun();
    assert_eq!(play.host(commit(6)), [own_call(2, "a", json!({"x": 1}))]);
    assert_eq!(
        play.server(result("stretto-1", "first")),
        [own_call(3, "b", json!({}))]
    );
    assert_eq!(
        play.server(result("stretto-2", "second")),
        [own_call(4, "b", json!({}))]
    );
    play.server(result("stretto-3", "x"));
    let told = play.server(result("stretto-5", "x"));
    assert!(
        answer_text(&told).starts_with("a {\"x\":1}:\nfirst\n"),
        "{told:?}"
    );
}

#[test]
fn the_id_of_a_commit_is_in_use() {
    let mut play = Play::new(committing());
    let line = call(
        "stretto-1",
        "stretto_commit",
        json!({"calls": [{"name": "a"}]}),
    );
    assert_eq!(play.host(line), [own_call(2, "a", json!({}))]);
    assert_eq!(
        own_answer(&play.server(result("stretto-2", "x")))["id"],
        "stretto-1"
    );
}

#[test]
fn the_cancellation_of_a_line_that_is_kept_back_comes_after_it() {
    let mut play = begun();
    assert_eq!(play.host(request("stretto-1", "ping")), ["kept back"]);
    assert_eq!(play.host(cancel("stretto-1")), ["kept back"]);
    assert_eq!(
        play.server(result("stretto-1", "x")),
        [
            own_call(2, "b", json!({})),
            to_server(&request("stretto-1", "ping")),
            to_server(&cancel("stretto-1"))
        ]
    );
}

#[test]
fn a_request_of_our_own_is_not_the_host_s_to_cancel() {
    assert_eq!(begun().host(cancel("stretto-1")), [""; 0]);
}

#[test]
fn a_batch_that_uses_an_id_of_ours_is_kept_back() {
    let mut play = begun();
    let batch = format!("[{}]", request("stretto-1", "ping"));
    assert_eq!(play.host(&batch), ["kept back"]);
    let told = play.server(result("stretto-1", "x"));
    assert_eq!(told[1], to_server(&batch));
}

#[test]
fn the_conversation_is_read_before_each_call() {
    let mut play = Play::new(Options {
        commit: true,
        listens: true,
        ..guarding()
    });
    play.says("user", "one");
    play.host(commit(6));
    play.says("user", "two");
    play.server(result("stretto-1", "x"));
    assert_eq!(play.unread, [""; 0]);
}
