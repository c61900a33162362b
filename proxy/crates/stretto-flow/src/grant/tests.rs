//! Each condition, alone and before the others.

use std::collections::BTreeSet;

use serde_json::json;
use stretto_trace::mcp::{ListedTool, Tools};

use super::Grants;
use crate::flow::Flow;

const TOOL: &str = "get_user_details";

fn flow() -> Flow {
    Flow::parse(include_str!("../../tests/data/flows/shop.flow.json")).unwrap()
}

fn listed(tool: &serde_json::Value) -> Tools {
    let mut tools = Tools::default();
    tools.learn(ListedTool::of(tool).unwrap());
    tools
}

fn withheld(tool: &str, listed: Option<&Tools>) -> Option<String> {
    flow().withheld(
        tool,
        Grants {
            named: None,
            listed,
        },
    )
}

#[test]
fn a_tool_that_the_flow_does_not_read_is_withheld_whatever_is_granted() {
    let named: BTreeSet<String> = ["cancel_pending_order".to_owned(), "other".to_owned()].into();
    for tool in ["cancel_pending_order", "other"] {
        let grants = Grants {
            named: Some(&named),
            listed: None,
        };
        assert_eq!(
            flow().withheld(tool, grants).unwrap(),
            "the flow does not read it"
        );
    }
}

#[test]
fn only_named_tools_are_granted_when_some_are_named() {
    let named: BTreeSet<String> = ["get_order_details".to_owned()].into();
    let grants = Grants {
        named: Some(&named),
        listed: None,
    };
    assert_eq!(
        flow().withheld(TOOL, grants).unwrap(),
        "--flow-tools does not grant it"
    );
    assert_eq!(flow().withheld("get_order_details", grants), None);
}

#[test]
fn what_the_server_has_not_listed_yet_is_no_reason() {
    assert_eq!(withheld(TOOL, None), None);
}

#[test]
fn what_the_server_lists_now_is_a_reason() {
    let schema = json!({"properties": {"user_id": {"type": "string"}}, "required": ["user_id"]});
    let other = json!({"properties": {"user": {"type": "string"}}});
    for (tool, reason) in [
        (json!({"name": "x"}), Some("the server no longer lists it")),
        (
            json!({"name": TOOL, "annotations": {"readOnlyHint": false}, "inputSchema": other}),
            Some("the server marks it as a write"),
        ),
        (
            json!({"name": TOOL, "inputSchema": other}),
            Some("the server no longer marks it read-only"),
        ),
        (
            json!({"name": TOOL, "annotations": {"readOnlyHint": true}, "inputSchema": other}),
            Some("its input changed since the flow was learned (user_id:string! → user:string)"),
        ),
        (
            json!({"name": TOOL, "annotations": {"readOnlyHint": true}, "inputSchema": schema}),
            None,
        ),
        (
            json!({"name": TOOL, "annotations": {"readOnlyHint": true}}),
            None,
        ),
    ] {
        let tools = listed(&tool);
        assert_eq!(withheld(TOOL, Some(&tools)).as_deref(), reason, "{tool}");
    }
}

#[test]
fn without_a_pinned_contract_no_hint_is_needed() {
    let mut file = flow().file().clone();
    file.contracts.clear();
    let tools = listed(&json!({"name": TOOL}));
    let grants = Grants {
        named: None,
        listed: Some(&tools),
    };
    assert_eq!(Flow::new(file).withheld(TOOL, grants), None);
}
