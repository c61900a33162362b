//! The command line.

use std::{ffi::OsString, path::PathBuf};

use clap::{CommandFactory as _, Parser};

const EXIT_CODES: &str = "\
Exit codes:
  0  the run was written, whatever its verdict
  1  there is no run to show; stderr has one line about it
  2  the command line is wrong

Verdicts:
  resolved     a read of the run's own shows what the ticket asks for
  transferred  the customer was handed to a person
  hand_back    the check failed, or the ticket asks for nothing that can be checked: give it, with
               the run's calls, to a model";

/// Runs a compiled procedure on a ticket against an MCP server, without a model
#[derive(Debug, Parser)]
#[command(name = "stretto-procedure", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(super) struct Cli {
    /// The procedure
    #[arg(long, value_name = "FILE")]
    pub(super) procedure: PathBuf,

    /// The ticket: what the customer wants, as text
    #[arg(long, value_name = "TEXT", conflicts_with = "ticket_file")]
    pub(super) ticket: Option<String>,

    /// A file that holds the ticket
    #[arg(long, value_name = "FILE")]
    pub(super) ticket_file: Option<PathBuf>,

    /// Write the run to this file in place of stdout
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,

    /// The server's MCP endpoint, for a server that is reached over Streamable HTTP
    #[arg(long, value_name = "URL", conflicts_with = "server_command")]
    pub(super) upstream: Option<String>,

    /// Add a header to all requests: its value is what the environment variable VAR holds; may be repeated
    #[arg(long, value_name = "NAME=VAR", requires = "upstream")]
    pub(super) upstream_header: Vec<String>,

    /// The server to start, with its arguments
    #[arg(
        last = true,
        value_name = "SERVER_COMMAND",
        required_unless_present = "upstream"
    )]
    pub(super) server_command: Vec<OsString>,
}

impl Cli {
    /// Reads a whole command line, the program's own name included.
    pub(super) fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        Self::try_parse_from(words)
    }
}

/// The program's options, as clap has them, for what describes them elsewhere.
pub fn command() -> clap::Command {
    Cli::command()
}
