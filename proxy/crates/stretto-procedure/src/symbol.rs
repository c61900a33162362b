//! Symbols: arguments that stand as where they come from.
//!
//! `@ticket` and a shape is a piece of the ticket; `@TOOL$PATH` is a value of an earlier result, and
//! with `?{FIELDS}` one of a record that has those fields.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::ticket::is_named;

/// What symbols are looked up in.
pub(crate) struct Known<'a> {
    pub(crate) ticket: &'a str,
    pub(crate) identifiers: &'a HashSet<String>,
    /// Successful results, oldest first, each with its tool.
    pub(crate) results: &'a [(String, Value)],
    /// What was passed before as the argument that the symbol is for.
    pub(crate) passed: Option<&'a HashSet<String>>,
}

impl Known<'_> {
    /// What a symbol stands for, without its `@`. Nothing if there is no such thing, or if it
    /// cannot be read.
    pub(crate) fn value_of(&self, symbol: &str) -> Option<String> {
        if let Some(shape) = symbol.strip_prefix("ticket") {
            // A tool may have a name that begins with that word.
            if !symbol.contains('$') || Reference::read(symbol).is_none() {
                return find(&read_shape(shape)?, self.ticket);
            }
        }
        self.referred(&Reference::read(symbol)?)
    }

    fn referred(&self, reference: &Reference<'_>) -> Option<String> {
        let results = self.results.iter().rev();
        let mut candidates = results
            .filter(|(tool, _)| tool == reference.tool)
            .filter_map(|(_, result)| Some((self.candidate(reference, result)?, result)));
        let newest = candidates.next()?;
        if reference.has_each() {
            return Some(newest.0);
        }
        let mut all = std::iter::once(newest.clone()).chain(candidates);
        let named = all.find(|(_, result)| is_named(result, self.identifiers));
        Some(named.unwrap_or(newest).0)
    }

    /// What one result has to offer.
    fn candidate(&self, reference: &Reference<'_>, result: &Value) -> Option<String> {
        let is_new = |value: &str| self.passed.is_none_or(|passed| !passed.contains(value));
        let mut found = Vec::new();
        collect(result, &reference.steps, None, &mut found);
        let chosen = found.iter().find(|(value, record)| {
            let fields = reference.fields.as_ref();
            fields.is_some_and(|fields| is_new(value) && has_all(*record, fields))
        });
        let mut rest = found
            .iter()
            .filter(|(value, _)| !reference.has_each() || is_new(value));
        chosen
            .or_else(|| rest.next())
            .map(|(value, _)| (*value).to_owned())
    }
}

/// A place in a tool's results.
struct Reference<'a> {
    tool: &'a str,
    steps: Vec<Step<'a>>,
    /// What sets the wanted record apart.
    fields: Option<Map<String, Value>>,
}

enum Step<'a> {
    Member(&'a str),
    Each,
}

impl<'a> Reference<'a> {
    fn read(symbol: &'a str) -> Option<Self> {
        let (tool, path) = symbol.split_once('$')?;
        let (path, fields) = match path.split_once('?') {
            Some((path, fields)) => (path, Some(serde_json::from_str(fields).ok()?)),
            None => (path, None),
        };
        let mut steps = Vec::new();
        let mut rest = path;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("[*]") {
                steps.push(Step::Each);
                rest = after;
            } else {
                let name = rest.strip_prefix('.')?;
                let end = name.find(['.', '[']).unwrap_or(name.len());
                let (name, after) = name.split_at(end);
                steps.push(Step::Member(name));
                rest = after;
            }
        }
        Some(Self {
            tool,
            steps,
            fields,
        })
    }

    fn has_each(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Each))
    }
}

/// All texts at a path, each with the element that the path's last `[*]` led through.
fn collect<'v>(
    value: &'v Value,
    steps: &[Step<'_>],
    record: Option<&'v Value>,
    found: &mut Vec<(&'v str, Option<&'v Value>)>,
) {
    match (steps.split_first(), value) {
        (None, Value::String(text)) => found.push((text, record)),
        (Some((Step::Member(name), rest)), Value::Object(members)) => {
            if let Some(member) = members.get(*name) {
                collect(member, rest, record, found);
            }
        }
        (Some((Step::Each, rest)), Value::Array(items)) => {
            for item in items {
                collect(item, rest, Some(item), found);
            }
        }
        _ => {}
    }
}

fn has_all(record: Option<&Value>, fields: &Map<String, Value>) -> bool {
    record.is_some_and(|record| {
        fields
            .iter()
            .all(|(name, value)| record.get(name) == Some(value))
    })
}

/// One character of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fits {
    Digit,
    Only(char),
}

/// The largest number of digits that a shape may ask for at once: no ticket has more.
const MOST_DIGITS: usize = 10_000;

