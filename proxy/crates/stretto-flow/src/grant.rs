//! Whether a lookup that a flow proposes may be made.

use std::collections::{BTreeMap, BTreeSet};

use stretto_trace::ToolKind;

use crate::flow::Flow;

/// What a server has listed of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Its `readOnlyHint`, if it gives one.
    pub read_only: Option<bool>,
    /// Its input contract, if it has an input schema.
    pub contract: Option<String>,
}

/// What lookups have to pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// The only tools that the flow may call on its own, if they were named.
    pub named: Option<BTreeSet<String>>,
    /// The tools the server has listed, once it has answered a listing of the agent's.
    pub listed: Option<BTreeMap<String, Listed>>,
}

impl Flow {
    /// Why a lookup of `tool` has to be withheld, or nothing when it may be made.
    pub fn withheld(&self, tool: &str, grants: &Grants) -> Option<String> {
        if self.file().manifest.kind(tool) != Some(ToolKind::Read) {
            return Some("the flow does not read it".to_owned());
        }
        if grants
            .named
            .as_ref()
            .is_some_and(|named| !named.contains(tool))
        {
            return Some("--flow-tools does not grant it".to_owned());
        }
        let listed = grants.listed.as_ref()?;
        let Some(Listed {
            read_only,
            contract,
        }) = listed.get(tool)
        else {
            return Some("the server no longer lists it".to_owned());
        };
        let pinned = self.file().contracts.get(tool);
        match (read_only, pinned, contract) {
            (Some(false), ..) => Some("the server marks it as a write".to_owned()),
            (None, Some(_), _) => Some("the server no longer marks it read-only".to_owned()),
            (_, Some(old), Some(new)) if old != new => Some(format!(
                "its input changed since the flow was learned ({old} → {new})"
            )),
            _ => None,
        }
    }
}
