//! The text of a host's file, read as JSON with comments, and changed in places.

use std::ops::Range;

use jsonc_parser::ast::{Array, Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use thiserror::Error;

/// Why a file was not changed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EditError {
    /// The text is no JSON, comments and trailing commas aside.
    #[error("it is not JSON: {0}")]
    NotJson(String),
    /// It is JSON of another shape.
    #[error("{place} is not {wanted}")]
    Shape {
        /// Where.
        place: String,
        /// What should be there.
        wanted: &'static str,
    },
    /// A member is there more than once, so hosts may differ in which they take.
    #[error("{place} has {name:?} more than once; keep one of them")]
    Twice {
        /// Where.
        place: String,
        /// Which member.
        name: String,
    },
    /// There is no such server.
    #[error("it has no server {name:?}; {}", had(.others))]
    NoServer {
        /// The one that was asked for.
        name: String,
        /// Those that are there.
        others: Vec<String>,
    },
    /// There is one of that name.
    #[error("it has a server {name:?} already; put the proxy before it with --wrap {name}")]
    Exists {
        /// The name.
        name: String,
    },
    /// The server is behind a proxy.
    #[error("{name:?} is behind stretto-proxy already; take that out first, with stretto undo")]
    Wrapped {
        /// The server.
        name: String,
    },
    /// The server is not behind a proxy.
    #[error("{name:?} is not behind stretto-proxy, so there is nothing to undo")]
    NotWrapped {
        /// The server.
        name: String,
    },
    /// The entry holds what this cannot handle.
    #[error("{name:?} {what}")]
    Entry {
        /// The server.
        name: String,
        /// What it holds, and what to do.
        what: String,
    },
}

fn had(others: &[String]) -> String {
    match others {
        [] => "it has none at all".to_owned(),
        others => format!("it has {}", others.join(", ")),
    }
}

/// A text that was read.
pub(crate) struct Document<'a> {
    pub(crate) text: &'a str,
    pub(crate) root: Object<'a>,
}

const MARK: char = '\u{feff}';

/// What stands before the JSON, which is a byte-order mark or nothing, and the JSON.
pub(crate) fn split_mark(text: &str) -> (&str, &str) {
    text.strip_prefix(MARK)
        .map_or(("", text), |rest| text.split_at(text.len() - rest.len()))
}

impl<'a> Document<'a> {
    /// Reads a text that has no byte-order mark.
    pub(crate) fn parse(text: &'a str) -> Result<Self, EditError> {
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let read = parse_to_ast(text, &CollectOptions::default(), &options)
            .map_err(|error| EditError::NotJson(lower(&error.to_string())))?;
        match read.value {
            Some(Value::Object(root)) => Ok(Self { text, root }),
            Some(_) => Err(EditError::Shape {
                place: "it".to_owned(),
                wanted: "a JSON object",
            }),
            None => Err(EditError::NotJson("it is empty".to_owned())),
        }
    }

    /// A part of the text.
    pub(crate) fn slice(&self, range: Range<usize>) -> &'a str {
        self.text
            .get(range)
            .expect("the parser's ranges lie between characters of its text")
    }

    /// A part of the text as it is spelled.
    pub(crate) fn raw(&self, node: &impl Ranged) -> &'a str {
        self.slice(range(node))
    }

    /// Where whitespace and comments end that begin at `from`.
    pub(crate) fn after_trivia(&self, from: usize) -> usize {
        let mut at = from;
        loop {
            let rest = self.slice(at..self.text.len());
            let length = if let Some(comment) = rest.strip_prefix("/*") {
                comment.find("*/").map_or(rest.len(), |end| end + 4)
            } else if rest.starts_with("//") {
                rest.find(['\n', '\r']).unwrap_or(rest.len())
            } else {
                rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len()
            };
            if length == 0 {
                return at;
            }
            at += length;
        }
    }

    /// The whitespace before `at` when nothing else is before it on its line.
    pub(crate) fn indent(&self, at: usize) -> Option<&'a str> {
        let before = self.slice(0..at);
        let line = before.rfind('\n').map(|end| end + 1)?;
        let indent = self.slice(line..at);
        indent
            .chars()
            .all(|character| matches!(character, ' ' | '\t'))
            .then_some(indent)
    }

    /// How lines end here.
    pub(crate) fn line_end(&self) -> &'static str {
        if self.text.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        }
    }
}

fn lower(message: &str) -> String {
    let mut letters = message.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(letters).collect()
    })
}

/// Where a node stands.
pub(crate) fn range(node: &impl Ranged) -> Range<usize> {
    node.start()..node.end()
}

/// The only member of that name. `place` is what the object is called in an error.
pub(crate) fn member<'o, 'a>(
    object: &'o Object<'a>,
    name: &str,
    place: &str,
) -> Result<Option<(usize, &'o ObjectProp<'a>)>, EditError> {
    let mut found = object
        .properties
        .iter()
        .enumerate()
        .filter(|(_, member)| member.name.as_str() == name);
    let first = found.next();
    if found.next().is_some() {
        return Err(EditError::Twice {
            place: place.to_owned(),
            name: name.to_owned(),
        });
    }
    Ok(first)
}

/// The object that a member holds.
pub(crate) fn object<'o, 'a>(
    member: &'o ObjectProp<'a>,
    place: &str,
) -> Result<&'o Object<'a>, EditError> {
    match &member.value {
        Value::Object(object) => Ok(object),
        _ => Err(EditError::Shape {
            place: place.to_owned(),
            wanted: "a JSON object",
        }),
    }
}

/// The array that a member holds.
pub(crate) fn array<'o, 'a>(
    member: &'o ObjectProp<'a>,
    place: &str,
) -> Result<&'o Array<'a>, EditError> {
    match &member.value {
        Value::Array(array) => Ok(array),
        _ => Err(EditError::Shape {
            place: place.to_owned(),
            wanted: "a JSON array",
        }),
    }
}

/// The string that a value is.
pub(crate) fn string<'o>(value: &'o Value<'_>, place: &str) -> Result<&'o str, EditError> {
    match value {
        Value::StringLit(string) => Ok(&string.value),
        _ => Err(EditError::Shape {
            place: place.to_owned(),
            wanted: "a JSON string",
        }),
    }
}

/// Changes of a text, none of which overlaps another.
#[derive(Debug, Default)]
pub(crate) struct Changes(Vec<(Range<usize>, String)>);

impl Changes {
    /// Puts `new` in place of a range; in place of an empty one, that inserts it.
    pub(crate) fn replace(&mut self, range: Range<usize>, new: impl Into<String>) {
        self.0.push((range, new.into()));
    }

    /// The text with all changes made.
    pub(crate) fn apply(mut self, document: &Document<'_>) -> String {
        self.0.sort_by_key(|(range, _)| (range.start, range.end));
        let mut text = String::with_capacity(document.text.len() + 256);
        let mut done = 0;
        for (range, new) in self.0 {
            text.push_str(document.slice(done..range.start));
            text.push_str(&new);
            done = range.end;
        }
        text + document.slice(done..document.text.len())
    }
}
