//! What becomes a fact, and what does not.

use serde_json::json;
use stretto_trace::{Event, ToolCall};

use super::*;

fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments,
    }
}

/// Facts after results whose calls are not known.
fn after(results: &[(&str, &str)]) -> Facts {
    let mut facts = Facts::default();
    for (tool, content) in results {
        facts.returned("?", tool, false, content);
    }
    facts
}

#[test]
fn both_lookups_identify_by_json_or_by_bare_text() {
    for tool in ["find_user_id_by_email", "find_user_id_by_name_zip"] {
        for content in [
            "ann_1",
            " ann_1\n",
            "\"ann_1\"",
            " \"ann_1\" ",
            "\"\\\"ann_1\\\"\"",
            "ann_1\"",
        ] {
            let facts = after(&[(tool, content)]);
            assert!(facts.is_identified("ann_1"), "{tool} {content}");
            assert!(!facts.nobody_is_identified());
        }
    }
    assert!(after(&[("find_user_id_by_phone", "ann_1")]).nobody_is_identified());
    assert!(after(&[("get_user_details", "ann_1")]).nobody_is_identified());
}

#[test]
fn what_is_no_id_identifies_nobody() {
    for content in [
        "12345",
        "true",
        "null",
        "[\"ann_1\"]",
        "{\"user_id\": \"ann_1\"}",
        "Error: user not found",
        "not\u{a0}found",
        "\"user not found\"",
        "\" ann_1\"",
        "",
        " ",
        "\"\"",
        "\"\\\"\\\"\"",
    ] {
        let facts = after(&[("find_user_id_by_email", content)]);
        assert!(facts.nobody_is_identified(), "{content}");
    }
}

#[test]
fn everybody_who_was_identified_stays_so() {
    let facts = after(&[
        ("find_user_id_by_email", "ann_1"),
        ("find_user_id_by_email", "bob_2"),
    ]);
    assert!(facts.is_identified("ann_1"));
    assert!(facts.is_identified("bob_2"));
    assert!(!facts.is_identified("ann"));
}