/// Reads a shape: `\d{N}`, `\d`, `\` before a character that is meant as it is, and characters.
fn read_shape(shape: &str) -> Option<Vec<Fits>> {
    let mut fits = Vec::new();
    let mut rest = shape;
    while let Some(letter) = rest.chars().next() {
        rest = rest.strip_prefix(letter)?;
        if letter != '\\' {
            fits.push(Fits::Only(letter));
            continue;
        }
        let escaped = rest.chars().next()?;
        rest = rest.strip_prefix(escaped)?;
        if escaped != 'd' {
            fits.push(Fits::Only(escaped));
            continue;
        }
        let mut count = 1;
        if let Some(counted) = rest.strip_prefix('{') {
            let (number, after) = counted.split_once('}')?;
            count = number.parse().ok().filter(|count| *count <= MOST_DIGITS)?;
            rest = after;
        }
        fits.extend(std::iter::repeat_n(Fits::Digit, count));
    }
    Some(fits)
}

/// The first place in a text that fits.
fn find(shape: &[Fits], text: &str) -> Option<String> {
    let letters: Vec<char> = text.chars().collect();
    if shape.is_empty() {
        return Some(String::new());
    }
    let fits = |(fit, letter): (&Fits, &char)| match fit {
        Fits::Digit => letter.is_ascii_digit(),
        Fits::Only(own) => own == letter,
    };
    letters
        .windows(shape.len())
        .find(|place| shape.iter().zip(*place).all(fits))
        .map(|place| place.iter().collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ticket::identifiers;

    fn results() -> Vec<(String, Value)> {
        [
            ("get_customer_by_phone", json!({"customer_id": "C7", "line_ids": ["L7", "L8"]})),
            ("get_details_by_id", json!({"line_id": "L7", "phone_number": "555-0107"})),
            ("get_details_by_id", json!({"line_id": "L8", "phone_number": "555-0108"})),
            (
                "get_bills_for_customer",
                json!([{"bill_id": "B1", "status": "Paid"}, {"bill_id": "B2", "status": "Overdue"}]),
            ),
        ]
        .map(|(tool, result)| (tool.to_owned(), result))
        .into()
    }

    fn value(symbol: &str, ticket: &str, passed: &[&str]) -> Option<String> {
        let passed = passed.iter().map(|value| (*value).to_owned()).collect();
        Known {
            ticket,
            identifiers: &identifiers(ticket),
            results: &results(),
            passed: Some(&passed),
        }
        .value_of(symbol)
    }

    #[test]
    fn symbols_stand_for_what_they_name() {
        let overdue = r#"get_bills_for_customer$[*].bill_id?{"status": "Overdue"}"#;
        for (symbol, ticket, passed, wanted) in [
            (
                "get_customer_by_phone$.line_ids[*]",
                "",
                &["L7"][..],
                Some("L8"),
            ),
            (
                "get_customer_by_phone$.line_ids[*]",
                "",
                &["L7", "L8"],
                None,
            ),
            ("get_details_by_id$.line_id", "", &[], Some("L8")),
            (
                "get_details_by_id$.line_id",
                "my number is 555-0107",
                &[],
                Some("L7"),
            ),
            // Without a `[*]`, what was passed may be passed again.
            ("get_details_by_id$.line_id", "", &["L8"], Some("L8")),
            (overdue, "", &[], Some("B2")),
            (overdue, "", &["B2"], Some("B1")),
            (
                r"ticket\d{3}\-\d{4}",
                "call 555-0199",
                &[],
                Some("555-0199"),
            ),
            ("get_payment_methods$.id", "", &[], None),
            ("get_customer_by_phone$.line_ids", "", &[], None),
            ("get_customer_by_phone$line_ids", "", &[], None),
            ("get_customer_by_phone", "", &[], None),
            ("get_bills_for_customer$[*].bill_id?{", "", &[], None),
        ] {
            assert_eq!(value(symbol, ticket, passed).as_deref(), wanted, "{symbol}");
        }
    }

    #[test]
    fn a_shape_fits_its_leftmost_place() {
        for (shape, ticket, wanted) in [
            (r"\d", "a 12", Some("1")),
            (r"L\d{2}", "L1 L23 L45", Some("L23")),
            (
                r"\d{3}\-\d{3}\-\d{4}",
                "call 555-010-2002 or 555-010-2003",
                Some("555-010-2002"),
            ),
            (r"é\.", "café.", Some("é.")),
            (r"\d{2", "12", None),
            (r"\d{x}", "12", None),
            ("a\\", "a", None),
            (r"\d{99999999999999999999}", "12", None),
        ] {
            assert_eq!(
                value(&format!("ticket{shape}"), ticket, &[]).as_deref(),
                wanted,
                "{shape}"
            );
        }
    }
}
