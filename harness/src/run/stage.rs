//! What is there before the first step: folders, files, the environment, the server, and
//! what is collected after the last one.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use walkdir::WalkDir;

use crate::bins::Programs;
use crate::model::Model;
use crate::process::RUN_VARIABLE;
use crate::record::{Record, ServerRecord};
use crate::scenario::placeholders::{self, Places};
use crate::scenario::{Scenario, Script, Server, Transport};
use crate::server::HttpServer;

use super::player::Played;
use super::{Job, RunOptions};

/// What starts every canary: found in a file or on stderr, something has leaked.
const CANARY: &str = "canary-7f3a9c";

/// The stage of one run.
#[derive(Debug)]
pub(super) struct Stage {
    /// The run's name, which all its processes carry.
    pub(super) name: String,
    pub(super) places: Places,
    pub(super) patience: Duration,
    pub(super) over: Transport,
    folder: TempDir,
    dir: PathBuf,
    given_files: Vec<String>,
    /// The proxy's command line, less the program.
    words: Vec<String>,
    environment: BTreeMap<String, String>,
    taken_away: Vec<String>,
    programs: Programs,
    http: Option<HttpServer>,
    model: Option<Model>,
    has_transcript: bool,
    is_greeted: bool,
}

impl Stage {
    pub(super) fn set(job: Job<'_>, options: &RunOptions) -> Result<Self, String> {
        let scenario = job.scenario;
        let said = |doing: &str, error: std::io::Error| format!("{doing}: {error}");
        let folder = TempDir::with_prefix("stretto-")
            .map_err(|error| said("making the run's folder", error))?;
        // The system's folder may be behind a link, and the proxy shows what it was given.
        let root = folder
            .path()
            .canonicalize()
            .map_err(|error| said("finding the run's folder", error))?;
        let dir = root.join("dir");
        fs::create_dir(&dir).map_err(|error| said("making the run's folder", error))?;

        let mut places = Places::default();
        let here = scenario.file.parent().unwrap_or(Path::new("."));
        let full = |path: &Path| {
            std::path::absolute(path)
                .unwrap_or_else(|_| path.to_owned())
                .display()
                .to_string()
        };
        places.set("DIR", dir.display().to_string());
        places.set("LOGS", dir.join("logs").display().to_string());
        places.set("CONTEXT", dir.join("context.jsonl").display().to_string());
        places.set("CACHE", dir.join("cache").display().to_string());
        places.set("HERE", full(here));
        places.set("SCENARIOS", full(&options.scenarios));
        places.set("DEMO", options.programs.demo.display().to_string());
        places.set("SECRET", format!("{CANARY}-secret"));
        places.set(
            "FILL",
            "x".repeat(usize::try_from(scenario.fill).unwrap_or_default()),
        );

        let mut stage = Self {
            name: run_name(),
            places,
            patience: stretched(scenario.patience),
            over: job.over,
            folder,
            dir,
            given_files: Vec::new(),
            words: Vec::new(),
            environment: BTreeMap::new(),
            taken_away: Vec::new(),
            programs: options.programs.clone(),
            http: None,
            model: None,
            has_transcript: false,
            is_greeted: job.over == Transport::Http && is_a_world(&scenario.server),
        };
        stage.set_environment(scenario)?;
        stage.write_files(scenario)?;
        stage.set_words(job, &root)?;
        Ok(stage)
    }

    /// The folder of the run, which holds `$DIR` and what the runner itself needs.
    pub(super) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// Whether the server says something on its own stream as soon as that is open.
    pub(super) fn is_greeted(&self) -> bool {
        self.is_greeted
    }

    fn stderr(&self) -> PathBuf {
        self.root().join("stderr")
    }

