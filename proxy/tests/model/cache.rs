//! One cache of the model's answers, and the programs that share it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use stretto_oracle::Cache;
use tempfile::TempDir;

use crate::host::{KEY, Model, Session, Setup};
use crate::{Result, stretto};

fn folder() -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    // With the line break that an editor leaves at the end of a file.
    fs::write(folder.path().join("key"), format!("{KEY}\n"))?;
    Ok(folder)
}

/// A session in a folder of its own under `folder`, in front of the demo shop, with the cache in
/// `folder`. A customer and two orders have been looked up.
fn shop(folder: &Path, name: &str, model: Option<&Model>, options: &[&str]) -> Result<Session> {
    let own = folder.join(name);
    let mut all: Vec<OsString> = ["--domain", "retail", "--guards", "--commit", "--record"]
        .map(OsString::from)
        .into();
    all.push(own.join("logs").into());
    all.push("--oracle-cache".into());
    all.push(folder.join("cache").into());
    all.extend(options.iter().map(OsString::from));
    let known = model.map(|model| {
        [
            ("TYPESAFE_BASE_URL", model.address().into()),
            ("TYPESAFE_API_KEY_FILE", folder.join("key").into()),
        ]
    });
    let demo = [env!("CARGO_BIN_EXE_stretto-mcp-demo"), "--world", "retail"];
    let mut session = Session::start(Setup {
        own: &own,
        options: all,
        server: demo.map(OsString::from).into(),
        environment: known.into_iter().flatten().collect(),
    })?;
    session.call("find_user_id_by_email", &json!({"email": "c7@example.com"}))?;
    for order in ["#W7a", "#W7b"] {
        session.call("get_order_details", &json!({"order_id": order}))?;
    }
    Ok(session)
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

pub(crate) fn a_judged_session_is_judged_again() -> Result {
    let folder = folder()?;
    let model = Model::start(0)?;
    let judge = ["--confirm-judge", "enforce", "--confirm-second", "proposed"];
    let mut session = shop(folder.path(), "live", Some(&model), &judge)?;
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
    let asked = model.heard().len();
    // Nobody is left to ask.
    drop(model);

    let logs = folder.path().join("live/logs");
    let json_file = folder.path().join("judged.json");
    let again = stretto()?
        .args(["confirm", "--oracle", "replay", "--sessions"])
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

pub(crate) fn whoever_is_killed_leaves_whole_answers() -> Result {
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
        shop(folder.path(), &name, model, &judge)
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
