//! Record, learn, serve: the whole way of a flow, with the programs that people run.
//!
//! A scenario is one session of one host. This is many sessions, a command between them, and one
//! session more, so it is a test in Rust that plays scenarios: each session is held to what must
//! hold in every run.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "a test whose surroundings are broken has failed"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use stretto_harness::bins::Programs;
use stretto_harness::run::{Job, Outcome, RunOptions, run};
use stretto_harness::scenario::{self, Scenario, Transport};
use tempfile::TempDir;

/// An agent that finds a customer and reads their two orders, one call after the other, before it
/// asks and cancels one.
const LESSONS: &str = r##"
title = "an agent works through a shop call by call, and every session is recorded"
proxy = ["--record", "$LOGS", "--domain", "shop", "--context", "$CONTEXT"]
server = ["--world", "retail"]

cases = [
  { name = "one", email = "c1@example.com", user = "user_1", first = "#W1a", second = "#W1b", reason = "no longer needed" },
  { name = "two", email = "c2@example.com", user = "user_2", first = "#W2a", second = "#W2b", reason = "ordered by mistake" },
  { name = "three", email = "c3@example.com", user = "user_3", first = "#W3a", second = "#W3b", reason = "no longer needed" },
  { name = "four", email = "c4@example.com", user = "user_4", first = "#W4a", second = "#W4b", reason = "no longer needed" },
  { name = "five", email = "c5@example.com", user = "user_5", first = "#W5a", second = "#W5b", reason = "ordered by mistake" },
  { name = "six", email = "c6@example.com", user = "user_6", first = "#W6a", second = "#W6b", reason = "no longer needed" },
  { name = "seven", email = "c7@example.com", user = "user_7", first = "#W7a", second = "#W7b", reason = "ordered by mistake" },
  { name = "eight", email = "c8@example.com", user = "user_8", first = "#W8a", second = "#W8b", reason = "no longer needed" },
]

steps = [
  { handshake = "2025-06-18" },
  { request = "tools/list" },
  { say = "user", text = "I am $email, and I want one of my orders cancelled." },
  { call = "find_user_id_by_email", args = { email = "$email" }, contains = "$user" },
  { call = "get_user_details", args = { user_id = "$user" }, contains = "$first" },
  { call = "get_order_details", args = { order_id = "$first" } },
  { call = "get_order_details", args = { order_id = "$second" } },
  { say = "assistant", text = "You have ordered two desk lamps. Shall I cancel the first?" },
  { say = "user", text = "Yes, please." },
  { call = "cancel_pending_order", args = { order_id = "$first", reason = "$reason" } },
]
"##;

/// Another customer, whom the same agent serves.
const SERVED: &str = r##"
title = "what the agent read in three calls comes with the first, for a customer whom no lesson had"
over = ["stdio", "http"]
proxy = ["--record", "$LOGS", "--domain", "shop", "--context", "$CONTEXT", "--flow", "$DIR/shop.flow.json"]
server = ["--world", "retail"]
files = { "shop.flow.json" = FLOW }

steps = [
  { handshake = "2025-06-18" },
  { request = "tools/list" },
  { say = "user", text = "I am c9@example.com, and I want one of my orders cancelled." },
  { call = "find_user_id_by_email", args = { email = "c9@example.com" }, contains = "get_user_details {\"user_id\":\"user_9\"}:" },
  { reached_server = "get_user_details", times = 1 },
  { reached_server = "get_order_details", times = 2 },
  { say = "assistant", text = "You have ordered two desk lamps. Shall I cancel the first?" },
  { say = "user", text = "Yes, please." },
  # Nothing is left to look up, and the write is the agent's own.
  { call = "cancel_pending_order", args = { order_id = "#W9a", reason = "no longer needed" }, lacks = "Also looked up" },
]
"##;

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Plays a scenario, and keeps what it leaves in `kept`.
fn play(scenario: &Scenario, over: Transport, kept: &Path) -> Outcome {
    let options = RunOptions {
        programs: Programs {
            proxy: env!("CARGO_BIN_EXE_stretto-proxy").into(),
            demo: env!("CARGO_BIN_EXE_stretto-mcp-demo").into(),
        },
        scenarios: checkout().join("scenarios"),
        keep: Some(kept.to_owned()),
        keep_passed: true,
    };
    let outcome = run(Job { scenario, over }, &options);
    assert!(outcome.failures.is_empty(), "{:#?}", outcome.failures);
    outcome
}

/// Records each lesson, one after the other, and puts the logs into one folder.
fn record(folder: &Path) -> PathBuf {
    let logs = folder.join("logs");
    fs::create_dir(&logs).unwrap();
    let lessons = scenario::read_text(Path::new("lessons.toml"), "lessons", LESSONS).unwrap();
    for lesson in &lessons {
        play(lesson, Transport::Stdio, folder);
        for log in fs::read_dir(folder.join(&lesson.name).join("dir/logs")).unwrap() {
            let log = log.unwrap();
            fs::copy(log.path(), logs.join(log.file_name())).unwrap();
        }
    }
    assert_eq!(fs::read_dir(&logs).unwrap().count(), lessons.len());
    logs
}

/// Learns a flow as `stretto learn` does.
fn learn(logs: &Path, flow: &Path) -> String {
    let words = ["stretto", "learn", "--habit-only", "--sessions"];
    let command = words.iter().map(Into::into).chain([
        logs.into(),
        "--out".into(),
        flow.as_os_str().to_owned(),
    ]);
    assert_eq!(stretto_cli::run(command), ExitCode::SUCCESS);
    fs::read_to_string(flow).unwrap()
}

#[test]
fn an_agent_whose_sessions_were_recorded_is_spared_the_calls_it_always_made() {
    let folder = TempDir::new().unwrap();
    let logs = record(folder.path());
    let flow = learn(&logs, &folder.path().join("shop.flow.json"));
    // A string in JSON is one in TOML. In a scenario a dollar sign begins a placeholder.
    let flow = serde_json::Value::from(flow.replace('$', "$$")).to_string();
    let text = SERVED.replace("FLOW", &flow);
    let served = scenario::read_text(Path::new("served.toml"), "served", &text).unwrap();
    for (over, name) in [
        (Transport::Stdio, "served"),
        (Transport::Http, "served@http"),
    ] {
        let outcome = play(&served[0], over, folder.path());
        insta::assert_snapshot!(name, outcome.transcript);
    }
}
