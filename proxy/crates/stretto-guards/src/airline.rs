//! The rules of τ²-bench's airline policy: what may be booked, changed, cancelled and
//! compensated. The airline's tools check few of them themselves, least of all which
//! reservations may be cancelled.

use stretto_trace::ToolCall;

use crate::Facts;
use crate::clock::{self, TODAY};
use crate::confirmed;
use crate::facts::records::{Leg, Reservation, legs};
use crate::json::{integer, length, list, text};
use crate::rule::{Objection, Rule, Ruling, require};

const BOOK: &str = "book_reservation";
const CANCEL: &str = "cancel_reservation";
const BAGS: &str = "update_reservation_baggages";
const FLIGHTS: &str = "update_reservation_flights";
const PASSENGERS: &str = "update_reservation_passengers";
const CERTIFICATE: &str = "send_certificate";

const RESERVATION_WRITES: &[&str] = &[CANCEL, BAGS, FLIGHTS, PASSENGERS];
const WRITES: &[&str] = &[CANCEL, BAGS, FLIGHTS, PASSENGERS, BOOK];

/// How many passengers a reservation may have.
const MAX_PASSENGERS: usize = 5;

/// How many payment methods of a kind a booking may use: how their ids start, how many, and
/// what they are called.
const MAX_METHODS: [(&str, usize, &str); 3] = [
    ("certificate", 1, "certificate"),
    ("credit_card", 1, "credit card"),
    ("gift_card", 3, "gift cards"),
];

/// The rules, in the order in which a refusal names them.
pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "airline.own_reservation",
        policy: "change only reservations of a user whose profile was read",
        enforced: true,
        tools: RESERVATION_WRITES,
        check: own_reservation,
    },
    Rule {
        id: "airline.cancel_allowed",
        policy: "cancel an unflown trip within a day of booking, in business class, when insured, \
                 or when the airline cancelled a flight",
        enforced: true,
        tools: &[CANCEL],
        check: cancel_allowed,
    },
    Rule {
        id: "airline.basic_economy_flights",
        policy: "keep the flights of a basic economy reservation",
        enforced: true,
        tools: &[FLIGHTS],
        check: basic_economy_flights,
    },
    Rule {
        id: "airline.not_flown",
        policy: "keep the cabin once part of the trip is flown",
        enforced: true,
        tools: &[FLIGHTS],
        check: not_flown,
    },
    Rule {
        id: "airline.keep_bags",
        policy: "add bags, take none away",
        enforced: true,
        tools: &[BAGS],
        check: keep_bags,
    },
    Rule {
        id: "airline.same_passenger_count",
        policy: "keep the number of passengers",
        enforced: true,
        tools: &[PASSENGERS],
        check: same_passenger_count,
    },
    Rule {
        id: "airline.booking_limits",
        policy: "book for at most five, with one certificate, one credit card and three gift cards",
        enforced: true,
        tools: &[BOOK],
        check: booking_limits,
    },
    Rule {
        id: "airline.own_payment",
        policy: "use only payment methods of the user's profile",
        enforced: true,
        tools: &[BOOK, BAGS, FLIGHTS],
        check: own_payment,
    },
    Rule {
        id: "airline.compensation",
        policy: "compensate silver and gold members, insured and business travellers only",
        enforced: true,
        tools: &[CERTIFICATE],
        check: compensation,
    },
    Rule {
        id: "airline.confirmed",
        policy: "get the customer's explicit yes to each change",
        enforced: false,
        tools: WRITES,
        check: confirmed,
    },
];

/// No tool of the airline's identifies anybody. Whose profile the agent has read, for an id that
/// the customer gave, counts as identified.
fn own_reservation(facts: &Facts, call: &ToolCall) -> Ruling {
    let (id, reservation) = the_reservation(facts, call)?;
    let Some(owner) = &reservation.owner else {
        return Err(Objection::unknown(format!(
            "reservation {id} names no owner"
        )));
    };
    some_profile_was_read(facts)?;
    let owner_was_read = facts.user(owner).is_some();
    require(owner_was_read, || {
        format!("reservation {id} belongs to another user")
    })
}

fn cancel_allowed(facts: &Facts, call: &ToolCall) -> Ruling {
    let (_, reservation) = the_reservation(facts, call)?;
    require(!is_flown(facts, reservation), || {
        "part of the trip is in the past".to_owned()
    })?;
    let is_recent = reservation
        .created_at
        .as_deref()
        .is_some_and(clock::is_within_a_day);
    let mut statuses = reservation.legs.iter().map(|leg| status(facts, leg));
    let allowed = is_recent
        || reservation.is_business()
        || reservation.is_insured()
        || statuses.any(|status| status == Some("cancelled"));
    // A status that was not read counts as not cancelled, so the reason says how to read it.
    require(allowed, || {
        "the booking is older than a day, not business, not insured, and no flight is known to be \
         cancelled by the airline (get_flight_status tells)"
            .to_owned()
    })
}

fn basic_economy_flights(facts: &Facts, call: &ToolCall) -> Ruling {
    let (_, reservation) = the_reservation(facts, call)?;
    if reservation.cabin.as_deref() != Some("basic_economy") {
        return Ok(());
    }
    require(are_same(&reservation.legs, legs(&call.arguments)), || {
        "basic economy flights stay as booked; only the cabin may change".to_owned()
    })
}

