//! The command line of `stretto-harness`.

mod new;
mod run;
mod seeded;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::bins::{self, BinsError, Named};
use crate::collection::{Choice, CollectError, Collection, root_of};
use crate::process;
use crate::run::{Job, RunOptions};
use crate::runner::keep_folder;
use crate::scenario::{Transport, schema_text};
use crate::simulate;
use crate::text::append;

const EXITS: &str = "\
Exit status:
  0  all passed
  1  a scenario failed
  2  the command line, or a scenario file, is wrong
  3  it could not run: a program is missing, a folder cannot be written
  4  no scenario matched

Variables:
  STRETTO_PROXY, STRETTO_MCP_DEMO  the programs, where --proxy and --demo do not name them
  STRETTO_PATIENCE                 how many times a scenario's patience a step may take, on a slow machine
  INSTA_UPDATE, CI                 with CI set, or INSTA_UPDATE=no, no .snap.new is written
  NO_COLOR                         no colours";

/// Plays scenarios through stretto-proxy and compares what came of them with snapshots.
#[derive(Debug, Parser)]
#[command(name = "stretto-harness", version, about, after_help = EXITS, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Verb,
    /// When to use colours.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    color: Color,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run scenarios.
    Run(run::RunArgs),
    /// List scenarios with their transports, titles, and what they need.
    List(ListArgs),
    /// Read scenario files and run nothing.
    Check(WhichArgs),
    /// Run one scenario and print its transcript.
    Show(ShowArgs),
    /// Write a scenario from a recorded session, and run it.
    New(new::NewArgs),
    /// Print the editor schema of scenario files.
    Schema,
    /// Serve the same seeded customers with each switch of active mode, and tell what it buys and costs.
    Simulate(seeded::SimulateArgs),
    /// Play sessions drawn from a seed, in many odd orders, and hold each to what must hold in every run.
    Soak(seeded::SoakArgs),
    /// The lab's shop, as `simulate` starts it.
    #[command(hide = true)]
    ShopServer {
        /// The seed, the milliseconds of a call, the file for the state at the end.
        words: Vec<OsString>,
    },
}

/// Which scenarios.
#[derive(Debug, Args)]
struct WhichArgs {
    /// Files, folders, or parts of scenarios' names. Without one: all scenarios.
    #[arg(value_name = "PATH or FILTER")]
    which: Vec<String>,
    /// The folder of all scenarios. Without it: the one that a PATH is in, else ./scenarios or the checkout's.
    #[arg(long, value_name = "DIR")]
    scenarios: Option<PathBuf>,
    /// The folder of the snapshots. Without it: `snapshots`, beside a folder called `scenarios`, else inside the folder.
    #[arg(long, value_name = "DIR")]
    snapshots: Option<PathBuf>,
}

