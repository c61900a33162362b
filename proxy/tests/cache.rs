//! One cache of the model's answers, and the programs that share it: proxies that judge, proxies
//! that are killed, and `stretto`, which asks the same questions again.
//!
//! Without the usual test harness, because this program is also `stretto`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::{Map, Value, json};
use stretto_harness::service::{Call, Reply, Service};
use stretto_oracle::Cache;
use tempfile::TempDir;

/// The word that makes this program `stretto`.
const STRETTO: &str = "stretto";

/// A key that may be found nowhere.
const KEY: &str = "sk-never-written-anywhere";

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if words.first().is_some_and(|first| first == STRETTO) {
        return stretto_cli::run(words);
    }
    let trial = |name: &str, test: fn() -> Result| {
        Trial::test(name, move || {
            test().map_err(|error| Failed::from(error.to_string()))
        })
    };
    let trials = vec![
        trial(
            "every answer that a judged session was given is found again, and nobody is asked",
            a_judged_session_is_judged_again,
        ),
        trial(
            "whichever of two proxies and a reader is killed when, every cached answer is whole",
            whoever_is_killed_leaves_whole_answers,
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A model that knows a yes when it hears one, how often it was asked, and what it takes for the truth.
struct Model {
    service: Service,
    asked: Arc<AtomicUsize>,
}

impl Model {
    /// Starts one whose responses have so many answers beside those that were asked for, as a
    /// response that takes several writes to a file has.
    fn start(besides: usize) -> Result<Self> {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let service = Service::start(move |call| {
            count.fetch_add(1, Ordering::Relaxed);
            Some(answer(call, besides))
        })?;
        Ok(Self { service, asked })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

fn answer(call: &Call, besides: usize) -> Reply {
    if call.authorization != Some(format!("Bearer {KEY}")) {
        return Reply::refused(401, "not the key");
    }
    let request: Value = serde_json::from_slice(&call.body).unwrap_or_default();
    let agrees = request["state"]["customer_replied"]
        .as_str()
        .is_some_and(|reply| reply.to_lowercase().contains("yes"));
    let noul = if agrees { 0.93 } else { 0.12 };
    let asked = request["questions"].as_object().into_iter().flatten();
    let besides = (0..besides).map(|number| format!("beside {number}"));
    let answers: Map<String, Value> = asked
        .map(|(id, _)| id.clone())
        .chain(besides)
        .map(|id| (id, json!({"type": "noul", "noul": noul})))
        .collect();
    Reply::answers("stand-in", &answers)
}

/// A host with its proxy, in front of the demo shop.
struct Session {
    proxy: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    conversation: File,
    errors: PathBuf,
    last_id: u64,
}

impl Session {
    /// Starts one in a folder of its own, under `folder`, with the cache there.
    fn start(folder: &Path, name: &str, model: Option<&Model>, options: &[&str]) -> Result<Self> {
        let own = folder.join(name);
        fs::create_dir_all(&own)?;
        let (conversation, errors) = (own.join("conversation"), own.join("stderr"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_stretto-proxy"));
        command
            .args(["--domain", "retail", "--guards", "--commit", "--record"])
            .arg(own.join("logs"))
            .arg("--context")
            .arg(&conversation)
            .arg("--oracle-cache")
            .arg(folder.join("cache"))
            .args(options)
            .arg("--")
            .arg(env!("CARGO_BIN_EXE_stretto-mcp-demo"))
            .args(["--world", "retail"])
            .env_remove("TYPESAFE_API_KEY")
            // However much it says, the key is not in it.
            .env("STRETTO_LOG", "trace")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&errors)?);
        if let Some(model) = model {
            let address = format!("http://{}", model.service.address());
            command
                .env("TYPESAFE_BASE_URL", address)
                .env("TYPESAFE_API_KEY_FILE", folder.join("key"));
        }
        let mut proxy = command.spawn()?;
        let stdin = proxy.stdin.take();
        let stdout = BufReader::new(proxy.stdout.take().ok_or("no stdout")?);
        let mut session = Self {
            proxy,
            stdin,
            stdout,
            conversation: File::create(&conversation)?,
            errors,
            last_id: 0,
        };
        let client = json!({"name": "test", "version": "0"});
        session.ask(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}),
        )?;
        session.call("find_user_id_by_email", &json!({"email": "c7@example.com"}))?;
        for order in ["#W7a", "#W7b"] {
            session.call("get_order_details", &json!({"order_id": order}))?;
        }
        Ok(session)
    }

    fn say(&mut self, role: &str, content: &str) -> Result {
        let line = format!("{}\n", json!({"role": role, "content": content}));
        Ok(self.conversation.write_all(line.as_bytes())?)
    }

    /// Sends a request, without waiting for its answer.
    fn send(&mut self, method: &str, params: &Value) -> Result {
        self.last_id += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        let stdin = self.stdin.as_mut().ok_or("stdin is closed")?;
        stdin.write_all(format!("{request}\n").as_bytes())?;
        Ok(stdin.flush()?)
    }

    /// Sends a request and waits for its answer.
    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.send(method, params)?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.stdout.read_line(&mut line)? == 0 {
                return Err(format!("the proxy ended: {}", self.said()?).into());
            }
            let message: Value = serde_json::from_str(&line)?;
            if message["id"] == self.last_id {
                return Ok(message["result"].clone());
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// What the proxy has said on stderr so far.
    fn said(&self) -> Result<String> {
        Ok(fs::read_to_string(&self.errors)?)
    }

    /// Closes the proxy's stdin and waits for its end.
    fn end(mut self) -> Result<String> {
        drop(self.stdin.take());
        let status = self.proxy.wait()?;
        let said = self.said()?;
        if status.success() {
            Ok(said)
        } else {
            Err(format!("the proxy ended with {status}: {said}").into())
        }
    }
}

impl Drop for Session {
    /// Kills the proxy where it stands; one that has ended is not there to be killed.
    fn drop(&mut self) {
        drop(self.proxy.kill());
        drop(self.proxy.wait());
    }
}

fn folder() -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    // With the line break that an editor leaves at the end of a file.
    fs::write(folder.path().join("key"), format!("{KEY}\n"))?;
    Ok(folder)
}

fn cancel(order: &str) -> Value {
    json!({"order_id": order, "reason": "no longer needed"})
}

fn lines(path: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(path)?;
    Ok(text
        .lines()
        .map(serde_json::from_str)
        .collect::<std::result::Result<_, _>>()?)
}

/// The only file in a folder whose name ends like this.
fn only(folder: &Path, ending: &str) -> Result<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    match <[PathBuf; 1]>::try_from(found) {
        Ok([path]) => Ok(path),
        Err(found) => Err(format!("there are {found:?}").into()),
    }
}

fn a_judged_session_is_judged_again() -> Result {
    let folder = folder()?;
    let model = Model::start(0)?;
    let judge = ["--confirm-judge", "enforce", "--confirm-second", "proposed"];
    let mut session = Session::start(folder.path(), "live", Some(&model), &judge)?;
    session.say("user", "Cancel both of my orders.")?;
    // Nobody has proposed anything: refused by the judge.
    let refused = session.call("cancel_pending_order", &cancel("#W7a"))?;
    // Refused by the guards, and so not judged.
    let reason = json!({"order_id": "#W7a", "reason": "found it cheaper"});
    session.call("cancel_pending_order", &reason)?;
    session.say(
        "assistant",
        "I can cancel #W7a, as no longer needed. Shall I?",
    )?;
    session.say("user", "Yes, and the other one, too.")?;
    session.call("cancel_pending_order", &cancel("#W7a"))?;
    session.say("assistant", "And #W7b, as no longer needed?")?;
    session.say("user", "YES!")?;
    let calls = json!([{"name": "cancel_pending_order", "arguments": cancel("#W7b")},
        {"name": "get_order_details", "arguments": {"order_id": "#W7b"}}]);
    let committed = session.call("stretto_commit", &json!({"calls": calls}))?;
    session.end()?;
    if refused["isError"] != true || committed["isError"] != false {
        return Err(format!("it went otherwise: {refused}, {committed}").into());
    }
    let asked = model.asked();
    // Nobody is left to ask.
    drop(model);

    let logs = folder.path().join("live/logs");
    let json_file = folder.path().join("judged.json");
    let again = Command::new(std::env::current_exe()?)
        .args([STRETTO, "confirm", "--oracle", "replay", "--sessions"])
        .arg(&logs)
        .arg("--oracle-cache")
        .arg(folder.path().join("cache"))
        .args(["--second-question", "proposed", "--json"])
        .arg(&json_file)
        .output()?;
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    if !again.status.success() || said.contains("no answer") {
        return Err(format!("{}: {said}", again.status).into());
    }
    let judged: Value = serde_json::from_slice(&fs::read(&json_file)?)?;
    let members = [
        "tool",
        "word_list",
        "p_yes",
        "p_second",
        "key",
        "second_key",
    ];
    let what_was_said = |write: &Value| members.map(|member| write[member].clone());
    let live: Vec<_> = lines(&only(&logs, ".confirm.jsonl")?)?
        .iter()
        .map(what_was_said)
        .collect();
    let replayed: Vec<_> = judged["writes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(what_was_said)
        .collect();
    if live != replayed || live.len() != 3 || asked != 2 * live.len() {
        return Err(format!("asked {asked} times\nlive {live:?}\nagain {replayed:?}").into());
    }
    key_is_only_in(&folder.path().join("key"), folder.path())
}

/// The key stands in no file but its own.
fn key_is_only_in(own: &Path, folder: &Path) -> Result {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            key_is_only_in(own, &path)?;
        } else if path != own && fs::read_to_string(&path)?.contains(KEY) {
            return Err(format!("the key is in {}", path.display()).into());
        }
    }
    Ok(())
}

