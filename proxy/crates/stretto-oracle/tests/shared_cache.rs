//! Processes that share a cache and are killed in the middle of their work.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something unexpected happens"
)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use stretto_oracle::{Answer, Cache, Key, Question, Request, Response, Usage};

/// Tells a process of this test what it is there for, and where.
const ROLE: &str = "STRETTO_TEST_ROLE";
const FOLDER: &str = "STRETTO_TEST_FOLDER";

/// How many requests the processes answer over and over.
const KEYS: usize = 3;

/// How often somebody is killed.
const ROUNDS: u32 = 18;

/// How many answers a response has: enough that it takes several writes to a file.
const ANSWERS: usize = 400;

fn key(index: usize) -> Key {
    let request = Request {
        model: "m".to_owned(),
        state: index.into(),
        questions: [("q".to_owned(), Question::noul("?"))].into(),
    };
    request.key()
}

/// Answers by one of the writers, who says the same to every question.
fn response(noul: f64) -> Response {
    let answer = |index: usize| (format!("question {index}"), Answer::Noul { noul });
    Response {
        model: noul.to_string(),
        answers: (0..ANSWERS).map(answer).collect(),
        usage: Usage::default(),
    }
}

/// Whether answers are whole: those of one writer.
fn is_whole(found: &Response) -> bool {
    let noul = found.model.parse().unwrap();
    let is_own = |answer: &Answer| *answer == Answer::Noul { noul };
    found.answers.len() == ANSWERS && found.answers.values().all(is_own)
}

#[test]
fn whoever_is_killed_whenever_every_answer_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    let mut processes = ["0.25", "0.75", "reader"].map(|role| Worker::start(role, folder.path()));
    let mut found = 0;
    for round in 0..ROUNDS {
        // How long a process may work is counted in what this one reads meanwhile.
        for read in 0..=(round * 7 % 5) * 11 {
            let key = key(read as usize % KEYS);
            if let Some(response) = cache.read(&key).unwrap() {
                assert!(is_whole(&response), "half an answer under {key}");
                found += 1;
            }
        }
        let turn = round as usize % processes.len();
        processes[turn].replace(folder.path());
    }
    drop(processes);

    assert!(found > 0, "nothing was ever found");
    let keys = cache.keys().unwrap();
    assert_eq!(keys.len(), KEYS);
    for key in keys {
        assert!(
            is_whole(&cache.read(&key).unwrap().unwrap()),
            "half an answer under {key}"
        );
    }
}

/// Not a test of its own: what the processes of the test above do.
#[test]
#[ignore = "started by the test above, as a process of its own"]
fn a_process() {
    let (Ok(role), Ok(folder)) = (std::env::var(ROLE), std::env::var(FOLDER)) else {
        return;
    };
    let cache = Cache::new(folder);
    let own = role.parse().map(response).ok();
    for index in (0..KEYS).cycle() {
        if let Some(response) = &own {
            cache.write(&key(index), response).unwrap();
        } else {
            let found = cache.read(&key(index)).unwrap();
            assert!(found.as_ref().is_none_or(is_whole), "half an answer");
        }
        println!("{role} at work");
    }
}

struct Worker {
    role: String,
    process: Child,
    /// Read on and on, so that the process does not wait for a reader.
    _drain: std::thread::JoinHandle<()>,
}

impl Worker {
    /// Starts a process, and waits until it has done something.
    fn start(role: &str, folder: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_process", "--ignored", "--nocapture"])
            .env(ROLE, role)
            .env(FOLDER, folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        while !line.ends_with("at work\n") {
            line.clear();
            assert_ne!(
                output.read_line(&mut line).unwrap(),
                0,
                "process {role} ended"
            );
        }
        let drain = std::thread::spawn(move || drain(output));
        Self {
            role: role.to_owned(),
            process,
            _drain: drain,
        }
    }

    /// Kills the process where it stands, and starts another of its kind.
    fn replace(&mut self, folder: &Path) {
        let ended = self.process.try_wait().unwrap();
        assert_eq!(ended, None, "process {} found something wrong", self.role);
        *self = Self::start(&self.role.clone(), folder);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn drain(mut output: BufReader<ChildStdout>) {
    drop(std::io::copy(&mut output, &mut std::io::sink()));
}
