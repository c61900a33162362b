//! Values in a recorded session that another session would not have: times, identifiers, hashes.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::toml_text::quoted;

/// The kinds that are told apart: the name that `changing` gives them, and what they look like.
const KINDS: [(&str, &str); 6] = [
    (
        "TIME",
        r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| ?[+-]\d\d:?\d\d)?",
    ),
    (
        "DATE",
        r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2} \d\d:\d\d:\d\d \d{4}",
    ),
    (
        "UUID",
        r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
    ),
    ("HASH", r"\b[0-9a-f]{40}\b|\b[0-9a-f]{64}\b"),
    ("EPOCH", r"\b1[5-9]\d{11}\b"),
    ("TEMP", r"/tmp/[A-Za-z0-9._-]+"),
];

static PATTERNS: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    let compile = |(name, pattern): (&'static str, &str)| {
        (
            name,
            Regex::new(pattern)
                .expect("the patterns above are written correctly, as the tests below show"),
        )
    };
    KINDS.into_iter().map(compile).collect()
});

/// How long a part of a text is that is expected to stay.
const MOST: usize = 60;

/// What changes in one session, and what was taken from its answers.
#[derive(Debug)]
pub(super) struct Changes {
    kinds: Vec<&'static str>,
    /// A value and the placeholder that stands for it from where it was taken.
    taken: Vec<(String, String)>,
}

impl Changes {
    /// What changes in these texts of the server's.
    pub(super) fn of(texts: impl Iterator<Item = String>) -> Self {
        let mut kinds = Vec::new();
        for text in texts {
            for (kind, pattern) in PATTERNS.iter() {
                if pattern.is_match(&text) && !kinds.contains(kind) {
                    kinds.push(*kind);
                }
            }
        }
        Self {
            kinds,
            taken: Vec::new(),
        }
    }

    /// The scenario's key that names what changes, with a comment; empty when nothing does.
    pub(super) fn table(&self) -> String {
        if self.kinds.is_empty() {
            return String::new();
        }
        let named = KINDS.iter().filter(|(kind, _)| self.kinds.contains(kind));
        let named: Vec<String> = named
            .map(|(kind, pattern)| format!("{kind} = '{pattern}'"))
            .collect();
        format!(
            "# Look: these change from run to run with the server itself, so the snapshot shows their names.\n\
             changing = {{ {} }}\n",
            named.join(", ")
        )
    }

    /// A part of the text that another session would have, too; nothing when there is none worth the words.
    pub(super) fn steady_part(text: &str) -> Option<String> {
        let mut pieces: Vec<&str> = text.lines().collect();
        for (_, pattern) in PATTERNS.iter() {
            pieces = pieces
                .into_iter()
                .flat_map(|piece| pattern.split(piece))
                .collect();
        }
        let cut = |piece: &str| -> String {
            piece
                .trim()
                .chars()
                .take(MOST)
                .collect::<String>()
                .trim_end()
                .to_owned()
        };
        let pieces: Vec<String> = pieces
            .into_iter()
            .map(cut)
            .filter(|piece| piece.chars().count() >= 2)
            .collect();
        // The first of the longest: a reader looks for it at the start.
        let longest = pieces.iter().map(|piece| piece.chars().count()).max()?;
        pieces
            .into_iter()
            .find(|piece| piece.chars().count() == longest)
    }

    /// What later lines pass on of this text's changing values, as `name = 'pattern'`.
    pub(super) fn take_from(&mut self, text: &str, later: &[String]) -> Option<String> {
        let mut takes = Vec::new();
        for (kind, pattern) in PATTERNS.iter() {
            for found in pattern.find_iter(text) {
                let value = found.as_str();
                let is_new = self.taken.iter().all(|(taken, _)| taken != value);
                if !is_new || !later.iter().any(|line| line.contains(value)) {
                    continue;
                }
                let before = text.get(..found.start()).unwrap_or_default();
                let line_start = before.rfind('\n').map_or(0, |at| at + 1);
                let lead = last_words(before.get(line_start..).unwrap_or_default());
                let whole = format!("{}({pattern})", regex::escape(lead));
                let first = Regex::new(&whole)
                    .ok()?
                    .captures(text)
                    .and_then(|found| Some(found.get(1)?.as_str().to_owned()));
                if first.as_deref() != Some(value) {
                    continue;
                }
                let name = format!("{}_{}", kind.to_lowercase(), self.taken.len() + 1);
                takes.push(format!("{name} = {}", quoted(&whole)));
                self.taken.push((value.to_owned(), name));
            }
        }
        (!takes.is_empty()).then(|| takes.join(", "))
    }

