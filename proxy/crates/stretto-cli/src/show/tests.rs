//! Sessions nobody would record.

use proptest::prelude::*;
use serde_json::{Value, json};
use stretto_trace::mcp::{Body, Entry, Header, Log, Who};

use super::story::Story;
use super::timeline::Extent;
use super::{summary, timeline};

/// Names, ids and texts, of which some steer terminals, and few enough to meet again.
fn word() -> impl Strategy<Value = Value> {
    prop_oneof![
        prop::sample::select(vec![
            json!(1),
            json!(2),
            json!("1"),
            json!(null),
            json!([]),
            json!({"a": "b"})
        ]),
        prop::sample::select(vec![
            "a",
            "\u{1b}[2J",
            "x\n\ty\r\n",
            "漢字 漢字",
            "\u{202e}\u{9b}",
            "{\"a\":",
            ""
        ])
        .prop_map(Value::from),
        ".{0,200}".prop_map(Value::from),
    ]
}

fn message() -> impl Strategy<Value = Value> {
    let method = prop::sample::select(vec![
        "tools/call",
        "tools/list",
        "initialize",
        "notifications/cancelled",
        "notifications/message",
        "server/discover",
        "resources/read",
        "\u{1b}odd",
    ]);
    let request = (word(), method, word(), word()).prop_map(|(id, method, name, value)| {
        json!({"id": id, "method": method, "params": {"name": name, "arguments": value, "requestId": id,
            "requestState": "s", "data": value, "level": name, "uri": name, "reason": value}})
    });
    let response = (word(), word(), any::<bool>(), 0..4).prop_map(|(id, text, error, kind)| match kind {
        0 => json!({"id": id, "error": {"message": text}}),
        1 => json!({"id": id, "result": {"resultType": "input_required", "inputRequests": {"k": {"method": text}}}}),
        2 => json!({"id": id, "result": text}),
        _ => json!({"id": id, "result": {"content": [{"type": "text", "text": text}], "isError": error}}),
    });
    let said = (word(), word()).prop_map(|(role, text)| json!({"role": role, "content": text}));
    prop_oneof![4 => request, 4 => response, 1 => said, 1 => word()]
}

fn entry() -> impl Strategy<Value = Entry> {
    let from = prop::sample::select(vec![Who::Client, Who::Server, Who::Proxy, Who::Context]);
    let body = prop_oneof![
        6 => message().prop_map(Body::Message),
        1 => prop::collection::vec(message(), 0..4).prop_map(|batch| Body::Message(batch.into())),
        1 => ".{0,40}".prop_map(Body::Raw),
    ];
    let t_ms = prop_oneof![9 => 0_u64..5_000_000, 1 => any::<u64>()];
    (t_ms, from, body).prop_map(|(t_ms, from, body)| Entry { t_ms, from, body })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_session_can_be_shown_and_steers_no_terminal(
        entries in prop::collection::vec(entry(), 0..60),
        session in ".{0,30}",
        columns in 1_usize..200,
        full in any::<bool>(),
    ) {
        let header = Header::new(session.clone(), u64::MAX, vec![session.clone()]).with_domain(Some(session));
        let log = Log { header, entries, is_cut_off: true };
        let story = Story::of(&log);
        let mut out = Vec::new();
        summary::write(&mut out, columns, &log, &story).unwrap();
        timeline::write(&mut out, columns, &story, Extent { full, turns: None }).unwrap();
        timeline::write(&mut out, columns, &story, Extent { full, turns: Some((1, 2)) }).unwrap();
        // Only our own colours begin with an escape.
        let shown = String::from_utf8(out).unwrap();
        let mut parts = shown.split('\u{1b}');
        let mut plain = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (colour, rest) = part.strip_prefix('[').and_then(|part| part.split_once('m')).unwrap();
            prop_assert!(colour.chars().all(|c| c.is_ascii_digit() || c == ';'), "{colour:?}");
            plain.push_str(rest);
        }
        prop_assert!(!plain.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{plain:?}");
    }
}
