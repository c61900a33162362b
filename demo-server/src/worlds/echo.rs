//! Two tools that answer with their arguments; for modern hosts also one that asks back.

use serde_json::{Value, json};

use super::World;
use crate::era;
use crate::protocol::{self, Call, RpcError};

/// What `ask` gives the host to bring back with the name.
const STATE: &str = "ask-1";

/// The world in which `lookup` reads, `update` writes, and neither does anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Echo;

impl World for Echo {
    fn tools(&self) -> Vec<Value> {
        let schema = json!({
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "Any text; it comes back in the result."},
                "fail": {"type": "boolean", "description": "Whether the call fails."},
                "delay_ms": {"type": "integer", "minimum": 0, "description": "How long the call takes, in milliseconds."},
            },
        });
        vec![
            json!({
                "name": "lookup",
                "description": "Looks nothing up, and answers with its arguments.",
                "inputSchema": schema,
                "annotations": {"readOnlyHint": true},
            }),
            json!({
                "name": "update",
                "description": "Changes nothing, and answers with its arguments.",
                "inputSchema": schema,
                "annotations": {"readOnlyHint": false},
            }),
        ]
    }

    fn modern_tools(&self) -> Vec<Value> {
        let mut tools = self.tools();
        if let Some(text) = tools
            .first_mut()
            .and_then(|lookup| lookup.pointer_mut("/inputSchema/properties/text"))
        {
            text["x-mcp-header"] = json!("Text");
        }
        tools.push(json!({
            "name": "ask",
            "description": "Asks the user for a name, and answers with it.",
            "inputSchema": {"type": "object", "properties": {}},
            "annotations": {"readOnlyHint": true},
        }));
        tools
    }

    fn call_back(&self, tool: &str, call: &Call) -> Option<Result<Value, RpcError>> {
        (tool == "ask").then(|| ask(call))
    }

    fn call(&self, tool: &str, arguments: &Value) -> Result<String, String> {
        if arguments.get("fail") == Some(&Value::Bool(true)) {
            Err(format!("{tool} failed, as asked: {arguments}"))
        } else {
            Ok(arguments.to_string())
        }
    }

    fn instructions(&self) -> &'static str {
        "Two tools that store nothing and answer with their arguments."
    }
}

/// Asks for a name at first, and answers with it when the call comes again with one.
fn ask(call: &Call) -> Result<Value, RpcError> {
    let Some(responses) = call.params.get("inputResponses") else {
        let can_be_asked = era::capabilities(call)
            .is_some_and(|capabilities| capabilities.get("elicitation").is_some());
        if !can_be_asked {
            let data = Some(json!({"requiredCapabilities": {"elicitation": {}}}));
            return Err(RpcError {
                code: -32021,
                message: "ask needs a host that can be asked".into(),
                data,
            });
        }
        return Ok(json!({
            "resultType": "input_required",
            "requestState": STATE,
            "inputRequests": {"name": {"method": "elicitation/create", "params": {
                "mode": "form",
                "message": "What is your name?",
                "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            }}},
        }));
    };
    if call.params.get("requestState").and_then(Value::as_str) != Some(STATE) {
        return Err(RpcError::new(
            -32602,
            "requestState is not what ask gave out",
        ));
    }
    let response = &responses["name"];
    Ok(
        match (
            response["action"].as_str(),
            response.pointer("/content/name").and_then(Value::as_str),
        ) {
            (Some("accept"), Some(name)) => {
                protocol::text_result(&format!("The name is {name}."), false)
            }
            _ => protocol::text_result("No name was given.", true),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask_with(mut params: Value, capabilities: &Value) -> Result<Value, RpcError> {
        params["name"] = json!("ask");
        params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": capabilities});
        Echo.call_back(
            "ask",
            &Call {
                method: "tools/call".into(),
                params,
            },
        )
        .unwrap()
    }

    #[test]
    fn ask_asks_once_and_completes_on_the_retry() {
        let asked = ask_with(json!({}), &json!({"elicitation": {}})).unwrap();
        assert_eq!(asked["resultType"], "input_required");
        assert_eq!(
            asked["inputRequests"]["name"]["method"],
            "elicitation/create"
        );
        let retry = json!({
            "requestState": asked["requestState"],
            "inputResponses": {"name": {"action": "accept", "content": {"name": "Ada"}}},
        });
        assert_eq!(
            ask_with(retry, &json!({})).unwrap()["content"][0]["text"],
            "The name is Ada."
        );
        let declined = json!({"requestState": asked["requestState"], "inputResponses": {"name": {"action": "decline"}}});
        assert_eq!(ask_with(declined, &json!({})).unwrap()["isError"], true);
    }

    #[test]
    fn ask_needs_a_host_that_can_be_asked_and_its_own_state() {
        let error = ask_with(json!({}), &json!({})).unwrap_err();
        assert_eq!(
            (error.code, error.data),
            (
                -32021,
                Some(json!({"requiredCapabilities": {"elicitation": {}}}))
            )
        );
        assert_eq!(
            ask_with(
                json!({"requestState": "x", "inputResponses": {}}),
                &json!({})
            )
            .unwrap_err()
            .code,
            -32602
        );
    }

    #[test]
    fn modern_hosts_are_told_which_argument_goes_into_a_header() {
        let tools = Echo.modern_tools();
        assert_eq!(
            tools[0]["inputSchema"]["properties"]["text"]["x-mcp-header"],
            "Text"
        );
        assert!(
            tools[1]["inputSchema"]["properties"]["text"]
                .get("x-mcp-header")
                .is_none()
        );
        assert_eq!(tools[2]["name"], "ask");
    }

    #[test]
    fn a_call_answers_with_its_arguments_as_compact_json() {
        assert_eq!(
            Echo.call("lookup", &json!({"n": [1, 2], "text": "é"})),
            Ok(r#"{"n":[1,2],"text":"é"}"#.into())
        );
    }

    #[test]
    fn only_true_makes_a_call_fail() {
        assert_eq!(
            Echo.call("update", &json!({"fail": true})),
            Err(r#"update failed, as asked: {"fail":true}"#.into())
        );
        for not_true in [json!(false), json!("true"), json!(1), json!(null)] {
            assert!(Echo.call("update", &json!({"fail": not_true})).is_ok());
        }
    }

    #[test]
    fn lookup_reads_and_update_writes() {
        let tools = Echo.tools();
        assert_eq!(
            (&tools[0]["name"], &tools[0]["annotations"]["readOnlyHint"]),
            (&json!("lookup"), &json!(true))
        );
        assert_eq!(
            (&tools[1]["name"], &tools[1]["annotations"]["readOnlyHint"]),
            (&json!("update"), &json!(false))
        );
        assert_eq!(tools[0]["inputSchema"], tools[1]["inputSchema"]);
        assert!(tools[0]["inputSchema"].get("required").is_none());
    }
}
