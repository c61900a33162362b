//! A procedure on a ticket.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::action::{Action, ActionError};
use crate::file::{Check, Procedure};
use crate::state::State;
use crate::symbol::Known;

/// A run, one call at a time. The same procedure, ticket and answers make the same calls.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    procedure: &'a Procedure,
    state: State,
    made: Vec<Made>,
    /// All calls, as text, and those since the last write.
    ever: HashSet<String>,
    since_write: HashSet<String>,
    is_over: bool,
}

/// A call to make.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The tool.
    pub tool: String,
    /// What it is called with: values, no symbols.
    pub arguments: Map<String, Value>,
    /// The action that the call came of.
    action: String,
}

/// A call that was made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Made {
    /// The tool.
    pub tool: String,
    /// What it was called with.
    pub arguments: Map<String, Value>,
    /// Whether it failed.
    pub failed: bool,
}

/// How a run that is over is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The last call handed the customer to a person.
    Transferred,
    /// The ticket asks for this, which a read can show.
    Check(&'a Check),
    /// The ticket asks for nothing that can be checked.
    Unchecked,
}

impl<'a> Run<'a> {
    /// A run that has made no call yet.
    pub fn new(procedure: &'a Procedure, ticket: &str) -> Self {
        Self {
            procedure,
            state: State::new(ticket, &procedure.vocab, procedure.symbolic),
            made: Vec::new(),
            ever: HashSet::new(),
            since_write: HashSet::new(),
            is_over: false,
        }
    }

    /// The call that comes next; nothing when the run is over.
    ///
    /// # Errors
    ///
    /// An action that comes before it cannot be read.
    // Not an iterator's: a call has to come back before there is another.
    #[expect(
        clippy::should_implement_trait,
        reason = "what is next depends on what came back"
    )]
    pub fn next(&mut self) -> Result<Option<Call>, ActionError> {
        let Procedure {
            trees,
            fallback,
            max_calls,
            ..
        } = self.procedure;
        if self.is_over || self.made.len() as u64 >= *max_calls {
            return Ok(None);
        }
        let tree = trees.get(&self.state.site).unwrap_or(fallback);
        for (action, _) in tree.leaf(|feature| self.state.has(feature)) {
            let Action::Call {
                tool,
                arguments,
                is_symbolic,
            } = Action::read(action, self.procedure)?
            else {
                break;
            };
            let bound = if is_symbolic {
                self.bind(&tool, arguments)
            } else {
                Some(arguments)
            };
            let Some(arguments) = bound else { continue };
            let call = Call {
                tool,
                arguments,
                action: action.clone(),
            };
            if !self.is_repeat(&call) {
                return Ok(Some(call));
            }
        }
        self.is_over = true;
        Ok(None)
    }

    /// The arguments with values in place of symbols, if each stands for something.
    fn bind(&self, tool: &str, mut arguments: Map<String, Value>) -> Option<Map<String, Value>> {
        for (name, value) in &mut arguments {
            let Some(symbol) = value.as_str().and_then(|text| text.strip_prefix('@')) else {
                continue;
            };
            let known = Known {
                ticket: &self.state.ticket,
                identifiers: &self.state.identifiers,
                results: &self.state.results,
                passed: self.state.passed(tool, name),
            };
            let bound = known.value_of(symbol)?;
            *value = Value::String(bound);
        }
        Some(arguments)
    }

    fn is_read(&self, call: &Call) -> bool {
        self.procedure.reads.contains(&call.tool)
    }

    fn is_repeat(&self, call: &Call) -> bool {
        let before = if self.is_read(call) {
            &self.since_write
        } else {
            &self.ever
        };
        before.contains(&call.text())
    }

    /// Takes in what came back of a call: whether it failed, and its text.
    pub fn returned(&mut self, call: Call, failed: bool, text: &str) {
        let is_read = self.is_read(&call);
        self.ever.insert(call.text());
        if is_read {
            self.since_write.insert(call.text());
        } else {
            self.since_write.clear();
        }
        let Call {
            tool,
            arguments,
            action,
        } = call;
        let write = (!is_read).then_some(action.as_str());
        self.state.take(&tool, &arguments, write, (failed, text));
        self.is_over = tool == self.procedure.handoff;
        self.made.push(Made {
            tool,
            arguments,
            failed,
        });
    }

    /// The calls that were made, in order.
    pub fn calls(&self) -> &[Made] {
        &self.made
    }

    /// How the run is judged, once it is over.
    pub fn outcome(&self) -> Outcome<'a> {
        let last = self.made.last();
        if last.is_some_and(|last| last.tool == self.procedure.handoff) {
            return Outcome::Transferred;
        }
        let ticket = self.state.ticket.to_lowercase();
        let mut checks = self.procedure.checks.iter();
        let asked = checks.find(|check| ticket.contains(&check.phrase));
        asked.map_or(Outcome::Unchecked, Outcome::Check)
    }
}

