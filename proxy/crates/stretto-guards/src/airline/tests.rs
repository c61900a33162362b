//! Every clause of every airline rule, on both sides.

use serde_json::{Value, json};

use super::*;
use crate::Verdict::Pass;
use crate::testing::{Session, fail, table, unknown};

fn session() -> Session {
    Session::of("airline")
}

/// A session that read reservation R1 with one member more.
fn r1(name: &str, value: Value) -> Session {
    let mut reservation = json!({"reservation_id": "R1", "user_id": "ann_1"});
    reservation[name] = value;
    session().reservation(&reservation)
}

fn call() -> Value {
    json!({"reservation_id": "R1"})
}

fn call_with(name: &str, value: Value) -> Value {
    let mut arguments = call();
    arguments[name] = value;
    arguments
}

fn leg(number: &str, date: &str) -> Value {
    json!({"flight_number": number, "date": date, "price": 100})
}

#[test]
fn the_rules_apply_to_their_tools_in_their_order() {
    let reservation_writes = vec![CANCEL, BAGS, FLIGHTS, PASSENGERS];
    let expected = [
        ("airline.own_reservation", true, reservation_writes),
        ("airline.cancel_allowed", true, vec![CANCEL]),
        ("airline.basic_economy_flights", true, vec![FLIGHTS]),
        ("airline.not_flown", true, vec![FLIGHTS]),
        ("airline.keep_bags", true, vec![BAGS]),
        ("airline.same_passenger_count", true, vec![PASSENGERS]),
        ("airline.booking_limits", true, vec![BOOK]),
        ("airline.own_payment", true, vec![BOOK, BAGS, FLIGHTS]),
        ("airline.compensation", true, vec![CERTIFICATE]),
        (
            "airline.confirmed",
            false,
            vec![CANCEL, BAGS, FLIGHTS, PASSENGERS, BOOK],
        ),
    ];
    let expected = expected.map(|(id, enforced, tools)| (id.to_owned(), enforced, tools));
    assert_eq!(table("airline"), expected);
    let names = [
        "cancel_reservation",
        "update_reservation_baggages",
        "update_reservation_flights",
        "update_reservation_passengers",
        "book_reservation",
    ];
    assert_eq!(WRITES, names);
    assert_eq!(CERTIFICATE, "send_certificate");
}

#[test]
fn a_certificate_needs_no_confirmation() {
    assert_eq!(session().check(CERTIFICATE, json!({})).word_list(), None);
    assert_eq!(session().check(BOOK, json!({})).word_list(), Some(false));
    assert_eq!(
        session().user("yes").check(BOOK, json!({})).word_list(),
        Some(true)
    );
}

#[test]
fn own_reservation_needs_the_owners_profile() {
    let rule = "airline.own_reservation";
    for tool in [CANCEL, BAGS, FLIGHTS, PASSENGERS] {
        let owned = r1("cabin", json!("economy"));
        let no_profile = unknown("no profile has been read");
        assert_eq!(owned.verdict(rule, tool, call()), no_profile);
        let ann = owned.clone().profile(&json!({"user_id": "ann_1"}));
        assert_eq!(ann.verdict(rule, tool, call()), Pass);
        let bob = owned.profile(&json!({"user_id": "bob_2"}));
        let another = fail("reservation R1 belongs to another user");
        assert_eq!(bob.verdict(rule, tool, call()), another);
        let both = bob.profile(&json!({"user_id": "ann_1"}));
        assert_eq!(both.verdict(rule, tool, call()), Pass);
    }
}

#[test]
fn own_reservation_is_unknown_without_a_reservation_or_an_owner() {
    let rule = "airline.own_reservation";
    let ann = session().profile(&json!({"user_id": "ann_1"}));
    let not_read = unknown("reservation R1 has not been read");
    assert_eq!(ann.verdict(rule, CANCEL, call()), not_read);
    let unnamed = unknown("the call names no reservation");
    assert_eq!(
        ann.verdict(rule, CANCEL, json!({"reservation_id": 1})),
        unnamed
    );
    assert_eq!(ann.verdict(rule, CANCEL, json!(null)), unnamed);
    let no_owner = unknown("reservation R1 names no owner");
    assert_eq!(
        ann.reservation(&call()).verdict(rule, CANCEL, call()),
        no_owner
    );
}

