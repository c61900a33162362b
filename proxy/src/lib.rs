//! Stands between an MCP host and an MCP server, and writes down what they say to each other.
//!
//! ```text
//!  host           Host                     Session                    Upstream       server
//!   │   a line     │   recorded, an event     │                          │             │
//!   ├─────────────►├─────────────────────────►│                          │             │
//!   │              │                          ├── Act::Forward ─────────►├────────────►│
//!   │              │                          │   recorded, an event     │   a line    │
//!   │              │                          │◄─────────────────────────┤◄────────────┤
//!   │◄─────────────┤◄────────── Act::Forward ─┤                          │             │
//! ```
//!
//! There is one way for a line, and `drive` walks it: a line is read, recorded, turned into
//! an event, and what the session wants done about it is done. The session has no I/O of
//! its own. The log is written by a thread that no line waits for.

mod asker;
mod cli;
mod clock;
mod conversation;
mod drive;
mod host;
mod line;
mod message;
mod outbox;
mod owed;
mod patience;
pub mod procedure;
mod record;
mod retain;
mod secrets;
mod session;
mod settings;
mod sidelogs;
mod signals;
mod skim;
mod upstream;
mod voice;

use std::{
    io,
    os::unix::process::ExitStatusExt,
    process::{self, ExitCode, ExitStatus},
    time::{SystemTime, UNIX_EPOCH},
};

use jiff::Timestamp;
use stretto_trace::mcp::Header;
use tracing::{error, info, warn};

use crate::{
    cli::Cli,
    clock::{Clock, Millis},
    drive::{Drive, Outcome},
    host::Host,
    record::{LogError, SessionLog},
    retain::Pruned,
    session::OwnIds,
    settings::{Settings, SettingsError},
    signals::Signals,
    upstream::{Child, Ending, Endpoint, EndpointError, Http, Upstream},
};

/// The exit code when the proxy itself could not do its work.
const FAILED: u8 = 125;

/// How long a stopped proxy takes at most: hosts count in seconds.
const TO_STOP: Millis = Millis(950);

/// The program `stretto-proxy`.
pub fn main() -> ExitCode {
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way too. Nobody hears of a stdout or stderr that is closed.
            error.print().ok();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(FAILED));
        }
    };
    voice::start();
    match run(&cli) {
        Ok(outcome) => exit_code(outcome),
        Err(failure) => {
            error!("{}", voice::chain(&failure));
            ExitCode::from(FAILED)
        }
    }
}

/// What kept the proxy from doing its work.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("reading --upstream and its headers")]
    Endpoint(#[from] EndpointError),
    #[error("starting {program}")]
    Start { program: String, source: io::Error },
    #[error("setting up the event loop")]
    Runtime(#[source] io::Error),
    #[error("listening for signals")]
    Signals(#[source] io::Error),
}

/// The start-up story, and the session.
fn run(cli: &Cli) -> Result<Outcome, Failure> {
    signals::survive_file_size_limits().map_err(Failure::Signals)?;
    let pruned = prune(cli);
    let settings = Settings::of(cli)?;
    let endpoint = match &cli.upstream {
        Some(url) => Some(Endpoint::new(url, &cli.upstream_header)?),
        None => None,
    };
    let clock = Clock::start();
    let mut header = header(cli);
    let mut log = match &cli.record {
        Some(directory) => Some(SessionLog::create(directory, &mut header)?),
        None => None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(Failure::Signals)?;
        let own_ids = OwnIds::default();
        let server = match endpoint {
            Some(endpoint) => Upstream::Http(Http::new(endpoint, own_ids.clone())),
            None => start(cli)?,
        };
        if let Some(log) = &mut log {
            log.keep();
            info!("recording to {}", log.path().display());
        }
        pruned.iter().for_each(Pruned::say);
        let (session, beside) =
            settings.begin(&header, log.as_ref().map(SessionLog::path), own_ids);
        let drive = Drive::new(
            Host::on_stdio(),
            server,
            session,
            log.as_ref(),
            beside,
            clock,
        );
        let outcome = drive.run(&mut signals).await;
        Ok(match &mut log {
            Some(log) => finish(log, outcome, &mut signals, clock).await,
            None => outcome,
        })
    });
    // A read of stdin may be blocked in a thread of the runtime, which would be waited for.
    runtime.shutdown_background();
    outcome
}

/// Before the log exists, or `--retain-days 0` would delete it. What came of it is said later: the first
/// thing said is where the log is.
fn prune(cli: &Cli) -> Vec<Pruned<'_>> {
    let Some(days) = cli.retain_days else {
        return Vec::new();
    };
    let roots = cli.record.iter().chain([&cli.oracle_cache]);
    roots.map(|root| retain::prune(root, days)).collect()
}

