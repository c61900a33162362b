//! `stretto show`, run as people run it.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "sessions read better without borrows in them"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use assert_cmd::cargo::CommandCargoExt as _;
use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A recorded session that the trace reader's tests have, too.
fn recorded(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../stretto-trace/tests/data")
        .join(part)
}

/// A log that a test writes.
struct Written {
    directory: TempDir,
    lines: Vec<String>,
}

impl Written {
    fn new() -> Self {
        let header = json!({"stretto_mcp_log": 2, "session": "20261130T120000.000Z-7",
            "started_unix_ms": 1_796_040_000_000_u64, "server_command": ["npx", "-y", "some-server"]});
        Self {
            directory: TempDir::new().unwrap(),
            lines: vec![header.to_string()],
        }
    }

    fn line(mut self, t_ms: u64, from: &str, message: Value) -> Self {
        self.lines
            .push(json!({"t_ms": t_ms, "from": from, "message": message}).to_string());
        self
    }

    fn text(mut self, t_ms: u64, from: &str, raw: &str) -> Self {
        self.lines
            .push(json!({"t_ms": t_ms, "from": from, "raw": raw}).to_string());
        self
    }

    /// A call and its result.
    fn call(self, t_ms: u64, id: u64, tool: &str, result: &str) -> Self {
        self.line(t_ms, "client", call(id, tool, json!({"n": id})))
            .line(
                t_ms + 20,
                "server",
                json!({"id": id, "result": {"content": [{"type": "text", "text": result}]}}),
            )
    }

    /// The file, ended by `ending` behind its last line.
    fn file(&self, ending: &str) -> PathBuf {
        let path = self.directory.path().join("20261130T120000.000Z-7.jsonl");
        fs::write(&path, self.lines.join("\n") + "\n" + ending).unwrap();
        path
    }
}

