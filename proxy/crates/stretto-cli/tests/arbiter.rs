//! Arbiters on the command line: fitted, given and exported.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something unexpected happens"
)]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use stretto_flow::{ArbiterFile, FlowFile};

/// What a run said: its exit code, and stderr.
fn stretto(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::cargo_bin("stretto").unwrap();
    for name in [
        "TYPESAFE_API_KEY",
        "TYPESAFE_API_KEY_FILE",
        "TYPESAFE_DEFAULT_MODEL",
    ] {
        command.env_remove(name);
    }
    let output = command
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), err)
}

/// Files of the flows' own tests.
fn data(name: &str) -> String {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stretto-flow/tests/data");
    data.join(name).to_str().unwrap().to_owned()
}

fn flow(folder: &tempfile::TempDir, name: &str) -> FlowFile {
    FlowFile::load(&folder.path().join(name)).unwrap()
}

const SESSIONS: &str = "sessions/logs/shop";

#[test]
fn an_arbiter_is_fitted_and_the_habit_again_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = data(SESSIONS);
    let learn = [
        "learn",
        "--sessions",
        &sessions,
        "--domain",
        "shop",
        "--oracle",
        "mock",
    ];
    let (code, err) = stretto(
        folder.path(),
        &[&learn[..], &["--out", "part.json"]].concat(),
    );
    assert_eq!(code, 0, "{err}");
    let refit = ["--refit-habit", "--out", "all.json"];
    assert_eq!(stretto(folder.path(), &[&learn[..], &refit].concat()).0, 0);
    let (part, all) = (flow(&folder, "part.json"), flow(&folder, "all.json"));
    assert_eq!(part.folds.len(), 5);
    assert!(part.provenance.arbiter_cases > 0);
    assert_eq!(
        (&all.folds, all.provenance.arbiter_cases),
        (&part.folds, part.provenance.arbiter_cases)
    );
    assert!(all.provenance.habit_episodes > part.provenance.habit_episodes);
}

#[test]
fn a_sample_asks_fewer_questions() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = data(SESSIONS);
    let learn = [
        "learn",
        "--sessions",
        &sessions,
        "--domain",
        "shop",
        "--oracle",
        "mock",
        "--oracle-limit",
        "1",
        "--oracle-dump",
        "asked.jsonl",
        "--out",
        "one.json",
    ];
    assert_eq!(stretto(folder.path(), &learn).0, 0);
    assert_eq!(flow(&folder, "one.json").provenance.arbiter_cases, 1);
    let asked = fs::read_to_string(folder.path().join("asked.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = asked
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let request: stretto_oracle::Request =
        serde_json::from_value(lines[0]["request"].clone()).unwrap();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["key"], request.key().to_string());
}

#[test]
fn an_exported_arbiter_is_given_to_a_learned_flow_and_so_is_a_flows_own() {
    let folder = tempfile::tempdir().unwrap();
    let with = data("flows/retail-5-sessions-shipped-arbiter.flow.json");
    let export = ["export-arbiter", &with, "--out", "arbiter.json"];
    assert_eq!(stretto(folder.path(), &export), (0, String::new()));
    let text = fs::read_to_string(folder.path().join("arbiter.json")).unwrap();
    let arbiter = ArbiterFile::parse(&text).unwrap();
    assert!(
        text.starts_with("{\n  \"stretto_arbiter\": 1,\n  \"domain\": \"retail\","),
        "{text}"
    );

    let sessions = data(SESSIONS);
    for (from, source) in [
        ("arbiter.json", "arbiter (retail): "),
        (with.as_str(), "arbiter: "),
    ] {
        let learn = [
            "learn",
            "--sessions",
            &sessions,
            "--domain",
            "shop",
            "--arbiter-from",
            from,
            "--out",
            "given.json",
        ];
        let (code, err) = stretto(folder.path(), &learn);
        assert_eq!(code, 0, "{err}");
        let given = flow(&folder, "given.json");
        assert_eq!(given.folds, vec![arbiter.fitted.clone(); 5]);
        assert_eq!(
            (&given.predicates, &given.model),
            (&arbiter.predicates, &arbiter.model)
        );
        let sources = given.provenance.sources.iter();
        let taken = sources.filter(|name| name.starts_with(source)).count();
        assert_eq!(
            taken,
            arbiter.provenance.sources.len(),
            "{:?}",
            given.provenance.sources
        );
    }
}

#[test]
fn what_has_no_arbiter_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let without = data("flows/shop.flow.json");
    let export = ["export-arbiter", &without, "--out", "arbiter.json"];
    let (code, err) = stretto(folder.path(), &export);
    assert_eq!(code, 1);
    assert!(
        err.contains(&without) && err.ends_with("the flow has no arbiter\n"),
        "{err}"
    );
    assert!(!folder.path().join("arbiter.json").exists());

    let sessions = data(SESSIONS);
    let learn = [
        "learn",
        "--sessions",
        &sessions,
        "--domain",
        "shop",
        "--arbiter-from",
        &without,
        "--out",
        "given.json",
    ];
    let (code, err) = stretto(folder.path(), &learn);
    assert_eq!(code, 1);
    assert!(err.contains("the flow has no arbiter"), "{err}");
}

#[test]
fn without_cached_answers_nothing_is_fitted_and_the_first_question_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = data(SESSIONS);
    let learn = [
        "learn",
        "--sessions",
        &sessions,
        "--domain",
        "shop",
        "--oracle",
        "replay",
        "--out",
        "flow.json",
    ];
    let (code, err) = stretto(folder.path(), &learn);
    assert_eq!(code, 1);
    assert!(err.contains("no cached answer for request "), "{err}");
    assert!(!folder.path().join("flow.json").exists());
}

#[test]
fn a_flow_with_an_arbiter_is_promoted_by_the_answers_that_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = data(SESSIONS);
    let learn = [
        "learn",
        "--sessions",
        &sessions,
        "--domain",
        "shop",
        "--oracle",
        "mock",
        "--refit-habit",
        "--out",
        "flow.json",
    ];
    assert_eq!(stretto(folder.path(), &learn).0, 0);
    let promote = |oracle: &'static str| {
        let arguments = [
            "promote",
            "--flow",
            "flow.json",
            "--sessions",
            &sessions,
            "--oracle",
            oracle,
            "--out",
            "promoted.json",
        ];
        let (code, err) = stretto(folder.path(), &arguments);
        assert_eq!(code, 0, "{err}");
        let sites = flow(&folder, "promoted.json").promoted.unwrap().sites;
        (sites.values().map(|site| site.decisions).sum::<u64>(), err)
    };
    let (decisions, err) = promote("mock");
    assert!(decisions > 0 && !err.contains("no answer"), "{err}");
    let (decisions, err) = promote("replay");
    assert!(
        err.contains("questions got no answer, such as: no cached answer for request "),
        "{err}"
    );
    // Only sites that offer nothing decide without asking.
    let (mock, _) = promote("mock");
    assert!(decisions < mock);
}
