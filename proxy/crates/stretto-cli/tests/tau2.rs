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

/// Recorded sessions, with the task and the reward of each, and what their servers listed.
struct Recorded {
    domain: &'static str,
    logs: PathBuf,
    episodes: Vec<Episode>,
    kinds: BTreeMap<String, ToolKind>,
}

impl Recorded {
    /// `outcome` sets the task and the reward of an episode.
    fn read(domain: &'static str, logs: PathBuf, outcome: impl Fn(&mut Episode)) -> Self {
        let mut kinds = BTreeMap::new();
        let mut episodes = Vec::new();
        for path in session_logs(&logs).unwrap() {
            let log = read_log(&path).unwrap();
            kinds.extend(manifest(&log, domain).tools);
            let mut episode = episode(&log);
            outcome(&mut episode);
            episodes.push(episode);
        }
        Self {
            domain,
            logs,
            episodes,
            kinds,
        }
    }

    /// Six sessions of a shop, each of which solved a task of its own.
    fn shop() -> Self {
        let logs = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../stretto-flow/tests/data/sessions/logs/shop");
        Self::read("shop", logs, |episode| {
            episode.task_id.clone_from(&episode.id);
            episode.reward = 1.0;
        })
    }

    /// 120 sessions of a real agent, four for each of 30 tasks.
    fn airline() -> Self {
        let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/airline-gpt4o");
        let table = fs::read_to_string(logs.join("index.tsv")).unwrap();
        let mut ended: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for line in table.lines().skip(1) {
            let cells: Vec<&str> = line.split('\t').collect();
            ended.insert(cells[0], cells);
        }
        Self::read("airline", logs, |episode| {
            let cells = &ended[episode.id.as_str()];
            cells[1].clone_into(&mut episode.task_id);
            episode.reward = cells[3].parse().unwrap();
        })
    }

    fn tasks(&self) -> Vec<&str> {
        let mut tasks: Vec<&str> = self
            .episodes
            .iter()
            .map(|episode| episode.task_id.as_str())
            .collect();
        tasks.sort_unstable();
        tasks.dedup();
        tasks
    }

    /// A checkout of the benchmark with these sessions as results, half of them published and half
    /// in `more.json`. All tasks but the last are for training.
    fn checkout(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let at = |place: &str| folder.path().join(place);
        let domain = self.domain;
        let tasks = self.tasks();
        let (last, first) = tasks.split_last().unwrap();
        write(
            &at(&format!("data/tau2/domains/{domain}/split_tasks.json")),
            &json!({"train": first, "test": [last]}).to_string(),
        );
        let mut python = String::new();
        for (tool, kind) in &self.kinds {
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
        write(&at(&format!("src/tau2/domains/{domain}/tools.py")), &python);
        let (half, rest) = self.episodes.split_at(self.episodes.len() / 2);
        write(
            &at("data/tau2/results/final/one.json"),
            &results(domain, half).to_string(),
        );
        write(
            &at("data/tau2/results/final/other.json"),
            &results("elsewhere", half).to_string(),
        );
        write(&at("more.json"), &results(domain, rest).to_string());
        folder
    }
}

/// Learns a flow from the results of a checkout, and one from the logs of the same sessions.
/// Returns both, without what only one of the two forms can tell, and how many sessions taught.
fn both_ways(recorded: &Recorded) -> (Value, Value, String) {
    let folder = recorded.checkout();
    let at = |place: &str| folder.path().join(place);
    let (compiled, learned) = (at("compiled.flow.json"), at("learned.flow.json"));
    let more = format!("more={}", text(&at("more.json")));
    let (code, compiling) = stretto(&[
        "compile",
        "--tau2",
        text(folder.path()),
        "--domain",
        recorded.domain,
        "--source",
        &more,
        "--habit-only",
        "--out",
        text(&compiled),
    ]);
    assert_eq!(code, 0, "{compiling}");

    // The sessions of the tasks for training.
    let tasks = recorded.tasks();
    let logs = at("logs");
    fs::create_dir(&logs).unwrap();
    let mut outcomes = "session\ttask\treward\n".to_owned();
    for episode in &recorded.episodes {
        let Episode {
            id,
            task_id,
            reward,
            ..
        } = episode;
        if Some(&task_id.as_str()) != tasks.last() {
            let log = format!("{id}.jsonl");
            fs::copy(recorded.logs.join(&log), logs.join(&log)).unwrap();
            writeln!(outcomes, "{id}\t{task_id}\t{reward}").unwrap();
        }
    }
    write(&at("outcomes.tsv"), &outcomes);
    let (code, said) = stretto(&[
        "learn",
        "--sessions",
        text(&logs),
        "--outcomes",
        text(&at("outcomes.tsv")),
        "--domain",
        recorded.domain,
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
    (compiled, learned, compiling)
}

#[test]
fn a_flow_from_results_is_the_flow_from_logs() {
    let (compiled, learned, said) = both_ways(&Recorded::shop());
    assert!(
        said.contains("learned from 5 successful sessions of 5"),
        "{said}"
    );
    assert_eq!(compiled, learned);
}

#[test]
fn so_it_is_with_a_real_agents_sessions() {
    let (compiled, learned, said) = both_ways(&Recorded::airline());
    assert!(said.contains(" successful sessions of 116"), "{said}");
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
        let folder = Recorded::shop().checkout();
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
    let folder = Recorded::shop().checkout();
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
    let Recorded { logs, episodes, .. } = Recorded::airline();
    let index = logs.join("index.tsv");
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
