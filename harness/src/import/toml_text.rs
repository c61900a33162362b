//! Values as TOML on one line, so that a step stays on its line.

use crate::text::append;
use serde_json::Value;

/// A value as inline TOML; nothing when TOML cannot say it.
///
/// TOML has no null, and no whole number beyond 64 bits.
pub(super) fn inline(value: &Value) -> Option<String> {
    Some(match value {
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) if number.is_i64() => number.to_string(),
        Value::Number(number) if number.is_f64() => {
            let text = number.to_string();
            // TOML wants a digit on both sides of the point, and takes exponents as JSON does.
            if text.contains(['.', 'e', 'E']) {
                text
            } else {
                format!("{text}.0")
            }
        }
        Value::Null | Value::Number(_) => return None,
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect::<Option<_>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|(name, member)| Some(format!("{} = {}", key(name), inline(member)?)))
                .collect::<Option<_>>()?;
            format!("{{ {} }}", members.join(", "))
        }
    })
}

fn key(name: &str) -> String {
    let is_bare = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if is_bare {
        name.to_owned()
    } else {
        quoted(name)
    }
}

/// A text in quotation marks, on one line.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => {
                append(&mut quoted, format_args!("\\u{:04X}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize)]
    struct Holder {
        value: Value,
    }

    #[test]
    fn what_is_written_reads_back() {
        let values = [
            json!({ "a b": [1, -2, 3.5, 1e300, 70.0], "c": { "d": true, "": "x" }, "e": {}, "f": [] }),
            json!("tab\t, quote \", back \\, line\nreturn\r, nul \u{0}, del \u{7f}, é, 💡, $"),
            json!(i64::MIN),
        ];
        for value in values {
            let text = format!("value = {}", inline(&value).unwrap());
            assert_eq!(text.lines().count(), 1);
            let read: Holder = toml::from_str(&text).unwrap();
            assert_eq!(read.value, value, "{text}");
        }
    }

    #[test]
    fn what_toml_cannot_say_is_not_written() {
        assert_eq!(inline(&json!({ "a": [null] })), None);
        assert_eq!(inline(&json!(u64::MAX)), None);
    }
}
