//! The steps of the proposal check, one by one.

use serde_json::{Value, json};

use super::*;

/// The flags of a call after one result, as `argument=value`.
fn flags(result: &Value, exchange: (&str, &str), arguments: Value) -> Vec<String> {
    let mut listings = Listings::default();
    listings.returned(false, &result.to_string());
    flags_of(&listings, exchange, arguments)
}

fn flags_of(listings: &Listings, (agent, user): (&str, &str), arguments: Value) -> Vec<String> {
    let mut exchange = Exchange::default();
    exchange.agent_said(agent);
    exchange.user_said(user);
    let call = ToolCall {
        id: "next".to_owned(),
        name: "write".to_owned(),
        arguments,
    };
    let flags = listings.check(&exchange, &call).into_iter();
    flags
        .map(|Flag { argument, value }| format!("{argument}={value}"))
        .collect()
}

const NONE: [&str; 0] = [];

/// Whether a message says a value.
fn says(message: &str, value: &str) -> bool {
    Words::of(message).say(value)
}

#[test]
fn a_number_is_said_where_it_stands_alone() {
    assert!(says("the one ending in 2732", "2732"));
    assert!(says("2732", "2732"));
    assert!(says("(2732)", "2732"));
    assert!(says("it's 2732.", "2732"));
    assert!(says("no. 27320, then 2732", "2732"));
    assert!(!says("27320", "2732"));
    assert!(!says("12732", "2732"));
    assert!(!says("1.2732", "2732"));
    assert!(!says("wait...2732", "2732"));
    assert!(says("a2732b", "2732"));
}

#[test]
fn a_number_is_said_however_its_fraction_is_written() {
    assert!(says("20.5 dollars", "20.50"));
    assert!(says("20.50 dollars", "20.5"));
    assert!(says("That is $20.50.", "20.5"));
    assert!(says("20.00", "20"));
    assert!(says("20", "20.00"));
    assert!(says("20.", "20"));
    assert!(says("$1,020.50", "1020.5"));
    assert!(says("1020.5", "1,020.50"));
    assert!(says("I'd pay 1020 or 30", "1,020"));
    assert!(!says("20.51", "20.5"));
    assert!(!says("20.05", "20.5"));
    assert!(!says("200", "20"));
    assert!(!says("2", "20"));
    assert!(!says("100", "1"));
    assert!(!says("0.5", ".50"));
    assert!(!says("5", ".50"));
}

#[test]
fn the_sign_of_a_number_is_not_looked_at() {
    assert!(says("45.5", "-45.5"));
    assert!(says("-45.5", "45.5"));
    assert!(says("minus -45.5", "-45.5"));
    // Two signs make no number, and no such text stands there.
    assert!(!says("45.5", "--45.5"));
}

#[test]
fn marks_without_a_digit_are_never_said() {
    for value in ["", "-", "#", ".", ",", ",,,,", "-,,,,"] {
        assert!(!says("hm... 1,000.00, well", value), "{value}");
    }
    assert!(!says("", ""));
}

#[test]
fn of_an_id_the_digits_are_enough() {
    assert!(says("use 4196779", "credit_card_4196779"));
    assert!(says("use #4196779!", "credit_card_4196779"));
    assert!(says("x4196779x", "credit_card_4196779"));
    assert!(says("that is 1.4196779", "credit_card_4196779"));
    assert!(!says("use 41967790", "credit_card_4196779"));
    assert!(!says("use 14196779", "credit_card_4196779"));
    assert!(says("use 4196", "card_4196"));
    assert!(!says("use 419", "card_419"));
    assert!(says("use card_419", "card_419"));
    assert!(!says("use 4196", "card2_4196"));
    assert!(!says("use 4196", "card-4196"));
    assert!(!says("use 4196", "card4196"));
    assert!(!says("use 4196", "card_4196x"));
    assert!(!says("use 4196x", "card_4196x"));
    assert!(says("use 4196", "_4196"));
    assert!(!says("use 4196", "straße_4196"));
}

#[test]
fn other_values_are_said_as_they_are_or_without_their_mark() {
    assert!(!says("Yes, W7a please", "#w7b"));
    assert!(says("Yes, #W7B please", "#w7b"));
    assert!(says("Yes, w7b please", "#w7b"));
    assert!(says("Yes, w7bc please", "#w7b"));
    assert!(says("##w7", "##w7"));
    assert!(says("#w7", "##w7"));
    assert!(!says("w7", "##w7"));
    assert!(says("the gift card", "gift_card"));
    assert!(says("the GIFT_CARD", "gift_card"));
    assert!(!says("the giftcard", "gift_card"));
    assert!(says("on 2024-05-20.", "2024-05-20"));
    assert!(!says("on 2024-05-2", "2024-05-20"));
    assert!(says("ÜBER alles", "über"));
}

