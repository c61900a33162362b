//! `stretto redact`, run as people run it.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use assert_cmd::cargo::CommandCargoExt as _;
use serde_json::json;
use stretto_trace::mcp::{episode, read_logs, session_logs};
use tempfile::TempDir;

const VARIABLE: &str = "STRETTO_REDACT_SALT";

/// Recorded sessions that the trace reader's tests have, too.
fn recorded(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../stretto-trace/tests/data")
        .join(part)
}

fn redact(sessions: &Path, out: &Path, salt: Option<&str>, options: &[&str]) -> Output {
    let mut command = Command::cargo_bin("stretto").unwrap();
    command
        .arg("redact")
        .arg("--sessions")
        .arg(sessions)
        .arg("--out")
        .arg(out)
        .args(options)
        .env_remove(VARIABLE);
    if let Some(salt) = salt {
        command.env(VARIABLE, salt);
    }
    command.output().unwrap()
}

/// The one line of an error.
fn said(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"");
    String::from_utf8(output.stderr.clone())
        .unwrap()
        .strip_suffix('\n')
        .unwrap()
        .to_owned()
}

/// A directory of logs with the given sessions and server commands.
fn directory(logs: &[(&str, &str, &[&str])]) -> TempDir {
    let directory = TempDir::new().unwrap();
    for (file, session, command) in logs {
        let header = json!({"stretto_mcp_log": 2, "session": session, "started_unix_ms": 0, "server_command": command});
        let entry = json!({"t_ms": 1, "from": "client", "message": {"id": 1, "method": "tools/call",
            "params": {"name": "look", "arguments": {"id": format!("id of {file}")}}}});
        fs::write(directory.path().join(file), format!("{header}\n{entry}\n")).unwrap();
    }
    directory
}

#[test]
fn each_session_has_a_copy_and_nothing_else_does() {
    let out = TempDir::new().unwrap();
    let copies = out.path().join("deep/er");
    let output = redact(&recorded("demo-shop"), &copies, Some("pepper"), &[]);
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(report.starts_with("4 sessions redacted into "), "{report}");

    let originals = read_logs(&recorded("demo-shop")).unwrap();
    let read = read_logs(&copies).unwrap();
    assert_eq!(fs::read_dir(&copies).unwrap().count(), 4);
    for (original, copy) in originals.iter().zip(&read) {
        assert_eq!(original.header, copy.header);
        assert_eq!(
            episode(original).tool_calls().count(),
            episode(copy).tool_calls().count()
        );
        assert_ne!(original.entries, copy.entries);
    }
    let text = |directory: &Path| -> Vec<String> {
        session_logs(directory)
            .unwrap()
            .iter()
            .map(|log| fs::read_to_string(log).unwrap())
            .collect()
    };
    let first = text(&copies);
    assert!(!first.concat().contains("c61@example.com"));
    // Again, and with another salt.
    assert!(
        redact(&recorded("demo-shop"), &copies, Some("pepper"), &[])
            .status
            .success()
    );
    assert_eq!(text(&copies), first);
    assert!(
        redact(&recorded("demo-shop"), &copies, Some("mint"), &[])
            .status
            .success()
    );
    assert_ne!(text(&copies), first);
}

#[test]
fn fields_are_hashed_however_common_they_are() {
    let out = TempDir::new().unwrap();
    let options = [
        "--keep-shared",
        "1",
        "--hash-field",
        "reason,status",
        "--hash-field",
        "email",
    ];
    assert!(
        redact(&recorded("demo-shop"), out.path(), Some("pepper"), &options)
            .status
            .success()
    );
    let copies: String = session_logs(out.path())
        .unwrap()
        .iter()
        .map(|log| fs::read_to_string(log).unwrap())
        .collect();
    for (word, stays) in [
        ("c61@example.com", false),
        ("#W61a", true),
        ("user_41", true),
    ] {
        assert_eq!(copies.contains(word), stays, "{word}");
    }
    // What the server says of its tools stays, and so do their names.
    let left = copies
        .replace("cancel_pending_order", "")
        .replace("Cancel a pending order", "");
    assert!(copies.contains("cancel_pending_order") && !left.contains("pending"));
}

#[test]
fn commands_are_kept_with_a_warning_or_left_out() {
    let sessions = directory(&[("a.jsonl", "a", &["/home/ann/server"])]);
    let out = TempDir::new().unwrap();
    let output = redact(sessions.path(), out.path(), Some("pepper"), &[]);
    assert!(output.status.success());
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(
        warning.starts_with("stretto: warning: ") && warning.contains("--drop-command"),
        "{warning}"
    );
    let output = redact(
        sessions.path(),
        out.path(),
        Some("pepper"),
        &["--drop-command"],
    );
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(0), &b""[..])
    );
    assert!(
        read_logs(out.path()).unwrap()[0]
            .header
            .server_command
            .is_empty()
    );
}

#[test]
fn what_cannot_be_done_is_one_line_and_leaves_nothing() {
    let sessions = directory(&[("a.jsonl", "a", &[]), ("b.jsonl", "b", &[])]);
    let parent = TempDir::new().unwrap();
    let out = parent.path().join("out");
    let said = |sessions: &Path, salt| said(&redact(sessions, &out, salt, &[]));

    let unset =
        "stretto: the variable STRETTO_REDACT_SALT is not set; it must hold the salt of the hashes";
    assert_eq!(said(sessions.path(), None), unset);
    assert!(said(sessions.path(), Some("")).contains("is empty"));
    assert!(
        said(parent.path(), Some("s"))
            .contains(" has no session logs (files that end in .jsonl); record")
    );

    let same = directory(&[("a.jsonl", "x", &[]), ("b.jsonl", "x", &[])]);
    assert!(said(same.path(), Some("s")).ends_with("are both of the session x; keep one"));
    let odd = directory(&[("a.jsonl", "../x", &[])]);
    assert!(
        said(odd.path(), Some("s")).ends_with("is called \"../x\", which can be no file's name")
    );

    let broken = sessions.path().join("c.jsonl");
    fs::write(&broken, "not a log\n").unwrap();
    let words = said(sessions.path(), Some("s"));
    assert!(
        words.contains("c.jsonl: line 1 is not a session log's header: "),
        "{words}"
    );
    assert!(!out.exists());

    fs::remove_file(&broken).unwrap();
    let output = redact(sessions.path(), sessions.path(), Some("s"), &[]);
    assert!(self::said(&output).contains("--out is the directory of the sessions themselves"));
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    let sessions = directory(&[("a.jsonl", "a", &[])]);
    for options in [
        &["--keep-shared", "0"][..],
        &["--keep-shared", "-1"],
        &["--no-such"],
    ] {
        let output = redact(sessions.path(), sessions.path(), Some("s"), options);
        assert_eq!(output.status.code(), Some(2), "{options:?}");
    }
}

#[test]
fn a_field_that_nobody_has_is_warned_about() {
    let out = TempDir::new().unwrap();
    let options = ["--hash-field", "email,emial,user_id"];
    let output = redact(&recorded("demo-shop"), out.path(), Some("pepper"), &options);
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "stretto: warning: no call and no result has a member emial, so --hash-field did nothing for \
         it\n"
    );
}
