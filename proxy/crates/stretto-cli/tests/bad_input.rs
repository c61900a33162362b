//! What cannot be read or written: one line says what happened, to what, and what to do, and no
//! file is left half written.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something unexpected happens"
)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use tempfile::TempDir;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../stretto-flow/tests/data")
        .join(name)
}

/// A folder with `sessions`, six recorded ones, and a `flow` to judge by them.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let sessions = folder.path().join("sessions");
    fs::create_dir(&sessions).unwrap();
    for file in fs::read_dir(data("sessions/logs/shop")).unwrap() {
        let path = file.unwrap().path();
        fs::copy(&path, sessions.join(path.file_name().unwrap())).unwrap();
    }
    fs::copy(data("flows/shop.flow.json"), folder.path().join("flow")).unwrap();
    folder
}

fn stretto(folder: &Path, words: &str) -> Output {
    Command::cargo_bin("stretto")
        .unwrap()
        .args(words.split_whitespace())
        .current_dir(folder)
        .env("STRETTO_REDACT_SALT", "pepper")
        .env_remove("TYPESAFE_API_KEY")
        .env_remove("TYPESAFE_API_KEY_FILE")
        .output()
        .unwrap()
}

/// The one line that a command says when it fails, and its exit code.
fn refusal(folder: &Path, words: &str) -> (i32, String) {
    let output = stretto(folder, words);
    let said = String::from_utf8(output.stderr).unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(out, "", "{words}");
    let line = said
        .strip_prefix("stretto: ")
        .unwrap_or_else(|| panic!("{words}: {said}"));
    let line = line.strip_suffix('\n').unwrap();
    assert!(!line.contains('\n'), "{words}: {said}");
    (output.status.code().unwrap(), line.to_owned())
}

/// Every command that reads a folder of sessions; those that write do so to `out`.
const READERS: [&str; 6] = [
    "learn --sessions sessions --domain shop --habit-only --out out",
    "promote --sessions sessions --flow flow --out out",
    "audit --sessions sessions --flow flow --json out",
    "guards --sessions sessions --out out",
    "confirm --sessions sessions --oracle mock --out out",
    "redact --sessions sessions --out out",
];

