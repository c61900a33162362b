//! Sessions that were really recorded, read and turned into episodes.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use stretto_trace::mcp::{
    CallResult, EpisodeBuilder, Log, Tools, Who, encode_entry, episode, episode_with_answered,
    manifest, read_log, read_logs, session_logs,
};
use stretto_trace::{Episode, Event, ToolKind};

fn data(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(part)
}

fn all_logs() -> Vec<PathBuf> {
    let mut logs = session_logs(&data("demo-shop")).unwrap();
    logs.extend(session_logs(&data("airline")).unwrap());
    assert_eq!(logs.len(), 7);
    logs
}

/// What a log's lines hold, counted without the reader.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    calls: usize,
    results: usize,
    errors: usize,
    users: usize,
    replies: usize,
}

impl Counts {
    fn of_file(path: &Path) -> Self {
        let mut counts = Self::default();
        let mut open = HashSet::new();
        for line in fs::read_to_string(path).unwrap().lines().skip(1) {
            let line: Value = serde_json::from_str(line).unwrap();
            let message = &line["message"];
            let id = message["id"].to_string();
            if line["from"] == "context" {
                counts.users += usize::from(message["role"] == "user");
                counts.replies +=
                    usize::from(message["role"] == "assistant" && message["content"] != "");
            } else if message["method"] == "tools/call" {
                counts.calls += 1;
                open.insert(id);
            } else if message.get("method").is_none() && open.remove(&id) {
                counts.results += 1;
                let failed = message.get("error").is_some() || message["result"]["isError"] == true;
                counts.errors += usize::from(failed);
            }
        }
        counts
    }

    fn of(episode: &Episode) -> Self {
        let mut counts = Self {
            calls: episode.tool_calls().count(),
            ..Self::default()
        };
        for event in &episode.events {
            match event {
                Event::User { .. } => counts.users += 1,
                Event::Assistant { text, .. } => counts.replies += usize::from(text.is_some()),
                Event::ToolResult { error, .. } => {
                    counts.results += 1;
                    counts.errors += usize::from(*error);
                }
            }
        }
        counts
    }
}

#[test]
fn every_call_result_and_message_of_a_log_is_in_its_episode() {
    for path in all_logs() {
        let counts = Counts::of_file(&path);
        assert!(counts.calls > 0 && counts.users > 0, "{path:?}");
        assert_eq!(
            Counts::of(&episode(&read_log(&path).unwrap())),
            counts,
            "{path:?}"
        );
    }
}

#[test]
fn a_log_written_back_has_the_same_content() {
    for path in all_logs() {
        let log = read_log(&path).unwrap();
        let mut written = Vec::new();
        log.write(&mut written).unwrap();
        assert_eq!(Log::parse(&written).unwrap(), log);
        let values = |text: &[u8]| -> Vec<Value> {
            let lines = text
                .split(|&byte| byte == b'\n')
                .filter(|line| !line.is_empty());
            lines
                .map(|line| serde_json::from_slice(line).unwrap())
                .collect()
        };
        assert_eq!(
            values(&written),
            values(&fs::read(&path).unwrap()),
            "{path:?}"
        );
    }
}

#[test]
fn the_writer_makes_the_very_lines_of_a_log_again() {
    for path in all_logs() {
        for line in fs::read_to_string(&path).unwrap().lines().skip(1) {
            let entry: stretto_trace::mcp::Entry = serde_json::from_str(line).unwrap();
            let (_, message) = line.split_once("\"message\":").unwrap();
            let mut out = Vec::new();
            let wire = message.strip_suffix('}').unwrap();
            encode_entry(&mut out, entry.t_ms, entry.from, wire.as_bytes());
            assert_eq!(out.strip_suffix(b"\n").unwrap(), line.as_bytes());
        }
    }
}

#[test]
fn a_directory_holds_its_session_logs_and_not_its_flow_and_confirmation_logs() {
    let logs = read_logs(&data("demo-shop")).unwrap();
    let sessions: Vec<_> = logs.iter().map(|log| log.header.session.as_str()).collect();
    assert_eq!(
        sessions,
        [
            "20260928T020400.548Z-14457",
            "20260928T020401.117Z-14662",
            "20260928T020401.240Z-14750",
            "20260928T020401.312Z-14780"
        ]
    );
}

#[test]
fn a_flows_lookups_are_turns_of_their_own_and_the_first_answer_is_the_result() {
    let log = read_log(&data("demo-shop/20260928T020401.117Z-14662.jsonl")).unwrap();
    let (episode, answered) = episode_with_answered(&log);
    let turns: Vec<Vec<&str>> = episode
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Assistant { calls, .. } => {
                Some(calls.iter().map(|call| call.id.as_str()).collect())
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        turns,
        [
            vec!["3"],
            vec!["stretto-1"],
            vec!["stretto-2"],
            vec!["stretto-3"],
            vec![],
            vec!["4"],
            vec![]
        ]
    );
    let first = episode.events.iter().find_map(|event| match event {
        Event::ToolResult {
            call_id, content, ..
        } if call_id == "3" => Some(content.as_str()),
        _ => None,
    });
    assert_eq!(first, Some("user_41"));
    assert!(answered.values().all(|&count| count == 0));
    assert_eq!(
        (episode.domain.as_str(), episode.agent_model.as_str()),
        ("shop", "quickstart")
    );
}

#[test]
fn an_error_is_a_result_that_says_so() {
    let episode = episode(&read_log(&data("demo-shop/20260928T020401.312Z-14780.jsonl")).unwrap());
    let failed = episode.events.iter().find_map(|event| match event {
        Event::ToolResult {
            call_id,
            error: true,
            content,
            ..
        } => Some((call_id.as_str(), content.as_str())),
        _ => None,
    });
    assert_eq!(failed, Some(("3", "Error: User not found")));
}

#[test]
fn kinds_docs_and_contracts_are_what_the_server_listed() {
    let log = read_log(&data("demo-shop/20260928T020400.548Z-14457.jsonl")).unwrap();
    let tools = manifest(&log, "shop");
    assert_eq!(tools.kind("get_user_details"), Some(ToolKind::Read));
    assert!(tools.is_write("cancel_pending_order"));
    assert_eq!(
        tools.docs["find_user_id_by_email"].summary,
        "Find a user id by email."
    );
    let tools = Tools::of(&log);
    assert_eq!(
        tools.contract("cancel_pending_order"),
        Some("order_id:string!, reason:string!")
    );
    let airline = Tools::of_all(&read_logs(&data("airline")).unwrap());
    assert_eq!(airline.kind("calculate"), Some(ToolKind::Generic));
    assert_eq!(airline.contract("list_all_airports"), Some(""));
}

#[test]
fn at_each_answer_the_live_session_is_what_the_log_says_of_it_up_to_there() {
    for path in all_logs() {
        let log = read_log(&path).unwrap();
        let mut builder = EpisodeBuilder::new(&log.header);
        for (count, entry) in log.entries.iter().enumerate() {
            builder.entry(entry);
            let is_answer = entry
                .messages()
                .iter()
                .any(|message| CallResult::of(message).is_some());
            if entry.from != Who::Server || !is_answer {
                continue;
            }
            let so_far = Log {
                entries: log.entries[..=count].to_vec(),
                ..log.clone()
            };
            let episode = episode(&so_far);
            assert_eq!(builder.events(), episode.events);
            if let Some(Event::ToolResult { call_id, .. }) = episode.events.last() {
                let after = builder.after_call(call_id);
                assert_eq!(after, episode.after_call(call_id));
                assert!(after.asked_for().is_empty());
            }
        }
    }
}
