//! `stretto init` and `stretto undo`, as a person runs them.

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something unexpected happens"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::{Value, json};

/// A home directory and a `PATH` of one folder, in which programs can be put.
struct Place(tempfile::TempDir);

struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for folder in ["home", "bin", "work"] {
            fs::create_dir(place.path(folder)).unwrap();
        }
        place.program("stretto-proxy", "#!/bin/sh\n");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        // The current directory is told without links.
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, words: &[&str]) -> Ran {
        let output = Command::cargo_bin("stretto")
            .unwrap()
            .args(words)
            .current_dir(self.path("work"))
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", self.path("bin"))
            .output()
            .unwrap();
        Ran {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn init(&self, words: &[&str]) -> Ran {
        let ran = self.run(&[&["init"], words].concat());
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.stderr);
        ran
    }

    /// The files of a folder, by name.
    fn files(&self, folder: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path(folder))
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn flow(name: &str) -> String {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stretto-flow/tests/data/flows");
    data.join(name).to_str().unwrap().to_owned()
}

fn entry<'a>(text: &str, holder: &'a mut Value, host: &str, name: &str) -> &'a Value {
    *holder = serde_json::from_str(text).unwrap();
    let container = if host == "vscode" {
        "servers"
    } else {
        "mcpServers"
    };
    &holder[container][name]
}

/// The documented shape of each host's file, as far as a server with a command goes.
fn check_shape(host: &str, file: &Value) {
    let container = if host == "vscode" {
        "servers"
    } else {
        "mcpServers"
    };
    let members: Vec<&String> = file.as_object().unwrap().keys().collect();
    assert_eq!(members, [container], "{host}");
    for (name, entry) in file[container].as_object().unwrap() {
        for (member, value) in entry.as_object().unwrap() {
            let is_right = match member.as_str() {
                "command" => value.as_str().is_some_and(|command| !command.is_empty()),
                "args" => value.as_array().unwrap().iter().all(Value::is_string),
                "type" => host == "vscode" && value == "stdio",
                _ => false,
            };
            assert!(is_right, "{host}: {member} of {name} is {value}");
        }
        assert!(entry["command"].is_string() && entry["args"].is_array());
        assert_eq!(entry.get("type").is_some(), host == "vscode");
    }
}

