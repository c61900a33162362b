//! `stretto doctor`: what is installed, what is wrong, and what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use stretto_flow::Flow;
use stretto_oracle::{Cache, Question, Request, Settings, offline};
use stretto_trace::mcp::{Log, is_side_log};
use walkdir::WalkDir;

use crate::FAILED;
use crate::home::{expand, home, shown};
use crate::oracle::{Answerer, Who};
use crate::programs;
use crate::screen::{Screen, one_line, safe, style};

/// How deep below the data directory files are looked for.
const DEPTH: usize = 3;

/// How long a program may take to tell its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// More of a log's first line than any header has.
const HEADER: u64 = 1024 * 1024;

/// Arguments of `stretto doctor`.
#[derive(Debug, clap::Args)]
#[group(id = "doctor", skip)]
#[command(after_help = "\
Each line begins with `ok`, `note` (nothing is wrong) or `problem`.

Exit codes:
  0  no problem
  1  at least one")]
pub struct Args {
    /// The folder with sessions and flows; by default ~/.stretto
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Also ask the System-One model one question, which is the only use of the network
    #[arg(long)]
    network: bool,
}

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Ok,
    Note,
    Problem,
}

/// What a check found.
#[derive(Debug)]
struct Finding {
    mark: Mark,
    text: String,
    /// What there is in particular, each on a line under it.
    items: Vec<String>,
}

impl Finding {
    fn new(mark: Mark, text: impl Into<String>) -> Self {
        Self {
            mark,
            text: text.into(),
            items: Vec::new(),
        }
    }

    fn write(&self, screen: &mut Screen) -> std::io::Result<()> {
        let (look, word) = match self.mark {
            Mark::Ok => (style::AGENT, "ok"),
            Mark::Note => (style::WARN, "note"),
            Mark::Problem => (style::BAD, "problem"),
        };
        writeln!(screen, "{look}{word:<7}{look:#}  {}", safe(&self.text))?;
        for item in &self.items {
            writeln!(screen, "           {}", safe(item))?;
        }
        Ok(())
    }
}

/// Checks everything, and shows what was found.
///
/// # Errors
///
/// The screen cannot be written to. What is wrong with the installation is no error, but told
/// in the exit code.
pub fn run(args: &Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let data = match (&args.data, home()) {
        (Some(data), _) => expand(data),
        (None, Some(home)) => home.join(".stretto"),
        (None, None) => PathBuf::from(".stretto"),
    };
    let mut has_problem = false;
    let mut tell = |finding: &Finding| {
        has_problem |= finding.mark == Mark::Problem;
        finding.write(screen)
    };
    tell(&program("stretto-proxy", Mark::Problem))?;
    tell(&program("stretto-procedure", Mark::Note))?;
    tell(&program("stretto-mcp-demo", Mark::Note))?;
    tell(&data_folder(&data))?;
    tell(&key())?;
    let Files { flows, sessions } = Files::find(&data);
    tell(&flows_found(&data, &flows))?;
    tell(&sessions_found(&data, sessions))?;
    if args.network {
        tell(&network())?;
    }
    Ok(if has_problem {
        ExitCode::from(FAILED)
    } else {
        ExitCode::SUCCESS
    })
}

/// Checks a program that may be installed. `missing` is how bad it is if it is not.
fn program(name: &str, missing: Mark) -> Finding {
    let Some(file) = programs::on_path(name) else {
        return match programs::beside_this(name) {
            Some(file) if missing == Mark::Problem => {
                let folder = file.parent().map(shown).unwrap_or_default();
                Finding::new(
                    Mark::Problem,
                    format!(
                        "{name} is only in {folder}, which is not on the PATH; add it to the PATH"
                    ),
                )
            }
            _ => Finding::new(
                missing,
                format!(
                    "{name} is not on the PATH; install it with `cargo install --locked --path proxy` \
                     in a checkout"
                ),
            ),
        };
    };
    let this = env!("CARGO_PKG_VERSION");
    let place = shown(&file);
    match version(&file) {
        Ok(words) if words == format!("{name} {this}") => {
            Finding::new(Mark::Ok, format!("{name} {this}, {place}"))
        }
        Ok(words) => Finding::new(
            Mark::Problem,
            format!(
                "{place} says it is {words:?}, and this is stretto {this}; install both from the same \
                 checkout"
            ),
        ),
        Err(reason) => Finding::new(
            Mark::Problem,
            format!("{place} does not tell its version: {reason}; install it again"),
        ),
    }
}

