//! Results of τ²-bench in the place of session logs. The results files are made of recorded
//! sessions, so what is found in both must be the same.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something unexpected happens"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::{Value, json};
use stretto_trace::mcp::{episode, manifest, read_log, session_logs};
use stretto_trace::{Episode, Event, ToolKind};

fn stretto(words: &[&str]) -> (i32, String) {
    let output = Command::cargo_bin("stretto")
        .unwrap()
        .args(words)
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), stderr)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// An episode as the benchmark writes one.
fn simulation(episode: &Episode) -> Value {
    let messages = episode.events.iter().map(|event| match event {
        Event::User { text } => json!({"role": "user", "content": text}),
        Event::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|call| {
                json!({"id": call.id, "name": call.name, "arguments": call.arguments, "requestor": "assistant"})
            });
            json!({"role": "assistant", "content": text, "tool_calls": calls.collect::<Vec<_>>(), "cost": 0.01})
        }
        Event::ToolResult {
            call_id,
            error,
            content,
            ..
        } => json!({"role": "tool", "id": call_id, "content": content, "error": error}),
    });
    json!({
        "id": episode.id, "task_id": episode.task_id, "trial": episode.trial,
        "reward_info": {"reward": episode.reward}, "messages": messages.collect::<Vec<_>>(),
    })
}

fn results(domain: &str, episodes: &[Episode]) -> Value {
    json!({
        "info": {"environment_info": {"domain_name": domain}, "agent_info": {"llm": episodes[0].agent_model}},
        "simulations": episodes.iter().map(simulation).collect::<Vec<_>>(),
    })
}

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn shop() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../stretto-flow/tests/data/sessions/logs/shop")
}

/// A checkout of the benchmark whose domain is the recorded shop, and whose training tasks are
/// all but the last session's.
fn checkout() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut kinds = BTreeMap::new();
    let mut episodes = Vec::new();
    for path in session_logs(&shop()).unwrap() {
        let log = read_log(&path).unwrap();
        kinds.extend(manifest(&log, "shop").tools);
        let mut episode = episode(&log);
        episode.task_id.clone_from(&episode.id);
        episode.reward = 1.0;
        episodes.push(episode);
    }
    let at = |place: &str| folder.path().join(place);
    let (last, first) = episodes.split_last().unwrap();
    let ids: Vec<&str> = first.iter().map(|episode| episode.id.as_str()).collect();
    write(
        &at("data/tau2/domains/shop/split_tasks.json"),
        &json!({"train": ids, "test": [last.id]}).to_string(),
    );
    let mut python = String::new();
    for (tool, kind) in kinds {
        let kind = match kind {
            ToolKind::Read => "READ",
            ToolKind::Write => "WRITE",
            ToolKind::Generic => "GENERIC",
        };
        writeln!(
            python,
            "    @is_tool(ToolType.{kind})\n    def {tool}(self):\n        pass\n"
        )
        .unwrap();
    }
    write(&at("src/tau2/domains/shop/tools.py"), &python);
    let (half, rest) = episodes.split_at(3);
    write(
        &at("data/tau2/results/final/one.json"),
        &results("shop", half).to_string(),
    );
    write(
        &at("data/tau2/results/final/other.json"),
        &results("elsewhere", half).to_string(),
    );
    write(&at("more.json"), &results("shop", rest).to_string());
    folder
}

#[test]
fn a_flow_from_results_is_the_flow_from_logs() {
    let folder = checkout();
    let at = |place: &str| folder.path().join(place);
    let (compiled, learned) = (at("compiled.flow.json"), at("learned.flow.json"));
    let more = format!("more={}", text(&at("more.json")));
    let (code, said) = stretto(&[
        "compile",
        "--tau2",
        text(folder.path()),
        "--domain",
        "shop",
        "--source",
        &more,
        "--habit-only",
        "--out",
        text(&compiled),
    ]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("learned from 5 successful sessions of 5"),
        "{said}"
    );

    // The same sessions: the last one's task is none of the training's.
    let logs = at("logs");
    fs::create_dir(&logs).unwrap();
    let mut paths = session_logs(&shop()).unwrap();
    paths.pop();
    for path in paths {
        fs::copy(&path, logs.join(path.file_name().unwrap())).unwrap();
    }
    let (code, said) = stretto(&[
        "learn",
        "--sessions",
        text(&logs),
        "--domain",
        "shop",
        "--habit-only",
        "--out",
        text(&learned),
    ]);
    assert_eq!(code, 0, "{said}");
    let (mut compiled, mut learned) = (read(&compiled), read(&learned));
    assert!(
        compiled.get("contracts").is_none(),
        "results say nothing of contracts"
    );
    for flow in [&mut compiled, &mut learned] {
        let flow = flow.as_object_mut().unwrap();
        flow.remove("contracts");
        flow["manifest"].as_object_mut().unwrap().remove("docs");
        flow["provenance"]
            .as_object_mut()
            .unwrap()
            .remove("compiled_unix_ms");
    }
    assert_eq!(compiled, learned);
}

