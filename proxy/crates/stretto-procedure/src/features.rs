//! The features of a result: what trees can ask of it.

use serde_json::{Map, Value};

use crate::ticket::has_digit;

/// The longest text of a member that says something.
const LONGEST_VALUE: usize = 24;

/// The longest line that is taken whole.
const LONGEST_LINE: usize = 60;

/// A result's text as a value: JSON, or JSON in a JSON string, or else the text itself.
pub(crate) fn parse(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::String(inner)) => serde_json::from_str(&inner).unwrap_or(Value::String(inner)),
        Ok(value) => value,
        Err(_) => Value::String(text.to_owned()),
    }
}

/// The features of a result, without the tool's name before them.
pub(crate) fn features(result: &Value) -> Vec<String> {
    match result {
        Value::Object(members) => of_record(members),
        Value::Array(items) => vec![length("$", items.len())],
        Value::String(text) => text.lines().filter_map(of_line).flatten().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

fn of_record(members: &Map<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, value) in members {
        match value {
            Value::String(text) if says_something(text) => {
                found.push(format!("{name}={}", plain(text)));
            }
            Value::Bool(is_so) => found.push(format!("{name}={is_so}")),
            Value::Number(number) if number.is_i64() || number.is_u64() => {
                found.push(format!("{name}={number}"));
            }
            Value::Array(items) => found.push(length(name, items.len())),
            Value::Object(inner) => {
                found.push(length(name, inner.len()));
                let statuses = inner
                    .values()
                    .filter_map(|record| record.get("status")?.as_str());
                found.extend(statuses.map(|status| format!("{name}.*.status={}", plain(status))));
            }
            Value::Null | Value::Number(_) | Value::String(_) => {}
        }
    }
    found
}

fn plain(text: &str) -> String {
    text.trim().to_lowercase()
}

/// Longer texts, and those with three digits in a row, are names and numbers of somebody's.
fn says_something(text: &str) -> bool {
    let letters: Vec<char> = text.chars().collect();
    letters.len() <= LONGEST_VALUE
        && !letters
            .windows(3)
            .any(|three| three.iter().all(char::is_ascii_digit))
}

fn length(name: &str, length: usize) -> String {
    let length = match length {
        0 => "0",
        1 => "1",
        _ => "2+",
    };
    format!("len({name})={length}")
}

fn of_line(line: &str) -> Option<Vec<String>> {
    let line = line.trim();
    if line.is_empty() {
        return None;
    }
    if let Some((key, rest)) = line.split_once(": ") {
        let key = plain(key);
        let parts = rest.split('|').map(str::trim);
        let telling = parts.filter(|part| !part.is_empty() && !has_digit(part));
        return Some(
            telling
                .map(|part| format!("{key}={}", part.to_lowercase()))
                .collect(),
        );
    }
    let is_short = line.chars().count() <= LONGEST_LINE;
    (is_short && !has_digit(line)).then(|| vec![format!("says {}", line.to_lowercase())])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        features(&parse(text))
    }

    #[test]
    fn a_records_members_say_what_is_no_identifier() {
        assert_eq!(
            of(
                r#"{"status": " Active ", "id": "L7001", "long": "abcdefghijklmnopqrstuvwxy", "on": true,
                   "n": -3, "half": 0.5, "none": null, "one": [1], "many": [1, 2], "no": [],
                   "lines": {"a": {"status": "Open "}, "b": {"status": 3}, "c": 4}, "empty": {}}"#
            ),
            [
                "len(empty)=0",
                "len(lines)=2+",
                "lines.*.status=open",
                "len(many)=2+",
                "n=-3",
                "len(no)=0",
                "on=true",
                "len(one)=1",
                "status=active",
            ]
        );
        assert_eq!(
            of(r#"{"a": "12 34", "b": "abcdefghijklmnopqrstuvwx"}"#),
            ["a=12 34", "b=abcdefghijklmnopqrstuvwx"]
        );
    }

    #[test]
    fn lists_have_a_length_and_nothing_else() {
        assert_eq!(of("[]"), ["len($)=0"]);
        assert_eq!(of("[[]]"), ["len($)=1"]);
        assert_eq!(of("[1,2,3]"), ["len($)=2+"]);
    }

    #[test]
    fn a_texts_lines_are_keys_with_parts_or_said_whole() {
        assert_eq!(
            of(
                "Status Bar: 📶⁴ Excellent | 5G | 🔋 80% | |\n\n  Airplane Mode is now OFF.  \nroom 12\nSIM:active"
            ),
            [
                "status bar=📶⁴ excellent",
                "says airplane mode is now off.",
                "says sim:active"
            ]
        );
        assert_eq!(of(&"x".repeat(60)), [format!("says {}", "x".repeat(60))]);
        assert_eq!(of(&"x".repeat(61)), [""; 0]);
    }

    #[test]
    fn json_in_a_json_string_is_that_json() {
        assert_eq!(of(r#""{\"on\":false}""#), ["on=false"]);
        assert_eq!(of(r#""all is well""#), ["says all is well"]);
        for nothing in ["7", "null", "true", "0.5", ""] {
            assert_eq!(of(nothing), [""; 0], "{nothing}");
        }
    }
}