#[test]
fn a_mark_stays_where_underscores_read_as_blanks() {
    assert!(says("the #gift card", "#gift_card"));
    assert!(!says("the gift card", "#gift_card"));
}

#[test]
fn the_reply_chooses_before_the_proposal() {
    let user = json!({"user_id": "zoe", "orders": ["#W100", "#W200", "#W300"]});
    let pays = |exchange, order: &str| flags(&user, exchange, json!({"order_id": order}));
    assert_eq!(pays(("Cancel #W100?", "Yes"), "#W200"), ["order_id=#w200"]);
    assert_eq!(pays(("Cancel #W100?", "Yes"), "#W100"), NONE);
    assert_eq!(pays(("Cancel #W100?", "No, #W200"), "#W200"), NONE);
    assert_eq!(
        pays(("Cancel #W100?", "No, #W200"), "#W100"),
        ["order_id=#w100"]
    );
    assert_eq!(
        pays(("Cancel #W100?", "#W200 and #W300"), "#W100"),
        ["order_id=#w100"]
    );
    assert_eq!(pays(("Cancel #W100?", "#W200 and #W300"), "#W300"), NONE);
    assert_eq!(pays(("#W100 or #W200?", "Either"), "#W300"), NONE);
    assert_eq!(pays(("Anything else?", "Go on"), "#W300"), NONE);
    assert_eq!(pays(("", ""), "#W300"), NONE);
}

#[test]
fn three_characters_name_nothing() {
    let orders = json!(["#W7", "#W8"]);
    let call = json!({"order_id": "#W8"});
    assert_eq!(flags(&orders, ("Cancel #W7?", "Yes, #W7."), call), NONE);
    let orders = json!(["#W7a", "#W8a"]);
    let call = json!({"order_id": "#W8a"});
    assert_eq!(
        flags(&orders, ("Cancel it?", "Yes, W7a."), call),
        ["order_id=#w8a"]
    );
    // Characters are counted, not bytes.
    let names = json!([{"id": "x1", "name": "äöü"}, {"id": "x2", "name": "éèêë"}]);
    let call = |id: &str| json!({"id": id});
    assert_eq!(flags(&names, ("Which?", "äöü"), call("x2")), NONE);
    assert_eq!(flags(&names, ("Which?", "éèêë"), call("x1")), ["id=x1"]);
}

#[test]
fn a_value_that_two_records_have_names_neither() {
    let items = json!([
        {"id": "x1", "name": "lamp", "color": "white"},
        {"id": "x2", "name": "lamp", "color": "green"},
        {"id": "x3", "name": "desk", "color": "green"},
    ]);
    let call = |id: &str| json!({"id": id});
    assert_eq!(flags(&items, ("", "the lamp"), call("x3")), NONE);
    assert_eq!(flags(&items, ("", "the white lamp"), call("x3")), ["id=x3"]);
    assert_eq!(flags(&items, ("", "the green one"), call("x1")), NONE);
    assert_eq!(flags(&items, ("", "the desk"), call("x1")), ["id=x1"]);
    // A record that says a value twice still has it alone.
    let twice = json!([{"id": "x1", "name": "lamp", "kind": "lamp"}, {"id": "x2"}]);
    assert_eq!(flags(&twice, ("", "the lamp"), call("x2")), ["id=x2"]);
    let thrice = json!(["#W10", "#W10", "#W10", "#W20"]);
    assert_eq!(flags(&thrice, ("", "W10"), json!({"a": "#W20"})), NONE);
}

#[test]
fn a_record_is_named_by_what_is_inside_it_but_found_by_its_own_fields() {
    let items = json!([
        {"id": "x1", "options": {"color": "crimson", "size": ["10-inch"]}},
        {"id": "x2", "options": {"color": "emerald", "size": ["12-inch"]}},
    ]);
    assert_eq!(
        flags(&items, ("", "the crimson one"), json!({"id": "x2"})),
        ["id=x2"]
    );
    assert_eq!(
        flags(&items, ("", "the 12-inch"), json!({"id": "x1"})),
        ["id=x1"]
    );
    // The size is in a record, but is no field of one.
    assert_eq!(
        flags(&items, ("", "the crimson one"), json!({"size": "12-inch"})),
        NONE
    );
    // Member names are no values.
    assert_eq!(flags(&items, ("", "options"), json!({"id": "x1"})), NONE);
}

