//! Adding a server to a host's file.

use jsonc_parser::ast::Object;
use jsonc_parser::common::Ranged as _;

use crate::document::{Changes, Document, EditError, member, object, split_mark};
use crate::entry::literal;
use crate::{Entry, Host};

/// Adds a server as the last one to the text of a host's file, laid out as its neighbours are.
///
/// # Errors
///
/// The text is not such a file, or has a server of that name.
pub fn add(text: &str, host: Host, name: &str, entry: &Entry) -> Result<String, EditError> {
    let (mark, text) = split_mark(text);
    let document = Document::parse(text)?;
    let key = host.container();
    let new = match member(&document.root, key, "it")? {
        Some((_, found)) => {
            let servers = object(found, key)?;
            if member(servers, name, key)?.is_some() {
                return Err(EditError::Exists {
                    name: name.to_owned(),
                });
            }
            insert_last(&document, servers, name, |layout| match layout {
                Layout::OneLine => entry.one_line(host),
                Layout::Lines { indent, unit } => {
                    entry.lines(host, document.line_end(), indent, unit)
                }
            })
        }
        None => insert_last(&document, &document.root, key, |layout| {
            let name = literal(name);
            match layout {
                Layout::OneLine => format!("{{{name}: {}}}", entry.one_line(host)),
                Layout::Lines { indent, unit } => {
                    let line = document.line_end();
                    let deeper = format!("{indent}{unit}");
                    let entry = entry.lines(host, line, &deeper, unit);
                    format!("{{{line}{deeper}{name}: {entry}{line}{indent}}}")
                }
            }
        }),
    };
    Ok(format!("{mark}{new}"))
}

/// How the members around a place are laid out.
enum Layout<'a> {
    /// All on one line.
    OneLine,
    /// Each on a line of its own, after `indent`; what is in them has `unit` more.
    Lines { indent: &'a str, unit: &'a str },
}

fn insert_last(
    document: &Document<'_>,
    into: &Object<'_>,
    name: &str,
    value: impl Fn(&Layout<'_>) -> String,
) -> String {
    let line = document.line_end();
    let inside = |indent: &str, outer: &str| {
        let unit = indent.strip_prefix(outer).unwrap_or_default();
        let unit = if unit.is_empty() { "  " } else { unit }.to_owned();
        let layout = Layout::Lines {
            indent,
            unit: &unit,
        };
        format!("{line}{indent}{}: {}", literal(name), value(&layout))
    };
    // The brace may stand behind other things on its line; its line's indentation is what counts.
    let outer = {
        let before = document.slice(0..into.start());
        let from = before.rfind('\n').map_or(0, |end| end + 1);
        let of_line = document.slice(from..into.start());
        let blank = of_line.len() - of_line.trim_start_matches([' ', '\t']).len();
        document.slice(from..from + blank)
    };
    let mut changes = Changes::default();
    let Some(last) = into.properties.last() else {
        let unit = if outer.starts_with('\t') { "\t" } else { "  " };
        let indent = format!("{outer}{unit}");
        let end = into.end() - 1;
        let held = document.slice(into.start() + 1..end);
        let kept = into.start() + 1 + held.trim_end().len();
        let closing = if document.slice(kept..end).contains('\n') {
            String::new()
        } else {
            format!("{line}{outer}")
        };
        changes.replace(kept..kept, inside(&indent, outer) + &closing);
        return changes.apply(document);
    };
    let Some(indent) = document.indent(last.start()) else {
        changes.replace(
            last.end()..last.end(),
            format!(", {}: {}", literal(name), value(&Layout::OneLine)),
        );
        return changes.apply(document);
    };
    // A comment behind the last member, on its line, stays with it.
    let comma = document.after_trivia(last.end());
    let has_comma = document.slice(comma..into.end()).starts_with(',');
    let from = if has_comma { comma + 1 } else { last.end() };
    let trivia = document.slice(from..document.after_trivia(from));
    let place = from + rest_of_line(trivia);
    let new = inside(indent, outer);
    if has_comma {
        changes.replace(place..place, new + ",");
    } else if place == from {
        changes.replace(place..place, format!(",{new}"));
    } else {
        changes.replace(from..from, ",");
        changes.replace(place..place, new);
    }
    changes.apply(document)
}

/// How much of whitespace and comments belongs to what stands before it on its line: all up to
/// the end of the line's last comment.
fn rest_of_line(trivia: &str) -> usize {
    let (line, _) = trivia.split_once('\n').unwrap_or((trivia, ""));
    let line = line.trim_end();
    // A block comment that goes on in the next line belongs to what follows.
    let is_open = line.rfind("/*").is_some_and(|open| {
        !line.starts_with("//") && line.rfind("*/").is_none_or(|close| close < open)
    });
    if is_open { 0 } else { line.len() }
}
