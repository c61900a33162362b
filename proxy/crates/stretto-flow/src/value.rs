//! Texts in results: how they are found, and how they are read again.

use serde_json::Value;

/// A value as text: a string is itself, anything else its compact JSON.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A result's content as a value.
///
/// What is JSON is that value. Otherwise two or more lines are a list of texts, each
/// trimmed, and anything else is one text, untrimmed.
pub(crate) fn parse(content: &str) -> Value {
    if let Ok(value) = serde_json::from_str(content) {
        return value;
    }
    let lines: Vec<Value> = content
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(Value::from)
        .collect();
    if lines.len() >= 2 {
        Value::Array(lines)
    } else {
        Value::from(content)
    }
}

/// The paths at which `wanted` stands in `value`, in document order.
///
/// A path starts at the root `$` and goes down by `.key` or, through the elements of a list, by
/// `[*]`. A text counts if all of it is `wanted`; numbers never do.
pub(crate) fn find(value: &Value, wanted: &str) -> Vec<String> {
    fn walk(value: &Value, wanted: &str, path: &mut String, found: &mut Vec<String>) {
        let length = path.len();
        match value {
            Value::String(text) if text == wanted => found.push(path.clone()),
            Value::Array(items) => {
                path.push_str("[*]");
                for item in items {
                    walk(item, wanted, path, found);
                }
                path.truncate(length);
            }
            Value::Object(members) => {
                for (key, member) in members {
                    path.push('.');
                    path.push_str(key);
                    walk(member, wanted, path, found);
                    path.truncate(length);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(value, wanted, &mut "$".to_owned(), &mut found);
    found
}

/// A text in a result, and the texts beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found<'a> {
    /// The text.
    pub(crate) text: &'a str,
    /// The other texts of the object that holds it, those equal to it left out.
    pub(crate) siblings: Vec<&'a str>,
}

impl<'a> Found<'a> {
    fn of_member(text: &'a str, key: &str, holder: &'a serde_json::Map<String, Value>) -> Self {
        let siblings = holder
            .iter()
            .filter(|(other, _)| *other != key)
            .filter_map(|(_, member)| member.as_str())
            .filter(|sibling| *sibling != text)
            .collect();
        Self { text, siblings }
    }
}

/// A way to read texts from results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// At a path.
    Path(Vec<Part>),
    /// Under every member of one name, wherever it stands.
    Key(String),
}

/// A part of a path, after the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A member of an object.
    Key(String),
    /// Every element of a list.
    Each,
}

impl Reader {
    /// Reads the path `text`. A key reaches to the next dot or bracket, so that a key which
    /// holds either is not read back.
    pub(crate) fn path(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text.strip_prefix('$').unwrap_or(text);
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("[*]") {
                parts.push(Part::Each);
                rest = after;
                continue;
            }
            let key = rest.strip_prefix('.').unwrap_or(rest);
            // A bracket that opens no `[*]` belongs to no key: what is left names nothing.
            let end = key.find(['.', '[']).unwrap_or(key.len());
            let (key, after) = key.split_at(end);
            if key.is_empty() && after.starts_with('[') && !after.starts_with("[*]") {
                parts.push(Part::Key(after.to_owned()));
                break;
            }
            parts.push(Part::Key(key.to_owned()));
            rest = after;
        }
        Self::Path(parts)
    }

    /// The texts there, in document order.
    pub(crate) fn read<'a>(&self, value: &'a Value) -> Vec<Found<'a>> {
        let mut found = Vec::new();
        match self {
            Self::Path(parts) => at_path(value, parts, None, &mut found),
            Self::Key(key) => under_key(value, key, &mut found),
        }
        found
    }
}

type Holder<'a> = Option<(&'a str, &'a serde_json::Map<String, Value>)>;

