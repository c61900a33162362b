//! The whole program, outside any checkout, with stand-ins for the proxy that are a few words of shell.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy only knows tests by their attribute"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A proxy that does nothing but start the server in its place.
const NOTHING_BETWEEN: &str = "while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"";

/// A folder with scenarios and a proxy.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new(proxy: &str) -> Self {
        let bench = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        bench.program("proxy", proxy);
        bench.program("demo", "exit 1");
        fs::create_dir(bench.path("scenarios")).unwrap();
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, name: &str, script: &str) {
        fs::write(self.path(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn scenario(&self, name: &str, text: &str) {
        let file = self.path("scenarios").join(format!("{name}.toml"));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stretto-harness"));
        command.args(words).current_dir(self.folder.path());
        for variable in [
            "CI",
            "INSTA_UPDATE",
            "STRETTO_PATIENCE",
            "INSTA_SNAPSHOT_REFERENCES_FILE",
        ] {
            command.env_remove(variable);
        }
        command
            .env("STRETTO_PROXY", self.path("proxy"))
            .env("STRETTO_MCP_DEMO", self.path("demo"));
        command.env("TMPDIR", self.folder.path());
        command
    }

    fn run(&self, words: &[&str]) -> Said {
        Said::of(&self.command(words).output().unwrap())
    }
}

#[derive(Debug)]
struct Said {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Said {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    #[track_caller]
    fn says(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        for word in words {
            assert!(
                self.stderr.contains(word) || self.stdout.contains(word),
                "no {word:?} in {self:#?}"
            );
        }
    }
}

const ECHO: &str = "title = \"a line comes back\"\ncommand = [\"cat\"]\nsteps = [\n  { raw = \"hello\" },\n  { expect = \"line\", exactly = \"hello\" },\n]\n";

#[test]
fn a_scenario_is_new_then_reviewed_then_passes() {
    let bench = Bench::new(NOTHING_BETWEEN);
    bench.scenario("topic/echo", ECHO);
    bench.run(&["run"]).says(
        1,
        &[
            "FAIL",
            "topic/echo",
            "there is none yet",
            ">> raw hello",
            "if it is right: stretto-harness run",
            "topic/echo --over stdio --accept",
        ],
    );
    assert!(bench.path("snapshots/topic/echo.snap.new").is_file());
    bench
        .run(&["run", "--accept"])
        .says(0, &["PASS", "1 passed"]);
    assert!(!bench.path("snapshots/topic/echo.snap.new").exists());
    bench.run(&["run"]).says(0, &["1 passed"]);
}

#[test]
fn in_ci_nothing_is_written() {
    let bench = Bench::new(NOTHING_BETWEEN);
    bench.scenario("echo", ECHO);
    let said = Said::of(&bench.command(&["run"]).env("CI", "true").output().unwrap());
    said.says(1, &["there is none yet"]);
    assert!(!bench.path("snapshots").exists());
}

#[test]
fn a_step_that_fails_is_shown_with_what_was_expected_what_came_and_how_to_run_it_again() {
    let bench = Bench::new(NOTHING_BETWEEN);
    bench.scenario(
        "topic/echo",
        &ECHO.replace("exactly = \"hello\"", "exactly = \"goodbye\""),
    );
    bench.run(&["run"]).says(
        1,
        &[
            "scenarios/topic/echo.toml:5",
            "5 |  { expect = \"line\", exactly = \"goodbye\" },",
            "expected the line to be: goodbye",
            "it was:   hello",
            "again: stretto-harness run topic/echo --over stdio",
            "1 scenario: 0 passed, 1 failed",
        ],
    );
}

/// A server that says its process id and then neither answers nor ends.
fn deaf_server(pid: &Path) -> String {
    let pid = pid.display();
    format!(
        "title = \"it answers\"\ncommand = [\"sh\", \"-c\", \"trap '' TERM; echo $$$$ > {pid}; while :; do sleep 0.1; done\"]\n\
         patience = \"1s\"\nsteps = [\n  {{ request = \"ping\" }},\n]\n"
    )
}

fn is_running(pid: &Path) -> bool {
    let pid = fs::read_to_string(pid).unwrap();
    Path::new("/proc").join(pid.trim()).exists()
}

#[test]
fn a_scenario_that_hangs_is_ended_with_its_processes_and_says_at_which_step() {
    let bench = Bench::new(NOTHING_BETWEEN);
    let pid = bench.path("pid");
    bench.scenario("hangs", &deaf_server(&pid));
    bench.run(&["run"]).says(
        1,
        &[
            "scenarios/hangs.toml:5",
            "expected the answer to 1",
            "nothing more for 1 s",
        ],
    );
    assert!(!is_running(&pid));
}

#[test]
fn a_signal_to_the_runner_ends_what_it_has_started() {
    let bench = Bench::new(NOTHING_BETWEEN);
    let pid = bench.path("pid");
    bench.scenario("hangs", &deaf_server(&pid).replace("1s", "600s"));
    let runner = bench
        .command(&["run"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_mins(1);
    while !fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')) {
        assert!(Instant::now() < deadline, "the server has not started");
        std::thread::yield_now();
    }
    let id = rustix::process::Pid::from_raw(i32::try_from(runner.id()).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    let said = Said::of(&runner.wait_with_output().unwrap());
    said.says(3, &["stopped by a signal"]);
    assert!(!is_running(&pid));
}

#[test]
fn each_promise_that_a_bad_proxy_breaks_is_named() {
    let table = [
        (
            "sleep 60 & ",
            "the promise `clean` to hold",
            "still running after the proxy had gone: sleep 60",
        ),
        (
            "echo 'stretto-proxy: ready'; ",
            "the promise `stdout` to hold",
            "stretto-proxy: ready",
        ),
        (
            "echo \"key: $TYPESAFE_API_KEY\" >&2; ",
            "the promise `secret` to hold",
            "is on stderr",
        ),
        (
            "echo x > rubbish; ",
            "the promise `clean` to hold",
            "rubbish is in the folder",
        ),
        (
            "echo 'thread main panicked at x' >&2; ",
            "the promise `codes` to hold",
            "panicked",
        ),
    ];
    for (fault, promise, what) in table {
        let bench = Bench::new(&format!("{fault}{NOTHING_BETWEEN}"));
        bench.scenario(
            "echo",
            &ECHO.replace(
                "{ expect = \"line\", exactly = \"hello\" }",
                "{ expect = \"line\" }",
            ),
        );
        bench.run(&["run", "--accept"]).says(1, &[promise, what]);
    }
}

#[test]
fn a_run_that_goes_another_way_the_second_time_fails() {
    let bench = Bench::new(NOTHING_BETWEEN);
    let text = ECHO.replace("[\"cat\"]", "[\"sh\", \"-c\", \"cat; date +%N\"]");
    bench.scenario("echo", &text);
    bench
        .run(&["run", "--accept", "--repeat", "3"])
        .says(1, &["the promise `same` to hold", "another transcript"]);
    // What a scenario says is changing may change.
    bench.scenario(
        "echo",
        &format!("changing = {{ NANOS = '[0-9]{{9}}' }}\n{text}"),
    );
    bench
        .run(&["run", "--accept", "--repeat", "3"])
        .says(0, &["1 passed"]);
}

#[test]
fn a_program_that_a_scenario_needs_and_that_is_not_there_is_named() {
    let bench = Bench::new(NOTHING_BETWEEN);
    bench.scenario("echo", &format!("needs = [\"no-such-program\"]\n{ECHO}"));
    bench
        .run(&["run"])
        .says(1, &["it needs the program no-such-program"]);
}

#[test]
fn a_snapshot_that_no_scenario_asks_for_fails_the_run() {
    let bench = Bench::new(NOTHING_BETWEEN);
    bench.scenario("echo", ECHO);
    bench.run(&["run", "--accept"]).says(0, &[]);
    fs::write(bench.path("snapshots/old.snap"), "---\n---\n").unwrap();
    bench
        .run(&["run"])
        .says(1, &["old.snap: no scenario asks for this snapshot"]);
    // A choice of scenarios says nothing about the others' snapshots.
    bench.run(&["run", "echo"]).says(0, &[]);
}

#[test]
fn exits_tell_what_kind_of_trouble_it_is() {
    let bench = Bench::new(NOTHING_BETWEEN);
    bench.scenario("echo", ECHO);
    bench
        .run(&["run", "nothing-like-this"])
        .says(4, &["no scenario matches nothing-like-this"]);
    bench
        .run(&["run", "--jobs", "none"])
        .says(2, &["invalid value 'none'"]);
    bench
        .run(&["run", "scenarios/gone.toml"])
        .says(2, &["scenarios/gone.toml is not there"]);
    bench
        .run(&["check"])
        .says(0, &["1 scenario read, nothing wrong"]);
    bench
        .run(&["list"])
        .says(0, &["echo", "stdio", "a line comes back"]);
    let missing = Said::of(
        &bench
            .command(&["run"])
            .env("STRETTO_PROXY", "/no/such/proxy")
            .output()
            .unwrap(),
    );
    missing.says(3, &["/no/such/proxy is not a file"]);
    bench.scenario("slip", "title = \"x\"\nsteps = [{ cal = \"y\" }]\n");
    bench
        .run(&["check"])
        .says(2, &["scenarios/slip.toml:2: unknown field `cal`"]);
    bench.run(&["run"]).says(2, &["scenarios/slip.toml:2"]);
}

#[test]
fn junit_and_json_hold_every_scenario_and_what_failed() {
    let bench = Bench::new(NOTHING_BETWEEN);
    bench.scenario("one/good", ECHO);
    bench.scenario(
        "two/bad",
        &ECHO.replace("exactly = \"hello\"", "exactly = \"<other> & more\""),
    );
    let said = bench.run(&[
        "run",
        "--accept",
        "--json",
        "--quiet",
        "--junit",
        "out/junit.xml",
    ]);
    said.says(1, &[]);
    let events: Vec<serde_json::Value> = said
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(kinds.first(), Some(&"run-started"));
    assert_eq!(kinds.last(), Some(&"run-finished"));
    assert_eq!(
        kinds
            .iter()
            .filter(|kind| **kind == "scenario-finished")
            .count(),
        2
    );
    let bad = events
        .iter()
        .find(|event| event["name"] == "two/bad" && event["event"] == "scenario-finished")
        .unwrap();
    assert_eq!(bad["passed"], false);
    assert_eq!(bad["failures"][0]["line"], 5);
    assert_eq!(events.last().unwrap()["failed"], 1);

    let junit = fs::read_to_string(bench.path("out/junit.xml")).unwrap();
    for part in [
        "tests=\"2\"",
        "failures=\"1\"",
        "testsuite name=\"one\"",
        "testcase name=\"two/bad\"",
        "&lt;other&gt; &amp; more",
    ] {
        assert!(junit.contains(part), "no {part} in {junit}");
    }
}

#[test]
fn only_the_first_failure_is_run_when_it_must_be_fast() {
    let bench = Bench::new(NOTHING_BETWEEN);
    for name in ["a", "b", "c"] {
        bench.scenario(
            name,
            &ECHO.replace("exactly = \"hello\"", "exactly = \"goodbye\""),
        );
    }
    bench
        .run(&["run", "--fail-fast", "--jobs", "1"])
        .says(1, &["0 passed, 1 failed, 2 not run (the run was stopped)"]);
}

#[test]
fn slow_ones_run_only_when_asked_for() {
    let bench = Bench::new(NOTHING_BETWEEN);
    bench.scenario("echo", &format!("slow = true\n{ECHO}"));
    bench
        .run(&["run", "--accept"])
        .says(0, &["0 passed, 1 not run (slow: --slow)"]);
    bench
        .run(&["run", "--accept", "--slow"])
        .says(0, &["1 passed (1 slow)"]);
}
