//! Every clause of every retail rule, on both sides.

use serde_json::{Value, json};

use super::*;
use crate::Verdict::Pass;
use crate::testing::{Session, fail, table, unknown};

fn session() -> Session {
    Session::of("retail")
}

/// A session in which Ann was identified.
fn ann() -> Session {
    session().text(
        "find_user_id_by_email",
        json!({"email": "ann@example.com"}),
        "ann_1",
    )
}

fn w1() -> Value {
    json!({"order_id": "#W1"})
}

fn w1_and(name: &str, value: Value) -> Value {
    let mut arguments = w1();
    arguments[name] = value;
    arguments
}

#[test]
fn the_rules_apply_to_their_tools_in_their_order() {
    let all = vec![
        CANCEL,
        ADDRESS,
        ITEMS,
        PAYMENT,
        RETURN,
        EXCHANGE,
        USER_ADDRESS,
    ];
    let order_writes = vec![CANCEL, ADDRESS, ITEMS, PAYMENT, RETURN, EXCHANGE];
    let expected = [
        ("retail.authenticated", true, all.clone()),
        ("retail.own_order", true, order_writes.clone()),
        ("retail.status_checked", true, order_writes),
        (
            "retail.pending",
            true,
            vec![CANCEL, ADDRESS, ITEMS, PAYMENT],
        ),
        ("retail.delivered", true, vec![RETURN, EXCHANGE]),
        ("retail.cancel_reason", true, vec![CANCEL]),
        ("retail.items_in_order", true, vec![ITEMS, RETURN, EXCHANGE]),
        ("retail.same_product", true, vec![ITEMS, EXCHANGE]),
        ("retail.once", true, vec![ITEMS, EXCHANGE]),
        (
            "retail.own_payment",
            true,
            vec![ITEMS, PAYMENT, RETURN, EXCHANGE],
        ),
        ("retail.refund_method", true, vec![RETURN]),
        ("retail.confirmed", false, all),
    ];
    let expected = expected.map(|(id, enforced, tools)| (id.to_owned(), enforced, tools));
    assert_eq!(table("retail"), expected);
    let names = [
        "cancel_pending_order",
        "modify_pending_order_address",
        "modify_pending_order_items",
        "modify_pending_order_payment",
        "return_delivered_order_items",
        "exchange_delivered_order_items",
        "modify_user_address",
    ];
    assert_eq!(WRITES, names);
}

#[test]
fn other_calls_are_not_checked() {
    for tool in [
        "get_order_details",
        "transfer_to_human_agents",
        "stretto_commit",
        "",
    ] {
        assert!(!session().check(tool, w1()).applies(), "{tool}");
    }
    assert!(session().check(USER_ADDRESS, json!({})).applies());
}

#[test]
fn authenticated_needs_somebody_identified() {
    let rule = "retail.authenticated";
    let reason = "nobody has been identified by email, or by name and zip code, in this session";
    assert_eq!(
        session().verdict(rule, USER_ADDRESS, json!({})),
        fail(reason)
    );
    assert_eq!(ann().verdict(rule, USER_ADDRESS, json!({})), Pass);
    assert_eq!(ann().verdict(rule, CANCEL, json!(null)), Pass);
}

#[test]
fn own_order_compares_the_owner_with_everybody_identified() {
    let rule = "retail.own_order";
    let own = json!({"order_id": "#W1", "user_id": "ann_1"});
    assert_eq!(ann().order(&own).verdict(rule, CANCEL, w1()), Pass);

    let second = ann()
        .text("find_user_id_by_name_zip", json!({}), "bob_2")
        .order(&own);
    assert_eq!(second.verdict(rule, CANCEL, w1()), Pass);

    let other = json!({"order_id": "#W1", "user_id": "bob_2"});
    let reason = "order #W1 belongs to another user";
    assert_eq!(
        ann().order(&other).verdict(rule, CANCEL, w1()),
        fail(reason)
    );
    let cased = json!({"order_id": "#W1", "user_id": "Ann_1"});
    assert_eq!(
        ann().order(&cased).verdict(rule, CANCEL, w1()),
        fail(reason)
    );
}