fn not_flown(facts: &Facts, call: &ToolCall) -> Ruling {
    let (_, reservation) = the_reservation(facts, call)?;
    let Some(cabin) = text(&call.arguments, "cabin") else {
        return Ok(());
    };
    let stays = reservation.cabin.as_deref() == Some(cabin);
    require(stays || !is_flown(facts, reservation), || {
        "part of the trip is in the past, so the cabin stays".to_owned()
    })
}

fn keep_bags(facts: &Facts, call: &ToolCall) -> Ruling {
    let (id, reservation) = the_reservation(facts, call)?;
    let Some(before) = reservation.bags else {
        return Err(Objection::unknown(format!(
            "reservation {id} shows no number of bags"
        )));
    };
    let Some(after) = integer(&call.arguments, "total_baggages") else {
        return Err(Objection::unknown("the call names no number of bags"));
    };
    require(after >= before, || {
        format!("bags can be added, not taken away ({before} to {after})")
    })
}

fn same_passenger_count(facts: &Facts, call: &ToolCall) -> Ruling {
    let (id, reservation) = the_reservation(facts, call)?;
    let Some(before) = reservation.passengers else {
        return Err(Objection::unknown(format!(
            "reservation {id} shows no list of passengers"
        )));
    };
    let Some(after) = length(&call.arguments, "passengers") else {
        return Err(Objection::unknown("the call holds no list of passengers"));
    };
    require(after == before, || {
        format!("the number of passengers stays ({before}, not {after})")
    })
}

fn booking_limits(_: &Facts, call: &ToolCall) -> Ruling {
    let passengers = list(&call.arguments, "passengers").len();
    require(passengers <= MAX_PASSENGERS, || {
        format!("{passengers} passengers, and five is the most")
    })?;
    let methods = booking_methods(call);
    for (start, max, kind) in MAX_METHODS {
        let used = methods
            .iter()
            .filter(|method| method.starts_with(start))
            .count();
        require(used <= max, || format!("more than {max} {kind}"))?;
    }
    Ok(())
}

fn own_payment(facts: &Facts, call: &ToolCall) -> Ruling {
    let mut methods = booking_methods(call);
    methods.extend(text(&call.arguments, "payment_id"));
    if methods.is_empty() {
        return Err(Objection::unknown("the call names no payment method"));
    }
    some_profile_was_read(facts)?;
    for method in methods {
        require(facts.every_wallet().holds(method), || {
            format!("{method} is not in the user's profile")
        })?;
    }
    Ok(())
}

fn compensation(facts: &Facts, call: &ToolCall) -> Ruling {
    let Some(id) = text(&call.arguments, "user_id") else {
        return Err(Objection::unknown("the call names no user"));
    };
    let Some(user) = facts.user(id) else {
        return Err(Objection::unknown(format!(
            "the profile of {id} has not been read"
        )));
    };
    let bookings = facts.bookings(id);
    if matches!(user.membership.as_deref(), Some("silver" | "gold")) || bookings.covered > 0 {
        return Ok(());
    }
    if bookings.seen == 0 {
        return Err(Objection::unknown(format!(
            "no reservation of {id} has been read"
        )));
    }
    Err(Objection::fails(
        "a regular member without insurance or business class gets none",
    ))
}

/// The reservation that the call is about, with its id; unknown when the session has not shown
/// it.
fn the_reservation<'a>(
    facts: &'a Facts,
    call: &'a ToolCall,
) -> Result<(&'a str, &'a Reservation), Objection> {
    let Some(id) = text(&call.arguments, "reservation_id") else {
        return Err(Objection::unknown("the call names no reservation"));
    };
    let Some(reservation) = facts.reservation(id) else {
        return Err(Objection::unknown(format!(
            "reservation {id} has not been read"
        )));
    };
    Ok((id, reservation))
}

fn some_profile_was_read(facts: &Facts) -> Ruling {
    if facts.every_wallet().is_empty() {
        return Err(Objection::unknown("no profile has been read"));
    }
    Ok(())
}

/// The ids of the payment methods that a booking lists.
fn booking_methods(call: &ToolCall) -> Vec<&str> {
    let methods = list(&call.arguments, "payment_methods").iter();
    methods
        .filter_map(|method| text(method, "payment_id"))
        .collect()
}

/// The last read status of a flight, if it was read.
fn status<'a>(facts: &'a Facts, leg: &Leg) -> Option<&'a str> {
    facts.flight_status(leg.number()?, leg.date()?)
}

/// Whether part of a reservation was flown: by the last read status where that settles it, else
/// by date. A flight of today is not.
fn is_flown(facts: &Facts, reservation: &Reservation) -> bool {
    reservation.legs.iter().any(|leg| match status(facts, leg) {
        Some("cancelled") => false,
        Some("landed" | "flying") => true,
        _ => leg.date().is_some_and(|date| date < TODAY),
    })
}

/// Whether two lists hold the same flights, each as often, in any order.
fn are_same(booked: &[Leg], mut asked: Vec<Leg>) -> bool {
    if booked.len() != asked.len() {
        return false;
    }
    booked.iter().all(|leg| {
        let place = asked.iter().position(|other| other == leg);
        place.map(|place| asked.swap_remove(place)).is_some()
    })
}

#[cfg(test)]
mod tests;
