//! Cases written down: what a session has shown, the call that comes next, and what the rules
//! must say about it.
//!
//! A file of cases holds one as JSON on each line:
//!
//! ```json
//! {"name": "nothing is known yet", "domain": "retail",
//!  "events": [{"user": "Please cancel #W1."}],
//!  "call": {"name": "cancel_pending_order", "arguments": {"order_id": "#W1"}},
//!  "verdicts": {"retail.authenticated": "fail", "retail.own_order": "unknown"},
//!  "refused_by": ["retail.authenticated"]}
//! ```
//!
//! `verdicts` names every rule that applies to the call; `refused_by` the enforced rules that
//! refuse it, in order.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use stretto_trace::{Event, ToolCall};

use crate::{Facts, Guards, UnknownDomain};

/// What stands in a difference for a rule that does not apply.
const NO_VERDICT: &str = "no verdict";

/// A case: a session, a call and the verdicts on it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What the case shows, as a sentence.
    pub name: String,
    /// Whose rules check the call.
    pub domain: String,
    /// What happened before the call.
    pub events: Vec<CaseEvent>,
    /// The call.
    pub call: NextCall,
    /// The name of the verdict of each rule that applies.
    pub verdicts: BTreeMap<String, String>,
    /// The enforced rules that fail the call, in the domain's order.
    pub refused_by: Vec<String>,
}

/// The call that a case is about.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NextCall {
    /// The tool.
    pub name: String,
    /// What it is given.
    pub arguments: Value,
}

/// One thing that happened.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CaseEvent {
    /// The customer said something.
    User(String),
    /// The agent said something.
    Assistant(String),
    /// The agent called a tool.
    Call(ToolCall),
    /// A call returned.
    Result(CaseResult),
}

/// What a call returned.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseResult {
    /// The call's id.
    pub call_id: String,
    /// The call's tool.
    pub name: String,
    /// Whether it failed.
    pub error: bool,
    /// What it returned, as text.
    pub content: Option<String>,
    /// In place of `content`: which record it returned, such as `orders/#W1`.
    pub record: Option<String>,
}

/// A case that cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaseError {
    /// Its domain has no guards.
    #[error(transparent)]
    Domain(#[from] UnknownDomain),
    /// A result names a record that is not at hand.
    #[error("there is no record {record:?}")]
    NoRecord {
        /// The record's kind and id.
        record: String,
    },
    /// A result has both a content and a record, or neither.
    #[error("the result of call {call_id:?} needs either a content or a record")]
    NoContent {
        /// The call's id.
        call_id: String,
    },
}

/// Something that a case expects and the guards do not say, or the other way round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The rule, or `refused_by`.
    pub what: String,
    /// What the case says.
    pub expected: String,
    /// What the guards say.
    pub found: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            expected,
            found,
        } = self;
        write!(f, "{what}: expected {expected}, found {found}")
    }
}

impl CaseEvent {
    /// The event as one of an episode. `records` holds records by kind and then id; null when
    /// there are none.
    ///
    /// # Errors
    ///
    /// When a result's content is not there.
    pub fn to_event(&self, records: &Value) -> Result<Event, CaseError> {
        Ok(match self {
            Self::User(text) => Event::User { text: text.clone() },
            Self::Assistant(text) => Event::Assistant {
                text: Some(text.clone()),
                calls: Vec::new(),
                usage: None,
            },
            Self::Call(call) => Event::Assistant {
                text: None,
                calls: vec![call.clone()],
                usage: None,
            },
            Self::Result(result) => Event::ToolResult {
                call_id: result.call_id.clone(),
                name: result.name.clone(),
                error: result.error,
                content: result.content(records)?,
            },
        })
    }
}

impl CaseResult {
    fn content(&self, records: &Value) -> Result<String, CaseError> {
        match (&self.content, &self.record) {
            (Some(content), None) => Ok(content.clone()),
            (None, Some(name)) => {
                let place = name.split_once('/');
                let record = place.and_then(|(kind, id)| records.get(kind)?.get(id));
                let record = record.ok_or_else(|| CaseError::NoRecord {
                    record: name.clone(),
                })?;
                Ok(record.to_string())
            }
            _ => Err(CaseError::NoContent {
                call_id: self.call_id.clone(),
            }),
        }
    }
}

impl Case {
    /// Whether a result of the case names a record.
    pub fn needs_records(&self) -> bool {
        let mut events = self.events.iter();
        events.any(|event| matches!(event, CaseEvent::Result(result) if result.record.is_some()))
    }

