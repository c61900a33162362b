//! Scripts over stdio: each fault, the timeline, and what the transcript says of them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{demo, run};

/// A script and a transcript in a folder of their own.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn of(script: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("script.json"), script.to_string()).unwrap();
        Self(folder)
    }

    pub(crate) fn options(&self) -> Vec<String> {
        let path = |name: &str| self.0.path().join(name).to_str().unwrap().to_owned();
        vec![
            "--script".into(),
            path("script.json"),
            "--transcript".into(),
            path("transcript.jsonl"),
        ]
    }

    pub(crate) fn transcript(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.0.path().join("transcript.jsonl")).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The faults that fired, and those that did not.
    pub(crate) fn fired(&self) -> (Vec<Value>, Value) {
        let records = self.transcript();
        let fired = records
            .iter()
            .filter_map(|record| record.get("fired").cloned())
            .collect();
        let unfired = records
            .iter()
            .find_map(|record| record.get("unfired").cloned())
            .unwrap_or(json!([]));
        (fired, unfired)
    }

    fn run(&self, input: &str) -> Output {
        let options = self.options();
        run(
            &options.iter().map(String::as_str).collect::<Vec<_>>(),
            input,
        )
    }

    fn start(&self) -> Running {
        let options = self.options();
        let mut child = demo(&options.iter().map(String::as_str).collect::<Vec<_>>())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (
            child.stdin.take(),
            BufReader::new(child.stdout.take().unwrap()),
        );
        Running {
            child,
            stdin,
            stdout,
        }
    }
}

/// A server under way, killed with its test.
struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    fn send(&mut self, line: &str) {
        self.stdin
            .as_mut()
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        rest
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

const CALL: &str = "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"}}\n";
const PING: &str = "{\"id\":2,\"method\":\"ping\"}\n";

/// The answer to `CALL` when nothing goes wrong.
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"ok","type":"text"}],"isError":false}}"#;
/// The answer to `PING`.
const PONG: &str = r#"{"jsonrpc":"2.0","id":2,"result":{}}"#;

/// A server whose tool `a` answers, with this fault.
fn fault(fault: &Value) -> Files {
    Files::of(&json!({"answers": [{"tool": "a", "text": "ok", "fault": fault}]}))
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn exit_ends_the_process_before_it_answers() {
    let files = fault(&json!({"exit": 3}));
    let output = files.run(&format!("{CALL}{PING}"));
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(3), "")
    );
    assert_eq!(files.fired(), (vec![json!("answers[0]")], json!([])));
}

pub(crate) fn signal_kills_the_process_before_it_answers() {
    #[cfg(unix)]
    use std::os::unix::process::ExitStatusExt as _;

    for signal in [9, 15] {
        let files = fault(&json!({"signal": signal}));
        let output = files.run(&format!("{CALL}{PING}"));
        assert_eq!(
            (output.status.signal(), stdout(&output).as_str()),
            (Some(signal), "")
        );
        assert_eq!(files.fired().0, [json!("answers[0]")]);
    }
}

pub(crate) fn hang_never_answers_and_does_not_keep_the_process() {
    let output = fault(&json!({"hang": true})).run(&format!("{CALL}{PING}"));
    assert!(output.status.success());
    assert_eq!(stdout(&output), format!("{PONG}\n"));
}

pub(crate) fn close_stdout_ends_the_output_and_the_process_lives_on() {
    let files = fault(&json!({"close_stdout": true}));
    let mut server = files.start();
    server.send(CALL);
    assert_eq!(server.rest(), "");
    assert!(server.child.try_wait().unwrap().is_none());
    server.send(PING);
    server.stdin = None;
    assert!(server.child.wait().unwrap().success());
}

pub(crate) fn close_stdin_ends_the_input_and_the_process_lives_on() {
    for script in [
        json!({"answers": [{"tool": "a", "text": "ok", "fault": {"close_stdin": true}}]}),
        // The end closes although the process waits for input there.
        json!({"answers": [{"tool": "a", "text": "ok", "delay_ms": 50, "fault": {"close_stdin": true}, "when": "after"}]}),
    ] {
        let files = Files::of(&script);
        let mut server = files.start();
        server.send(CALL);
        assert_eq!(server.line(), format!("{ANSWER}\n"));
        let mut stdin = server.stdin.take().unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while stdin.write_all(PING.as_bytes()).is_ok() {
            assert!(Instant::now() < until, "stdin stays open");
        }
        assert!(server.child.try_wait().unwrap().is_none());
    }
}