#[test]
fn own_order_is_unknown_without_an_order_an_owner_or_a_customer() {
    let rule = "retail.own_order";
    let not_read = unknown("order #W1 has not been read");
    assert_eq!(ann().verdict(rule, CANCEL, w1()), not_read);
    let no_order = unknown("the call names no order");
    assert_eq!(ann().verdict(rule, CANCEL, json!({})), no_order);
    assert_eq!(
        ann().verdict(rule, CANCEL, json!({"order_id": 1})),
        no_order
    );
    assert_eq!(ann().verdict(rule, CANCEL, json!(null)), no_order);
    assert_eq!(ann().verdict(rule, CANCEL, json!("#W1")), no_order);

    let unowned = json!({"order_id": "#W1", "user_id": 7});
    let no_owner = unknown("order #W1 names no owner");
    assert_eq!(ann().order(&unowned).verdict(rule, CANCEL, w1()), no_owner);
    // Without an owner and without a customer, the owner is asked for first.
    assert_eq!(
        session().order(&unowned).verdict(rule, CANCEL, w1()),
        no_owner
    );

    let own = json!({"order_id": "#W1", "user_id": "ann_1"});
    let nobody = unknown("nobody has been identified");
    assert_eq!(session().order(&own).verdict(rule, CANCEL, w1()), nobody);
}

#[test]
fn status_checked_needs_any_result_that_showed_the_order() {
    let rule = "retail.status_checked";
    let reason = "the status of order #W1 was never read";
    assert_eq!(session().verdict(rule, CANCEL, w1()), fail(reason));
    let no_order = unknown("the call names no order");
    assert_eq!(
        session().verdict(rule, CANCEL, json!({"order_id": null})),
        no_order
    );
    assert_eq!(session().order(&w1()).verdict(rule, CANCEL, w1()), Pass);
    let by_a_write = session().record(ADDRESS, json!({}), &w1());
    assert_eq!(by_a_write.verdict(rule, CANCEL, w1()), Pass);
    let another = session().order(&json!({"order_id": "#W2"}));
    assert_eq!(another.verdict(rule, CANCEL, w1()), fail(reason));
}

#[test]
fn pending_lets_address_and_payment_change_after_the_items_did() {
    let rule = "retail.pending";
    let session = |status: &str| session().order(&w1_and("status", json!(status)));
    for tool in [CANCEL, ADDRESS, ITEMS, PAYMENT] {
        assert_eq!(session("pending").verdict(rule, tool, w1()), Pass, "{tool}");
        let reason = "order #W1 is delivered, and only a pending order qualifies";
        assert_eq!(
            session("delivered").verdict(rule, tool, w1()),
            fail(reason),
            "{tool}"
        );
        let reason = "order #W1 is Pending, and only a pending order qualifies";
        assert_eq!(
            session("Pending").verdict(rule, tool, w1()),
            fail(reason),
            "{tool}"
        );
    }
    let modified = "pending (item modified)";
    assert_eq!(session(modified).verdict(rule, ADDRESS, w1()), Pass);
    assert_eq!(session(modified).verdict(rule, PAYMENT, w1()), Pass);
    assert_eq!(session("not pending").verdict(rule, ADDRESS, w1()), Pass);
    let reason = "order #W1 is pending (item modified), and only a pending order qualifies";
    assert_eq!(session(modified).verdict(rule, CANCEL, w1()), fail(reason));
    assert_eq!(session(modified).verdict(rule, ITEMS, w1()), fail(reason));
}

