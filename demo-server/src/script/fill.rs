//! Placeholders: what a call brings, put into a text.

use serde_json::{Map, Value};

/// What a call brings to the placeholders of the rule it matched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filling<'a> {
    /// The call's arguments.
    pub(crate) arguments: &'a Value,
    /// What the groups of the rule's patterns matched.
    pub(crate) groups: &'a [String],
    /// Which call of the rule it is, from 1.
    pub(crate) n: u64,
}

/// A placeholder in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Placeholder<'a> {
    /// `{args}`
    Arguments,
    /// `{args.NAME}`
    Argument(&'a str),
    /// `{1}`
    Group(usize),
    /// `{n}`
    Count,
}

impl Placeholder<'_> {
    fn of(name: &str) -> Option<Placeholder<'_>> {
        if name == "n" {
            return Some(Placeholder::Count);
        }
        if name == "args" {
            return Some(Placeholder::Arguments);
        }
        if let Some(argument) = name.strip_prefix("args.") {
            return (!argument.is_empty()).then_some(Placeholder::Argument(argument));
        }
        let group: usize = name.parse().ok()?;
        (group > 0).then_some(Placeholder::Group(group))
    }
}

/// The pieces of a text: what stands between placeholders, and the placeholders.
///
/// A brace that begins no placeholder is text, so JSON in a text needs no escaping.
fn pieces(text: &str) -> impl Iterator<Item = Result<Placeholder<'_>, &str>> {
    let mut rest = text;
    let mut pending = None;
    std::iter::from_fn(move || {
        if let Some(placeholder) = pending.take() {
            return Some(Ok(placeholder));
        }
        if rest.is_empty() {
            return None;
        }
        let mut from = 0;
        while let Some(start) = rest
            .get(from..)
            .and_then(|tail| tail.find('{'))
            .map(|at| at + from)
        {
            let inside = rest.get(start + 1..).unwrap_or_default();
            let Some(length) = inside.find(['}', '{']) else {
                break;
            };
            let (name, tail) = inside.split_at(length);
            if let (Some(placeholder), Some(tail)) = (Placeholder::of(name), tail.strip_prefix('}'))
            {
                let before = rest.get(..start).unwrap_or_default();
                rest = tail;
                if before.is_empty() {
                    return Some(Ok(placeholder));
                }
                pending = Some(placeholder);
                return Some(Err(before));
            }
            from = start + 1;
        }
        Some(Err(std::mem::take(&mut rest)))
    })
}

impl Filling<'_> {
    /// The text with its placeholders filled.
    ///
    /// An argument that is text stands as it is, another as compact JSON, one that the call has
    /// not as nothing.
    pub(crate) fn text(&self, text: &str) -> String {
        let piece = |piece| match piece {
            Err(text) => String::from(text),
            Ok(Placeholder::Count) => self.n.to_string(),
            Ok(Placeholder::Arguments) => self.arguments.to_string(),
            Ok(Placeholder::Argument(name)) => match self.arguments.get(name) {
                None => String::new(),
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
            },
            Ok(Placeholder::Group(group)) => {
                self.groups.get(group - 1).cloned().unwrap_or_default()
            }
        };
        pieces(text).map(piece).collect()
    }

    /// The value with the placeholders of its texts and member names filled.
    pub(crate) fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => {
                let filled: Map<String, Value> = members
                    .iter()
                    .map(|(name, value)| (self.text(name), self.value(value)))
                    .collect();
                Value::Object(filled)
            }
            other => other.clone(),
        }
    }
}

/// The argument that a text names, when it is one placeholder and nothing else.
pub(crate) fn only_argument(text: &str) -> Option<&str> {
    let mut pieces = pieces(text);
    match (pieces.next(), pieces.next()) {
        (Some(Ok(Placeholder::Argument(name))), None) => Some(name),
        _ => None,
    }
}

/// The highest group that a value's placeholders name; 0 when they name none.
pub(crate) fn highest_group(value: &Value) -> usize {
    let in_text = |text: &str| {
        let groups = pieces(text).map(|piece| match piece {
            Ok(Placeholder::Group(group)) => group,
            _ => 0,
        });
        groups.max().unwrap_or(0)
    };
    match value {
        Value::String(text) => in_text(text),
        Value::Array(items) => items.iter().map(highest_group).max().unwrap_or(0),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| in_text(name).max(highest_group(value)))
            .max()
            .unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill(text: &str) -> String {
        let arguments = json!({"id": "#W7a", "n": 7, "list": [1, "a"]});
        Filling {
            arguments: &arguments,
            groups: &["7".into(), "a".into()],
            n: 3,
        }
        .text(text)
    }

    #[test]
    fn placeholders_are_filled() {
        assert_eq!(
            fill("{args.id} {1}{2} {n} {args.n} {args.list}"),
            r#"#W7a 7a 3 7 [1,"a"]"#
        );
        assert_eq!(fill("{args}"), r##"{"id":"#W7a","list":[1,"a"],"n":7}"##);
    }

    #[test]
    fn what_the_call_has_not_is_nothing() {
        assert_eq!(fill("[{args.other}{9}]"), "[]");
    }

    #[test]
    fn other_braces_are_text() {
        for text in [
            "",
            "{",
            "}",
            "{}",
            r#"{"a":{"b":1}}"#,
            "{args.}",
            "{0}",
            "{-1}",
            "{x}",
            "{args",
            "é{ü}",
        ] {
            assert_eq!(fill(text), text);
        }
        assert_eq!(fill(r#"{"a":"{n}"}"#), r#"{"a":"3"}"#);
        assert_eq!(fill("{{n}}"), "{3}");
    }

    #[test]
    fn texts_and_member_names_inside_values_are_filled() {
        let filling = Filling {
            arguments: &json!({"u": "7"}),
            groups: &[],
            n: 1,
        };
        let filled = filling.value(&json!({"card_{args.u}": [{"x": "{n}", "y": 2}]}));
        assert_eq!(filled, json!({"card_7": [{"x": "1", "y": 2}]}));
    }

    #[test]
    fn the_highest_group_is_found_wherever_it_stands() {
        assert_eq!(highest_group(&json!({"{2}": ["{1}", 5, "{n}"]})), 2);
        assert_eq!(highest_group(&json!(null)), 0);
    }

    #[test]
    fn an_argument_alone_is_told_from_a_text_around_it() {
        assert_eq!(only_argument("{args.delay_ms}"), Some("delay_ms"));
        assert_eq!(only_argument("{args.delay_ms} "), None);
        assert_eq!(only_argument("{n}"), None);
    }
}
