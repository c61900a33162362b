//! The demo server: small MCP servers for trying and testing the proxy.
//!
//! One program, `stretto-mcp-demo`, plays many servers. Which one is decided by its command
//! line ([`USAGE`]): a built-in world that answers from canned data, over stdio or HTTP.
//!
//! ```text
//!   a line ──► protocol::Message ──► server::Server ──► Reaction ──► stdio or http ──► bytes
//!                                        │
//!                                        └─ worlds: what tools there are, what a call returns
//! ```
//!
//! What a server *says* is a [`Reaction`](server::Reaction): an answer, how long it takes, what
//! comes before it. The transports carry reactions out, and do what goes wrong on the way.

#![cfg_attr(
    test,
    expect(
        clippy::needless_pass_by_value,
        reason = "a test reads better with `json!` in place"
    )
)]

use std::env;
use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

mod cli;
mod era;
mod http;
mod live;
mod process;
mod protocol;
mod replay;
mod script;
mod server;
mod shape;
mod stdio;
mod transcript;
mod voice;
mod worlds;

pub use cli::USAGE;
pub use script::{ScriptError, check_script};

use cli::{Asked, Settings};
use server::Server;

/// The version that the server gives as its own.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The program `stretto-mcp-demo`: reads the command line of the process, serves, and says how
/// it ended.
///
/// The exit status is 0 when the host has closed its end, 1 when the server could not be set
/// up, and 2 when the command line is wrong.
pub fn main() -> ExitCode {
    match cli::parse(env::args_os().skip(1)) {
        Ok(Asked::Usage) => print(USAGE),
        Ok(Asked::Version) => print(&format!("stretto-mcp-demo {VERSION}\n")),
        Ok(Asked::Serve(settings)) => match serve(&settings) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                voice::say(&error.to_string());
                ExitCode::FAILURE
            }
        },
        Err(wrong) => {
            voice::say(&wrong.to_string());
            voice::show(USAGE);
            ExitCode::from(2)
        }
    }
}

/// Runs the server that the command line asks for, to its end.
fn serve(settings: &Settings) -> Result<(), Box<dyn Error>> {
    let server = Server::new(settings)?;
    let done = match (&settings.http, &settings.over) {
        (Some(http), over) => http::serve(server, http, over.as_deref()),
        (None, Some(command)) => stdio::serve_over(&server, command),
        (None, None) => stdio::serve(&server),
    };
    Ok(done?)
}

fn print(text: &str) -> ExitCode {
    let mut stdout = io::stdout();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
