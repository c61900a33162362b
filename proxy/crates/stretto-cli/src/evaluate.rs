//! `stretto evaluate`: what another threshold or decider would have brought.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::{Map, Value, json};
use stretto_flow::Session;
use stretto_flow::evaluate::{
    Estimate, Evaluation, Logged, MEASURES, Measures, Row, Target, Weighted, evaluate, label,
};
use stretto_trace::mcp::{episode_with_answered, read_log};

use crate::files::{check_places, write_whole};
use crate::screen::{Screen, Voice, safe};

/// Arguments of `stretto evaluate`.
#[derive(Debug, clap::Args)]
#[group(id = "evaluate", skip)]
pub struct Args {
    /// Flow logs whose decisions have their policy (stretto-proxy --flow-explore)
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    flow_log: Vec<PathBuf>,
    /// The session logs of flow logs that have no labels: NAME.jsonl for NAME.flow.jsonl. Without
    /// it, those beside the flow logs
    #[arg(long, value_name = "LOG", num_args = 1..)]
    session: Vec<PathBuf>,
    /// A rule to judge: [NAME=]arbiter@P (what the log's own decider said) or [NAME=]habit@P, with
    /// P the threshold; may be repeated
    #[arg(long, value_name = "TARGET", required = true)]
    target: Vec<Target>,
    /// Leave out what rests on an effective sample smaller than this
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    min_ess: f64,
    /// Write everything that was found to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Judges each target by the logged decisions.
///
/// # Errors
///
/// A file that cannot be read or written or holds something else than it should, no decision
/// with a policy, or one without labels and without its session.
pub fn run(args: &Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    check_places([&args.json])?;
    let mut voice = Voice::stderr();
    let mut records = Vec::new();
    for file in &args.flow_log {
        records.append(&mut read(file, &args.session, &mut voice)?);
    }
    anyhow::ensure!(
        !records.is_empty(),
        "no decision in these flow logs has a policy; record with stretto-proxy --flow-explore (0 logs \
         policies without exploring)"
    );
    let evaluations: Vec<(&Target, Evaluation)> = args
        .target
        .iter()
        .map(|target| (target, evaluate(&records, target, args.min_ess)))
        .collect();
    for line in markdown(&evaluations, records.len(), args.min_ess).lines() {
        writeln!(screen, "{}", safe(line))?;
    }
    if let Some(file) = &args.json {
        let text = format!("{:#}\n", as_json(&evaluations, records.len(), args.min_ess));
        write_whole(file, text.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The decisions of a flow log that have a policy, labelled.
fn read(file: &Path, sessions: &[PathBuf], voice: &mut Voice) -> anyhow::Result<Vec<Logged>> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let mut records = Vec::new();
    let mut session = None;
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let place = || format!("{}, line {}", file.display(), at + 1);
        let read = match Logged::read(line) {
            // The proxy was killed while it wrote it.
            Err(_) if at + 1 == lines.len() && !text.ends_with('\n') => {
                voice.say(&format!("{} is cut off; left out", place()));
                continue;
            }
            read => read.with_context(|| format!("{} is no line of a flow log", place()))?,
        };
        let Some(mut record) = read else { continue };
        if record.labels.is_empty() {
            if session.is_none() {
                if !record.is_shadow {
                    voice.say(&format!(
                        "{}: lookups were made, and an agent does not repeat what it was given: only \
                         labels from shadow sessions are sure",
                        file.display()
                    ));
                }
                session = Some(session_of(file, sessions)?);
            }
            if let Some(session) = &session {
                record.labels = label(&record, session).with_context(place)?;
            }
        }
        if let Some(option) = record.unlabelled() {
            anyhow::bail!("{}: the labels lack {option}", place());
        }
        records.push(record);
    }
    Ok(records)
}

/// The session that a flow log was written in, by its name.
fn session_of(flow_log: &Path, sessions: &[PathBuf]) -> anyhow::Result<Session> {
    let name = flow_log.file_name().unwrap_or_default().to_string_lossy();
    let name = format!(
        "{}.jsonl",
        name.strip_suffix(".flow.jsonl").unwrap_or(&name)
    );
    let named = sessions
        .iter()
        .find(|session| session.file_name().is_some_and(|own| *own == *name));
    let path = match (named, sessions) {
        (Some(named), _) => named.clone(),
        // The only one, whatever it is called.
        (None, [only]) => only.clone(),
        (None, _) => flow_log.with_file_name(&name),
    };
    let log = read_log(&path).with_context(|| {
        format!(
            "{} has no labels, so they are read from its session (--session names it)",
            flow_log.display()
        )
    })?;
    let (episode, answered_before) = episode_with_answered(&log);
    Ok(Session {
        episode,
        answered_before,
        contents_in: None,
    })
}

fn markdown(evaluations: &[(&Target, Evaluation)], records: usize, min_ess: f64) -> String {
    let mut text = format!(
        "# Evaluation\n\n\
         {records} decisions with a policy. `direct` adds up the labels of what a target would have \
         looked up; the estimates rest on the decisions in which the log took the same, of which \
         the effective sample is ESS. Below {min_ess:?} they are refused (–). ± is a standard error.\n"
    );
    for (target, evaluation) in evaluations {
        write!(
            text,
            "\n## {}\n\n\
             | site | lookups | unsupported | ESS | | used | detours | turns spared |\n\
             |---|---:|---:|---:|---|---:|---:|---:|\n",
            target.name
        )
        .expect("memory takes every write");
        let sites = evaluation
            .sites
            .iter()
            .map(|(name, row)| (format!("`{name}`"), row));
        for (name, row) in sites.chain([("all".to_owned(), &evaluation.total)]) {
            for line in lines(&name, row) {
                writeln!(text, "{line}").expect("memory takes every write");
            }
        }
    }
    text
}

/// A row for each way to estimate.
fn lines(name: &str, row: &Row) -> [String; 4] {
    let cells = |sum: &Measures, error: Option<&Measures>| {
        let cells = (1..MEASURES.len()).map(|at| match error {
            Some(error) => format!("{:.1} ± {:.1} |", sum[at], error[at]),
            None => format!("{:.1} |", sum[at]),
        });
        cells.collect::<Vec<_>>().join(" ")
    };
    let refused = || "– | – | – |".to_owned();
    let weighted = row.weighted.as_ref();
    let of = |cells: &dyn Fn(&Weighted) -> String| weighted.map_or_else(refused, cells);
    [
        format!(
            "| {name} | {} | {} | {:.1} | direct | {}",
            row.looks,
            row.unsupported,
            row.ess,
            cells(&row.direct, None)
        ),
        format!(
            "| | | | | IPS | {}",
            of(&|all| cells(&all.ips.sum, Some(&all.ips.error)))
        ),
        format!(
            "| | | | | self-normalised | {}",
            of(&|all| cells(&all.snips, None))
        ),
        format!(
            "| | | | | doubly robust | {}",
            of(&|all| cells(&all.dr.sum, Some(&all.dr.error)))
        ),
    ]
}

fn as_json(evaluations: &[(&Target, Evaluation)], records: usize, min_ess: f64) -> Value {
    let named = |measures: &Measures| -> Map<String, Value> {
        let values = MEASURES.iter().zip(measures);
        values
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect()
    };
    let row = |row: &Row| {
        let mut line = json!({
            "lookups": row.looks,
            "unsupported": row.unsupported,
            "ess": row.ess,
            "direct": named(&row.direct),
        });
        let estimate = |one: &Estimate| json!({"sum": named(&one.sum), "error": named(&one.error)});
        line["ips"] = row.weighted.map(|all| estimate(&all.ips)).into();
        line["snips"] = row
            .weighted
            .map(|all| json!({"sum": named(&all.snips)}))
            .into();
        line["dr"] = row.weighted.map(|all| estimate(&all.dr)).into();
        line
    };
    let targets = evaluations.iter().map(|(target, evaluation)| {
        let sites: BTreeMap<&String, Value> = evaluation
            .sites
            .iter()
            .map(|(name, site)| (name, row(site)))
            .collect();
        json!({
            "target": target.name,
            "threshold": target.threshold,
            "total": row(&evaluation.total),
            "sites": sites,
        })
    });
    json!({"decisions": records, "min_ess": min_ess, "targets": targets.collect::<Vec<_>>()})
}
