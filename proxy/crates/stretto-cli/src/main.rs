//! The offline program: what people do with recorded sessions.

use std::process::ExitCode;

fn main() -> ExitCode {
    stretto_cli::run(std::env::args_os())
}