#[test]
fn every_host_gets_its_shape_and_no_file_is_touched() {
    let place = Place::new();
    for host in ["claude-desktop", "cursor", "vscode", "plain"] {
        let ran = place.init(&[
            "--host",
            host,
            "--domain",
            "orders",
            "--",
            "npx",
            "it's \"x\"",
        ]);
        check_shape(host, &serde_json::from_str(&ran.stdout).unwrap());
        let mut holder = Value::Null;
        let entry = entry(&ran.stdout, &mut holder, host, "orders");
        assert_eq!(
            entry["args"],
            json!([
                "--record",
                "~/.stretto/logs/orders",
                "--domain",
                "orders",
                "--",
                "npx",
                "it's \"x\""
            ])
        );
        let command = if host == "claude-desktop" {
            place.text("bin/stretto-proxy")
        } else {
            "stretto-proxy".to_owned()
        };
        assert_eq!(entry["command"], json!(command), "{host}");
        assert!(
            ran.stderr.contains("\nNext:\n  1. Put this into "),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(place.files("home"), Vec::<String>::new());
    assert_eq!(place.files("work"), Vec::<String>::new());
}

#[test]
fn claude_code_gets_a_command_that_a_shell_reads_back() {
    let place = Place::new();
    let ran = place.init(&[
        "--host",
        "claude-code",
        "--domain",
        "orders",
        "--",
        "npx",
        "a b",
        "it's",
        "",
    ]);
    assert_eq!(
        ran.stdout,
        "claude mcp add orders -- stretto-proxy --record ~/.stretto/logs/orders --domain orders -- \
         npx 'a b' 'it'\\''s' ''\n"
    );
}

#[test]
fn a_flow_is_served_by_what_it_has() {
    let place = Place::new();
    let shop = flow("shop.flow.json");
    let args = |words: &[&str]| {
        let ran =
            place.init(&[&["--host", "plain", "--flow", &shop], words, &["--", "s"]].concat());
        let file: Value = serde_json::from_str(&ran.stdout).unwrap();
        file["mcpServers"]["shop"]["args"].clone()
    };
    let given = std::path::absolute(&shop).unwrap();
    assert_eq!(
        args(&["--shadow"]),
        json!([
            "--record",
            "~/.stretto/shadow/shop",
            "--domain",
            "shop",
            "--flow",
            given,
            "--flow-decider",
            "reach",
            "--flow-shadow",
            "--",
            "s"
        ])
    );
    assert_eq!(
        args(&["--record", "logs"]),
        json!([
            "--record",
            place.text("work/logs"),
            "--domain",
            "shop",
            "--flow",
            given,
            "--flow-decider",
            "reach",
            "--",
            "s"
        ])
    );
}

#[test]
fn the_steps_lead_from_recording_to_a_served_flow() {
    let place = Place::new();
    let steps = |words: &[&str]| {
        let ran = place.init(&[&["--host", "cursor"], words, &["--", "npx", "a b"]].concat());
        ran.stderr
    };
    let recording = steps(&["--domain", "orders"]);
    for step in [
        "stretto learn --sessions ~/.stretto/logs/orders --domain orders --habit-only --out ~/.stretto/orders.flow.json",
        "stretto flow-show ~/.stretto/orders.flow.json",
        "stretto init --host cursor --domain orders --flow ~/.stretto/orders.flow.json --shadow -- npx 'a b'",
        "stretto promote --flow ~/.stretto/orders.flow.json --sessions ~/.stretto/shadow/orders --out ~/.stretto/orders-promoted.flow.json",
        "stretto init --host cursor --domain orders --flow ~/.stretto/orders-promoted.flow.json -- npx 'a b'",
    ] {
        assert!(
            recording.contains(&format!("     {step}\n")),
            "{step} is not in\n{recording}"
        );
    }
    let shop = flow("shop.flow.json");
    let shadow = steps(&["--flow", &shop, "--shadow"]);
    assert!(
        shadow.contains(" stretto promote ") && !shadow.contains(" stretto learn "),
        "{shadow}"
    );
    let serving = steps(&["--flow", &shop]);
    assert!(
        serving.contains(" stretto flow-diff ") && !serving.contains(" promote "),
        "{serving}"
    );
    assert!(!serving.contains(" --shadow "), "{serving}");
    let promoted = steps(&["--flow", &flow("shop.promoted.flow.json")]);
    let again =
        "stretto init --host cursor --domain shop --flow ~/.stretto/shop-new.flow.json --shadow";
    assert!(promoted.contains(again), "{promoted}");
    // What is learned next keeps the arbiter, if there is one.
    assert!(serving.contains(" --habit-only "), "{serving}");
    let asking = flow("retail-5-sessions-shipped-arbiter.flow.json");
    let serving = steps(&["--flow", &asking]);
    let learn = format!("--domain retail --arbiter-from {asking} --out ");
    assert!(serving.contains(&learn), "{serving}");
}

#[test]
fn a_file_that_is_there_is_never_overwritten() {
    let place = Place::new();
    let file = place.text("work/new/.vscode/mcp.json");
    let write = [
        "init", "--host", "vscode", "--domain", "orders", "--write", &file, "--", "s",
    ];
    assert_eq!(place.run(&write).code, 0);
    let written = fs::read_to_string(&file).unwrap();
    check_shape("vscode", &serde_json::from_str(&written).unwrap());
    let again = place.run(&write);
    assert_eq!(again.code, 1);
    assert!(
        again.stderr.contains("--merge") && again.stderr.contains("--wrap"),
        "{}",
        again.stderr
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), written);
    assert_eq!(place.files("work/new/.vscode"), ["mcp.json"]);

    let merge = [
        "init", "--host", "vscode", "--domain", "orders", "--merge", &file, "--", "s",
    ];
    let ran = place.run(&merge);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("--wrap orders"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap(), written);
}

#[test]
fn a_server_is_added_to_a_file_and_the_old_text_is_kept_beside_it() {
    let place = Place::new();
    let file = place.path("work/mcp.json");
    let old = "{\n  // mine\n  \"servers\": {\n    \"a\": { \"command\": \"a\" }, // first\n  }\n}";
    fs::write(&file, old).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let words = ["--host", "vscode", "--domain", "b", "--merge", "mcp.json"];
    let dry = place.init(&[&words[..], &["--dry-run", "--", "./s"]].concat());
    assert!(dry.stdout.contains("+    \"b\": {\n"), "{}", dry.stdout);
    assert_eq!(dry.stderr, "");
    assert_eq!(fs::read_to_string(&file).unwrap(), old);
    assert_eq!(place.files("work"), ["mcp.json"]);

    place.init(&[&words[..], &["--", "./s"]].concat());
    let new = fs::read_to_string(&file).unwrap();
    let program = place.text("work/s");
    assert!(new.contains(&format!("\"--\", \"{program}\"]")), "{new}");
    assert!(
        new.contains("// mine") && new.contains("{ \"command\": \"a\" }, // first\n"),
        "{new}"
    );
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let [now, kept] = &place.files("work")[..] else {
        panic!("there should be two files: {:?}", place.files("work"));
    };
    assert_eq!(now, "mcp.json");
    let kept = fs::read_to_string(place.path("work").join(kept)).unwrap();
    assert_eq!(kept, old);
}

#[test]
fn wrap_and_undo_leave_the_users_own_file_as_it_was() {
    let place = Place::new();
    fs::create_dir(place.path("home/.cursor")).unwrap();
    let file = place.path("home/.cursor/mcp.json");
    let old = "\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"shop\": {\"url\": \"https://h/mcp\", \
               \"headers\": {\"X-Key\": \"top-secret\"}},\r\n\t\t\"files\": {\"command\": \"npx\"}\r\n\t}\r\n}";
    fs::write(&file, old).unwrap();

    for name in ["shop", "files"] {
        let wrap = ["init", "--host", "cursor", "--wrap", name];
        let undo = ["undo", name, "--host", "cursor"];
        for (words, changes) in [(&wrap[..], true), (&undo[..], false)] {
            let before = fs::read_to_string(&file).unwrap();
            let dry = place.run(&[words, &["--dry-run"]].concat());
            assert_eq!(dry.code, 0, "{}", dry.stderr);
            assert!(dry.stdout.contains("stretto-proxy"), "{}", dry.stdout);
            assert!(!dry.stdout.contains("top-secret"), "{}", dry.stdout);
            assert_eq!(fs::read_to_string(&file).unwrap(), before);

            let ran = place.run(words);
            assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
            assert!(!ran.stderr.contains("top-secret"), "{}", ran.stderr);
            assert_eq!(fs::read_to_string(&file).unwrap() != old, changes);
        }
    }
    let kept: Vec<String> = place.files("home/.cursor");
    assert_eq!(kept.len(), 5, "{kept:?}");
    for copy in kept.iter().filter(|name| name.as_str() != "mcp.json") {
        assert!(
            copy.starts_with("mcp.json.2")
                && Path::new(copy).extension().is_some_and(|end| end == "bak"),
            "{copy}"
        );
    }
}

#[test]
fn a_desktop_program_gets_full_paths_and_is_told_what_its_script_needs() {
    let place = Place::new();
    place.program("npx", "#!/usr/bin/env node\n");
    let ran = place.init(&[
        "--host",
        "claude-desktop",
        "--domain",
        "orders",
        "--",
        "npx",
        "s",
    ]);
    let mut holder = Value::Null;
    let entry = entry(&ran.stdout, &mut holder, "claude-desktop", "orders");
    let args = entry["args"].as_array().unwrap();
    assert_eq!(args[5], json!(place.text("bin/npx")));
    let folder = place.text("bin");
    assert!(
        ran.stderr.contains(&format!(
            "npx is started by node, which Claude Desktop may not find; put \"PATH\": \"{folder}:"
        )),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_server_over_http_is_named_with_its_headers_variables() {
    let place = Place::new();
    let ran = place.init(&[
        "--host",
        "plain",
        "--domain",
        "orders",
        "--upstream",
        "https://h/mcp",
        "--upstream-header",
        "Authorization=TOKEN",
    ]);
    let mut holder = Value::Null;
    let entry = entry(&ran.stdout, &mut holder, "plain", "orders");
    assert_eq!(
        entry["args"],
        json!([
            "--record",
            "~/.stretto/logs/orders",
            "--domain",
            "orders",
            "--upstream",
            "https://h/mcp",
            "--upstream-header",
            "Authorization=TOKEN"
        ])
    );
    assert!(ran.stderr.contains("`env` needs TOKEN"), "{}", ran.stderr);

    let ran = place.init(&[
        "--host",
        "claude-code",
        "--domain",
        "shop",
        "--upstream",
        "https://example.com/mcp",
        "--upstream-header",
        "Authorization=SHOP_AUTH",
    ]);
    assert!(
        ran.stderr.contains("needs SHOP_AUTH") && ran.stderr.contains("`-e NAME=VALUE`"),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let place = Place::new();
    fs::write(place.path("work/broken.json"), "{\"mcpServers\": ").unwrap();
    let broken = ["--wrap", "a", "--file", "broken.json"];
    let bare = ["--domain", "a", "--merge", "none.json", "--", "s"];
    for (words, says) in [
        (
            &["--domain", "../a", "--", "s"][..],
            "cannot be a server's name",
        ),
        (&["--flow", "none.flow.json", "--", "s"], "none.flow.json"),
        (&broken, "broken.json stays as it is: it is not JSON: "),
        (&bare, "--write makes a new file"),
        (&["--wrap", "a"], "name the file with --file"),
    ] {
        let ran = place.run(&[&["init", "--host", "plain"], words].concat());
        assert_eq!(ran.code, 1, "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{words:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
    for words in [
        &["--domain", "a"][..],
        &["--", "s"],
        &["--domain", "a", "--wrap", "b", "--", "s"],
        &["--domain", "a", "--upstream", "ftp://h"],
        &[
            "--domain",
            "a",
            "--upstream",
            "http://h",
            "--upstream-header",
            "A:secret",
        ],
        &["--domain", "a", "--shadow", "--", "s"],
        &["--domain", "a", "--dry-run", "--", "s"],
        &["--domain", "a", "--write", "x", "--merge", "y", "--", "s"],
    ] {
        let ran = place.run(&[&["init", "--host", "plain"], words].concat());
        assert_eq!(ran.code, 2, "{words:?}: {}", ran.stderr);
    }
    assert_eq!(place.files("work"), ["broken.json"]);
}

#[test]
fn completions_know_the_commands() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = place.run(&["completions", shell]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.contains("flow-show"), "{shell}");
    }
    let script = place.run(&["completions", "bash"]).stdout;
    let checked = Command::new("bash")
        .arg("-n")
        .write_stdin(script)
        .output()
        .unwrap();
    assert!(checked.status.success(), "{checked:?}");
}
