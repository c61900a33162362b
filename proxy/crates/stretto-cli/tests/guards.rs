//! `stretto guards`, as a person runs it.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::{Value, json};

/// What a run said: its exit code, stdout and stderr.
fn guards(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("stretto")
        .expect("the program is built")
        .arg("guards")
        .args(arguments)
        .output()
        .expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it speaks UTF-8");
    let code = output.status.code().expect("nothing kills it");
    (code, text(output.stdout), text(output.stderr))
}

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/airline-gpt4o")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("the folder's name is UTF-8")
}

/// A folder with a session log of these entries: each a sender, a colon and a message.
fn session(name: &str, domain: &str, entries: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let mut lines = vec![
        json!({"stretto_mcp_log": 2, "session": name, "started_unix_ms": 0, "domain": domain})
            .to_string(),
    ];
    for entry in entries {
        let (from, message) = entry.split_once(':').expect("a sender and a message");
        lines.push(format!(
            r#"{{"t_ms":0,"from":"{from}","message":{message}}}"#
        ));
    }
    let log = folder.path().join(format!("{name}.jsonl"));
    fs::write(log, lines.join("\n") + "\n").expect("there is room for a log");
    folder
}

#[test]
fn recorded_sessions_are_counted_by_outcome_and_rule() {
    let folder = tempfile::tempdir().unwrap();
    let [audits, report] = ["audits.json", "report.md"].map(|name| folder.path().join(name));
    let index = recorded().join("index.tsv");
    let (code, out, err) = guards(&[
        "--sessions",
        path(&recorded()),
        "--outcomes",
        path(&index),
        "--json",
        path(&audits),
        "--out",
        path(&report),
    ]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", ""));

    let audits: Value = serde_json::from_slice(&fs::read(audits).unwrap()).unwrap();
    let [audit] = audits.as_array().unwrap().as_slice() else {
        panic!("{audits}")
    };
    assert_eq!(audit["domain"], "airline");
    assert_eq!(audit["episodes"], json!([54, 66]));
    assert_eq!(audit["writes"], json!([102, 31]));
    assert_eq!(audit["refused_by_proxy"], 0);
    assert_eq!(audit["refused"], json!([4, 16]));
    assert_eq!(audit["tasks"].as_object().unwrap().len(), 30);
    assert_eq!(audit["tasks"]["27"], json!([2, 2, 2, 2]));
    let rules = audit["rules"].as_array().unwrap();
    let ids: Vec<&str> = rules
        .iter()
        .map(|rule| rule["rule"].as_str().unwrap())
        .collect();
    assert!(ids.is_sorted() && ids.len() == 10, "{ids:?}");
    let rule = |id: &str| rules.iter().find(|rule| rule["rule"] == id).unwrap();
    let cancel = rule("airline.cancel_allowed");
    assert_eq!(cancel["enforced"], true);
    assert_eq!(cancel["successful"], json!([7, 4, 0]));
    assert_eq!(cancel["failed"], json!([5, 12, 1]));
    assert_eq!(cancel["refused_by_tool"], json!([0, 0, 0]));
    assert_eq!(cancel["episodes_failed"], json!([4, 11]));
    let past =
        |session: &str, task: &str| json!([session, task, "part of the trip is in the past"]);
    assert_eq!(
        cancel["false_alarms"],
        json!([
            past("20261101T002700.000Z-1027", "26"),
            past("20261101T011800.000Z-1078", "27"),
            past("20261101T020700.000Z-1127", "26"),
            past("20261101T020800.000Z-1128", "27"),
        ])
    );
    let confirmed = rule("airline.confirmed");
    assert_eq!(confirmed["enforced"], false);
    assert_eq!(confirmed["successful"], json!([27, 1, 0]));
    assert_eq!(confirmed["refused_by_tool"], json!([23, 8, 0]));
    assert_eq!(
        rule("airline.basic_economy_flights")["failed"],
        json!([23, 3, 0])
    );

    let report = fs::read_to_string(report).unwrap();
    for line in [
        "## Airline",
        "54 successful and 66 failed sessions hold 102 checked writes that the tools accepted and \
         31 that they refused. An enforced rule would refuse an accepted write in 4 successful and \
         16 failed sessions.",
        "| `airline.cancel_allowed` | yes | 7 / 4 / 0 | 5 / 12 / 1 | 0 / 0 / 0 | 4 / 11 |",
        "| `airline.confirmed` | logged | 27 / 1 / 0 | 57 / 9 / 0 | 23 / 8 / 0 | 1 / 8 |",
        "- `airline.cancel_allowed`, task 27 (20261101T011800.000Z-1078): part of the trip is in \
         the past",
    ] {
        assert!(
            report.lines().any(|found| found == line),
            "{line}\n{report}"
        );
    }
}

#[test]
fn sessions_without_an_outcome_count_as_successful_tasks_of_their_own() {
    let (code, out, err) = guards(&["--sessions", path(&recorded()), "--domain", "airline"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(
        out.contains("\n120 successful and 0 failed sessions hold 102 checked writes"),
        "{out}"
    );
    let alarm = "- `airline.cancel_allowed`, task 20261101T002800.000Z-1028 \
                 (20261101T002800.000Z-1028): part of the trip is in the past\n";
    assert!(out.contains(alarm), "{out}");
}

#[test]
fn a_session_is_successful_with_the_whole_reward_or_an_unknown_one() {
    for (reward, counts) in [
        ("1", "1 successful and 0 failed"),
        ("0.9999999999", "1 successful and 0 failed"),
        ("0.999", "0 successful and 1 failed"),
        ("0", "0 successful and 1 failed"),
        ("", "1 successful and 0 failed"),
    ] {
        let folder = session("s", "retail", &[MOVE]);
        let index = folder.path().join("index.tsv");
        fs::write(&index, format!("session\treward\ns\t{reward}\n")).unwrap();
        let arguments = [
            "--sessions",
            path(folder.path()),
            "--outcomes",
            path(&index),
        ];
        let (code, out, _) = guards(&arguments);
        assert_eq!(code, 0);
        assert!(
            out.contains(&format!("\n{counts} sessions hold 1 checked")),
            "{reward} {out}"
        );
    }
}

#[test]
fn sessions_of_other_domains_are_left_out() {
    let (code, out, err) = guards(&["--sessions", path(&recorded()), "--domain", "retail"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        err == "stretto: of 120 sessions none is of the domain retail, but of airline; sessions are \
                recorded with stretto-proxy --domain\n",
        "{err}"
    );

    let folder = session("b", "shop", &[]);
    fs::copy(
        recorded().join("20261101T011800.000Z-1078.jsonl"),
        folder.path().join("a.jsonl"),
    )
    .unwrap();
    let (code, out, err) = guards(&["--sessions", path(folder.path())]);
    assert_eq!(
        (code, err.as_str()),
        (0, "stretto: 1 session of other domains left out\n")
    );
    assert!(
        out.contains("## Airline") && !out.contains("## Retail"),
        "{out}"
    );
}

const FIND: &str =
    r#"client:{"id":1,"method":"tools/call","params":{"name":"find_user_id_by_email"}}"#;
const FOUND: &str = r#"server:{"id":1,"result":{"content":[{"type":"text","text":"ann_1"}]}}"#;
const MOVE: &str =
    r#"client:{"id":2,"method":"tools/call","params":{"name":"modify_user_address"}}"#;

#[test]
fn a_call_is_judged_against_what_came_before_its_own_request() {
    // The write joins the turn of the lookup that it follows at once, and is judged after it.
    let folder = session("s", "retail", &[FIND, FOUND, MOVE]);
    let (code, out, _) = guards(&["--sessions", path(folder.path())]);
    assert_eq!(code, 0);
    let row = "| `retail.authenticated` | yes | 1 / 0 / 0 | 0 / 0 / 0 | 0 / 0 / 0 | 0 / 0 |";
    assert!(out.contains(row), "{out}");

    let folder = session("s", "retail", &[FIND, MOVE, FOUND]);
    let (_, out, _) = guards(&["--sessions", path(folder.path())]);
    let row = "| `retail.authenticated` | yes | 0 / 1 / 0 | 0 / 0 / 0 | 0 / 0 / 0 | 1 / 0 |";
    assert!(out.contains(row), "{out}");
}

#[test]
fn what_the_proxy_refused_is_counted_apart() {
    let refusal = r#"proxy:{"id":2,"result":{"content":[{"type":"text","text":"Refused by the policy check, so modify_user_address was not run and nothing changed: x."}],"isError":true}}"#;
    let folder = session("s", "retail", &[MOVE, refusal]);
    let json = folder.path().join("audits.json");
    let (code, out, _) = guards(&["--sessions", path(folder.path()), "--json", path(&json)]);
    assert_eq!(code, 0);
    assert!(
        out.contains("The proxy itself refused 1 more when the sessions ran"),
        "{out}"
    );
    let row = "| `retail.authenticated` | yes | 0 / 0 / 0 | 0 / 0 / 0 | 0 / 0 / 0 | 0 / 0 |";
    assert!(out.contains(row), "{out}");
    let audits: Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    assert_eq!(audits[0]["writes"], json!([0, 0]));
    assert_eq!(audits[0]["refused_by_proxy"], 1);
    assert_eq!(audits[0]["refused"], json!([0, 0]));

    let by_the_tool =
        r#"server:{"id":2,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}"#;
    let folder = session("s", "retail", &[MOVE, by_the_tool]);
    let (_, out, _) = guards(&["--sessions", path(folder.path())]);
    let row = "| `retail.authenticated` | yes | 0 / 0 / 0 | 0 / 0 / 0 | 0 / 1 / 0 | 0 / 0 |";
    assert!(out.contains(row), "{out}");
    assert!(!out.contains("The proxy itself refused"), "{out}");
}

#[test]
fn at_most_five_false_alarms_of_a_rule_are_listed_and_nothing_steers_the_terminal() {
    let mut entries = vec![FIND.replace("find_user_id_by_email", "get_order_details")];
    for _ in 0..7 {
        entries.push(
            r#"client:{"id":2,"method":"tools/call","params":{"name":"cancel_pending_order","arguments":{"reason":"\u001b[2J"}}}"#
                .to_owned(),
        );
    }
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let folder = session("s", "retail", &entries);
    let (code, out, _) = guards(&["--sessions", path(folder.path())]);
    assert_eq!(code, 0);
    let line = "- `retail.cancel_reason`, task s (s): '\\u{1b}[2J' is not an accepted reason\n";
    assert_eq!(out.matches(line).count(), 5, "{out}");
    assert!(!out.contains('\u{1b}'));
}

#[test]
fn sessions_are_listed_by_their_names_not_their_files() {
    let folder = session("b", "retail", &[MOVE]);
    let other = session("a", "retail", &[MOVE]);
    fs::rename(folder.path().join("b.jsonl"), folder.path().join("1.jsonl")).unwrap();
    fs::copy(other.path().join("a.jsonl"), folder.path().join("2.jsonl")).unwrap();
    let (_, out, _) = guards(&["--sessions", path(folder.path())]);
    let place = |session: &str| out.find(&format!("task {session} ({session})")).unwrap();
    assert!(place("a") < place("b"), "{out}");
}

fn case(expected: &str) -> String {
    json!({
        "name": "an address of somebody unknown",
        "domain": "retail",
        "events": [{"user": "yes"}],
        "call": {"name": "modify_user_address", "arguments": {}},
        "verdicts": {"retail.authenticated": expected, "retail.confirmed": "pass"},
        "refused_by": ["retail.authenticated"],
    })
    .to_string()
}

#[test]
fn cases_that_hold_are_only_counted() {
    let folder = tempfile::tempdir().unwrap();
    let cases = folder.path().join("cases.jsonl");
    fs::write(&cases, format!("{}\n\n{}\n", case("fail"), case("fail"))).unwrap();
    let (code, out, err) = guards(&["--cases", path(&cases)]);
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (0, "cases as expected: 2\n", "")
    );
}

#[test]
fn cases_that_differ_are_listed_and_fail() {
    let folder = tempfile::tempdir().unwrap();
    let cases = folder.path().join("cases.jsonl");
    fs::write(&cases, format!("{}\n{}\n", case("fail"), case("pass"))).unwrap();
    let (code, out, err) = guards(&["--cases", path(&cases)]);
    let summary = "stretto: cases not as expected: 1 of 2\n";
    assert_eq!((code, err.as_str()), (1, summary));
    let expected = format!(
        "{}:2: an address of somebody unknown: retail.authenticated: expected pass, found fail\n",
        cases.display()
    );
    assert_eq!(out, expected);
}

#[test]
fn cases_find_their_records_beside_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    let [cases, records] = ["guards", "tau2"].map(|name| folder.path().join(name));
    fs::create_dir(&cases).unwrap();
    let cases = cases.join("cases.jsonl");
    let case = json!({
        "name": "an order that was read",
        "domain": "retail",
        "events": [{"result": {
            "call_id": "1", "name": "get_order_details", "error": false, "record": "orders/#W1"
        }}],
        "call": {"name": "modify_pending_order_address", "arguments": {"order_id": "#W1"}},
        "verdicts": {
            "retail.authenticated": "fail",
            "retail.own_order": "unknown",
            "retail.status_checked": "pass",
            "retail.pending": "pass",
            "retail.confirmed": "fail",
        },
        "refused_by": ["retail.authenticated"],
    });
    fs::write(&cases, case.to_string()).unwrap();
    let (code, out, err) = guards(&["--cases", path(&cases)]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        err.starts_with("stretto: reading the records that cases name from "),
        "{err}"
    );

    fs::create_dir(&records).unwrap();
    let record = json!({"orders": {"#W1": {"order_id": "#W1", "status": "pending"}}});
    fs::write(records.join("retail-mini.json"), record.to_string()).unwrap();
    let (code, out, err) = guards(&["--cases", path(&cases)]);
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (0, "cases as expected: 1\n", "")
    );
}

#[test]
fn a_case_that_does_not_read_is_named_by_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let cases = folder.path().join("cases.jsonl");
    fs::write(&cases, format!("{}\n{{\"name\": 1}}\n", case("fail"))).unwrap();
    let (code, _, err) = guards(&["--cases", path(&cases)]);
    assert_eq!(code, 1);
    assert!(
        err.starts_with(&format!("stretto: {}:2: ", cases.display())),
        "{err}"
    );
    assert_eq!(err.lines().count(), 1);
}

#[test]
fn an_outcome_that_does_not_read_stops_the_audit() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path().join("index.tsv");
    fs::write(&index, "session\treward\na\ttwo\n").unwrap();
    let (code, out, err) = guards(&["--sessions", path(&recorded()), "--outcomes", path(&index)]);
    assert_eq!((code, out.as_str()), (1, ""));
    let expected = format!(
        "stretto: {}:2: \"two\" is no reward from 0 to 1\n",
        index.display()
    );
    assert_eq!(err, expected);
}

#[test]
fn the_command_line_names_one_input() {
    for wrong in [
        &[][..],
        &["--domain", "airline"],
        &["--sessions", ".", "--cases", "x"],
        &["--cases", "x", "--json", "y"],
        &["--sessions", ".", "--domain", "telecom"],
    ] {
        let (code, out, err) = guards(wrong);
        assert_eq!((code, out.as_str()), (2, ""), "{wrong:?} {err}");
    }
}
