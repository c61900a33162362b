//! What `docs/privacy.md` says of each file and of each question, held against a whole run.
//!
//! A value is planted for each kind of thing that a file may hold. The run is a session with all that
//! acts, then every command of `stretto` that writes a file, and a procedure. Each row of the
//! page's first table is a file or a folder of the run; whatever else there is fails the test.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use walkdir::WalkDir;

use crate::host::{KEY, Model, Session, Setup};
use crate::{Result, stretto};

/// The page's columns, and what is planted for each.
const PLANTED: [(&str, &[&str]); 5] = [
    ("Agent's reads", &["planted-read@example.com"]),
    ("Proxy's lookups", &["user_planted_lookup"]),
    ("Writes", &["planted-write"]),
    ("Results", &["planted-result"]),
    (
        "Conversation",
        &["planted-request", "planted-proposal", "planted-reply"],
    ),
];

/// What may be in no file, in no question and on no stream: a key, a word of the server's command, a
/// variable, the salt.
const SECRETS: [&str; 4] = [KEY, "planted-word", "planted-variable", "planted-salt"];

/// A value in the entry of a host's configuration, which its backup holds as well.
const CONFIGURED: &str = "planted-configured";

/// The row of a host's configuration and of its backup.
const WRAPPED: &str = "stretto init --wrap";

/// How often the session is held: as often as it takes until what its calls share counts as a constant.
const SESSIONS: usize = 3;

/// The page's rows beside the logs, and where in the run each file is.
const FILES: [(&str, &str); 23] = [
    ("stderr", "stderr"),
    ("--explain", "explain"),
    ("--oracle-cache", "cache"),
    ("stretto learn --out", "learned.flow.json"),
    ("stretto learn --out", "scored.flow.json"),
    ("stretto learn --out", "fitted.flow.json"),
    ("stretto learn --json", "scores.json"),
    ("stretto learn --oracle-dump", "learning.jsonl"),
    ("stretto compile --out", "compiled.flow.json"),
    ("stretto learn --constants --out", "constants.flow.json"),
    ("stretto promote --out", "promoted.flow.json"),
    ("stretto export-arbiter --out", "arbiter.json"),
    ("stretto export-answers --out", "answers.jsonl"),
    ("stretto confirm --oracle-dump", "asked.jsonl"),
    ("stretto confirm --json", "judged.json"),
    ("stretto confirm --out", "judged.md"),
    ("stretto guards --json", "guards.json"),
    ("stretto guards --out", "guards.md"),
    ("stretto audit --json", "audit.json"),
    ("stretto evaluate --json", "evaluate.json"),
    ("stretto redact --out", "copies"),
    (WRAPPED, "configuration"),
    ("stretto-procedure --out", "procedure.json"),
];

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

pub(crate) fn the_page_says_what_is_where() -> Result {
    let page = fs::read_to_string(checkout().join("proxy/docs/privacy.md"))?;
    let folder = tempfile::tempdir()?;
    let [given, run] = ["given", "run"].map(|name| folder.path().join(name));
    fs::create_dir_all(&given)?;
    fs::create_dir_all(&run)?;
    let model = Model::start(0)?;
    for _ in 0..SESSIONS {
        session(&given, &run, &model)?;
    }
    offline(&given, &run)?;
    configuration(&run)?;
    procedure(&given, &run)?;
    files_are_as_the_page_says(&page, &run)?;
    questions_are_as_the_page_says(&page, &model.heard())
}

fn flow() -> PathBuf {
    checkout().join(
        "proxy/crates/stretto-flow/tests/data/flows/retail-5-sessions-shipped-arbiter.flow.json",
    )
}

