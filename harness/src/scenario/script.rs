//! Where in a scenario's file a complaint about its script belongs.
//!
//! The demo server reads the script as JSON and names places in that; a person looks for
//! them in the file that they wrote.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Scenario;
use super::slip::Source;

/// What the demo server begins a complaint about its script with.
const COMPLAINT: &str = "stretto-mcp-demo: the script ";

/// The complaint about the script in what a server wrote to stderr: the line in the scenario's
/// file, and what is wrong.
pub(crate) fn complaint(scenario: &Scenario, stderr: &str) -> Option<(usize, String)> {
    let said = stderr
        .lines()
        .find_map(|line| line.strip_prefix(COMPLAINT))?;
    let (_, what) = said.split_once(": ")?;
    // The place in the JSON says nothing about the file.
    let what = what
        .strip_prefix("line ")
        .and_then(|rest| rest.split_once(": "))
        .map_or(what, |(_, what)| what);
    let source = Source {
        path: &scenario.file,
        text: &scenario.text,
    };
    let tree = DeTable::parse(&scenario.text).ok()?;
    let (key, script) = tree.get_ref().get_key_value("script")?;
    let span = place(script, what).unwrap_or_else(|| key.span());
    Some((source.line_of(span.start), what.to_owned()))
}

/// The place that a complaint names: an entry such as `answers[1]`, or a member by its name.
fn place(script: &Spanned<DeValue<'_>>, what: &str) -> Option<Range<usize>> {
    static ENTRY: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^([a-z]+)\[(\d+)\]")
            .expect("the pattern is written correctly, as the tests below show")
    });
    static FIELD: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"unknown (?:field|variant) `([^`]+)`")
            .expect("the pattern is written correctly, as the tests below show")
    });
    if let Some(entry) = ENTRY.captures(what) {
        let list = script.get_ref().get(entry.get(1)?.as_str())?;
        let at: usize = entry.get(2)?.as_str().parse().ok()?;
        return Some(list.get_ref().get(at)?.span());
    }
    let name = FIELD.captures(what)?.get(1)?.as_str().to_owned();
    named(script, &name)
}

/// The first member or text of this name, however deep.
fn named(value: &Spanned<DeValue<'_>>, name: &str) -> Option<Range<usize>> {
    match value.get_ref() {
        DeValue::Table(members) => members.iter().find_map(|(key, member)| {
            if key.get_ref() == name {
                return Some(key.span());
            }
            named(member, name)
        }),
        DeValue::Array(items) => items.iter().find_map(|item| named(item, name)),
        DeValue::String(text) if text == name => Some(value.span()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scenario::read_text;

    #[test]
    fn a_complaint_is_moved_to_the_line_of_the_file() {
        let text = "title = \"x\"\nscript.world = \"echo\"\nscript.answers = [\n  { tool = \"a\" },\n  { tool = \"b\", falt = 1 },\n]\nsteps = [{ request = \"ping\" }]\n";
        let scenario = read_text(Path::new("x.toml"), "x", text).unwrap().remove(0);
        let table = [
            (
                "line 1, column 19: unknown field `falt`, expected one of `name`",
                5,
                "unknown field `falt`",
            ),
            (
                "answers[1]: fault: `exit` is between 0 and 255",
                5,
                "answers[1]: fault",
            ),
            ("answers[0].args: no", 4, "answers[0].args"),
            ("something else", 2, "something else"),
        ];
        for (said, line, starts) in table {
            let stderr =
                format!("stretto-proxy: recording to x\n{COMPLAINT}/tmp/x/script.json: {said}\n");
            let (at, what) = complaint(&scenario, &stderr).unwrap();
            assert_eq!(at, line, "{said}");
            assert!(what.starts_with(starts), "{what}");
        }
        assert_eq!(complaint(&scenario, "stretto-mcp-demo: something"), None);
    }
}