#[test]
fn what_a_checkout_lacks_is_named() {
    for (missing, wanted) in [
        ("src/tau2/domains/shop/tools.py", "tools.py"),
        (
            "data/tau2/domains/shop/split_tasks.json",
            "split_tasks.json",
        ),
        ("data/tau2/results/final/one.json", "results"),
    ] {
        let folder = checkout();
        fs::remove_file(folder.path().join(missing)).unwrap();
        let out = folder.path().join("x.flow.json");
        let (code, said) = stretto(&[
            "compile",
            "--tau2",
            text(folder.path()),
            "--domain",
            "shop",
            "--habit-only",
            "--out",
            text(&out),
        ]);
        assert_eq!((code, said.lines().count()), (1, 1), "{said}");
        assert!(said.contains(wanted), "{missing}: {said}");
        assert!(!out.exists());
    }
    let folder = checkout();
    let broken = folder.path().join("broken.json");
    for (content, wanted) in [
        ("{\"info\":", "EOF"),
        ("{\"results\": []}", "missing field `info`"),
    ] {
        fs::write(&broken, content).unwrap();
        let (code, said) = stretto(&["guards", "--source", text(&broken)]);
        assert_eq!((code, said.lines().count()), (1, 1), "{said}");
        assert!(
            said.contains("broken.json") && said.contains(wanted),
            "{said}"
        );
    }
    let one = folder.path().join("data/tau2/results/final/one.json");
    let (code, said) = stretto(&[
        "guards",
        "--tau2",
        text(folder.path()),
        "--source",
        text(&one),
    ]);
    assert_eq!(code, 1);
    assert!(said.contains("one.json is named twice"), "{said}");
}

/// Recorded airline sessions, their outcomes, and the same as a results file.
fn airline(folder: &Path) -> (PathBuf, PathBuf, PathBuf) {
    let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/airline-gpt4o");
    let index = logs.join("index.tsv");
    let table = fs::read_to_string(&index).unwrap();
    let mut ended: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in table.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        ended.insert(cells[0], cells);
    }
    let mut episodes = Vec::new();
    for path in session_logs(&logs).unwrap() {
        let mut episode = episode(&read_log(&path).unwrap());
        let cells = &ended[episode.id.as_str()];
        cells[1].clone_into(&mut episode.task_id);
        episode.reward = cells[3].parse().unwrap();
        episodes.push(episode);
    }
    let source = folder.join("airline.json");
    write(&source, &results("airline", &episodes).to_string());
    (logs, index, source)
}

#[test]
fn guards_and_judge_find_the_same_in_results_as_in_logs() {
    let folder = tempfile::tempdir().unwrap();
    let (logs, index, source) = airline(folder.path());
    let cache = folder.path().join("cache");
    for command in [
        &["guards"][..],
        &[
            "confirm",
            "--oracle",
            "mock",
            "--oracle-cache",
            text(&cache),
        ],
    ] {
        let found = |input: &[&str], name: &str| {
            let json = folder.path().join(name);
            let more = ["--out", "/dev/null", "--json", text(&json)];
            let (code, said) = stretto(&[command, input, &more].concat());
            assert_eq!(code, 0, "{said}");
            read(&json)
        };
        let of_logs = found(
            &["--sessions", text(&logs), "--outcomes", text(&index)],
            "logs.json",
        );
        let of_results = found(&["--source", text(&source)], "results.json");
        assert_eq!(of_logs, of_results, "{command:?}");
    }
}
