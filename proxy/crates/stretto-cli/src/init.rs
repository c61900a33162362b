//! `stretto init`: put the proxy into a host's configuration.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::ArgGroup;
use stretto_flow::{Decider, Flow};
use stretto_hosts::{Entry, Host, Proxy, Server, add, check_name, command_line, wrap};

use crate::files::write_new;
use crate::home::{expand, lasting, shown};
use crate::hostfile::{HostFile, show_difference};
use crate::programs;
use crate::screen::{Screen, Voice};

mod steps;

/// Arguments of `stretto init`.
#[derive(Debug, clap::Args)]
#[group(id = "init", skip)]
#[command(
    group = ArgGroup::new("what").required(true).args(["wrap", "upstream", "server_command"]),
    group = ArgGroup::new("where").args(["write", "merge", "wrap"]),
    override_usage = "\
stretto init --host HOST --domain NAME [OPTIONS] -- SERVER_COMMAND...
       stretto init --host HOST --domain NAME [OPTIONS] --upstream URL [--upstream-header NAME=VAR]...
       stretto init --host HOST --wrap NAME [--file PATH] [OPTIONS]",
    after_help = "\
Without --write, --merge or --wrap, the configuration is printed and no file is touched. No value
of a variable is ever written: what the server needs goes into the entry's `env` by hand."
)]
pub struct Args {
    /// Whose configuration: claude-code, claude-desktop, cursor, vscode, or plain for any other
    /// with `mcpServers`
    #[arg(long, value_name = "HOST", value_parser = host)]
    host: Host,
    /// The server's name: in the host, in its sessions, and in file names; by default the flow's
    /// domain, else what --wrap names
    #[arg(long, value_name = "NAME", required_unless_present_any = ["flow", "wrap"])]
    domain: Option<String>,
    /// Serve this flow
    #[arg(long, value_name = "FILE")]
    flow: Option<PathBuf>,
    /// Have the flow decide and log, but look nothing up
    #[arg(long, requires = "flow")]
    shadow: bool,
    /// Record sessions here; by default in ~/.stretto/logs/NAME, with --shadow ~/.stretto/shadow/NAME
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Write a new file with this one server
    #[arg(long, value_name = "PATH")]
    write: Option<PathBuf>,
    /// Add the server to this file
    #[arg(long, value_name = "PATH")]
    merge: Option<PathBuf>,
    /// Put the proxy before this server, which the host's file has already
    #[arg(long, value_name = "NAME")]
    wrap: Option<String>,
    /// The file of --wrap; by default the user's own, for Claude Code .mcp.json in this directory
    #[arg(long, value_name = "PATH", requires = "wrap")]
    file: Option<PathBuf>,
    /// Only show what would change in the file; values of `env` and `headers` are not shown
    #[arg(long, requires = "where")]
    dry_run: bool,
    /// The endpoint of a server that is reached over HTTP
    #[arg(long, value_name = "URL", value_parser = url)]
    upstream: Option<String>,
    /// Have the environment variable VAR hold the value of a header; may be repeated
    #[arg(long, value_name = "NAME=VAR", requires = "upstream", value_parser = header)]
    upstream_header: Vec<String>,
    /// The command that starts the server
    #[arg(last = true, value_name = "SERVER_COMMAND")]
    server_command: Vec<String>,
}

/// Reads a host's name from a command line.
///
/// # Errors
///
/// There is no such host.
pub(crate) fn host(word: &str) -> Result<Host, String> {
    let known = Host::ALL.into_iter().find(|host| host.word() == word);
    known.ok_or_else(|| format!("the hosts are {}", Host::ALL.map(Host::word).join(", ")))
}

fn url(text: &str) -> Result<String, String> {
    let is_url = ["http://", "https://"]
        .iter()
        .any(|scheme| text.len() > scheme.len() && text.starts_with(scheme));
    if is_url {
        Ok(text.to_owned())
    } else {
        Err("a URL starts with http:// or https://".to_owned())
    }
}

fn header(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, variable)) if !name.is_empty() && !variable.is_empty() => Ok(text.to_owned()),
        // The text is not repeated: it may be a header with its value.
        _ => Err("a header is NAME=VAR, where VAR is an environment variable".to_owned()),
    }
}

