//! `stretto confirm` and the commands about cached answers, as a person runs them.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something unexpected happens"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::{Value, json};
use stretto_guards::Exchange;
use stretto_guards::confirm::{FIRST, Judge, Second};
use stretto_oracle::{Answer, Cache, Key, Request, Response, Usage};
use stretto_trace::ToolCall;
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

/// What a run said: its exit code, stdout and stderr.
fn stretto(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("stretto").unwrap();
    for name in [
        "TYPESAFE_API_KEY",
        "TYPESAFE_API_KEY_FILE",
        "TYPESAFE_DEFAULT_MODEL",
    ] {
        command.env_remove(name);
    }
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .current_dir(folder)
        .args(arguments)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// A recorded session: an order of the customer's is read, and then cancelled after this
/// exchange.
fn session(name: &str, proposal: &str, reply: &str) -> Vec<Value> {
    let call = |id: u64, name: &str, arguments: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
               "params": {"name": name, "arguments": arguments}})
    };
    let result = |id: u64, text: &str| json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}});
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let entry = |(at, (from, message)): (usize, (&str, Value))| json!({"t_ms": 1000 * at, "from": from, "message": message});
    let order = r##"{"order_id":"#W7a","user_id":"user_7","status":"pending"}"##;
    let entries = [
        (
            "context",
            said("user", "I am c7@example.com. I want #W7a cancelled."),
        ),
        (
            "client",
            call(
                1,
                "find_user_id_by_email",
                json!({"email": "c7@example.com"}),
            ),
        ),
        ("server", result(1, "user_7")),
        (
            "client",
            call(2, "get_order_details", json!({"order_id": "#W7a"})),
        ),
        ("server", result(2, order)),
        ("context", said("assistant", proposal)),
        ("context", said("user", reply)),
        (
            "client",
            call(3, "cancel_pending_order", cancel().arguments),
        ),
        ("context", said("assistant", "Done.")),
        (
            "server",
            result(3, r##"{"order_id":"#W7a","status":"cancelled"}"##),
        ),
    ];
    let header =
        json!({"stretto_mcp_log": 2, "session": name, "started_unix_ms": 0, "domain": "retail"});
    let entries = entries.into_iter().enumerate().map(entry);
    std::iter::once(header).chain(entries).collect()
}

fn cancel() -> ToolCall {
    ToolCall {
        id: "3".to_owned(),
        name: "cancel_pending_order".to_owned(),
        arguments: json!({"order_id": "#W7a", "reason": "no longer needed"}),
    }
}

const SHALL_I: &str = "I can cancel #W7a because you no longer need it. Shall I?";

/// A folder with three sessions: a yes, a question with a confirming word in it, and a yes that
/// the word list does not know.
fn recorded() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, reply) in [("s1", REPLIES[0]), ("s2", REPLIES[1]), ("s3", REPLIES[2])] {
        let lines: Vec<String> = session(name, SHALL_I, reply)
            .iter()
            .map(Value::to_string)
            .collect();
        let logs = folder.path().join("logs");
        fs::create_dir_all(&logs).unwrap();
        fs::write(logs.join(format!("{name}.jsonl")), lines.join("\n") + "\n").unwrap();
    }
    let outcomes = "session\ttask\treward\ns1\tt1\t1\ns2\tt2\t0\ns3\tt3\t1\n";
    fs::write(folder.path().join("outcomes.tsv"), outcomes).unwrap();
    folder
}

const REPLIES: [&str; 3] = [
    "Yes, go ahead.",
    "Sure, but what would\nI get | back?",
    "Do so.",
];

/// The requests about a reply, built as the live judge builds them.
fn requests(reply: &str) -> (Request, Request) {
    let mut exchange = Exchange::default();
    exchange.agent_said(SHALL_I);
    exchange.user_said(reply);
    let judge = Judge {
        second: Some(Second::Proposed),
        ..Judge::new("jev-latest")
    };
    let (first, second) = judge.requests(&exchange, &cancel());
    (first, second.unwrap())
}

fn noul(id: &str, noul: f64) -> Response {
    Response {
        model: "jev-1.13.0".to_owned(),
        answers: [(id.to_owned(), Answer::Noul { noul })].into(),
        usage: Usage::default(),
    }
}