#[test]
fn records_may_be_kept_by_id() {
    let variants = json!({"variants": {
        "v1": {"item_id": "1001", "color": "crimson"},
        "v2": {"item_id": "1002", "color": "emerald"},
    }});
    let call = json!({"item": "1002"});
    assert_eq!(
        flags(&variants, ("", "crimson"), call.clone()),
        ["item=1002"]
    );
    // One record has no other, and an object that holds anything else is a record itself.
    let single = json!({"variants": {"v1": {"item_id": "1002"}}});
    assert_eq!(flags(&single, ("", "crimson"), call.clone()), NONE);
    let mixed = json!({
        "v1": {"item_id": "1001", "color": "crimson"},
        "v2": {"item_id": "1002", "color": "emerald"},
        "count": 2,
    });
    assert_eq!(flags(&mixed, ("", "crimson"), call), NONE);
}

#[test]
fn a_list_needs_two_elements_and_may_hold_others_than_records() {
    let call = || json!({"id": "#W20"});
    assert_eq!(flags(&json!(["#W20"]), ("", "#W10"), call()), NONE);
    let mixed = json!(["#W10", null, true, ["#W30", "#W40"], "#W20"]);
    assert_eq!(flags(&mixed, ("", "#W10"), call()), ["id=#w20"]);
    assert_eq!(flags(&mixed, ("", "#W30"), call()), NONE);
    assert_eq!(
        flags(&mixed, ("", "#W30"), json!({"id": "#W40"})),
        ["id=#w40"]
    );
    assert_eq!(
        flags(&json!([1001, 1002]), ("", "1001"), json!({"n": 1002})),
        ["n=1002"]
    );
    assert_eq!(
        flags(&json!([1001, 1002]), ("", "1001"), json!({"n": "1002"})),
        ["n=1002"]
    );
}

#[test]
fn lists_are_found_at_any_depth() {
    let deep = json!({"a": [{"b": {"orders": ["#W10", "#W20"]}}]});
    assert_eq!(
        flags(&deep, ("", "#W10"), json!({"id": "#W20"})),
        ["id=#w20"]
    );
}

