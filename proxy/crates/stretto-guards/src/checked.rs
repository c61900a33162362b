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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::Session;

    fn delivered_order() -> Session {
        let order = json!({"order_id": "#W5605613", "user_id": "emma", "status": "delivered"});
        Session::of("retail")
            .text("find_user_id_by_email", json!({}), "emma")
            .order(&order)
            .user("yes")
    }

    fn cancel() -> serde_json::Value {
        json!({"order_id": "#W5605613", "reason": "found it cheaper"})
    }

    #[test]
    fn a_refusal_names_every_enforced_rule_that_fails_in_order() {
        let checked = delivered_order().check("cancel_pending_order", cancel());
        assert!(checked.applies());
        let refused_by: Vec<_> = checked.refused_by().collect();
        assert_eq!(refused_by, ["retail.pending", "retail.cancel_reason"]);
        let text = refusal_text("cancel_pending_order", &checked.refusal().unwrap());
        assert_eq!(
            text,
            "Refused by the policy check, so cancel_pending_order was not run and nothing changed: \
             order #W5605613 is delivered, and only a pending order qualifies (policy check \
             retail.pending); 'found it cheaper' is not an accepted reason (policy check \
             retail.cancel_reason)."
        );
        assert!(text.starts_with(REFUSAL_START));
    }

    #[test]
    fn what_is_only_logged_or_not_known_is_not_in_a_refusal() {
        let session = Session::of("retail").text("find_user_id_by_email", json!({}), "emma");
        let checked = session.check(
            "cancel_pending_order",
            json!({"reason": "no longer needed"}),
        );
        assert!(
            checked
                .findings
                .iter()
                .any(|finding| finding.verdict.fails())
        );
        assert_eq!(checked.refused_by().count(), 0);
        assert_eq!(checked.refusal(), None);
    }

    #[test]
    fn a_verdict_is_written_with_its_reason() {
        let checked = delivered_order().check("cancel_pending_order", json!({}));
        let verdict = |rule: &str| {
            let mut findings = checked.findings.iter();
            let finding = findings.find(|finding| finding.rule.id == rule).unwrap();
            serde_json::to_string(&finding.verdict).unwrap()
        };
        assert_eq!(verdict("retail.authenticated"), r#"{"verdict":"pass"}"#);
        assert_eq!(
            verdict("retail.cancel_reason"),
            r#"{"verdict":"fail","reason":"a reason is required"}"#
        );
        assert_eq!(
            verdict("retail.own_order"),
            r#"{"verdict":"unknown","reason":"the call names no order"}"#
        );
    }

    #[test]
    fn an_explanation_holds_the_call_and_every_verdict() {
        let session = delivered_order();
        let call = ToolCall {
            id: "7".to_owned(),
            name: "return_delivered_order_items".to_owned(),
            arguments: json!({"order_id": "#W5605613", "item_ids": ["9"]}),
        };
        let checked = session.check(&call.name, call.arguments.clone());
        let explained = serde_json::to_value(checked.explain(7, &call)).unwrap();
        let pass = json!({"verdict": "pass", "enforced": true});
        let unknown =
            |reason: &str| json!({"verdict": "unknown", "reason": reason, "enforced": true});
        assert_eq!(
            explained,
            json!({
                "id": 7,
                "tool": "return_delivered_order_items",
                "arguments": {"order_id": "#W5605613", "item_ids": ["9"]},
                "verdicts": {
                    "retail.authenticated": pass,
                    "retail.own_order": pass,
                    "retail.status_checked": pass,
                    "retail.delivered": pass,
                    "retail.items_in_order": {
                        "verdict": "fail",
                        "reason": "order #W5605613 holds no item 9",
                        "enforced": true,
                    },
                    "retail.own_payment": unknown("the call names no payment method"),
                    "retail.refund_method": unknown("the call names no payment method"),
                    "retail.confirmed": {"verdict": "pass", "enforced": false},
                },
                "refused_by": ["retail.items_in_order"],
            })
        );
    }

    #[test]
    fn a_call_that_no_rule_applies_to_is_not_checked() {
        let checked = delivered_order().check("get_order_details", cancel());
        assert!(!checked.applies());
        assert_eq!(checked.refusal(), None);
        assert_eq!(checked.word_list(), None);
    }
}