/// What the proxy is to do, and for whom.
#[derive(Debug)]
struct Plan {
    host: Host,
    /// The server's name in the host.
    server: String,
    /// The name of its sessions and flows.
    domain: String,
    record: String,
    flow: Option<Served>,
    shadow: bool,
    /// Whether the server is in a file that stretto can change, and which if it is not the
    /// user's own.
    is_in_file: bool,
    file: Option<PathBuf>,
    /// How a command line names the server.
    words: Vec<String>,
    /// The variables that hold headers' values.
    variables: Vec<String>,
}

/// The flow that is served.
#[derive(Debug)]
struct Served {
    file: String,
    decider: Decider,
    is_promoted: bool,
}

/// Prints a host's configuration with the proxy in it, or puts it into the host's file.
///
/// # Errors
///
/// A name that cannot be used, a flow that cannot be loaded, or a file that cannot be read,
/// changed or written.
pub fn run(args: &Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let mut voice = Voice::stderr();
    let plan = Plan::new(args)?;
    let proxy = Proxy {
        command: proxy_program(args.host, &mut voice),
        options: plan.options(),
    };
    let place = if let Some(name) = &args.wrap {
        let path = args
            .file
            .clone()
            .map_or_else(|| HostFile::own(args.host), Ok)?;
        let change = |text: &str| wrap(text, args.host, name, &proxy);
        let copy = HostFile::read(args.host, &path)?.change(change, args.dry_run, screen)?;
        let put = format!("put the proxy before {name} in {}", shown(&path));
        changed(&put, copy.as_deref())
    } else {
        let server = server(args, &mut voice)?;
        let entry = Entry { proxy, server };
        match (&args.write, &args.merge) {
            (Some(path), _) => write(args, path, &plan, &entry, screen)?,
            (None, Some(path)) => {
                let change = |text: &str| add(text, args.host, &plan.server, &entry);
                let file = HostFile::read(args.host, path)
                    .context("there is nothing to add to (--write makes a new file)")?;
                let copy = file.change(change, args.dry_run, screen)?;
                changed(
                    &format!("added {} to {}", plan.server, shown(path)),
                    copy.as_deref(),
                )
            }
            (None, None) => {
                print(&plan, &entry, screen)?;
                Some(steps::where_it_goes(args.host))
            }
        }
    };
    if let Some(place) = place {
        screen.finish()?;
        voice.quote(&steps::text(&plan, &place));
    }
    Ok(ExitCode::SUCCESS)
}

/// What was done to a file, unless it was only shown.
fn changed(what: &str, copy: Option<&Path>) -> Option<String> {
    copy.map(|copy| format!("Done: {what}. The file as it was is {}.", shown(copy)))
}

fn write(
    args: &Args,
    path: &Path,
    plan: &Plan,
    entry: &Entry,
    screen: &mut Screen,
) -> anyhow::Result<Option<String>> {
    let path = expand(path);
    let name = shown(&path);
    let there = || {
        format!(
            "{name} is there already, and stays as it is; add the server to it with --merge, or put \
             the proxy before one of its servers with --wrap NAME --file"
        )
    };
    let text = entry.file(args.host, &plan.server);
    if args.dry_run {
        anyhow::ensure!(!path.exists(), there());
        show_difference(&name, "", &text, screen)?;
        return Ok(None);
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("creating {}", shown(folder)))?;
    }
    match write_new(&path, text.as_bytes(), None) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            anyhow::bail!(there())
        }
        written => written?,
    }
    Ok(Some(format!("Done: wrote {name}.")))
}

fn print(plan: &Plan, entry: &Entry, screen: &mut Screen) -> anyhow::Result<()> {
    if plan.host == Host::ClaudeCode {
        let mut words = vec![
            "claude",
            "mcp",
            "add",
            &plan.server,
            "--",
            &entry.proxy.command,
        ];
        words.extend(entry.arguments());
        writeln!(screen, "{}", command_line(&words))?;
    } else {
        screen.write_all(entry.file(plan.host, &plan.server).as_bytes())?;
    }
    Ok(())
}

