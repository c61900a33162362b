//! `--retain-days` deletes old logs and answers before a session starts.

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::support::Proxy;

const DAY: Duration = Duration::from_hours(24);

fn put(path: PathBuf, age: Duration) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "x").unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
    path
}

/// Runs a session that ends at once, and returns what was said.
fn messages_of(proxy: Proxy) -> (String, Vec<String>) {
    let mut session = proxy.before_server(["true"]);
    assert_eq!(session.code(), 0);
    (session.messages(), left(session.folder()))
}

/// The files below a folder, session logs with names of their own time apart.
fn left(folder: &Path) -> Vec<String> {
    let mut files: Vec<String> = walkdir::WalkDir::new(folder)
        .into_iter()
        .map(|entry| entry.unwrap())
        .filter(|entry| !entry.file_type().is_dir())
        .map(|entry| {
            entry
                .path()
                .strip_prefix(folder)
                .unwrap()
                .display()
                .to_string()
        })
        .map(|file| {
            if file.starts_with("logs/20") {
                "logs/SESSION".into()
            } else {
                file
            }
        })
        .collect();
    files.sort();
    files
}

#[test]
fn old_logs_and_answers_are_deleted_in_both_folders_and_nothing_else() {
    let proxy = Proxy::recording().option("--retain-days").option("30");
    let (logs, answers) = (
        proxy.logs(),
        proxy.folder().join("home/.stretto/oracle-cache"),
    );
    for file in [
        "a.jsonl",
        "a.flow.jsonl",
        "a.confirm.jsonl",
        "deep/down/b.jsonl",
    ] {
        put(logs.join(file), 31 * DAY);
    }
    put(answers.join("ab/abc.json"), 31 * DAY);
    for file in ["young.jsonl", "deep/young.json"] {
        put(logs.join(file), 29 * DAY);
    }
    for file in [
        "notes.txt",
        "shop.flow.json",
        "shop.arbiter.json",
        "a.jsonl.gz",
    ] {
        put(logs.join(file), 31 * DAY);
    }
    let (messages, left) = messages_of(proxy);
    assert_eq!(
        left,
        [
            "logs/SESSION",
            "logs/a.jsonl.gz",
            "logs/deep/young.json",
            "logs/notes.txt",
            "logs/shop.arbiter.json",
            "logs/shop.flow.json",
            "logs/young.jsonl",
        ]
    );
    let lines: Vec<&str> = messages.lines().collect();
    assert!(
        lines[0].contains("recording to"),
        "first of all where the log is: {messages}"
    );
    assert!(
        lines[1].contains("pruned 4 files") && lines[1].contains("logs"),
        "{messages}"
    );
    assert!(
        lines[2].contains("pruned 1 file ") && lines[2].contains("oracle-cache"),
        "{messages}"
    );
    assert_eq!(lines.len(), 3);
}

#[test]
fn zero_days_delete_all_but_the_sessions_own_log() {
    let proxy = Proxy::recording().option("--retain-days").option("0");
    put(proxy.logs().join("a.jsonl"), Duration::from_secs(1));
    put(proxy.logs().join("b.jsonl"), Duration::from_secs(100));
    let (_, left) = messages_of(proxy);
    assert_eq!(left, ["logs/SESSION"]);
}

#[test]
fn nothing_to_delete_is_nothing_to_say() {
    for days in ["0", "7", "18446744073709551615"] {
        let proxy = Proxy::forwarding().option("--retain-days").option(days);
        let (messages, _) = messages_of(proxy);
        assert_eq!(messages, "");
    }
    let proxy = Proxy::recording()
        .option("--retain-days")
        .option("18446744073709551615");
    put(proxy.logs().join("a.jsonl"), 20_000 * DAY);
    let (messages, left) = messages_of(proxy);
    assert_eq!(left, ["logs/SESSION", "logs/a.jsonl"]);
    assert_eq!(messages.lines().count(), 1, "{messages}");
}

#[test]
fn links_stay_and_what_they_point_to_stays() {
    let proxy = Proxy::recording().option("--retain-days").option("1");
    let outside = proxy.folder().join("outside");
    put(outside.join("a.jsonl"), 3 * DAY);
    put(proxy.logs().join("old.jsonl"), 3 * DAY);
    symlink(&outside, proxy.logs().join("folder")).unwrap();
    symlink(outside.join("a.jsonl"), proxy.logs().join("link.jsonl")).unwrap();
    let (_, left) = messages_of(proxy);
    assert_eq!(
        left,
        [
            "logs/SESSION",
            "logs/folder",
            "logs/link.jsonl",
            "outside/a.jsonl"
        ]
    );
}

#[test]
fn a_folder_that_is_a_link_is_followed() {
    let proxy = Proxy::recording().option("--retain-days").option("1");
    let real = proxy.folder().join("real");
    put(real.join("old.jsonl"), 3 * DAY);
    symlink(&real, proxy.logs()).unwrap();
    let mut session = proxy.before_server(["true"]);
    assert_eq!(session.code(), 0);
    assert_eq!(
        fs::read_dir(real).unwrap().count(),
        1,
        "the session's own log"
    );
}

#[test]
fn a_file_in_a_folders_place_is_said_once_and_the_session_goes_on() {
    let proxy = Proxy::recording()
        .option("--retain-days")
        .option("1")
        .option("--oracle-cache")
        .option("answers");
    put(proxy.folder().join("answers"), 3 * DAY);
    put(proxy.logs().join("old.jsonl"), 3 * DAY);
    let (messages, left) = messages_of(proxy);
    assert_eq!(left, ["answers", "logs/SESSION"]);
    assert_eq!(messages.matches("pruning answers").count(), 1, "{messages}");
    assert_eq!(messages.matches("pruned 1 file ").count(), 1, "{messages}");
}