const NOT_ALLOWED: &str = "the booking is older than a day, not business, not insured, and no \
                           flight is known to be cancelled by the airline (get_flight_status \
                           tells)";

#[test]
fn cancel_allowed_within_a_day_of_booking() {
    let verdict = |created: Value| {
        r1("created_at", created).verdict("airline.cancel_allowed", CANCEL, call())
    };
    for recent in [
        "2024-05-14T15:00:00",
        "2024-05-15T15:00:00",
        "2024-05-15T02:50:18",
    ] {
        assert_eq!(verdict(json!(recent)), Pass, "{recent}");
    }
    for not_recent in [
        "2024-05-14T14:59:59",
        "2024-05-15T15:00:01",
        "yesterday",
        "",
    ] {
        assert_eq!(
            verdict(json!(not_recent)),
            fail(NOT_ALLOWED),
            "{not_recent}"
        );
    }
    assert_eq!(verdict(json!(20_240_515)), fail(NOT_ALLOWED));
    assert_eq!(verdict(json!(null)), fail(NOT_ALLOWED));
}

#[test]
fn cancel_allowed_in_business_class_or_when_insured() {
    let verdict = |name: &str, value: &str| {
        r1(name, json!(value)).verdict("airline.cancel_allowed", CANCEL, call())
    };
    assert_eq!(verdict("cabin", "business"), Pass);
    assert_eq!(verdict("insurance", "yes"), Pass);
    for (name, value) in [
        ("cabin", "economy"),
        ("cabin", "basic_economy"),
        ("cabin", "Business"),
        ("cabin", "yes"),
        ("insurance", "no"),
        ("insurance", "Yes"),
        ("insurance", "business"),
    ] {
        assert_eq!(verdict(name, value), fail(NOT_ALLOWED), "{name} {value}");
    }
}

#[test]
fn cancel_allowed_when_the_airline_cancelled_a_flight_of_it() {
    let rule = "airline.cancel_allowed";
    let legs = json!([leg("HAT1", "2024-05-20"), leg("HAT2", "2024-05-21")]);
    let session = r1("flights", legs);
    let after = |number: &str, date: &str, status: &str| {
        session
            .clone()
            .flight(number, date, status)
            .verdict(rule, CANCEL, call())
    };
    assert_eq!(session.verdict(rule, CANCEL, call()), fail(NOT_ALLOWED));
    assert_eq!(after("HAT1", "2024-05-20", "cancelled"), Pass);
    assert_eq!(after("HAT2", "2024-05-21", "cancelled"), Pass);
    assert_eq!(after("HAT2", "2024-05-21", "\"cancelled\""), Pass);
    assert_eq!(after("HAT2", "2024-05-20", "cancelled"), fail(NOT_ALLOWED));
    assert_eq!(after("HAT3", "2024-05-20", "cancelled"), fail(NOT_ALLOWED));
    for status in [
        "delayed",
        "available",
        "Cancelled",
        "cancelled soon",
        "on time",
    ] {
        assert_eq!(
            after("HAT1", "2024-05-20", status),
            fail(NOT_ALLOWED),
            "{status}"
        );
    }
    // The last status that was read counts.
    let back =
        session
            .flight("HAT1", "2024-05-20", "cancelled")
            .flight("HAT1", "2024-05-20", "available");
    assert_eq!(back.verdict(rule, CANCEL, call()), fail(NOT_ALLOWED));
}

#[test]
fn cancel_allowed_is_unknown_only_before_the_reservation_is_read() {
    let rule = "airline.cancel_allowed";
    let not_read = unknown("reservation R1 has not been read");
    assert_eq!(session().verdict(rule, CANCEL, call()), not_read);
    assert_eq!(
        session().reservation(&call()).verdict(rule, CANCEL, call()),
        fail(NOT_ALLOWED)
    );
}