pub(crate) fn line_and_bytes_come_before_the_answer() {
    let output = fault(&json!({"line": "not json"})).run(CALL);
    assert_eq!(stdout(&output), format!("not json\n{ANSWER}\n"));
    let output = fault(&json!({"bytes": "/wA="})).run(CALL);
    assert_eq!(
        output.stdout,
        [b"\xff\0\n".as_slice(), ANSWER.as_bytes(), b"\n"].concat()
    );
}

pub(crate) fn no_newline_ends_the_process_after_the_answer() {
    let output = fault(&json!({"no_newline": true})).run(&format!("{CALL}{PING}"));
    assert!(output.status.success());
    assert_eq!(stdout(&output), ANSWER);
}

pub(crate) fn split_answers_come_whole_in_the_end_and_nothing_comes_between() {
    let output = fault(&json!({"split": [10, 2]})).run(&format!("{CALL}{PING}"));
    let text = stdout(&output);
    assert!(
        text == format!("{ANSWER}\n{PONG}\n") || text == format!("{PONG}\n{ANSWER}\n"),
        "{text}"
    );
}

pub(crate) fn pad_makes_the_text_that_long() {
    let output = fault(&json!({"pad": 3_000_000})).run(CALL);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .len(),
        3_000_000
    );
}

pub(crate) fn batch_twice_and_id_change_the_answer() {
    assert_eq!(
        stdout(&fault(&json!({"batch": true})).run(CALL)),
        format!("[{ANSWER}]\n")
    );
    assert_eq!(
        stdout(&fault(&json!({"twice": true})).run(CALL)),
        format!("{ANSWER}\n{ANSWER}\n")
    );
    let answer: Value =
        serde_json::from_slice(&fault(&json!({"id": 99})).run(CALL).stdout).unwrap();
    assert_eq!(answer["id"], 99);
}

pub(crate) fn crlf_ends_every_line_from_there_on() {
    let output = fault(&json!({"crlf": true})).run(&format!("{PING}{CALL}{PING}"));
    assert_eq!(stdout(&output), format!("{PONG}\n{ANSWER}\r\n{PONG}\r\n"));
}

pub(crate) fn stderr_gets_its_line() {
    let output = fault(&json!({"stderr": "a word"})).run(CALL);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "a word\n");
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        format!("{ANSWER}\n")
    );
}

pub(crate) fn ignore_eof_keeps_the_process_for_a_while() {
    let script = |fault: &Value| {
        Files::of(&json!({
            "answers": [{"tool": "a", "text": "ok", "fault": fault}],
            "timeline": [{"after": "call:a", "ms": 40, "line": "still here"}],
        }))
    };
    let files = script(&json!({"ignore_eof": true, "ms": 100_000}));
    let mut server = files.start();
    server.send(CALL);
    assert_eq!(server.line(), format!("{ANSWER}\n"));
    server.stdin = None;
    assert_eq!(server.line(), "still here\n");
    assert!(server.child.try_wait().unwrap().is_none());
    let output = script(&json!({"ignore_eof": true, "ms": 1})).run(CALL);
    assert!(output.status.success());
}

pub(crate) fn faults_stand_beside_each_other() {
    let output = fault(&json!({"line": "x", "twice": true, "crlf": true})).run(CALL);
    assert_eq!(stdout(&output), format!("x\r\n{ANSWER}\r\n{ANSWER}\r\n"));
}