    /// Checks the case's call and tells what differs, rules in order of their ids.
    ///
    /// # Errors
    ///
    /// When the case cannot be run.
    pub fn differences(&self, records: &Value) -> Result<Vec<Difference>, CaseError> {
        let guards = Guards::for_domain(&self.domain)?;
        let mut facts = Facts::default();
        for event in &self.events {
            facts.observe(&event.to_event(records)?);
        }
        let call = ToolCall {
            id: "the next call".to_owned(),
            name: self.call.name.clone(),
            arguments: self.call.arguments.clone(),
        };
        let checked = guards.check(&facts, &call);

        let mut rules: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
        for (rule, expected) in &self.verdicts {
            rules.insert(rule, (expected, NO_VERDICT));
        }
        for finding in &checked.findings {
            rules
                .entry(finding.rule.id)
                .or_insert((NO_VERDICT, NO_VERDICT))
                .1 = finding.verdict.name();
        }
        let mut differences = Vec::new();
        let mut compare = |what: &str, expected: &str, found: &str| {
            if expected != found {
                let (expected, found) = (expected.to_owned(), found.to_owned());
                differences.push(Difference {
                    what: what.to_owned(),
                    expected,
                    found,
                });
            }
        };
        for (rule, (expected, found)) in rules {
            compare(rule, expected, found);
        }
        let refused_by: Vec<&str> = checked.refused_by().collect();
        compare("refused_by", &named(&self.refused_by), &named(&refused_by));
        Ok(differences)
    }
}

fn named<S: AsRef<str>>(rules: &[S]) -> String {
    let rules: Vec<&str> = rules.iter().map(AsRef::as_ref).collect();
    if rules.is_empty() {
        "nobody".to_owned()
    } else {
        rules.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn case(changes: &Value) -> Case {
        let mut case = json!({
            "name": "an address of somebody unknown",
            "domain": "retail",
            "events": [{"user": "yes"}],
            "call": {"name": "modify_user_address", "arguments": {}},
            "verdicts": {"retail.authenticated": "fail", "retail.confirmed": "pass"},
            "refused_by": ["retail.authenticated"],
        });
        for (name, value) in changes.as_object().unwrap() {
            case[name] = value.clone();
        }
        serde_json::from_value(case).unwrap()
    }

    fn differences(case: &Case) -> Vec<String> {
        let differences = case.differences(&Value::Null).unwrap();
        differences.iter().map(Difference::to_string).collect()
    }

    #[test]
    fn a_case_that_holds_has_no_differences() {
        assert_eq!(differences(&case(&json!({}))), [""; 0]);
    }

    #[test]
    fn every_difference_is_told() {
        let case = case(&json!({
            "verdicts": {"retail.confirmed": "fail", "retail.once": "pass"},
            "refused_by": [],
        }));
        assert_eq!(
            differences(&case),
            [
                "retail.authenticated: expected no verdict, found fail",
                "retail.confirmed: expected fail, found pass",
                "retail.once: expected pass, found no verdict",
                "refused_by: expected nobody, found retail.authenticated",
            ]
        );
    }

    #[test]
    fn the_order_of_the_refusing_rules_counts() {
        let case = case(&json!({
            "call": {"name": "cancel_pending_order", "arguments": {"order_id": "#W1"}},
            "verdicts": {
                "retail.authenticated": "fail",
                "retail.own_order": "unknown",
                "retail.status_checked": "fail",
                "retail.pending": "unknown",
                "retail.cancel_reason": "fail",
                "retail.confirmed": "pass",
            },
            "refused_by": ["retail.cancel_reason", "retail.authenticated", "retail.status_checked"],
        }));
        assert_eq!(
            differences(&case),
            [
                "refused_by: expected retail.cancel_reason, retail.authenticated, \
              retail.status_checked, found retail.authenticated, retail.status_checked, \
              retail.cancel_reason"
            ]
        );
    }

    #[test]
    fn a_result_may_name_a_record() {
        let result = |members: &Value| {
            let mut result = json!({"call_id": "1", "name": "get_order_details", "error": false});
            for (name, value) in members.as_object().unwrap() {
                result[name] = value.clone();
            }
            case(&json!({
                "events": [{"user": "yes"}, {"result": result}],
                "call": {"name": "cancel_pending_order", "arguments": {"order_id": "#W1"}},
            }))
        };
        let records = json!({"orders": {"#W1": {"order_id": "#W1", "status": "pending"}}});
        let named = result(&json!({"record": "orders/#W1"}));
        assert!(named.needs_records());
        let found = named.differences(&records).unwrap();
        let pending = found
            .iter()
            .find(|difference| difference.what == "retail.pending")
            .unwrap();
        assert_eq!(pending.found, "pass");

        let told = result(&json!({"content": "{}"}));
        assert!(!told.needs_records());
        assert!(told.differences(&Value::Null).is_ok());

        let error = |case: &Case| case.differences(&records).unwrap_err().to_string();
        assert_eq!(
            error(&result(&json!({"record": "orders/#W2"}))),
            "there is no record \"orders/#W2\""
        );
        assert_eq!(
            error(&result(&json!({"record": "#W1"}))),
            "there is no record \"#W1\""
        );
        let needs = "the result of call \"1\" needs either a content or a record";
        assert_eq!(error(&result(&json!({}))), needs);
        assert_eq!(
            error(&result(&json!({"content": "", "record": "orders/#W1"}))),
            needs
        );
    }

    #[test]
    fn a_case_of_another_domain_cannot_be_run() {
        let case = case(&json!({"domain": "telecom"}));
        let error = case.differences(&Value::Null).unwrap_err();
        assert!(matches!(error, CaseError::Domain(_)), "{error}");
    }
}
