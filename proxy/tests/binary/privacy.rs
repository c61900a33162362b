//! Secrets are in no file and no message.

use std::{fs, path::Path};

use walkdir::WalkDir;

use crate::support::Proxy;

/// Stands for a secret, and for nothing else.
const CANARY: &str = "c4nary-5ecret";

fn holds_canary(folder: &Path) -> Vec<String> {
    WalkDir::new(folder)
        .into_iter()
        .map(|entry| entry.unwrap())
        .filter(|entry| {
            let name = entry.path().to_string_lossy().contains(CANARY);
            name || fs::read(entry.path())
                .is_ok_and(|text| String::from_utf8_lossy(&text).contains(CANARY))
        })
        .map(|entry| entry.path().display().to_string())
        .collect()
}

/// Runs a short session with more said on stderr than usual.
fn runs_without_a_trace(words: &[String]) -> Vec<String> {
    let command = ["sh", "-c", "cat; exit 0", "server"].map(String::from);
    let mut session = Proxy::recording()
        .env("SERVICE_API_KEY", CANARY)
        .env("STRETTO_LOG", "trace")
        .before_server(command.iter().chain(words));
    session.send("{\"id\":1,\"method\":\"ping\"}\n");
    session.close_input();
    session.rest();
    assert_eq!(session.code(), 0);
    let messages = session.messages();
    assert!(!messages.contains(CANARY), "{words:?}: {messages}");
    let found = holds_canary(session.folder());
    assert!(found.is_empty(), "{words:?} is in {found:?}");
    session
        .recorded()
        .header
        .server_command
        .split_off(command.len())
}

#[test]
fn a_secret_among_the_servers_words_is_shown_nowhere() {
    for (words, shown) in [
        (vec!["--api-key", "{}"], vec!["--api-key", "<redacted>"]),
        (vec!["--token={}"], vec!["--token=<redacted>"]),
        (vec!["GITHUB_TOKEN={}"], vec!["GITHUB_TOKEN=<redacted>"]),
        (
            vec!["--header", "Authorization: Bearer {}"],
            vec!["--header", "<redacted>"],
        ),
        (
            vec!["--header", "X-Api-Key: {}"],
            vec!["--header", "X-Api-Key: <redacted>"],
        ),
        (
            vec!["https://h/mcp?access_token={}"],
            vec!["https://h/mcp?access_token=<redacted>"],
        ),
        (vec!["https://me:{}@h/mcp"], vec!["https://h/mcp"]),
        (
            vec!["https://h/mcp?a=1&api_key={}#x"],
            vec!["https://h/mcp?a=1&api_key=<redacted>#x"],
        ),
        (
            vec!["--no-auth", "--port", "8080"],
            vec!["--no-auth", "--port", "8080"],
        ),
    ] {
        let words: Vec<String> = words
            .iter()
            .map(|word| word.replace("{}", CANARY))
            .collect();
        assert_eq!(runs_without_a_trace(&words), shown);
    }
}

#[test]
fn a_server_that_cannot_be_started_is_named_without_its_arguments() {
    let mut session = Proxy::recording()
        .env("SERVICE_API_KEY", CANARY)
        .env("STRETTO_LOG", "trace")
        .before_server(["./no-such-server", "--api-key", CANARY]);
    assert_eq!(session.code(), 125);
    let messages = session.messages();
    assert!(messages.contains("no-such-server"), "{messages}");
    assert!(!messages.contains(CANARY), "{messages}");
    assert!(holds_canary(session.folder()).is_empty());
}

#[test]
fn a_log_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;

    let mut session = Proxy::recording().after("umask 0").before_server(["true"]);
    assert_eq!(session.code(), 0);
    let mode = fs::metadata(session.recorded().path)
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}