#[test]
fn the_latest_list_decides_alone() {
    let mut listings = Listings::default();
    listings.returned(false, r##"["#W10", "#W20"]"##);
    let check = |listings: &Listings| flags_of(listings, ("", "#W10"), json!({"id": "#W20"}));
    assert_eq!(check(&listings), ["id=#w20"]);
    // A later list with the value hides the earlier one, one without it does not.
    listings.returned(false, r##"["#W30", "#W40"]"##);
    assert_eq!(check(&listings), ["id=#w20"]);
    listings.returned(false, r##"["#W20", "#W50"]"##);
    assert_eq!(check(&listings), NONE);
    // Errors and texts hold no lists.
    listings.returned(true, r##"["#W10", "#W20"]"##);
    listings.returned(false, r##"Orders: ["#W10", "#W20"]"##);
    assert_eq!(check(&listings), NONE);
    listings.returned(false, r##"["#W10", "#W20"]"##);
    assert_eq!(check(&listings), ["id=#w20"]);
}

#[test]
fn a_record_that_stands_alone_hides_no_list() {
    for single in [r##"["#W20"]"##, r##"{"x": {"order_id": "#W20"}}"##] {
        let mut listings = Listings::default();
        listings.returned(false, r##"["#W10", "#W20"]"##);
        listings.returned(false, single);
        let flags = flags_of(&listings, ("", "#W10"), json!({"id": "#W20"}));
        assert_eq!(flags, ["id=#w20"], "{single}");
    }
}

#[test]
fn within_a_result_the_list_that_comes_last_decides() {
    let result = json!({"a": ["#W10", "#W20"], "b": ["#W20", "#W30"]});
    assert_eq!(flags(&result, ("", "#W10"), json!({"id": "#W20"})), NONE);
    assert_eq!(
        flags(&result, ("", "#W30"), json!({"id": "#W20"})),
        ["id=#w20"]
    );
    // A list comes before those inside it.
    let nested = json!([{"id": "#W20", "also": ["#W20", "#W30"]}, {"id": "#W10"}]);
    assert_eq!(flags(&nested, ("", "#W10"), json!({"id": "#W20"})), NONE);
    assert_eq!(
        flags(&nested, ("", "#W30"), json!({"id": "#W20"})),
        ["id=#w20"]
    );
}

#[test]
fn only_values_with_a_digit_are_checked() {
    let reasons = json!(["no longer needed", "ordered by mistake"]);
    let call = json!({"reason": "no longer needed"});
    assert_eq!(flags(&reasons, ("", "ordered by mistake"), call), NONE);
    let cities = json!(["paris 2", "rome"]);
    assert_eq!(
        flags(&cities, ("", "rome"), json!({"city": "Paris 2 "})),
        ["city=paris 2"]
    );
    let digits = json!(["paris ٢", "rome"]);
    assert_eq!(
        flags(&digits, ("", "rome"), json!({"city": "paris ٢"})),
        NONE
    );
}

#[test]
fn a_call_that_passes_a_chosen_record_too_is_not_flagged() {
    let items = json!([{"id": "1001"}, {"id": "1002"}, {"id": "1003"}]);
    let says = ("", "1001 it is");
    assert_eq!(
        flags(&items, says, json!({"old": "1001", "new": "1002"})),
        NONE
    );
    assert_eq!(
        flags(
            &items,
            says,
            json!({"old": {"deep": ["1001"]}, "new": "1002"})
        ),
        NONE
    );
    let flagged = ["new=1002", "old=1003"];
    assert_eq!(
        flags(&items, says, json!({"old": "1003", "new": "1002"})),
        flagged
    );
}

#[test]
fn the_same_pair_may_be_flagged_twice_and_arguments_stand_by_name() {
    let items = json!(["1001", "1002", "1003"]);
    let arguments = json!({"b": ["1002", {"z": "1003", "y": 1002}], "a": "1003"});
    let expected = ["a=1003", "b=1002", "b=1002", "b=1003"];
    assert_eq!(flags(&items, ("", "1001"), arguments), expected);
}

#[test]
fn whole_numbers_are_written_without_a_fraction() {
    let amounts = json!([{"n": 1005.0}, {"n": 1006.5}, {"n": -7}]);
    assert_eq!(
        flags(&amounts, ("", "1006.5"), json!({"n": 1005})),
        ["n=1005"]
    );
    assert_eq!(
        flags(&amounts, ("", "1005"), json!({"n": 1006.50})),
        ["n=1006.5"]
    );
    assert_eq!(flags(&amounts, ("", "1005"), json!({"n": -7.0})), ["n=-7"]);
    // Booleans and nulls are no values, nor what they are written as.
    assert_eq!(
        scalars(&json!([true, null, {"a": false}, " X ", 2.50])),
        ["x", "2.5"]
    );
}

#[test]
fn arguments_that_are_no_object_are_not_checked() {
    let orders = json!(["#W10", "#W20"]);
    for arguments in [json!(["#W20"]), json!("#W20"), json!(null)] {
        assert_eq!(flags(&orders, ("", "#W10"), arguments), NONE);
    }
}

#[test]
fn a_field_is_of_the_record_itself() {
    // The customer chose x1; the call passes a value deep inside x1, which is no field of it.
    let items = json!([{"id": "x1", "tag": "crimson", "in": ["deep1"]}, {"id": "x2"}]);
    let arguments = json!({"a": "x2", "b": "deep1"});
    assert_eq!(flags(&items, ("", "crimson"), arguments), ["a=x2"]);
}

#[test]
fn results_are_taken_from_events() {
    let mut listings = Listings::default();
    let result = |error: bool, content: &str| Event::ToolResult {
        call_id: "1".to_owned(),
        name: "get_user_details".to_owned(),
        error,
        content: content.to_owned(),
    };
    listings.observe(&result(true, r##"["#W10", "#W20"]"##));
    listings.observe(&Event::User {
        text: r##"["#W10", "#W20"]"##.to_owned(),
    });
    let check = |listings: &Listings| flags_of(listings, ("", "#W10"), json!({"id": "#W20"}));
    assert_eq!(check(&listings), NONE);
    listings.observe(&result(false, r##"["#W10", "#W20"]"##));
    assert_eq!(check(&listings), ["id=#w20"]);
}

#[test]
fn a_flag_is_written_as_argument_and_value() {
    let flag = Flag {
        argument: "order_id".to_owned(),
        value: "#w7b".to_owned(),
    };
    let json = serde_json::to_string(&flag).unwrap();
    assert_eq!(json, r##"{"argument":"order_id","value":"#w7b"}"##);
}
