//! The lines of the flow log.

use serde_json::{Value, json};

use crate::decide::{Decision, Verdict};
use crate::run::RunRecord;

/// Where and how a decision was taken, for its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken<'a> {
    /// The id of the agent's call that the run follows, as it was sent.
    pub after: &'a Value,
    /// The decision's address in the run, such as `decide#0`.
    pub address: &'a str,
    /// How long the decision took, in whole milliseconds.
    pub ms: u64,
    /// Whether lookups are only logged.
    pub shadow: bool,
    /// Why the lookup was proposed and not made, if so.
    pub withheld: Option<&'a str>,
}

impl Decision {
    /// The decision as a line of the flow log.
    pub fn line(&self, taken: &Taken<'_>) -> Value {
        let mut line = json!({
            "site": self.site,
            "probs": self.probs,
            "prob": self.prob,
            "binding": self.binding,
            "oracle": self.heard.oracle,
            "predicates": self.heard.predicates,
            "key": self.heard.key,
            "after": taken.after,
            "address": taken.address,
            "ms": taken.ms,
        });
        match &self.verdict {
            Verdict::LookUp { tool, arguments } => {
                line["action"] = "lookup".into();
                line["tool"] = tool.as_str().into();
                line["arguments"] = Value::Object(arguments.clone());
            }
            Verdict::HandBack { reason } => {
                line["action"] = "hand_back".into();
                line["reason"] = reason.as_str().into();
            }
        }
        if let Some(policy) = &self.policy {
            line["policy"] = json!(policy);
        }
        if taken.shadow {
            line["shadow"] = true.into();
        }
        if let Some(reason) = taken.withheld {
            line["withheld"] = reason.into();
        }
        line
    }
}

impl RunRecord {
    /// The run as a line of the flow log.
    pub fn line(&self, after: &Value) -> Value {
        json!({ "after": after, "run": self })
    }
}
