//! JSON-RPC as both transports speak it: what a message is, and how an answer is written.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value, json};

/// The revision that is answered to a host that names none.
pub(crate) const DEFAULT_VERSION: &str = "2025-06-18";

/// What the host has sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    /// Nothing but blanks.
    Blank,
    /// Not JSON.
    Unreadable,
    /// JSON, and not an object.
    NotAnObject,
    /// A method without an id, or an object without either.
    Notification(Call),
    /// An id without a method: the answer to a request of the server's.
    Response(Value),
    /// A method and an id.
    Request(Value, Call),
}

/// A method and what it is given.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Call {
    /// The method; empty when the message has none.
    pub(crate) method: String,
    /// Its `params`; null when there are none.
    pub(crate) params: Value,
}

impl Message {
    /// Reads a line or a body. Invalid UTF-8 is replaced first.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let text: Cow<'_, str> = String::from_utf8_lossy(bytes);
        if text.trim().is_empty() {
            return Self::Blank;
        }
        match serde_json::from_str(&text) {
            Err(_) => Self::Unreadable,
            Ok(Value::Object(members)) => Self::of(members),
            Ok(_) => Self::NotAnObject,
        }
    }

    fn of(mut members: Map<String, Value>) -> Self {
        let id = members.remove("id").filter(|id| !id.is_null());
        let method = match members.remove("method") {
            Some(Value::String(method)) => Some(method),
            _ => None,
        };
        let params = members.remove("params").unwrap_or_default();
        match (id, method) {
            (Some(id), Some(method)) => Self::Request(id, Call { method, params }),
            (Some(id), None) => Self::Response(id),
            (None, method) => Self::Notification(Call {
                method: method.unwrap_or_default(),
                params,
            }),
        }
    }
}

impl Call {
    /// The tool that a `tools/call` names; the empty text when it names none.
    pub(crate) fn tool(&self) -> &str {
        self.params
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// What a `tools/call` gives the tool; an empty object when it gives nothing.
    pub(crate) fn arguments(&self) -> Value {
        self.params
            .get("arguments")
            .cloned()
            .unwrap_or_else(|| json!({}))
    }
}

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Value>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// A line or body that is not JSON.
    pub(crate) fn unreadable() -> Self {
        Self::new(-32700, "the message is not JSON")
    }

    /// JSON that is not one message.
    pub(crate) fn not_an_object() -> Self {
        Self::new(-32600, "a message is one JSON object")
    }

    /// A method that the server does not have.
    pub(crate) fn no_method(method: &str) -> Self {
        Self::new(-32601, format!("Method not found: {method}"))
    }

    /// A tool that the server does not have.
    pub(crate) fn no_tool(name: &str) -> Self {
        Self::new(-32602, format!("Unknown tool: {name}"))
    }
}

/// The answer to a request, as one line without its end.
pub(crate) fn answer(id: &Value, outcome: &Result<Value, RpcError>) -> String {
    #[derive(Serialize)]
    struct Answer<'a> {
        jsonrpc: &'static str,
        id: &'a Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a RpcError>,
    }
    let answer = Answer {
        jsonrpc: "2.0",
        id,
        result: outcome.as_ref().ok(),
        error: outcome.as_ref().err(),
    };
    text(&answer)
}

/// A notification, as one line without its end.
pub(crate) fn notification(method: &str, params: &Value) -> String {
    text(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value)
        .expect("members have text names, and writing to memory does not end")
}

/// A tool's result with one item of text.
pub(crate) fn text_result(text: &str, is_error: bool) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": is_error})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Message {
        Message::read(text.as_bytes())
    }

    #[test]
    fn each_kind_of_message_is_told_apart() {
        let ping = Call {
            method: "ping".into(),
            params: Value::Null,
        };
        assert_eq!(read(" \t\r"), Message::Blank);
        assert_eq!(read("{"), Message::Unreadable);
        assert_eq!(read("[]"), Message::NotAnObject);
        assert_eq!(read("7"), Message::NotAnObject);
        assert_eq!(read("{}"), Message::Notification(Call::default()));
        assert_eq!(
            read(r#"{"method":"ping"}"#),
            Message::Notification(ping.clone())
        );
        assert_eq!(
            read(r#"{"method":"ping","id":null}"#),
            Message::Notification(ping.clone())
        );
        assert_eq!(
            read(r#"{"id":"a","result":{}}"#),
            Message::Response(json!("a"))
        );
        assert_eq!(
            read(r#"{"id":0,"method":"ping"}"#),
            Message::Request(json!(0), ping)
        );
    }

    #[test]
    fn invalid_utf8_is_replaced_before_it_is_read() {
        assert_eq!(Message::read(b"\xff"), Message::Unreadable);
        let Message::Request(id, _) = Message::read(b"{\"id\":\"\xff\",\"method\":\"m\"}") else {
            panic!("no request")
        };
        assert_eq!(id, json!("\u{fffd}"));
    }

    #[test]
    fn an_answer_has_a_result_or_an_error() {
        let text = answer(&json!("1"), &Ok(json!({})));
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({"jsonrpc": "2.0", "id": "1", "result": {}})
        );
        let text = answer(&Value::Null, &Err(RpcError::unreadable()));
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&value["id"], &value["error"]["code"]),
            (&Value::Null, &json!(-32700))
        );
        assert!(value.get("result").is_none());
    }
}
