//! `stretto redact`: copies of recorded sessions that can be shared.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use indicatif::ProgressBar;
use stretto_trace::mcp::{Log, read_log};
use stretto_trace::redact::{Census, KEEP_SHARED, Options};

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
    let mut census = Census::new(&options);
    let mut sessions = Sessions::default();
    for path in steps(&bar, "counting values", &paths) {
        let log = read_log(path)?;
        sessions.add(&log, path)?;
        census.count(&log);
    }
    let mut redactor = census.finish();

    fs::create_dir_all(&args.out).with_context(|| format!("creating {}", args.out.display()))?;
    for path in steps(&bar, "writing copies", &paths) {
        let log = read_log(path)?;
        let mut copy = redactor.redact(&log);
        if args.drop_command {
            copy.header.server_command.clear();
        }
        let file = args.out.join(format!("{}.jsonl", log.header.session));
        let mut text = Vec::new();
        copy.write(&mut text)?;
        write_whole(&file, &text)?;
    }
    bar.finish_and_clear();

    writeln!(
        screen,
        "{} redacted into {}: {} kept, {} hashed",
        count(paths.len(), "session"),
        safe(&args.out.display().to_string()),
        count(redactor.kept(), "value"),
        redactor.hashed(),
    )?;
    if !args.drop_command && sessions.any_names_a_home {
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

/// `paths` one after the other, and the bar with them.
fn steps<'p>(
    bar: &'p ProgressBar,
    phrase: &'static str,
    paths: &'p [PathBuf],
) -> impl Iterator<Item = &'p PathBuf> {
    let all = paths.len();
    paths.iter().enumerate().map(move |(done, path)| {
        crate::bar::show(bar, phrase, done, all);
        path
    })
}

/// The sessions that were read, whose names become the copies' files.
#[derive(Debug, Default)]
struct Sessions {
    files: HashMap<String, PathBuf>,
    /// Whether a server's command has a path into somebody's home.
    any_names_a_home: bool,
}

impl Sessions {
    fn add(&mut self, log: &Log, path: &Path) -> anyhow::Result<()> {
        let session = &log.header.session;
        ensure!(
            is_file_name(session),
            "the session of {} is called {session:?}, which can be no file's name",
            path.display()
        );
        if let Some(other) = self.files.insert(session.clone(), path.to_owned()) {
            bail!(
                "{} and {} are both of the session {session}; keep one",
                other.display(),
                path.display()
            );
        }
        let names_a_home = |word: &String| {
            ["/home/", "/Users/", "\\Users\\"]
                .iter()
                .any(|home| word.contains(home))
        };
        self.any_names_a_home |= log.header.server_command.iter().any(names_a_home);
        Ok(())
    }
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