#[test]
fn nothing_that_was_flown_is_cancelled() {
    let rule = "airline.cancel_allowed";
    let past = fail("part of the trip is in the past");
    let trip = |date: &str| {
        session().reservation(&json!({
            "reservation_id": "R1",
            "cabin": "business",
            "insurance": "yes",
            "created_at": "2024-05-15T10:00:00",
            "flights": [leg("HAT1", "2024-05-20"), leg("HAT2", date)],
        }))
    };
    assert_eq!(trip("2024-05-14").verdict(rule, CANCEL, call()), past);
    assert_eq!(trip("2023-12-31").verdict(rule, CANCEL, call()), past);
    assert_eq!(trip("2024-05-15").verdict(rule, CANCEL, call()), Pass);
    assert_eq!(trip("2024-05-16").verdict(rule, CANCEL, call()), Pass);

    // The last read status of a flight outweighs its date, either way.
    for flown in ["landed", "flying"] {
        let today = trip("2024-05-15").flight("HAT2", "2024-05-15", flown);
        assert_eq!(today.verdict(rule, CANCEL, call()), past, "{flown}");
        let later = trip("2024-05-16").flight("HAT2", "2024-05-16", flown);
        assert_eq!(later.verdict(rule, CANCEL, call()), past, "{flown}");
    }
    let cancelled = trip("2024-05-14").flight("HAT2", "2024-05-14", "cancelled");
    assert_eq!(cancelled.verdict(rule, CANCEL, call()), Pass);
    let delayed = trip("2024-05-14").flight("HAT2", "2024-05-14", "delayed");
    assert_eq!(delayed.verdict(rule, CANCEL, call()), past);
    let another = trip("2024-05-14").flight("HAT2", "2024-05-20", "cancelled");
    assert_eq!(another.verdict(rule, CANCEL, call()), past);
    // One cancelled flight does not undo another that was flown.
    let partly = trip("2024-05-14").flight("HAT1", "2024-05-20", "cancelled");
    assert_eq!(partly.verdict(rule, CANCEL, call()), past);
}

#[test]
fn a_flight_without_a_date_or_number_counts_as_far_as_it_goes() {
    let rule = "airline.cancel_allowed";
    let business = |flight: Value| {
        let flights = json!([flight]);
        session()
            .reservation(&json!({"reservation_id": "R1", "cabin": "business", "flights": flights}))
    };
    let past = fail("part of the trip is in the past");
    let unnumbered = business(json!({"date": "2024-05-01"}));
    assert_eq!(unnumbered.verdict(rule, CANCEL, call()), past);
    for undated in [
        json!({"flight_number": "HAT1"}),
        json!({"date": 20_240_501}),
        json!("HAT1"),
    ] {
        assert_eq!(business(undated).verdict(rule, CANCEL, call()), Pass);
    }
}

const BASIC: &str = "basic economy flights stay as booked; only the cabin may change";

#[test]
fn basic_economy_flights_stay_in_any_order() {
    let rule = "airline.basic_economy_flights";
    let [a, b] = [leg("HAT1", "2024-05-20"), leg("HAT2", "2024-05-21")];
    let booked = |cabin: Value| {
        let flights = [&a, &b, &a];
        session().reservation(&json!({"reservation_id": "R1", "cabin": cabin, "flights": flights}))
    };
    let asks = |flights: Value| {
        booked(json!("basic_economy")).verdict(rule, FLIGHTS, call_with("flights", flights))
    };
    let bare = json!({"flight_number": "HAT2", "date": "2024-05-21"});
    assert_eq!(asks(json!([a, b, a])), Pass);
    assert_eq!(asks(json!([bare, a, a])), Pass);
    assert_eq!(asks(json!([a, b])), fail(BASIC));
    assert_eq!(asks(json!([a, b, b])), fail(BASIC));
    assert_eq!(asks(json!([a, b, a, a])), fail(BASIC));
    assert_eq!(asks(json!([a, a, leg("HAT2", "2024-05-22")])), fail(BASIC));
    assert_eq!(asks(json!([a, a, leg("HAT3", "2024-05-21")])), fail(BASIC));
    assert_eq!(asks(json!([a, a, {"flight_number": "HAT2"}])), fail(BASIC));
    assert_eq!(asks(json!([])), fail(BASIC));
    assert_eq!(asks(json!("HAT1")), fail(BASIC));
    assert_eq!(
        booked(json!("basic_economy")).verdict(rule, FLIGHTS, call()),
        fail(BASIC)
    );

    for other in [
        json!("economy"),
        json!("business"),
        json!("basic economy"),
        json!(null),
    ] {
        let other = booked(other);
        assert_eq!(
            other.verdict(rule, FLIGHTS, call_with("flights", json!([]))),
            Pass
        );
    }
    let not_read = unknown("reservation R1 has not been read");
    assert_eq!(session().verdict(rule, FLIGHTS, call()), not_read);
}

