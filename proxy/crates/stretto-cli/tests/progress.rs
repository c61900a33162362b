//! Long work shows on a terminal how far it has come, and says nothing about it elsewhere.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something unexpected happens"
)]

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;

fn data(name: &str) -> String {
    let data: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../stretto-flow/tests/data")
        .join(name);
    data.to_str().unwrap().to_owned()
}

fn run(program: &mut Command, folder: &Path) -> Output {
    program
        .current_dir(folder)
        .env("STRETTO_REDACT_SALT", "pepper")
        .env("TERM", "xterm")
        .output()
        .unwrap()
}

#[test]
fn each_long_command_shows_its_progress_on_a_terminal_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (sessions, flow) = (data("sessions/logs/shop"), data("flows/shop.flow.json"));
    let stretto = assert_cmd::cargo::cargo_bin!("stretto");
    for (words, phrases) in [
        (
            format!("learn --sessions {sessions} --habit-only --out a.json"),
            ["reading sessions", "weighing short histories"],
        ),
        (
            format!("promote --sessions {sessions} --flow {flow} --out b.json"),
            ["reading sessions", "scoring"],
        ),
        (
            format!("audit --sessions {sessions} --flow {flow}"),
            ["reading sessions", "auditing"],
        ),
        (
            format!("redact --sessions {sessions} --out copies"),
            ["counting values", "writing copies"],
        ),
    ] {
        let mut terminal = Command::new("script");
        terminal
            .args(["--quiet", "--return", "--command"])
            .arg(format!("{} {words}", stretto.display()))
            .arg("/dev/null");
        let shown = run(&mut terminal, folder.path());
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        for phrase in phrases {
            assert!(shown.contains(phrase), "{words}: {shown:?}");
        }

        let mut piped = Command::new(stretto);
        let output = run(piped.args(words.split_whitespace()), folder.path());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{words}: {said}");
        for phrase in phrases {
            assert!(!said.contains(phrase), "{words}: {said:?}");
        }
        assert!(!said.contains(['\r', '\u{1b}']), "{words}: {said:?}");
    }
}
