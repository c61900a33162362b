//! What must not be seen, and what is refused before anything is sent.

use std::{path::Path, process::Command};

use serde_json::json;

use crate::{
    bare::Bare,
    host::{Demo, Host},
};

#[test]
fn the_value_of_a_header_goes_to_the_server_and_nowhere_else() {
    let demo = Demo::start(&["--require-auth", "Bearer t0ken-in-env"]);
    let mut host = Host::start(
        &[
            "--upstream",
            &demo.url,
            "--upstream-header",
            "Authorization=TEST_TOKEN",
        ],
        &[
            ("TEST_TOKEN", "Bearer t0ken-in-env"),
            ("STRETTO_LOG", "trace"),
        ],
    );
    assert!(host.open().get("result").is_some());
    let left = host.finish();
    assert!(
        !left.files.contains("t0ken") && !left.stderr.contains("t0ken"),
        "{}",
        left.stderr
    );

    let mut host = Host::before(&demo.url);
    host.ask(0, "initialize", json!({}));
    assert!(host.error(0).contains("HTTP 401 Unauthorized"));
}

#[test]
fn secrets_stay_hidden_when_things_go_wrong() {
    let refuses = Bare::start(|_, out| {
        out.send(
            "307 Temporary Redirect",
            "Location: http://127.0.0.1:9/?key=s3cr3t-key\r\n",
            "",
        )
    });
    let hangs_up = Bare::start(|_, out| out.hang_up());
    for url in [
        "http://127.0.0.1:9/mcp",
        "https://127.0.0.1:9/mcp",
        &refuses.url,
        &hangs_up.url,
    ] {
        let url = url.replace("://", "://us3r:p4ssword@") + "?api_key=s3cr3t-key";
        let mut host = Host::start(
            &[
                "--upstream",
                &url,
                "--upstream-header",
                "X-Token=TEST_TOKEN",
            ],
            &[("TEST_TOKEN", "t0ken-in-env"), ("STRETTO_LOG", "trace")],
        );
        host.ask(0, "initialize", json!({}));
        let error = host.error(0);
        host.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        let left = host.finish();
        assert_eq!(left.status.code(), Some(0));
        for secret in ["us3r", "p4ssword", "s3cr3t", "t0ken", "dXMzcjpwNHNzd29yZA"] {
            for place in [&left.files, &left.stderr, &error] {
                assert!(!place.contains(secret), "{secret} in {place}");
            }
        }
    }
}

/// A run of the proxy that must fail at once: its exit code, its stderr, and whether a log was left.
fn refused(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, bool) {
    let output = Command::new(env!("CARGO_BIN_EXE_stretto-proxy"))
        .arg("--record")
        .arg(folder)
        .args(arguments)
        .env("TEST_BAD", "two\nlines-s3cr3t")
        .output()
        .expect("the proxy starts");
    let has_log = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .next()
        .is_some();
    (
        output.status.code(),
        String::from_utf8(output.stderr).expect("text"),
        has_log,
    )
}

#[test]
fn what_cannot_be_served_is_refused_before_anything_is_sent() {
    let server = Bare::start(|_, out| out.send("200 OK", "", ""));
    let url = server.url.as_str();
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, names) in [
        (
            vec!["--upstream", "example.com/mcp"],
            "absolute http or https URL",
        ),
        (
            vec!["--upstream", "ftp://example.com/mcp"],
            "absolute http or https URL",
        ),
        (
            vec!["--upstream", url, "--upstream-header", "Authorization"],
            "NAME=VAR",
        ),
        (
            vec!["--upstream", url, "--upstream-header", "X-Key=TEST_NOT_SET"],
            "TEST_NOT_SET",
        ),
        (
            vec!["--upstream", url, "--upstream-header", "X-Key=TEST_BAD"],
            "X-Key",
        ),
        (
            vec![
                "--upstream",
                url,
                "--upstream-header",
                "Mcp-Session-Id=HOME",
            ],
            "Mcp-Session-Id",
        ),
        (
            vec!["--upstream", url, "--upstream-header", "Mcp-Param-A=HOME"],
            "Mcp-Param-A",
        ),
    ] {
        let (code, stderr, has_log) = refused(folder.path(), &arguments);
        assert_eq!(code, Some(125), "{arguments:?}");
        assert!(
            stderr.contains(names) && stderr.lines().count() == 1,
            "{stderr}"
        );
        assert!(!stderr.contains("s3cr3t") && !has_log, "{stderr}");
    }
    for arguments in [
        vec!["--upstream", url, "--", "cat"],
        vec!["--upstream-header", "X=HOME", "--", "cat"],
        vec!["--upstream", url, "--upstream", url],
        vec!["--upstream"],
        vec![],
    ] {
        let (code, _, has_log) = refused(folder.path(), &arguments);
        assert_eq!((code, has_log), (Some(2), false), "{arguments:?}");
    }
    assert!(server.seen().is_empty());
}
