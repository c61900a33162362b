//! What to do next, from a first recording to a served flow.

use std::fmt::Write as _;

use stretto_flow::Decider;
use stretto_hosts::{Host, command_line};

use super::Plan;

/// Where a printed configuration goes.
pub(super) fn where_it_goes(host: Host) -> String {
    match host {
        Host::ClaudeCode => {
            "Run this command in your project. With `--scope user` after `add` it is for all your \
             projects, with `--scope project` for all who share this one."
        }
        Host::ClaudeDesktop => {
            "Put this into claude_desktop_config.json (macOS: ~/Library/Application Support/Claude, \
             Windows: %APPDATA%\\Claude), and start the app again."
        }
        Host::Cursor => {
            "Put this into ~/.cursor/mcp.json for all projects, or into .cursor/mcp.json in one."
        }
        Host::VsCode => {
            "Put this into .vscode/mcp.json in your workspace, or into your own file (command \
             `MCP: Open User Configuration`)."
        }
        Host::Plain => "Put this into the host's file, beside the servers that are in it.",
    }
    .to_owned()
}

impl Plan {
    /// The commands that replace the entry that is there now by one with that flow.
    fn again(&self, flow: &str, shadow: bool) -> String {
        let file = self.file.as_ref().map(|file| file.display().to_string());
        let in_file = file.iter().flat_map(|file| ["--file", file]);
        let host = ["--host", self.host.word()];
        let mut init = vec!["stretto", "init"];
        init.extend(host);
        if self.is_in_file {
            init.extend(["--wrap", &self.server]);
            init.extend(in_file.clone());
        }
        if !self.is_in_file || self.server != self.domain {
            init.extend(["--domain", &self.domain]);
        }
        init.extend(["--flow", flow]);
        init.extend(shadow.then_some("--shadow"));
        let mut lines = Vec::new();
        if self.is_in_file {
            let mut undo = vec!["stretto", "undo", &self.server];
            undo.extend(host);
            undo.extend(in_file);
            lines.push(command(&undo));
        } else {
            init.extend(self.words.iter().map(String::as_str));
            if self.host == Host::ClaudeCode {
                lines.push(command(&["claude", "mcp", "remove", &self.server]));
            }
        }
        lines.push(command(&init));
        let after = if self.is_in_file {
            ""
        } else {
            "\n     and use what that prints in place of what is there now."
        };
        format!("\n{}{after}", lines.join("\n"))
    }
}

/// A command on a line of its own, under a step.
fn command(words: &[&str]) -> String {
    format!("     {}", command_line(words))
}

/// The steps, numbered. `first` is what was done, or is to be done with what was printed.
pub(super) fn text(plan: &Plan, first: &str) -> String {
    let Plan { domain, record, .. } = plan;
    let learned = format!("~/.stretto/{domain}.flow.json");
    let promoted = format!("~/.stretto/{domain}-promoted.flow.json");
    let learn = command(&[
        "stretto",
        "learn",
        "--sessions",
        record,
        "--domain",
        domain,
        "--habit-only",
        "--out",
        &learned,
    ]);
    let mut steps = vec![first.to_owned()];
    let mut notes = Vec::new();
    if !plan.variables.is_empty() {
        let names = plan.variables.join(", ");
        // What it prints is a command, unless a file is written.
        notes.push(if plan.host == Host::ClaudeCode && !plan.is_in_file {
            format!(
                "The server needs {names}, each with a header's whole value: give it `-e NAME=VALUE` \
                 for each, before the `--`."
            )
        } else {
            format!("The entry's `env` needs {names}, each with a header's whole value.")
        });
    }
    match &plan.flow {
        None => {
            steps.push(format!(
                "Use the agent as ever. Its sessions are recorded in {record}."
            ));
            steps.push(format!(
                "After some twenty sessions, learn a flow from them:\n{learn}"
            ));
            let show = command(&["stretto", "flow-show", &learned]);
            steps.push(format!("Read what it would do:\n{show}"));
            let shadow = plan.again(&learned, true);
            steps.push(format!("Have it decide, and do nothing:{shadow}"));
            let shadows = format!("~/.stretto/shadow/{domain}");
            let promote = promote(&learned, &shadows, &promoted, false);
            steps.push(format!(
                "After more sessions, keep what the agent would have done itself:\n{promote}"
            ));
            let serve = plan.again(&promoted, false);
            steps.push(format!("Serve that:{serve}"));
        }
        Some(flow) => {
            let has_arbiter = flow.decider == Decider::Arbiter;
            if plan.shadow {
                steps.push(format!(
                    "Use the agent as ever. What the flow would look up is logged in {record}."
                ));
                let promote = promote(&flow.file, record, &promoted, has_arbiter);
                steps.push(format!(
                    "After some twenty sessions, keep what the agent did itself:\n{promote}"
                ));
                let serve = plan.again(&promoted, false);
                steps.push(format!("Serve that:{serve}"));
            } else {
                let kind = if flow.is_promoted {
                    "promoted flow"
                } else {
                    "flow"
                };
                steps.push(format!(
                    "Use the agent. The {kind}'s lookups come with its results, and sessions are \
                     recorded in {record}."
                ));
                let new = format!("~/.stretto/{domain}-new.flow.json");
                let mut learn = vec!["stretto", "learn", "--sessions", record, "--domain", domain];
                // What the arbiter was fitted to stays true when the habits change.
                if has_arbiter {
                    learn.extend(["--arbiter-from", &flow.file]);
                } else {
                    learn.push("--habit-only");
                }
                learn.extend(["--out", &new]);
                let learn = command(&learn);
                let diff = command(&["stretto", "flow-diff", &flow.file, &new]);
                steps.push(format!(
                    "Now and then learn again, and read what has changed:\n{learn}\n{diff}"
                ));
                if flow.is_promoted {
                    let shadow = plan.again(&new, true);
                    steps.push(format!(
                        "The new flow acts everywhere. Have it earn its places as this one did, in \
                         shadow first:{shadow}"
                    ));
                }
            }
            if has_arbiter {
                notes.push(
                    "The flow asks a System-One model: the server's `env` needs TYPESAFE_API_KEY, or \
                     TYPESAFE_API_KEY_FILE with the name of a file that holds it."
                        .to_owned(),
                );
            }
        }
    }
    let mut text = String::from("\nNext:\n");
    for (number, step) in steps.iter().enumerate() {
        writeln!(text, "  {}. {step}", number + 1).expect("memory takes every write");
    }
    for note in notes {
        writeln!(text, "\n{note}").expect("memory takes every write");
    }
    text
}

fn promote(flow: &str, sessions: &str, out: &str, asks: bool) -> String {
    let mut words = vec![
        "stretto",
        "promote",
        "--flow",
        flow,
        "--sessions",
        sessions,
        "--out",
        out,
    ];
    if asks {
        words.extend(["--oracle-cache", "~/.stretto/oracle-cache"]);
    }
    command(&words)
}