#[test]
fn pending_and_delivered_are_unknown_without_a_status() {
    for (rule, tool) in [("retail.pending", CANCEL), ("retail.delivered", RETURN)] {
        let not_read = unknown("order #W1 has not been read");
        assert_eq!(session().verdict(rule, tool, w1()), not_read);
        let no_order = unknown("the call names no order");
        assert_eq!(session().verdict(rule, tool, json!({})), no_order);
        let no_status = unknown("order #W1 shows no status");
        assert_eq!(session().order(&w1()).verdict(rule, tool, w1()), no_status);
        let odd = session().order(&w1_and("status", json!(["pending", "delivered"])));
        assert_eq!(odd.verdict(rule, tool, w1()), no_status);
    }
}

#[test]
fn delivered_takes_no_other_status() {
    let rule = "retail.delivered";
    for tool in [RETURN, EXCHANGE] {
        let session = |status: &str| session().order(&w1_and("status", json!(status)));
        assert_eq!(session("delivered").verdict(rule, tool, w1()), Pass);
        let reason = "order #W1 is exchange requested, and only a delivered order qualifies";
        assert_eq!(
            session("exchange requested").verdict(rule, tool, w1()),
            fail(reason)
        );
        let reason = "order #W1 is delivered late, and only a delivered order qualifies";
        assert_eq!(
            session("delivered late").verdict(rule, tool, w1()),
            fail(reason)
        );
    }
}

#[test]
fn cancel_reason_takes_two_reasons_to_the_letter() {
    let verdict = |arguments| session().verdict("retail.cancel_reason", CANCEL, arguments);
    assert_eq!(verdict(json!({"reason": "no longer needed"})), Pass);
    assert_eq!(verdict(json!({"reason": "ordered by mistake"})), Pass);
    for other in [
        "found it cheaper",
        "No longer needed",
        "no longer needed ",
        "",
        "mistake",
    ] {
        let reason = format!("'{other}' is not an accepted reason");
        assert_eq!(verdict(json!({"reason": other})), fail(&reason));
    }
    for missing in [
        json!({}),
        json!({"reason": null}),
        json!({"reason": ["no longer needed"]}),
    ] {
        assert_eq!(verdict(missing), fail("a reason is required"));
    }
}

#[test]
fn items_in_order_counts_each_item() {
    let rule = "retail.items_in_order";
    let items = json!([{"item_id": "1"}, {"item_id": "2"}, {"item_id": "1"}, {"item_id": 3}, "4"]);
    let session = session().order(&w1_and("items", items));
    for tool in [ITEMS, RETURN, EXCHANGE] {
        let verdict = |ids: Value| session.verdict(rule, tool, w1_and("item_ids", ids));
        for held in [
            json!(["1"]),
            json!(["1", "1", "2"]),
            json!(["2", "1"]),
            json!([]),
        ] {
            assert_eq!(verdict(held.clone()), Pass, "{held}");
        }
        // What is no list of strings names no item.
        for nothing in [json!(null), json!("9"), json!([9, {"item_id": "9"}])] {
            assert_eq!(verdict(nothing.clone()), Pass, "{nothing}");
        }
        assert_eq!(
            verdict(json!(["1", "9"])),
            fail("order #W1 holds no item 9")
        );
        assert_eq!(
            verdict(json!(["2", "2"])),
            fail("order #W1 holds no further item 2")
        );
        assert_eq!(
            verdict(json!(["1", "1", "1"])),
            fail("order #W1 holds no further item 1")
        );
        assert_eq!(verdict(json!(["3"])), fail("order #W1 holds no item 3"));
        assert_eq!(
            verdict(json!(["8", "9"])),
            fail("order #W1 holds no item 8")
        );
        assert_eq!(session.verdict(rule, tool, w1()), Pass);
    }
}