#[test]
fn an_error_is_no_fact() {
    let mut facts = Facts::default();
    facts.called(&call("1", "find_user_id_by_email", json!({})));
    facts.returned("1", "find_user_id_by_email", true, "ann_1");
    facts.called(&call("2", "get_user_details", json!({"user_id": "ann_1"})));
    facts.returned("2", "get_user_details", true, r#"{"user_id": "ann_1"}"#);
    facts.returned("3", "get_order_details", true, r##"{"order_id": "#W1"}"##);
    facts.returned("4", "get_product_details", true, r#"{"product_id": "A"}"#);
    facts.returned(
        "5",
        "get_reservation_details",
        true,
        r#"{"reservation_id": "R1"}"#,
    );
    facts.called(&call(
        "6",
        "get_flight_status",
        json!({"flight_number": "H", "date": "D"}),
    ));
    facts.returned("6", "get_flight_status", true, "landed");
    facts.called(&call(
        "7",
        "exchange_delivered_order_items",
        json!({"order_id": "#W1"}),
    ));
    facts.returned("7", "exchange_delivered_order_items", true, "no");
    assert!(facts.nobody_is_identified());
    assert_eq!(facts.user("ann_1"), None);
    assert_eq!(facts.order("#W1"), None);
    assert_eq!(facts.product("A"), None);
    assert_eq!(facts.reservation("R1"), None);
    assert_eq!(facts.flight_status("H", "D"), None);
    assert!(!facts.items_were_changed("#W1"));
    assert!(facts.every_wallet().is_empty());
}

#[test]
fn a_call_that_has_not_returned_is_no_fact() {
    let mut facts = Facts::default();
    facts.called(&call(
        "1",
        "exchange_delivered_order_items",
        json!({"order_id": "#W1"}),
    ));
    assert!(!facts.items_were_changed("#W1"));
    facts.returned("1", "exchange_delivered_order_items", false, "ok");
    assert!(facts.items_were_changed("#W1"));
}

#[test]
fn orders_and_reservations_come_from_any_tool_the_rest_from_its_own() {
    let record =
        r##"{"user_id": "u", "product_id": "p", "order_id": "#W1", "reservation_id": "R1"}"##;
    let facts = after(&[("some_tool", record)]);
    assert!(facts.order("#W1").is_some());
    assert!(facts.reservation("R1").is_some());
    assert_eq!(facts.user("u"), None);
    assert_eq!(facts.product("p"), None);

    let facts = after(&[("get_user_details", record)]);
    assert!(facts.user("u").is_some());
    assert_eq!(facts.product("p"), None);
    assert!(facts.order("#W1").is_some());
    let facts = after(&[("get_product_details", record)]);
    assert!(facts.product("p").is_some());
    assert_eq!(facts.user("u"), None);
    assert!(facts.reservation("R1").is_some());
}

#[test]
fn a_record_needs_its_id_as_a_string() {
    let facts = after(&[
        (
            "get_order_details",
            r#"{"order_id": 1, "reservation_id": null}"#,
        ),
        ("get_order_details", r##"["#W1", {"order_id": "#W1"}]"##),
        ("get_order_details", r##"{"order": {"order_id": "#W1"}}"##),
        ("get_product_details", r#"{"product_id": 7}"#),
        ("get_order_details", "{\"order_id\": \"#W1\""),
    ]);
    assert_eq!(facts.order("#W1"), None);
    assert_eq!(facts.order("1"), None);
    assert_eq!(facts.product("7"), None);
}

#[test]
fn a_later_record_replaces_the_earlier_one_whole() {
    let facts = after(&[
        (
            "get_order_details",
            r##"{"order_id": "#W1", "user_id": "u", "status": "pending"}"##,
        ),
        (
            "cancel_pending_order",
            r##"{"order_id": "#W1", "status": "cancelled"}"##,
        ),
    ]);
    let order = facts.order("#W1").unwrap();
    assert_eq!(order.status.as_deref(), Some("cancelled"));
    assert_eq!(order.owner, None);
}

#[test]
fn a_profile_that_does_not_name_its_user_is_that_of_the_call() {
    let mut facts = Facts::default();
    facts.called(&call("1", "get_user_details", json!({"user_id": "ann_1"})));
    facts.returned("1", "get_user_details", false, r#"{"membership": "gold"}"#);
    assert_eq!(
        facts.user("ann_1").unwrap().membership.as_deref(),
        Some("gold")
    );

    // The profile's own id comes first.
    facts.called(&call("2", "get_user_details", json!({"user_id": "ann_1"})));
    facts.returned("2", "get_user_details", false, r#"{"user_id": "bob_2"}"#);
    assert!(facts.user("bob_2").is_some());
    assert_eq!(
        facts.user("ann_1").unwrap().membership.as_deref(),
        Some("gold")
    );
}

#[test]
fn a_profile_without_any_id_is_nobodys() {
    let mut facts = Facts::default();
    facts.returned("?", "get_user_details", false, "{}");
    facts.called(&call("1", "get_user_details", json!({"user_id": 1})));
    facts.returned("1", "get_user_details", false, "{}");
    facts.called(&call("2", "get_user_details", json!({"user_id": "ann_1"})));
    facts.returned("2", "get_user_details", false, r#"{"user_id": null}"#);
    facts.called(&call("3", "get_user_details", json!({"user_id": "ann_1"})));
    facts.returned("3", "get_user_details", false, "[]");
    facts.called(&call("4", "get_user_details", json!({"user_id": "ann_1"})));
    facts.returned("4", "get_user_details", false, "no such user");
    facts.called(&call("5", "get_profile", json!({"user_id": "ann_1"})));
    facts.returned("5", "get_profile", false, "{}");
    assert_eq!(facts.user("ann_1"), None);
    assert!(facts.every_wallet().is_empty());
}

#[test]
fn a_status_belongs_to_the_flight_the_call_asked_for() {
    let mut facts = Facts::default();
    let asks = |id: &str, arguments| call(id, "get_flight_status", arguments);
    facts.called(&asks("1", json!({"flight_number": "H1", "date": "D1"})));
    facts.called(&asks("2", json!({"flight_number": "H1", "date": "D2"})));
    facts.returned("2", "get_flight_status", false, "landed");
    facts.returned("1", "get_flight_status", false, "\"delayed\"");
    assert_eq!(facts.flight_status("H1", "D1"), Some("delayed"));
    assert_eq!(facts.flight_status("H1", "D2"), Some("landed"));
    assert_eq!(facts.flight_status("H2", "D1"), None);

    // Without both arguments, or with a result that is no text, nothing is told.
    for (id, arguments, content) in [
        ("3", json!({"flight_number": "H3"}), "landed"),
        ("4", json!({"date": "D3"}), "landed"),
        ("5", json!({"flight_number": "H3", "date": 3}), "landed"),
        (
            "6",
            json!({"flight_number": "H3", "date": "D3"}),
            "{\"status\": \"landed\"}",
        ),
        ("7", json!({"flight_number": "H3", "date": "D3"}), "7"),
    ] {
        facts.called(&asks(id, arguments));
        facts.returned(id, "get_flight_status", false, content);
    }
    assert_eq!(facts.flight_status("H3", "D3"), None);
    facts.returned("8", "get_flight_status", false, "landed");
    facts.called(&call(
        "9",
        "flight_status",
        json!({"flight_number": "H3", "date": "D3"}),
    ));
    facts.returned("9", "flight_status", false, "landed");
    assert_eq!(facts.flight_status("H3", "D3"), None);
}

#[test]
fn the_result_of_an_unknown_call_is_no_write() {
    let content = r##"{"order_id": "#W1"}"##;
    let facts = after(&[("exchange_delivered_order_items", content)]);
    assert!(!facts.items_were_changed("#W1"));
    assert!(facts.order("#W1").is_some());
}

#[test]
fn only_the_first_response_to_a_call_is_its_result() {
    let mut facts = Facts::default();
    facts.called(&call(
        "1",
        "exchange_delivered_order_items",
        json!({"order_id": "#W1"}),
    ));
    facts.returned("1", "exchange_delivered_order_items", true, "no");
    facts.returned("1", "exchange_delivered_order_items", false, "ok");
    assert!(!facts.items_were_changed("#W1"));
}

#[test]
fn a_later_call_takes_an_id_over() {
    let mut facts = Facts::default();
    facts.called(&call(
        "1",
        "exchange_delivered_order_items",
        json!({"order_id": "#W1"}),
    ));
    facts.called(&call("1", "get_order_details", json!({"order_id": "#W2"})));
    facts.returned("1", "get_order_details", false, "{}");
    assert!(!facts.items_were_changed("#W1"));

    facts.called(&call(
        "2",
        "exchange_delivered_order_items",
        json!({"order_id": "#W1"}),
    ));
    facts.called(&call(
        "2",
        "modify_pending_order_items",
        json!({"order_id": "#W2"}),
    ));
    facts.returned("2", "modify_pending_order_items", false, "{}");
    assert!(!facts.items_were_changed("#W1"));
    assert!(facts.items_were_changed("#W2"));
}

#[test]
fn payment_methods_are_those_of_the_profiles_as_last_read() {
    let profile = |user: &str, methods: Value| {
        json!({"user_id": user, "payment_methods": methods}).to_string()
    };
    let mut facts = Facts::default();
    let read = |facts: &mut Facts, user: &str, methods: Value| {
        facts.returned("?", "get_user_details", false, &profile(user, methods));
    };
    read(&mut facts, "ann_1", json!({"a": {}, "shared": {}}));
    read(&mut facts, "bob_2", json!({"b": {}, "shared": {}}));
    assert!(facts.every_wallet().holds("a") && facts.every_wallet().holds("b"));
    assert!(facts.customers_wallet().is_empty());

    // Whether the profile or the id comes first makes no difference, nor does a second time.
    for _ in 0..2 {
        facts.returned("?", "find_user_id_by_email", false, "ann_1");
        assert!(facts.customers_wallet().holds("a"));
        assert!(!facts.customers_wallet().holds("b"));
    }

    read(&mut facts, "ann_1", json!({"c": {}}));
    for wallet in [facts.every_wallet(), facts.customers_wallet()] {
        assert!(wallet.holds("c") && !wallet.holds("a"));
        assert!(!wallet.is_empty());
    }
    assert!(facts.every_wallet().holds("shared"));
    assert!(!facts.customers_wallet().holds("shared"));

    read(&mut facts, "bob_2", json!({}));
    assert!(!facts.every_wallet().holds("shared"));
    assert!(!facts.every_wallet().holds("b"));
    assert!(!facts.every_wallet().is_empty());
}

#[test]
fn a_customer_whose_profile_was_read_before_counts_once() {
    let profile = r#"{"user_id": "ann_1", "payment_methods": {"a": {}}}"#;
    let mut facts = after(&[
        ("get_user_details", profile),
        ("find_user_id_by_email", "ann_1"),
        ("find_user_id_by_email", "ann_1"),
    ]);
    facts.returned("?", "get_user_details", false, r#"{"user_id": "ann_1"}"#);
    assert!(!facts.customers_wallet().holds("a"));
    assert!(!facts.customers_wallet().is_empty());
}

#[test]
fn events_of_an_episode_are_taken_in_as_they_are() {
    let mut facts = Facts::default();
    let exchange = call(
        "1",
        "exchange_delivered_order_items",
        json!({"order_id": "#W1"}),
    );
    let lookup = call(
        "2",
        "get_flight_status",
        json!({"flight_number": "H", "date": "D"}),
    );
    let result = |call_id: &str, name: &str, error: bool, content: &str| Event::ToolResult {
        call_id: call_id.to_owned(),
        name: name.to_owned(),
        error,
        content: content.to_owned(),
    };
    for event in [
        Event::Assistant {
            text: Some("Shall I?".to_owned()),
            calls: Vec::new(),
            usage: None,
        },
        Event::User {
            text: "Yes".to_owned(),
        },
        Event::Assistant {
            text: Some("Right away.".to_owned()),
            calls: vec![exchange, lookup],
            usage: None,
        },
        result("2", "get_flight_status", false, "landed"),
        result("1", "exchange_delivered_order_items", false, "ok"),
        result("3", "find_user_id_by_email", true, "ann_1"),
        Event::Assistant {
            text: None,
            calls: Vec::new(),
            usage: None,
        },
    ] {
        facts.observe(&event);
    }
    assert!(facts.items_were_changed("#W1"));
    assert_eq!(facts.flight_status("H", "D"), Some("landed"));
    assert!(facts.nobody_is_identified());
    assert_eq!(facts.exchange().proposal(), "Shall I?");
    assert_eq!(facts.exchange().reply(), Some("Yes"));
    facts.user_said("Thanks");
    assert_eq!(facts.exchange().proposal(), "Right away.");
}

#[test]
fn what_calls_asked_for_is_forgotten_once_they_returned() {
    let mut facts = Facts::default();
    for id in 0..100 {
        let id = id.to_string();
        facts.called(&call(&id, "get_user_details", json!({"user_id": "ann_1"})));
        facts.returned(&id, "get_user_details", id.len() == 1, "{}");
    }
    assert!(facts.asked.is_empty());
}