impl Plan {
    fn new(args: &Args) -> anyhow::Result<Self> {
        let flow = args.flow.as_deref().map(|path| {
            let flow = Flow::load(&expand(path))?;
            let decider = flow.default_decider();
            let served = Served {
                file: lasting(path)?,
                decider,
                is_promoted: flow.file().promoted.is_some(),
            };
            anyhow::Ok((flow.file().manifest.domain.clone(), served))
        });
        let (flow_domain, flow) = flow.transpose()?.unzip();
        let named = args.domain.clone().or(flow_domain).or(args.wrap.clone());
        let domain = named.context("there is no name; give one with --domain")?;
        check_name(&domain).context("give a name with --domain")?;
        let record = match &args.record {
            Some(folder) => lasting(folder)?,
            None if args.shadow => format!("~/.stretto/shadow/{domain}"),
            None => format!("~/.stretto/logs/{domain}"),
        };
        Ok(Self {
            host: args.host,
            server: args.wrap.clone().unwrap_or_else(|| domain.clone()),
            record,
            flow,
            shadow: args.shadow,
            is_in_file: args.write.is_some() || args.merge.is_some() || args.wrap.is_some(),
            file: [&args.write, &args.merge, &args.file]
                .into_iter()
                .find_map(Clone::clone),
            words: server_words(args),
            variables: args
                .upstream_header
                .iter()
                .filter_map(|header| Some(header.split_once('=')?.1.to_owned()))
                .collect(),
            domain,
        })
    }

    /// The proxy's options, in the order in which people read them.
    fn options(&self) -> Vec<String> {
        let mut words = vec!["--record", &self.record, "--domain", &self.domain];
        if let Some(flow) = &self.flow {
            words.extend(["--flow", &flow.file]);
            match flow.decider {
                // It is the default for a flow that has one.
                Decider::Arbiter => {}
                Decider::Habit => words.extend(["--flow-decider", "habit"]),
                Decider::Reach => words.extend(["--flow-decider", "reach"]),
            }
            if self.shadow {
                words.push("--flow-shadow");
            }
        }
        words.into_iter().map(str::to_owned).collect()
    }
}

/// How the command line names the server, if it does.
fn server_words(args: &Args) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(url) = &args.upstream {
        words.extend(["--upstream".to_owned(), url.clone()]);
        for header in &args.upstream_header {
            words.extend(["--upstream-header".to_owned(), header.clone()]);
        }
    } else if !args.server_command.is_empty() {
        words.push("--".to_owned());
        words.extend(args.server_command.iter().cloned());
    }
    words
}

/// The proxy's program as `host` starts it: its bare name where that is found.
fn proxy_program(host: Host, voice: &mut Voice) -> String {
    const NAME: &str = "stretto-proxy";
    let installed = programs::on_path(NAME);
    let is_found_by_name = installed.is_some() && !host.needs_full_paths();
    let file = installed.or_else(|| programs::beside_this(NAME));
    let path = file.and_then(|file| file.into_os_string().into_string().ok());
    match path {
        _ if is_found_by_name => NAME.to_owned(),
        Some(path) => path,
        None => {
            voice.say(&format!(
                "{NAME} is not on the PATH, so the host will not find it; `stretto doctor` says more"
            ));
            NAME.to_owned()
        }
    }
}

/// The server that the command line names, so that the host can start it.
fn server(args: &Args, voice: &mut Voice) -> anyhow::Result<Server> {
    if let Some(url) = &args.upstream {
        return Ok(Server::Url {
            url: url.clone(),
            headers: args.upstream_header.clone(),
        });
    }
    let mut command = args.server_command.clone();
    let Some(program) = command.first_mut() else {
        anyhow::bail!("there is no server: its command goes after `--`");
    };
    if program.contains(std::path::is_separator) {
        *program = lasting(Path::new(&program))?;
    } else if args.host.needs_full_paths()
        && let Some(file) = programs::on_path(program)
        && !programs::is_everywhere(&file)
    {
        let folder = file
            .parent()
            .unwrap_or(Path::new("/"))
            .display()
            .to_string();
        if let Some(runs) = programs::interpreter(&file) {
            voice.say(&format!(
                "{program} is started by {runs}, which {} may not find; put \
                 \"PATH\": \"{folder}:/usr/bin:/bin\" into the entry's env",
                args.host
            ));
        }
        *program = lasting(&file)?;
    }
    Ok(Server::Command(command))
}