/// What a program says about its version.
fn version(file: &Path) -> Result<String, String> {
    let mut child = Command::new(file)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(10)),
            waited => {
                // It may have ended by itself just now.
                drop(child.kill());
                drop(child.wait());
                return Err(waited.err().map_or_else(
                    || format!("no answer within {} s", PATIENCE.as_secs()),
                    |error| error.to_string(),
                ));
            }
        }
    };
    if !status.success() {
        return Err(status.to_string());
    }
    let mut words = String::new();
    let out = child.stdout.take().map(|out| out.take(4096));
    out.map_or(Ok(0), |mut out| out.read_to_string(&mut words))
        .map_err(|error| error.to_string())?;
    Ok(words.trim().to_owned())
}

fn data_folder(data: &Path) -> Finding {
    let place = shown(data);
    match fs::metadata(data) {
        Ok(found) if !found.is_dir() => Finding::new(
            Mark::Problem,
            format!("{place} is not a directory; move it away, or name another with --data"),
        ),
        Ok(_) => match tempfile::Builder::new()
            .prefix(".stretto-")
            .tempfile_in(data)
        {
            Ok(_) => Finding::new(Mark::Ok, format!("{place} can be written")),
            Err(error) => Finding::new(
                Mark::Problem,
                format!("{place} cannot be written, so nothing is recorded there: {error}"),
            ),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Finding::new(
            Mark::Note,
            format!("{place} does not exist yet; the first recorded session makes it"),
        ),
        Err(error) => Finding::new(Mark::Problem, format!("{place} cannot be read: {error}")),
    }
}

/// The variables that name a key, without looking at what they hold.
fn key() -> Finding {
    let is_set = |name: &&str| {
        env::var_os(name).is_some_and(|value| !value.to_string_lossy().trim().is_empty())
    };
    match ["TYPESAFE_API_KEY", "TYPESAFE_API_KEY_FILE"]
        .into_iter()
        .find(is_set)
    {
        Some(name) => Finding::new(Mark::Ok, format!("{name} is set")),
        None => Finding::new(
            Mark::Note,
            "there is no key for a System-One model (TYPESAFE_API_KEY or TYPESAFE_API_KEY_FILE); \
             recording, flows without an arbiter, guards and commits work without",
        ),
    }
}

/// What lies in the data directory, in the order of names.
#[derive(Debug, Default)]
struct Files {
    flows: Vec<PathBuf>,
    /// The session logs, by their directory.
    sessions: BTreeMap<PathBuf, Vec<PathBuf>>,
}

impl Files {
    fn find(data: &Path) -> Self {
        let mut files = Self::default();
        let walk = WalkDir::new(data).max_depth(DEPTH).sort_by_file_name();
        let walk = walk.into_iter().filter_entry(|entry| {
            !(entry.file_type().is_dir()
                && entry.depth() > 0
                && entry.file_name() == "oracle-cache")
        });
        // What cannot be listed is told by the check of the directory, or is not the user's.
        for entry in walk.filter_map(Result::ok) {
            let path = entry.into_path();
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            let (is_flow, is_log) = (name.ends_with(b".flow.json"), name.ends_with(b".jsonl"));
            if path.is_dir() {
                continue;
            }
            if is_flow {
                files.flows.push(path);
            } else if is_log && !is_side_log(&path) {
                let folder = path.parent().unwrap_or(data).to_owned();
                files.sessions.entry(folder).or_default().push(path);
            }
        }
        files
    }
}

fn counted(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    }
}

fn flows_found(data: &Path, flows: &[PathBuf]) -> Finding {
    if flows.is_empty() {
        return Finding::new(
            Mark::Note,
            format!(
                "no flows in {} yet; `stretto learn` makes one from sessions",
                shown(data)
            ),
        );
    }
    let mut finding = Finding::new(Mark::Ok, counted(flows.len(), "flow"));
    finding.items = flows.iter().map(|path| flow_line(path)).collect();
    finding
}