/// Which programs.
#[derive(Debug, Args)]
struct ProgramArgs {
    /// The stretto-proxy to test. Without it: the checkout's, else the one beside this program or on the path.
    #[arg(long, value_name = "FILE")]
    proxy: Option<PathBuf>,
    /// The stretto-mcp-demo to use. Without it: found as the proxy is.
    #[arg(long, value_name = "FILE")]
    demo: Option<PathBuf>,
    /// In a checkout, use the programs that are there.
    #[arg(long)]
    no_build: bool,
    /// Keep the folders of passed scenarios, too.
    #[arg(long)]
    keep: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Over {
    Stdio,
    Http,
}

impl From<Over> for Transport {
    fn from(over: Over) -> Self {
        match over {
            Over::Stdio => Self::Stdio,
            Over::Http => Self::Http,
        }
    }
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    which: WhichArgs,
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// The scenario's name or file.
    name: String,
    #[command(flatten)]
    programs: ProgramArgs,
    /// The folder of all scenarios.
    #[arg(long, value_name = "DIR")]
    scenarios: Option<PathBuf>,
    /// Over which transport. Without it: the scenario's first.
    #[arg(long, value_enum)]
    over: Option<Over>,
}

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Passed = 0,
    Failed = 1,
    Wrong = 2,
    CouldNotRun = 3,
    NoMatch = 4,
}

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Nobody is there to be told when this cannot be printed.
            drop(error.print());
            return ExitCode::from(if error.use_stderr() {
                Exit::Wrong as u8
            } else {
                Exit::Passed as u8
            });
        }
    };
    match cli.color {
        Color::Auto => {}
        Color::Always => anstream::ColorChoice::write_global(anstream::ColorChoice::Always),
        Color::Never => anstream::ColorChoice::write_global(anstream::ColorChoice::Never),
    }
    end_all_on_signals();
    let exit = match cli.command {
        Verb::Run(args) => run::run(&args),
        Verb::List(args) => list(&args),
        Verb::Check(args) => check(&args),
        Verb::Show(args) => show(&args),
        Verb::New(args) => new::new(&args),
        Verb::Schema => print(&schema_text()).map(|()| Exit::Passed),
        Verb::Simulate(args) => seeded::simulate(&args),
        Verb::Soak(args) => seeded::soak(&args),
        Verb::ShopServer { words } => simulate::shop_server(&words).map(|()| Exit::Passed),
    };
    let exit = exit.unwrap_or_else(|error| {
        say(&format!("{error:#}"));
        exit_of(&error)
    });
    ExitCode::from(exit as u8)
}

/// Ctrl-C and a build's time limit end what runs, with all its processes.
fn end_all_on_signals() {
    let signals = signal_hook::iterator::Signals::new([
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
    ]);
    let Ok(mut signals) = signals else { return };
    let waiting = std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            if signals.forever().next().is_some() {
                process::stop_all();
            }
        });
    // Without it a signal ends this program at once, and the proxies end when their stdin closes.
    drop(waiting);
}

fn exit_of(error: &anyhow::Error) -> Exit {
    let is_slip = matches!(
        error.downcast_ref(),
        Some(CollectError::Slips(_) | CollectError::Twice { .. } | CollectError::NoFolder(_))
    );
    if is_slip || error.is::<Misuse>() {
        Exit::Wrong
    } else if error.is::<NoMatch>() {
        Exit::NoMatch
    } else {
        Exit::CouldNotRun
    }
}

/// A command line that cannot be meant.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Misuse(String);

#[derive(Debug, thiserror::Error)]
#[error("{}", if .0.is_empty() { "there is no scenario yet; stretto-harness new writes one from a log".to_owned() } else { format!("no scenario matches {}", .0.join(", ")) })]
struct NoMatch(Vec<String>);

fn say(text: &str) {
    let mut stderr = anstream::stderr().lock();
    // Nobody is there to be told when this cannot be written.
    drop(writeln!(stderr, "stretto-harness: {text}"));
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("writing to stdout"),
    }
}

fn checkout() -> Option<PathBuf> {
    bins::checkout_of(&std::env::current_dir().ok()?)
}

/// The folder of all scenarios, and what of it is meant.
fn collect(which: &WhichArgs) -> anyhow::Result<(Collection, Choice)> {
    let mut choice = Choice::default();
    for word in &which.which {
        let path = PathBuf::from(word);
        if path.exists() {
            choice.paths.push(path);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            bail!(Misuse(format!("{word} is not there")));
        } else {
            choice.filters.push(word.clone());
        }
    }
    let root = match (&which.scenarios, choice.paths.first()) {
        (Some(named), _) => std::path::absolute(named).unwrap_or_else(|_| named.clone()),
        (None, Some(path)) => root_of(path),
        (None, None) => usual_root()?,
    };
    let outside = choice
        .paths
        .iter()
        .find(|path| which.scenarios.is_none() && root_of(path) != root);
    if let Some(path) = outside {
        bail!(Misuse(format!(
            "{} is in another folder of scenarios than {}; run them one after the other",
            path.display(),
            root.display()
        )));
    }
    let collection = Collection::read(&root, which.snapshots.as_deref())?;
    Ok((collection, choice))
}

