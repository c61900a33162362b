//! Decisions as a flow log has them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::Measures;
use crate::decide::{Choice, Policy};

/// What an option of a decision would have been worth to the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Label {
    /// Whether the agent made the call itself later on: 1 or 0, or a share.
    #[serde(deserialize_with = "share")]
    pub used: f64,
    /// Whether it did not.
    #[serde(deserialize_with = "share")]
    pub detour: f64,
    /// Which share of a turn of the agent's it would have spared.
    #[serde(default)]
    pub turn: f64,
}

fn share<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    match Value::deserialize(from)? {
        Value::Bool(is_so) => Ok(f64::from(is_so)),
        value => value
            .as_f64()
            .ok_or_else(|| serde::de::Error::custom("a label is true, false or a number")),
    }
}

/// A decision that was logged with its policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    /// The site.
    pub site: String,
    /// The id of the agent's call that it follows, as it was sent.
    pub after: Value,
    /// The lookup that was made, or would have been in shadow mode; nothing when it handed back.
    pub taken: Option<String>,
    /// Whether lookups were only logged.
    pub is_shadow: bool,
    /// What could have been taken.
    pub policy: Policy,
    /// What each option would have been worth, by tool. Options that do not bind need none.
    pub labels: BTreeMap<String, Label>,
}

/// A decision line, as far as it is read here.
#[derive(Deserialize)]
struct Line {
    site: String,
    after: Value,
    #[serde(default)]
    tool: Option<String>,
    #[serde(default)]
    shadow: bool,
    policy: Policy,
    labels: Option<BTreeMap<String, Label>>,
}

/// Why a line cannot be evaluated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotLogged {
    /// The line is no JSON, or one of its members is not what it should be.
    #[error("{0}")]
    Line(#[from] serde_json::Error),
}

impl Logged {
    /// Reads a line of a flow log: nothing, if it is none of a decision with its policy.
    ///
    /// # Errors
    ///
    /// The line is no JSON, or one of its members is not what it should be.
    pub fn read(line: &str) -> Result<Option<Self>, NotLogged> {
        let value: Value = serde_json::from_str(line)?;
        if value.get("policy").is_none_or(Value::is_null) {
            return Ok(None);
        }
        let Line {
            site,
            after,
            tool,
            shadow,
            policy,
            labels,
        } = serde_json::from_value(value)?;
        Ok(Some(Self {
            site,
            after,
            taken: tool,
            is_shadow: shadow,
            policy,
            labels: labels.unwrap_or_default(),
        }))
    }

    /// The first option that could be taken, and has no label.
    pub fn unlabelled(&self) -> Option<&str> {
        let mut options = self.policy.options.iter();
        options
            .find(|option| option.binding.is_some() && !self.labels.contains_key(&option.tool))
            .map(|option| option.tool.as_str())
    }

    /// The chance with which the log would have taken an option here.
    pub(super) fn propensity(&self, tool: &str) -> f64 {
        let Policy {
            epsilon, greedy, ..
        } = &self.policy;
        let is_greedy = |option: &Choice| Some(&option.tool) == greedy.as_ref();
        let alternatives = self
            .policy
            .options
            .iter()
            .filter(|option| option.binding.is_some() && option.p > 0.0 && !is_greedy(option));
        let total: f64 = alternatives.clone().map(|option| option.p).sum();
        if greedy.as_deref() == Some(tool) {
            return if total > 0.0 { 1.0 - epsilon } else { 1.0 };
        }
        let mut alternatives = alternatives;
        alternatives
            .find(|option| option.tool == tool)
            .map_or(0.0, |option| epsilon * option.p / total)
    }

    /// What an option brings.
    pub(super) fn measures(&self, tool: &str) -> Measures {
        let Label { used, detour, turn } = self.labels.get(tool).copied().unwrap_or_default();
        [1.0, used, detour, turn]
    }
}