/// A shop whose records hold what is planted.
fn script() -> Value {
    let order = json!({
        "order_id": "{args.order_id}", "status": "pending", "user_id": "user_planted_lookup",
        "items": [], "payment_history": [],
    });
    let user = json!({
        "user_id": "user_planted_lookup", "orders": ["#W7a"], "note": "planted-result",
    });
    json!({
        "script": 1,
        "world": "retail",
        "answers": [
            {"tool": "find_user_id_by_email", "text": "user_planted_lookup"},
            {"tool": "get_user_details", "json": user},
            {"tool": "get_order_details", "json": order},
            {"tool": "cancel_pending_order", "json": {"order_id": "{args.order_id}", "status": "cancelled"}},
        ],
    })
}

/// A session with everything that acts.
fn session(given: &Path, run: &Path, model: &Model) -> Result {
    fs::write(given.join("key"), KEY)?;
    fs::write(given.join("script.json"), script().to_string())?;
    let options = [
        "--domain",
        "retail",
        "--guards",
        "--commit",
        "--confirm-judge",
        "enforce",
        "--confirm-second",
        "proposed",
        "--flow-explore",
        "0",
    ];
    let files = [
        ("--record", run.join("logs")),
        ("--explain", run.join("explain")),
        ("--oracle-cache", run.join("cache")),
        ("--flow", flow()),
    ];
    let files = files
        .into_iter()
        .flat_map(|(option, path)| [option.into(), OsString::from(path)]);
    let command = "exec \"$0\" --script \"$1\"";
    let mut server: Vec<OsString> = ["sh", "-c", command, env!("CARGO_BIN_EXE_stretto-mcp-demo")]
        .map(OsString::from)
        .into();
    server.push(given.join("script.json").into());
    server.extend(["--api-key", "planted-word"].map(OsString::from));
    let mut host = Session::start(Setup {
        own: given,
        options: options
            .map(OsString::from)
            .into_iter()
            .chain(files)
            .collect(),
        server,
        environment: vec![
            ("TYPESAFE_BASE_URL", model.address().into()),
            ("TYPESAFE_API_KEY_FILE", given.join("key").into()),
            ("SHOP_TOKEN", "planted-variable".into()),
        ],
    })?;
    host.ask("tools/list", &json!({}))?;
    let find = |host: &mut Session| {
        let email = json!({"email": "planted-read@example.com"});
        host.call("find_user_id_by_email", &email)
    };
    host.say("user", "A planted-request: cancel my order, please.")?;
    find(&mut host)?;
    for order in ["#W7a", "#W7b", "#W7c"] {
        host.call("get_order_details", &json!({"order_id": order}))?;
    }
    // Refused by the policy, and so not judged.
    let refused = json!({"order_id": "#W7a", "reason": "planted-write"});
    host.call("cancel_pending_order", &refused)?;
    host.say(
        "assistant",
        "A planted-proposal: I cancel #W7a as no longer needed. Shall I?",
    )?;
    // The model hears a yes in this; the list of words, which knows whole words, does not.
    host.say("user", "Yesterday I would have said no to a planted-reply.")?;
    let agreed = json!({"order_id": "#W7a", "reason": "no longer needed", "note": "planted-write"});
    let cancelled = host.call("cancel_pending_order", &agreed)?;
    if cancelled["isError"] == true {
        return Err(format!("the write was refused: {cancelled}").into());
    }
    // Now there are earlier calls, and more messages than one, to ask the model about.
    find(&mut host)?;
    host.end()?;
    fs::copy(given.join("stderr"), run.join("stderr"))?;
    Ok(())
}

