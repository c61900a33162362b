//! The user's home directory, which paths begin with as `~`: hosts start servers without a shell.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The home directory, where the environment names one.
pub fn home() -> Option<PathBuf> {
    home_by(|name| env::var_os(name))
}

/// The home directory, by the environment that `variable` looks up.
pub fn home_by(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let mut named = ["HOME", "USERPROFILE"]
        .into_iter()
        .filter_map(variable)
        .filter(|value| !value.is_empty());
    named.next().map(PathBuf::from)
}

/// `path` with `home` in place of a leading `~`, which must stand alone in its component.
pub fn expand(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_leading_tilde_of_its_own_is_the_home_directory() {
        for (path, expanded) in [
            ("~", "/home/me/"),
            ("~/x/y", "/home/me/x/y"),
            ("~name/x", "~name/x"),
            ("x/~", "x/~"),
            ("./~/x", "./~/x"),
        ] {
            let found = expand(path.as_ref(), Some("/home/me".as_ref()));
            assert_eq!(found.as_os_str(), expanded);
        }
        assert_eq!(expand("~/x".as_ref(), None), PathBuf::from("~/x"));
    }

    #[test]
    fn an_empty_variable_names_no_directory() {
        let by = |home: &str, profile: &str| {
            home_by(|name| Some(if name == "HOME" { home } else { profile }.into()))
        };
        assert_eq!(by("/a", "/b"), Some("/a".into()));
        assert_eq!(by("", "/b"), Some("/b".into()));
        assert_eq!(by("", ""), None);
    }
}
