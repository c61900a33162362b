//! `stretto learn`, `promote`, `flow-show` and `flow-diff`, as a person runs them.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something unexpected happens"
)]

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::{Value, json};
use stretto_trace::mcp::session_logs;

fn data(name: &str) -> String {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stretto-flow/tests/data");
    data.join(name).to_str().unwrap().to_owned()
}

struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

fn stretto(arguments: &[&str]) -> Ran {
    let output = Command::cargo_bin("stretto")
        .unwrap()
        .args(arguments)
        .output()
        .unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn inside(folder: &tempfile::TempDir, name: &str) -> (PathBuf, String) {
    let path = folder.path().join(name);
    let text = path.to_str().unwrap().to_owned();
    (path, text)
}

/// A flow without what differs each time.
fn lasting(path: impl AsRef<Path>) -> Value {
    let mut flow: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    flow["provenance"]["stretto"] = Value::Null;
    flow["provenance"]["compiled_unix_ms"] = Value::Null;
    flow
}

#[test]
fn the_shops_flow_is_learned_again_promoted_again_and_differs_in_nothing_to_review() {
    let folder = folder();
    let (learned, flow) = inside(&folder, "shop.flow.json");
    let sessions = data("sessions/logs/shop");
    let ran = stretto(&[
        "learn",
        "--sessions",
        &sessions,
        "--domain",
        "shop",
        "--habit-only",
        "--out",
        &flow,
    ]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    assert_eq!(
        ran.stderr,
        format!(
            "stretto: learned from the 6 successful ones of 6 sessions, with 4 tools of which 3 only read; wrote {flow}\n"
        )
    );
    assert_eq!(lasting(&learned), lasting(data("flows/shop.flow.json")));
    assert!(!fs::read_to_string(&learned).unwrap().ends_with('\n'));

    let (promoted, out) = inside(&folder, "promoted.flow.json");
    let ran = stretto(&[
        "promote",
        "--flow",
        &flow,
        "--sessions",
        &data("sessions/shadow/shop"),
        "--out",
        &out,
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout
            .contains("| `get_order_details` | 6 | 3 | 3 (100%) | 0.53 | 3 | yes |"),
        "{}",
        ran.stdout
    );
    assert_eq!(
        lasting(&promoted),
        lasting(data("flows/shop.promoted.flow.json"))
    );

    let ran = stretto(&["flow-diff", &flow, &out]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(
        ran.stdout.contains("- only promoted sites act now\n"),
        "{}",
        ran.stdout
    );
    // Every site that has lookups was promoted, so nothing acts that did not before.
    assert_eq!(stretto(&["flow-diff", &out, &flow]).code, 0);
}

#[test]
fn two_flows_that_differ_in_what_they_may_do_end_with_1() {
    let (old, new) = (
        data("flows/retail-5-sessions.flow.json"),
        data("flows/retail-10-sessions.flow.json"),
    );
    let ran = stretto(&["flow-diff", &old, &new]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout.starts_with("# Needs review: 4\n\n- Sites: "),
        "{}",
        ran.stdout
    );
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_flow_that_cannot_be_compared_ends_with_2_and_names_the_file() {
    let ran = stretto(&[
        "flow-diff",
        "no-such.flow.json",
        &data("flows/shop.flow.json"),
    ]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(
        ran.stderr
            .starts_with("stretto: reading the flow no-such.flow.json: "),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_flow_is_shown_in_markdown() {
    let ran = stretto(&["flow-show", &data("flows/retail-5-sessions.flow.json")]);
    assert_eq!(ran.code, 0);
    assert!(
        ran.stdout.starts_with("# Flow of retail\n"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout
            .contains("looks up `get_order_details` 0.67 × 0.90 = 0.60"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_wrong_field_is_named_with_its_file() {
    let folder = folder();
    let (path, file) = inside(&folder, "wrong.flow.json");
    let flow = fs::read_to_string(data("flows/shop.flow.json")).unwrap();
    fs::write(
        path,
        flow.replacen("\"beta\":", "\"beta\":\"x\",\"better\":", 1),
    )
    .unwrap();
    let ran = stretto(&["flow-show", &file]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    let start = format!("stretto: loading the flow {file}: `habit.beta`: ");
    assert!(ran.stderr.starts_with(&start), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1);
}

#[test]
fn rewards_and_outcomes_say_which_sessions_count() {
    let folder = folder();
    let sessions = data("sessions/logs/shop");
    let (_, out) = inside(&folder, "out.flow.json");
    let (rewards, rewards_file) = inside(&folder, "rewards.json");
    fs::write(
        &rewards,
        json!({"20260928T020400.548Z-14457": 0, "stranger": 1}).to_string(),
    )
    .unwrap();
    let learn = [
        "learn",
        "--sessions",
        &sessions,
        "--habit-only",
        "--out",
        &out,
    ];
    let ran = stretto(&[&learn[..], &["--rewards", &rewards_file]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("1 of the sessions that "),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .contains("learned from the 5 successful ones of 6 sessions"),
        "{}",
        ran.stderr
    );

    let (outcomes, outcomes_file) = inside(&folder, "outcomes.tsv");
    let mut table = "session\ttask\treward\n".to_owned();
    for log in fs::read_dir(&sessions).unwrap() {
        let name = log.unwrap().file_name().into_string().unwrap();
        table += name.strip_suffix(".jsonl").unwrap();
        table += "	one	0
";
    }
    fs::write(&outcomes, table).unwrap();
    let ran = stretto(&[&learn[..], &["--outcomes", &outcomes_file]].concat());
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.stderr,
        "stretto: none of the 6 sessions was successful, so there is nothing to learn from; check the rewards that were given for them\n"
    );
}

#[test]
fn a_manifest_replaces_what_the_logs_list() {
    let folder = folder();
    let (manifest, file) = inside(&folder, "tools.json");
    fs::write(
        &manifest,
        json!({"domain": "mine", "tools": {"get_user_details": "read"}}).to_string(),
    )
    .unwrap();
    let (out, flow) = inside(&folder, "out.flow.json");
    let sessions = data("sessions/logs/shop");
    let ran = stretto(&[
        "learn",
        "--sessions",
        &sessions,
        "--habit-only",
        "--manifest",
        &file,
        "--out",
        &flow,
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let learned = lasting(out);
    assert_eq!(learned["manifest"]["domain"], "mine");
    assert_eq!(learned["sites"]["reads"], json!(["get_user_details"]));
    // Contracts are still those of the logs.
    assert_eq!(
        learned["contracts"]["get_order_details"],
        "order_id:string!"
    );
}

#[test]
fn flows_are_scored_on_tasks_that_they_were_not_learned_from() {
    let folder = folder();
    let (json, file) = inside(&folder, "scores.json");
    let sessions = data("sessions/logs/shop");
    let ran = stretto(&[
        "learn",
        "--sessions",
        &sessions,
        "--habit-only",
        "--cross-validate",
        "3",
        "--threshold",
        "0.3,1.5",
        "--json",
        &file,
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with("# Cross-validation\n"),
        "{}",
        ran.stdout
    );
    let scores: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(scores["folds"], 3);
    let [low, high] = scores["scores"].as_array().unwrap().as_slice() else {
        panic!("{scores}")
    };
    // Every customer's details and orders are looked up after the first call.
    assert_eq!(
        (
            &low["lookups"],
            &low["used"],
            &low["detours"],
            &low["turns_spared"]
        ),
        (&json!(18), &json!(18), &json!(0), &json!(18))
    );
    assert_eq!(
        (&high["lookups"], &high["turns"]),
        (&json!(0), &low["turns"])
    );
}

#[test]
fn folds_that_leave_nothing_to_learn_from_say_so() {
    let folder = folder();
    let sessions = data("sessions/logs/shop");
    let (outcomes, file) = inside(&folder, "outcomes.tsv");
    let names = session_logs(Path::new(&sessions)).unwrap();
    let rows = names.iter().map(|path| {
        let session = path.file_stem().unwrap().to_str().unwrap();
        format!("{session}\tthe only task\n")
    });
    let table = format!("session\ttask\n{}", rows.collect::<String>());
    fs::write(&outcomes, table).unwrap();
    let ran = stretto(&[
        "learn",
        "--habit-only",
        "--sessions",
        &sessions,
        "--outcomes",
        &file,
        "--cross-validate",
        "3",
    ]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(
        ran.stderr.contains(
            "with 3 folds, leaving out the 6 sessions of one: there are no sessions to learn from; \
             score more sessions, or choose another number of folds"
        ),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_a_flow_is_learned_from_and_its_sites_thresholds_can_be_chosen() {
    let folder = folder();
    let sessions = data("sessions/logs/shop");
    let (rewards, rewards_file) = inside(&folder, "rewards.json");
    fs::write(&rewards, r#"{"20260928T020400.548Z-14457": 0}"#).unwrap();
    let (out, flow) = inside(&folder, "out.flow.json");
    let (json, scores_file) = inside(&folder, "scores.json");
    let ran = stretto(&[
        "learn",
        "--sessions",
        &sessions,
        "--rewards",
        &rewards_file,
        "--habit-only",
        "--every-session",
        "--history",
        "3",
        "--detour-cost",
        "1",
        "--decider",
        "habit",
        "--cross-validate",
        "3",
        "--json",
        &scores_file,
        "--out",
        &flow,
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout
            .contains("learned from the sessions of the other folds"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stderr.contains("learned from all 6 sessions, with "),
        "{}",
        ran.stderr
    );
    let scores: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(
        (
            &scores["every_session"],
            &scores["history"],
            &scores["detour_cost"]
        ),
        (&json!(true), &json!(3), &json!(1.0))
    );
    let learned = lasting(out);
    assert_eq!(learned["stretto_flow"], 2);
    assert_eq!(learned["habit"]["base"]["order"], 3);
    assert_eq!(learned["provenance"]["habit_episodes"], 6);
    // Nothing in the shop is a detour, so no site is switched off.
    let thresholds = learned["thresholds"].as_object().unwrap();
    assert_eq!(thresholds.len(), 3);
    assert!(
        thresholds.values().all(|own| own.as_f64().unwrap() <= 0.9),
        "{thresholds:?}"
    );
    assert_eq!(stretto(&["flow-show", &flow]).code, 0);

    for wrong in [
        ["--history", "0"],
        ["--history", "9"],
        ["--detour-cost", "-1"],
        ["--decider", "habit"],
    ] {
        let learn = ["learn", "--sessions", &sessions, "--out", &flow];
        assert_eq!(stretto(&[&learn[..], &wrong].concat()).code, 2, "{wrong:?}");
    }
}

#[test]
fn what_is_missing_is_told_with_what_to_do() {
    let folder = folder();
    let (_, out) = inside(&folder, "out.flow.json");
    let empty = folder.path().to_str().unwrap();
    let ran = stretto(&[
        "learn",
        "--sessions",
        empty,
        "--domain",
        "shop",
        "--habit-only",
        "--out",
        &out,
    ]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("has no session logs") && ran.stderr.contains("stretto-proxy --record"),
        "{}",
        ran.stderr
    );

    let (log, _) = inside(&folder, "20260101T000000.000Z-1.jsonl");
    fs::write(
        &log,
        "{\"stretto_mcp_log\":2,\"session\":\"a\",\"started_unix_ms\":1}\nnonsense\n",
    )
    .unwrap();
    let ran = stretto(&[
        "learn",
        "--sessions",
        empty,
        "--domain",
        "shop",
        "--habit-only",
        "--out",
        &out,
    ]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr
            .contains("20260101T000000.000Z-1.jsonl: line 2 is not a log entry"),
        "{}",
        ran.stderr
    );

    fs::write(
        &log,
        "{\"stretto_mcp_log\":2,\"session\":\"a\",\"started_unix_ms\":1}\n",
    )
    .unwrap();
    let ran = stretto(&[
        "learn",
        "--sessions",
        empty,
        "--domain",
        "shop",
        "--habit-only",
        "--out",
        &out,
    ]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("tools/list"), "{}", ran.stderr);
    let ran = stretto(&["learn", "--sessions", empty, "--habit-only", "--out", &out]);
    assert!(
        ran.stderr.contains("name the flow's with --domain"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        stretto(&["learn", "--sessions", empty, "--habit-only"]).code,
        2
    );
}