/// Seeded numbers: `SplitMix64`, whose whole state is one number (Steele, Lea and Flood, 2014).
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

/// How many exchanges there are, and so how many questions.
const QUESTIONS: u64 = 12;

/// How many processes are killed.
const KILLS: u64 = 24;

/// How many answers a response has beside the one that was asked for.
const BESIDES: usize = 300;

/// One of the three, at its next piece of work: a write under one of the exchanges.
fn work(session: &mut Session, draws: &mut Draws) -> Result {
    let number = draws.below(QUESTIONS);
    session.say(
        "assistant",
        &format!("Offer {number}: shall I cancel #W7a?"),
    )?;
    session.say("user", "Yes, please.")?;
    session.send(
        "tools/call",
        &json!({"name": "cancel_pending_order", "arguments": cancel("#W7a")}),
    )
}

fn whoever_is_killed_leaves_whole_answers() -> Result {
    let folder = folder()?;
    let model = Model::start(BESIDES)?;
    let mut draws = Draws(7);
    let start = |role: &str, number: u64| {
        let name = format!("{role}-{number}");
        // The reader finds what the others wrote, or nothing, and says so if it finds half a file.
        let (oracle, model) = match role {
            "reader" => ("replay", None),
            _ => ("jev", Some(&model)),
        };
        let judge = ["--confirm-judge", "log", "--oracle", oracle];
        Session::start(folder.path(), &name, model, &judge)
    };
    let roles = ["one", "other", "reader"];
    let mut sessions = BTreeMap::new();
    for role in roles {
        sessions.insert(role, start(role, 0)?);
    }
    let cache = Cache::new(folder.path().join("cache"));
    let mut said = String::new();
    for kill in 1..=KILLS {
        // What each is doing when one of them dies is drawn; nobody is waited for.
        for _ in 0..=draws.below(9) {
            let role = roles[usize::try_from(draws.below(3))?];
            let session = sessions.get_mut(role).ok_or("nobody has that role")?;
            work(session, &mut draws)?;
        }
        // From now and then, all are waited for, so that answers are there to be found.
        if draws.below(3) == 0 {
            for session in sessions.values_mut() {
                session.ask("ping", &json!({}))?;
                session.call("cancel_pending_order", &cancel("#W7a"))?;
            }
        }
        let role = roles[usize::try_from(kill % 3)?];
        let killed = sessions.insert(role, start(role, kill)?);
        let errors = killed.as_ref().map(|session| session.errors.clone());
        // Dropping it kills it.
        drop(killed);
        said += &errors
            .map(fs::read_to_string)
            .transpose()?
            .unwrap_or_default();
        for key in cache.keys()? {
            is_whole(&cache, &key)?;
        }
    }
    for session in sessions.into_values() {
        said += &session.end()?;
    }
    if said.contains("is not a cached response") {
        return Err(format!("somebody found half an answer:\n{said}").into());
    }
    let keys = cache.keys()?;
    if keys.is_empty() {
        return Err("no answer was ever kept".into());
    }
    keys.iter().try_for_each(|key| is_whole(&cache, key))
}

fn is_whole(cache: &Cache, key: &stretto_oracle::Key) -> Result {
    let response = cache.read(key)?.ok_or("an answer is gone")?;
    if response.answers.len() == BESIDES + 1 {
        return Ok(());
    }
    Err(format!("the answer under {key} lacks something").into())
}
