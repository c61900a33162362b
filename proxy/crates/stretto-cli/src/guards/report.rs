//! The audits as Markdown.

use std::fmt::Write as _;

use super::audit::{Audit, Verdicts};
use crate::screen::safe;

/// A section per domain: the counts, a table of the rules, and the false alarms.
pub(super) fn markdown(audits: &[Audit]) -> String {
    let mut text = String::from("# Policy guards on recorded sessions\n");
    for audit in audits {
        section(&mut text, audit).expect("memory takes every write");
    }
    text
}

fn section(text: &mut String, audit: &Audit) -> std::fmt::Result {
    let [successful, failed] = audit.episodes;
    let [accepted, refused] = audit.writes;
    let [of_successful, of_failed] = audit.refused;
    writeln!(text, "\n## {}\n", title(&audit.domain))?;
    write!(
        text,
        "{successful} successful and {failed} failed sessions hold {accepted} checked writes that \
         the tools accepted and {refused} that they refused. An enforced rule would refuse an \
         accepted write in {of_successful} successful and {of_failed} failed sessions."
    )?;
    if audit.refused_by_proxy > 0 {
        write!(
            text,
            " The proxy itself refused {} more when the sessions ran; the table leaves them out.",
            audit.refused_by_proxy
        )?;
    }
    text.push_str(
        "\n\nAccepted writes by pass / fail / unknown, then writes that the tools refused, then \
         the sessions in which the rule fails an accepted write:\n\n\
         | Rule | Enforced | Successful | Failed | Refused by the tool | Sessions, successful / failed |\n\
         |---|---|---|---|---|---|\n",
    );
    for rule in &audit.rules {
        let [successful, failed] = rule.episodes_failed;
        writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {successful} / {failed} |",
            rule.rule,
            if rule.enforced { "yes" } else { "logged" },
            triple(rule.successful),
            triple(rule.failed),
            triple(rule.refused_by_tool),
        )?;
    }

    let mut alarms = String::new();
    for rule in &audit.rules {
        for (session, task, reason) in &rule.false_alarms {
            let line = format!("- `{}`, task {task} ({session}): {reason}", rule.rule);
            writeln!(alarms, "{}", safe(&line))?;
        }
    }
    if !alarms.is_empty() {
        write!(
            text,
            "\nFailures on accepted writes of successful sessions, at most five of a rule. Each is \
             a false alarm, or a breach of the policy that the outcome does not show:\n\n{alarms}"
        )?;
    }
    Ok(())
}

/// A domain's name with a capital letter.
fn title(domain: &str) -> String {
    let mut rest = domain.chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    first.chain(rest.by_ref()).collect()
}

fn triple([pass, fail, unknown]: Verdicts) -> String {
    format!("{pass} / {fail} / {unknown}")
}
