//! The command line: usage errors, configuration errors, help.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
};

use crate::support::{Proxy, Session};

fn with_options(options: &[&str]) -> Proxy {
    let options = options.iter().copied();
    options.fold(Proxy::forwarding(), Proxy::option)
}

fn printed(option: &str) -> String {
    let mut session = with_options(&[option]).without_server();
    let text = String::from_utf8(session.rest()).unwrap();
    assert_eq!(session.code(), 0);
    assert_eq!(session.messages(), "");
    text
}

#[test]
fn the_version_is_the_packages() {
    assert_eq!(
        printed("--version"),
        format!("stretto-proxy {}\n", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(printed("-V"), printed("--version"));
}

#[test]
fn the_help_says_what_there_is_to_say() {
    insta::assert_snapshot!(printed("--help"));
}

#[test]
fn a_usage_error_is_2_and_starts_and_prunes_nothing() {
    let server = ["--", "sh", "-c", "echo started >started"];
    for options in [
        &["--no-such-option"][..],
        &["word"],
        &["--record"],
        &["--record", "a", "--record", "b"],
        &["--domain", "a", "--domain", "b"],
        &["--agent-model", "a", "--agent-model", "b"],
        &["--oracle-cache", "a", "--oracle-cache", "b"],
        &["--retain-days", "-1"],
        &["--retain-days", "1.5"],
        &["--retain-days", "many"],
        &["--retain-days", "18446744073709551616"],
        &["--retain-days", ""],
        &["--retain-days", "0", "--retain-days", "0"],
    ] {
        let words = [
            &["--retain-days", "0", "--record", "logs"][..],
            options,
            &server,
        ]
        .concat();
        // Each once; those that are about the same options bring their own.
        let words = if options
            .iter()
            .any(|word| ["--record", "--retain-days"].contains(word))
        {
            [options, &server].concat()
        } else {
            words
        };
        is_a_usage_error(&words);
    }
}

#[test]
fn without_a_server_there_is_nothing_to_do() {
    for words in [
        &[][..],
        &["--"],
        &["--record", "logs"],
        &["--record", "logs", "--"],
    ] {
        is_a_usage_error(words);
    }
}

fn is_a_usage_error(words: &[&str]) {
    let proxy = with_options(words);
    fs::create_dir(proxy.folder().join("logs")).unwrap();
    fs::write(proxy.folder().join("logs/old.jsonl"), "x").unwrap();
    let mut session = proxy.without_server();
    assert_eq!(session.rest(), b"", "{words:?}");
    assert_eq!(session.code(), 2, "{words:?}");
    assert_ne!(session.messages(), "", "{words:?}");
    let files: Vec<_> = fs::read_dir(session.folder())
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    assert_eq!(files, ["logs"], "{words:?}");
    assert!(
        session.folder().join("logs/old.jsonl").exists(),
        "{words:?}"
    );
}

/// Ends with one line, and returns it without the prefix.
fn fails(session: &mut Session) -> String {
    assert_eq!(session.rest(), b"");
    assert_eq!(session.code(), 125);
    let messages = session.messages();
    assert_eq!(messages.lines().count(), 1, "{messages}");
    let message = messages
        .trim_end()
        .strip_prefix("stretto-proxy: ")
        .expect("the prefix");
    message.to_owned()
}

#[test]
fn a_server_that_cannot_be_started_leaves_an_empty_folder() {
    for server in ["no-such-server-anywhere", "./missing", "./plain.txt", "."] {
        let proxy = Proxy::recording();
        fs::write(proxy.folder().join("plain.txt"), "no program").unwrap();
        let mut session = proxy.before_server([server]);
        let message = fails(&mut session);
        assert!(
            message.starts_with(&format!("starting {server}: ")),
            "{message}"
        );
        assert_eq!(
            fs::read_dir(session.folder().join("logs")).unwrap().count(),
            0,
            "{server}"
        );
    }
}

#[test]
fn a_folder_of_logs_that_cannot_be_made_is_named() {
    let proxy = Proxy::forwarding().option("--record").option("file/logs");
    fs::write(proxy.folder().join("file"), "in the way").unwrap();
    let message = fails(&mut proxy.before_server(["cat"]));
    assert!(message.starts_with("creating file/logs: "), "{message}");
}

#[test]
fn a_log_that_cannot_be_made_is_named() {
    let message = fails(
        &mut Proxy::forwarding()
            .option("--record")
            .option("/proc")
            .before_server(["cat"]),
    );
    assert!(message.starts_with("creating /proc/"), "{message}");
}

#[test]
fn a_header_that_cannot_be_written_leaves_no_log() {
    let proxy = Proxy::recording().after("ulimit -f 0");
    let logs = proxy.logs();
    let mut session = proxy.before_server(["cat"]);
    let message = fails(&mut session);
    assert_eq!(fs::read_dir(&logs).unwrap().count(), 0);
    assert!(
        message.starts_with(&format!("writing {}/", logs.display())),
        "{message}"
    );
}

#[test]
fn the_header_says_what_session_it_is() {
    let mut session = Proxy::recording()
        .option("--domain=orders")
        .option("--agent-model")
        .option("a model")
        .before_server(["sh", "-c", "true", "--help"]);
    assert_eq!(session.code(), 0);
    let log = session.recorded();
    let stem = log.path.file_stem().unwrap().to_str().unwrap();
    assert_eq!(log.header.session, stem);
    let first = log.text.lines().next().unwrap();
    assert_eq!(
        first,
        format!(
            "{{\"stretto_mcp_log\":2,\"session\":\"{stem}\",\"started_unix_ms\":{},\"server_command\":[\"sh\",\"-c\",\"true\",\"--help\"],\"domain\":\"orders\",\"agent_model\":\"a model\"}}",
            log.header.started_unix_ms
        )
    );
    let message = session.messages();
    assert_eq!(
        message,
        format!("stretto-proxy: recording to {}\n", log.path.display())
    );
    let (_, process) = stem.rsplit_once('-').unwrap();
    assert!(
        process.parse::<u32>().is_ok(),
        "{stem} ends with a process id"
    );
}

#[test]
fn a_header_without_domain_and_model_says_null() {
    let mut session = Proxy::recording().before_server(["true"]);
    assert_eq!(session.code(), 0);
    let text = session.recorded().text;
    assert!(
        text.contains(r#""server_command":["true"],"domain":null,"agent_model":null}"#),
        "{text}"
    );
}

#[test]
fn a_leading_tilde_is_the_home_directory() {
    for (home, record, folder) in [
        ("home", "~/logs", "home/logs"),
        ("home", "~", "home"),
        ("home", "~name/logs", "~name/logs"),
        ("home", "x/~", "x/~"),
        ("", "~/logs", "~/logs"),
    ] {
        let proxy = Proxy::forwarding();
        let home = if home.is_empty() {
            home.into()
        } else {
            proxy.folder().join(home)
        };
        let mut session = proxy
            .env("HOME", home)
            .env("USERPROFILE", "")
            .option("--record")
            .option(record)
            .before_server(["true"]);
        assert_eq!(session.code(), 0);
        let logs = fs::read_dir(session.folder().join(folder)).expect(record);
        assert_eq!(logs.count(), 1, "{record}");
    }
}

#[test]
fn without_a_home_directory_the_users_profile_is_one() {
    let mut session = Proxy::forwarding()
        .env("HOME", "")
        .env("USERPROFILE", "profile")
        .option("--record")
        .option("~/logs")
        .before_server(["true"]);
    assert_eq!(session.code(), 0);
    assert_eq!(
        fs::read_dir(session.folder().join("profile/logs"))
            .unwrap()
            .count(),
        1
    );
}

#[test]
fn a_word_that_is_no_text_reaches_the_server_as_it_is() {
    let odd = OsStr::from_bytes(b"\xff\xfe~/x");
    let mut session = Proxy::recording().before_server(
        ["sh", "-c", "printf '%s\\n' \"$1\"", "sh"]
            .map(OsStr::new)
            .into_iter()
            .chain([odd]),
    );
    assert_eq!(session.line().unwrap(), b"\xff\xfe~/x\n");
    assert_eq!(session.code(), 0);
    let shown = session.recorded().header.server_command;
    assert_eq!(shown.last().unwrap(), "\u{fffd}\u{fffd}~/x");
}

#[test]
fn a_script_with_its_own_first_line_is_started() {
    let proxy = Proxy::forwarding();
    let script = proxy.folder().join("server");
    fs::write(&script, "#!/bin/sh\necho hello\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let mut session = proxy.before_server(["./server"]);
    assert_eq!(session.text(), "hello");
    assert_eq!(session.code(), 0);
}
