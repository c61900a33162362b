//! Two tools that answer with their arguments.

use serde_json::{Value, json};

use super::World;

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

#[cfg(test)]
mod tests {
    use super::*;

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
