//! What a call costs at the beginning and at the end of a session of 20,000 calls with guards on,
//! with a flow that decides after each call, and with both, beside the same session without them.
//! The calls follow each other at once, so all of them are one turn of the agent's. A call may
//! cost at most twice as much at the end.
//!
//! `cargo bench -p stretto-proxy --bench long_session`

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measurement that cannot go on has failed, and its table is its result"
)]

#[expect(dead_code, reason = "here every call waits for its result")]
#[path = "active/session.rs"]
mod session;

use std::process::Command;

use serde_json::{Value, json};

use crate::session::{DEMO, PROXY, Session, median};

const CALLS: usize = 20_000;

/// How many calls the medians are taken of.
const PART: usize = 1_000;

/// Customers whose records are read again and again.
const CUSTOMERS: usize = 50;

const GUARDS: [&str; 3] = ["--domain", "retail", "--guards"];

/// It decides and looks nothing up, so that the calls are the same as without it.
const FLOW: [&str; 3] = [
    "--flow",
    concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../scenarios/flows/shop.flow.json"
    ),
    "--flow-shadow",
];

fn main() {
    let both = [GUARDS, FLOW].concat();
    let kinds = [
        ("no options", &[][..]),
        ("guards", &GUARDS),
        ("flow", &FLOW),
        ("guards and flow", &both),
    ];
    // They take turns, call by call, so that whatever else the machine does hits all alike.
    let mut sessions = kinds.map(|(_, options)| shop(options));
    let mut times = kinds.map(|_| Vec::with_capacity(CALLS));
    for at in 0..CALLS {
        let (tool, arguments) = call(at);
        for (session, times) in sessions.iter_mut().zip(&mut times) {
            times.push(session.call(tool, &arguments));
        }
    }
    for session in sessions {
        session.end();
    }

    println!("| session | first {PART} calls, µs | last {PART} calls, µs | ratio, wanted ≤ 2 |");
    println!("|---|--:|--:|--:|");
    for ((name, _), times) in kinds.iter().zip(&times) {
        let (first, last) = (median(&times[..PART]), median(&times[CALLS - PART..]));
        println!("| {name} | {first:.1} | {last:.1} | {:.2} |", last / first);
    }
}

fn shop(options: &[&str]) -> Session {
    let mut command = Command::new(PROXY);
    command
        .args(options)
        .arg("--")
        .arg(DEMO)
        .args(["--world", "retail"]);
    Session::start(&mut command)
}

/// Of four calls, three read a customer's records, and one is a write, which guards check against
/// all that the session has shown.
fn call(at: usize) -> (&'static str, Value) {
    let customer = at / 4 % CUSTOMERS;
    match at % 4 {
        0 => (
            "get_user_details",
            json!({"user_id": format!("user_{customer}")}),
        ),
        3 => (
            "cancel_pending_order",
            json!({"order_id": format!("#W{customer}a"), "reason": "no longer needed"}),
        ),
        nth => {
            let order = if nth == 1 { "a" } else { "b" };
            (
                "get_order_details",
                json!({"order_id": format!("#W{customer}{order}")}),
            )
        }
    }
}
