//! What differs from run to run gets a name in brackets, and the same value the same name.
//!
//! Values that the run knows (its folders, its session, its port) are replaced by value,
//! wherever they stand. Numbers are replaced at the members that are known to hold times.
//! Nothing is replaced only because it looks like something that changes, except what a
//! scenario itself says under `changing`.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem;
use regex::{Captures, Regex};
use sha2::{Digest as _, Sha256};

use crate::scenario::Changing;
use crate::text::append;

/// Lines of a transcript longer than this are cut in the middle of nowhere; the rest is a hash.
const LONGEST_LINE: usize = 4_000;

/// How much of a line that is cut still shows.
const SHOWN: usize = 300;

/// Replaces what the run knows by value; `names` are sorted so that longer values come first.
pub(crate) fn by_value<'a>(text: &'a str, names: &[(String, String)]) -> Cow<'a, str> {
    let mut text = Cow::Borrowed(text);
    for (value, name) in names {
        if memmem::find(text.as_bytes(), value.as_bytes()).is_some() {
            text = Cow::Owned(text.replace(value, name));
        }
    }
    text
}

/// A line of a log, with its times named.
pub(crate) fn log_line(line: &str) -> Cow<'_, str> {
    static TIMES: LazyLock<Regex> = LazyLock::new(|| pattern(r#"^\{"t_ms":\d+"#));
    static BEGAN: LazyLock<Regex> = LazyLock::new(|| pattern(r#""started_unix_ms":\d+"#));
    static TOOK: LazyLock<Regex> = LazyLock::new(|| pattern(r#"("ms":)[0-9.]+"#));
    if line.starts_with("{\"t_ms\"") {
        TIMES.replace(line, r#"{"t_ms":[MS]"#)
    } else if line.starts_with("{\"stretto_mcp_log\"") {
        BEGAN.replace(line, "\"started_unix_ms\":[UNIX_MS]")
    } else {
        TOOK.replace_all(line, "${1}[MS]")
    }
}

/// A line with the versions of servers named: they change with every release.
pub(crate) fn versions(line: &str) -> Cow<'_, str> {
    static VERSION: LazyLock<Regex> =
        LazyLock::new(|| pattern(r#"("serverInfo":\{(?:[^{}]*,)?"version":")[^"]*"#));
    if memmem::find(line.as_bytes(), b"\"serverInfo\"").is_none() {
        return Cow::Borrowed(line);
    }
    VERSION.replace_all(line, "${1}[VERSION]")
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the patterns above are written correctly, as the tests below show")
}

/// Replaces what the scenario says changes. The first value of a kind is `[NAME]`, the next `[NAME_2]`.
pub(crate) fn changing(text: &str, kinds: &[Changing]) -> String {
    let mut text = text.to_owned();
    for kind in kinds {
        let mut values: Vec<String> = Vec::new();
        text = kind
            .pattern
            .replace_all(&text, |found: &Captures<'_>| {
                let whole = found.get(0).map(|found| found.as_str()).unwrap_or_default();
                let value = found.get(1).map_or(whole, |found| found.as_str());
                let known = values.iter().position(|other| other == value);
                let place = known.unwrap_or_else(|| {
                    values.push(value.to_owned());
                    values.len() - 1
                });
                let name = match place {
                    0 => format!("[{}]", kind.name),
                    _ => format!("[{}_{}]", kind.name, place + 1),
                };
                whole.replacen(value, &name, 1)
            })
            .into_owned();
    }
    text
}

/// A line that a person can still look at: one that is very long is cut, and its length and hash stand for the rest.
pub(crate) fn shortened(line: &str) -> Cow<'_, str> {
    if line.len() <= LONGEST_LINE {
        return Cow::Borrowed(line);
    }
    let cut = (0..=SHOWN)
        .rev()
        .find(|at| line.is_char_boundary(*at))
        .unwrap_or_default();
    let (shown, _) = line.split_at(cut);
    let mut hash = String::new();
    for byte in Sha256::digest(line.as_bytes()).iter().take(6) {
        append(&mut hash, format_args!("{byte:02x}"));
    }
    Cow::Owned(format!(
        "{shown}… [{} bytes in all, sha256 {hash}]",
        line.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str, pattern: &str) -> Changing {
        Changing {
            name: name.to_owned(),
            pattern: Regex::new(pattern).unwrap(),
        }
    }

    #[test]
    fn a_value_keeps_its_name_and_another_gets_the_next_number() {
        let text = changing("a=7 b=8 c=7", &[kind("ID", r"=(\d)")]);
        assert_eq!(text, "a=[ID] b=[ID_2] c=[ID]");
    }

    #[test]
    fn only_the_group_is_replaced() {
        assert_eq!(
            changing("commit 7 of 7", &[kind("HASH", "commit ([0-9]+)")]),
            "commit [HASH] of 7"
        );
    }

    #[test]
    fn times_are_replaced_only_where_the_log_has_them() {
        let entry = r#"{"t_ms":12,"from":"client","message":{"id":1,"t_ms":12,"ms":5}}"#;
        assert_eq!(
            log_line(entry),
            r#"{"t_ms":[MS],"from":"client","message":{"id":1,"t_ms":12,"ms":5}}"#
        );
        let header = r#"{"stretto_mcp_log":2,"session":"x","started_unix_ms":17}"#;
        assert_eq!(
            log_line(header),
            r#"{"stretto_mcp_log":2,"session":"x","started_unix_ms":[UNIX_MS]}"#
        );
        assert_eq!(
            log_line(r#"{"tool":"x","ms":17.5}"#),
            r#"{"tool":"x","ms":[MS]}"#
        );
    }

    #[test]
    fn a_servers_version_is_replaced_wherever_the_member_stands() {
        let first = r#"{"result":{"serverInfo":{"version":"1.2","name":"x"}}}"#;
        assert_eq!(
            versions(first),
            r#"{"result":{"serverInfo":{"version":"[VERSION]","name":"x"}}}"#
        );
        let last = r#"{"result":{"serverInfo":{"name":"x","version":"1.2"}}}"#;
        assert_eq!(
            versions(last),
            r#"{"result":{"serverInfo":{"name":"x","version":"[VERSION]"}}}"#
        );
    }

    #[test]
    fn a_folder_does_not_hide_what_is_in_it() {
        let names = [
            ("/t/dir/logs".to_owned(), "[LOGS]".to_owned()),
            ("/t/dir".to_owned(), "[DIR]".to_owned()),
        ];
        assert_eq!(
            by_value("/t/dir/logs/a /t/dir/b", &names),
            "[LOGS]/a [DIR]/b"
        );
    }

    #[test]
    fn two_long_lines_that_differ_at_the_end_look_different() {
        let (one, two) = ("é".repeat(4_000), format!("{}x", "é".repeat(4_000)));
        assert_ne!(shortened(&one), shortened(&two));
        assert!(shortened(&one).len() < 400);
        assert_eq!(shortened("short"), "short");
    }
}
