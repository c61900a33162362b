//! The page of all command lines is what the programs say of themselves, and the commands of other
//! pages do what they say.
//!
//! Without the usual test harness, because this program is also `stretto` and `stretto-harness`:
//! only this package's own programs are built before its tests.

use std::env;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};
use tempfile::TempDir;

/// Which program this is to be.
const BE: &str = "STRETTO_TEST_IS";

/// Set to write the page instead of checking it.
const WRITE: &str = "STRETTO_WRITE_PAGE";

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/cli.md");

const START: &str = "\
# Command lines

What each program and each of its commands says with `--help`. This page is generated; a test holds it
against the programs, and this writes it anew:

```sh
STRETTO_WRITE_PAGE=1 cargo test -p stretto-proxy --test pages
```
";

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    match env::var(BE).as_deref() {
        Ok("stretto") => return stretto_cli::run(env::args_os()),
        Ok("stretto-harness") => return stretto_harness::cli::main(),
        _ => {}
    }
    let trial = |name: &str, test: fn() -> Result| {
        Trial::test(name, move || {
            test().map_err(|error| Failed::from(error.to_string()))
        })
    };
    let trials = vec![
        trial(
            "the page is what the programs say",
            page_is_what_programs_say,
        ),
        trial(
            "every command of the page about hosts runs, and undoing leaves the file as it was",
            commands_about_hosts_run,
        ),
        trial(
            "every command of the page about servers over HTTP runs, and the value is in no file",
            commands_about_http_run,
        ),
        trial(
            "every command about judging flows prints what the page shows",
            || follow("judging.md"),
        ),
        trial(
            "every command about sharing recordings prints what the page shows",
            || follow("sharing.md"),
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A home in which the programs are installed.
struct Installed(TempDir);

impl Installed {
    fn new() -> Result<Self> {
        let home = Self(tempfile::tempdir()?);
        let this = env::current_exe()?;
        let this = this.display();
        for (name, script) in [
            ("stretto", format!("{BE}=stretto exec '{this}' \"$@\"")),
            (
                "stretto-harness",
                format!("{BE}=stretto-harness exec '{this}' \"$@\""),
            ),
            (
                "stretto-proxy",
                format!("exec '{}' \"$@\"", env!("CARGO_BIN_EXE_stretto-proxy")),
            ),
            (
                "stretto-mcp-demo",
                format!("exec '{}' \"$@\"", env!("CARGO_BIN_EXE_stretto-mcp-demo")),
            ),
        ] {
            let file = home.path(&format!("bin/{name}"));
            fs::create_dir_all(home.path("bin"))?;
            fs::write(&file, format!("#!/bin/sh\n{script}\n"))?;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
        }
        Ok(home)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs all commands of a page, one after the other, in one shell, and returns what they print.
    fn run(&self, page: &str, change: impl Fn(String) -> String) -> Result<String> {
        let commands: String = steps(page)?.into_iter().map(|step| step.commands).collect();
        // With jobs that can be named, as in a reader's shell.
        self.shell(&format!("set -m\n{}", change(commands)))
    }

    /// Runs commands in a shell, and returns what they print.
    fn shell(&self, commands: &str) -> Result<String> {
        let path = env::var("PATH").unwrap_or_default();
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", commands])
            .current_dir(self.0.path())
            .env("HOME", self.0.path())
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env_remove("TYPESAFE_API_KEY")
            .env_remove("TYPESAFE_API_KEY_FILE")
            .stdin(Stdio::null())
            .output()?;
        let said =
            [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        let said = said.concat();
        if !output.status.success() {
            return Err(format!("{commands}{}\n{said}", output.status).into());
        }
        Ok(said)
    }
}

/// Commands of a page, and what it shows that they print.
struct Step {
    commands: String,
    shown: Option<String>,
}

/// The commands of a page; a `text` block that comes behind some is what they print.
fn steps(page: &str) -> Result<Vec<Step>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(page);
    let page = fs::read_to_string(page)?;
    let mut steps: Vec<Step> = Vec::new();
    let mut is_behind = false;
    for fenced in page.split("```").skip(1).step_by(2) {
        let (language, block) = fenced.split_once('\n').unwrap_or((fenced, ""));
        match (language, steps.last_mut()) {
            ("sh", _) => steps.push(Step {
                commands: block.to_owned(),
                shown: None,
            }),
            ("text", Some(step)) if is_behind => step.shown = Some(block.to_owned()),
            _ => {}
        }
        is_behind = language == "sh";
    }
    Ok(steps)
}

/// Runs the commands of a page, and holds what they print against what it shows, in which a line
/// `…` stands for any number of lines.
fn follow(page: &str) -> Result {
    let home = Installed::new()?;
    for Step { commands, shown } in steps(page)? {
        // In the order in which a reader sees it.
        let printed = home.shell(&format!("exec 2>&1\n{commands}"))?;
        let Some(shown) = shown else { continue };
        let mut rest = printed.lines();
        let mut is_anywhere = false;
        for line in shown.lines() {
            if line == "…" {
                is_anywhere = true;
                continue;
            }
            let is_there = if is_anywhere {
                rest.any(|printed| printed == line)
            } else {
                rest.next() == Some(line)
            };
            if !is_there {
                return Err(
                    format!("the page shows {line:?}; {commands}printed\n{printed}").into(),
                );
            }
            is_anywhere = false;
        }
        if !is_anywhere && let Some(line) = rest.next() {
            return Err(format!("the page does not show {line:?}, which {commands}printed").into());
        }
    }
    Ok(())
}

fn holds(text: &str, part: &str) -> Result {
    if text.contains(part) {
        Ok(())
    } else {
        Err(format!("{part:?} is not in {text}").into())
    }
}

fn commands_about_hosts_run() -> Result {
    let home = Installed::new()?;
    let said = home.run("any-host.md", |commands| commands)?;
    holds(&said, "put the proxy before files in ~/.cursor/mcp.json")?;
    holds(&said, "ok       stretto-proxy")?;
    let own = fs::read_to_string(home.path(".cursor/mcp.json"))?;
    if own != "{\"mcpServers\": {\"files\": {\"command\": \"stretto-mcp-demo\"}}}\n" {
        return Err(format!("undone, it is {own}").into());
    }
    let project: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(home.path("project/.vscode/mcp.json"))?)?;
    let servers = project["servers"]
        .as_object()
        .map(|servers| servers.keys().cloned().collect());
    if servers != Some(vec!["echo".to_owned(), "shop".to_owned()]) {
        return Err(format!("the project has {project}").into());
    }
    Ok(())
}

fn commands_about_http_run() -> Result {
    let home = Installed::new()?;
    // A port that is free now; the page's own may not be.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let said = home.run("http-servers.md", |commands| {
        // A reader takes longer to type the next command than a server to start.
        let ready = format!(
            "&\nuntil (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.05; done\n"
        );
        commands
            .replace("&\n", &ready)
            .replace("8787", &port.to_string())
    })?;
    holds(&said, "user_7")?;
    holds(&said, "Authorization=SHOP_AUTH")?;
    let own = fs::read_to_string(home.path(".cursor/mcp.json"))?;
    holds(&own, "\"headers\": { \"Authorization\": \"Bearer demo\" }")?;
    for log in fs::read_dir(home.path(".stretto/logs/shop"))? {
        if fs::read_to_string(log?.path())?.contains("Bearer demo") {
            return Err("the log holds the header's value".into());
        }
    }
    Ok(())
}