    pub(super) fn stderr_text(&self) -> String {
        fs::read(self.stderr())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    pub(super) fn server_record(&self) -> Option<ServerRecord> {
        if !self.has_transcript {
            return None;
        }
        let text = fs::read_to_string(self.transcript()).unwrap_or_default();
        // The server may be in the middle of a line.
        let whole = text
            .rfind('\n')
            .and_then(|end| text.get(..=end))
            .unwrap_or_default();
        Some(ServerRecord::read(whole))
    }

    fn transcript(&self) -> PathBuf {
        self.root().join("server.jsonl")
    }

    /// The proxy, ready to be started.
    pub(super) fn proxy(&self) -> Result<Command, String> {
        let stderr = File::options()
            .create(true)
            .append(true)
            .open(self.stderr())
            .map_err(|error| format!("making the file for stderr: {error}"))?;
        let mut command = self.command(&self.programs.proxy);
        command
            .args(&self.words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr);
        Ok(command)
    }

    /// A program with the run's environment and folder.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.dir).env(RUN_VARIABLE, &self.name);
        for (name, _) in std::env::vars_os() {
            let is_ours = name
                .to_str()
                .is_some_and(|name| name.starts_with("STRETTO_") || name.starts_with("TYPESAFE_"));
            if is_ours && name != RUN_VARIABLE {
                command.env_remove(name);
            }
        }
        command.envs(&self.environment);
        for name in &self.taken_away {
            command.env_remove(name);
        }
        command
    }

    fn set_environment(&mut self, scenario: &Scenario) -> Result<(), String> {
        let canaries = [("TYPESAFE_API_KEY", "key"), ("STRETTO_CANARY", "header")];
        for (variable, kind) in canaries {
            self.environment
                .insert(variable.to_owned(), format!("{CANARY}-{kind}"));
        }
        // No scenario talks to the real service: what a scenario does not let the model say, it does not say.
        let key = format!("{CANARY}-key");
        let model = Model::start(scenario.oracle.clone(), key)
            .map_err(|error| format!("starting the stand-in for the model: {error}"))?;
        self.environment.insert(
            "TYPESAFE_BASE_URL".to_owned(),
            format!("http://{}", model.address()),
        );
        self.model = Some(model);
        if !matches!(scenario.server, Server::Command(_)) {
            self.environment.insert(
                "HOME".to_owned(),
                self.dir.join("home").display().to_string(),
            );
        }
        for (name, text) in &scenario.env {
            let text = self.filled(text)?;
            if text.is_empty() {
                self.environment.remove(name);
                self.taken_away.push(name.clone());
            } else {
                self.environment.insert(name.clone(), text);
            }
        }
        Ok(())
    }

    fn filled(&self, text: &str) -> Result<String, String> {
        self.places
            .fill(text)
            .map_err(|name| placeholders::unknown(&name, &[]))
    }

    fn write_files(&mut self, scenario: &Scenario) -> Result<(), String> {
        for (name, text) in &scenario.files {
            let path = self.dir.join(name);
            let text = self.filled(text)?;
            let written = if name.ends_with('/') {
                fs::create_dir_all(&path)
            } else {
                let folder = path.parent().unwrap_or(&self.dir);
                fs::create_dir_all(folder).and_then(|()| fs::write(&path, text))
            };
            written.map_err(|error| format!("writing {name}: {error}"))?;
            self.given_files.push(name.clone());
        }
        for (name, age) in &scenario.ages {
            let then = SystemTime::now().checked_sub(*age).unwrap_or(UNIX_EPOCH);
            File::options()
                .append(true)
                .open(self.dir.join(name))
                .and_then(|file| file.set_modified(then))
                .map_err(|error| format!("setting the age of {name}: {error}"))?;
        }
        Ok(())
    }

