//! `stretto show`: a recorded session as a person reads it.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::screen::Screen;

/// Arguments of `stretto show`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A session log
    log: PathBuf,
}

/// Shows the session.
///
/// # Errors
///
/// The log cannot be read, or the screen not be written to.
pub fn run(args: &Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    use anyhow::Context as _;
    use std::io::Write as _;
    let text = std::fs::read_to_string(&args.log)
        .with_context(|| format!("reading {}", args.log.display()))?;
    for line in text.lines() {
        writeln!(screen, "{}", crate::screen::safe(line))?;
    }
    Ok(ExitCode::SUCCESS)
}