/// Seeds the default cache with what a model says of each reply.
fn seed(folder: &Path, answers: &[(f64, f64)]) -> Cache {
    let cache = Cache::new(folder.join(".oracle-cache"));
    for (reply, (first, second)) in REPLIES.iter().zip(answers) {
        let (asked, also) = requests(reply);
        cache.write(&asked.key(), &noul(FIRST, *first)).unwrap();
        cache
            .write(&also.key(), &noul("proposed", *second))
            .unwrap();
    }
    cache
}

const CONFIRM: [&str; 5] = [
    "confirm",
    "--sessions",
    "logs",
    "--outcomes",
    "outcomes.tsv",
];

fn with(more: &[&'static str]) -> Vec<&'static str> {
    CONFIRM.into_iter().chain(more.iter().copied()).collect()
}

fn json_file(path: &PathBuf) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn cached_answers_are_found_and_counted_by_outcome() {
    let folder = recorded();
    seed(folder.path(), &[(0.9, 0.2), (0.15, 0.8), (0.95, 0.9)]);
    let arguments = with(&["--second-question", "proposed", "--json", "audit.json"]);
    let (code, out, err) = stretto(folder.path(), &arguments, &[]);
    assert_eq!((code, err.as_str()), (0, ""));

    let json = json_file(&folder.path().join("audit.json"));
    let audit = &json["audits"][0];
    assert_eq!(audit["domain"], "retail");
    assert_eq!(
        audit["successful"],
        json!({"writes": 2, "word_list": 1, "judge": 0, "two_questions": 1, "both": 0, "unanswered": 0})
    );
    assert_eq!(
        audit["failed"],
        json!({"writes": 1, "word_list": 0, "judge": 1, "two_questions": 1, "both": 0, "unanswered": 0})
    );
    assert_eq!(
        audit["episodes"],
        json!({"word_list": [1, 0], "judge": [0, 1], "two_questions": [1, 1], "both": [0, 0]})
    );
    let write = &json["writes"][1];
    let (first, second) = requests(REPLIES[1]);
    assert_eq!(
        *write,
        json!({"domain": "retail", "task_id": "t2", "episode": "s2", "tool": "cancel_pending_order",
               "success": false, "refused": false, "word_list": true, "p_yes": 0.15,
               "p_second": 0.8, "customer": REPLIES[1], "key": first.key(),
               "second_key": second.key()})
    );
    assert!(
        out.contains("| accepted, failed sessions | 1 | 0 | 1 | 1 | 0 | 0 |"),
        "{out}"
    );
    let example = "- task t2, `cancel_pending_order`, p_yes 0.15, p_second 0.80, failed: \
                   Sure, but what would I get | back?";
    assert!(out.contains(example), "{out}");
    assert!(
        out.contains("Only the second question fails:\n\n- task t1,"),
        "{out}"
    );
}

#[test]
fn the_threshold_is_the_least_that_passes() {
    let folder = recorded();
    seed(folder.path(), &[(0.9, 0.5), (0.5, 0.5), (0.5, 0.5)]);
    let failing = |threshold: &'static str| {
        let arguments = with(&["--threshold", threshold, "--json", "audit.json"]);
        assert_eq!(stretto(folder.path(), &arguments, &[]).0, 0);
        let json = json_file(&folder.path().join("audit.json"));
        json["writes"].as_array().unwrap().len() as u64
            - json["audits"][0]["successful"]["judge"].as_u64().unwrap()
            - json["audits"][0]["failed"]["judge"].as_u64().unwrap()
    };
    assert_eq!(failing("0.5"), 3);
    assert_eq!(failing("0.51"), 1);
}

#[test]
fn a_write_that_a_rule_refuses_is_not_asked_about() {
    let folder = recorded();
    let log = folder.path().join("logs/s1.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(
        &log,
        text.replace("no longer needed\"", "found it cheaper\""),
    )
    .unwrap();
    let (code, _, err) = stretto(
        folder.path(),
        &with(&["--oracle", "mock", "--json", "a.json"]),
        &[],
    );
    assert_eq!((code, err.as_str()), (0, ""));
    let json = json_file(&folder.path().join("a.json"));
    let writes = json["writes"].as_array().unwrap();
    let episodes: Vec<&Value> = writes.iter().map(|write| &write["episode"]).collect();
    assert_eq!(episodes, ["s2", "s3"]);
    assert!(writes.iter().all(|write| write["p_yes"] == 0.5));
}

#[test]
fn what_the_cache_lacks_is_counted_and_the_first_is_named() {
    let folder = recorded();
    let (code, out, err) = stretto(folder.path(), &CONFIRM, &[]);
    assert_eq!(code, 0);
    let keys: Vec<Key> = REPLIES
        .iter()
        .map(|reply| requests(reply).0.key())
        .collect();
    let first = keys.iter().min().unwrap();
    assert_eq!(
        err,
        format!(
            "stretto: 3 of 3 questions got no answer, the first: no cached answer for request {first}; --oracle jev asks the model\n"
        )
    );
    assert!(
        out.contains("| accepted, successful sessions | 2 | 1 | 0 | – | 0 | 2 |"),
        "{out}"
    );
}

#[test]
fn requests_are_written_out_with_their_keys_when_asked_for() {
    let folder = recorded();
    let arguments = with(&["--oracle", "mock", "--oracle-dump", "dump.jsonl"]);
    assert_eq!(stretto(folder.path(), &arguments, &[]).0, 0);
    let dump = fs::read_to_string(folder.path().join("dump.jsonl")).unwrap();
    let lines: Vec<Value> = dump
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    for line in lines {
        let request: Request = serde_json::from_value(line["request"].clone()).unwrap();
        assert_eq!(line["key"], json!(request.key()));
    }
}

async fn service() -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1/systemone"))
        .and(header("authorization", "Bearer sk-do-not-show"))
        .respond_with(ResponseTemplate::new(200).set_body_json(noul(FIRST, 0.75)))
        .mount(&server)
        .await;
    server
}