pub(crate) fn when_says_on_which_side_of_the_work_a_fault_happens() {
    for (when, made) in [("before", "no"), ("after", "yes")] {
        let files = Files::of(&json!({"answers": [
            {"tool": "a", "text": "ok", "progress": 1, "fault": {"hang": true}, "when": when},
            {"tool": "b", "after": ["a"], "text": "yes"},
            {"tool": "b", "text": "no"},
        ]}));
        let input = CALL.replace(r#""name":"a""#, r#""name":"a","_meta":{"progressToken":7}"#)
            + &CALL.replace(r#""name":"a""#, r#""name":"b""#);
        let text = stdout(&files.run(&input));
        assert!(
            text.lines()
                .last()
                .unwrap()
                .contains(&format!("\"text\":\"{made}\"")),
            "{when}: {text}"
        );
        assert_eq!(text.contains("notifications/progress"), when == "after");
    }
}

pub(crate) fn a_slow_call_lets_others_pass_unless_it_is_told_not_to() {
    for (concurrent, expected) in [(true, [2, 1]), (false, [1, 2])] {
        let files = Files::of(
            &json!({"concurrent": concurrent, "answers": [{"tool": "a", "text": "ok", "delay_ms": 60}]}),
        );
        let text = stdout(&files.run(&format!("{CALL}{PING}")));
        let ids: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone())
            .collect();
        assert_eq!(ids, expected);
    }
}

pub(crate) fn the_timeline_acts_at_its_moments() {
    let files = Files::of(&json!({
        "tools": [{"name": "a"}],
        "answers": [{"tool": "a", "text": "ok"}],
        "timeline": [
            {"after": "start", "line": "hello"},
            {"after": "initialize", "send": {"method": "x"}},
            {"after": "initialized", "ms": 1, "line": "a little later"},
            {"after": "call:a", "relist": "v2"},
            {"after": "call:b", "line": "never"},
        ],
        "listings": {"v2": {"hide": ["a"]}},
    }));
    let mut server = files.start();
    assert_eq!(server.line(), "hello\n");
    server.send("{\"id\":0,\"method\":\"initialize\"}\n");
    assert!(
        server
            .line()
            .contains(r#""capabilities":{"tools":{"listChanged":true}}"#)
    );
    assert_eq!(server.line(), "{\"method\":\"x\"}\n");
    server.send("{\"method\":\"notifications/initialized\"}\n");
    assert_eq!(server.line(), "a little later\n");
    server.send(CALL);
    assert_eq!(server.line(), format!("{ANSWER}\n"));
    assert_eq!(
        server.line(),
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n"
    );
    server.send("{\"id\":3,\"method\":\"tools/list\"}\n");
    assert!(server.line().contains(r#""tools":[]"#));
    server.stdin = None;
    assert!(server.child.wait().unwrap().success());
    let (fired, unfired) = files.fired();
    assert_eq!(
        fired,
        ["timeline[0]", "timeline[1]", "timeline[2]", "timeline[3]"]
    );
    assert_eq!(unfired, json!(["timeline[4]"]));
}

pub(crate) fn the_timeline_may_end_the_process_and_does_not_keep_it() {
    let files = Files::of(&json!({"timeline": [{"after": "initialized", "ms": 5, "exit": 4}]}));
    let mut server = files.start();
    server.send("{\"method\":\"notifications/initialized\"}\n");
    assert_eq!(server.child.wait().unwrap().code(), Some(4));
    let later = Files::of(&json!({"timeline": [{"after": "start", "ms": 100_000, "exit": 4}]}));
    assert!(later.run("").status.success());
    assert_eq!(later.fired(), (vec![], json!(["timeline[0]"])));
}

pub(crate) fn the_transcript_has_each_line_as_it_came() {
    let files = Files::of(&json!({}));
    let output = files.run("{\"odd\":  1.0}\r\n\nend");
    assert!(output.status.success());
    let records: Vec<Value> = files
        .transcript()
        .into_iter()
        .map(|record| json!([record["n"], record["line"], record["unended"]]))
        .collect();
    assert_eq!(
        records,
        [
            json!([1, "{\"odd\":  1.0}\r", null]),
            json!([2, "", null]),
            json!([3, "end", true])
        ]
    );
}

pub(crate) fn what_never_fired_is_said_at_the_end() {
    let files = Files::of(
        &json!({"answers": [{"name": "crash", "tool": "b", "fault": {"exit": 3}}, {"tool": "a", "text": "ok"}]}),
    );
    let output = files.run(CALL);
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "stretto-mcp-demo: never fired: crash\n"
    );
    assert_eq!(files.fired(), (vec![], json!(["crash"])));
}

pub(crate) fn a_wrong_script_is_named_with_its_place_and_nothing_is_served() {
    for (script, said) in [
        (
            "{\n\"answers\": [{\"tool\": \"a\", \"txt\": \"x\"}]}",
            "line 2, column 31: unknown field `txt`, expected one of `name`",
        ),
        (
            "{\"answers\": [{\"tool\": \"a\", \"fault\": {\"cut\": 1}}]}",
            "answers[0]: fault: `cut` happens over HTTP only",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wrong.json");
        fs::write(&path, script).unwrap();
        let output = run(&["--script", path.to_str().unwrap()], PING);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(
            text.starts_with("stretto-mcp-demo: the script ")
                && text.contains("wrong.json: ")
                && text.contains(said),
            "{text}"
        );
    }
}
