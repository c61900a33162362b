//! `stretto export-answers`, `stretto import-answers` and `stretto ask`: cached answers by hand.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use stretto_oracle::{Kept, Request, offline};

use crate::files::write_whole;
use crate::oracle::{Answerer, CacheArgs, Who};
use crate::screen::{Screen, Voice};

/// Arguments of `stretto export-answers`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct ExportArgs {
    #[command(flatten)]
    cache: CacheArgs,
    /// Write the answers to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Arguments of `stretto import-answers`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct ImportArgs {
    #[command(flatten)]
    cache: CacheArgs,
    /// A file that `stretto export-answers` wrote
    #[arg(value_name = "FILE")]
    answers: PathBuf,
}

/// Arguments of `stretto ask`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct AskArgs {
    /// A file with the request as JSON: `model`, `state` and `questions`
    #[arg(value_name = "REQUEST.json")]
    request: PathBuf,
    /// Who answers
    #[arg(long, value_name = "WHO", default_value = "jev")]
    oracle: Who,
    #[command(flatten)]
    cache: CacheArgs,
}

/// Writes every cached answer as a line, `{"key": …, "response": …}`, sorted by key.
///
/// # Errors
///
/// The cache cannot be read, a file in it is broken, or the lines cannot be written.
pub fn run_export(args: &ExportArgs, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let cache = args.cache.cache();
    let mut lines = Vec::new();
    let mut count = 0;
    for key in cache.keys()? {
        // One that was deleted since it was listed is not there to be exported.
        let Some(response) = cache.read(&key)? else {
            continue;
        };
        serde_json::to_writer(&mut lines, &Kept { key, response })?;
        lines.push(b'\n');
        count += 1;
    }
    match &args.out {
        Some(file) => {
            write_whole(file, &lines)?;
        }
        None => screen.write_all(&lines)?,
    }
    Voice::stderr().say(&format!("{} exported", answers(count)));
    Ok(ExitCode::SUCCESS)
}

/// Puts answers into the cache. All lines are read first, so that a wrong one leaves the cache
/// as it was.
///
/// # Errors
///
/// The file cannot be read, a line of it is no answer with its key, or the cache cannot be
/// written.
pub fn run_import(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let file = args.answers.display();
    let text = fs::read_to_string(&args.answers).with_context(|| format!("reading {file}"))?;
    let mut kept: Vec<Kept> = Vec::new();
    for (place, line) in text.lines().enumerate() {
        if !line.trim().is_empty() {
            let line = serde_json::from_str(line);
            kept.push(line.with_context(|| {
                format!("{file}:{} is no line of stretto export-answers", place + 1)
            })?);
        }
    }
    let cache = args.cache.cache();
    for Kept { key, response } in &kept {
        cache.write(key, response)?;
    }
    Voice::stderr().say(&format!("{} imported", answers(kept.len())));
    Ok(ExitCode::SUCCESS)
}

/// Answers one request. Its key goes to stderr, the response to stdout.
///
/// # Errors
///
/// The file holds no request, or there is no answer.
pub fn run_ask(args: &AskArgs, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let file = args.request.display();
    let text = fs::read_to_string(&args.request).with_context(|| format!("reading {file}"))?;
    let request: Request = serde_json::from_str(&text).with_context(|| {
        format!("{file} is no request (the member `request` of a line of --oracle-dump is one)")
    })?;
    let answerer = Answerer::new(args.oracle, args.cache.cache())?;
    Voice::stderr().say(&format!("key {}", request.key()));
    let found = offline::ask_one(&answerer.oracle, &request)?;
    if let Some(trouble) = found.not_kept {
        Voice::stderr().say(&crate::screen::one_line(&trouble.into()));
    }
    serde_json::to_writer_pretty(&mut *screen, &found.response)?;
    screen.write_all(b"\n")?;
    Ok(ExitCode::SUCCESS)
}

fn answers(count: usize) -> String {
    match count {
        1 => "1 answer".to_owned(),
        count => format!("{count} answers"),
    }
}