#[test]
fn basic_economy_flights_compare_what_is_no_text_too() {
    let rule = "airline.basic_economy_flights";
    let booked = |flights: Value| {
        session().reservation(
            &json!({"reservation_id": "R1", "cabin": "basic_economy", "flights": flights}),
        )
    };
    let numbered = booked(json!([{"flight_number": 1, "date": 20_240_520}]));
    let asks =
        |flight: Value| numbered.verdict(rule, FLIGHTS, call_with("flights", json!([flight])));
    assert_eq!(asks(json!({"flight_number": 1, "date": 20_240_520})), Pass);
    assert_eq!(
        asks(json!({"flight_number": 2, "date": 20_240_520})),
        fail(BASIC)
    );
    assert_eq!(
        asks(json!({"flight_number": 1, "date": 20_240_521})),
        fail(BASIC)
    );

    let texts = booked(json!(["HAT1"]));
    let same = call_with("flights", json!(["HAT1"]));
    assert_eq!(texts.verdict(rule, FLIGHTS, same), Pass);
    let other = call_with("flights", json!(["HAT2"]));
    assert_eq!(texts.verdict(rule, FLIGHTS, other), fail(BASIC));
}

#[test]
fn the_flights_may_change_once_the_cabin_was_upgraded() {
    let rule = "airline.basic_economy_flights";
    let booked = r1("cabin", json!("basic_economy"));
    let upgraded = json!({"reservation_id": "R1", "cabin": "economy"});
    let upgraded = booked.record(FLIGHTS, json!({}), &upgraded);
    let other = call_with("flights", json!([leg("HAT9", "2024-05-20")]));
    assert_eq!(upgraded.verdict(rule, FLIGHTS, other), Pass);
}

#[test]
fn not_flown_keeps_the_cabin_of_a_trip_that_began() {
    let rule = "airline.not_flown";
    let trip = |date: &str| {
        session().reservation(&json!({
            "reservation_id": "R1",
            "cabin": "economy",
            "flights": [leg("HAT1", date)],
        }))
    };
    let stays = fail("part of the trip is in the past, so the cabin stays");
    let business = || call_with("cabin", json!("business"));
    assert_eq!(trip("2024-05-14").verdict(rule, FLIGHTS, business()), stays);
    assert_eq!(trip("2024-05-15").verdict(rule, FLIGHTS, business()), Pass);
    let same = call_with("cabin", json!("economy"));
    assert_eq!(trip("2024-05-14").verdict(rule, FLIGHTS, same), Pass);
    assert_eq!(trip("2024-05-14").verdict(rule, FLIGHTS, call()), Pass);
    let odd = call_with("cabin", json!(["business"]));
    assert_eq!(trip("2024-05-14").verdict(rule, FLIGHTS, odd), Pass);
    let landed = trip("2024-05-15").flight("HAT1", "2024-05-15", "landed");
    assert_eq!(landed.verdict(rule, FLIGHTS, business()), stays);
    let not_read = unknown("reservation R1 has not been read");
    assert_eq!(session().verdict(rule, FLIGHTS, business()), not_read);

    let no_cabin = json!({"reservation_id": "R1", "flights": [leg("HAT1", "2024-05-14")]});
    let no_cabin = session().reservation(&no_cabin);
    assert_eq!(no_cabin.verdict(rule, FLIGHTS, business()), stays);
}