fn usual_root() -> anyhow::Result<PathBuf> {
    let here = std::path::absolute("scenarios").context("finding the folder")?;
    if here.is_dir() {
        return Ok(here);
    }
    match checkout() {
        Some(checkout) => Ok(checkout.join("scenarios")),
        None => Err(anyhow!(Misuse(
            "there is no folder `scenarios` here; name your scenarios' folder".to_owned()
        ))),
    }
}

fn options(args: &ProgramArgs, root: &Path) -> anyhow::Result<RunOptions> {
    let checkout = bins::checkout_of(root).or_else(checkout);
    let named = Named {
        proxy: args.proxy.clone(),
        demo: args.demo.clone(),
        no_build: args.no_build,
    };
    let programs =
        bins::find(&named, checkout.as_deref()).map_err(|error: BinsError| anyhow!(error))?;
    let keep = keep_folder(checkout.as_deref());
    Ok(RunOptions {
        programs,
        scenarios: root.to_owned(),
        keep: Some(keep),
        keep_passed: args.keep,
    })
}

fn list(args: &ListArgs) -> anyhow::Result<Exit> {
    let (collection, choice) = collect(&args.which)?;
    let jobs = collection.jobs(&choice);
    if jobs.is_empty() {
        bail!(NoMatch(args.which.which.clone()));
    }
    let mut scenarios: Vec<_> = jobs.iter().map(|job| job.scenario).collect();
    scenarios.dedup_by(|one, other| one.name == other.name);
    let widest = scenarios
        .iter()
        .map(|scenario| scenario.name.len())
        .max()
        .unwrap_or_default();
    let mut text = String::new();
    for scenario in scenarios {
        let over: Vec<&str> = scenario.over.iter().map(|over| over.word()).collect();
        let mut notes = Vec::new();
        if scenario.slow {
            notes.push("slow".to_owned());
        }
        if !scenario.needs.is_empty() {
            notes.push(format!("needs {}", scenario.needs.join(", ")));
        }
        let notes = if notes.is_empty() {
            String::new()
        } else {
            format!(" ({})", notes.join("; "))
        };
        append(
            &mut text,
            format_args!(
                "{:widest$}  {:10}  {}{notes}\n",
                scenario.name,
                over.join(","),
                scenario.title
            ),
        );
    }
    print(&text)?;
    Ok(Exit::Passed)
}

fn check(args: &WhichArgs) -> anyhow::Result<Exit> {
    let (collection, choice) = collect(args)?;
    let jobs = collection.jobs(&choice);
    if jobs.is_empty() {
        bail!(NoMatch(args.which.clone()));
    }
    let word = if jobs.len() == 1 {
        "scenario"
    } else {
        "scenarios"
    };
    say(&format!("{} {word} read, nothing wrong", jobs.len()));
    Ok(Exit::Passed)
}

fn show(args: &ShowArgs) -> anyhow::Result<Exit> {
    let which = WhichArgs {
        which: vec![args.name.clone()],
        scenarios: args.scenarios.clone(),
        snapshots: None,
    };
    let (collection, mut choice) = collect(&which)?;
    choice.over = args.over.map(Transport::from);
    let jobs = collection.jobs(&choice);
    let exact = jobs.iter().find(|job| job.scenario.name == args.name);
    let job: Job<'_> = match (exact, jobs.as_slice()) {
        (Some(job), _) => *job,
        (None, []) => bail!(NoMatch(which.which)),
        (None, [only]) => *only,
        (None, [first, second, ..]) if first.scenario.name == second.scenario.name => *first,
        (None, several) => {
            let names: Vec<String> = several.iter().map(Job::name).collect();
            bail!(Misuse(format!(
                "{} may be any of {}",
                args.name,
                names.join(", ")
            )));
        }
    };
    let outcome = crate::run::run(job, &options(&args.programs, &collection.root)?);
    print(&outcome.transcript)?;
    for failure in &outcome.failures {
        say(&failure.headline());
    }
    Ok(if outcome.failures.is_empty() {
        Exit::Passed
    } else {
        Exit::Failed
    })
}