/// Every command of `stretto` that writes a file.
fn offline(given: &Path, run: &Path) -> Result {
    let flow = flow();
    let flow_log = logs(run)?
        .into_iter()
        .find(|path| path.to_string_lossy().ends_with(".flow.jsonl"))
        .ok_or("there is no flow log")?;
    let benchmark = benchmark(given)?;
    let outcomes = outcomes(given, run)?;
    let [flow, flow_log, benchmark, outcomes] =
        [&flow, &flow_log, &benchmark, &outcomes].map(|path| path.to_string_lossy());
    let learn = "learn --habit-only --sessions logs --out";
    for words in [
        format!("{learn} learned.flow.json"),
        format!("{learn} constants.flow.json --constants"),
        format!(
            "{learn} scored.flow.json --cross-validate 2 --outcomes {outcomes} --json scores.json"
        ),
        "learn --oracle mock --oracle-dump learning.jsonl --sessions logs --out fitted.flow.json"
            .to_owned(),
        format!("compile --habit-only --domain retail --tau2 {benchmark} --out compiled.flow.json"),
        "promote --flow learned.flow.json --sessions logs --out promoted.flow.json".to_owned(),
        format!("export-arbiter {flow} --out arbiter.json"),
        "export-answers --oracle-cache cache --out answers.jsonl".to_owned(),
        "confirm --oracle replay --oracle-cache cache --sessions logs --second-question proposed \
         --json judged.json --out judged.md --oracle-dump asked.jsonl"
            .to_owned(),
        "guards --sessions logs --json guards.json --out guards.md".to_owned(),
        "audit --flow learned.flow.json --sessions logs --json audit.json".to_owned(),
        format!("evaluate --flow-log {flow_log} --target habit@0.3 --json evaluate.json"),
        // What all sessions share would stay otherwise.
        format!(
            "redact --sessions logs --out copies --keep-shared {}",
            SESSIONS + 1
        ),
    ] {
        let mut command = stretto()?;
        command
            .args(words.split_ascii_whitespace())
            .env("STRETTO_REDACT_SALT", "planted-salt")
            .env("TYPESAFE_API_KEY_FILE", given.join("key"));
        succeeds(command, run)?;
    }
    Ok(())
}

/// A task for each session, so that no fold of tasks has them all.
fn outcomes(given: &Path, run: &Path) -> Result<PathBuf> {
    let logs = logs(run)?.into_iter();
    let sessions = logs.filter_map(|path| {
        let (session, rest) = path.file_name()?.to_str()?.split_once(".jsonl")?;
        let of_session =
            rest.is_empty() && !session.contains(".flow") && !session.contains(".confirm");
        of_session.then(|| session.to_owned())
    });
    let rows = sessions
        .enumerate()
        .map(|(task, session)| format!("{session}\t{task}\n"));
    let place = given.join("outcomes.tsv");
    fs::write(
        &place,
        format!("session\ttask\n{}", rows.collect::<String>()),
    )?;
    Ok(place)
}

/// A checkout of the benchmark whose only result is a session with everything that is planted.
fn benchmark(given: &Path) -> Result<PathBuf> {
    let place = given.join("benchmark");
    let calls = [
        ("1", "find_user_id_by_email", PLANTED[0].1[0]),
        ("2", "get_user_details", PLANTED[1].1[0]),
        ("3", "cancel_pending_order", PLANTED[2].1[0]),
    ];
    let mut messages = vec![json!({"role": "user", "content": PLANTED[4].1.join(" ")})];
    for (id, tool, argument) in calls {
        let arguments = json!({"value": argument});
        messages.extend([
            json!({"role": "assistant", "content": null, "cost": 0.01,
                "tool_calls": [{"id": id, "name": tool, "arguments": arguments}]}),
            json!({"role": "tool", "id": id, "content": PLANTED[3].1[0]}),
        ]);
    }
    let results = json!({
        "info": {"environment_info": {"domain_name": "retail"}},
        "simulations": [{"id": "only", "task_id": "0", "reward_info": {"reward": 1.0}, "messages": messages}],
    });
    let tools = "@is_tool(ToolType.READ)\ndef find_user_id_by_email(self): pass\n\
        @is_tool(ToolType.READ)\ndef get_user_details(self): pass\n\
        @is_tool(ToolType.WRITE)\ndef cancel_pending_order(self): pass\n";
    for (name, content) in [
        ("data/tau2/results/final/only.json", results.to_string()),
        (
            "data/tau2/domains/retail/split_tasks.json",
            json!({"train": ["0"], "test": []}).to_string(),
        ),
        ("src/tau2/domains/retail/tools.py", tools.to_owned()),
    ] {
        let path = place.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&place))?;
        fs::write(path, content)?;
    }
    Ok(place)
}

