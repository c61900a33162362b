//! `stretto redact`: copies of recorded sessions that can be shared.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context as _, bail, ensure};
use indicatif::ProgressBar;
use stretto_trace::mcp::{Header, read_log};
use stretto_trace::redact::{Census, Hashes, KEEP_SHARED, Options};

use crate::files::{check_folder, write_whole};
use crate::screen::{Screen, Voice, safe};
use crate::sessions::logs_in;

const WHAT_STAYS: &str = "\
Values that few of the sessions have become salted hashes, the same wherever they appear. What
many sessions have stays, and so does what servers declare in their tools, what host and server
say when they introduce themselves, and the headers. A flow learned from the copies is the flow
learned from the originals.

Flow logs, confirmation logs and caches are not copied: they hold the same values, so do not
share them.";

/// Arguments of `stretto redact`.
#[derive(Debug, clap::Args)]
#[command(after_help = WHAT_STAYS)]
pub struct Args {
    /// The directory of session logs
    #[arg(long, value_name = "DIR")]
    sessions: PathBuf,
    /// Where the copies go, one log per session; another directory
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The environment variable that holds the salt: a secret, and the same for batches whose
    /// hashes shall be the same
    #[arg(long, value_name = "VAR", default_value = "STRETTO_REDACT_SALT")]
    salt_env: String,
    /// Keep values that at least so many sessions have; with 1, only --hash-field hashes
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::new(KEEP_SHARED).unwrap_or(NonZeroUsize::MIN))]
    keep_shared: NonZeroUsize,
    /// Always hash what stands under members of this name, and each word of it
    #[arg(long = "hash-field", value_name = "NAME", value_delimiter = ',')]
    hash_fields: Vec<String>,
    /// Leave out the commands that started the servers, whose paths may name people
    #[arg(long)]
    drop_command: bool,
}

/// Redacts the sessions.
///
/// # Errors
///
/// There is no salt, a log cannot be read, or a copy cannot be written. Nothing is written
/// before all logs have been read.
pub fn run(args: &Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let options = Options {
        salt: salt(&args.salt_env)?,
        keep_shared: args.keep_shared.get(),
        hash_fields: args
            .hash_fields
            .iter()
            .filter(|name| !name.trim().is_empty())
            .cloned()
            .collect(),
    };
    check_folder(&args.out)?;
    if is_same(&args.sessions, &args.out) {
        bail!("--out is the directory of the sessions themselves; the copies need another");
    }
    let paths = logs_in(&args.sessions)?;
    let bar = crate::bar::new();

    // The logs may be more than fit into memory, so each is read twice.
    let begin = || (Census::new(&options), Vec::new());
    let counted = each_log(
        &bar,
        "counting values",
        &paths,
        begin,
        |(census, seen), path| {
            let log = read_log(path)?;
            census.count(&log);
            seen.push((path, log.header));
            Ok(())
        },
    )?;
    // Into the first, which need not be moved.
    let mut counted = counted.into_iter();
    let (mut census, mut seen) = counted.next().unwrap_or_else(begin);
    for (other, others) in counted {
        census.join(other);
        seen.extend(others);
    }
    let any_names_a_home = check_sessions(seen)?;
    let unmet = census.unmet_fields().join(", ");
    let redactor = census.finish();

    fs::create_dir_all(&args.out).with_context(|| format!("creating {}", args.out.display()))?;
    let written = each_log(
        &bar,
        "writing copies",
        &paths,
        Hashes::default,
        |hashes, path| {
            let log = read_log(path)?;
            let mut copy = redactor.redact(&log, hashes);
            if args.drop_command {
                copy.header.server_command.clear();
            }
            let file = args.out.join(format!("{}.jsonl", log.header.session));
            let mut text = Vec::new();
            copy.write(&mut text)?;
            Ok(write_whole(&file, &text)?)
        },
    )?;
    let mut hashes = Hashes::default();
    for other in written {
        hashes.join(other);
    }
    bar.finish_and_clear();

    writeln!(
        screen,
        "{} redacted into {}: {} kept, {} hashed",
        count(paths.len(), "session"),
        safe(&args.out.display().to_string()),
        count(redactor.kept(), "value"),
        hashes.count(),
    )?;
    if !unmet.is_empty() {
        Voice::stderr().say(&format!(
            "warning: no call and no result has a member {unmet}, so --hash-field did nothing for it"
        ));
    }
    if !args.drop_command && any_names_a_home {
        Voice::stderr().say(
            "warning: the headers' server commands were kept, and have paths that may name people; \
             --drop-command leaves them out",
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn salt(variable: &str) -> anyhow::Result<String> {
    let salt = match std::env::var(variable) {
        Ok(salt) => salt,
        Err(std::env::VarError::NotPresent) => {
            bail!("the variable {variable} is not set; it must hold the salt of the hashes")
        }
        Err(std::env::VarError::NotUnicode(_)) => bail!("the variable {variable} is not UTF-8"),
    };
    ensure!(
        !salt.is_empty(),
        "the variable {variable} is empty; without a salt, hashes can be guessed"
    );
    Ok(salt)
}

/// Does `work` for each log, on as many threads as there are cores. Each thread begins with what
/// `begin` makes, which comes back. Of several errors, the first log's is returned.
fn each_log<'p, T: Send>(
    bar: &ProgressBar,
    phrase: &'static str,
    paths: &'p [PathBuf],
    begin: impl Fn() -> T + Sync,
    work: impl Fn(&mut T, &'p Path) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<Vec<T>> {
    let threads = thread::available_parallelism()
        .map_or(1, Into::into)
        .min(paths.len());
    let next = AtomicUsize::new(0);
    let work_on_some = || {
        let mut own = begin();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(place) else {
                return Ok(own);
            };
            crate::bar::show(bar, phrase, place, paths.len());
            // Whoever took an earlier log finishes it, so the first error is always found.
            work(&mut own, path).map_err(|error| (place, error))?;
        }
    };
    let ended: Vec<Result<T, (usize, anyhow::Error)>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work_on_some)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    let mut all = Vec::with_capacity(threads);
    let mut first: Option<(usize, anyhow::Error)> = None;
    for end in ended {
        match end {
            Ok(own) => all.push(own),
            Err(error) if first.as_ref().is_none_or(|first| error.0 < first.0) => {
                first = Some(error);
            }
            Err(_) => {}
        }
    }
    match first {
        Some((_, error)) => Err(error),
        None => Ok(all),
    }
}

/// Makes sure that each session can have a copy that is called as it is. Returns whether a server's
/// command has a path into somebody's home.
fn check_sessions(mut seen: Vec<(&Path, Header)>) -> anyhow::Result<bool> {
    seen.sort_by_key(|(path, _)| *path);
    let mut files: HashMap<&str, &Path> = HashMap::new();
    for (path, header) in &seen {
        let session = &header.session;
        ensure!(
            is_file_name(session),
            "the session of {} is called {session:?}, which can be no file's name",
            path.display()
        );
        if let Some(other) = files.insert(session, path) {
            bail!(
                "{} and {} are both of the session {session}; keep one",
                other.display(),
                path.display()
            );
        }
    }
    let names_a_home = |word: &String| {
        ["/home/", "/Users/", "\\Users\\"]
            .iter()
            .any(|home| word.contains(home))
    };
    let mut words = seen.iter().flat_map(|(_, header)| &header.server_command);
    Ok(words.any(names_a_home))
}

/// Whether a file of this name stands in its directory, and nowhere else.
fn is_file_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && !name.contains(|c: char| matches!(c, '/' | '\\' | ':') || c.is_control())
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

fn count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
