//! `stretto guards`: the policy guards on recorded sessions.
//!
//! What would the rules have said about each call, and was the session the worse for it? A
//! failure on a write that the tool refused agrees with the tool. One on a write that was
//! accepted in a session that went well is a false alarm, or a breach of the policy that nobody
//! scored: a person decides which, before a rule is enforced.

mod audit;
mod cases;
mod report;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use stretto_guards::Guards;
use stretto_trace::mcp::{read_log, session_logs};

use crate::files::write_whole;
use crate::outcomes::Outcomes;
use crate::screen::{Screen, Voice};
use audit::{Audit, Session};

/// Arguments of `stretto guards`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// How the sessions ended: a table with a column `session` and any of `task`, `trial` and
    /// `reward`; sessions without a reward count as successful
    #[arg(long, value_name = "FILE", conflicts_with = "cases")]
    outcomes: Option<PathBuf>,
    /// Audit this domain only; may be repeated
    #[arg(
        long = "domain",
        value_name = "NAME",
        value_parser = PossibleValuesParser::new(Guards::domains()),
        conflicts_with = "cases"
    )]
    domains: Vec<String>,
    /// Write the report to this file instead of stdout
    #[arg(long, value_name = "FILE", conflicts_with = "cases")]
    out: Option<PathBuf>,
    /// Also write the audits to this file as JSON
    #[arg(long, value_name = "FILE", conflicts_with = "cases")]
    json: Option<PathBuf>,
}

/// What the guards are run on.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Input {
    /// Audit the session logs in this folder
    #[arg(long, value_name = "DIR")]
    sessions: Option<PathBuf>,
    /// Run the cases in this file, one as JSON per line, and list what differs
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
}

/// Audits the sessions, or runs the cases.
///
/// # Errors
///
/// A file that cannot be read or written, or holds something else than it should; no session
/// that has guards.
pub fn run(args: &Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    if let Some(file) = &args.input.cases {
        return cases::run(file, screen);
    }
    let folder = args
        .input
        .sessions
        .as_deref()
        .context("name --sessions or --cases")?;
    let outcomes = match &args.outcomes {
        Some(file) => Outcomes::read(file)?,
        None => Outcomes::default(),
    };
    let audits = audit_sessions(folder, &outcomes, &args.domains)?;

    if let Some(file) = &args.json {
        let mut json = serde_json::to_vec(&audits)?;
        json.push(b'\n');
        write_whole(file, &json).with_context(|| format!("writing {}", file.display()))?;
    }
    let report = report::markdown(&audits);
    match &args.out {
        Some(file) => write_whole(file, report.as_bytes())
            .with_context(|| format!("writing {}", file.display()))?,
        None => screen.write_all(report.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// One audit per domain, by name: of `domains`, or of every domain that has sessions.
fn audit_sessions(
    folder: &Path,
    outcomes: &Outcomes,
    domains: &[String],
) -> anyhow::Result<Vec<Audit>> {
    let mut audits = BTreeMap::new();
    for domain in domains {
        audits.insert(domain.clone(), Audit::of(&Guards::for_domain(domain)?));
    }
    let mut left_out = 0;
    let mut sessions = Vec::new();
    for path in session_logs(folder)? {
        let log = read_log(&path)?;
        let domain = log.header.domain.as_deref().unwrap_or_default();
        let is_wanted = domains.is_empty() || domains.iter().any(|wanted| wanted == domain);
        match Guards::for_domain(domain).ok().filter(|_| is_wanted) {
            Some(guards) => {
                let outcome = outcomes.of(&log.header.session);
                sessions.push((guards, Session::replayed(&guards, &log, outcome)));
            }
            None => left_out += 1,
        }
    }
    anyhow::ensure!(
        !sessions.is_empty(),
        "no session in {} is of a domain with guards; a log's header names its domain",
        folder.display()
    );
    sessions.sort_by(|(_, one), (_, other)| one.id.cmp(&other.id));
    for (guards, session) in &sessions {
        let audit = audits.entry(guards.domain().to_owned());
        audit.or_insert_with(|| Audit::of(guards)).add(session);
    }
    if left_out > 0 {
        let sessions = if left_out == 1 { "session" } else { "sessions" };
        Voice::stderr().say(&format!("{left_out} {sessions} of other domains left out"));
    }
    Ok(audits.into_values().collect())
}
