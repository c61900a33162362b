//! The command line.

use std::{ffi::OsString, path::PathBuf};

use clap::{CommandFactory, Parser, ValueEnum, error::ErrorKind};
use stretto_trace::home::{expand, home};

/// Sits between an MCP host and an MCP server, passes every line on byte for byte, records it, and acts on it when asked.
///
/// The host starts the proxy in place of the server; the server's own command comes after `--`, or its URL after --upstream.
#[derive(Debug, Parser)]
#[command(
    name = "stretto-proxy",
    version,
    override_usage = "stretto-proxy [OPTIONS] -- SERVER_COMMAND...\n       stretto-proxy [OPTIONS] --upstream URL [--upstream-header NAME=VAR]...",
    after_help = AFTER_HELP,
    disable_help_subcommand = true
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Cli {
    /// Write a log of the session to DIR/<session>.jsonl; DIR is created if need be
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,

    /// Whose tools these are, such as `orders`; goes into the log's header
    #[arg(long, value_name = "NAME")]
    pub(crate) domain: Option<String>,

    /// The model that drives the agent, which cannot be seen on the wire; goes into the log's header
    #[arg(long, value_name = "MODEL")]
    pub(crate) agent_model: Option<String>,

    /// Delete logs and cached answers older than DAYS days, in --record and --oracle-cache, before the session starts
    #[arg(long, value_name = "DAYS")]
    pub(crate) retain_days: Option<u64>,

    /// Who answers questions to the System-One model: the service, its cached answers alone, or a stand-in
    #[arg(
        long,
        value_name = "ORACLE",
        default_value = "jev",
        help_heading = "Questions"
    )]
    pub(crate) oracle: OracleKind,

    /// Where answers of the System-One model are cached
    #[arg(long, value_name = "DIR", default_value = "~/.stretto/oracle-cache")]
    pub(crate) oracle_cache: PathBuf,

    /// Run this flow's lookups behind the agent's calls
    #[arg(long, value_name = "FILE", help_heading = "Flows")]
    pub(crate) flow: Option<PathBuf>,

    /// The probability that a lookup must reach, with its arguments
    #[arg(
        long,
        value_name = "P",
        default_value_t = 0.3,
        help_heading = "Flows",
        allow_negative_numbers = true
    )]
    pub(crate) flow_threshold: f64,

    /// Where the probabilities come from; by default the flow's arbiter, else reach, else habit
    #[arg(long, value_name = "DECIDER", help_heading = "Flows")]
    pub(crate) flow_decider: Option<FlowDecider>,

    /// Lookups behind one result, at most
    #[arg(long, value_name = "N", default_value_t = 8, help_heading = "Flows")]
    pub(crate) flow_per_call: u32,

    /// Lookups in the session, at most
    #[arg(long, value_name = "N", default_value_t = 40, help_heading = "Flows")]
    pub(crate) flow_per_session: u64,

    /// Questions for the flow in the session, at most
    #[arg(long, value_name = "N", default_value_t = 300, help_heading = "Flows")]
    pub(crate) flow_questions: u64,

    /// Where each decision is logged; by default <session>.flow.jsonl beside the session log
    #[arg(long, value_name = "FILE", help_heading = "Flows")]
    pub(crate) flow_log: Option<PathBuf>,

    /// The only tools that the flow may call on its own; by default all that it reads
    #[arg(
        long,
        value_name = "TOOLS",
        value_delimiter = ',',
        requires = "flow",
        help_heading = "Flows"
    )]
    pub(crate) flow_tools: Option<Vec<String>>,

    /// Decide and log, but look nothing up
    #[arg(long, requires = "flow", help_heading = "Flows")]
    pub(crate) flow_shadow: bool,

    /// Take another lookup than the rule's with this probability, and log each decision's policy
    #[arg(
        long,
        value_name = "EPSILON",
        requires = "flow",
        help_heading = "Flows",
        allow_negative_numbers = true
    )]
    pub(crate) flow_explore: Option<f64>,

    /// Seeds the draws of --flow-explore
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        requires = "flow_explore",
        help_heading = "Flows"
    )]
    pub(crate) flow_explore_seed: u64,

    /// The task, which picks the flow's fold; by default the session
    #[arg(long, value_name = "ID", help_heading = "Flows")]
    pub(crate) task_id: Option<String>,

    /// Check the agent's calls against the policy of --domain (retail or airline) before the server sees them
    #[arg(long, help_heading = "Writes")]
    pub(crate) guards: bool,

    /// Ask the System-One model whether the customer has agreed to each write
    #[arg(
        long,
        value_name = "MODE",
        requires = "guards",
        requires = "context",
        help_heading = "Writes"
    )]
    pub(crate) confirm_judge: Option<JudgeMode>,

    /// Also ask whether the agent had proposed the change
    #[arg(
        long,
        value_name = "QUESTION",
        requires = "confirm_judge",
        help_heading = "Writes"
    )]
    pub(crate) confirm_second: Option<SecondQuestion>,

    /// Only log the second answer
    #[arg(long, requires = "confirm_second", help_heading = "Writes")]
    pub(crate) confirm_second_shadow: bool,

    /// The probability of a yes below which a write fails
    #[arg(
        long,
        value_name = "P",
        default_value_t = 0.5,
        requires = "confirm_judge",
        help_heading = "Writes",
        allow_negative_numbers = true
    )]
    pub(crate) confirm_threshold: f64,

    /// Questions for the judge in the session, at most
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        requires = "confirm_judge",
        help_heading = "Writes"
    )]
    pub(crate) confirm_questions: u64,

    /// Where each judgment is logged; by default <session>.confirm.jsonl beside the session log
    #[arg(
        long,
        value_name = "FILE",
        requires = "confirm_judge",
        help_heading = "Writes"
    )]
    pub(crate) confirm_log: Option<PathBuf>,

    /// Append a line for each checked call to FILE: what each rule said, and why
    #[arg(
        long,
        value_name = "FILE",
        requires = "guards",
        help_heading = "Writes"
    )]
    pub(crate) explain: Option<PathBuf>,

    /// Add the tool `stretto_commit`, which makes several calls in order and stops at the first that fails
    #[arg(long, help_heading = "Writes")]
    pub(crate) commit: bool,

    /// Read the conversation from FILE, to which the host appends {"role": "user"|"assistant", "content": TEXT} lines
    #[arg(long, value_name = "FILE", help_heading = "Writes")]
    pub(crate) context: Option<PathBuf>,

    /// The server's MCP endpoint, for a server that is reached over Streamable HTTP
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,

    /// Add a header to all requests: its value is what the environment variable VAR holds; may be repeated
    #[arg(long, value_name = "NAME=VAR", requires = "upstream")]
    pub(crate) upstream_header: Vec<String>,

    /// The server to start, with its arguments
    #[arg(last = true, value_name = "SERVER_COMMAND")]
    pub(crate) server_command: Vec<OsString>,
}

