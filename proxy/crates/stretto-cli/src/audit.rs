//! `stretto audit`: how well a flow's probabilities fit what agents did.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
use stretto_flow::{Audit, Decider, Flow, Session, SessionAudit, SiteAudit, audit};

use crate::bar;
use crate::deciding::{Deciding, say_unanswered};
use crate::files::{check_places, write_whole};
use crate::screen::{Screen, Voice, safe};
use crate::sessions::{Known, Results};

/// Sessions that the report on the screen names; the JSON file has all.
const SHOWN: usize = 20;

/// Arguments of `stretto audit`.
#[derive(Debug, clap::Args)]
#[group(id = "audit", skip)]
pub struct Args {
    /// The flow
    #[arg(long, value_name = "FILE")]
    flow: PathBuf,
    /// Hold it against the session logs in this folder
    #[arg(long, value_name = "DIR")]
    sessions: PathBuf,
    #[command(flatten)]
    known: Known,
    /// Whose probabilities are judged: arbiter, habit or reach; by default the arbiter's if the flow
    /// has one, else the habit's, since reach says what comes sooner or later, not what comes next
    #[arg(long, value_name = "DECIDER")]
    decider: Option<Decider>,
    #[command(flatten)]
    deciding: Deciding,
    /// Write everything that was found to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Scores the agent's own steps by the flow's probabilities, and shows where they fit badly.
///
/// # Errors
///
/// A file that cannot be read or written, or holds something else than it should.
pub fn run(args: &Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    check_places([&args.json])?;
    let mut voice = Voice::stderr();
    let (flow, decider) = Deciding::flow(&args.flow, args.decider, Flow::next_step_decider)?;
    let recorded = args
        .known
        .read(&args.sessions, Results::InMemory, &mut voice)?;
    let sessions: Vec<&Session> = recorded.sessions.iter().collect();
    let mut asking = args.deciding.asking()?;
    let bar = bar::new();
    let found = audit(
        &flow,
        &sessions,
        &args.deciding.settings(decider),
        args.deciding.per_call,
        &mut |done, all| bar::show(&bar, "auditing", done, all),
        &mut |request| asking.ask(request),
    );
    bar.finish_and_clear();
    say_unanswered(&asking, &mut voice);
    for line in markdown(&found, decider).lines() {
        writeln!(screen, "{}", safe(line))?;
    }
    if let Some(file) = &args.json {
        let text = format!("{:#}\n", as_json(&found, decider));
        write_whole(file, text.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn markdown(found: &Audit, decider: Decider) -> String {
    let mut text = format!(
        "# Audit\n\n\
         Decided by {decider}, in {} sessions. `likeliest` counts the steps at which the agent did \
         what the flow held for likeliest; nats are the mean of −ln of the probability of what it \
         did, so 0 is certainty, and 0.69 is a coin's.\n\n\
         | site | decisions | likeliest | nats |\n|---|---:|---:|---:|\n",
        found.sessions.len()
    );
    let total = found.total();
    let rows = found
        .sites
        .iter()
        .map(|(name, site)| (format!("`{name}`"), site));
    for (name, site) in rows.chain([("all".to_owned(), &total)]) {
        text.push_str(&row(&name, site));
    }
    text.push_str(
        "\n| session, worst first | decisions | likeliest | nats | largest surprise of a run |\n\
         |---|---:|---:|---:|---:|\n",
    );
    for SessionAudit {
        session,
        steps,
        surprise,
    } in found.sessions.iter().take(SHOWN)
    {
        let surprise = surprise
            .map(|nats| format!("{nats:.2}"))
            .unwrap_or_default();
        let row = row(&format!("`{session}`"), steps);
        writeln!(text, "{} {surprise} |", row.trim_end()).expect("memory takes every write");
    }
    let more = found.sessions.len().saturating_sub(SHOWN);
    if more > 0 {
        writeln!(text, "\n{more} more sessions; --json FILE has all.")
            .expect("memory takes every write");
    }
    if found.unanswered > 0 {
        writeln!(text, "\n{} decisions had no answer.", found.unanswered)
            .expect("memory takes every write");
    }
    text
}

fn row(name: &str, steps: &SiteAudit) -> String {
    let SiteAudit {
        decisions,
        likeliest,
        ..
    } = *steps;
    #[expect(clippy::cast_precision_loss, reason = "decisions are far below 2^53")]
    let share = match decisions {
        0 => String::new(),
        _ => format!(" ({:.0}%)", 100.0 * likeliest as f64 / decisions as f64),
    };
    let mean = steps
        .mean()
        .map(|nats| format!("{nats:.3}"))
        .unwrap_or_default();
    format!("| {name} | {decisions} | {likeliest}{share} | {mean} |\n")
}

fn as_json(found: &Audit, decider: Decider) -> Value {
    let steps = |steps: &SiteAudit| json!({"decisions": steps.decisions, "likeliest": steps.likeliest, "nats": steps.mean()});
    let sites = found
        .sites
        .iter()
        .map(|(name, site)| (name.clone(), steps(site)));
    let sessions = found.sessions.iter().map(|session| {
        let mut line = steps(&session.steps);
        line["session"] = json!(session.session);
        line["largest_surprise"] = json!(session.surprise);
        line
    });
    json!({
        "decider": decider,
        "sites": sites.collect::<serde_json::Map<_, _>>(),
        "total": steps(&found.total()),
        "sessions": sessions.collect::<Vec<_>>(),
        "unanswered": found.unanswered,
    })
}
