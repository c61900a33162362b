//! The home directory, as people write it and as they like to read it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The user's home directory, where the environment names one.
pub(crate) fn home() -> Option<PathBuf> {
    let named = |variable| env::var_os(variable).filter(|value: &OsString| !value.is_empty());
    named("HOME")
        .or_else(|| named("USERPROFILE"))
        .map(PathBuf::from)
}

/// `path` with the home directory in place of a leading `~` that stands alone in its component.
pub(crate) fn expand(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

/// `path` as people read it: with `~` in place of the home directory.
pub(crate) fn shown(path: &Path) -> String {
    match home().map(|home| path.strip_prefix(home)) {
        Some(Ok(rest)) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(Ok(rest)) => format!("~/{}", rest.display()),
        _ => path.display().to_string(),
    }
}

/// `path` for a configuration that is read in whatever directory: absolute, or with a leading `~`,
/// which the proxy understands.
///
/// # Errors
///
/// The path is empty, is not text, or there is no current directory.
pub(crate) fn lasting(path: &Path) -> anyhow::Result<String> {
    let lasting = if path.starts_with("~") {
        path.to_owned()
    } else {
        std::path::absolute(path)?
    };
    lasting.into_os_string().into_string().map_err(|path| {
        anyhow::anyhow!(
            "{} is not text, which a configuration must be",
            path.display()
        )
    })
}
