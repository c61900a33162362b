//! Words for the screen: amounts, and text brought to a width.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::screen::safe;

/// A time since the session began, such as `12.345` seconds, `3:05.1` or `1:02:03`.
pub(super) fn elapsed(ms: u64) -> String {
    let (minutes, seconds) = (ms / 60_000, ms / 1000 % 60);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}.{:03}", ms % 1000),
        (0, minutes) => format!("{minutes}:{seconds:02}.{}", ms % 1000 / 100),
        (hours, minutes) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// How long something took, such as `7 ms`, `1.3 s`, `2 min 5 s` or `1 h 2 min`.
pub(super) fn duration(ms: u64) -> String {
    let (minutes, seconds) = (ms / 60_000, ms / 1000 % 60);
    match (minutes / 60, minutes % 60) {
        (0, 0) if ms < 1000 => format!("{ms} ms"),
        (0, 0) => format!("{seconds}.{} s", ms % 1000 / 100),
        (0, minutes) => format!("{minutes} min {seconds} s"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// An amount of data, such as `7 B`, `1.3 kB` (of 1000 bytes) or `2.0 MB`.
pub(super) fn size(bytes: usize) -> String {
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut tenths = bytes / 100;
    for unit in ["kB", "MB", "GB"] {
        if tenths < 10_000 {
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
        tenths /= 1000;
    }
    format!("{} TB", tenths / 10)
}

/// A whole number with its thousands apart, such as `12,345`.
pub(super) fn number(count: usize) -> String {
    let digits = count.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// How many of something, such as `1 call` or `2,000 calls`.
pub(super) fn count(count: usize, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {what}{ending}", number(count))
}

/// A name on one line, safe to show, and no longer than names should be.
pub(super) fn name(name: &str) -> String {
    const LONGEST: usize = 48;
    clip(&safe(head(name, 4 * LONGEST)), LONGEST).0
}

/// The beginning of `text`, of about `bytes` bytes: enough of it where the rest is not shown.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    match text
        .char_indices()
        .map(|(at, _)| at)
        .find(|at| *at >= bytes)
    {
        Some(end) => text.split_at(end).0,
        None => text,
    }
}

/// How many columns `text` takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// As much of `text` as fits into `columns`, and whether that is all of it.
///
/// What was cut off shows as `…`, which is within the columns.
pub(super) fn clip(text: &str, columns: usize) -> (String, bool) {
    let mut clipped = String::new();
    let mut used = 0;
    for character in text.chars() {
        let wide = character.width().unwrap_or(0);
        if used + wide > columns {
            while used + 1 > columns {
                let Some(last) = clipped.pop() else { break };
                used -= last.width().unwrap_or(0);
            }
            clipped.push('…');
            return (clipped, false);
        }
        used += wide;
        clipped.push(character);
    }
    (clipped, true)
}

/// `text` as lines of at most `columns`, broken at blanks where there are any.
///
/// Its own line breaks stay, and everything else that would steer a terminal is spelled out.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    for paragraph in safe_lines(text) {
        let mut line = String::new();
        let mut used = 0;
        for word in paragraph.split_inclusive(' ') {
            let mut word = word;
            if used > 0 && used + width(word.trim_end()) > columns {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
                used = 0;
            }
            // A word that is longer than a line is broken where the line ends.
            while used == 0 && width(word.trim_end()) > columns {
                let (head, tail) = word.split_at(fitting(word, columns));
                if tail.is_empty() {
                    break;
                }
                lines.push(head.to_owned());
                word = tail;
            }
            line.push_str(word);
            used += width(word);
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// How many bytes of `word` fit into `columns`, and at least its first character.
fn fitting(word: &str, columns: usize) -> usize {
    let mut used = 0;
    for (at, character) in word.char_indices() {
        used += character.width().unwrap_or(0);
        if used > columns && at > 0 {
            return at;
        }
    }
    word.len()
}

/// The lines of a text, safe to show, with tabs as blanks. Blank lines at its end are left out.
pub(super) fn safe_lines(text: &str) -> impl Iterator<Item = String> + '_ {
    text.trim_end()
        .split('\n')
        .map(|line| safe(&line.trim_end_matches('\r').replace('\t', "    ")).into_owned())
}

/// Whether `text` looks like a JSON object or array.
pub(super) fn looks_like_json(text: &str) -> bool {
    let text = text.trim();
    (text.starts_with('{') && text.ends_with('}')) || (text.starts_with('[') && text.ends_with(']'))
}

/// JSON on one line, each token spelled as it was. Text that is no JSON loses blanks.
pub(super) fn compact_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for token in tokens(text) {
        out.push_str(token);
    }
    out
}

/// JSON with a line for each member and item, each token spelled as it was.
pub(super) fn indented_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth: usize = 0;
    let mut is_empty = false;
    let new_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    for token in tokens(text) {
        match token {
            "}" | "]" => {
                depth = depth.saturating_sub(1);
                if !is_empty {
                    new_line(&mut out, depth);
                }
                is_empty = false;
                out.push_str(token);
                continue;
            }
            _ if is_empty => new_line(&mut out, depth),
            _ => {}
        }
        is_empty = false;
        out.push_str(token);
        match token {
            "{" | "[" => {
                depth += 1;
                is_empty = true;
            }
            "," => new_line(&mut out, depth),
            ":" => out.push(' '),
            _ => {}
        }
    }
    out
}

/// The tokens of JSON, without the blanks between them. Every text falls into tokens somehow.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let length = match first {
            '"' => string_length(rest),
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            _ => rest
                .find(|character: char| character.is_whitespace() || "{}[],:\"".contains(character))
                .unwrap_or(rest.len()),
        };
        let (token, tail) = rest.split_at(length);
        rest = tail;
        Some(token)
    })
}

