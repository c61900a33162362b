//! What all rules of a domain say about one call, and what follows from it.

use std::collections::BTreeMap;

use serde::Serialize;
use stretto_trace::ToolCall;

use crate::rule::{Rule, Verdict};

/// How every refusal begins. A recorded result that begins so was never run by the server.
pub const REFUSAL_START: &str = "Refused by the policy check, so ";

/// The whole text that an agent gets in place of a result when `tool` was refused for `reason`.
pub fn refusal_text(tool: &str, reason: &str) -> String {
    format!("{REFUSAL_START}{tool} was not run and nothing changed: {reason}.")
}

/// One rule's verdict on the call.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// What it says.
    pub verdict: Verdict,
}

impl Finding {
    /// Whether this alone refuses the call: an enforced rule fails it.
    pub fn refuses(&self) -> bool {
        self.rule.enforced && self.verdict.fails()
    }
}

/// The verdicts of every rule that applies to a call, in the domain's order.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// A verdict per rule that applies. Empty when none does.
    pub findings: Vec<Finding>,
}

impl Checked {
    /// Whether any rule applies to the call. One that no rule applies to was not checked.
    pub fn applies(&self) -> bool {
        !self.findings.is_empty()
    }

    /// The enforced rules that fail the call, in the domain's order. None: the call goes through.
    pub fn refused_by(&self) -> impl Iterator<Item = &'static str> {
        let refusing = self.findings.iter().filter(|finding| finding.refuses());
        refusing.map(|finding| finding.rule.id)
    }

    /// Why the call is refused, or nothing when it is not.
    ///
    /// Every enforced rule that fails, as `<why> (policy check <rule id>)`, joined with `; `,
    /// without a full stop at the end: what [`refusal_text`] takes.
    pub fn refusal(&self) -> Option<String> {
        let mut reasons = Vec::new();
        for Finding { rule, verdict } in self.findings.iter().filter(|finding| finding.refuses()) {
            let why = verdict.reason().unwrap_or_default();
            reasons.push(format!("{why} (policy check {})", rule.id));
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Whether the word list takes the customer's last message for a confirmation.
    ///
    /// Nothing when no confirmation is asked of this call. So this also tells which calls the
    /// confirmation judge is asked about: those with `Some`, whatever is in it, that no
    /// enforced rule refuses.
    pub fn word_list(&self) -> Option<bool> {
        let mut findings = self.findings.iter();
        let confirmed = findings.find(|finding| finding.rule.id.ends_with(".confirmed"))?;
        Some(!confirmed.verdict.fails())
    }

    /// The verdicts as a line of the explanation log. `id` is the id of the host's request.
    pub fn explain<'a, I: Serialize>(&'a self, id: I, call: &'a ToolCall) -> Explained<'a, I> {
        let mut verdicts = BTreeMap::new();
        for Finding { rule, verdict } in &self.findings {
            let explained = ExplainedVerdict {
                verdict: verdict.name(),
                reason: verdict.reason(),
                enforced: rule.enforced,
            };
            verdicts.insert(rule.id, explained);
        }
        Explained {
            id,
            tool: &call.name,
            arguments: &call.arguments,
            verdicts,
            refused_by: self.refused_by().collect(),
        }
    }
}

/// A line of the explanation log: a checked call with every verdict on it.
#[derive(Clone, Debug, Serialize)]
pub struct Explained<'a, I> {
    /// The id of the host's request; for a call of a commit, the commit's.
    pub id: I,
    /// The tool.
    pub tool: &'a str,
    /// What it was given.
    pub arguments: &'a serde_json::Value,
    /// The verdict of each rule that applies, by the rule's id.
    pub verdicts: BTreeMap<&'static str, ExplainedVerdict<'a>>,
    /// The enforced rules that refuse the call, in the domain's order.
    pub refused_by: Vec<&'static str>,
}

/// A verdict in an explanation log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ExplainedVerdict<'a> {
    /// `pass`, `fail` or `unknown`.
    pub verdict: &'static str,
    /// Why, unless it is a pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    /// Whether a failure refuses the call.
    pub enforced: bool,
}