#[test]
fn keep_bags_lets_their_number_grow() {
    let verdict = |before: Value, after: Value| {
        let session = r1("total_baggages", before);
        session.verdict(
            "airline.keep_bags",
            BAGS,
            call_with("total_baggages", after),
        )
    };
    assert_eq!(verdict(json!(2), json!(2)), Pass);
    assert_eq!(verdict(json!(2), json!(3)), Pass);
    let reason = "bags can be added, not taken away (2 to 1)";
    assert_eq!(verdict(json!(2), json!(1)), fail(reason));
    let reason = "bags can be added, not taken away (0 to -1)";
    assert_eq!(verdict(json!(0), json!(-1)), fail(reason));
    assert_eq!(verdict(json!(-1), json!(u64::MAX)), Pass);
    let reason = "bags can be added, not taken away (18446744073709551615 to 5)";
    assert_eq!(verdict(json!(u64::MAX), json!(5)), fail(reason));
}

#[test]
fn keep_bags_is_unknown_without_two_integers() {
    let rule = "airline.keep_bags";
    let no_before = unknown("reservation R1 shows no number of bags");
    let no_after = unknown("the call names no number of bags");
    let bags = |value: Value| call_with("total_baggages", value);
    assert_eq!(
        r1("cabin", json!("economy")).verdict(rule, BAGS, bags(json!(1))),
        no_before
    );
    for odd in [json!(2.0), json!("2"), json!(null)] {
        assert_eq!(
            r1("total_baggages", odd.clone()).verdict(rule, BAGS, bags(json!(1))),
            no_before
        );
        assert_eq!(
            r1("total_baggages", json!(3)).verdict(rule, BAGS, bags(odd)),
            no_after
        );
    }
    assert_eq!(
        r1("total_baggages", json!(3)).verdict(rule, BAGS, call()),
        no_after
    );
    let not_read = unknown("reservation R1 has not been read");
    assert_eq!(session().verdict(rule, BAGS, bags(json!(1))), not_read);
}

#[test]
fn same_passenger_count_compares_two_lists() {
    let rule = "airline.same_passenger_count";
    let list = |length: usize| json!(vec![json!({}); length]);
    let verdict = |before: Value, after: Value| {
        r1("passengers", before).verdict(rule, PASSENGERS, call_with("passengers", after))
    };
    assert_eq!(verdict(list(2), list(2)), Pass);
    assert_eq!(verdict(list(0), list(0)), Pass);
    assert_eq!(
        verdict(list(2), list(1)),
        fail("the number of passengers stays (2, not 1)")
    );
    assert_eq!(
        verdict(list(2), list(3)),
        fail("the number of passengers stays (2, not 3)")
    );

    let no_before = unknown("reservation R1 shows no list of passengers");
    assert_eq!(verdict(json!(2), list(2)), no_before);
    let no_after = unknown("the call holds no list of passengers");
    assert_eq!(verdict(list(2), json!({"0": {}, "1": {}})), no_after);
    assert_eq!(
        r1("passengers", list(2)).verdict(rule, PASSENGERS, call()),
        no_after
    );
    let not_read = unknown("reservation R1 has not been read");
    let arguments = call_with("passengers", list(2));
    assert_eq!(session().verdict(rule, PASSENGERS, arguments), not_read);
}

fn methods(ids: &[&str]) -> Value {
    json!(
        ids.iter()
            .map(|id| json!({"payment_id": id, "amount": 1}))
            .collect::<Vec<_>>()
    )
}

#[test]
fn booking_limits_take_five_passengers() {
    let verdict = |passengers: Value| {
        let arguments = json!({"passengers": passengers});
        session().verdict("airline.booking_limits", BOOK, arguments)
    };
    let list = |length: usize| json!(vec![json!({}); length]);
    assert_eq!(verdict(list(5)), Pass);
    assert_eq!(verdict(list(6)), fail("6 passengers, and five is the most"));
    assert_eq!(verdict(json!(null)), Pass);
    assert_eq!(verdict(json!(6)), Pass);
    assert_eq!(
        session().verdict("airline.booking_limits", BOOK, json!(null)),
        Pass
    );
}

