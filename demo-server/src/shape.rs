//! The shape of an answer, when a fault gives it another one than it has.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::script::faults::Fault;

/// The messages that an answer becomes.
pub(crate) fn messages<'a>(answer: &'a str, fault: &Fault) -> Vec<Cow<'a, str>> {
    let mut message = Cow::Borrowed(answer);
    if (fault.pad.is_some() || fault.id.is_some())
        && let Ok(mut value) = serde_json::from_str::<Value>(answer)
    {
        if let Some(size) = fault.pad {
            pad(&mut value, size);
        }
        if let Some(id) = &fault.id {
            value["id"] = id.clone();
        }
        message = Cow::Owned(value.to_string());
    }
    if fault.batch {
        message = Cow::Owned(format!("[{message}]"));
    }
    let times = if fault.twice { 2 } else { 1 };
    vec![message; times]
}

/// Makes the text of an answer as long as that: a result's first item of text, or an error's message.
fn pad(answer: &mut Value, size: usize) {
    let text = if answer.get("error").is_some() {
        answer.pointer_mut("/error/message")
    } else {
        let Some(result) = answer.get_mut("result").filter(|result| result.is_object()) else {
            return;
        };
        if !result["content"].is_array() {
            result["content"] = json!([]);
        }
        let Some(items) = result["content"].as_array_mut() else {
            return;
        };
        if !items.iter().any(|item| item["text"].is_string()) {
            items.push(json!({"type": "text", "text": ""}));
        }
        items
            .iter_mut()
            .find(|item| item["text"].is_string())
            .map(|item| &mut item["text"])
    };
    if let Some(Value::String(text)) = text {
        let missing = size.saturating_sub(text.len());
        text.extend(std::iter::repeat_n('x', missing));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str =
        r#"{"id":1,"jsonrpc":"2.0","result":{"content":[{"text":"ab","type":"text"}]}}"#;

    fn shaped(answer: &str, fault: &str) -> Vec<String> {
        let fault: Fault = serde_json::from_str(fault).unwrap();
        messages(answer, &fault)
            .into_iter()
            .map(Cow::into_owned)
            .collect()
    }

    #[test]
    fn an_answer_that_nothing_shapes_stays_as_it_is() {
        assert_eq!(shaped("{ \"odd\": 1.0 }", "{}"), ["{ \"odd\": 1.0 }"]);
    }

    #[test]
    fn each_shape_is_given() {
        assert_eq!(shaped(ANSWER, r#"{"twice": true}"#), [ANSWER, ANSWER]);
        assert_eq!(
            shaped(ANSWER, r#"{"batch": true}"#),
            [format!("[{ANSWER}]")]
        );
        assert_eq!(
            shaped(ANSWER, r#"{"id": "x"}"#),
            [ANSWER.replace("\"id\":1", "\"id\":\"x\"")]
        );
        assert_eq!(
            shaped(ANSWER, r#"{"pad": 5}"#),
            [ANSWER.replace("ab", "abxxx")]
        );
        assert_eq!(shaped(ANSWER, r#"{"pad": 1}"#), [ANSWER]);
    }

    #[test]
    fn an_answer_without_text_gets_some() {
        let padded: Value =
            serde_json::from_str(&shaped(r#"{"id":1,"result":{}}"#, r#"{"pad": 3}"#)[0]).unwrap();
        assert_eq!(
            padded["result"]["content"],
            json!([{"type": "text", "text": "xxx"}])
        );
        let padded: Value = serde_json::from_str(
            &shaped(
                r#"{"id":1,"error":{"code":1,"message":"no"}}"#,
                r#"{"pad": 4}"#,
            )[0],
        )
        .unwrap();
        assert_eq!(padded["error"]["message"], "noxx");
    }
}
