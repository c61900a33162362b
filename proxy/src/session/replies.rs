//! The messages that the proxy writes itself.

use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

/// The JSON-RPC code for a line that cannot be read.
pub(crate) const PARSE_ERROR: i32 = -32700;

/// The JSON-RPC code for a line that is no request that can be taken.
pub(crate) const INVALID_REQUEST: i32 = -32600;

/// The member of `_meta` that makes a request one of the newest revision.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// The member of `_meta` that says what the sender can be asked to do.
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// The revision's era that a message belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Era {
    /// A session with a handshake, or before it is known.
    #[default]
    Legacy,
    /// Requests that carry their protocol version with them.
    Modern(String),
}

impl Era {
    /// The era of a request, by its `_meta`.
    pub(crate) fn of(request: &Value) -> Self {
        let version = request
            .pointer("/params/_meta")
            .and_then(|meta| meta.get(VERSION_KEY));
        match version.and_then(Value::as_str) {
            Some(version) => Self::Modern(version.to_owned()),
            None => Self::Legacy,
        }
    }

    /// What a request of our own carries: the host's version, and that nobody is to be asked
    /// anything, since the host's user did not make the call.
    fn meta(&self) -> Option<Value> {
        match self {
            Self::Legacy => None,
            Self::Modern(version) => Some(json!({VERSION_KEY: version, CAPABILITIES_KEY: {}})),
        }
    }
}

/// A JSON-RPC error for the request whose id is spelled `id`.
pub(crate) fn error(id: &str, code: i32, message: &str) -> String {
    let message = Value::from(format!("stretto-proxy: {message}"));
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#)
}

/// A call's result of one text, for the request whose id is spelled `id`.
pub(crate) fn result(id: &str, era: &Era, text: &str, is_error: bool) -> String {
    let item = text_item(text);
    let complete = match era {
        Era::Legacy => "",
        Era::Modern(_) => r#","resultType":"complete""#,
    };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{item}],"isError":{is_error}{complete}}}}}"#
    )
}

/// A content item of a text.
pub(crate) fn text_item(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, Value::from(text))
}

/// A call of the proxy's own. `arguments` is JSON, and goes on as it is spelled.
pub(crate) fn call(id: &str, era: &Era, name: &str, arguments: &str) -> String {
    #[derive(Serialize)]
    struct Request<'a> {
        jsonrpc: &'a str,
        id: &'a str,
        method: &'a str,
        params: Params<'a>,
    }
    #[derive(Serialize)]
    struct Params<'a> {
        name: &'a str,
        arguments: &'a RawValue,
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<Value>,
    }
    let arguments = serde_json::from_str(arguments).unwrap_or(RawValue::NULL);
    let params = Params {
        name,
        arguments,
        meta: era.meta(),
    };
    serde_json::to_string(&Request {
        jsonrpc: "2.0",
        id,
        method: "tools/call",
        params,
    })
    .expect("text and JSON can be written as JSON")
}

/// Tells the server that the answer to a request of our own is not wanted any more.
pub(crate) fn cancellation(id: &str, reason: &str) -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": reason}})
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_our_own_speaks_the_session_s_era() {
        assert_eq!(
            call("stretto-1", &Era::Legacy, "look", r#"{"n": 1.0}"#),
            r#"{"jsonrpc":"2.0","id":"stretto-1","method":"tools/call","params":{"name":"look","arguments":{"n": 1.0}}}"#
        );
        let modern: Value = serde_json::from_str(&call(
            "stretto-1",
            &Era::Modern("2026-07-28".into()),
            "look",
            "{}",
        ))
        .unwrap();
        assert_eq!(
            modern["params"]["_meta"],
            json!({VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}})
        );
    }

    #[test]
    fn an_answer_of_our_own_speaks_its_request_s_era() {
        let legacy: Value = serde_json::from_str(&result("7", &Era::Legacy, "no\n", true)).unwrap();
        assert_eq!(
            legacy,
            json!({"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": "no\n"}], "isError": true}})
        );
        let modern: Value =
            serde_json::from_str(&result(r#""a""#, &Era::Modern("x".into()), "", false)).unwrap();
        assert_eq!(modern["result"]["resultType"], "complete");
    }

    #[test]
    fn the_era_stands_in_the_request() {
        assert_eq!(Era::of(&json!({"method": "initialize"})), Era::Legacy);
        assert_eq!(
            Era::of(&json!({"params": {"_meta": {VERSION_KEY: "2026-07-28"}}})),
            Era::Modern("2026-07-28".into())
        );
    }
}