#[test]
fn booking_limits_count_each_kind_of_payment() {
    let verdict = |ids: &[&str]| {
        let arguments = json!({"payment_methods": methods(ids)});
        session().verdict("airline.booking_limits", BOOK, arguments)
    };
    let [one_certificate, one_card, three_gift_cards] = [
        "more than 1 certificate",
        "more than 1 credit card",
        "more than 3 gift cards",
    ];
    let most = [
        "certificate_1",
        "credit_card_1",
        "gift_card_1",
        "gift_card_2",
        "gift_card_3",
    ];
    assert_eq!(verdict(&most), Pass);
    assert_eq!(
        verdict(&["certificate_1", "certificate_1"]),
        fail(one_certificate)
    );
    assert_eq!(verdict(&["credit_card_1", "credit_card_2"]), fail(one_card));
    assert_eq!(verdict(&["gift_card_1"; 4]), fail(three_gift_cards));
    // The first kind that is over is named.
    assert_eq!(
        verdict(&[
            "gift_card_1",
            "gift_card_1",
            "gift_card_1",
            "gift_card_1",
            "credit_card_1",
            "credit_card_1",
            "certificate_1",
            "certificate_1"
        ]),
        fail(one_certificate)
    );
    assert_eq!(
        verdict(&[
            "gift_card_1",
            "gift_card_1",
            "gift_card_1",
            "gift_card_1",
            "credit_card_1",
            "credit_card_1"
        ]),
        fail(one_card)
    );
    assert_eq!(
        verdict(&["paypal_1", "paypal_2", "a_certificate", "the_certificate"]),
        Pass
    );
    let odd = json!({"payment_methods": ["certificate_1", "certificate_2", {"payment_id": 3}]});
    assert_eq!(session().verdict("airline.booking_limits", BOOK, odd), Pass);
}

#[test]
fn booking_limits_look_at_passengers_first() {
    let arguments = json!({
        "passengers": [1, 2, 3, 4, 5, 6],
        "payment_methods": methods(&["certificate_1", "certificate_2"]),
    });
    let verdict = session().verdict("airline.booking_limits", BOOK, arguments);
    assert_eq!(verdict, fail("6 passengers, and five is the most"));
}

#[test]
fn own_payment_looks_into_every_profile_that_was_read() {
    let rule = "airline.own_payment";
    let session = session()
        .profile(&json!({"user_id": "ann_1", "payment_methods": {"card_1": {}, "card_2": {}}}))
        .profile(&json!({"user_id": "bob_2", "payment_methods": {"card_9": {}}}));
    for tool in [BOOK, BAGS, FLIGHTS] {
        let verdict = |arguments: Value| session.verdict(rule, tool, arguments);
        assert_eq!(verdict(json!({"payment_id": "card_1"})), Pass);
        assert_eq!(verdict(json!({"payment_id": "card_9"})), Pass);
        assert_eq!(
            verdict(json!({"payment_methods": methods(&["card_1", "card_9"])})),
            Pass
        );
        let no_3 = fail("card_3 is not in the user's profile");
        assert_eq!(verdict(json!({"payment_id": "card_3"})), no_3);
        let mixed = json!({"payment_methods": methods(&["card_1", "card_3", "card_4"])});
        assert_eq!(verdict(mixed), no_3);
        let both = json!({"payment_methods": methods(&["card_3"]), "payment_id": "card_4"});
        assert_eq!(verdict(both), no_3);
        let both = json!({"payment_methods": methods(&["card_1"]), "payment_id": "card_3"});
        assert_eq!(verdict(both), no_3);
    }
}

#[test]
fn own_payment_is_unknown_without_a_method_or_a_profile() {
    let rule = "airline.own_payment";
    let no_method = unknown("the call names no payment method");
    let ann = session().profile(&json!({"user_id": "ann_1"}));
    for nothing in [
        json!({}),
        json!({"payment_id": 1, "payment_methods": [{}]}),
        json!(null),
    ] {
        assert_eq!(ann.verdict(rule, BAGS, nothing), no_method);
    }
    let no_profile = unknown("no profile has been read");
    let arguments = json!({"payment_id": "card_1"});
    assert_eq!(session().verdict(rule, BAGS, arguments.clone()), no_profile);
    let not_hers = fail("card_1 is not in the user's profile");
    assert_eq!(ann.verdict(rule, BAGS, arguments), not_hers);
}

