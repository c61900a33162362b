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
use std::path::PathBuf;
use std::process::ExitCode;

use stretto_guards::Guards;

use crate::files::{check_places, write_whole};
use crate::guarded::Input;
use crate::screen::{Screen, Voice};
use audit::{Audit, Session};

/// Arguments of `stretto guards`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// Run the cases in this file, one as JSON per line, and list what differs
    #[arg(
        long,
        value_name = "FILE",
        group = "input",
        conflicts_with_all = ["sessions", "tau2", "sources", "outcomes", "domains"]
    )]
    cases: Option<PathBuf>,
    /// Write the report to this file instead of stdout
    #[arg(long, value_name = "FILE", conflicts_with = "cases")]
    out: Option<PathBuf>,
    /// Also write the audits to this file as JSON
    #[arg(long, value_name = "FILE", conflicts_with = "cases")]
    json: Option<PathBuf>,
}

/// Audits the sessions, or runs the cases.
///
/// # Errors
///
/// A file that cannot be read or written, or holds something else than it should; no session
/// that has guards.
pub fn run(args: &Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    if let Some(file) = &args.cases {
        return cases::run(file, screen);
    }
    check_places([&args.json, &args.out])?;
    let mut audits = BTreeMap::new();
    for domain in &args.input.domains {
        audits.insert(domain.clone(), Audit::of(&Guards::for_domain(domain)?));
    }
    let mut sessions = Vec::new();
    args.input.each(&mut Voice::stderr(), |session| {
        sessions.push((session.guards, Session::replayed(session)));
    })?;
    sessions.sort_by(|(_, one), (_, other)| one.id.cmp(&other.id));
    for (guards, session) in &sessions {
        let audit = audits.entry(guards.domain().to_owned());
        audit.or_insert_with(|| Audit::of(guards)).add(session);
    }
    let audits: Vec<Audit> = audits.into_values().collect();

    if let Some(file) = &args.json {
        let mut json = serde_json::to_vec(&audits)?;
        json.push(b'\n');
        write_whole(file, &json)?;
    }
    let report = report::markdown(&audits);
    match &args.out {
        Some(file) => write_whole(file, report.as_bytes())?,
        None => screen.write_all(report.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}
