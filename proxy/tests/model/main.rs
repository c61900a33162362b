//! A proxy and a model's service: one cache of its answers, the programs that share it (proxies that
//! judge, proxies that are killed, and `stretto`, which asks the same questions again), and what
//! of a session is in which file and in which question.
//!
//! Without the usual test harness, because this program is also `stretto`.

mod cache;
mod host;
mod privacy;

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};

/// The word that makes this program `stretto`.
const STRETTO: &str = "stretto";

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
            cache::a_judged_session_is_judged_again,
        ),
        trial(
            "whichever of two proxies and a reader is killed when, every cached answer is whole",
            cache::whoever_is_killed_leaves_whole_answers,
        ),
        trial(
            "every file of a run, and every question, holds what the privacy page says",
            privacy::the_page_says_what_is_where,
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The program `stretto`.
fn stretto() -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(STRETTO);
    Ok(command)
}
