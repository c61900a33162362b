//! `stretto audit` and `stretto evaluate`, as a person runs them.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something unexpected happens"
)]

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::{Value, json};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../stretto-flow/tests/data")
        .join(name)
}

/// Runs the program, and returns its code, stdout and stderr.
fn stretto(words: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("stretto")
        .unwrap()
        .args(words)
        .output()
        .unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn an_audit_shows_each_site_and_writes_all_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("audit.json");
    let (code, shown, said) = stretto(&[
        "audit",
        "--flow",
        text(&data("flows/shop.flow.json")),
        "--sessions",
        text(&data("sessions/logs/shop")),
        "--json",
        text(&json),
    ]);
    assert_eq!((code, said.as_str()), (0, ""));
    assert!(
        shown.contains("| `get_order_details` | 12 | 12 (100%) |"),
        "{shown}"
    );
    let found: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(found["sessions"].as_array().unwrap().len(), 6);
    assert_eq!(found["total"]["decisions"], 24);
    assert_eq!(
        found["decider"], "habit",
        "though the flow is served by reach: only the habit says what comes next"
    );
}

/// The recorded shadow sessions, with policies as if their decisions had been logged with them:
/// there was one option each, which was always taken.
fn explored(folder: &Path) -> Vec<PathBuf> {
    let mut logs = Vec::new();
    for file in fs::read_dir(data("sessions/shadow/shop")).unwrap() {
        let path = file.unwrap().path();
        let to = folder.join(path.file_name().unwrap());
        if !text(&path).ends_with(".flow.jsonl") {
            fs::copy(&path, to).unwrap();
            continue;
        }
        let mut lines = String::new();
        for line in fs::read_to_string(&path).unwrap().lines() {
            let mut line: Value = serde_json::from_str(line).unwrap();
            if line["action"] == "lookup" {
                line["policy"] = json!({
                    "decider": "reach", "threshold": 0.3, "epsilon": 0.0, "explored": false,
                    "greedy": line["tool"], "propensity": 1.0, "task_id": "t", "events": 9,
                    "options": [{"tool": line["tool"], "p": line["prob"], "habit": 0.2,
                                 "binding": line["binding"], "arguments": line["arguments"]}],
                });
            }
            lines += &line.to_string();
            lines.push('\n');
        }
        fs::write(&to, lines).unwrap();
        logs.push(to);
    }
    logs.sort();
    logs
}

fn evaluated(folder: &Path, more: &[&str]) -> (i32, String, Value) {
    let logs = explored(folder);
    let json = folder.join("found.json");
    let mut words = vec!["evaluate", "--json", text(&json), "--flow-log"];
    words.extend(logs.iter().map(|log| text(log)));
    words.extend(more);
    let (code, shown, said) = stretto(&words);
    let found = fs::read_to_string(&json).unwrap_or_else(|_| "null".to_owned());
    (code, shown + &said, serde_json::from_str(&found).unwrap())
}

#[test]
fn labels_come_from_the_sessions_beside_the_flow_logs() {
    let folder = tempfile::tempdir().unwrap();
    let targets = [
        "--min-ess",
        "4",
        "--target",
        "low=arbiter@0.3",
        "--target",
        "high=arbiter@0.9",
    ];
    let (code, shown, found) = evaluated(folder.path(), &targets);
    assert_eq!(code, 0, "{shown}");
    // Three sessions of three lookups, each of which the agent made itself, in a turn of its own.
    assert_eq!(found["decisions"], 9);
    let low = &found["targets"][0]["total"];
    for way in [
        &low["direct"],
        &low["ips"]["sum"],
        &low["snips"]["sum"],
        &low["dr"]["sum"],
    ] {
        assert_eq!(
            way,
            &json!({"lookups": 9.0, "used": 9.0, "detours": 0.0, "turns": 9.0})
        );
    }
    assert_eq!(low["ess"], 9.0);
    // 0.9926 · 0.875 and 0.9486 · 0.9286 are below 0.9; 0.9959 · 0.9286 is not.
    let high = &found["targets"][1];
    assert_eq!(high["total"]["lookups"], 3);
    assert_eq!(
        high["sites"]
            .as_object()
            .unwrap()
            .keys()
            .collect::<Vec<_>>(),
        ["get_user_details"]
    );
    assert!(
        high["total"]["ips"].is_null(),
        "an effective sample of 3 is refused"
    );
    assert!(shown.contains("| | | | | IPS | – | – | – |"), "{shown}");
}

#[test]
fn what_cannot_be_evaluated_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said, _) = evaluated(folder.path(), &["--target", "reach@0.3"]);
    assert_eq!(code, 2, "{said}");

    let plain = data("sessions/shadow/shop/20260928T020401.240Z-14750.flow.jsonl");
    let (code, _, said) = stretto(&[
        "evaluate",
        "--flow-log",
        text(&plain),
        "--target",
        "habit@0.3",
    ]);
    assert_eq!(code, 1);
    assert!(said.contains("--flow-explore"), "{said}");

    let logs = explored(folder.path());
    let session = logs[0].with_extension("").with_extension("jsonl");
    fs::remove_file(&session).unwrap();
    let (code, _, said) = stretto(&[
        "evaluate",
        "--flow-log",
        text(&logs[0]),
        "--target",
        "habit@0.3",
    ]);
    assert_eq!((code, said.lines().count()), (1, 1), "{said}");
    assert!(said.contains("--session names it"), "{said}");

    let broken = folder.path().join("x.flow.jsonl");
    fs::write(&broken, "{\"policy\":{}}\n{}").unwrap();
    let (code, _, said) = stretto(&[
        "evaluate",
        "--flow-log",
        text(&broken),
        "--target",
        "habit@0.3",
    ]);
    assert_eq!((code, said.lines().count()), (1, 1), "{said}");
    assert!(said.contains("line 1"), "{said}");
}
