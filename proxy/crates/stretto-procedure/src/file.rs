//! The file of a procedure.

use std::collections::{HashMap, HashSet};
use std::str::FromStr;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The version of the format that this build reads.
pub const VERSION: u64 = 1;

/// A workflow: which call follows which, by what is known so far.
#[derive(Clone, Debug, Deserialize)]
pub struct Procedure {
    /// What it was compiled for. Nobody checks that a ticket belongs to it.
    pub domain: String,
    /// Whether identifiers in arguments stand as where they come from.
    pub symbolic: bool,
    /// The most calls of a run, a check's own not counted.
    pub max_calls: u64,
    /// The action that ends a run.
    pub stop: String,
    /// The tool that hands the customer to a person. It ends a run, too.
    pub handoff: String,
    /// What that tool is called with when an action is its name alone.
    #[serde(default)]
    pub handoff_arguments: Map<String, Value>,
    /// The tools that only read.
    pub reads: HashSet<String>,
    /// The words, and pairs of words, of a ticket that count.
    pub vocab: HashSet<String>,
    /// A tree for each site: `start`, and every tool, with a `!` after one that failed.
    pub trees: HashMap<String, Node>,
    /// The tree of sites that have none.
    pub fallback: Node,
    /// The outcomes that a ticket may ask for, and how each is checked.
    pub checks: Vec<Check>,
}

/// A node of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "AnyNode")]
pub enum Node {
    /// Goes on by whether the state has a feature.
    Split {
        /// The feature.
        feature: String,
        /// Where to go on if the state has it.
        yes: Box<Node>,
        /// Where to go on if not.
        no: Box<Node>,
    },
    /// What was done here, in the order in which a run tries it.
    Leaf {
        /// Actions, with how often training took each, which nobody reads.
        calls: Vec<(String, u64)>,
    },
}

/// A node with the members of both forms.
#[derive(Deserialize)]
struct AnyNode {
    feature: Option<String>,
    yes: Option<Box<Node>>,
    no: Option<Box<Node>>,
    calls: Option<Vec<(String, u64)>>,
}

impl TryFrom<AnyNode> for Node {
    type Error = &'static str;

    fn try_from(node: AnyNode) -> Result<Self, Self::Error> {
        match (node.feature, node.yes, node.no, node.calls) {
            (Some(feature), Some(yes), Some(no), _) => Ok(Self::Split { feature, yes, no }),
            (None, _, _, Some(calls)) => Ok(Self::Leaf { calls }),
            _ => Err("a node has `feature`, `yes` and `no`, or it has `calls`"),
        }
    }
}

impl Node {
    /// The actions of the leaf that a state leads to, given whether it has a feature.
    pub(crate) fn leaf(&self, has: impl Fn(&str) -> bool) -> &[(String, u64)] {
        let mut node = self;
        loop {
            match node {
                Self::Leaf { calls } => return calls,
                Self::Split { feature, yes, no } => {
                    node = if has(feature) { yes } else { no };
                }
            }
        }
    }
}

/// An outcome that a ticket may ask for, and the read that shows whether it is so.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Check {
    /// What a ticket says that asks for it, in small letters.
    pub phrase: String,
    /// The tool that shows it, which is called with no arguments.
    pub probe: String,
    /// What its text must hold, in small letters.
    pub contains: Vec<String>,
    /// What its text must not hold, in small letters.
    pub lacks: Vec<String>,
}

impl Check {
    /// Whether the probe's text says that the outcome is there.
    pub fn holds(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.contains.iter().all(|part| text.contains(part))
            && !self.lacks.iter().any(|part| text.contains(part))
    }
}

