//! `stretto confirm`: the confirmation judge on recorded sessions.
//!
//! What would the judge have said about each write that the guards check for a confirmation? It
//! asks exactly what it would have asked live, so the answers that a judged session was given
//! are found in the cache again.

mod audit;
mod report;
mod writes;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use serde::Serialize;
use stretto_guards::confirm::{Judge, Second};
use stretto_oracle::offline::Requests;

use crate::files::{check_places, write_whole};
use crate::guarded::Input;
use crate::oracle::{self, Answerer, CacheArgs, Who, dollars};
use crate::screen::{Screen, Voice};
use audit::Audit;
use writes::Write;

/// Arguments of `stretto confirm`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// Who answers
    #[arg(long, value_name = "WHO", default_value = "replay")]
    oracle: Who,
    #[command(flatten)]
    cache: CacheArgs,
    /// Refuse to start when asking may cost more than this
    #[arg(long, value_name = "DOLLARS", default_value = "2", value_parser = dollars)]
    oracle_budget: f64,
    /// The least probability of a yes that passes
    #[arg(long, value_name = "P", default_value = "0.5", value_parser = threshold)]
    threshold: f64,
    /// Also ask this of each write
    #[arg(long, value_name = "QUESTION")]
    second_question: Option<SecondQuestion>,
    /// List this many examples of each kind, per domain
    #[arg(long, value_name = "N", default_value = "8")]
    examples: usize,
    /// Write every request with its key to this file; it holds what was said in the sessions
    #[arg(long, value_name = "FILE")]
    oracle_dump: Option<PathBuf>,
    /// Write the report to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Also write the audits and every write to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What may be asked beside whether the customer agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SecondQuestion {
    /// Whether the agent had put the change forward.
    Proposed,
    /// Whether the agent's message alone spells the change out.
    Described,
}

impl From<SecondQuestion> for Second {
    fn from(question: SecondQuestion) -> Self {
        match question {
            SecondQuestion::Proposed => Self::Proposed,
            SecondQuestion::Described => Self::Described,
        }
    }
}

fn threshold(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| !number.is_nan());
    number.ok_or_else(|| "not a number".to_owned())
}

/// What `--json` writes.
#[derive(Debug, Serialize)]
struct Json<'a> {
    threshold: f64,
    second_question: Option<&'static str>,
    audits: &'a [Audit],
    writes: &'a [Write],
}

/// Judges the writes of the sessions.
///
/// # Errors
///
/// A file that cannot be read or written; no session that has guards; asking would cost too
/// much, or most questions get no answer.
pub fn run(args: &Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    check_places([&args.json, &args.out, &args.oracle_dump])?;
    let answerer = Answerer::new(args.oracle, args.cache.cache())?;
    let judge = Judge {
        second: args.second_question.map(Second::from),
        threshold: args.threshold,
        ..Judge::new(&answerer.model)
    };
    let mut requests = Requests::new();
    let mut writes: Vec<Write> = Vec::new();
    args.input.each(&mut Voice::stderr(), |session| {
        writes.extend(writes::of_session(session, &judge, &mut requests));
    })?;
    writes.sort_by(|one, other| one.episode.cmp(&other.episode));
    if let Some(file) = &args.oracle_dump {
        oracle::dump(&requests, file)?;
    }
    answerer.check_cost(&requests, args.oracle_budget)?;
    let asked = answerer.ask(&requests)?;
    for write in &mut writes {
        write.take_answers(&judge, &asked);
    }

    let mut audits: BTreeMap<&str, Audit> = BTreeMap::new();
    for write in &writes {
        let audit = audits.entry(&write.domain);
        let audit = audit.or_insert_with(|| Audit::of(&write.domain));
        audit.add(write, &judge, args.examples);
    }
    let audits: Vec<Audit> = audits.into_values().collect();
    if let Some(file) = &args.json {
        let mut json = serde_json::to_vec(&Json {
            threshold: judge.threshold,
            second_question: judge.second.map(Second::id),
            audits: &audits,
            writes: &writes,
        })?;
        json.push(b'\n');
        write_whole(file, &json)?;
    }
    let report = report::markdown(&audits, &judge);
    match &args.out {
        Some(file) => write_whole(file, report.as_bytes())?,
        None => screen.write_all(report.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}