/// A host's configuration that only its owner reads, and the proxy put into it.
fn configuration(run: &Path) -> Result {
    let folder = run.join("configuration");
    fs::create_dir(&folder)?;
    let file = folder.join("mcp.json");
    let entry = json!({"command": "shop", "env": {"SHOP_TOKEN": CONFIGURED}});
    fs::write(&file, json!({"mcpServers": {"shop": entry}}).to_string())?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
    let mut command = stretto()?;
    command
        .args(["init", "--host", "plain", "--wrap", "shop", "--file"])
        .arg(&file);
    succeeds(command, run)
}

fn succeeds(mut command: Command, folder: &Path) -> Result {
    let output = command.current_dir(folder).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}: {said}", output.status).into())
}

/// A procedure that reads twice, and checks with a read.
fn procedure(given: &Path, run: &Path) -> Result {
    let find = r#"find_user_id_by_email{"email": "planted-read@example.com"}"#;
    let cancel = r##"cancel_pending_order{"order_id": "#W7a", "reason": "planted-write"}"##;
    let file = json!({
        "stretto_procedure": 1, "domain": "shop", "symbolic": false, "max_calls": 9, "stop": "stop",
        "handoff": "person", "reads": ["find_user_id_by_email"], "vocab": [], "trees": {},
        "fallback": {"calls": [[find, 1], [cancel, 1]]},
        "checks": [{"phrase": "order", "probe": "get_user_details", "contains": ["note"], "lacks": []}],
    });
    fs::write(given.join("procedure.json"), file.to_string())?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_stretto-procedure"));
    command
        .arg("--procedure")
        .arg(given.join("procedure.json"))
        .args(["--ticket", "An order, and a planted-request"])
        .args(["--out", "procedure.json", "--"])
        .arg(env!("CARGO_BIN_EXE_stretto-mcp-demo"))
        .arg("--script")
        .arg(given.join("script.json"));
    succeeds(command, run)
}

/// The rows of the table that begins with this word, each by the names of its columns. Code is
/// without its marks.
fn table(page: &str, first: &str) -> Result<Vec<BTreeMap<String, String>>> {
    let start = format!("| {first} |");
    let mut lines = page
        .lines()
        .skip_while(|line| !line.starts_with(&start))
        .take_while(|line| line.starts_with('|'));
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim_matches('|').split('|');
        inner.map(|cell| cell.trim().replace('`', "")).collect()
    };
    let names = cells(lines.next().ok_or_else(|| format!("no table of {first}"))?);
    let rows = lines.skip(1).map(|line| {
        let row: BTreeMap<_, _> = names.iter().cloned().zip(cells(line)).collect();
        row
    });
    Ok(rows.collect())
}

fn logs(run: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(run.join("logs"))?;
    Ok(entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?)
}

/// The row of the page that a file of the run belongs to.
fn row_of(path: &Path) -> Option<&'static str> {
    let first = path.iter().next()?.to_str()?;
    if first == "logs" {
        let name = path.to_string_lossy();
        let kinds = [
            (".flow.jsonl", "<session>.flow.jsonl"),
            (".confirm.jsonl", "<session>.confirm.jsonl"),
            (".jsonl", "<session>.jsonl"),
        ];
        let kind = kinds.into_iter().find(|(end, _)| name.ends_with(end));
        return kind.map(|(_, row)| row);
    }
    let file = FILES.into_iter().find(|(_, file)| *file == first);
    file.map(|(row, _)| row)
}

