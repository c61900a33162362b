//! The home directory, as people write it and as they like to read it.

use std::path::{Path, PathBuf};

pub(crate) use stretto_trace::home::home;

/// `path` with the home directory in place of a leading `~`.
pub(crate) fn expand(path: &Path) -> PathBuf {
    stretto_trace::home::expand(path, home().as_deref())
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