    fn set_words(&mut self, job: Job<'_>, root: &Path) -> Result<(), String> {
        let mut server = match &job.scenario.server {
            Server::Absent => Vec::new(),
            Server::Command(words) => words
                .iter()
                .map(|word| self.filled(word))
                .collect::<Result<_, _>>()?,
            Server::Demo { options, script } => {
                let mut words: Vec<String> = vec![self.programs.demo.display().to_string()];
                for option in options {
                    words.push(self.filled(option)?);
                }
                if let Some(script) = script {
                    words.extend(["--script".to_owned(), self.script(script, root)?]);
                }
                words.extend([
                    "--transcript".to_owned(),
                    root.join("server.jsonl").display().to_string(),
                ]);
                self.has_transcript = true;
                words
            }
        };
        if job.over == Transport::Http {
            let (program, options) = server
                .split_first()
                .ok_or("over http there must be a server")?;
            let mut command = self.command(Path::new(program));
            // It is ended with the stage, and is nothing that the proxy has left behind.
            command.args(options).env_remove(RUN_VARIABLE);
            let started = HttpServer::start(command, &root.join("http-stderr"), self.patience)
                .map_err(|error| format!("starting the demo server over http: {error}"))?;
            self.places.set("URL", started.url.clone());
            let url = format!("{}?token={CANARY}-url", started.url);
            server = [
                "--upstream-header",
                "X-Canary=STRETTO_CANARY",
                "--upstream",
                &url,
            ]
            .map(str::to_owned)
            .to_vec();
            self.http = Some(started);
        } else if matches!(job.scenario.server, Server::Demo { .. }) {
            // A word that the log's header must hide, in every run.
            let canary = [String::from("env"), format!("SERVER_TOKEN={CANARY}-word")];
            server.splice(0..0, canary);
        }
        for option in &job.scenario.proxy {
            let option = self.filled(option)?;
            self.words.push(option);
        }
        if job.over == Transport::Stdio && !matches!(job.scenario.server, Server::Absent) {
            self.words.push("--".to_owned());
        }
        self.words.append(&mut server);
        Ok(())
    }

    fn script(&self, script: &Script, root: &Path) -> Result<String, String> {
        match script {
            Script::Path(path) => self.filled(path),
            Script::Table(table) => {
                let table = self
                    .places
                    .fill_value(table)
                    .map_err(|name| placeholders::unknown(&name, &[]))?;
                let path = root.join("script.json");
                fs::write(&path, table.to_string())
                    .map_err(|error| format!("writing the script: {error}"))?;
                Ok(path.display().to_string())
            }
        }
    }