impl Call {
    /// The call as text. Members stand by name, so their order makes no difference.
    fn text(&self) -> String {
        let arguments = Value::Object(self.arguments.clone());
        format!("{}{arguments}", self.tool)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn procedure(change: &Value) -> Procedure {
        let mut file = json!({
            "stretto_procedure": 1, "domain": "d", "symbolic": true, "max_calls": 9, "stop": "stop",
            "handoff": "person", "handoff_arguments": {"why": "@ticket"}, "reads": ["look"], "vocab": [],
            "trees": {}, "fallback": {"calls": []},
            "checks": [
                {"phrase": "signal", "probe": "bar", "contains": ["good"], "lacks": ["no "]},
                {"phrase": "bill", "probe": "bill", "contains": [], "lacks": []},
            ],
        });
        for (name, value) in change.as_object().unwrap() {
            file[name] = value.clone();
        }
        file.to_string().parse().unwrap()
    }

    /// The calls of a run in which every call returns what `answer` says.
    fn calls(
        change: &Value,
        ticket: &str,
        answer: impl Fn(&Call) -> (bool, &'static str),
    ) -> Vec<String> {
        let procedure = procedure(change);
        let mut run = Run::new(&procedure, ticket);
        let mut made = Vec::new();
        while let Some(call) = run.next().unwrap() {
            let (failed, text) = answer(&call);
            made.push(call.text());
            run.returned(call, failed, text);
        }
        assert_eq!(run.calls().len(), made.len());
        made
    }

    fn leaf(actions: &[&str]) -> Value {
        json!({"calls": actions.iter().map(|action| json!([action, 1])).collect::<Vec<_>>()})
    }

    const fn well(_: &Call) -> (bool, &'static str) {
        (false, "ok")
    }

    #[test]
    fn a_read_is_repeated_only_after_a_write() {
        let flow = json!({"fallback": leaf(&["look{\"a\": 1, \"b\": 2}", "look{\"b\": 2, \"a\": 1}", "write", "stop"])});
        assert_eq!(
            calls(&flow, "", well),
            ["look{\"a\":1,\"b\":2}", "write{}", "look{\"a\":1,\"b\":2}"]
        );
        // A write that failed starts a new count, too.
        let failing = |call: &Call| (call.tool == "write", "no");
        assert_eq!(calls(&flow, "", failing).len(), 3);
    }

    #[test]
    fn a_write_is_never_repeated() {
        assert_eq!(
            calls(&json!({"fallback": leaf(&["write", "write{}"])}), "", well),
            ["write{}"]
        );
    }

    #[test]
    fn a_run_ends_at_the_stop_an_empty_leaf_and_its_most_calls() {
        let many = leaf(&["a", "b", "c"]);
        assert_eq!(
            calls(&json!({"fallback": many, "max_calls": 2}), "", well).len(),
            2
        );
        assert!(calls(&json!({"fallback": many, "max_calls": 0}), "", well).is_empty());
        assert!(calls(&json!({"fallback": leaf(&[])}), "", well).is_empty());
        let flow = json!({"trees": {"start": leaf(&["stop", "a"])}, "fallback": leaf(&["b"])});
        assert!(calls(&flow, "", well).is_empty());
        let flow = json!({"trees": {"start": leaf(&["a"])}, "fallback": leaf(&["b"])});
        assert_eq!(calls(&flow, "", well), ["a{}", "b{}"]);
    }

    #[test]
    fn failures_have_sites_of_their_own() {
        let flow = json!({"trees": {"start": leaf(&["a"]), "a!": leaf(&["b"]), "a": leaf(&["c"])}});
        assert_eq!(calls(&flow, "", |_| (true, "")), ["a{}", "b{}"]);
    }

    #[test]
    fn what_does_not_bind_is_passed_over_and_handing_over_is_never_bound() {
        let flow = json!({"fallback": leaf(&["a{\"id\": \"@ticket\\\\d{4}\"}", "person"])});
        assert_eq!(
            calls(&flow, "no number", well),
            ["person{\"why\":\"@ticket\"}"]
        );
        assert_eq!(calls(&flow, "line 0107", well)[0], "a{\"id\":\"0107\"}");
        let inside = json!({"fallback": leaf(&["a{\"list\": [\"@x\"]}"])});
        assert_eq!(calls(&inside, "", well), ["a{\"list\":[\"@x\"]}"]);
        let plain = json!({"symbolic": false, "fallback": leaf(&["a{\"id\": \"@x\"}"])});
        assert_eq!(calls(&plain, "", well), ["a{\"id\":\"@x\"}"]);
    }

    #[test]
    fn an_action_is_read_when_it_is_tried() {
        let broken = procedure(&json!({"fallback": leaf(&["stop", "a{"])}));
        assert_eq!(Run::new(&broken, "").next().unwrap(), None);
        let broken = procedure(&json!({"fallback": leaf(&["a{\"x\": }"])}));
        let error = Run::new(&broken, "").next().unwrap_err();
        assert_eq!(error.action, "a{\"x\": }");
    }

    #[test]
    fn handing_over_ends_the_run_and_is_its_outcome_even_when_it_fails() {
        let procedure = procedure(&json!({"fallback": leaf(&["person", "a"])}));
        let mut run = Run::new(&procedure, "no signal");
        let call = run.next().unwrap().unwrap();
        run.returned(call, true, "");
        assert_eq!(run.next().unwrap(), None);
        assert_eq!(run.outcome(), Outcome::Transferred);
    }

    #[test]
    fn the_first_check_that_the_ticket_asks_for_counts() {
        let procedure = procedure(&json!({}));
        let outcome = |ticket: &str| match Run::new(&procedure, ticket).outcome() {
            Outcome::Check(check) => Some(check.probe.clone()),
            Outcome::Transferred | Outcome::Unchecked => None,
        };
        assert_eq!(outcome("A BILL, and no SIGNAL").as_deref(), Some("bar"));
        assert_eq!(outcome("my bill").as_deref(), Some("bill"));
        assert_eq!(outcome("hello"), None);
    }
}
