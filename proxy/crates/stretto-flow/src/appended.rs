//! What the agent sees of a flow's lookups: one more text item in its own result.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The first line of the text.
pub const HEADING: &str =
    "--- Also looked up automatically (current results; no need to repeat these calls) ---";

/// A lookup that a flow made, and what came back.
#[derive(Clone, Debug, PartialEq)]
pub struct LookedUp {
    /// The tool.
    pub tool: String,
    /// What it was given.
    pub arguments: Map<String, Value>,
    /// Whether it failed.
    pub failed: bool,
    /// What it returned, as text.
    pub text: String,
}

/// The text to append, or nothing without lookups.
///
/// ```
/// # use stretto_flow::{LookedUp, appended_text};
/// let looked_up = LookedUp {
///     tool: "get_user".to_owned(),
///     arguments: serde_json::from_str(r#"{"user_id":"user_7"}"#)?,
///     failed: false,
///     text: r#"{"orders":[]}"#.to_owned(),
/// };
/// let text = appended_text(&[looked_up]).expect("there was a lookup");
/// assert!(text.ends_with("\n\nget_user {\"user_id\":\"user_7\"}:\n{\"orders\":[]}"));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn appended_text(lookups: &[LookedUp]) -> Option<String> {
    if lookups.is_empty() {
        return None;
    }
    let mut text = HEADING.to_owned();
    for LookedUp {
        tool,
        arguments,
        failed,
        text: returned,
    } in lookups
    {
        let arguments = Value::Object(arguments.clone());
        let mark = if *failed { " (error)" } else { "" };
        write!(text, "\n\n{tool} {arguments}{mark}:\n{returned}")
            .expect("memory takes every write");
    }
    Some(text)
}

/// What a response to a lookup says: its text, and whether the lookup failed.
///
/// Of a JSON-RPC error, its message; otherwise the text of every content item that has
/// one, else the structured content as JSON. A result that asks for input, or that is a
/// task's handle, has failed: nobody will go on with it.
pub fn lookup_result(response: &Value) -> (String, bool) {
    if let Some(error) = response.get("error").filter(|error| !error.is_null()) {
        let message = error.get("message").and_then(Value::as_str);
        return (message.unwrap_or("error").to_owned(), true);
    }
    let Some(result) = response.get("result") else {
        return (String::new(), true);
    };
    let items = result.get("content").and_then(Value::as_array);
    let texts: Vec<&str> = items
        .into_iter()
        .flatten()
        .filter_map(|item| item.get("text").and_then(Value::as_str))
        .collect();
    let text = if texts.is_empty() {
        let structured = result
            .get("structuredContent")
            .filter(|content| !content.is_null());
        structured.map(Value::to_string).unwrap_or_default()
    } else {
        texts.join("\n")
    };
    let is_interim = matches!(
        result.get("resultType").and_then(Value::as_str),
        Some("input_required" | "task")
    );
    let failed = result.get("isError") == Some(&Value::Bool(true)) || is_interim;
    (text, failed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn looked_up(tool: &str, failed: bool, text: &str) -> LookedUp {
        LookedUp {
            tool: tool.to_owned(),
            arguments: Map::from_iter([("b".to_owned(), json!(1)), ("a".to_owned(), json!("x y"))]),
            failed,
            text: text.to_owned(),
        }
    }

    #[test]
    fn lookups_stand_in_order_and_failures_are_marked() {
        assert_eq!(appended_text(&[]), None);
        let text = appended_text(&[looked_up("one", false, "1\n"), looked_up("two", true, "no")]);
        let expected = format!(
            "{HEADING}\n\none {{\"a\":\"x y\",\"b\":1}}:\n1\n\n\ntwo {{\"a\":\"x y\",\"b\":1}} (error):\nno"
        );
        assert_eq!(text.unwrap(), expected);
    }

    #[test]
    fn a_response_to_a_lookup_is_text_and_whether_it_failed() {
        let text = |text: &str| json!({"type": "text", "text": text});
        for (response, expected, failed) in [
            (
                json!({"result": {"content": [text("a"), {"type": "image"}, text("b")]}}),
                "a\nb",
                false,
            ),
            (
                json!({"result": {"content": [text("a")], "isError": true}}),
                "a",
                true,
            ),
            (
                json!({"result": {"content": [], "structuredContent": {"b": 1, "a": 2}}}),
                "{\"a\":2,\"b\":1}",
                false,
            ),
            (
                json!({"result": {"content": [text("")], "structuredContent": {"b": 1}}}),
                "",
                false,
            ),
            (json!({"result": {"structuredContent": null}}), "", false),
            (
                json!({"error": {"code": 1, "message": "gone"}}),
                "gone",
                true,
            ),
            (json!({"error": {"code": 1}}), "error", true),
            (
                json!({"error": null, "result": {"content": [text("a")]}}),
                "a",
                false,
            ),
            (
                json!({"result": {"resultType": "input_required"}}),
                "",
                true,
            ),
            (
                json!({"result": {"resultType": "task", "content": [text("t")]}}),
                "t",
                true,
            ),
            (
                json!({"result": {"resultType": "complete", "content": [text("t")]}}),
                "t",
                false,
            ),
            (json!({}), "", true),
        ] {
            assert_eq!(
                lookup_result(&response),
                (expected.to_owned(), failed),
                "{response}"
            );
        }
    }
}
