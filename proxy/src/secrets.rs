//! What a log's header may show of a server's command or URL.

use reqwest::Url;

/// What stands in place of a secret.
const REDACTED: &str = "<redacted>";

/// A name that holds one of these, in any case, names a secret.
const SECRET_WORDS: [&str; 7] = [
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "credential",
    "auth",
];

/// The command with the values of arguments that look like credentials left out.
///
/// This is a best effort: credentials belong into the environment, which is never shown.
pub(crate) fn shown_command(words: impl IntoIterator<Item: AsRef<str>>) -> Vec<String> {
    let mut after_secret_flag = false;
    let mut shown = Vec::new();
    for word in words {
        let word = word.as_ref();
        let is_value = after_secret_flag && !word.starts_with('-');
        after_secret_flag = word.starts_with('-') && !word.contains('=') && names_secret(word);
        shown.push(if is_value {
            REDACTED.into()
        } else {
            shown_word(word)
        });
    }
    shown
}

fn shown_word(word: &str) -> String {
    let lower = word.to_lowercase();
    if lower.starts_with("authorization:") || lower.contains("bearer ") {
        return REDACTED.into();
    }
    let shown = match (word.split_once('='), word.split_once(": ")) {
        (Some((name, _)), _) if names_secret(name) => format!("{name}={REDACTED}"),
        (_, Some((name, _))) if names_secret(name) => format!("{name}: {REDACTED}"),
        _ => word.to_owned(),
    };
    if shown.contains("://") {
        shown_url(&shown)
    } else {
        shown
    }
}

/// The URL of a server as a log's header shows it: as it was given, less its secrets.
///
/// What a URL parser makes of it counts: it takes `https:/me:password@host` for the same as
/// with two slashes. Where the text alone does not tell, the parsed form is shown.
pub(crate) fn shown_upstream(url: &str) -> String {
    let shown = shown_url(url);
    let Ok(mut parsed) = Url::parse(url) else {
        return shown;
    };
    let is_same = |other: &Url| {
        other.host() == parsed.host() && other.username().is_empty() && other.password().is_none()
    };
    if shown.contains("://") && Url::parse(&shown).is_ok_and(|shown| is_same(&shown)) {
        return shown;
    }
    // Only a URL that cannot have a user refuses to lose it.
    parsed.set_username("").ok();
    parsed.set_password(None).ok();
    shown_url(parsed.as_str())
}

/// The URL without a user and a password, and without the values of query parameters that name secrets.
///
/// A URL that cannot be parsed is handled the same way.
pub(crate) fn shown_url(url: &str) -> String {
    let (before_fragment, fragment) = cut_before(url, '#');
    let (address, query) = cut_before(before_fragment, '?');
    let mut shown = without_user(address);
    if let Some(query) = query.strip_prefix('?') {
        let parameters: Vec<String> = query.split('&').map(shown_parameter).collect();
        shown.push('?');
        shown.push_str(&parameters.join("&"));
    }
    shown + fragment
}

fn shown_parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, _)) if names_secret(&unescaped(name)) => format!("{name}={REDACTED}"),
        _ => parameter.to_owned(),
    }
}

