//! A rule, and what it says about a call.

use serde::Serialize;
use stretto_trace::ToolCall;

use crate::Facts;

/// One sentence of a policy, as a check of a call against what the session has shown.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The rule's name, such as `retail.pending`.
    pub id: &'static str,
    /// What the policy asks for, in a few words.
    pub policy: &'static str,
    /// Whether a failure refuses the call. A rule that is not enforced is only logged.
    pub enforced: bool,
    /// The tools whose calls it checks.
    pub tools: &'static [&'static str],
    /// The check itself; only called for one of `tools`.
    pub(crate) check: fn(&Facts, &ToolCall) -> Ruling,
}

impl Rule {
    /// Whether the rule checks calls of `tool`.
    pub fn applies_to(&self, tool: &str) -> bool {
        self.tools.contains(&tool)
    }
}

/// What a rule says about a call.
///
/// As JSON: `{"verdict": "pass"}`, or with a `reason` for the other two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// The call is as the policy wants it.
    Pass,
    /// The call breaks the policy.
    Fail {
        /// How, in words for the agent.
        reason: String,
    },
    /// The session has not shown what the rule needs. This never refuses a call.
    Unknown {
        /// What is missing.
        reason: String,
    },
}

impl Verdict {
    /// The verdict's name in JSON: `pass`, `fail` or `unknown`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail { .. } => "fail",
            Self::Unknown { .. } => "unknown",
        }
    }

    /// Why the call did not pass, if it did not.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Pass => None,
            Self::Fail { reason } | Self::Unknown { reason } => Some(reason),
        }
    }

    /// Whether the call breaks the policy.
    pub fn fails(&self) -> bool {
        matches!(self, Self::Fail { .. })
    }
}

/// What a check returns: nothing to say, or why the call does not pass.
pub(crate) type Ruling = Result<(), Objection>;

/// Why a call does not pass. An error type, so that a check can give up with `?`.
#[derive(Debug)]
pub(crate) enum Objection {
    /// The policy is broken.
    Fails(String),
    /// The facts do not tell.
    Unknown(String),
}

impl Objection {
    /// The policy is broken.
    pub(crate) fn fails(reason: impl Into<String>) -> Self {
        Self::Fails(reason.into())
    }

    /// The facts do not tell.
    pub(crate) fn unknown(reason: impl Into<String>) -> Self {
        Self::Unknown(reason.into())
    }
}

/// Passes what holds, fails the rest.
pub(crate) fn require(holds: bool, reason: impl FnOnce() -> String) -> Ruling {
    if holds {
        Ok(())
    } else {
        Err(Objection::Fails(reason()))
    }
}

impl From<Ruling> for Verdict {
    fn from(ruling: Ruling) -> Self {
        match ruling {
            Ok(()) => Self::Pass,
            Err(Objection::Fails(reason)) => Self::Fail { reason },
            Err(Objection::Unknown(reason)) => Self::Unknown { reason },
        }
    }
}
