//! The demo server: small MCP servers for trying and testing the proxy.
//!
//! One program, `stretto-mcp-demo`, plays many servers over stdio or HTTP. Which one is decided by
//! its command line ([`USAGE`]): a built-in world that answers from canned data, a server described
//! by a script, one that answers as recorded servers did, or a live one with faults laid over it.
//!
//! ```text
//!   a line ──► protocol::Message ──► server::Server ──► Reaction ──► stdio or http ──► bytes
//!                                        │                               │
//!              worlds, script or replay: what is answered                faults: what goes wrong,
//!              era: which revision is spoken                             transcript: what came in
//! ```
//!
//! What a server does about a message is a *reaction*: an answer, how long it takes, what comes
//! before and after it, what goes wrong around it. The transports carry reactions out.
//!
//! # The transcript
//!
//! With `--transcript FILE`, one JSON object per line:
//!
//! ```text
//! {"n":1,"ms":12,"line":"{\"jsonrpc\":…}"}                        a line, without its LF
//! {"n":2,"ms":15,"line":"{","unended":true}                       the last line, which has no LF
//! {"n":3,"ms":15,"http":{"method":"POST","path":"/mcp","headers":{…},"body":"…"}}
//! {"n":4,"ms":16,"fired":"answers[2]"}                            a fault, just before it happens
//! {"n":5,"ms":99,"unfired":["timeline[0]"]}                       at the end: what never happened
//! ```
//!
//! `n` counts all records from 1, `ms` counts from the start. Bytes that are not UTF-8 stand as
//! `"base64"` in place of `line` or `body`. Header names are in lower case; a header that comes
//! several times has a list of its values. A rule, or an entry of the timeline, is named by its
//! `name`, or else by its place in the script. The last record is missing when everything fired, and
//! when the server was killed; what fired is known all the same, since each firing is written as
//! it happens.

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
                voice::say(&chain(error.as_ref()));
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

/// An error and its causes, on one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
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