fn page_is_what_programs_say() -> Result {
    let mut page = START.to_owned();
    let this = env::current_exe()?;
    let this = this.to_str().ok_or("the test's own path is not text")?;
    for (name, file) in [
        ("stretto-proxy", env!("CARGO_BIN_EXE_stretto-proxy")),
        ("stretto", this),
        ("stretto-procedure", env!("CARGO_BIN_EXE_stretto-procedure")),
        ("stretto-mcp-demo", env!("CARGO_BIN_EXE_stretto-mcp-demo")),
        ("stretto-harness", this),
    ] {
        add(&mut page, name, file, &[])?;
    }
    if env::var_os(WRITE).is_some() {
        fs::write(PAGE, page)?;
        return Ok(());
    }
    let written = fs::read_to_string(PAGE).unwrap_or_default();
    let written = written.lines().map(Some).chain(std::iter::repeat(None));
    for (number, (said, written)) in page.lines().zip(written).enumerate() {
        if Some(said) != written {
            let line = number + 1;
            return Err(format!(
                "proxy/docs/cli.md is old: line {line} should be {said:?} and is {written:?}; its \
                 start tells how to write it anew"
            )
            .into());
        }
    }
    let (said, written) = (
        page.lines().count(),
        fs::read_to_string(PAGE)?.lines().count(),
    );
    if said != written {
        return Err(format!("proxy/docs/cli.md has {written} lines where {said} are said").into());
    }
    Ok(())
}

/// Adds what a program says of one of its commands, and of that one's own.
fn add(page: &mut String, name: &str, file: &str, commands: &[&str]) -> Result {
    let mut command = Command::new(file);
    std::os::unix::process::CommandExt::arg0(&mut command, name);
    let output = command
        .args(commands)
        .arg("--help")
        .env(BE, name)
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()?;
    let words = [&[name], commands].concat().join(" ");
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{words} --help: {}: {said}", output.status).into());
    }
    let help = String::from_utf8(output.stdout)?;
    let level = if commands.is_empty() { "##" } else { "###" };
    *page += &["\n", level, " `", &words, "`\n\n```text\n"].concat();
    for line in help.trim_end().lines() {
        page.push_str(line.trim_end());
        page.push('\n');
    }
    page.push_str("```\n");
    for command in commands_in(&help) {
        add(page, name, file, &[commands, &[command]].concat())?;
    }
    Ok(())
}

/// The commands that a help lists.
fn commands_in(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    lines
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        // It only shows what is on the page anyway.
        .filter(|name| *name != "help")
        .collect()
}
