//! Words for a POSIX shell.

use std::borrow::Cow;

/// `word` as a shell reads it back: bare where that is safe, else in single quotes. A leading
/// `~` stays bare, with the slash after it, so that the shell puts the home directory there.
///
/// ```
/// assert_eq!(stretto_hosts::quote("it's"), r"'it'\''s'");
/// assert_eq!(stretto_hosts::quote("~/my logs"), "~/'my logs'");
/// ```
pub fn quote(word: &str) -> Cow<'_, str> {
    let is_bare =
        |character: char| character.is_ascii_alphanumeric() || "-_./:=@%+,~".contains(character);
    if !word.is_empty() && word.chars().all(is_bare) {
        return Cow::Borrowed(word);
    }
    // A shell looks for the home directory only while nothing before the slash is quoted.
    let (bare, rest) = ["~/", "~"]
        .into_iter()
        .find_map(|bare| word.strip_prefix(bare).map(|rest| (bare, rest)))
        .unwrap_or(("", word));
    Cow::Owned(format!("{bare}'{}'", rest.replace('\'', r"'\''")))
}

/// The words as one line for a shell.
pub fn command_line(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().copied().map(quote).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_bare_only_where_a_shell_leaves_them_alone() {
        for bare in [
            "npx",
            "-y",
            "@scope/server:1.2",
            "a=b",
            "~/.stretto/logs",
            "50%+,~",
        ] {
            assert_eq!(quote(bare), bare);
        }
        assert_eq!(quote(""), "''");
        assert_eq!(quote("a b"), "'a b'");
        assert_eq!(quote("$HOME;`id`"), "'$HOME;`id`'");
        assert_eq!(quote("é"), "'é'");
        assert_eq!(quote("~x y"), "~'x y'");
    }

    #[cfg(unix)]
    #[test]
    fn a_shell_reads_every_word_back() {
        let words = [
            "", "it's", "a\nb", "\\", "\"", "*", "x y", "!", "ü", "-n", "#", "a'b'c",
        ];
        let line = format!("printf '%s\\0' {}", command_line(&words));
        let output = std::process::Command::new("sh")
            .args(["-c", &line])
            .output()
            .unwrap();
        let read = String::from_utf8(output.stdout).unwrap();
        assert_eq!(read, words.map(|word| format!("{word}\0")).concat());
    }
}