#[test]
fn items_in_order_is_unknown_without_the_order() {
    let verdict = session().verdict("retail.items_in_order", RETURN, w1());
    assert_eq!(verdict, unknown("order #W1 has not been read"));
    let empty = session().order(&w1());
    let verdict = empty.verdict(
        "retail.items_in_order",
        RETURN,
        w1_and("item_ids", json!(["1"])),
    );
    assert_eq!(verdict, fail("order #W1 holds no item 1"));
}

/// An order of items 1 and 2 of product A, 3 of product B, 4 of none, and the variants of A.
fn shelf() -> Session {
    let items = json!([
        {"item_id": "1", "product_id": "A"},
        {"item_id": "2", "product_id": "A"},
        {"item_id": "3", "product_id": "B"},
        {"item_id": "4", "product_id": 5},
    ]);
    let variants = json!({
        "1": {"available": true},
        "2": {"available": false},
        "10": {"available": true},
        "11": {"available": false},
        "12": {},
        "13": {"available": "false"},
    });
    let product = json!({"product_id": "A", "variants": variants});
    session().order(&w1_and("items", items)).product(&product)
}

fn swap(old: &[&str], new: &[&str]) -> Value {
    json!({"order_id": "#W1", "item_ids": old, "new_item_ids": new})
}

#[test]
fn same_product_takes_an_available_variant_of_the_product() {
    for tool in [ITEMS, EXCHANGE] {
        let verdict = |old: &[&str], new: &[&str]| {
            shelf().verdict("retail.same_product", tool, swap(old, new))
        };
        assert_eq!(verdict(&["1"], &["10"]), Pass);
        assert_eq!(verdict(&["1"], &["12"]), Pass);
        assert_eq!(verdict(&["1"], &["13"]), Pass);
        assert_eq!(verdict(&["1", "2"], &["10", "1"]), Pass);
        assert_eq!(verdict(&[], &[]), Pass);
        assert_eq!(
            verdict(&["1"], &["99"]),
            fail("99 is no variant of the product of 1")
        );
        assert_eq!(verdict(&["1"], &["11"]), fail("11 is out of stock"));
        assert_eq!(verdict(&["1"], &["1"]), fail("1 is what it would replace"));
        // Out of stock comes before being the same.
        assert_eq!(verdict(&["2"], &["2"]), fail("2 is out of stock"));
        assert_eq!(
            verdict(&["3"], &["3"]),
            unknown("product B has not been read")
        );
        assert_eq!(
            verdict(&["4"], &["10"]),
            unknown("order #W1 shows no product of item 4")
        );
        assert_eq!(
            verdict(&["9"], &["10"]),
            unknown("order #W1 shows no product of item 9")
        );
    }
}

#[test]
fn same_product_stops_at_the_first_pair_that_decides() {
    let verdict =
        |old: &[&str], new: &[&str]| shelf().verdict("retail.same_product", ITEMS, swap(old, new));
    assert_eq!(
        verdict(&["1", "3"], &["11", "10"]),
        fail("11 is out of stock")
    );
    assert_eq!(
        verdict(&["3", "1"], &["10", "11"]),
        unknown("product B has not been read")
    );
    assert_eq!(
        verdict(&["1", "2"], &["10", "11"]),
        fail("11 is out of stock")
    );
}

#[test]
fn same_product_compares_the_lengths_of_the_lists_first() {
    let rule = "retail.same_product";
    let differ = fail("the two item lists differ in length");
    assert_eq!(shelf().verdict(rule, ITEMS, swap(&["1"], &[])), differ);
    assert_eq!(
        shelf().verdict(rule, ITEMS, swap(&["4"], &["10", "12"])),
        differ
    );
    assert_eq!(
        shelf().verdict(rule, ITEMS, w1_and("item_ids", json!(["1"]))),
        differ
    );
    assert_eq!(
        shelf().verdict(rule, ITEMS, w1_and("new_item_ids", json!(["1"]))),
        differ
    );
    assert_eq!(shelf().verdict(rule, ITEMS, w1()), Pass);
    // Only strings count as items.
    let odd = json!({"order_id": "#W1", "item_ids": ["1", 7], "new_item_ids": ["10"]});
    assert_eq!(shelf().verdict(rule, ITEMS, odd), Pass);
    let not_read = unknown("order #W2 has not been read");
    let arguments = json!({"order_id": "#W2", "item_ids": ["1"]});
    assert_eq!(shelf().verdict(rule, ITEMS, arguments), not_read);
}

