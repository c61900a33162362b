//! `$NAME` in a scenario's texts: what only the run knows, a case's values, what a step took.
//!
//! Capitals are the runner's (`$DIR`), small letters the scenario's own (`$name`). `$$` is a
//! dollar sign, and so is a dollar sign that no letter follows.

use std::collections::BTreeMap;

use serde_json::Value;

/// The runner's own placeholders, with what each stands for.
pub(crate) const OWN: [(&str, &str); 10] = [
    ("DIR", "this run's folder"),
    ("LOGS", "a folder for session logs, inside $DIR"),
    ("CONTEXT", "the conversation file, inside $DIR"),
    ("CACHE", "a folder for the oracle's cache, inside $DIR"),
    ("HERE", "the scenario's folder"),
    ("SCENARIOS", "the folder of all scenarios"),
    ("URL", "the HTTP server's address"),
    ("DEMO", "the demo server's program"),
    (
        "SECRET",
        "a canary: it must show up in no file and no message",
    ),
    ("FILL", "as many letters as `fill` says"),
];

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// As it stands.
    Plain(&'a str),
    /// `$$`.
    Dollar,
    /// `$name`, without the sign.
    Name(&'a str),
}

/// A text, piece by piece.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        let name_ends = after
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(after.len());
        let (name, behind) = after.split_at(name_ends);
        if after.starts_with('$') {
            found.extend([Piece::Plain(before), Piece::Dollar]);
            rest = after.strip_prefix('$').unwrap_or_default();
        } else if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            found.extend([Piece::Plain(before), Piece::Name(name)]);
            rest = behind;
        } else {
            found.extend([Piece::Plain(before), Piece::Plain("$")]);
            rest = after;
        }
    }
    found.push(Piece::Plain(rest));
    found.retain(|piece| *piece != Piece::Plain(""));
    found
}

/// The names that a text refers to.
pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).into_iter().filter_map(|piece| match piece {
        Piece::Name(name) => Some(name),
        Piece::Plain(_) | Piece::Dollar => None,
    })
}

/// A text in which nothing is a placeholder, for a scenario that is written by a program.
pub(crate) fn escape(text: &str) -> String {
    text.replace('$', "$$")
}

/// What the placeholders stand for in one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(BTreeMap<String, String>);

impl Places {
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), value.into());
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The text with every placeholder replaced.
    ///
    /// # Errors
    ///
    /// The name of a placeholder that has no value in this run.
    pub(crate) fn fill(&self, text: &str) -> Result<String, String> {
        let mut filled = String::with_capacity(text.len());
        for piece in pieces(text) {
            filled.push_str(match piece {
                Piece::Plain(plain) => plain,
                Piece::Dollar => "$",
                Piece::Name(name) => self.get(name).ok_or_else(|| name.to_owned())?,
            });
        }
        Ok(filled)
    }

    /// The value with every placeholder in its texts replaced; member names stay.
    pub(crate) fn fill_value(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => Value::String(self.fill(text)?),
            Value::Array(items) => items
                .iter()
                .map(|item| self.fill_value(item))
                .collect::<Result<_, _>>()?,
            Value::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(name, member)| Ok((name.clone(), self.fill_value(member)?)))
                    .collect::<Result<_, String>>()?,
            ),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        })
    }
}

/// What to say about a placeholder that does not exist; `known` are the scenario's own.
pub(crate) fn unknown(name: &str, known: &[String]) -> String {
    let own = OWN.iter().map(|(name, _)| format!("${name}"));
    let all: Vec<String> = own
        .chain(known.iter().map(|name| format!("${name}")))
        .collect();
    format!(
        "there is no placeholder ${name}; there are {}; a dollar sign is written $$",
        all.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dollar_sign_before_no_letter_is_a_dollar_sign() {
        assert_eq!(
            pieces("5$ or $5, ^x$"),
            [
                Piece::Plain("5"),
                Piece::Plain("$"),
                Piece::Plain(" or "),
                Piece::Plain("$"),
                Piece::Plain("5, ^x"),
                Piece::Plain("$"),
            ]
        );
    }

    #[test]
    fn what_is_escaped_fills_back_to_itself() {
        let places = Places::default();
        for text in ["", "$", "$$", "$HOME and $$x", "a$b", "$1"] {
            assert_eq!(places.fill(&escape(text)).unwrap(), text);
        }
    }

    #[test]
    fn a_name_ends_where_no_letter_digit_or_underscore_stands() {
        let mut places = Places::default();
        places.set("DIR", "/tmp/x");
        assert_eq!(
            places.fill("$DIR/a.json:$DIR").unwrap(),
            "/tmp/x/a.json:/tmp/x"
        );
        assert_eq!(places.fill("$DIRS"), Err("DIRS".to_owned()));
    }
}