/// Who answers questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OracleKind {
    /// The service; needs `TYPESAFE_API_KEY`, or `TYPESAFE_API_KEY_FILE` naming a file that holds it.
    Jev,
    /// The cache alone.
    Replay,
    /// The same answer to everything.
    Mock,
}

/// What the confirmation judge does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum JudgeMode {
    /// Records each judgment.
    Log,
    /// Also refuses a write that fails.
    Enforce,
}

/// The judge's second question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SecondQuestion {
    /// Had the agent proposed this change?
    Proposed,
    /// An older wording, which is too literal.
    Described,
}

/// Where a flow's probabilities come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlowDecider {
    /// The habit, the model's answers and the predicates, combined.
    Arbiter,
    /// How often the agent made the lookup next, in training.
    Habit,
    /// How often it made it before its next write.
    Reach,
}

const AFTER_HELP: &str = "\
A leading ~ in DIR is your home directory, because hosts start servers without a shell.

Exit codes:
  the server's own, or 128 + n when signal n killed it
  0    with --upstream, once the session has ended
  125  the proxy itself could not do its work; stderr says why, and no log is left behind
  2    the command line is wrong
After SIGTERM, SIGINT or SIGHUP the proxy ends its server and dies of that signal.

Log format (JSON lines): a header, then one entry for each line that crossed:
  {\"stretto_mcp_log\":2,\"session\":…,\"started_unix_ms\":…,\"server_command\":[…],\"domain\":…,\"agent_model\":…}
  {\"t_ms\":12,\"from\":\"client\",\"message\":<the JSON as it was sent>}
  {\"t_ms\":15,\"from\":\"server\",\"raw\":\"text that is not one JSON value\"}
`stretto show LOG` shows it as a person reads it.

STRETTO_LOG=debug has the proxy say more on stderr.";

impl Cli {
    /// Reads a whole command line, the program's own name included.
    ///
    /// # Errors
    /// The command line is wrong, or asks for help or the version.
    pub(crate) fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut cli = Self::try_parse_from(words)?;
        if let Some((kind, message)) = match (&cli.upstream, cli.server_command.is_empty()) {
            (None, true) => Some((
                ErrorKind::MissingRequiredArgument,
                "there is no server: put its command after `--`, or its URL after --upstream",
            )),
            (Some(_), false) => Some((
                ErrorKind::ArgumentConflict,
                "there are two servers: a command after `--`, and --upstream",
            )),
            _ => None,
        } {
            return Err(Self::command().error(kind, message));
        }
        let home = home();
        let given = [
            &mut cli.record,
            &mut cli.flow,
            &mut cli.flow_log,
            &mut cli.confirm_log,
            &mut cli.explain,
            &mut cli.context,
        ];
        for path in given.into_iter().flatten().chain([&mut cli.oracle_cache]) {
            *path = expand(path, home.as_deref());
        }
        Ok(cli)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_the_command_line_holds_together() {
        Cli::command().debug_assert();
    }
}
