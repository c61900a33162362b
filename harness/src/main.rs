//! `stretto-harness`: runs scenarios, and makes new ones from recorded sessions.

use std::process::ExitCode;

fn main() -> ExitCode {
    stretto_harness::cli::main()
}