/// Changes the sessions, and returns how every reader must refuse them.
type Spoil = (fn(&Path), &'static str);

/// The first session's log.
fn first(sessions: &Path) -> PathBuf {
    sessions.join("20260928T020400.548Z-14457.jsonl")
}

fn rewrite(file: &Path, change: impl Fn(String) -> Vec<u8>) {
    let text = fs::read_to_string(file).unwrap();
    fs::write(file, change(text)).unwrap();
}

#[test]
fn sessions_that_cannot_be_read_are_named_and_nothing_is_written() {
    let spoils: [Spoil; 10] = [
        (
            |sessions| fs::remove_dir_all(sessions).unwrap(),
            "reading sessions: No such file or directory (os error 2)",
        ),
        (
            |sessions| {
                fs::remove_dir_all(sessions).unwrap();
                fs::write(sessions, "").unwrap();
            },
            "reading sessions: Not a directory (os error 20)",
        ),
        (
            |sessions| {
                fs::remove_dir_all(sessions).unwrap();
                fs::create_dir(sessions).unwrap();
                fs::write(sessions.join("s.flow.jsonl"), "{}\n").unwrap();
            },
            "sessions has no session logs (files that end in .jsonl); record some with \
             stretto-proxy --record sessions",
        ),
        (
            |sessions| {
                let below = sessions.with_file_name("below");
                fs::rename(sessions, &below).unwrap();
                fs::create_dir(sessions).unwrap();
                fs::rename(below, sessions.join("july")).unwrap();
            },
            "sessions has no session logs (files that end in .jsonl) itself; name a folder in it \
             that has some, such as sessions/july",
        ),
        (
            |sessions| fs::write(sessions.join("other.jsonl"), "{\"a\": 1}\n").unwrap(),
            "parsing sessions/other.jsonl: line 1 is not a session log's header: it has no \
             `stretto_mcp_log`; leave out what is no session log",
        ),
        (
            |sessions| fs::write(sessions.join("other.jsonl"), "").unwrap(),
            "parsing sessions/other.jsonl: the file is empty: it has no header; leave it out",
        ),
        (
            |sessions| {
                rewrite(&first(sessions), |text| {
                    text.replacen("\"stretto_mcp_log\":2", "\"stretto_mcp_log\":3", 1)
                        .into_bytes()
                });
            },
            "parsing sessions/20260928T020400.548Z-14457.jsonl: line 1: a log of version 3; versions \
             1 and 2 can be read, so read it with the release that recorded it",
        ),
        (
            |sessions| {
                rewrite(&first(sessions), |text| {
                    text.replacen("\n{\"t_ms\"", "\n{t_ms", 1).into_bytes()
                });
            },
            "parsing sessions/20260928T020400.548Z-14457.jsonl: line 2 is not a log entry: key must be \
             a string at column 2; mend the line, or leave the file out",
        ),
        (
            |sessions| {
                rewrite(&first(sessions), |text| {
                    [text.as_bytes(), b"\xff\n"].concat()
                });
            },
            "parsing sessions/20260928T020400.548Z-14457.jsonl: line 21 is not a log entry: it is not \
             UTF-8 after its first 0 bytes; mend the line, or leave the file out",
        ),
        (
            |sessions| symlink("loop.jsonl", sessions.join("loop.jsonl")).unwrap(),
            "reading sessions/loop.jsonl: Too many levels of symbolic links (os error 40)",
        ),
    ];
    for (spoil, wanted) in spoils {
        let folder = folder();
        spoil(&folder.path().join("sessions"));
        for words in READERS {
            assert_eq!(
                refusal(folder.path(), words),
                (1, wanted.to_owned()),
                "{words}"
            );
            assert!(!folder.path().join("out").exists(), "{words}");
        }
    }
}

#[test]
fn what_lies_beside_sessions_is_passed_over() {
    let folder = folder();
    let sessions = folder.path().join("sessions");
    for (name, text) in [
        ("a.flow.jsonl", "junk"),
        ("a.confirm.jsonl", "junk"),
        ("notes.txt", "junk"),
        ("outcomes.tsv", "junk"),
    ] {
        fs::write(sessions.join(name), text).unwrap();
    }
    fs::create_dir(sessions.join("folder.jsonl")).unwrap();
    // Its proxy was killed while it wrote the last line.
    rewrite(&first(&sessions), |mut text| {
        text.truncate(text.len() - 20);
        text.into_bytes()
    });
    // The shop has no guards.
    for words in READERS
        .iter()
        .filter(|words| !words.starts_with("guards") && !words.starts_with("confirm"))
    {
        let output = stretto(folder.path(), words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{words}: {said}");
        let out = folder.path().join("out");
        if out.is_dir() {
            assert_eq!(fs::read_dir(&out).unwrap().count(), 6, "{words}");
        } else {
            fs::remove_file(out).unwrap();
        }
    }
}

/// Commands that write a file, and what comes before its name.
const WRITERS: [&str; 9] = [
    "learn --sessions sessions --domain shop --habit-only --out",
    "learn --sessions sessions --domain shop --habit-only --cross-validate 2 --json",
    "learn --sessions sessions --domain shop --oracle mock --out flow --oracle-dump",
    "promote --sessions sessions --flow flow --out",
    "audit --sessions sessions --flow flow --json",
    "guards --sessions sessions --json",
    "confirm --sessions sessions --oracle mock --out",
    "compile --tau2 . --domain retail --habit-only --out",
    "redact --sessions sessions --out",
];

#[test]
fn where_nothing_can_be_written_is_told_before_anything_is_read() {
    for (place, why) in [
        (
            "none/out",
            "No such file or directory (os error 2); make its folder first, or name another place",
        ),
        (
            "flow/out",
            "Not a directory (os error 20); name a place in a folder",
        ),
        (
            "closed/out",
            "Permission denied (os error 13); name a place where you may write",
        ),
    ] {
        let folder = folder();
        let closed = folder.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).unwrap();
        // Who may write everywhere is refused nothing.
        if place == "closed/out" && fs::write(closed.join("probe"), "").is_ok() {
            continue;
        }
        // Whatever reads the sessions first would stumble over this.
        fs::write(folder.path().join("sessions/bad.jsonl"), "junk").unwrap();
        for words in WRITERS {
            // It makes the folders that are missing, and says of a file that it is none.
            let wanted = match (words.starts_with("redact"), place) {
                (true, "none/out") => continue,
                (true, "flow/out") => {
                    format!("writing {place}: not a directory; name a place in a folder")
                }
                _ => format!("writing {place}: {why}"),
            };
            let (code, said) = refusal(folder.path(), &format!("{words} {place}"));
            assert_eq!((code, said), (1, wanted), "{words}");
        }
    }
}

#[test]
fn a_file_that_cannot_be_finished_leaves_the_old_one() {
    let folder = folder();
    let limited = |words: &str, bytes: u64| {
        // A disk that is full in the middle of a file.
        Command::new("bash")
            .args(["-c", "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\""])
            .arg((bytes / 1024).to_string())
            .arg(assert_cmd::cargo::cargo_bin!("stretto"))
            .args(words.split_whitespace())
            .current_dir(folder.path())
            .env("STRETTO_REDACT_SALT", "pepper")
            .output()
            .unwrap()
    };
    for words in [
        "learn --sessions sessions --domain shop --habit-only --out old",
        "promote --sessions sessions --flow flow --out old",
    ] {
        fs::write(folder.path().join("old"), "what was there").unwrap();
        let output = limited(words, 1024);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words}: {said}");
        assert_eq!(
            said,
            "stretto: writing old: File too large (os error 27); make room, or name a place that has some\n",
            "{words}"
        );
        assert_eq!(
            fs::read_to_string(folder.path().join("old")).unwrap(),
            "what was there"
        );
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            3,
            "{words}: nothing lies beside it"
        );
    }
    let output = limited("redact --sessions sessions --out copies", 4096);
    assert_eq!(output.status.code(), Some(1));
    for copy in fs::read_dir(folder.path().join("copies")).unwrap() {
        let copy = copy.unwrap().path();
        assert!(
            stretto_trace::mcp::read_log(&copy).is_ok_and(|log| !log.is_cut_off),
            "{}",
            copy.display()
        );
    }
}