#[tokio::test]
async fn the_service_is_asked_once_for_each_and_the_key_is_nowhere() {
    let server = service().await;
    let folder = recorded();
    let uri = server.uri();
    let arguments = with(&["--oracle", "jev"]);
    let run = |folder: PathBuf| {
        let (uri, arguments) = (uri.clone(), arguments.clone());
        tokio::task::spawn_blocking(move || {
            let variables = [
                ("TYPESAFE_API_KEY", "sk-do-not-show"),
                ("TYPESAFE_BASE_URL", &uri),
            ];
            stretto(&folder, &arguments, &variables)
        })
    };
    let (code, out, err) = run(folder.path().to_owned()).await.unwrap();
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("3 questions of about "), "{err}");
    assert!(
        out.contains("| accepted, successful sessions | 2 | 1 | 0 | – | 0 | 0 |"),
        "{out}"
    );
    assert!(!format!("{out}{err}").contains("sk-do-not-show"));
    assert_eq!(server.received_requests().await.unwrap().len(), 3);

    let (code, again, _) = run(folder.path().to_owned()).await.unwrap();
    assert_eq!((code, again), (0, out));
    assert_eq!(server.received_requests().await.unwrap().len(), 3);
}

#[test]
fn what_may_cost_too_much_is_not_started() {
    let folder = recorded();
    let arguments = with(&["--oracle", "jev", "--oracle-budget", "0.000001"]);
    let variables = [
        ("TYPESAFE_API_KEY", "k"),
        ("TYPESAFE_BASE_URL", "http://127.0.0.1:1"),
    ];
    let (code, out, err) = stretto(folder.path(), &arguments, &variables);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        err.contains("asking 3 questions would cost about $0.00")
            && err.contains("--oracle-budget"),
        "{err}"
    );
}

#[test]
fn a_key_that_cannot_be_sent_is_refused_without_being_shown() {
    let folder = recorded();
    let variables = [("TYPESAFE_API_KEY", "sk-do-not\nshow")];
    let (code, _, err) = stretto(folder.path(), &with(&["--oracle", "jev"]), &variables);
    assert_eq!(code, 1);
    assert!(
        err.contains("TYPESAFE_API_KEY") && !err.contains("sk-do-not"),
        "{err}"
    );
    // Who asks no service needs no key, and a wrong one is no trouble.
    let (code, _, err) = stretto(folder.path(), &with(&["--oracle", "mock"]), &variables);
    assert_eq!((code, err.as_str()), (0, ""));
}