/// Why a text is no procedure that can be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The text is no JSON.
    #[error("it is no JSON")]
    Json(#[source] serde_json::Error),
    /// It does not say that it is a procedure.
    #[error("it is no procedure: `stretto_procedure` must be its version, a whole number")]
    Other,
    /// It is of another version.
    #[error("it has version {0} of the format, and this build reads {VERSION}")]
    Version(String),
    /// A field is missing, or of another type.
    #[error("it is no procedure")]
    Field(#[source] serde_json::Error),
}

impl FromStr for Procedure {
    type Err = LoadError;

    /// Reads a file's text. Actions are not looked into: a run that takes a bad one says so.
    fn from_str(text: &str) -> Result<Self, LoadError> {
        let value: Value = serde_json::from_str(text).map_err(LoadError::Json)?;
        match value.get("stretto_procedure") {
            Some(version) if version.as_u64() == Some(VERSION) => {}
            Some(version) if version.is_u64() || version.is_i64() => {
                return Err(LoadError::Version(version.to_string()));
            }
            _ => return Err(LoadError::Other),
        }
        serde_json::from_str(text).map_err(LoadError::Field)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn smallest() -> Value {
        json!({
            "stretto_procedure": 1, "domain": "d", "symbolic": false, "max_calls": 0, "stop": "stop",
            "handoff": "person", "reads": [], "vocab": [], "trees": {}, "fallback": {"calls": []},
            "checks": [],
        })
    }

    fn refused(change: impl FnOnce(&mut Value)) -> String {
        let mut file = smallest();
        change(&mut file);
        let error = file.to_string().parse::<Procedure>().unwrap_err();
        let cause = std::error::Error::source(&error);
        format!(
            "{error}: {}",
            cause.map(ToString::to_string).unwrap_or_default()
        )
    }

    #[test]
    fn the_smallest_file_loads_whatever_else_it_holds() {
        let mut file = smallest();
        file["provenance"] = json!({"sources": [1]});
        file["fallback"]["note"] = json!("unread");
        let procedure: Procedure = file.to_string().parse().unwrap();
        assert!(procedure.handoff_arguments.is_empty());
    }

    #[test]
    fn what_is_no_procedure_says_so() {
        assert!(matches!("{".parse::<Procedure>(), Err(LoadError::Json(_))));
        for version in [json!(null), json!("1"), json!(1.0), json!([1])] {
            let refusal = refused(|file| file["stretto_procedure"] = version);
            assert!(
                refusal.starts_with("it is no procedure: `stretto_procedure`"),
                "{refusal}"
            );
        }
        let list = "[]".parse::<Procedure>().unwrap_err();
        assert!(matches!(list, LoadError::Other));
        let refusal = refused(|file| file["stretto_procedure"] = json!(2));
        assert!(
            refusal.contains("version 2") && refusal.contains("reads 1"),
            "{refusal}"
        );
    }

    #[test]
    fn every_field_that_is_required_is_missed_by_its_name() {
        for field in [
            "domain",
            "symbolic",
            "max_calls",
            "stop",
            "handoff",
            "reads",
            "vocab",
            "trees",
            "fallback",
            "checks",
        ] {
            let refusal = refused(|file| {
                file.as_object_mut().unwrap().remove(field);
            });
            assert!(refusal.contains(&format!("`{field}`")), "{refusal}");
        }
        for field in ["phrase", "probe", "contains", "lacks"] {
            let refusal = refused(|file| {
                let mut check = json!({"phrase": "p", "probe": "q", "contains": [], "lacks": []});
                check.as_object_mut().unwrap().remove(field);
                file["checks"] = json!([check]);
            });
            assert!(refusal.contains(&format!("`{field}`")), "{refusal}");
        }
    }

    #[test]
    fn types_and_forms_are_checked() {
        for (field, value) in [
            ("max_calls", json!(-1)),
            ("symbolic", json!("yes")),
            ("reads", json!([1])),
            ("handoff_arguments", json!([])),
            ("fallback", json!({})),
            ("fallback", json!({"feature": "f", "yes": {"calls": []}})),
            ("fallback", json!({"calls": [["a"]]})),
            ("fallback", json!({"calls": [["a", 1.5]]})),
        ] {
            let refusal = refused(|file| file[field] = value.clone());
            assert!(
                refusal.starts_with("it is no procedure: "),
                "{field} {value}: {refusal}"
            );
        }
    }
}
