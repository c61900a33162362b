//! Where the programs are: built in a checkout, or found beside this one or on the path.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use thiserror::Error;

/// The programs that scenarios are played with.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `stretto-proxy`.
    pub proxy: PathBuf,
    /// `stretto-mcp-demo`.
    pub demo: PathBuf,
}

/// Why there are no programs to play with.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BinsError {
    /// A program is neither named nor found.
    #[error(
        "{program} is not beside this program and not on the path; install it with \
         `cargo install --path proxy`, or name it with {option} or the variable {variable}"
    )]
    Missing {
        /// The program.
        program: &'static str,
        /// The option that names it.
        option: &'static str,
        /// The variable that names it.
        variable: &'static str,
    },
    /// The named program is no file.
    #[error("{} is not a file", .0.display())]
    NoFile(PathBuf),
    /// Cargo could not be started.
    #[error("starting cargo to build the proxy (`--no-build` uses what is there)")]
    Cargo(#[source] std::io::Error),
    /// The build failed; cargo has said why.
    #[error("the proxy could not be built; `--no-build` uses what is there")]
    Build,
}

/// The checkout of this project that holds `folder`, if there is one.
pub fn checkout_of(folder: &Path) -> Option<PathBuf> {
    let holds_it = |folder: &&Path| {
        folder.join("proxy/Cargo.toml").is_file() && folder.join("harness/Cargo.toml").is_file()
    };
    folder.ancestors().find(holds_it).map(Path::to_owned)
}

/// What the command line says about the programs.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// The proxy to use.
    pub proxy: Option<PathBuf>,
    /// The demo server to use.
    pub demo: Option<PathBuf>,
    /// Whether a checkout's programs are used as they are.
    pub no_build: bool,
}

/// Finds the programs, building them first when `checkout` is given.
///
/// # Errors
///
/// When one is missing, or cannot be built.
pub fn find(named: &Named, checkout: Option<&Path>) -> Result<Programs, BinsError> {
    let mut built = Built::default();
    if let Some(checkout) = checkout
        && !named.no_build
        && (named.proxy.is_none() || named.demo.is_none())
    {
        built = build(checkout)?;
    }
    let target = checkout.map(|checkout| target_of(checkout).join("debug"));
    Ok(Programs {
        proxy: choose(named.proxy.as_ref(), built.proxy, target.as_deref(), &PROXY)?,
        demo: choose(named.demo.as_ref(), built.demo, target.as_deref(), &DEMO)?,
    })
}

struct Program {
    name: &'static str,
    option: &'static str,
    variable: &'static str,
}

const PROXY: Program = Program {
    name: "stretto-proxy",
    option: "--proxy",
    variable: "STRETTO_PROXY",
};
const DEMO: Program = Program {
    name: "stretto-mcp-demo",
    option: "--demo",
    variable: "STRETTO_MCP_DEMO",
};

fn choose(
    named: Option<&PathBuf>,
    built: Option<PathBuf>,
    target: Option<&Path>,
    program: &Program,
) -> Result<PathBuf, BinsError> {
    let told = named
        .cloned()
        .or_else(|| env::var_os(program.variable).map(PathBuf::from));
    if let Some(told) = told {
        return std::path::absolute(&told)
            .ok()
            .filter(|path| path.is_file())
            .ok_or(BinsError::NoFile(told));
    }
    if let Some(built) = built {
        return Ok(built);
    }
    let beside = env::current_exe()
        .ok()
        .and_then(|own| own.parent().map(Path::to_owned));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = target
        .map(Path::to_owned)
        .into_iter()
        .chain(beside)
        .chain(env::split_paths(&path));
    folders
        .map(|folder| folder.join(program.name))
        .find(|candidate| candidate.is_file())
        .ok_or(BinsError::Missing {
            program: program.name,
            option: program.option,
            variable: program.variable,
        })
}

pub(crate) fn target_of(checkout: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| checkout.join("target"), PathBuf::from)
}

#[derive(Debug, Default)]
struct Built {
    proxy: Option<PathBuf>,
    demo: Option<PathBuf>,
}

/// What cargo says about a program that it has built.
#[derive(Deserialize)]
struct Artifact {
    executable: Option<PathBuf>,
}

fn build(checkout: &Path) -> Result<Built, BinsError> {
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([
            "build",
            "--quiet",
            "--package",
            "stretto-proxy",
            "--bins",
            "--message-format",
            "json-render-diagnostics",
        ])
        .current_dir(checkout)
        .stderr(Stdio::inherit())
        .output()
        .map_err(BinsError::Cargo)?;
    if !output.status.success() {
        return Err(BinsError::Build);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let programs = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Artifact>(line).ok()?.executable);
    let mut built = Built::default();
    for program in programs {
        match program.file_name().and_then(|name| name.to_str()) {
            Some(name) if name == PROXY.name => built.proxy = Some(program),
            Some(name) if name == DEMO.name => built.demo = Some(program),
            _ => {}
        }
    }
    Ok(built)
}

/// Whether a program can be started by this name.
pub(crate) fn is_there(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
