//! What the environment says about the service.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use stretto_trace::home::{expand, home_by};

/// The variable that holds the key.
const KEY: &str = "TYPESAFE_API_KEY";
/// The variable that names a file with the key.
const KEY_FILE: &str = "TYPESAFE_API_KEY_FILE";
const BASE_URL: &str = "TYPESAFE_BASE_URL";
const MODEL: &str = "TYPESAFE_DEFAULT_MODEL";
const CERTIFICATES: &str = "SSL_CERT_FILE";

/// Where the service is, and who asks.
///
/// | Variable | Means | Unset |
/// |---|---|---|
/// | `TYPESAFE_API_KEY` | the key | there may be a file |
/// | `TYPESAFE_API_KEY_FILE` | a file that holds the key | there is no key |
/// | `TYPESAFE_BASE_URL` | where the service is | `https://api.typesafe.ai` |
/// | `TYPESAFE_DEFAULT_MODEL` | the model to ask for | `jev-latest` |
/// | `SSL_CERT_FILE` | certificates to trust besides the usual roots, as PEM | none |
///
/// A variable that is empty or blank counts as unset. `Debug` shows neither the key nor what a
/// URL says about a user.
#[derive(Clone)]
pub struct Settings {
    /// The key. Without one, only answers that are known already can be had.
    pub api_key: Option<ApiKey>,
    /// The service's address, without slashes at its end. May hold a user and a password.
    pub base_url: String,
    /// The model to ask for.
    pub model: String,
    /// A file of certificates, as PEM, to trust besides the usual roots.
    pub certificates: Option<PathBuf>,
}

impl Settings {
    /// Reads the process's environment, and the key's file if it names one.
    ///
    /// The file is read now and never again, so it may be deleted afterwards.
    ///
    /// # Errors
    ///
    /// The key's file cannot be read or holds nothing; a variable is not text; a key could not
    /// be sent. No error shows a key.
    pub fn from_env() -> Result<Self, SettingsError> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    /// What the environment says of the model alone, for a program that asks no service: the
    /// model is part of the key of every known answer. There is no key in these.
    ///
    /// # Errors
    ///
    /// The variable is not text.
    pub fn model_from_env() -> Result<Self, SettingsError> {
        Self::from_variables(|name| (name == MODEL).then(|| std::env::var_os(name)).flatten())
    }

    /// As [`from_env`](Self::from_env), with the environment that `variable` looks up.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn from_variables(
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, SettingsError> {
        let text = |name: &'static str| -> Result<Option<String>, SettingsError> {
            let Some(value) = variable(name) else {
                return Ok(None);
            };
            let value = value.into_string();
            let value = value.map_err(|_| SettingsError::NotText { variable: name })?;
            Ok(Some(value).filter(|value| !value.trim().is_empty()))
        };
        let path = |name: &'static str| {
            variable(name)
                .filter(|value| !value.to_string_lossy().trim().is_empty())
                .map(PathBuf::from)
        };
        let home = home_by(&variable);

        let api_key = match (text(KEY)?, path(KEY_FILE)) {
            (Some(key), _) => Some(ApiKey::new(key, KEY)?),
            (None, Some(file)) => Some(ApiKey::read(&expand(&file, home.as_deref()))?),
            (None, None) => None,
        };
        let base_url = text(BASE_URL)?.unwrap_or_else(|| "https://api.typesafe.ai".to_owned());
        Ok(Self {
            api_key,
            base_url: base_url.trim().trim_end_matches('/').to_owned(),
            model: text(MODEL)?.unwrap_or_else(|| "jev-latest".to_owned()),
            certificates: path(CERTIFICATES),
        })
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("api_key", &self.api_key)
            .field("model", &self.model)
            .field("certificates", &self.certificates)
            .finish_non_exhaustive()
    }
}

/// A key of the service. Nothing prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Takes a key that came from the variable `variable`.
    ///
    /// # Errors
    ///
    /// The key holds what no HTTP header would carry, such as a line break or a blank at its end.
    /// The error does not show it.
    pub fn new(key: impl Into<String>, variable: &'static str) -> Result<Self, SettingsError> {
        let key = key.into();
        // Blanks at the ends of a header's value would not arrive.
        let can_be_sent = key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if !can_be_sent || key.trim() != key {
            return Err(SettingsError::UnusableKey { variable });
        }
        Ok(Self(key))
    }

    fn read(path: &Path) -> Result<Self, SettingsError> {
        let text = std::fs::read_to_string(path).map_err(|source| SettingsError::KeyFile {
            path: path.to_owned(),
            source,
        })?;
        let key = text.trim();
        if key.is_empty() {
            return Err(SettingsError::EmptyKeyFile {
                path: path.to_owned(),
            });
        }
        Self::new(key, KEY_FILE)
    }

    /// The key itself, to be sent and nothing else.
    #[cfg(feature = "jev")]
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(<redacted>)")
    }
}

/// Why the environment cannot be used. None of them shows a value that may be secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A variable holds bytes that are no text.
    #[error("the variable {variable} is not text")]
    NotText {
        /// The variable.
        variable: &'static str,
    },
    /// The key's file cannot be read.
    #[error("reading the key that {KEY_FILE} names, {}", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The key's file is blank.
    #[error("the file {} that {KEY_FILE} names holds no key", path.display())]
    EmptyKeyFile {
        /// The file.
        path: PathBuf,
    },
    /// The key cannot be sent.
    #[error(
        "the key from {variable} does not fit into an HTTP header; look for line breaks and for blanks around it"
    )]
    UnusableKey {
        /// The variable that holds the key, or names its file.
        variable: &'static str,
    },
}

#[cfg(test)]
mod tests;
