//! What a call returned, as an agent reads it.

use serde_json::Value;

/// What a call returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult {
    /// Whether the call failed: a JSON-RPC error, or a result marked `isError`.
    pub error: bool,
    /// The result's text; structured content or the result itself, as JSON, when it has none.
    pub content: String,
}

impl CallResult {
    /// What `response` says, or nothing when it is not a response.
    ///
    /// A response has an id, no method, and a result or an error that is not null. Its text is
    /// the error's message, or the text items joined by line feeds.
    ///
    /// ```
    /// use serde_json::json;
    /// use stretto_trace::mcp::CallResult;
    ///
    /// let response = json!({"id": 1, "result": {"content": [{"type": "text", "text": "hi"}]}});
    /// let result = CallResult::of(&response).expect("it is a response");
    /// assert_eq!((result.error, result.content.as_str()), (false, "hi"));
    /// ```
    pub fn of(response: &Value) -> Option<Self> {
        if !is_response(response) {
            return None;
        }
        if let Some(error) = present(response.get("error")) {
            let content = match error.get("message") {
                Some(Value::String(message)) => message.clone(),
                _ => error.to_string(),
            };
            return Some(Self {
                error: true,
                content,
            });
        }
        let result = response.get("result").unwrap_or(&Value::Null);
        let error = result.get("isError") == Some(&Value::Bool(true));
        let content = text_of(result)
            .or_else(|| present(result.get("structuredContent")).map(Value::to_string))
            .unwrap_or_else(|| result.to_string());
        Some(Self { error, content })
    }
}

/// The text items of a result, or nothing when it has none.
fn text_of(result: &Value) -> Option<String> {
    let is_text = |item: &&Value| item.get("type").and_then(Value::as_str) == Some("text");
    let items = result.get("content")?.as_array()?;
    let mut texts = items
        .iter()
        .filter(is_text)
        .filter_map(|item| item.get("text").and_then(Value::as_str));
    let mut text = texts.next()?.to_owned();
    for more in texts {
        text.push('\n');
        text.push_str(more);
    }
    Some(text)
}

/// The id of a request or response: present, and not null.
pub(super) fn id_of(message: &Value) -> Option<&Value> {
    present(message.get("id"))
}

/// Whether `message` answers a request.
pub(super) fn is_response(message: &Value) -> bool {
    message.get("method").is_none()
        && id_of(message).is_some()
        && (message.get("result").is_some() || present(message.get("error")).is_some())
}

/// A member that is there and is not null.
pub(super) fn present(member: Option<&Value>) -> Option<&Value> {
    member.filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_content_is_the_first_of_text_structured_content_and_the_whole_result() {
        let text = |text: &str| json!({"type": "text", "text": text});
        for (result, error, content) in [
            (json!({"content": [text("a"), text("b")]}), false, "a\nb"),
            (
                json!({"content": [text("")], "structuredContent": {"x": 1}}),
                false,
                "",
            ),
            (
                json!({"content": [text("no")], "isError": true}),
                true,
                "no",
            ),
            (
                json!({"content": [text("yes")], "isError": "true"}),
                false,
                "yes",
            ),
            (
                json!({"content": [{"type": "image", "text": "x"}, {"type": "text", "text": 7}, 3],
                    "structuredContent": {"b": 1, "a": [2]}}),
                false,
                r#"{"a":[2],"b":1}"#,
            ),
            (
                json!({"content": [], "structuredContent": null}),
                false,
                r#"{"content":[],"structuredContent":null}"#,
            ),
            (json!({"content": "text"}), false, r#"{"content":"text"}"#),
            (json!("done"), false, "\"done\""),
            (json!(null), false, "null"),
        ] {
            let response = json!({"id": 1, "result": result});
            let expected = CallResult {
                error,
                content: content.to_owned(),
            };
            assert_eq!(CallResult::of(&response), Some(expected), "{response}");
        }
    }

    #[test]
    fn an_error_counts_before_a_result_unless_it_is_null() {
        for (error, content) in [
            (
                json!({"code": -32601, "message": "no such tool"}),
                "no such tool",
            ),
            (
                json!({"message": 7, "code": 1}),
                r#"{"code":1,"message":7}"#,
            ),
            (json!("broken"), "\"broken\""),
        ] {
            let response = json!({"id": 1, "error": error, "result": {"content": []}});
            let expected = CallResult {
                error: true,
                content: content.to_owned(),
            };
            assert_eq!(CallResult::of(&response), Some(expected));
        }
        let response = json!({"id": 1, "error": null, "result": 1});
        assert_eq!(
            CallResult::of(&response).unwrap(),
            CallResult {
                error: false,
                content: "1".into()
            }
        );
    }

    #[test]
    fn a_message_without_id_or_answer_or_with_a_method_is_no_response() {
        for message in [
            json!({"id": null, "result": {}}),
            json!({"result": {}}),
            json!({"id": 1, "error": null}),
            json!({"id": 1}),
            json!({"id": 1, "method": "ping", "result": {}}),
            json!([]),
        ] {
            assert_eq!(CallResult::of(&message), None, "{message}");
        }
    }
}
