//! Calls that the guards check, and lines that they cannot read.

use super::*;

fn no_reason() -> String {
    call(
        4,
        "cancel_pending_order",
        json!({"order_id": "#W7a", "reason": "found it cheaper"}),
    )
}

/// A session in which the user is known and order #W7a has been read.
fn informed(options: Options) -> Play {
    let mut play = Play::new(options);
    play.host(find(1));
    play.server(result(1, "user_7"));
    play.host(call(2, "get_order_details", json!({"order_id": "#W7a"})));
    play.server(result(
        2,
        &json!({"order_id": "#W7a", "user_id": "user_7", "status": "pending"}).to_string(),
    ));
    play
}

#[test]
fn a_refused_call_stays_here() {
    let mut play = informed(guarding());
    let told = play.host(no_reason());
    assert_eq!(
        told,
        [
            r#"host (own) {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"Refused by the policy check, so cancel_pending_order was not run and nothing changed: 'found it cheaper' is not an accepted reason (policy check retail.cancel_reason)."}],"isError":true}}"#
        ]
    );
    assert_eq!(
        play.said,
        [
            "refused cancel_pending_order: 'found it cheaper' is not an accepted reason (policy check retail.cancel_reason)"
        ]
    );
}

#[test]
fn a_call_that_passes_goes_on_as_it_came() {
    let mut play = informed(guarding());
    let line = r##"{"method":"tools/call", "id":4,"params":{"arguments":{"reason":"no longer needed","order_id":"#W7a"},"name":"cancel_pending_order"}}"##;
    assert_eq!(play.host(line), [to_server(line)]);
}

#[test]
fn a_call_is_checked_against_the_session_before_it() {
    let mut play = Play::new(guarding());
    let told = play.host(call(
        1,
        "cancel_pending_order",
        json!({"order_id": "#W7a", "reason": "no longer needed"}),
    ));
    assert!(
        answer_text(&told).contains("retail.authenticated"),
        "{told:?}"
    );
}

#[test]
fn a_refused_call_without_an_id_is_dropped() {
    let mut play = informed(guarding());
    let line = r##"{"method":"tools/call","params":{"name":"cancel_pending_order","arguments":{"order_id":"#W7a","reason":"x"}}}"##;
    assert_eq!(play.host(line), [""; 0]);
    assert_eq!(play.said.len(), 1);
}

#[test]
fn each_check_leaves_a_line_with_every_verdict() {
    let mut play = informed(guarding());
    play.host(no_reason());
    let (log, line) = play.notes.last().unwrap();
    assert_eq!(*log, SideLog::Explain);
    assert_eq!(line["id"], 4);
    assert_eq!(line["refused_by"], json!(["retail.cancel_reason"]));
    assert_eq!(line["verdicts"]["retail.pending"]["verdict"], "pass");
    assert_eq!(play.notes.len(), 3, "lookups are checked too");
}

#[test]
fn an_answer_in_a_modern_session_says_that_it_is_complete() {
    let mut play = informed(guarding());
    let line = json!({"id": 9, "method": "tools/call", "params": {
        "name": "cancel_pending_order", "arguments": {"order_id": "#W7a", "reason": "x"},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}});
    assert_eq!(
        own_answer(&play.host(line))["result"]["resultType"],
        "complete"
    );
}

#[test]
fn a_batch_with_a_call_is_answered_and_goes_nowhere() {
    let mut play = informed(guarding());
    let told = play.host(format!("[{},{}]", request(8, "ping"), no_reason()));
    let errors = own_answer(&told);
    assert_eq!((&errors[0]["id"], &errors[1]["id"]), (&json!(8), &json!(4)));
    assert_eq!(errors[0]["error"]["code"], -32600);
}

#[test]
fn what_cannot_be_read_whole_goes_nowhere() {
    let mut play = informed(guarding());
    let twice = r#"{"id":4,"method":"tools/call","params":{"name":"a","name":"b"}}"#;
    assert_eq!(own_answer(&play.host(twice))["error"]["code"], -32600);
    assert_eq!(own_answer(&play.host("hello"))["error"]["code"], -32700);
    assert_eq!(
        play.host(r#"{"id":1,"id":1,"result":{}}"#),
        [""; 0],
        "a response of the host's"
    );
    assert_eq!(play.said.len(), 3);
}