fn flow_line(path: &Path) -> String {
    let place = shown(path);
    match Flow::load(path) {
        Ok(flow) => {
            let file = flow.file();
            let promoted = if file.promoted.is_some() {
                "promoted"
            } else {
                "not promoted"
            };
            let sessions = usize::try_from(file.provenance.habit_episodes).unwrap_or(usize::MAX);
            format!(
                "{place}: {}, learned from {}, decides by {}, {promoted}",
                named(&file.manifest.domain),
                counted(sessions, "session"),
                flow.default_decider(),
            )
        }
        Err(error) => {
            let reason = one_line(&error.into());
            format!(
                "unreadable: {}",
                reason.replace(&path.display().to_string(), &place)
            )
        }
    }
}

fn named(domain: &str) -> &str {
    if domain.is_empty() {
        "no domain"
    } else {
        domain
    }
}

fn sessions_found(data: &Path, sessions: BTreeMap<PathBuf, Vec<PathBuf>>) -> Finding {
    let mut all = 0;
    let mut items = Vec::new();
    for (folder, paths) in sessions {
        let mut domains = BTreeSet::new();
        let (mut count, mut others) = (0, 0);
        for path in paths {
            match session_domain(&path) {
                Some(domain) => {
                    count += 1;
                    domains.insert(domain.unwrap_or_else(|| "none".to_owned()));
                }
                None => others += 1,
            }
        }
        all += count;
        let mut item = format!("{}: {}", shown(&folder), counted(count, "session"));
        if count > 0 {
            let domains: Vec<String> = domains.into_iter().collect();
            let word = if domains.len() == 1 {
                "domain"
            } else {
                "domains"
            };
            write!(item, ", {word} {}", domains.join(", ")).expect("memory takes every write");
        }
        if others > 0 {
            write!(
                item,
                "; {}",
                match others {
                    1 => "1 other file is no session log".to_owned(),
                    others => format!("{others} other files are no session logs"),
                }
            )
            .expect("memory takes every write");
        }
        items.push(item);
    }
    let mut finding = if all == 0 {
        let place = shown(data);
        Finding::new(
            Mark::Note,
            format!("no sessions in {place} yet; `stretto init` has a host record some"),
        )
    } else {
        Finding::new(Mark::Ok, counted(all, "session"))
    };
    finding.items = items;
    finding
}

/// The domain in a log's header, which is all that is read of it. `None`: there is no header.
#[expect(clippy::option_option, reason = "a log may name no domain")]
fn session_domain(path: &Path) -> Option<Option<String>> {
    let mut line = Vec::new();
    let file = fs::File::open(path).ok()?.take(HEADER);
    BufReader::new(file).read_until(b'\n', &mut line).ok()?;
    Some(Log::parse(&line).ok()?.header.domain)
}

/// Asks a question that no cache holds.
fn network() -> Finding {
    match Settings::from_env() {
        Ok(Settings { api_key: None, .. }) => {
            return Finding::new(
                Mark::Note,
                "the System-One model was not asked: there is no key",
            );
        }
        Ok(_) => {}
        Err(error) => {
            let reason = one_line(&error.into());
            return Finding::new(
                Mark::Problem,
                format!("the model cannot be asked: {reason}"),
            );
        }
    }
    match ask() {
        Ok(model) => Finding::new(Mark::Ok, format!("the System-One model answers ({model})")),
        Err(error) => {
            let reason = one_line(&error);
            Finding::new(
                Mark::Problem,
                format!("the System-One model does not answer: {reason}"),
            )
        }
    }
}

/// The model that answered.
fn ask() -> anyhow::Result<String> {
    let cache = tempfile::tempdir()?;
    let answerer = Answerer::new(Who::Jev, Cache::new(cache.path()))?;
    let question = Question::noul("Is this text a greeting?");
    let request = Request {
        model: answerer.model,
        state: "Good morning!".into(),
        questions: BTreeMap::from([("greeting".to_owned(), question)]),
    };
    let found = offline::ask_one(&answerer.oracle, &request)?;
    Ok(found.response.model)
}
