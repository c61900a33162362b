//! A flow's lookups behind a call, and every way in which they end.

use super::*;

#[test]
fn lookups_are_made_behind_the_call_and_handed_over_with_its_result() {
    let mut play = looking_up(serving());
    assert_eq!(
        play.server(result("stretto-1", &details())),
        [own_call(
            2,
            "get_order_details",
            json!({"order_id": "#W7a"})
        )]
    );
    assert_eq!(
        play.server(result("stretto-2", "A")),
        [own_call(
            3,
            "get_order_details",
            json!({"order_id": "#W7b"})
        )]
    );
    let told = play.server(result("stretto-3", "B"));
    let answer = own_answer(&told);
    assert_eq!(answer["result"]["content"][0]["text"], "user_7");
    assert_eq!(
        answer["result"]["content"][1]["text"],
        format!(
            "--- Also looked up automatically (current results; no need to repeat these calls) ---\n\n\
             get_user_details {{\"user_id\":\"user_7\"}}:\n{}\n\n\
             get_order_details {{\"order_id\":\"#W7a\"}}:\nA\n\nget_order_details {{\"order_id\":\"#W7b\"}}:\nB",
            details()
        )
    );
    let notes = play.flow_notes();
    assert_eq!(notes.len(), 5, "four decisions and a run");
    assert_eq!(notes[4]["run"]["call"], "find_user_id_by_email");
}

