//! What a result waits for while a flow looks things up.

use std::{fs, process::Command, time::Duration};

use serde_json::{Value, json};

use crate::session::{DEMO, PROXY, Session, median};

/// Whose first call brings three lookups, one customer after the other.
const CUSTOMERS: usize = 60;

/// A flow by which finding a customer brings their record and both of their orders.
const FLOW: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../scenarios/flows/shop.flow.json"
);

/// Prints what a call takes with its lookups, beside the same call and the lookups by themselves.
pub(crate) fn measure() {
    println!(
        "\n| a call that brings three lookups | the call alone, and the lookups straight at the server, µs | the call with its lookups, µs | ratio | wanted |"
    );
    println!("|---|--:|--:|--:|--:|");
    for (name, takes, wanted) in [
        ("a server that takes 20 ms for each", 20, "≤ 1.05"),
        ("one that takes 5 ms", 5, "≤ 1.05"),
        ("one that answers at once", 0, "none"),
    ] {
        let (alone, together) = compare(takes);
        println!(
            "| {name} | {alone:.0} | {together:.0} | {:.3} | {wanted} |",
            together / alone
        );
    }
}

/// Both medians, with a server that takes so many milliseconds for a call.
fn compare(takes: u64) -> (f64, f64) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let script = folder.path().join("shop.json");
    fs::write(&script, world(takes).to_string()).expect("the folder is there");
    let server = |command: &mut Command| {
        command.arg(DEMO).arg("--script").arg(&script);
    };
    let mut direct = Command::new(DEMO);
    let mut direct = Session::start(direct.arg("--script").arg(&script));
    let mut plain = through_proxy(&[], server);
    let flow = ["--flow", FLOW, "--flow-per-session", "1000000"];
    let mut serving = through_proxy(&flow, server);

    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for customer in 0..CUSTOMERS {
        let find = json!({"email": format!("c{customer}@example.com")});
        let lookups = [
            (
                "get_user_details",
                json!({"user_id": format!("user_{customer}")}),
            ),
            (
                "get_order_details",
                json!({"order_id": format!("#W{customer}a")}),
            ),
            (
                "get_order_details",
                json!({"order_id": format!("#W{customer}b")}),
            ),
        ];
        let own: Duration = lookups
            .iter()
            .map(|(tool, arguments)| direct.call(tool, arguments))
            .sum();
        alone.push(plain.call("find_user_id_by_email", &find) + own);
        together.push(serving.call("find_user_id_by_email", &find));
        for (tool, _) in &lookups {
            assert!(serving.answer().contains(tool), "{}", serving.answer());
        }
        let last = format!("#W{customer}b");
        assert!(
            serving.answer().matches(&last).count() > 1,
            "{}",
            serving.answer()
        );
    }
    for session in [direct, plain, serving] {
        session.end();
    }
    (median(&alone), median(&together))
}

fn through_proxy(options: &[&str], server: impl Fn(&mut Command)) -> Session {
    let mut command = Command::new(PROXY);
    command.args(options).arg("--");
    server(&mut command);
    Session::start(&mut command)
}

/// A shop of many customers, each with two orders. Every call takes `takes` milliseconds.
fn world(takes: u64) -> Value {
    let read = |name: &str, argument: &str| {
        json!({
            "name": name,
            "annotations": {"readOnlyHint": true},
            "inputSchema": {
                "type": "object",
                "properties": {argument: {"type": "string"}},
                "required": [argument],
            },
        })
    };
    json!({
        "script": 1,
        "concurrent": false,
        "tools": [
            read("find_user_id_by_email", "email"),
            read("get_user_details", "user_id"),
            read("get_order_details", "order_id"),
        ],
        "answers": [
            {
                "tool": "find_user_id_by_email",
                "args": {"email": "re:^c([0-9]+)@"},
                "text": "user_{1}",
                "delay_ms": takes,
            },
            {
                "tool": "get_user_details",
                "args": {"user_id": "re:^user_([0-9]+)$"},
                "json": {"user_id": "user_{1}", "orders": ["#W{1}a", "#W{1}b"]},
                "delay_ms": takes,
            },
            {
                "tool": "get_order_details",
                "args": {"order_id": "re:^#W"},
                "json": {"order_id": "{args.order_id}", "status": "pending"},
                "delay_ms": takes,
            },
        ],
    })
}