    /// The logs that the proxy writes, by their path below `$DIR`.
    pub(super) fn logs(&self) -> BTreeMap<String, String> {
        let mut logs = BTreeMap::new();
        for entry in WalkDir::new(&self.dir).into_iter().flatten() {
            let path = entry.path();
            let Ok(name) = path.strip_prefix(&self.dir) else {
                continue;
            };
            let name = name.display().to_string();
            let is_log = path
                .extension()
                .is_some_and(|extension| extension == "jsonl");
            if is_log && !self.given_files.contains(&name) && name != "context.jsonl" {
                let bytes = fs::read(path).unwrap_or_default();
                logs.insert(name, String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        logs
    }

    /// Everything that the run left behind.
    pub(super) fn collect(&self, job: Job<'_>, played: Played) -> Record {
        let mut files = Vec::new();
        let mut leaks = Vec::new();
        for entry in WalkDir::new(&self.dir)
            .sort_by_file_name()
            .into_iter()
            .flatten()
        {
            let Ok(name) = entry.path().strip_prefix(&self.dir) else {
                continue;
            };
            let name = name.display().to_string();
            if name.is_empty() {
                continue;
            }
            if entry.file_type().is_dir() {
                files.push(format!("{name}/"));
                continue;
            }
            let bytes = fs::read(entry.path()).unwrap_or_default();
            leaks.extend(canaries_in(&bytes).map(|canary| format!("{canary} is in {name}")));
            files.push(name);
        }
        let logs = self.logs();
        let stderr = self.stderr_text();
        leaks.extend(canaries_in(stderr.as_bytes()).map(|canary| format!("{canary} is on stderr")));
        Record {
            transport: job.over,
            sent: played.sent,
            sent_at: played.sent_at,
            heard: played.heard,
            view: played.view,
            server: self.server_record(),
            names: self.names(&logs),
            asked: self.model.as_ref().map(Model::asked).unwrap_or_default(),
            logs,
            files,
            stderr,
            ending: played.ending,
            left_running: played.left_running,
            is_deaf: played.is_deaf,
            leaks,
            given_files: self.given_files.clone(),
            named_files: self.named_files(),
        }
    }

    /// How often a question with this id has reached the model.
    pub(super) fn asked(&self, question: &str) -> u64 {
        self.model.as_ref().map_or(0, |model| model.count(question))
    }

    /// Has the model give the answers to this question that it holds back.
    pub(super) fn release(&self, question: &str, about: Option<&str>) {
        if let Some(model) = &self.model {
            model.release(question, about);
        }
    }

    /// A path in the run's folder.
    pub(super) fn in_folder(&self, path: &str) -> PathBuf {
        self.dir.join(path)
    }

    /// Paths below `$DIR` that the command line names, in full or from there.
    fn named_files(&self) -> Vec<PathBuf> {
        let below = |word: &String| {
            let path = Path::new(word);
            let is_path = !word.is_empty() && !word.starts_with('-');
            match path.strip_prefix(&self.dir) {
                Ok(below) => Some(below.to_owned()),
                Err(_) if is_path && path.is_relative() => Some(path.to_owned()),
                Err(_) => None,
            }
        };
        self.words.iter().filter_map(below).collect()
    }

    /// What differs from run to run by value, longest first, so that a folder does not hide what is in it.
    fn names(&self, logs: &BTreeMap<String, String>) -> Vec<(String, String)> {
        // With its end, or it would be found in the names of folders beside it.
        let here = self.places.get("HERE").unwrap_or_default();
        let mut names = vec![(format!("{here}/"), "[HERE]/".to_owned())];
        let mut name =
            |value: &str, name: &str| names.push((value.to_owned(), format!("[{name}]")));
        let root = self.dir.parent().unwrap_or(&self.dir);
        name(
            &root.join("server.jsonl").display().to_string(),
            "TRANSCRIPT",
        );
        name(&root.join("script.json").display().to_string(), "SCRIPT");
        for place in ["LOGS", "CONTEXT", "CACHE", "DIR", "SCENARIOS"] {
            name(self.places.get(place).unwrap_or_default(), place);
        }
        for program in [&self.programs.proxy, &self.programs.demo] {
            let folder = program
                .parent()
                .map(|folder| folder.display().to_string())
                .unwrap_or_default();
            name(&folder, "BIN");
        }
        if let Some(http) = &self.http {
            name(http.address(), "ADDRESS");
        }
        if let Some(model) = &self.model {
            name(&model.address(), "MODEL");
        }
        let sessions: Vec<&str> = logs
            .keys()
            .filter_map(|path| {
                Path::new(path)
                    .file_name()?
                    .to_str()?
                    .strip_suffix(".jsonl")
            })
            .filter(|stem| !stem.contains(".flow") && !stem.contains(".confirm"))
            .filter(|stem| stem.starts_with(|c: char| c.is_ascii_digit()))
            .collect();
        for (i, session) in sessions.iter().enumerate() {
            let suffix = if sessions.len() > 1 {
                format!("_{}", i + 1)
            } else {
                String::new()
            };
            name(session, &format!("SESSION{suffix}"));
        }
        names.retain(|(value, _)| value.len() > 1);
        names.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        names
    }
}

/// Whether this is one of the demo server's built-in worlds.
fn is_a_world(server: &Server) -> bool {
    let others = ["--script", "--replay", "--over", "--era"];
    match server {
        Server::Demo {
            options,
            script: None,
        } => !options.iter().any(|word| others.contains(&word.as_str())),
        _ => false,
    }
}

/// A name that no other run on this machine has.
fn run_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    format!(
        "{}-{}-{now}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// A scenario's patience, times `STRETTO_PATIENCE` for a machine that is slow.
fn stretched(patience: Duration) -> Duration {
    let factor = std::env::var("STRETTO_PATIENCE")
        .ok()
        .and_then(|text| text.parse::<u32>().ok())
        .unwrap_or(1);
    patience.saturating_mul(factor.max(1))
}

/// The canaries in these bytes, each once.
fn canaries_in(bytes: &[u8]) -> impl Iterator<Item = String> {
    let text = String::from_utf8_lossy(bytes);
    let mut found: Vec<String> = text
        .match_indices(CANARY)
        .filter_map(|(at, _)| text.get(at..))
        .map(|rest| {
            rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
                .next()
                .unwrap_or(rest)
                .to_owned()
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter()
}
