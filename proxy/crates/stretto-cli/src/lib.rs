//! The program `stretto`: what people do with recorded sessions, away from any server.
//!
//! [`cli`] is the command line. Each command is a module of its own with `Args`, which clap
//! reads, and `run(&Args, &mut Screen) -> anyhow::Result<ExitCode>`; a new one is that module
//! and a line in each of [`cli::Command`] and [`cli::Command::run`].

pub mod answers;
pub mod arbiter;
pub mod audit;
mod bar;
pub mod checkout;
pub mod cli;
pub mod compile;
pub mod completions;
pub mod confirm;
pub mod deciding;
pub mod doctor;
pub mod evaluate;
mod files;
pub mod flows;
pub mod guarded;
pub mod guards;
mod home;
mod hostfile;
pub mod init;
pub mod learn;
pub mod oracle;
pub mod outcomes;
mod programs;
pub mod promote;
pub mod redact;
pub mod screen;
pub mod sessions;
pub mod show;
pub mod undo;

use std::borrow::Cow;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use crate::screen::{Screen, Voice};

/// What a command returns when it could not do what it was asked.
pub const FAILED: u8 = 1;

/// Runs the program with a whole command line, the program's own name included.
///
/// Errors are one line on stderr, and end in the codes that `stretto --help` lists. A reader
/// of stdout that has gone away is no error.
pub fn run(command_line: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match cli::Cli::try_parse_from(command_line) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way too, and go to stdout. A closed stdout or stderr
            // leaves nobody to tell.
            let words = error.render().to_string();
            if words
                .lines()
                .all(|line| matches!(screen::safe(line), Cow::Borrowed(_)))
            {
                drop(error.print());
            } else {
                // It repeats what stood on the command line.
                Voice::stderr().quote(&words);
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(FAILED));
        }
    };
    cli.color.write_global();
    let mut screen = Screen::stdout();
    let ended = cli
        .command
        .run(&mut screen)
        .and_then(|code| screen.finish().map(|()| code).map_err(Into::into));
    match ended {
        Ok(code) => code,
        Err(error) if screen::is_reader_gone(&error) => ExitCode::SUCCESS,
        Err(error) => {
            Voice::stderr().say(&screen::one_line(&error));
            ExitCode::from(FAILED)
        }
    }
}
