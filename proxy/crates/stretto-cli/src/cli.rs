//! The command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::screen::Screen;
use crate::{
    answers, arbiter, audit, compile, completions, confirm, doctor, evaluate, flows, guards, init,
    learn, promote, redact, show, undo,
};

/// Reads, checks and learns from MCP sessions that stretto-proxy recorded.
#[derive(Debug, Parser)]
#[command(name = "stretto", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// When to use colour; `auto` does on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  it could not be done, or a check did not pass; stderr has one line about it
  2  the command line is wrong";

/// One command of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show a recorded session: a summary, then turn by turn
    Show(show::Args),
    /// Copy recorded sessions with hashes for what is rare in them, to share
    Redact(redact::Args),
    /// Check recorded calls against the policy guards
    Guards(guards::Args),
    /// Judge whether customers agreed to the recorded writes
    Confirm(confirm::Args),
    /// Ask a System-One model one request
    Ask(answers::AskArgs),
    /// Write cached answers as lines
    ExportAnswers(answers::ExportArgs),
    /// Put exported answers into a cache
    ImportAnswers(answers::ImportArgs),
    /// Write a flow's arbiter to a file of its own
    ExportArbiter(arbiter::ExportArgs),
    /// Learn a flow from recorded sessions
    Learn(learn::Args),
    /// Learn a flow from the results of τ²-bench
    Compile(compile::Args),
    /// Let a flow act only where its lookups were the agent's own
    Promote(promote::Args),
    /// Hold a flow's probabilities against what agents did
    Audit(audit::Args),
    /// Tell from logged decisions what another threshold or decider would have brought
    Evaluate(evaluate::Args),
    /// Show what a flow holds
    FlowShow(flows::ShowArgs),
    /// Show what changed from one flow to another
    FlowDiff(flows::DiffArgs),
    /// Put the proxy into a host's configuration, and say what to do next
    Init(init::Args),
    /// Take the proxy out of a host's configuration
    Undo(undo::Args),
    /// Check the installation, and say what is wrong and what to do
    Doctor(doctor::Args),
    /// Write what a shell needs to complete the commands
    Completions(completions::Args),
}

impl Command {
    /// Runs the command. What it shows goes to `screen`.
    ///
    /// # Errors
    ///
    /// Whatever kept the command from doing its work, as one chain of causes.
    pub fn run(&self, screen: &mut Screen) -> anyhow::Result<ExitCode> {
        match self {
            Self::Show(args) => show::run(args, screen),
            Self::Redact(args) => redact::run(args, screen),
            Self::Guards(args) => guards::run(args, screen),
            Self::Confirm(args) => confirm::run(args, screen),
            Self::Ask(args) => answers::run_ask(args, screen),
            Self::ExportAnswers(args) => answers::run_export(args, screen),
            Self::ImportAnswers(args) => answers::run_import(args),
            Self::ExportArbiter(args) => arbiter::run_export(args),
            Self::Learn(args) => learn::run(args, screen),
            Self::Compile(args) => compile::run(args),
            Self::Promote(args) => promote::run(args, screen),
            Self::Audit(args) => audit::run(args, screen),
            Self::Evaluate(args) => evaluate::run(args, screen),
            Self::FlowShow(args) => flows::run_show(args, screen),
            Self::FlowDiff(args) => flows::run_diff(args, screen),
            Self::Init(args) => init::run(args, screen),
            Self::Undo(args) => undo::run(args, screen),
            Self::Doctor(args) => doctor::run(args, screen),
            Self::Completions(args) => completions::run(args, screen),
        }
    }
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal that takes it.
    Auto,
    /// Also into files and pipes.
    Always,
    /// Nowhere.
    Never,
}

impl Color {
    /// Makes this the whole program's choice.
    pub(crate) fn write_global(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::AlwaysAnsi,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}
