//! The program `stretto-procedure`: a workflow that was compiled from agents' traces, run on a
//! ticket against a server, without a model.
//!
//! It has one connection, which is the proxy's own: a process that it starts, or a URL. One call
//! is under way at a time.

mod cli;
mod client;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde::Serialize;
use serde_json::Map;
use stretto_procedure::{ActionError, LoadError, Made, Outcome, Procedure, Run};
use stretto_trace::files::{WriteError, write_whole};

pub use self::cli::command;
use self::{
    cli::Cli,
    client::{Client, ClientError},
};
use crate::{
    session::OwnIds,
    upstream::{Child, Endpoint, EndpointError, Http, Upstream},
    voice,
};

/// The exit code when there is no run to show.
const FAILED: u8 = 1;

/// The program.
pub fn main() -> ExitCode {
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way too. Nobody hears of a stdout or stderr that is closed.
            error.print().ok();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(FAILED));
        }
    };
    match run(&cli) {
        Ok(record) => {
            say(&record.summary());
            ExitCode::SUCCESS
        }
        Err(failure) => {
            say(&voice::chain(&failure));
            ExitCode::from(FAILED)
        }
    }
}

fn say(what: &str) {
    use io::Write as _;
    // Nobody is left to tell when stderr is closed.
    drop(writeln!(io::stderr(), "stretto-procedure: {what}"));
}

/// Why there is no run to show.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("reading {}", path.display())]
    Reading { path: PathBuf, source: io::Error },
    #[error("reading {}", path.display())]
    Procedure { path: PathBuf, source: LoadError },
    #[error("there is no ticket: give it with --ticket or --ticket-file")]
    NoTicket,
    #[error("reading --upstream and its headers")]
    Endpoint(#[from] EndpointError),
    #[error("setting up the event loop")]
    Runtime(#[source] io::Error),
    #[error("starting {program}")]
    Start { program: String, source: io::Error },
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Action(#[from] ActionError),
    #[error("{why}; the run was {run}")]
    Writing { why: WriteError, run: String },
    #[error("writing the run to stdout")]
    Stdout(#[source] io::Error),
}

/// A run, as it is written.
#[derive(Debug, Serialize)]
struct Record {
    calls: Vec<Made>,
    /// The probe that was called, and its text.
    check: Option<(String, String)>,
    verdict: Verdict,
}

/// What came of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Resolved,
    Transferred,
    HandBack,
}

impl Record {
    fn summary(&self) -> String {
        let calls = self.calls.len();
        let plural = if calls == 1 { "" } else { "s" };
        let verdict = match (self.verdict, &self.check) {
            (Verdict::Resolved, _) => "the ticket is resolved",
            (Verdict::Transferred, _) => "the customer was handed to a person",
            (Verdict::HandBack, Some(_)) => "the check failed; hand the ticket back",
            (Verdict::HandBack, None) => "nothing could be checked; hand the ticket back",
        };
        format!("{calls} call{plural}; {verdict}")
    }
}

fn run(cli: &Cli) -> Result<Record, Failure> {
    let procedure: Procedure =
        read(&cli.procedure)?
            .parse()
            .map_err(|source| Failure::Procedure {
                path: cli.procedure.clone(),
                source,
            })?;
    let ticket = match (&cli.ticket, &cli.ticket_file) {
        (Some(ticket), _) => ticket.clone(),
        (None, Some(file)) => read(file)?,
        (None, None) => return Err(Failure::NoTicket),
    };
    let endpoint = match &cli.upstream {
        Some(url) => Some(Endpoint::new(url, &cli.upstream_header)?),
        None => None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    let record = runtime.block_on(async {
        let mut client = Client::new(connect(cli, endpoint)?);
        let record = play(&procedure, &ticket, &mut client).await;
        client.close().await;
        record
    })?;
    write(&record, cli.out.as_deref())?;
    Ok(record)
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|source| Failure::Reading {
        path: path.to_owned(),
        source,
    })
}

fn connect(cli: &Cli, endpoint: Option<Endpoint>) -> Result<Upstream, Failure> {
    if let Some(endpoint) = endpoint {
        return Ok(Upstream::Http(Http::new(endpoint, OwnIds::default())));
    }
    let started = Child::start(&cli.server_command);
    started.map(Upstream::Child).map_err(|source| {
        let program = cli.server_command.first();
        Failure::Start {
            program: program
                .map(|word| word.to_string_lossy().into_owned())
                .unwrap_or_default(),
            source,
        }
    })
}

async fn play(procedure: &Procedure, ticket: &str, client: &mut Client) -> Result<Record, Failure> {
    client.open().await?;
    let mut run = Run::new(procedure, ticket);
    while let Some(call) = run.next()? {
        let returned = client.call(&call.tool, &call.arguments).await?;
        run.returned(call, returned.failed, &returned.text);
    }
    let (check, verdict) = match run.outcome() {
        Outcome::Transferred => (None, Verdict::Transferred),
        Outcome::Unchecked => (None, Verdict::HandBack),
        Outcome::Check(check) => {
            let text = client.call(&check.probe, &Map::new()).await?.text;
            let verdict = if check.holds(&text) {
                Verdict::Resolved
            } else {
                Verdict::HandBack
            };
            (Some((check.probe.clone(), text)), verdict)
        }
    };
    Ok(Record {
        calls: run.calls().to_vec(),
        check,
        verdict,
    })
}

fn write(record: &Record, out: Option<&Path>) -> Result<(), Failure> {
    use io::Write as _;
    let mut text =
        serde_json::to_string_pretty(record).map_err(|error| Failure::Stdout(error.into()))?;
    text.push('\n');
    if let Some(path) = out {
        // What was done in the world is done: it must be told somewhere.
        return write_whole(path, text.as_bytes()).map_err(|why| Failure::Writing {
            why,
            run: serde_json::to_string(record).unwrap_or_default(),
        });
    }
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(Failure::Stdout)
}