#[test]
fn answers_are_exported_sorted_and_imported_elsewhere() {
    let folder = recorded();
    let cache = seed(folder.path(), &[(0.9, 0.2), (0.15, 0.8), (0.95, 0.9)]);
    let (code, out, err) = stretto(folder.path(), &["export-answers"], &[]);
    assert_eq!((code, err.as_str()), (0, "stretto: 6 answers exported\n"));
    let keys: Vec<String> = out
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["key"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(keys.len(), 6);
    assert!(keys.is_sorted());

    let file = folder.path().join("answers.jsonl");
    fs::write(&file, &out).unwrap();
    let import = ["import-answers", "--oracle-cache", "other", "answers.jsonl"];
    let (code, _, err) = stretto(folder.path(), &import, &[]);
    assert_eq!((code, err.as_str()), (0, "stretto: 6 answers imported\n"));
    let other = Cache::new(folder.path().join("other"));
    for key in cache.keys().unwrap() {
        assert_eq!(
            fs::read(cache.path(&key)).unwrap(),
            fs::read(other.path(&key)).unwrap()
        );
    }
}

#[test]
fn a_line_whose_key_is_none_is_named_and_nothing_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    let response = json!({"model": "m", "answers": {}});
    let good = json!({"key": requests("x").0.key(), "response": response});
    let bad = json!({"key": "../../escape", "response": response});
    fs::write(folder.path().join("a.jsonl"), format!("{good}\n{bad}\n")).unwrap();
    let import = ["import-answers", "--oracle-cache", "cache", "a.jsonl"];
    let (code, _, err) = stretto(folder.path(), &import, &[]);
    assert_eq!(code, 1);
    assert!(
        err.starts_with(
            "stretto: a.jsonl:2 is no line of stretto export-answers: not the key of a request"
        ),
        "{err}"
    );
    assert!(!folder.path().join("cache").exists());
}

#[test]
fn a_request_is_answered_with_its_key_on_stderr() {
    let folder = tempfile::tempdir().unwrap();
    let (request, _) = requests(REPLIES[0]);
    fs::write(
        folder.path().join("r.json"),
        serde_json::to_string_pretty(&request).unwrap(),
    )
    .unwrap();
    let (code, out, err) = stretto(folder.path(), &["ask", "--oracle", "mock", "r.json"], &[]);
    assert_eq!(
        (code, err),
        (0, format!("stretto: key {}\n", request.key()))
    );
    let response = Response::parse(out.as_bytes()).unwrap();
    assert_eq!(
        (response.model.as_str(), response.noul(FIRST)),
        ("mock", Some(0.5))
    );

    let (code, out, err) = stretto(folder.path(), &["ask", "--oracle", "replay", "r.json"], &[]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        err.ends_with(&format!(
            "no cached answer for request {}; --oracle jev asks the model\n",
            request.key()
        )),
        "{err}"
    );
    // Nobody has a key, and the service is not asked.
    let (code, _, err) = stretto(folder.path(), &["ask", "r.json"], &[]);
    assert_eq!(code, 1);
    assert!(err.contains("TYPESAFE_API_KEY_FILE"), "{err}");
}

/// The page about the model.
const PAGE: &str = include_str!("../../../docs/model.md");

/// The page's blocks of a language, without their fences.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let begun = PAGE.split(&fence).skip(1);
    begun
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

#[test]
fn the_page_about_the_model_shows_what_is_asked_kept_and_done() {
    let folder = recorded();
    let at = |name: &str| folder.path().join(name);
    seed(folder.path(), &[(0.9, 0.9), (0.1, 0.9), (0.8, 0.2)]);
    fs::rename(at(".oracle-cache"), at("CACHE")).unwrap();
    fs::rename(at("logs"), at("LOGS")).unwrap();
    let [request, response] = blocks("json")[..] else {
        panic!("a request and a response");
    };
    fs::write(at("request.json"), request).unwrap();
    let asked: Request = serde_json::from_str(request).unwrap();
    let key = asked.key().to_string();
    let (start, _) = key.split_at(8);
    assert!(PAGE.contains(&format!("DIR/4f/{start}….json")), "{key}");
    assert_eq!(
        Response::parse(response.as_bytes()).unwrap().noul("urgent"),
        Some(0.93)
    );

    for line in blocks("sh")[0].lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (code, _, err) = stretto(folder.path(), &words[1..], &[]);
        assert_eq!((words[0], code), ("stretto", 0), "{line}: {err}");
        assert!(!err.contains("no answer"), "{line}: {err}");
    }
    let kept = |name: &str| Cache::new(at(name)).keys().unwrap();
    assert_eq!(kept("OTHER"), kept("CACHE"));
    assert_eq!(kept("OTHER").len(), 6);
    let dumped = fs::read_to_string(at("asked.jsonl")).unwrap();
    assert_eq!(dumped.lines().count(), 6, "two questions about each write");
}
