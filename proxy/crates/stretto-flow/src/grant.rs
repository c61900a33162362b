//! Whether a lookup that a flow proposes may be made.

use std::collections::BTreeSet;

use stretto_trace::ToolKind;
use stretto_trace::mcp::Tools;

use crate::flow::Flow;

/// What lookups have to pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grants<'a> {
    /// The only tools that the flow may call on its own, if they were named.
    pub named: Option<&'a BTreeSet<String>>,
    /// What the server has said of its tools, once it has answered a listing of the agent's.
    pub listed: Option<&'a Tools>,
}

impl Flow {
    /// Why a lookup of `tool` has to be withheld, or nothing when it may be made.
    pub fn withheld(&self, tool: &str, grants: Grants<'_>) -> Option<String> {
        if self.file().manifest.kind(tool) != Some(ToolKind::Read) {
            return Some("the flow does not read it".to_owned());
        }
        if grants.named.is_some_and(|named| !named.contains(tool)) {
            return Some("--flow-tools does not grant it".to_owned());
        }
        let listed = grants.listed?;
        let pinned = self.file().contracts.get(tool).map(String::as_str);
        match (listed.kind(tool), pinned, listed.contract(tool)) {
            (None, ..) => Some("the server no longer lists it".to_owned()),
            (Some(ToolKind::Write), ..) => Some("the server marks it as a write".to_owned()),
            // No hint, which counts only where the flow knows what was listed once.
            (Some(ToolKind::Generic), Some(_), _) => {
                Some("the server no longer marks it read-only".to_owned())
            }
            (_, Some(old), Some(new)) if old != new => Some(format!(
                "its input changed since the flow was learned ({old} → {new})"
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
