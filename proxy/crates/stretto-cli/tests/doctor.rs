//! `stretto doctor`, in homes that are in order and in homes that are not.

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something unexpected happens"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use stretto_oracle::{Answer, Response, Usage};
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

const VERSION: &str = env!("CARGO_PKG_VERSION");

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::create_dir(home.path("bin")).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A program that answers with that.
    fn program(&self, name: &str, script: &str) {
        let file = format!("bin/{name}");
        self.write(&file, format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(self.path(&file), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn programs(&self) {
        for name in ["stretto-proxy", "stretto-procedure", "stretto-mcp-demo"] {
            self.program(name, &format!("echo {name} {VERSION}"));
        }
    }

    /// The exit code and what was found.
    fn doctor(&self, words: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
        let output = Command::cargo_bin("stretto")
            .unwrap()
            .arg("doctor")
            .args(words)
            .env_clear()
            .envs(variables.iter().copied())
            .env("HOME", self.0.path())
            .env("PATH", self.path("bin"))
            .output()
            .unwrap();
        assert!(
            output.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let found = String::from_utf8(output.stdout).unwrap();
        (output.status.code().unwrap(), found)
    }
}

fn has(found: &str, line: &str) {
    assert!(
        found.lines().any(|found| found == line),
        "no line {line:?} in\n{found}"
    );
}

fn header(session: &str, domain: Option<&str>) -> String {
    let header = serde_json::json!({
        "stretto_mcp_log": 2, "session": session, "started_unix_ms": 1, "domain": domain,
    });
    format!("{header}\n")
}

#[test]
fn a_new_home_has_notes_and_no_problem() {
    let home = Home::new();
    home.programs();
    let (code, found) = home.doctor(&[], &[]);
    assert_eq!(code, 0, "{found}");
    has(
        &found,
        &format!("ok       stretto-proxy {VERSION}, ~/bin/stretto-proxy"),
    );
    has(
        &found,
        "note     ~/.stretto does not exist yet; the first recorded session makes it",
    );
    assert!(!found.contains("problem"), "{found}");
    assert!(
        found.contains("note     no flows in ~/.stretto yet"),
        "{found}"
    );
    assert!(
        found.contains("note     no sessions in ~/.stretto yet"),
        "{found}"
    );
    assert!(!home.path(".stretto").exists());
}

#[test]
fn programs_that_are_missing_old_or_silent_are_told_apart() {
    let home = Home::new();
    home.program("stretto-procedure", "echo stretto-procedure 0.0.1");
    home.program("stretto-mcp-demo", "exit 3");
    let (code, found) = home.doctor(&[], &[]);
    assert_eq!(code, 1, "{found}");
    assert!(found.contains("problem  stretto-proxy is "), "{found}");
    assert!(
        found.contains("problem  ~/bin/stretto-procedure says it is \"stretto-procedure 0.0.1\""),
        "{found}"
    );
    assert!(
        found.contains("problem  ~/bin/stretto-mcp-demo does not tell its version"),
        "{found}"
    );

    let home = Home::new();
    home.program("stretto-proxy", &format!("echo stretto-proxy {VERSION}"));
    let (code, found) = home.doctor(&[], &[]);
    assert_eq!(code, 0, "{found}");
    assert!(
        found.contains("note     stretto-procedure is not on the PATH"),
        "{found}"
    );
}

#[test]
fn flows_and_sessions_are_counted_three_levels_deep() {
    let home = Home::new();
    home.programs();
    let flows = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stretto-flow/tests/data/flows");
    let shop = fs::read(flows.join("shop.flow.json")).unwrap();
    home.write(".stretto/shop.flow.json", shop);
    home.write(".stretto/broken.flow.json", "{");
    home.write(".stretto/logs/a/1.jsonl", header("1", Some("orders")));
    home.write(".stretto/logs/a/2.jsonl", header("2", None) + "{\"half");
    home.write(".stretto/logs/a/2.flow.jsonl", "{}\n");
    home.write(".stretto/logs/a/2.confirm.jsonl", "{}\n");
    home.write(".stretto/logs/a/notes.jsonl", "hello\n");
    home.write(".stretto/logs/a/too/deep.jsonl", header("3", None));
    home.write(".stretto/oracle-cache/ab.jsonl", header("4", None));
    home.write(".stretto/shadow/5.jsonl", header("5", Some("shop")));
    let (code, found) = home.doctor(&[], &[]);
    assert_eq!(code, 0, "{found}");
    has(&found, "ok       ~/.stretto can be written");
    has(&found, "ok       2 flows");
    has(
        &found,
        "           ~/.stretto/shop.flow.json: shop, learned from 6 sessions, decides by reach, not promoted",
    );
    assert!(found.contains("           unreadable: "), "{found}");
    has(&found, "ok       3 sessions");
    has(
        &found,
        "           ~/.stretto/logs/a: 2 sessions, domains none, orders; 1 other file is no session log",
    );
    has(
        &found,
        "           ~/.stretto/shadow: 1 session, domain shop",
    );
    let names = |folder: &str| fs::read_dir(home.path(folder)).unwrap().count();
    assert_eq!(names(".stretto"), 5, "the probe is gone");
}

#[test]
fn a_data_directory_that_is_none_is_a_problem() {
    let home = Home::new();
    home.programs();
    home.write("file", "");
    let data = home.path("file");
    let (code, found) = home.doctor(&["--data", data.to_str().unwrap()], &[]);
    assert_eq!(code, 1, "{found}");
    assert!(
        found.contains("problem  ~/file is not a directory"),
        "{found}"
    );
}

#[test]
fn a_key_is_told_by_its_variable_alone() {
    let home = Home::new();
    home.programs();
    for (name, value) in [
        ("TYPESAFE_API_KEY", "sk-never-shown"),
        ("TYPESAFE_API_KEY_FILE", "/sk-never-shown"),
    ] {
        let (code, found) = home.doctor(&[], &[(name, value)]);
        assert_eq!(code, 0, "{found}");
        has(&found, &format!("ok       {name} is set"));
        assert!(!found.contains("sk-never-shown"), "{found}");
    }
    let (_, found) = home.doctor(&[], &[("TYPESAFE_API_KEY", " ")]);
    assert!(found.contains("note     there is no key"), "{found}");
}

#[test]
fn the_network_is_asked_only_with_a_key() {
    let home = Home::new();
    home.programs();
    let (code, found) = home.doctor(&["--network"], &[]);
    assert_eq!(code, 0, "{found}");
    has(
        &found,
        "note     the System-One model was not asked: there is no key",
    );
}

#[tokio::test]
async fn the_model_is_asked_one_question_and_the_answer_is_kept_nowhere() {
    let home = Home::new();
    home.programs();
    let service = MockServer::start().await;
    let uri = service.uri();
    let variables = [
        ("TYPESAFE_API_KEY", "sk-never-shown"),
        ("TYPESAFE_BASE_URL", uri.as_str()),
    ];
    // The service answers from a thread of its own.
    let asked = || home.doctor(&["--network"], &variables);
    let body = Response {
        model: "jev-7".to_owned(),
        answers: [("greeting".to_owned(), Answer::Noul { noul: 0.9 })].into(),
        usage: Usage::default(),
    };
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(200).set_body_json(body))
        .up_to_n_times(1)
        .mount(&service)
        .await;
    let (code, found) = asked();
    assert_eq!(code, 0, "{found}");
    has(&found, "ok       the System-One model answers (jev-7)");
    assert!(!home.path(".stretto").exists());

    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(401))
        .mount(&service)
        .await;
    let (code, found) = asked();
    assert_eq!(code, 1, "{found}");
    assert!(
        found.contains("problem  the System-One model does not answer: "),
        "{found}"
    );
    assert!(!found.contains("sk-never-shown"), "{found}");
}
