//! `stretto undo`: take the proxy out of a host's configuration.

use std::path::PathBuf;
use std::process::ExitCode;

use stretto_hosts::Host;

use crate::home::shown;
use crate::hostfile::HostFile;
use crate::init::host;
use crate::screen::{Screen, Voice};

/// Arguments of `stretto undo`.
#[derive(Debug, clap::Args)]
#[group(id = "undo", skip)]
pub struct Args {
    /// The server, as the host calls it
    name: String,
    /// Whose file it is in: claude-code, claude-desktop, cursor, vscode, or plain for any other
    /// with `mcpServers`
    #[arg(long, value_name = "HOST", value_parser = host)]
    host: Host,
    /// The file; by default the user's own, for Claude Code .mcp.json in this directory
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Only show what would change; values of `env` and `headers` are not shown
    #[arg(long)]
    dry_run: bool,
}

/// Takes the proxy out of a server's entry. What `init --wrap` changed is then as it was.
///
/// # Errors
///
/// The file cannot be read or written, or the server is not behind the proxy in it.
pub fn run(args: &Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let path = args
        .file
        .clone()
        .map_or_else(|| HostFile::own(args.host), Ok)?;
    let file = HostFile::read(args.host, &path)?;
    let undo = |text: &str| stretto_hosts::undo(text, args.host, &args.name);
    if let Some(copy) = file.change(undo, args.dry_run, screen)? {
        let (file, copy) = (shown(&path), shown(&copy));
        let name = &args.name;
        Voice::stderr().say(&format!(
            "took the proxy out before {name} in {file}; the file as it was is {copy}"
        ));
    }
    Ok(ExitCode::SUCCESS)
}