#[test]
fn same_product_reads_a_product_without_variants_as_one_that_has_none() {
    let bare = shelf().product(&json!({"product_id": "A", "variants": ["10"]}));
    let verdict = bare.verdict("retail.same_product", ITEMS, swap(&["1"], &["10"]));
    assert_eq!(verdict, fail("10 is no variant of the product of 1"));
}

#[test]
fn same_product_finds_the_product_on_any_item_of_that_id() {
    let items = json!([{"item_id": "1"}, {"item_id": "1", "product_id": "A"}]);
    let session = shelf().order(&w1_and("items", items));
    assert_eq!(
        session.verdict("retail.same_product", ITEMS, swap(&["1"], &["10"])),
        Pass
    );
}

#[test]
fn once_counts_changes_and_exchanges_of_the_same_order() {
    let rule = "retail.once";
    let reason = "the items of order #W1 were already changed in this session";
    for earlier in [ITEMS, EXCHANGE] {
        for tool in [ITEMS, EXCHANGE] {
            let changed = session().text(earlier, w1(), "done");
            assert_eq!(changed.verdict(rule, tool, w1()), fail(reason));
            assert_eq!(
                changed.verdict(rule, tool, json!({"order_id": "#W2"})),
                Pass
            );
            assert_eq!(changed.verdict(rule, tool, json!({})), Pass);
            let refused = session().error(earlier, w1(), "no");
            assert_eq!(refused.verdict(rule, tool, w1()), Pass);
        }
    }
    for other in [CANCEL, ADDRESS, PAYMENT, RETURN] {
        let written = session().text(other, w1(), "done");
        assert_eq!(written.verdict(rule, ITEMS, w1()), Pass, "{other}");
    }
    let unnamed = session().text(ITEMS, json!({"order_id": 1}), "done");
    assert_eq!(unnamed.verdict(rule, ITEMS, json!({"order_id": 1})), Pass);
}

fn paying(method: &str) -> Value {
    w1_and("payment_method_id", json!(method))
}

#[test]
fn own_payment_looks_into_the_profiles_of_the_identified() {
    let rule = "retail.own_payment";
    let ann_profile =
        json!({"user_id": "ann_1", "payment_methods": {"card_1": null, "card_2": {}}});
    let bob_profile = json!({"user_id": "bob_2", "payment_methods": {"card_9": {}}});
    for tool in [ITEMS, PAYMENT, RETURN, EXCHANGE] {
        let session = ann().profile(&ann_profile).profile(&bob_profile);
        assert_eq!(session.verdict(rule, tool, paying("card_1")), Pass);
        assert_eq!(session.verdict(rule, tool, paying("card_2")), Pass);
        let reason = "card_9 is not among the user's payment methods";
        assert_eq!(session.verdict(rule, tool, paying("card_9")), fail(reason));

        let both = session.text("find_user_id_by_email", json!({}), "bob_2");
        assert_eq!(both.verdict(rule, tool, paying("card_9")), Pass);
        assert_eq!(both.verdict(rule, tool, paying("card_1")), Pass);
    }
}

