//! `stretto completions`: what a shell needs to complete command lines.

use std::io::Write as _;
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::screen::Screen;

/// Arguments of `stretto completions`.
#[derive(Debug, clap::Args)]
#[group(id = "completions", skip)]
#[command(after_help = "\
Where they go:
  bash        stretto completions bash > ~/.local/share/bash-completion/completions/stretto
  zsh         stretto completions zsh > DIR/_stretto, with DIR in your fpath
  fish        stretto completions fish > ~/.config/fish/completions/stretto.fish
  powershell  stretto completions powershell >> $PROFILE")]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Writes the completions of this program for a shell.
///
/// # Errors
///
/// The screen cannot be written to.
pub fn run(args: &Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "stretto", &mut script);
    screen.write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