#[test]
fn everything_else_moves_while_a_lookup_is_waited_for() {
    let mut play = looking_up(serving());
    let ping = request(2, "ping");
    assert_eq!(play.host(&ping), [to_server(&ping)]);
    assert_eq!(
        play.server(r#"{"id":2,"result":{}}"#),
        [to_host(r#"{"id":2,"result":{}}"#)]
    );
    let sampling = r#"{"id":"stretto-1","method":"sampling/createMessage"}"#;
    assert_eq!(
        play.server(sampling),
        [to_host(sampling)],
        "the server's ids are its own"
    );
    let answer = r#"{"id":"stretto-1","result":{"role":"user"}}"#;
    assert_eq!(play.host(answer), [to_server(answer)]);
}

#[test]
fn a_result_that_comes_meanwhile_is_forwarded() {
    let mut play = looking_up(serving());
    play.host(find(2));
    assert_eq!(
        play.server(result(2, "user_8")),
        [to_host(&result(2, "user_8"))]
    );
}

#[test]
fn an_error_starts_no_flow() {
    let mut play = Play::new(serving());
    play.host(find(1));
    let error = r#"{"id":1,"error":{"code":-32602,"message":"no"}}"#;
    assert_eq!(play.server(error), [to_host(error)]);
}

#[test]
fn an_interim_result_starts_no_flow() {
    let mut play = Play::new(serving());
    play.host(find(1));
    let asks = r#"{"id":1,"result":{"resultType":"input_required","inputRequests":{}}}"#;
    assert_eq!(play.server(asks), [to_host(asks)]);
    assert!(play.notes.is_empty());
}

#[test]
fn a_call_that_was_cancelled_is_followed_by_no_flow() {
    let mut play = Play::new(serving());
    play.host(find(1));
    assert_eq!(play.host(cancel(1)), [to_server(&cancel(1))]);
    assert_eq!(
        play.server(result(1, "user_7")),
        [to_host(&result(1, "user_7"))]
    );
}

#[test]
fn without_a_lookup_the_original_bytes_go_on() {
    let mut play = Play::new(serving_with(LIMITS, true, None));
    play.host(find(1));
    let odd = r#"{ "id":1,"result":{"content":[{"text":"user_7","type":"text"}],"n":1.00}}"#;
    assert_eq!(play.server(odd), [to_host(odd)]);
    assert_eq!(play.flow_notes()[0]["shadow"], true);
    assert_eq!(play.flow_notes()[0]["action"], "lookup");
}

#[test]
fn a_tool_that_is_not_granted_is_withheld_and_said_once() {
    let mut play = Play::new(serving_with(LIMITS, false, Some(&["get_order_details"])));
    for id in [1, 2] {
        play.host(find(id));
        assert_eq!(
            play.server(result(id, "user_7")),
            [to_host(&result(id, "user_7"))]
        );
        play.later(1_000);
    }
    assert_eq!(
        play.said,
        ["the flow leaves get_user_details to the agent: --flow-tools does not grant it"]
    );
    assert!(
        play.flow_notes()
            .iter()
            .all(|note| note["run"].is_object() || note["withheld"].is_string())
    );
}

#[test]
fn a_tool_that_the_server_does_not_list_is_withheld() {
    let mut play = Play::new(serving());
    play.host(request(9, "tools/list"));
    play.server(json!({"id": 9, "result": {"tools": [{"name": "find_user_id_by_email", "annotations": {"readOnlyHint": true}}]}}));
    play.host(find(1));
    assert_eq!(
        play.server(result(1, "user_7")),
        [to_host(&result(1, "user_7"))]
    );
    assert_eq!(
        play.flow_notes()[0]["withheld"],
        "the server no longer lists it"
    );
}

#[test]
fn lookups_are_capped_for_a_result() {
    let mut play = looking_up(serving_with(
        Limits {
            per_call: 1,
            ..LIMITS
        },
        false,
        None,
    ));
    let told = play.server(result("stretto-1", &details()));
    assert!(
        own_answer(&told)["result"]["content"][1]["text"]
            .as_str()
            .unwrap()
            .contains("get_user_details")
    );
    assert_eq!(
        play.flow_notes().len(),
        2,
        "one decision and the run: at the cap nothing is decided"
    );
}

#[test]
fn lookups_are_capped_for_a_session() {
    let mut play = looking_up(serving_with(
        Limits {
            per_session: 1,
            ..LIMITS
        },
        false,
        None,
    ));
    play.server(result("stretto-1", &details()));
    play.later(1_000);
    play.host(find(2));
    assert_eq!(
        play.server(result(2, "user_7")),
        [to_host(&result(2, "user_7"))]
    );
}

#[test]
fn a_lookup_that_fails_is_handed_over_as_failed() {
    let mut play = looking_up(serving());
    let told = play.server(r#"{"id":"stretto-1","error":{"code":1,"message":"no such user"}}"#);
    assert!(
        own_answer(&told)["result"]["content"][1]["text"]
            .as_str()
            .unwrap()
            .ends_with(" (error):\nno such user")
    );
}

#[test]
fn after_a_minute_the_result_goes_out_and_a_late_answer_is_swallowed() {
    let mut play = looking_up(serving());
    assert_eq!(play.later(60_000), [""; 0]);
    let told = play.later(1);
    assert!(
        told[0].starts_with("server (own) ") && told[0].contains("notifications/cancelled"),
        "{told:?}"
    );
    assert_eq!(told[1], to_host(&result(1, "user_7")));
    assert_eq!(play.server(result("stretto-1", &details())), [""; 0]);
    assert_eq!(
        play.flow_notes().len(),
        1,
        "a run that was cut short leaves no run line"
    );
}

#[test]
fn a_host_that_cancels_the_held_call_gets_nothing_more_of_it() {
    let mut play = looking_up(serving());
    let told = play.host(cancel(1));
    assert_eq!(told[0], to_server(&cancel(1)));
    assert!(
        told[1].starts_with("server (own) ") && told[1].contains("stretto-1"),
        "{told:?}"
    );
    assert_eq!(told.len(), 2);
    assert_eq!(play.server(result("stretto-1", "late")), [""; 0]);
}

#[test]
fn after_the_host_s_end_the_lookup_in_flight_is_waited_for_and_no_other_is_made() {
    let mut play = looking_up(serving());
    assert_eq!(play.host_closes(), ["close server"]);
    let told = play.server(result("stretto-1", &details()));
    assert!(
        own_answer(&told)["result"]["content"][1]["text"]
            .as_str()
            .unwrap()
            .contains("get_user_details")
    );
}

#[test]
fn a_server_that_ends_leaves_the_agent_its_result() {
    assert_eq!(
        looking_up(serving()).server_closes(),
        [to_host(&result(1, "user_7"))]
    );
}

#[test]
fn an_answer_that_cannot_be_read_is_a_failure_and_stays_here() {
    let told =
        looking_up(serving()).server(r#"{"id":"stretto-1","result":{"content":[],"x":1e999}}"#);
    assert!(
        own_answer(&told)["result"]["content"][1]["text"]
            .as_str()
            .unwrap()
            .contains("(error):")
    );
}

#[test]
fn an_answer_in_a_batch_stays_here_too() {
    let mut play = looking_up(serving());
    let told = play.server(format!("[{}]", result("stretto-1", &details())));
    assert_eq!(
        told,
        [own_call(
            2,
            "get_order_details",
            json!({"order_id": "#W7a"})
        )]
    );
}

#[test]
fn lookups_in_a_modern_session_carry_what_it_needs() {
    let mut play = Play::new(serving());
    play.host(json!({"id": 1, "method": "tools/call", "params": {
        "name": "find_user_id_by_email", "arguments": {"email": "c7@example.com"},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "progressToken": 1}}}));
    let told = play.server(result(1, "user_7"));
    let lookup: Value =
        serde_json::from_str(told[0].strip_prefix("server (own) ").unwrap()).unwrap();
    assert_eq!(
        lookup["params"]["_meta"],
        json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}})
    );
}

#[test]
fn a_long_addition_is_left_out_from_its_end() {
    let mut play = looking_up(serving());
    play.server(result("stretto-1", &details()));
    play.server(result("stretto-2", "A"));
    let told = play.server(result("stretto-3", &"B".repeat(9 * 1024 * 1024)));
    let text = own_answer(&told)["result"]["content"][1]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(text.ends_with("\nA"), "{}", text.len());
    assert!(
        play.said
            .last()
            .unwrap()
            .starts_with("left out 1 of 3 lookups"),
        "{:?}",
        play.said
    );
}

#[test]
fn the_host_may_use_ids_like_ours() {
    let mut play = Play::new(serving());
    play.host(find("stretto-1"));
    assert_eq!(
        play.server(result("stretto-1", "user_7")),
        [own_call(
            2,
            "get_user_details",
            json!({"user_id": "user_7"})
        )],
        "an id stands for one request in a session, though the host's was answered"
    );
    assert_eq!(play.host(request("stretto-2", "ping")), ["kept back"]);
    assert_eq!(
        play.host(request(3, "ping")),
        [to_server(&request(3, "ping"))],
        "later lines are not kept back"
    );
    let told = play.server(result("stretto-2", &details()));
    assert_eq!(
        told,
        [
            own_call(3, "get_order_details", json!({"order_id": "#W7a"})),
            to_server(&request("stretto-2", "ping"))
        ]
    );
}

#[test]
fn ids_that_the_host_waits_for_are_skipped() {
    let mut play = Play::new(serving());
    play.host(request("stretto-1", "ping"));
    play.host(find(1));
    assert_eq!(
        play.server(result(1, "user_7")),
        [own_call(
            2,
            "get_user_details",
            json!({"user_id": "user_7"})
        )]
    );
}

#[test]
fn the_server_s_input_stays_open_for_a_line_that_is_kept_back() {
    let mut play = looking_up(serving());
    play.host(request("stretto-1", "ping"));
    assert_eq!(play.host_closes(), [""; 0]);
    let told = play.server(result("stretto-1", &details()));
    assert!(
        told.contains(&to_server(&request("stretto-1", "ping"))),
        "{told:?}"
    );
    assert_eq!(told.last().unwrap(), "close server");
}