/// How long the string is that `text` begins with, quotes included.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_well_at_every_scale() {
        assert_eq!(
            [9, 12_345, 185_190, 3_723_000].map(elapsed),
            ["0.009", "12.345", "3:05.1", "1:02:03"]
        );
        assert_eq!(
            [0, 999, 1000, 61_000, 3_723_000].map(duration),
            ["0 ms", "999 ms", "1.0 s", "1 min 1 s", "1 h 2 min"]
        );
        assert_eq!(
            [0, 999, 1000, 999_999, 1_000_000, 64_500_000, 2_000_000_000].map(size),
            [
                "0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "64.5 MB", "2.0 GB"
            ]
        );
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(number),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!([count(1, "call"), count(0, "call")], ["1 call", "0 calls"]);
    }

    #[test]
    fn clipped_text_never_takes_more_columns_than_it_may() {
        assert_eq!(clip("hello", 5), ("hello".into(), true));
        assert_eq!(clip("hello!", 5), ("hell…".into(), false));
        assert_eq!(clip("漢字漢字", 5), ("漢字…".into(), false));
        assert_eq!(clip("漢字漢字", 4), ("漢…".into(), false));
        for columns in 1..12 {
            assert!(width(&clip("a漢b字 cc 漢字", columns).0) <= columns);
        }
    }

    #[test]
    fn lines_break_at_blanks_or_where_a_word_is_too_long() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("one\n\n  two\r\n\n", 8), ["one", "", "  two"]);
        assert_eq!(wrap("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrap("漢字漢字", 4), ["漢字", "漢字"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("a\u{1b}b", 20), ["a\\u{1b}b"]);
        assert_eq!(wrap("漢", 1), ["漢"]);
    }

    #[test]
    fn json_keeps_its_tokens_on_one_line_and_on_many() {
        let json = r#" { "b" : [ 1.50, "x, \"{y}\" : \\" ] , "a" : { } , "c":[]}"#;
        assert_eq!(
            compact_json(json),
            r#"{"b":[1.50,"x, \"{y}\" : \\"],"a":{},"c":[]}"#
        );
        let expected = "{\n  \"b\": [\n    1.50,\n    \"x, \\\"{y}\\\" : \\\\\"\n  ],\n  \"a\": {},\n  \"c\": []\n}";
        assert_eq!(indented_json(json), expected);
        for odd in ["", "{", "\"", "\"\\", "}}]", "{a b,}", "é\"é"] {
            assert_eq!(compact_json(odd), odd.replace(' ', ""), "{odd}");
            assert_eq!(
                compact_json(&indented_json(odd)),
                odd.replace(' ', ""),
                "{odd}"
            );
        }
    }
}
