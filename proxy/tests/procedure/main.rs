//! `stretto-procedure`, the program, before the demo server and before servers that misbehave.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod server;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::Served;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/procedure/data")
        .join(name)
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_stretto-procedure"))
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

/// A recorded run: the procedure, the ticket, a script for the demo server, and what must come.
struct Case {
    name: String,
    folder: TempDir,
    ticket: String,
    run: Value,
}

fn cases() -> Vec<Case> {
    let text = fs::read_to_string(data("cases.jsonl")).unwrap();
    let procedure = fs::read_to_string(data("telecom-mini.procedure.json")).unwrap();
    text.lines()
        .map(|line| {
            let case: Value = serde_json::from_str(line).unwrap();
            let mut procedure: Value = serde_json::from_str(&procedure).unwrap();
            if let Some(most) = case.get("max_calls") {
                procedure["max_calls"] = most.clone();
            }
            for (site, tree) in case["trees"].as_object().into_iter().flatten() {
                procedure["trees"][site] = tree.clone();
            }
            let folder = tempfile::tempdir().unwrap();
            let write = |name: &str, value: &Value| {
                fs::write(folder.path().join(name), value.to_string()).unwrap();
            };
            write("procedure.json", &procedure);
            write("script.json", &script(case["answers"].as_array().unwrap()));
            Case {
                name: case["name"].as_str().unwrap().to_owned(),
                folder,
                ticket: case["ticket"].as_str().unwrap().to_owned(),
                run: case["run"].clone(),
            }
        })
        .collect()
}

/// A server that gives these answers, each to its own call.
fn script(answers: &[Value]) -> Value {
    let tools: BTreeSet<&str> = answers
        .iter()
        .map(|answer| answer["tool"].as_str().unwrap())
        .collect();
    let mut before = BTreeMap::<String, u64>::new();
    let rules = answers.iter().map(|answer| {
        let nth = before
            .entry(format!("{}{}", answer["tool"], answer["arguments"]))
            .or_default();
        *nth += 1;
        let kind = if answer["failed"] == true { "error" } else { "text" };
        json!({"tool": answer["tool"], "args": answer["arguments"], "nth": nth, kind: answer["text"]})
    });
    json!({
        "script": 1,
        "tools": tools.iter().map(|tool| json!({"name": tool})).collect::<Vec<_>>(),
        "answers": rules.collect::<Vec<_>>(),
    })
}

/// The run of a case, once before a server that is started and once before one behind a URL.
fn runs(case: &Case) -> [Output; 2] {
    let file = |name: &str| case.folder.path().join(name);
    let started = program()
        .arg("--procedure")
        .arg(file("procedure.json"))
        .args(["--ticket", &case.ticket, "--"])
        .arg(env!("CARGO_BIN_EXE_stretto-mcp-demo"))
        .arg("--script")
        .arg(file("script.json"))
        .output()
        .unwrap();
    let served = Served::start(&file("script.json"));
    fs::write(file("ticket.txt"), &case.ticket).unwrap();
    let reached = program()
        .arg("--procedure")
        .arg(file("procedure.json"))
        .arg("--ticket-file")
        .arg(file("ticket.txt"))
        .args([
            "--upstream",
            &served.url,
            "--upstream-header",
            "Authorization=TEST_TOKEN",
        ])
        .env("TEST_TOKEN", server::TOKEN)
        .output()
        .unwrap();
    [started, reached]
}

#[test]
fn recorded_runs_are_made_again_over_both_transports() {
    let cases = cases();
    assert_eq!(cases.len(), 9);
    for case in cases {
        for output in runs(&case) {
            assert_eq!(code(&output), 0, "{}: {}", case.name, said(&output));
            let run: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(run, case.run, "{}", case.name);
            let said = said(&output);
            let summary = said.lines().last().unwrap();
            let calls = case.run["calls"].as_array().unwrap().len();
            assert!(
                summary.starts_with(&format!("stretto-procedure: {calls} call")),
                "{said}"
            );
        }
    }
}

#[test]
fn the_published_procedure_passes_over_what_does_not_bind() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.json");
    let all =
        json!({"tools": [{"name": "run_speed_test"}], "answers": [{"tool": "*", "text": "ok"}]});
    fs::write(&script, all.to_string()).unwrap();
    let output = program()
        .arg("--procedure")
        .arg(data("telecom-excerpt.procedure.json"))
        .args([
            "--ticket",
            "The customer at 555-123-4567 has no mobile data.",
            "--",
        ])
        .arg(env!("CARGO_BIN_EXE_stretto-mcp-demo"))
        .arg("--script")
        .arg(&script)
        .output()
        .unwrap();
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    let call = json!({"tool": "run_speed_test", "arguments": {}, "failed": false});
    assert_eq!(
        run,
        json!({"calls": [call], "check": null, "verdict": "hand_back"})
    );
    assert_eq!(
        said(&output),
        "stretto-procedure: 1 call; nothing could be checked; hand the ticket back\n"
    );
}