#[test]
fn compensation_goes_by_membership_or_a_covered_reservation() {
    let rule = "airline.compensation";
    let arguments = || json!({"user_id": "ann_1", "amount": 100});
    let member = |membership: &str| {
        session().profile(&json!({"user_id": "ann_1", "membership": membership}))
    };
    assert_eq!(
        member("silver").verdict(rule, CERTIFICATE, arguments()),
        Pass
    );
    assert_eq!(member("gold").verdict(rule, CERTIFICATE, arguments()), Pass);
    let not_seen = unknown("no reservation of ann_1 has been read");
    for other in ["regular", "Gold", "platinum", ""] {
        assert_eq!(
            member(other).verdict(rule, CERTIFICATE, arguments()),
            not_seen,
            "{other}"
        );
    }

    let with = |name: &str, value: &str| {
        let mut reservation = json!({"reservation_id": "R1", "user_id": "ann_1"});
        reservation[name] = json!(value);
        member("regular").reservation(&reservation)
    };
    assert_eq!(
        with("insurance", "yes").verdict(rule, CERTIFICATE, arguments()),
        Pass
    );
    assert_eq!(
        with("cabin", "business").verdict(rule, CERTIFICATE, arguments()),
        Pass
    );
    let none = fail("a regular member without insurance or business class gets none");
    assert_eq!(
        with("insurance", "no").verdict(rule, CERTIFICATE, arguments()),
        none
    );
    assert_eq!(
        with("cabin", "economy").verdict(rule, CERTIFICATE, arguments()),
        none
    );
}

#[test]
fn compensation_looks_at_all_reservations_of_that_user_as_last_read() {
    let rule = "airline.compensation";
    let arguments = || json!({"user_id": "ann_1"});
    let booking = |id: &str, user: &str, cabin: &str| json!({"reservation_id": id, "user_id": user, "cabin": cabin});
    let ann = session().profile(&json!({"user_id": "ann_1", "membership": "regular"}));
    let not_seen = unknown("no reservation of ann_1 has been read");
    let none = fail("a regular member without insurance or business class gets none");

    let bobs = ann.clone().reservation(&booking("R1", "bob_2", "business"));
    assert_eq!(bobs.verdict(rule, CERTIFICATE, arguments()), not_seen);
    let mixed = ann
        .clone()
        .reservation(&booking("R1", "ann_1", "economy"))
        .reservation(&booking("R2", "ann_1", "business"))
        .reservation(&booking("R3", "ann_1", "economy"));
    assert_eq!(mixed.verdict(rule, CERTIFICATE, arguments()), Pass);
    let downgraded = mixed.reservation(&booking("R2", "ann_1", "economy"));
    assert_eq!(downgraded.verdict(rule, CERTIFICATE, arguments()), none);

    let reread = ann
        .reservation(&booking("R1", "ann_1", "business"))
        .reservation(&booking("R1", "ann_1", "business"))
        .reservation(&booking("R1", "bob_2", "business"));
    assert_eq!(reread.verdict(rule, CERTIFICATE, arguments()), not_seen);
}

#[test]
fn compensation_is_unknown_without_the_users_profile() {
    let rule = "airline.compensation";
    let bob = session()
        .profile(&json!({"user_id": "bob_2", "membership": "gold"}))
        .reservation(&json!({"reservation_id": "R1", "user_id": "ann_1", "insurance": "yes"}));
    let not_read = unknown("the profile of ann_1 has not been read");
    assert_eq!(
        bob.verdict(rule, CERTIFICATE, json!({"user_id": "ann_1"})),
        not_read
    );
    let unnamed = unknown("the call names no user");
    assert_eq!(
        bob.verdict(rule, CERTIFICATE, json!({"amount": 100})),
        unnamed
    );
    assert_eq!(bob.verdict(rule, CERTIFICATE, json!(null)), unnamed);
}

#[test]
fn confirmed_reads_the_customers_last_message_alone() {
    let rule = "airline.confirmed";
    for tool in [BOOK, CANCEL, BAGS, FLIGHTS, PASSENGERS] {
        let verdict = session().verdict(rule, tool, call());
        assert_eq!(verdict, fail("the customer has said nothing yet"));
        assert_eq!(session().user("Yes").verdict(rule, tool, call()), Pass);
        let verdict = session()
            .user("Yes")
            .user("Wait")
            .verdict(rule, tool, call());
        assert_eq!(verdict, fail("the last message holds no confirming word"));
    }
}
