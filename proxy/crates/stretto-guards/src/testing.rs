//! Sessions for the tests of the rules, in few words.

use serde_json::{Value, json};
use stretto_trace::ToolCall;

use crate::{Checked, Facts, Guards, Verdict};

/// A session of a domain, told step by step.
#[derive(Clone)]
pub(crate) struct Session {
    guards: Guards,
    pub(crate) facts: Facts,
    calls: usize,
}

impl Session {
    pub(crate) fn of(domain: &str) -> Self {
        let guards = Guards::for_domain(domain).unwrap();
        Self {
            guards,
            facts: Facts::default(),
            calls: 0,
        }
    }

    /// A call that returned a text.
    pub(crate) fn text(mut self, tool: &str, arguments: Value, content: &str) -> Self {
        let call = self.call(tool, arguments);
        self.facts.called(&call);
        self.facts.returned(&call.id, tool, false, content);
        self
    }

    /// A call that returned a record.
    pub(crate) fn record(self, tool: &str, arguments: Value, record: &Value) -> Self {
        self.text(tool, arguments, &record.to_string())
    }

    /// A call that failed with a text.
    pub(crate) fn error(mut self, tool: &str, arguments: Value, content: &str) -> Self {
        let call = self.call(tool, arguments);
        self.facts.called(&call);
        self.facts.returned(&call.id, tool, true, content);
        self
    }

    pub(crate) fn order(self, order: &Value) -> Self {
        self.record("get_order_details", json!({}), order)
    }

    pub(crate) fn product(self, product: &Value) -> Self {
        self.record("get_product_details", json!({}), product)
    }

    pub(crate) fn profile(self, profile: &Value) -> Self {
        self.record("get_user_details", json!({}), profile)
    }

    pub(crate) fn reservation(self, reservation: &Value) -> Self {
        self.record("get_reservation_details", json!({}), reservation)
    }

    pub(crate) fn flight(self, number: &str, date: &str, status: &str) -> Self {
        let arguments = json!({"flight_number": number, "date": date});
        self.text("get_flight_status", arguments, status)
    }

    pub(crate) fn user(mut self, text: &str) -> Self {
        self.facts.user_said(text);
        self
    }

    pub(crate) fn agent(mut self, text: &str) -> Self {
        self.facts.agent_said(text);
        self
    }

    pub(crate) fn check(&self, tool: &str, arguments: Value) -> Checked {
        let call = ToolCall {
            id: "next".to_owned(),
            name: tool.to_owned(),
            arguments,
        };
        self.guards.check(&self.facts, &call)
    }

    /// What one rule says about a call that it applies to.
    pub(crate) fn verdict(&self, rule: &str, tool: &str, arguments: Value) -> Verdict {
        let checked = self.check(tool, arguments);
        let mut findings = checked.findings.into_iter();
        findings
            .find(|finding| finding.rule.id == rule)
            .unwrap()
            .verdict
    }

    fn call(&mut self, tool: &str, arguments: Value) -> ToolCall {
        self.calls += 1;
        ToolCall {
            id: self.calls.to_string(),
            name: tool.to_owned(),
            arguments,
        }
    }
}

pub(crate) fn fail(reason: &str) -> Verdict {
    Verdict::Fail {
        reason: reason.to_owned(),
    }
}

pub(crate) fn unknown(reason: &str) -> Verdict {
    Verdict::Unknown {
        reason: reason.to_owned(),
    }
}

/// The tools of a domain that each rule applies to, as `rule: tools`.
pub(crate) fn table(domain: &str) -> Vec<(String, bool, Vec<&'static str>)> {
    let rules = Guards::for_domain(domain).unwrap().rules().iter();
    rules
        .map(|rule| (rule.id.to_owned(), rule.enforced, rule.tools.to_vec()))
        .collect()
}