#[test]
fn a_run_is_written_as_people_read_it_and_stdout_stays_empty_when_it_goes_to_a_file() {
    let case = cases().swap_remove(0);
    let [output, _] = runs(&case);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(
        shown.starts_with("{\n  \"calls\": [\n    {\n      \"tool\": \"get_customer_by_phone\",\n      \"arguments\": {\n"),
        "{shown}"
    );
    let places: Vec<usize> = ["\n  \"calls\"", "\n  \"check\"", "\n  \"verdict\""]
        .iter()
        .map(|member| shown.find(member).unwrap())
        .collect();
    assert!(places.is_sorted() && shown.ends_with("\n}\n"));

    let to = |out: &Path| {
        program()
            .arg("--procedure")
            .arg(case.folder.path().join("procedure.json"))
            .args(["--ticket", &case.ticket, "--out"])
            .arg(out)
            .arg("--")
            .arg(env!("CARGO_BIN_EXE_stretto-mcp-demo"))
            .arg("--script")
            .arg(case.folder.path().join("script.json"))
            .output()
            .unwrap()
    };
    let out = case.folder.path().join("run.json");
    let output = to(&out);
    assert!(output.stdout.is_empty());
    assert_eq!(fs::read_to_string(&out).unwrap(), shown);

    // What was done in the world must not go untold.
    let output = to(Path::new("/dev/full"));
    assert_eq!(code(&output), 1);
    assert!(output.stdout.is_empty());
    let line = said(&output);
    let run = line
        .strip_prefix(
            "stretto-procedure: writing /dev/full: No space left on device (os error 28); make room, \
             or name a place that has some; the run was ",
        )
        .unwrap_or_else(|| panic!("{line}"));
    let [told, written] = [run, &shown].map(|run| run.parse::<Value>().unwrap());
    assert_eq!(told, written);
    assert_eq!(line.lines().count(), 1);
}

#[test]
fn the_proxy_may_stand_between_and_records_the_run() {
    let case = cases().swap_remove(0);
    let logs = case.folder.path().join("logs");
    let output = program()
        .arg("--procedure")
        .arg(case.folder.path().join("procedure.json"))
        .args(["--ticket", &case.ticket, "--"])
        .arg(env!("CARGO_BIN_EXE_stretto-proxy"))
        .arg("--record")
        .arg(&logs)
        .args(["--", env!("CARGO_BIN_EXE_stretto-mcp-demo"), "--script"])
        .arg(case.folder.path().join("script.json"))
        .output()
        .unwrap();
    assert_eq!(code(&output), 0, "{}", said(&output));
    let log = fs::read_dir(&logs).unwrap().next().unwrap().unwrap().path();
    let log = fs::read_to_string(log).unwrap();
    let calls = case.run["calls"].as_array().unwrap().len();
    // The check's own read is a call, too.
    assert_eq!(log.matches("\"method\":\"tools/call\"").count(), calls + 1);
    assert!(log.contains("\"name\":\"stretto-procedure\""));
}

/// A run of the smallest procedure that makes a call, before a shell script.
fn before_script(script: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let procedure = folder.path().join("p.json");
    let file = json!({
        "stretto_procedure": 1, "domain": "d", "symbolic": false, "max_calls": 1, "stop": "stop",
        "handoff": "person", "reads": [], "vocab": [], "trees": {}, "checks": [],
        "fallback": {"calls": [["look", 1]]},
    });
    fs::write(&procedure, file.to_string()).unwrap();
    program()
        .arg("--procedure")
        .arg(&procedure)
        .args(["--ticket", "t", "--", "sh", "-c", script])
        .output()
        .unwrap()
}

const OPENED: &str = r#"read a; echo '{"jsonrpc":"2.0","id":1,"result":{}}'; read b; read c; "#;