/// A parameter's name without percent escapes, and without the characters that URL parsers skip.
fn unescaped(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        let escaped = after
            .first_chunk::<2>()
            .filter(|_| first == b'%')
            .and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None if matches!(first, b'\t' | b'\r' | b'\n') => {}
            None => bytes.push(first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn without_user(address: &str) -> String {
    let (scheme, rest) = address
        .find("://")
        .map_or(("", address), |at| address.split_at(at + "://".len()));
    let (authority, path) = cut_before(rest, '/');
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{scheme}{host}{path}")
}

/// What stands before the first `mark`, and the rest, which starts with it.
fn cut_before(text: &str, mark: char) -> (&str, &str) {
    text.find(mark).map_or((text, ""), |at| text.split_at(at))
}

fn names_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(words: &[&str]) -> Vec<String> {
        shown_command(words)
    }

    #[test]
    fn values_of_credentials_are_left_out() {
        assert_eq!(shown(&["--api-key", "sk-123"]), ["--api-key", REDACTED]);
        assert_eq!(shown(&["--token=abc"]), ["--token=<redacted>"]);
        assert_eq!(
            shown(&["GITHUB_TOKEN=ghp_4=x"]),
            ["GITHUB_TOKEN=<redacted>"]
        );
        assert_eq!(
            shown(&["--header", "Authorization: Bearer x"]),
            ["--header", REDACTED]
        );
        assert_eq!(shown(&["X: BEARER abc"]), [REDACTED]);
        assert_eq!(
            shown(&["-H", "x=1", "authorization:abc"]),
            ["-H", "x=1", REDACTED]
        );
        assert_eq!(
            shown(&["-H", "X-Api-Key: abc"]),
            ["-H", "X-Api-Key: <redacted>"]
        );
        assert_eq!(
            shown(&["--My-Passwd", "a", "b"]),
            ["--My-Passwd", REDACTED, "b"]
        );
    }

    #[test]
    fn what_is_no_credential_is_shown() {
        for words in [
            vec!["--no-auth", "--port", "8080"],
            vec!["npx", "-y", "some-server", "--region=eu", "key"],
            vec!["--key", "--other", "value"],
            vec!["tokenizer", "file"],
        ] {
            assert_eq!(shown(&words), words);
        }
    }

    #[test]
    fn urls_among_the_words_are_shown_as_urls() {
        assert_eq!(
            shown(&["https://h/mcp?access_token=7"]),
            ["https://h/mcp?access_token=<redacted>"]
        );
        assert_eq!(
            shown(&["https://h/mcp?a=1&key=7"]),
            ["https://h/mcp?a=1&key=<redacted>"]
        );
        assert_eq!(
            shown(&["https://me:pw@h/?token=7&a=1"]),
            ["https://h/?token=<redacted>"]
        );
        assert_eq!(shown(&["postgres://me:pw@h/db"]), ["postgres://h/db"]);
        assert_eq!(
            shown(&["--url=https://me:pw@h/?a=1&token=x"]),
            ["--url=https://h/?a=1&token=<redacted>"]
        );
        assert_eq!(shown(&["--auth-url=https://h/"]), ["--auth-url=<redacted>"]);
    }

    #[test]
    fn a_url_keeps_all_but_its_secrets() {
        assert_eq!(
            shown_url("https://me:pa55@example.com:8443/mcp?token=abc&region=eu#x"),
            "https://example.com:8443/mcp?token=<redacted>&region=eu#x"
        );
        assert_eq!(
            shown_url("me:pa55@example.com/mcp?API_Key=1"),
            "example.com/mcp?API_Key=<redacted>"
        );
        assert_eq!(shown_url("http://a@b@c/x@y"), "http://c/x@y");
        assert_eq!(shown_url("http://h?token&x="), "http://h?token&x=");
        assert_eq!(shown_url("http://h/#/?token=1"), "http://h/#/?token=1");
        assert_eq!(shown_url(""), "");
    }

    #[test]
    fn a_url_of_an_odd_form_keeps_its_secrets_too() {
        for (url, shown) in [
            (
                "https://me:pa55@example.com/mcp?token=abc",
                "https://example.com/mcp?token=<redacted>",
            ),
            ("https:/me:pa55@example.com/mcp", "https://example.com/mcp"),
            ("https:me:pa55@example.com/mcp", "https://example.com/mcp"),
            (
                "http:\\\\me:pa55@example.com\\mcp",
                "http://example.com/mcp",
            ),
            ("https:///me:pa55@example.com", "https://example.com/"),
            ("https://me:pa\t55@example.com/", "https://example.com/"),
            (
                "https://example.com/?to%6ben=abc&a=1",
                "https://example.com/?to%6ben=<redacted>&a=1",
            ),
            (
                "https://example.com/?to\tken=abc",
                "https://example.com/?to\tken=<redacted>",
            ),
            (
                "https://EXAMPLE.com:8443/MCP?Region=eu#x",
                "https://EXAMPLE.com:8443/MCP?Region=eu#x",
            ),
        ] {
            assert_eq!(shown_upstream(url), shown, "{url:?}");
        }
    }
}