#[test]
fn files_of_the_wrong_kind_or_of_another_version_are_named() {
    let folder = folder();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("junk", "junk\n");
    write("later", r#"{"stretto_flow": 9, "stretto_arbiter": 9}"#);
    write("arbiter", r#"{"stretto_arbiter": 9}"#);
    write("results", r#"{"info": {}, "simulations": []}"#);
    write("rewards.tsv", "session\treward\na\tmuch\n");
    write("commas.csv", "session,reward\na,1\n");
    for (words, code, wanted) in [
        (
            "flow-show junk",
            1,
            "loading the flow junk: not a stretto flow: ",
        ),
        (
            "flow-show later",
            1,
            "loading the flow later: flow format 9 is not supported (this build reads 1 and 2)",
        ),
        (
            "flow-show none",
            1,
            "reading the flow none: No such file or directory",
        ),
        (
            "flow-diff flow later",
            2,
            "loading the flow later: flow format 9 is not supported",
        ),
        (
            "export-arbiter flow --out x",
            1,
            "exporting from flow: the flow has no arbiter",
        ),
        (
            "promote --flow junk --sessions sessions --out x",
            1,
            "loading the flow junk: not a stretto flow: ",
        ),
        (
            "audit --flow flow --sessions sessions --decider arbiter",
            1,
            "deciding by arbiter: ",
        ),
        (
            "learn --sessions sessions --domain shop --arbiter-from arbiter --out x",
            1,
            "loading arbiter: arbiter format 9 is not supported (this build reads 1)",
        ),
        (
            "learn --sessions sessions --domain shop --habit-only --rewards junk --out x",
            1,
            "junk is no object of rewards by session: ",
        ),
        (
            "learn --sessions sessions --domain shop --habit-only --manifest junk --out x",
            1,
            "junk is no manifest of tools: ",
        ),
        (
            "learn --sessions sessions --domain shop --habit-only --outcomes rewards.tsv --out x",
            1,
            "rewards.tsv:2: \"much\" is no reward from 0 to 1",
        ),
        (
            "promote --flow flow --sessions sessions --outcomes commas.csv --out x",
            1,
            "commas.csv:1: no column is named `session`; the first line names the columns, with a tab between two",
        ),
        (
            "evaluate --flow-log junk --target habit@0.3",
            1,
            "junk, line 1 is no line of a flow log: ",
        ),
        (
            "evaluate --flow-log later --target habit@0.3",
            1,
            "no decision in these flow logs has a policy; record with stretto-proxy --flow-explore",
        ),
        (
            "guards --source junk",
            1,
            "junk is no results file of τ²-bench: ",
        ),
        (
            "guards --source results",
            1,
            "results is no results file of τ²-bench: missing field `environment_info`",
        ),
        (
            "confirm --source junk --oracle mock",
            1,
            "junk is no results file of τ²-bench: ",
        ),
        (
            "compile --tau2 . --domain retail --habit-only --out x",
            1,
            "reading ./src/tau2/domains/retail/tools.py (--tau2 names a checkout of τ²-bench that has the domain): ",
        ),
        (
            "guards --tau2 .",
            1,
            "reading ./data/tau2/results/final (--tau2 names a checkout of τ²-bench): ",
        ),
        ("ask --oracle mock junk", 1, "junk is no request"),
        (
            "import-answers junk",
            1,
            "junk:1 is no line of stretto export-answers: ",
        ),
        (
            "guards --sessions sessions",
            1,
            "of 6 sessions none is of the domain airline or retail, but of shop; sessions are recorded with stretto-proxy --domain",
        ),
    ] {
        let (found, said) = refusal(folder.path(), words);
        assert!(said.starts_with(wanted), "{words}: {said}");
        assert_eq!(found, code, "{words}");
        assert!(!folder.path().join("x").exists(), "{words}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_trouble() {
    let folder = folder();
    for words in [
        "show sessions",
        "flow-show flow",
        "audit --sessions sessions --flow flow",
        "promote --sessions sessions --flow flow --out out",
    ] {
        let output = Command::new("bash")
            .args(["-c", "set -o pipefail; \"$@\" | true", "bash"])
            .arg(assert_cmd::cargo::cargo_bin!("stretto"))
            .args(words.split_whitespace())
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{words}: {said}");
        assert!(
            !said.contains("roken pipe") && !said.contains("panicked"),
            "{words}: {said}"
        );
    }
    // What was to be written is, whoever reads the report.
    assert!(folder.path().join("out").exists());
}
