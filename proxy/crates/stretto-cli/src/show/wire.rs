//! What requests, notifications and answers beside the turns say, in a few words.

use serde_json::Value;

/// What `method` is about in this message, if that can be said in a few words.
pub(super) fn detail(method: &str, message: &Value) -> Option<String> {
    let param = |path: &str| message.pointer(&format!("/params/{path}"));
    let text = |path: &str| param(path).and_then(Value::as_str).map(str::to_owned);
    match method {
        "initialize" => text("protocolVersion"),
        "resources/read"
        | "resources/subscribe"
        | "resources/unsubscribe"
        | "notifications/resources/updated" => text("uri"),
        "prompts/get" | "tools/call" => text("name"),
        "logging/setLevel" => text("level"),
        "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update" => text("taskId"),
        "elicitation/create" => text("message"),
        "notifications/message" => {
            let data = match param("data")? {
                Value::String(data) => data.clone(),
                data => data.to_string(),
            };
            Some(match text("level") {
                Some(level) => format!("{level}: {data}"),
                None => data,
            })
        }
        _ => None,
    }
}

/// Whether the answer to a request of `method` is an error, and what it says in a few words.
pub(super) fn answer_summary(method: &str, answer: &Value) -> (bool, String) {
    if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
        let message = error.get("message").and_then(Value::as_str);
        return (
            true,
            message.map_or_else(|| error.to_string(), str::to_owned),
        );
    }
    let result = answer.get("result").unwrap_or(&Value::Null);
    let text = |member: &str| {
        result
            .get(member)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let listed = |member: &str, one: &str| {
        let list = result.get(member)?.as_array()?;
        Some(super::text::count(list.len(), one))
    };
    let summary = match method {
        "initialize" => text("protocolVersion"),
        "tools/list" => listed("tools", "tool"),
        "resources/list" => listed("resources", "resource"),
        "resources/templates/list" => listed("resourceTemplates", "template"),
        "prompts/list" => listed("prompts", "prompt"),
        "roots/list" => listed("roots", "root"),
        "elicitation/create" => text("action"),
        "sampling/createMessage" => text("model"),
        "tasks/get" => text("status"),
        _ => None,
    };
    (false, summary.unwrap_or_else(|| "ok".to_owned()))
}
