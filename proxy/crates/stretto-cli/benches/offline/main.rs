//! How long work on many recorded sessions takes, and how much memory.
//!
//! ```text
//! cargo bench -p stretto-cli --bench offline [-- SESSIONS [KILOBYTES_EACH [COMMAND...]]]
//! ```
//!
//! By default 10,000 generated sessions of 20 calls and 200 kB, which are 2 GB on disk, and every
//! command that reads them all.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measurement that cannot go on has failed, and its table is its result"
)]

mod sessions;

use std::{
    fs,
    io::Read as _,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A command that reads all sessions, and what we want of it.
struct Work {
    name: &'static str,
    arguments: &'static [&'static str],
    /// Seconds, if there is a bound.
    takes: Option<f64>,
    /// The most memory, in megabytes.
    memory: f64,
}

/// In the order in which they run; paths are in the folder of the sessions' folder.
const WORK: [Work; 5] = [
    Work {
        name: "learn",
        arguments: &[
            "learn",
            "--sessions",
            "sessions",
            "--habit-only",
            "--out",
            "a.flow.json",
        ],
        takes: Some(60.0),
        memory: 1024.0,
    },
    Work {
        name: "cross-validate",
        arguments: &[
            "learn",
            "--sessions",
            "sessions",
            "--habit-only",
            "--cross-validate",
            "5",
            "--out",
            "c.flow.json",
        ],
        takes: None,
        memory: 4096.0,
    },
    Work {
        name: "promote",
        arguments: &[
            "promote",
            "--flow",
            "a.flow.json",
            "--sessions",
            "sessions",
            "--out",
            "b.flow.json",
        ],
        takes: None,
        memory: 4096.0,
    },
    Work {
        name: "audit",
        arguments: &["audit", "--flow", "a.flow.json", "--sessions", "sessions"],
        takes: None,
        memory: 4096.0,
    },
    Work {
        name: "redact",
        arguments: &["redact", "--sessions", "sessions", "--out", "redacted"],
        takes: None,
        memory: 4096.0,
    },
];

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .collect();
    let mut numbers = words.iter().map_while(|word| word.parse::<usize>().ok());
    let count = numbers.next().unwrap_or(10_000);
    let kilobytes = numbers.next().unwrap_or(200);
    let named: Vec<&String> = words
        .iter()
        .filter(|word| word.parse::<usize>().is_err())
        .collect();

    let folder = tempfile::tempdir().expect("a folder can be made");
    let began = Instant::now();
    let bytes = sessions::write(&folder.path().join("sessions"), count, kilobytes * 1_000);
    #[expect(clippy::cast_precision_loss, reason = "bytes of a disk")]
    let megabytes = bytes as f64 / 1e6;
    println!(
        "{count} sessions of {} calls, {megabytes:.0} MB, written in {:.0} s\n",
        sessions::CALLS,
        began.elapsed().as_secs_f64()
    );
    println!("| command | s | wanted | memory at its peak, MB | wanted |");
    println!("|---|--:|--:|--:|--:|");
    for work in WORK {
        if named.is_empty() || named.iter().any(|name| *name == work.name) {
            work.measure(folder.path());
        }
    }
}

impl Work {
    fn measure(&self, folder: &Path) {
        let began = Instant::now();
        let mut command = Command::new(env!("CARGO_BIN_EXE_stretto"))
            .args(self.arguments)
            .current_dir(folder)
            .env("STRETTO_REDACT_SALT", "a salt of this run's")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut peak = 0.0;
        let status = loop {
            // Each look finds the most so far; the last look is a few milliseconds before the end.
            peak = memory(command.id()).unwrap_or(peak);
            if let Some(status) = command.try_wait().expect("it can be waited for") {
                break status;
            }
            thread::sleep(Duration::from_millis(5));
        };
        let took = began.elapsed().as_secs_f64();
        let mut said = String::new();
        if let Some(mut stderr) = command.stderr.take() {
            stderr.read_to_string(&mut said).expect("it speaks UTF-8");
        }
        assert!(status.success(), "{}: {said}", self.name);
        let takes = match self.takes {
            Some(most) => wanted(took, most),
            None => "none".to_owned(),
        };
        println!(
            "| {} | {took:.1} | {takes} | {peak:.0} | {} |",
            self.name,
            wanted(peak, self.memory)
        );
    }
}

fn wanted(value: f64, most: f64) -> String {
    let mark = if value <= most { "" } else { ", **missed**" };
    format!("≤ {most}{mark}")
}

/// The most memory that a process has had resident so far, in megabytes; nothing once it is over.
fn memory(process: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u32 = peak.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(f64::from(kilobytes) / 1024.0)
}