    /// The value with what was taken replaced by its placeholder.
    pub(super) fn put_in(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let filled = self.taken.iter().fold(text.clone(), |text, (taken, name)| {
                    replaced(&text, taken, name)
                });
                Value::String(filled)
            }
            Value::Array(items) => items.iter().map(|item| self.put_in(item)).collect(),
            Value::Object(members) => members
                .iter()
                .map(|(name, member)| (name.clone(), self.put_in(member)))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

/// The end of a line, from the start of a word.
fn last_words(text: &str) -> &str {
    const MOST: usize = 24;
    let starts = text
        .char_indices()
        .filter(|(at, c)| text.len() - at <= MOST && c.is_whitespace());
    let start = if text.len() <= MOST {
        0
    } else {
        starts
            .map(|(at, c)| at + c.len_utf8())
            .next()
            .unwrap_or(text.len())
    };
    text.get(start..).unwrap_or_default()
}

/// Replaces a value where no letter follows that the placeholder's name would swallow.
fn replaced(text: &str, value: &str, name: &str) -> String {
    let mut parts = text.split(value);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_swallowed = part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        if is_swallowed {
            whole.push_str(value);
        } else {
            whole.extend(["$", name]);
        }
        whole.push_str(part);
    }
    whole
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_is_found_and_ordinary_numbers_are_not() {
        let found = |text: &str| Changes::of(std::iter::once(text.to_owned())).kinds;
        assert_eq!(found("at 2026-11-30T22:30:05.123Z"), ["TIME"]);
        assert_eq!(found("Date: Mon Nov 30 22:30:05 2026"), ["DATE"]);
        assert_eq!(found("id 123e4567-e89b-12d3-a456-426614174000"), ["UUID"]);
        assert_eq!(
            found("commit 95d09f2b10159347eece71399a7e2e907ea3df4f"),
            ["HASH"]
        );
        assert_eq!(found("1790198400123"), ["EPOCH"]);
        assert_eq!(found("in /tmp/abc.1/x"), ["TEMP"]);
        assert!(found("order #W7a, 17 items, 2026, abcdef, 12345678901234567890").is_empty());
    }

    #[test]
    fn the_steady_part_leaves_out_what_changes() {
        let part = Changes::steady_part("saved at 2026-11-30T22:30:05Z by Ada Lovelace\nok");
        assert_eq!(part.as_deref(), Some("by Ada Lovelace"));
        assert_eq!(
            Changes::steady_part("95d09f2b10159347eece71399a7e2e907ea3df4f"),
            None
        );
    }

    #[test]
    fn what_is_passed_on_later_is_taken_by_what_stands_before_it() {
        let hash = "95d09f2b10159347eece71399a7e2e907ea3df4f";
        let text = format!("Commit: '{hash}'\nAuthor: Ada");
        let mut changes = Changes::of(std::iter::once(text.clone()));
        let take = changes
            .take_from(&text, &[format!("{{\"revision\":\"{hash}\"}}")])
            .unwrap();
        assert!(take.starts_with("hash_1 = \"Commit: '("), "{take}");
        assert_eq!(
            changes.put_in(&json!({ "revision": hash, "n": 1 })),
            json!({ "revision": "$hash_1", "n": 1 })
        );
        assert_eq!(changes.take_from(&text, &["nothing".to_owned()]), None);
    }
}