#[test]
fn whatever_else_a_server_says_before_its_answer_is_skipped() {
    let output = before_script(&format!(
        r#"echo 'Listening'; echo '{{"jsonrpc":"2.0","id":1,"method":"roots/list"}}'; {OPENED}
        echo '{{"jsonrpc":"2.0","method":"notifications/message","params":{{}}}}'
        echo '{{"jsonrpc":"2.0","id":"2","result":{{"isError":true}}}}'
        echo '{{"jsonrpc":"2.0","id":9,"result":{{"isError":true}}}}'
        echo '{{"jsonrpc":"2.0","id":2,"result":{{"content":[{{"type":"text","text":"a"}},{{"type":"image"}},{{"type":"text","text":"b"}}]}}}}'
        cat >/dev/null"#
    ));
    assert_eq!(code(&output), 0, "{}", said(&output));
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        run["calls"],
        json!([{"tool": "look", "arguments": {}, "failed": false}])
    );
}

#[test]
fn what_ends_a_run_is_one_line_that_names_it() {
    for (script, wanted) in [
        (
            "exit 3",
            "the server closed its output before it answered initialize",
        ),
        (
            &format!("{OPENED} exit 0"),
            "the server closed its output before it answered tools/call of look",
        ),
        (
            &format!(
                r#"{OPENED} echo '{{"jsonrpc":"2.0","id":2,"error":{{"code":-32602,"message":"Unknown tool: look"}}}}'"#
            ),
            "the server answered tools/call of look with the error -32602: Unknown tool: look",
        ),
    ] {
        let output = before_script(script);
        assert_eq!((code(&output), output.stdout.len()), (1, 0));
        assert_eq!(said(&output), format!("stretto-procedure: {wanted}\n"));
    }
}

#[test]
fn a_server_that_does_not_end_is_ended_and_the_run_is_written() {
    let output = before_script(&format!(
        r#"{OPENED} echo '{{"jsonrpc":"2.0","id":2,"result":{{}}}}'; trap '' TERM; exec sleep 600"#
    ));
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert!(!output.stdout.is_empty());
}

#[test]
fn a_bad_start_starts_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let started = folder.path().join("started");
    let touch = format!("touch {}; cat", started.display());
    let good = data("telecom-mini.procedure.json");
    let broken = folder.path().join("broken.json");
    fs::write(&broken, r#"{"stretto_procedure":2}"#).unwrap();
    let (good, broken) = (good.to_str().unwrap(), broken.to_str().unwrap());
    for (words, status, wanted) in [
        (
            vec!["--procedure", "/nowhere.json", "--ticket", "t"],
            1,
            "reading /nowhere.json: ",
        ),
        (vec!["--procedure", broken, "--ticket", "t"], 1, "version 2"),
        (vec!["--procedure", good], 1, "--ticket or --ticket-file"),
        (
            vec!["--procedure", good, "--ticket-file", "/nowhere.txt"],
            1,
            "reading /nowhere.txt: ",
        ),
        (
            vec!["--procedure", good, "--ticket", "t", "--ticket-file", "f"],
            2,
            "--ticket-file",
        ),
        (vec!["--ticket", "t"], 2, "--procedure"),
    ] {
        let output = program()
            .args(&words)
            .args(["--", "sh", "-c", &touch])
            .output()
            .unwrap();
        assert_eq!(code(&output), status, "{words:?}: {}", said(&output));
        assert!(
            said(&output).contains(wanted),
            "{words:?}: {}",
            said(&output)
        );
        assert!(output.stdout.is_empty() && !started.exists());
    }
    let none = program()
        .args(["--procedure", good, "--ticket", "t"])
        .output()
        .unwrap();
    assert_eq!(code(&none), 2, "{}", said(&none));
}

#[test]
fn what_cannot_be_started_or_reached_is_named() {
    let good = data("telecom-mini.procedure.json");
    let run = |words: &[&str]| {
        program()
            .arg("--procedure")
            .arg(&good)
            .args(["--ticket", "t"])
            .args(words)
            .output()
            .unwrap()
    };
    let output = run(&["--", "/no/such/program"]);
    assert_eq!(code(&output), 1);
    assert!(
        said(&output).starts_with("stretto-procedure: starting /no/such/program: "),
        "{}",
        said(&output)
    );

    let output = run(&["--upstream", "http://127.0.0.1:9/mcp"]);
    assert_eq!(code(&output), 1);
    assert!(
        said(&output).contains("answered initialize with the error -32000"),
        "{}",
        said(&output)
    );

    let output = run(&[
        "--upstream",
        "http://127.0.0.1:9/mcp",
        "--upstream-header",
        "A=NOT_SET_ANYWHERE",
    ]);
    assert_eq!(code(&output), 1);
    assert!(
        said(&output).contains("NOT_SET_ANYWHERE"),
        "{}",
        said(&output)
    );
}
