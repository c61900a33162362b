//! Nobody can be told from redacted sessions of an agent, and what they teach stays.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something unexpected happens"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use regex::Regex;
use serde_json::Value;
use stretto_trace::Event;
use stretto_trace::mcp::{episode, read_logs, session_logs};

/// What is personal in the sessions' records.
const PERSONAL: [&str; 14] = [
    "email",
    "name",
    "first_name",
    "last_name",
    "address1",
    "address2",
    "zip",
    "dob",
    "user_id",
    "reservation_id",
    "reservations",
    "payment_id",
    "id",
    "last_four",
];

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/airline-gpt4o")
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Runs the program, and returns its code and stdout.
fn stretto(words: &[&str]) -> (i32, String) {
    let output = Command::cargo_bin("stretto")
        .unwrap()
        .args(words)
        .env("STRETTO_REDACT_SALT", "pepper")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    (output.status.code().unwrap(), said)
}

/// Every personal value of the sessions' calls and results, in lower case: what personal members
/// hold, the names of payment methods, and people's full names.
fn personal_values() -> BTreeSet<String> {
    fn walk(value: &Value, name: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                if let (Some(Value::String(first)), Some(Value::String(last))) =
                    (members.get("first_name"), members.get("last_name"))
                {
                    found.insert(format!("{first} {last}").to_lowercase());
                }
                for (member, value) in members {
                    if name == "payment_methods" {
                        found.insert(member.to_lowercase());
                    }
                    walk(value, member, found);
                }
            }
            Value::Array(items) => {
                for item in items {
                    // Booking takes a list of payments, whose members are no names of methods.
                    let name = if item.is_object() { "" } else { name };
                    walk(item, name, found);
                }
            }
            Value::String(text) if PERSONAL.contains(&name) => {
                found.insert(text.to_lowercase());
            }
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    for log in read_logs(&recorded()).unwrap() {
        for event in &episode(&log).events {
            match event {
                Event::Assistant { calls, .. } => {
                    for call in calls {
                        walk(&call.arguments, "", &mut found);
                    }
                }
                Event::ToolResult { content, .. } => {
                    let result: Value = serde_json::from_str(content).unwrap_or_default();
                    walk(&result, "", &mut found);
                }
                Event::User { .. } => {}
            }
        }
    }
    found
}

fn learned(sessions: &Path, flow: &Path) {
    let outcomes = recorded().join("index.tsv");
    let learn = ["learn", "--habit-only", "--domain", "airline"];
    let files = [
        "--sessions",
        text(sessions),
        "--outcomes",
        text(&outcomes),
        "--out",
        text(flow),
    ];
    assert_eq!(stretto(&[&learn[..], &files].concat()).0, 0);
}

#[test]
fn no_personal_value_is_left_in_any_line() {
    let values = personal_values();
    assert!(
        values.len() > 500,
        "they hold {} personal values",
        values.len()
    );

    let folder = tempfile::tempdir().unwrap();
    let copies = folder.path().join("copies");
    let (code, said) = stretto(&[
        "redact",
        "--sessions",
        text(&recorded()),
        "--out",
        text(&copies),
        "--hash-field",
        &PERSONAL.join(","),
    ]);
    assert_eq!(code, 0, "{said}");

    // A hash may hold the digits of a card.
    let hash = Regex::new("h_[0-9a-f]{12}").unwrap();
    // A name may begin a city's.
    let bounded = |line: &str, at: usize, length: usize| {
        let is_part = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
        let (before, rest) = line.split_at(at);
        !is_part(before.chars().next_back()) && !is_part(rest.split_at(length).1.chars().next())
    };
    let paths = session_logs(&copies).unwrap();
    assert_eq!(paths.len(), 120);
    for path in paths {
        let copy = fs::read_to_string(&path).unwrap();
        for line in copy.lines().skip(1) {
            let line = hash.replace_all(line, "<>").to_lowercase();
            for value in &values {
                let found = line
                    .match_indices(value.as_str())
                    .find(|(at, _)| bounded(&line, *at, value.len()));
                assert_eq!(found, None, "{}: {line}", path.display());
            }
        }
    }
}

#[test]
fn what_the_copies_teach_is_what_the_originals_do() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    learned(&recorded(), &at("original.json"));
    let copy = |name: &str, more: &[&str]| {
        let (sessions, flow) = (at(name), at(&format!("{name}.json")));
        let originals = recorded();
        let redact = [
            "redact",
            "--sessions",
            text(&originals),
            "--out",
            text(&sessions),
        ];
        assert_eq!(stretto(&[&redact[..], more].concat()).0, 0);
        learned(&sessions, &flow);
        stretto(&[
            "flow-diff",
            "--tolerance",
            "0.01",
            text(&at("original.json")),
            text(&flow),
        ])
    };
    assert_eq!(
        copy("plain", &[]),
        (0, "The flows are the same.\n".to_owned())
    );

    // Names are no keys of records, having no digits; their hashes are, so a customer who says
    // one counts as having described a record.
    let (code, said) = copy("forced", &["--hash-field", &PERSONAL.join(",")]);
    assert_eq!(code, 0, "{said}");
    assert!(said.starts_with("# Needs review: 0\n"), "{said}");
    let listed: Vec<&str> = said.lines().filter(|line| line.starts_with("- ")).collect();
    assert_eq!(listed.len(), 1, "{said}");
    assert!(
        listed[0].starts_with("- `get_reservation_details`'s arguments, described and read: "),
        "{said}"
    );
}