/// Whether nobody but its owner can read a file, for its own mode or that of a folder above it.
fn is_owners(run: &Path, path: &Path) -> Result<bool> {
    for place in path.ancestors().take_while(|place| *place != run) {
        let others = fs::metadata(place)?.permissions().mode() & 0o077;
        if others == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn files_are_as_the_page_says(page: &str, run: &Path) -> Result {
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    let mut open_to_all = BTreeSet::new();
    let mut configured = Vec::new();
    for entry in WalkDir::new(run) {
        let entry = entry?;
        if !entry.file_type().is_file() {
            continue;
        }
        let path = entry.path();
        let row = row_of(path.strip_prefix(run)?)
            .ok_or_else(|| format!("{} is in no row of the page", path.display()))?;
        let text = String::from_utf8(fs::read(path)?)?;
        let names = path.strip_prefix(run)?.to_string_lossy();
        if let Some(secret) = SECRETS
            .iter()
            .find(|secret| text.contains(**secret) || names.contains(**secret))
        {
            return Err(format!("{secret} is in {}", path.display()).into());
        }
        if text.contains(CONFIGURED) {
            configured.push(row);
        }
        texts.entry(row).or_default().push_str(&text);
        if !is_owners(run, path)? {
            open_to_all.insert(row);
        }
    }
    let mut wrong = Vec::new();
    if configured != [WRAPPED; 2] {
        wrong.push(format!("what a configuration holds is in {configured:?}"));
    }
    let rows = table(page, "File")?;
    for row in &rows {
        let name = row["File"].as_str();
        let Some(text) = texts.remove(name) else {
            wrong.push(format!("{name}: the run has no such file"));
            continue;
        };
        for (column, planted) in PLANTED {
            let held: Vec<&str> = planted
                .iter()
                .copied()
                .filter(|value| text.contains(value))
                .collect();
            let is = match held.len() {
                0 => "no",
                count if count == planted.len() => "yes",
                _ if held == ["planted-reply"] => "the reply",
                _ if held == ["planted-proposal", "planted-reply"] => "the exchange",
                _ => "in part",
            };
            if row[column] != is {
                wrong.push(format!(
                    "{name}: {column}: the page says {}, and it is {is}: {held:?}",
                    row[column]
                ));
            }
        }
        let read_by = match open_to_all.contains(name) {
            true => "umask",
            false if name == WRAPPED => "as before",
            false => "you",
        };
        if row["Read by"] != read_by {
            wrong.push(format!(
                "{name}: the page says {}, and it is {read_by}",
                row["Read by"]
            ));
        }
    }
    wrong.extend(
        texts
            .keys()
            .map(|row| format!("{row}: the page has no such row")),
    );
    if wrong.is_empty() {
        return Ok(());
    }
    Err(wrong.join("\n").into())
}

/// Each request is a model's name, questions and a state; each state has the members of one asker.
fn questions_are_as_the_page_says(page: &str, heard: &[Value]) -> Result {
    let mut askers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let rows = table(page, "Member")?;
    for row in &rows {
        let asker = askers.entry(row["Asked by"].clone()).or_default();
        asker.insert(row["Member"].clone());
    }
    let mut seen: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for request in heard {
        let text = request.to_string();
        if let Some(secret) = SECRETS.iter().find(|secret| text.contains(**secret)) {
            return Err(format!("{secret} was sent to the model").into());
        }
        let members: Vec<&String> = request
            .as_object()
            .into_iter()
            .flat_map(|all| all.keys())
            .collect();
        let state = request["state"]
            .as_object()
            .ok_or("a state that is no object")?;
        let asker = if state.contains_key("call_about_to_be_made") {
            "judge"
        } else {
            "arbiter"
        };
        if members != ["model", "questions", "state"] {
            return Err(format!("the {asker} sent {members:?}").into());
        }
        seen.entry(asker).or_default().extend(state.keys().cloned());
        if asker == "judge"
            && ["planted-read", "planted-result", "planted-request"]
                .iter()
                .any(|value| text.contains(value))
        {
            return Err(
                format!("the judge sent more than the exchange and the call: {text}").into(),
            );
        }
    }
    let seen: BTreeMap<String, BTreeSet<String>> = seen
        .into_iter()
        .map(|(asker, members)| (asker.to_owned(), members))
        .collect();
    if seen == askers {
        return Ok(());
    }
    Err(format!("the page has {askers:?}, and the model was sent {seen:?}").into())
}
