//! The command line of `stretto-harness`.

use std::ffi::OsString;
use std::fs;
use std::io::{IsTerminal as _, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::bins::{self, BinsError, Named};
use crate::collection::{Choice, CollectError, Collection, root_of};
use crate::event::Event;
use crate::import;
use crate::process;
use crate::report::{Human, JUnit, Json, Verbosity};
use crate::run::{Job, RunOptions};
use crate::runner::{self, Plan, keep_folder, run_all, run_repeatedly};
use crate::scenario::{Transport, schema_text};
use crate::simulate::{self, Arm, Lab};
use crate::snapshot::Update;
use crate::soak::Soak;
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
    Run(RunArgs),
    /// List scenarios with their transports, titles, and what they need.
    List(ListArgs),
    /// Read scenario files and run nothing.
    Check(WhichArgs),
    /// Run one scenario and print its transcript.
    Show(ShowArgs),
    /// Write a scenario from a recorded session, and run it.
    New(NewArgs),
    /// Print the editor schema of scenario files.
    Schema,
    /// Serve the same seeded customers with each switch of active mode, and tell what it buys and costs.
    Simulate(SimulateArgs),
    /// Play sessions drawn from a seed, in many odd orders, and hold each to what must hold in every run.
    Soak(SoakArgs),
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

#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
struct RunArgs {
    #[command(flatten)]
    which: WhichArgs,
    #[command(flatten)]
    programs: ProgramArgs,
    /// Only over this transport.
    #[arg(long, value_enum)]
    over: Option<Over>,
    /// How many at a time. Without it: three for each processor, since most of a scenario is waiting.
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Run each so often; the transcripts must be the same.
    #[arg(long, value_name = "N", default_value = "1")]
    repeat: NonZeroUsize,
    /// Run slow ones, too.
    #[arg(long)]
    slow: bool,
    /// Start no more after the first failure.
    #[arg(long)]
    fail_fast: bool,
    /// Take what happened as the snapshot.
    #[arg(long)]
    accept: bool,
    /// Write a `JUnit` file.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write events to stdout, one JSON object per line.
    #[arg(long)]
    json: bool,
    /// Say only what failed, and the summary.
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Show the transcripts of failed ones.
    #[arg(short, long)]
    verbose: bool,
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

#[derive(Debug, Args)]
struct NewArgs {
    /// The name of the scenario, such as `hosts/claude-code`.
    name: String,
    /// The session log that it is made from.
    #[arg(long, value_name = "LOG")]
    from: PathBuf,
    /// The folder of all scenarios. Without it: ./scenarios or the checkout's.
    #[arg(long, value_name = "DIR")]
    scenarios: Option<PathBuf>,
    /// Only write the files.
    #[arg(long)]
    no_run: bool,
    #[command(flatten)]
    programs: ProgramArgs,
}

#[derive(Debug, Args)]
struct SimulateArgs {
    /// The arms, which are compared with `off`. `arbiter` and `judge` ask a model of the lab's own.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Arm::ALL)]
    arms: Vec<Arm>,
    /// How many sessions each arm plays.
    #[arg(long, value_name = "N", default_value = "60")]
    sessions: NonZeroUsize,
    /// How many sessions, of other seeds, the flow is learned from.
    #[arg(long, value_name = "N", default_value = "60")]
    lessons: NonZeroUsize,
    /// The seed of customers, agents, shops and lessons.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many sessions at a time. They mostly wait.
    #[arg(short, long, value_name = "N", default_value = "40")]
    jobs: NonZeroUsize,
    /// Write the report as JSON to FILE; `-` is stdout, in place of the table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the report as a picture to FILE.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Keep the logs and the flow in DIR, which must be empty or not there.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// The stretto-proxy to use. Without it: the checkout's, else the one beside this program or on the path.
    #[arg(long, value_name = "FILE")]
    proxy: Option<PathBuf>,
    /// In a checkout, use the proxy that is there.
    #[arg(long)]
    no_build: bool,
}

#[derive(Debug, Args)]
struct SoakArgs {
    /// How many sessions.
    #[arg(long, value_name = "N", default_value = "200")]
    sessions: NonZeroUsize,
    /// The seed of all of them.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many at a time. Without it: three for each processor.
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Write the sessions that fail to this folder, as scenarios.
    #[arg(long, value_name = "DIR", default_value = "soaked")]
    failed: PathBuf,
    #[command(flatten)]
    programs: ProgramArgs,
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
        Verb::Run(args) => run(&args),
        Verb::List(args) => list(&args),
        Verb::Check(args) => check(&args),
        Verb::Show(args) => show(&args),
        Verb::New(args) => new(&args),
        Verb::Schema => print(&schema_text()).map(|()| Exit::Passed),
        Verb::Simulate(args) => simulate(&args),
        Verb::Soak(args) => soak(&args),
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
#[error("no scenario matches {}", if .0.is_empty() { "it".to_owned() } else { .0.join(", ") })]
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

fn run(args: &RunArgs) -> anyhow::Result<Exit> {
    let (collection, mut choice) = collect(&args.which)?;
    choice.over = args.over.map(Transport::from);
    let jobs = collection.jobs(&choice);
    if jobs.is_empty() {
        bail!(NoMatch(args.which.which.clone()));
    }
    let is_all = choice.filters.is_empty() && choice.paths.is_empty();
    let plan = Plan {
        options: options(&args.programs, &collection.root)?,
        jobs: args.jobs.unwrap_or_else(runner::usual_jobs),
        repeat: args.repeat,
        slow: args.slow,
        fail_fast: args.fail_fast,
        update: if args.accept {
            Update::Accept
        } else {
            Update::from_environment()
        },
        rerun: rerun(&collection),
        unreferenced: is_all,
    };
    let verbosity = match (args.quiet, args.verbose) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
        _ => Verbosity::Usual,
    };
    let mut human = Human::new(verbosity);
    let mut json = args.json.then(|| Json::new(std::io::stdout()));
    let mut junit = JUnit::default();
    let mut broken: Option<std::io::Error> = None;
    let totals = run_all(&collection, &jobs, &plan, |event: &Event| {
        junit.event(event);
        let told = human
            .event(event)
            .and_then(|()| json.as_mut().map_or(Ok(()), |json| json.event(event)));
        if let Err(error) = told {
            broken.get_or_insert(error);
        }
    });
    if let Some(file) = &args.junit {
        junit
            .write(file)
            .with_context(|| format!("writing {}", file.display()))?;
    }
    if let Some(error) = broken.filter(|error| error.kind() != std::io::ErrorKind::BrokenPipe) {
        return Err(error).context("writing the report");
    }
    if process::is_stopped() {
        bail!("stopped by a signal; everything that it had started has been ended");
    }
    let is_fine = totals.failed == 0 && totals.unreferenced.is_empty();
    Ok(if is_fine { Exit::Passed } else { Exit::Failed })
}

/// How the command that runs one again begins: outside a checkout it names the folder.
fn rerun(collection: &Collection) -> String {
    let is_usual = usual_root().is_ok_and(|root| root == collection.root);
    if is_usual {
        return "stretto-harness run ".to_owned();
    }
    format!(
        "stretto-harness run --scenarios {} ",
        collection.root.display()
    )
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

fn new(args: &NewArgs) -> anyhow::Result<Exit> {
    let is_name = !args.name.is_empty()
        && args.name.split('/').all(|part| {
            !part.is_empty()
                && part
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        });
    if !is_name {
        bail!(Misuse(format!(
            "{:?} is no name for a scenario: small letters, digits and hyphens, such as hosts/my-host",
            args.name
        )));
    }
    let root = match &args.scenarios {
        Some(root) => std::path::absolute(root).unwrap_or_else(|_| root.clone()),
        None => usual_root()?,
    };
    let file = root.join(format!("{}.toml", args.name));
    let log = root.join(format!("{}.jsonl", args.name));
    let stem = args.name.rsplit('/').next().unwrap_or(&args.name);
    let is_same_log = args
        .from
        .canonicalize()
        .ok()
        .zip(log.canonicalize().ok())
        .is_some_and(|(from, to)| from == to);
    for taken in [&file, &log].into_iter().filter(|path| path.exists()) {
        if !(is_same_log && *taken == log) {
            bail!(Misuse(format!(
                "{} is there already; choose another name",
                taken.display()
            )));
        }
    }
    let text = import::scenario_of(&args.from, &format!("{stem}.jsonl"))?;
    let folder = file.parent().unwrap_or(&root);
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    if !is_same_log {
        fs::copy(&args.from, &log)
            .with_context(|| format!("copying the log to {}", log.display()))?;
    }
    fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    say(&format!("wrote {} and {}", file.display(), log.display()));
    if args.no_run {
        return Ok(Exit::Passed);
    }
    run_new(args, &root, &file)
}

/// Runs what was just written, so that it comes with its snapshot.
fn run_new(args: &NewArgs, root: &Path, file: &Path) -> anyhow::Result<Exit> {
    let collection = Collection::read(root, None)?;
    let choice = Choice {
        paths: vec![file.to_owned()],
        ..Choice::default()
    };
    let plan = Plan {
        options: options(&args.programs, root)?,
        jobs: NonZeroUsize::MIN,
        repeat: NonZeroUsize::new(2).unwrap_or(NonZeroUsize::MIN),
        slow: true,
        fail_fast: false,
        update: Update::Accept,
        rerun: rerun(&collection),
        unreferenced: false,
    };
    let mut exit = Exit::Passed;
    for job in collection.jobs(&choice) {
        let outcome = run_repeatedly(&collection, job, &plan);
        if outcome.failures.is_empty() {
            say(&format!(
                "it passes; read its snapshot in {}",
                collection.snapshot(job).display()
            ));
        } else {
            say("it does not pass yet:");
            let finished = crate::event::Finished::of(job, outcome, &plan.rerun);
            say(&crate::report::plain(&finished));
            exit = Exit::Failed;
        }
    }
    Ok(exit)
}

fn simulate(args: &SimulateArgs) -> anyhow::Result<Exit> {
    let named = Named {
        proxy: args.proxy.clone(),
        demo: args.proxy.clone(),
        no_build: args.no_build,
    };
    let programs = bins::find(&named, checkout().as_deref())?;
    let scratch;
    let folder = if let Some(keep) = &args.keep {
        if fs::read_dir(keep).is_ok_and(|mut entries| entries.next().is_some()) {
            bail!(Misuse(format!(
                "{} is not empty; name another folder for the logs",
                keep.display()
            )));
        }
        std::path::absolute(keep).with_context(|| format!("finding {}", keep.display()))?
    } else {
        scratch = tempfile::tempdir().context("making a folder for the logs")?;
        scratch.path().to_owned()
    };
    let lab = Lab {
        proxy: programs.proxy,
        shop: std::env::current_exe().context("finding this program, which serves the shop")?,
        arms: args.arms.clone(),
        sessions: args.sessions,
        lessons: args.lessons,
        seed: args.seed,
        jobs: args.jobs,
    };
    let bar = session_bar();
    let report = lab.run(&folder, &|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let report = report?;
    if let Some(file) = &args.plot {
        fs::write(file, report.svg()).with_context(|| format!("writing {}", file.display()))?;
    }
    let json = serde_json::to_string_pretty(&report).context("writing the report as JSON")? + "\n";
    match &args.json {
        Some(file) if file.as_os_str() == "-" => print(&json)?,
        Some(file) => {
            fs::write(file, json).with_context(|| format!("writing {}", file.display()))?;
            print(&report.table())?;
        }
        None => print(&report.table())?,
    }
    Ok(Exit::Passed)
}

fn soak(args: &SoakArgs) -> anyhow::Result<Exit> {
    let soak = Soak {
        options: options(&args.programs, Path::new("scenarios"))?,
        seed: args.seed,
        sessions: args.sessions,
        jobs: args.jobs.unwrap_or_else(runner::usual_jobs),
        failed: args.failed.clone(),
    };
    let bar = session_bar();
    bar.set_length(args.sessions.get() as u64);
    let broken = soak.run(&|done| bar.set_position(done as u64));
    bar.finish_and_clear();
    let broken = broken?;
    for broken in &broken {
        let (session, scenario) = (broken.session, broken.scenario.display());
        say(&format!(
            "session {session}: {}\n  play it again: stretto-harness run {scenario}",
            broken.why.join("; ")
        ));
    }
    print(&format!(
        "{} sessions of seed {}: {} broke a promise\n",
        args.sessions,
        args.seed,
        broken.len()
    ))?;
    Ok(if broken.is_empty() {
        Exit::Passed
    } else {
        Exit::Failed
    })
}

/// A bar over sessions, where somebody sees it.
fn session_bar() -> indicatif::ProgressBar {
    let bar = if std::io::stderr().is_terminal() {
        indicatif::ProgressBar::new(0)
    } else {
        indicatif::ProgressBar::hidden()
    };
    if let Ok(style) = indicatif::ProgressStyle::with_template("[{bar:22}] {pos}/{len} sessions") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}
