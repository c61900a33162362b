//! What a ticket says.

use std::collections::HashSet;

use serde_json::Value;

/// The words of a ticket, in small letters: runs of `a` to `z`, and pairs of neighbours.
pub(crate) fn words(ticket: &str) -> HashSet<String> {
    let ticket = ticket.to_lowercase();
    let words: Vec<&str> = ticket
        .split(|letter: char| !letter.is_ascii_lowercase())
        .filter(|word| !word.is_empty())
        .collect();
    let pairs = words.windows(2).map(|pair| pair.join(" "));
    words
        .iter()
        .map(|word| (*word).to_owned())
        .chain(pairs)
        .collect()
}

/// The shortest identifier.
const SHORTEST: usize = 4;

/// What a ticket names: runs of letters, digits, `_`, `.`, `@` and `-` that have a digit.
pub(crate) fn identifiers(ticket: &str) -> HashSet<String> {
    ticket
        .split(|letter: char| !(letter.is_alphanumeric() || "_.@-".contains(letter)))
        .filter(|run| run.chars().count() >= SHORTEST && has_digit(run))
        .map(str::to_owned)
        .collect()
}

pub(crate) fn has_digit(text: &str) -> bool {
    text.contains(|letter: char| letter.is_ascii_digit())
}

/// Whether a text or a number in `value`, at any depth, is one of the identifiers.
pub(crate) fn is_named(value: &Value, identifiers: &HashSet<String>) -> bool {
    match value {
        Value::String(text) => identifiers.contains(text),
        Value::Number(number) => identifiers.contains(&number.to_string()),
        Value::Array(items) => items.iter().any(|item| is_named(item, identifiers)),
        Value::Object(members) => members.values().any(|member| is_named(member, identifiers)),
        Value::Null | Value::Bool(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_runs_of_letters_and_pairs_of_them() {
        let wanted = ["abroad", "in", "france", "abroad in", "in france"];
        assert_eq!(
            words("Abroad, in 2 FRANCE!"),
            wanted.map(str::to_owned).into()
        );
        let cut = ["caf", "noir", "caf noir"];
        assert_eq!(words("café noir"), cut.map(str::to_owned).into());
    }

    #[test]
    fn identifiers_have_a_digit_and_four_characters() {
        let found =
            identifiers("L7, line L7001 of ana@x1.org at 555-010-2002. Call 15.0 or bob-smith");
        let wanted = ["L7001", "ana@x1.org", "555-010-2002.", "15.0"];
        assert_eq!(found, wanted.map(str::to_owned).into());
    }

    #[test]
    fn a_value_is_named_at_any_depth_and_by_its_spelling() {
        let names = identifiers("15.0 and L7001");
        assert!(is_named(&json!({"a": [{"b": "L7001"}]}), &names));
        assert!(is_named(&json!([15.0]), &names));
        assert!(!is_named(&json!({"L7001": "L700", "n": 15}), &names));
    }
}
