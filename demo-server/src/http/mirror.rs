//! The headers in which a modern request repeats what its body says.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::wire::Request;
use crate::era;
use crate::protocol::{Call, RpcError};

/// Refuses a request whose headers do not say what its body says.
pub(crate) fn check(request: &Request, call: &Call, tools: &[Value]) -> Result<(), RpcError> {
    expect(request, "MCP-Protocol-Version", era::version(call))?;
    expect(request, "Mcp-Method", Some(&call.method))?;
    let name = match call.method.as_str() {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    };
    if let Some(name) = name {
        expect(
            request,
            "Mcp-Name",
            call.params.get(name).and_then(Value::as_str),
        )?;
    }
    if call.method == "tools/call"
        && let Some(tool) = tools.iter().find(|tool| tool["name"] == call.tool())
    {
        arguments(
            request,
            &tool["inputSchema"],
            call.params.get("arguments").unwrap_or(&Value::Null),
        )?;
    }
    Ok(())
}

/// The arguments that a schema marks with `x-mcp-header`, wherever its `properties` lead.
fn arguments(request: &Request, schema: &Value, given: &Value) -> Result<(), RpcError> {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let value = given.get(name).unwrap_or(&Value::Null);
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str) {
            let text = match value {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            };
            expect(request, &format!("Mcp-Param-{header}"), text.as_deref())?;
        }
        arguments(request, property, value)?;
    }
    Ok(())
}

fn expect(request: &Request, header: &str, value: Option<&str>) -> Result<(), RpcError> {
    let given = request.header(&header.to_ascii_lowercase());
    let why = match (given, value) {
        (None, None) => return Ok(()),
        (None, Some(_)) => "is missing",
        (Some(_), None) => "stands for nothing in the body",
        (Some(given), Some(value)) if decode(given).as_deref() == Some(value) => return Ok(()),
        (Some(_), Some(_)) => "differs from the body",
    };
    Err(RpcError::new(-32020, format!("the header {header} {why}")))
}

/// What a header says: its text, or what the text encodes.
fn decode(value: &[u8]) -> Option<String> {
    let text = str::from_utf8(value).ok()?;
    match text
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    {
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok(),
        None => text
            .bytes()
            .all(|byte| matches!(byte, b' '..=b'~'))
            .then(|| text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const VERSION: &str = "2026-07-28";

    fn code(headers: &[(&str, &str)], method: &str, mut params: Value) -> Result<(), String> {
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": VERSION});
        let tools = [json!({"name": "lookup", "inputSchema": {"properties": {
            "text": {"type": "string", "x-mcp-header": "Text"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
        }}})];
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
            .collect();
        let request = Request {
            headers,
            ..Request::default()
        };
        check(
            &request,
            &Call {
                method: method.into(),
                params,
            },
            &tools,
        )
        .map_err(|error| {
            assert_eq!(error.code, -32020);
            error.message
        })
    }

    const LIST: [(&str, &str); 2] = [
        ("mcp-protocol-version", VERSION),
        ("mcp-method", "tools/list"),
    ];
    const CALL: [(&str, &str); 3] = [
        ("mcp-protocol-version", VERSION),
        ("mcp-method", "tools/call"),
        ("mcp-name", "lookup"),
    ];

    fn call(more: &[(&str, &str)], arguments: Value) -> Result<(), String> {
        code(
            &[&CALL, more].concat(),
            "tools/call",
            json!({"name": "lookup", "arguments": arguments}),
        )
    }

    #[test]
    fn each_header_must_be_there_and_be_the_same() {
        assert_eq!(code(&LIST, "tools/list", json!({})), Ok(()));
        assert_eq!(
            code(&LIST[1..], "tools/list", json!({})),
            Err("the header MCP-Protocol-Version is missing".into())
        );
        assert_eq!(
            code(&LIST[..1], "tools/list", json!({})),
            Err("the header Mcp-Method is missing".into())
        );
        assert_eq!(
            code(&LIST, "Tools/list", json!({})),
            Err("the header Mcp-Method differs from the body".into())
        );
        assert_eq!(
            code(&CALL[..2], "tools/call", json!({"name": "lookup"})),
            Err("the header Mcp-Name is missing".into())
        );
        let read = [
            ("mcp-protocol-version", VERSION),
            ("mcp-method", "resources/read"),
            ("mcp-name", "file:///a"),
        ];
        assert_eq!(
            code(&read, "resources/read", json!({"uri": "file:///a"})),
            Ok(())
        );
    }

    #[test]
    fn marked_arguments_are_repeated_wherever_they_stand() {
        assert_eq!(call(&[], json!({})), Ok(()));
        assert_eq!(call(&[], json!({"text": null})), Ok(()));
        assert_eq!(
            call(
                &[("mcp-param-text", "a b"), ("mcp-param-n", "-7")],
                json!({"text": "a b", "deep": {"n": -7}})
            ),
            Ok(())
        );
        assert_eq!(
            call(&[], json!({"text": "a"})),
            Err("the header Mcp-Param-Text is missing".into())
        );
        assert_eq!(
            call(&[("mcp-param-text", "a")], json!({})),
            Err("the header Mcp-Param-Text stands for nothing in the body".into())
        );
        assert_eq!(
            call(&[("mcp-param-text", "A")], json!({"text": "a"})),
            Err("the header Mcp-Param-Text differs from the body".into())
        );
    }

    #[test]
    fn what_is_no_plain_text_is_encoded() {
        assert_eq!(
            call(
                &[("mcp-param-text", "=?base64?w7xuw69jb2Rl?=")],
                json!({"text": "ünïcode"})
            ),
            Ok(())
        );
        assert!(call(&[("mcp-param-text", "ünïcode")], json!({"text": "ünïcode"})).is_err());
        assert!(call(&[("mcp-param-text", "=?base64?!?=")], json!({"text": "x"})).is_err());
    }
}
