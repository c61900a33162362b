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