fn call(id: u64, tool: &str, arguments: Value) -> Value {
    json!({"id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

fn stretto() -> Command {
    let mut command = Command::cargo_bin("stretto").unwrap();
    command
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .stdin(Stdio::null());
    command
}

/// What `stretto show` prints about `log`.
fn show(log: &Path, options: &[&str]) -> String {
    let output = stretto()
        .arg("show")
        .arg(log)
        .args(options)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// What it says when it cannot: its exit code and its words.
fn refusal(log: &Path, options: &[&str]) -> (Option<i32>, String) {
    let output = stretto()
        .arg("show")
        .arg(log)
        .args(options)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn a_served_session_sets_the_proxys_lookups_apart() {
    assert_snapshot!(show(
        &recorded("demo-shop/20260928T020401.117Z-14662.jsonl"),
        &[]
    ));
}

#[test]
fn errors_and_the_conversation_stand_where_they_happened() {
    assert_snapshot!(show(
        &recorded("demo-shop/20260928T020401.312Z-14780.jsonl"),
        &[]
    ));
}

#[test]
fn a_directory_shows_its_newest_session_and_lists_all() {
    let directory = recorded("airline");
    let shown = show(&directory, &[]);
    let (first, rest) = shown.split_once('\n').unwrap();
    assert!(first.starts_with("The newest of 3 sessions in "), "{first}");
    assert!(rest.starts_with("\nSession 20261101T011300.000Z-1073\n"));
    let listed =
        show(&directory, &["--list"]).replace(&directory.display().to_string(), "DIRECTORY");
    assert_snapshot!(listed);
}

#[test]
fn several_logs_are_listed_as_their_directory_is_and_side_logs_are_passed_over() {
    let directory = TempDir::new().unwrap();
    let mut logs = Vec::new();
    for file in fs::read_dir(recorded("airline")).unwrap() {
        let file = file.unwrap();
        let copy = directory.path().join(file.file_name());
        fs::copy(file.path(), &copy).unwrap();
        logs.push(copy);
    }
    logs.sort();
    let side = directory
        .path()
        .join("20261101T011300.000Z-1073.flow.jsonl");
    fs::write(&side, "{}\n").unwrap();
    let of_directory = show(directory.path(), &["--list"]);
    let others: Vec<&str> = logs[1..]
        .iter()
        .chain([&side, &logs[0]])
        .map(|log| log.to_str().unwrap())
        .collect();
    let ending = format!(" in {}\n", directory.path().display());
    assert_eq!(show(&logs[0], &others), of_directory.replace(&ending, "\n"));

    let (code, words) = refusal(&logs[0], &[others[0], "--json"]);
    assert_eq!(
        (code, words.as_str()),
        (
            Some(1),
            "stretto: --full, --turns and --json are for one session, and 2 logs are named; name one\n"
        )
    );
}

/// A session of a host from before 2026, with everything that may go wrong in it.
fn troubled() -> Written {
    let hello = json!({"id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "clientInfo": {"name": "desk", "version": "2"}}});
    let welcome = json!({"id": 0, "result": {
        "protocolVersion": "2025-06-18", "serverInfo": {"name": "everything", "version": "1"}}});
    let refused = json!({"id": 4, "result": {"isError": true, "content": [{"type": "text", "text":
        "Refused by the policy check, so update was not run and nothing changed"}]}});
    let cancel = json!({"method": "notifications/cancelled", "params": {"requestId": 3, "reason": "too slow"}});
    Written::new()
        .text(0, "server", "Listening on stdio")
        .line(1, "client", hello)
        .line(9, "server", welcome)
        .line(9, "client", json!({"method": "notifications/initialized"}))
        .line(10, "server", json!({"id": 0, "method": "roots/list"}))
        .line(
            11,
            "client",
            json!({"id": 0, "result": {"roots": [{"uri": "file:///a"}]}}),
        )
        .line(
            12,
            "server",
            json!({"id": 1, "method": "elicitation/create", "params": {"message": "Really?"}}),
        )
        .line(
            900,
            "client",
            json!([
                call(1, "look", json!({"x": 1})),
                call(2, "look", json!({"x": 2}))
            ]),
        )
        .line(
            950,
            "server",
            json!({"method": "notifications/progress", "params": {"progressToken": 1}}),
        )
        .line(
            960,
            "server",
            json!({"method": "notifications/progress", "params": {"progressToken": 1}}),
        )
        .line(
            1900,
            "server",
            json!({"id": 2, "error": {"code": -32602, "message": "no such thing"}}),
        )
        .line(
            1950,
            "server",
            json!({"id": 1, "result": {"structuredContent": {"found": [1, 2]}}}),
        )
        .line(1951, "server", json!({"id": 1, "result": {}}))
        .line(3000, "client", call(3, "crawl", json!({})))
        .line(8000, "client", cancel)
        .line(9000, "client", call(4, "update", json!({"id": "#1"})))
        .line(9001, "proxy", refused)
        .line(9500, "client", json!({"id": 5, "method": "resources/list"}))
        .line(9501, "server", json!({"id": 77, "result": {}}))
        .line(9502, "server", json!("hm"))
        .line(10_000, "client", call(6, "hang", json!({})))
        .line(
            11_000,
            "context",
            json!({"role": "user", "content": "Hello?"}),
        )
        .call(90_000, 7, "look", "ok")
}

#[test]
fn what_is_unusual_is_said_first_and_shown_in_its_place() {
    assert_snapshot!(show(&troubled().file("{\"t_ms\":9,\"fro"), &[]));
}

#[test]
fn all_of_it_is_shown_when_asked_for() {
    assert_snapshot!(show(&troubled().file(""), &["--full"]));
}

#[test]
fn a_session_without_initialize_is_read_from_its_requests() {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "py", "version": "2.3"}});
    let discovered = json!({"id": 1, "result": {"resultType": "complete", "supportedVersions": ["2026-07-28"],
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "git", "version": "1"}}}});
    let asks = json!({"id": 2, "result": {"resultType": "input_required", "requestState": "s",
        "inputRequests": {"sure": {"method": "elicitation/create"}}}});
    let params = json!({"name": "book", "arguments": {"seat": 7}, "requestState": "s", "inputResponses": {}});
    let booked = json!({"id": 3, "result": {"content": [{"type": "text", "text": "booked"}]}});
    let log = Written::new()
        .line(
            0,
            "client",
            json!({"id": 1, "method": "server/discover", "params": {"_meta": meta}}),
        )
        .line(5, "server", discovered)
        .line(800, "client", call(2, "book", json!({"seat": 7})))
        .line(830, "server", asks)
        .line(
            9000,
            "client",
            json!({"id": 3, "method": "tools/call", "params": params}),
        )
        .line(9100, "server", booked);
    assert_snapshot!(show(&log.file(""), &[]));
}

#[test]
fn thousands_of_lines_fold_into_a_page() {
    let mut log = Written::new().line(
        0,
        "context",
        json!({"role": "user", "content": "All pages, please."}),
    );
    let mut id = 0;
    let mut next = || {
        id += 1;
        (id * 1000, id)
    };
    for _ in 0..40 {
        let (t_ms, id) = next();
        let progress = json!({"method": "notifications/progress", "params": {"progressToken": id}});
        log = log.line(t_ms + 1, "server", progress).call(
            t_ms + 2,
            id,
            "read_page",
            &"text\n".repeat(40),
        );
    }
    for round in 0..1000 {
        let (t_ms, id) = next();
        log = log.call(t_ms, id, "search", r#"{"hits": [1, 2, 3]}"#);
        let (t_ms, id) = next();
        log = log.call(t_ms, id, "open", "a text");
        if round % 90 == 0 {
            let (t_ms, _) = next();
            log = log.line(
                t_ms,
                "context",
                json!({"role": "assistant", "content": format!("{round} done")}),
            );
        }
    }
    let calls: Vec<Value> = (0..30)
        .map(|n| call(900_000 + n, "fetch", json!({"n": n})))
        .collect();
    log = log.line(3_000_000, "client", json!(calls));
    for n in 0..30 {
        log = log.line(
            3_000_100,
            "server",
            json!({"id": 900_000 + n, "result": {"content": []}}),
        );
    }
    let file = log.file("");
    assert!(fs::read_to_string(&file).unwrap().lines().count() > 4000);
    assert_snapshot!(show(&file, &[]));
    assert_snapshot!("some_turns", show(&file, &["--turns", "39-42"]));
}

#[test]
fn json_is_the_episode() {
    let log = Written::new()
        .line(
            0,
            "context",
            json!({"role": "user", "content": "a\u{1b}\u{9b}\u{202e}\u{e0041}b"}),
        )
        .call(600, 1, "look", "done");
    let json = show(&log.file(""), &["--json"]);
    assert!(json.is_ascii(), "{json}");
    let episode: stretto_trace::Episode = serde_json::from_str(&json).unwrap();
    assert_eq!(
        episode,
        stretto_trace::mcp::episode(&stretto_trace::mcp::read_log(&log.file("")).unwrap())
    );
}

#[test]
fn colour_is_there_when_asked_for_and_nothing_else_steers_the_terminal() {
    let nasty = "\u{1b}]0;title\u{7}\u{9b}31m\u{7f}\u{202e}";
    let log = Written::new()
        .text(0, "server", nasty)
        .line(1, "client", json!({"id": 1, "method": nasty}))
        .line(
            1,
            "server",
            json!({"id": 1, "error": {"code": 1, "message": nasty}}),
        )
        .line(2, "context", json!({"role": "user", "content": nasty}))
        .line(3, "client", call(2, nasty, json!({nasty: nasty})))
        .line(
            4,
            "server",
            json!({"id": 2, "error": {"code": 1, "message": nasty}}),
        );
    for options in [&["--color", "always"][..], &["--color", "always", "--full"]] {
        let shown = show(&log.file(""), options);
        let mut rest = shown.as_str();
        let mut colours = 0;
        // Colours are `ESC [ digits m`; what is left holds no control but line feeds.
        let mut plain = String::new();
        while let Some((before, after)) = rest.split_once("\u{1b}[") {
            let (code, after) = after.split_once('m').unwrap();
            assert!(
                code.chars()
                    .all(|character| character.is_ascii_digit() || character == ';'),
                "{code}"
            );
            plain.push_str(before);
            rest = after;
            colours += 1;
        }
        plain.push_str(rest);
        assert!(colours > 10);
        assert!(
            !plain.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'),
            "{plain}"
        );
        assert_eq!(plain, show(&log.file(""), options.get(2..).unwrap()));
    }
    let output = stretto()
        .args(["show", "--color", "auto"])
        .arg(log.file(""))
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(!output.stdout.contains(&0x1b));
}

#[test]
fn a_log_that_cannot_be_read_is_one_line_that_says_why() {
    let log = Written::new().call(1, 1, "look", "done");
    let file = log.file("not an entry\n");
    let said = |options: &[&str]| {
        let (code, words) = refusal(&file, options);
        (code, words.replace(&file.display().to_string(), "LOG"))
    };
    let parsing = "stretto: parsing LOG: line 4 is not a log entry: expected ident at column 2; mend the \
                   line, or leave the file out\n";
    assert_eq!(said(&[]), (Some(1), parsing.to_owned()));

    let odd = log.directory.path().join("no\u{1b}[31m\u{202e}such.jsonl");
    let (code, words) = refusal(&odd, &[]);
    assert_eq!(code, Some(1));
    assert!(
        words.starts_with("stretto: reading ") && words.lines().count() == 1,
        "{words}"
    );
    assert!(
        words.contains("no\\u{1b}[31m\\u{202e}such.jsonl: "),
        "{words}"
    );

    let empty = TempDir::new().unwrap();
    let (code, words) = refusal(empty.path(), &[]);
    assert_eq!(
        (
            code,
            words
                .replace(&empty.path().display().to_string(), "DIRECTORY")
                .as_str()
        ),
        (
            Some(1),
            "stretto: DIRECTORY has no session logs (files that end in .jsonl); record some with \
             stretto-proxy --record DIRECTORY\n"
        )
    );
    let short = Written::new().call(1, 1, "look", "done");
    assert_eq!(
        refusal(&short.file(""), &["--turns", "2"]),
        (
            Some(1),
            "stretto: turn 2 is not in this session, which has 1 turn\n".to_owned()
        )
    );
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    let log = Written::new().file("");
    for options in [
        &["--turns", "4-2"][..],
        &["--turns", "x"],
        &["--full", "--json"],
        &["--no-such"],
    ] {
        let (code, words) = refusal(&log, options);
        assert_eq!(code, Some(2), "{options:?}: {words}");
    }
    assert_eq!(
        stretto().arg("show").output().unwrap().status.code(),
        Some(2)
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut log = Written::new();
    for id in 0..5000 {
        log = log.call(
            id * 1000,
            id,
            "look",
            "a result that takes some room in the pipe",
        );
    }
    let mut child = stretto()
        .args(["show", "--full"])
        .arg(log.file(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}