fn header(cli: &Cli) -> Header {
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let started_unix_ms = u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX);
    let command = match &cli.upstream {
        Some(url) => vec![secrets::shown_upstream(url)],
        None => {
            secrets::shown_command(cli.server_command.iter().map(|word| word.to_string_lossy()))
        }
    };
    Header::new(
        session_id(started_unix_ms, process::id()),
        started_unix_ms,
        command,
    )
    .with_domain(cli.domain.clone())
    .with_agent_model(cli.agent_model.clone())
}

/// When the session started, in UTC, and the proxy's process. As text, ids sort by time.
fn session_id(started_unix_ms: u64, process: u32) -> String {
    let started = i64::try_from(started_unix_ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!(
        "{}-{process}",
        started
            .unwrap_or(Timestamp::MAX)
            .strftime("%Y%m%dT%H%M%S.%3fZ")
    )
}

fn start(cli: &Cli) -> Result<Upstream, Failure> {
    match Child::start(&cli.server_command) {
        Ok(child) => Ok(Upstream::Child(child)),
        Err(source) => {
            let program = cli
                .server_command
                .first()
                .map(|word| word.to_string_lossy().into_owned());
            Err(Failure::Start {
                program: program.unwrap_or_default(),
                source,
            })
        }
    }
}

/// Waits for the log, however slow the disk: only a signal cuts that short.
async fn finish(
    log: &mut SessionLog,
    outcome: Outcome,
    signals: &mut Signals,
    clock: Clock,
) -> Outcome {
    let outcome = match outcome {
        Outcome::Stopped(..) => outcome,
        Outcome::Server(_) => tokio::select! {
            () = log.finish() => return outcome,
            stop = signals.next() => Outcome::Stopped(stop, clock.now()),
        },
    };
    if let Outcome::Stopped(_, at) = outcome {
        let last = tokio::time::sleep_until(clock.instant(at + TO_STOP).into());
        tokio::select! {
            () = log.finish() => {}
            () = last => warn!("the log {} is incomplete: the disk took too long", log.path().display()),
        }
    }
    outcome
}

fn exit_code(outcome: Outcome) -> ExitCode {
    ExitCode::from(match outcome {
        Outcome::Server(Ending::Exited(status)) => status_code(status),
        Outcome::Server(Ending::Unknown) => FAILED,
        Outcome::Server(Ending::SessionOver) => 0,
        Outcome::Stopped(stop, _) => {
            stop.die();
            stop.exit_code()
        }
    })
}

fn status_code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok())
        .unwrap_or(FAILED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_named_after_its_start_and_its_process() {
        for (ms, process, id) in [
            (0, 1, "19700101T000000.000Z-1"),
            (951_782_400_000, 42, "20000229T000000.000Z-42"),
            (1_709_251_199_999, 7, "20240229T235959.999Z-7"),
            (4_107_542_399_000, 7, "21000228T235959.000Z-7"),
        ] {
            assert_eq!(session_id(ms, process), id);
        }
    }

    #[test]
    fn a_status_becomes_a_code() {
        assert_eq!(status_code(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(status_code(ExitStatus::from_raw(9)), 137);
        assert_eq!(status_code(ExitStatus::from_raw(0)), 0);
    }
}