fn at_path<'a>(value: &'a Value, path: &[Part], holder: Holder<'a>, found: &mut Vec<Found<'a>>) {
    match (path.split_first(), value) {
        (None, Value::String(text)) => found.push(match holder {
            Some((key, members)) => Found::of_member(text, key, members),
            None => Found {
                text,
                siblings: Vec::new(),
            },
        }),
        (Some((Part::Each, rest)), Value::Array(items)) => {
            for item in items {
                at_path(item, rest, None, found);
            }
        }
        (Some((Part::Key(key), rest)), Value::Object(members)) => {
            if let Some((key, member)) = members.get_key_value(key) {
                at_path(member, rest, Some((key, members)), found);
            }
        }
        _ => {}
    }
}

fn under_key<'a>(value: &'a Value, wanted: &str, found: &mut Vec<Found<'a>>) {
    match value {
        Value::Array(items) => {
            for item in items {
                under_key(item, wanted, found);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                match member {
                    Value::String(text) if key == wanted => {
                        found.push(Found::of_member(text, key, members));
                    }
                    _ => under_key(member, wanted, found),
                }
            }
        }
        _ => {}
    }
}

/// A text in the form in which it is compared with what people say: trimmed, in lower case.
pub(crate) fn form(text: &str) -> String {
    text.trim().to_lowercase()
}

/// Whether a form looks like a record's key: four characters or more, a digit among them.
pub(crate) fn is_key_like(form: &str) -> bool {
    form.bytes().any(|byte| byte.is_ascii_digit()) && form.chars().nth(3).is_some()
}

/// Calls `visit` with the form of every text and number in `value`, at any depth.
pub(crate) fn forms(value: &Value, visit: &mut impl FnMut(String)) {
    match value {
        Value::String(text) => visit(form(text)),
        Value::Number(number) => visit(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| forms(item, visit)),
        Value::Object(members) => members.values().for_each(|member| forms(member, visit)),
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn content_is_json_or_lines_or_one_text() {
        assert_eq!(parse("123"), json!(123));
        assert_eq!(parse("{\"a\":1}"), json!({"a": 1}));
        assert_eq!(parse("  one line "), json!("  one line "));
        assert_eq!(parse(" a \n\n b\n"), json!(["a", "b"]));
        assert_eq!(parse("a\n\n"), json!("a\n\n"));
        assert_eq!(parse(""), json!(""));
    }

    #[test]
    fn what_is_found_is_read_again_unless_its_keys_have_dots_or_brackets() {
        let value = json!({
            "list": [{"id": "x"}, ["x"], "x"],
            "a.b": "x",
            "c[d": "x",
            "": "x",
            "n": 1,
        });
        let paths = find(&value, "x");
        assert_eq!(
            paths,
            [
                "$.",
                "$.a.b",
                "$.c[d",
                "$.list[*].id",
                "$.list[*][*]",
                "$.list[*]"
            ]
        );
        let reads = |path: &str| {
            Reader::path(path)
                .read(&value)
                .iter()
                .any(|found| found.text == "x")
        };
        for (path, is_read) in paths.iter().zip([true, false, false, true, true, true]) {
            assert_eq!(reads(path), is_read, "{path}");
        }
        assert!(find(&json!("x"), "x") == ["$"] && Reader::path("$").read(&json!("x")).len() == 1);
        assert!(find(&json!(7), "7").is_empty());
    }

    #[test]
    fn siblings_are_the_other_texts_of_the_holder() {
        let value = json!([{"id": "a", "name": "Ann", "n": 1, "same": "a", "deep": {"x": "y"}}]);
        let found = Reader::path("$[*].id").read(&value);
        assert_eq!(found[0].siblings, ["Ann"]);
        assert!(
            Reader::path("$[*].deep.x").read(&value)[0]
                .siblings
                .is_empty()
        );
        let by_name = Reader::Key("x".to_owned()).read(&value);
        assert_eq!(by_name[0].text, "y");
    }

    #[test]
    fn a_key_like_form_is_four_characters_with_a_digit() {
        for (text, is_key) in [
            ("w105", true),
            ("105", false),
            ("order", false),
            ("äöü1", true),
            ("", false),
        ] {
            assert_eq!(is_key_like(text), is_key, "{text}");
        }
    }
}