#[test]
fn own_payment_is_unknown_without_a_method_or_a_profile() {
    let rule = "retail.own_payment";
    let no_method = unknown("the call names no payment method");
    assert_eq!(ann().verdict(rule, RETURN, w1()), no_method);
    assert_eq!(
        ann().verdict(rule, RETURN, json!({"payment_method_id": 1})),
        no_method
    );

    let not_read = unknown("the customer's profile has not been read");
    assert_eq!(ann().verdict(rule, RETURN, paying("card_1")), not_read);
    let bob_profile = json!({"user_id": "bob_2", "payment_methods": {"card_1": {}}});
    assert_eq!(
        ann()
            .profile(&bob_profile)
            .verdict(rule, RETURN, paying("card_1")),
        not_read
    );
    assert_eq!(
        session()
            .profile(&bob_profile)
            .verdict(rule, RETURN, paying("card_1")),
        not_read
    );

    // A profile without methods was read all the same.
    let bare = ann().profile(&json!({"user_id": "ann_1"}));
    let reason = "card_1 is not among the user's payment methods";
    assert_eq!(bare.verdict(rule, RETURN, paying("card_1")), fail(reason));
    let listed = ann().profile(&json!({"user_id": "ann_1", "payment_methods": ["card_1"]}));
    assert_eq!(listed.verdict(rule, RETURN, paying("card_1")), fail(reason));
}

#[test]
fn refund_method_is_the_first_payment_or_a_gift_card() {
    let rule = "retail.refund_method";
    let history = json!([{"payment_method_id": "card_1"}, {"payment_method_id": "card_2"}]);
    let session = session().order(&w1_and("payment_history", history));
    assert_eq!(session.verdict(rule, RETURN, paying("card_1")), Pass);
    assert_eq!(session.verdict(rule, RETURN, paying("gift_card_5")), Pass);
    for other in ["card_2", "my_gift_card", "Gift_card_5", ""] {
        let reason = format!(
            "a refund goes to the method the order was paid with or to a gift card, \
             and {other} is neither"
        );
        assert_eq!(session.verdict(rule, RETURN, paying(other)), fail(&reason));
    }
}

#[test]
fn refund_method_is_unknown_without_an_order_or_a_method() {
    let rule = "retail.refund_method";
    let not_read = unknown("order #W1 has not been read");
    assert_eq!(
        session().verdict(rule, RETURN, paying("gift_card_1")),
        not_read
    );
    let unpaid = session().order(&w1());
    let no_method = unknown("the call names no payment method");
    assert_eq!(unpaid.verdict(rule, RETURN, w1()), no_method);
    assert_eq!(unpaid.verdict(rule, RETURN, paying("gift_card_1")), Pass);
    assert!(unpaid.verdict(rule, RETURN, paying("card_1")).fails());
    let odd = session().order(&w1_and("payment_history", json!(["card_1"])));
    assert!(odd.verdict(rule, RETURN, paying("card_1")).fails());
}

#[test]
fn confirmed_reads_the_customers_last_message_alone() {
    let rule = "retail.confirmed";
    let silent = session().agent("yes");
    let verdict = silent.verdict(rule, CANCEL, w1());
    assert_eq!(verdict, fail("the customer has said nothing yet"));

    let agreed = session().user("Yes, go ahead.").agent("No.");
    assert_eq!(agreed.verdict(rule, CANCEL, w1()), Pass);
    assert_eq!(agreed.check(CANCEL, w1()).word_list(), Some(true));

    let later = agreed.user("Why?");
    let verdict = later.verdict(rule, CANCEL, w1());
    assert_eq!(verdict, fail("the last message holds no confirming word"));
    assert_eq!(later.check(CANCEL, w1()).word_list(), Some(false));
    assert_eq!(later.check("get_order_details", w1()).word_list(), None);
}

#[test]
fn a_confirmation_that_is_missing_refuses_nothing() {
    let own = json!({"order_id": "#W1", "user_id": "ann_1", "status": "pending"});
    let checked = ann()
        .order(&own)
        .check(CANCEL, w1_and("reason", json!("no longer needed")));
    assert_eq!(checked.word_list(), Some(false));
    assert_eq!(checked.refusal(), None);
    assert_eq!(checked.refused_by().count(), 0);
}
