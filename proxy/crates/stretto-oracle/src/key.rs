//! What answers are kept under.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of a request's canonical JSON. As text it is 64 lowercase hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of a request whose canonical JSON this is.
    pub(crate) fn of(canonical: &[u8]) -> Self {
        Self(Sha256::digest(canonical).into())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

impl FromStr for Key {
    type Err = NotAKey;

    /// Only what a key is written as is one, so that no path can be made of anything else.
    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let mut key = [0; 32];
        if text.len() != 2 * key.len() {
            return Err(NotAKey);
        }
        for (byte, digits) in key.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let [high, low] = digits else {
                return Err(NotAKey);
            };
            *byte = 16 * value(*high)? + value(*low)?;
        }
        Ok(Self(key))
    }
}

fn value(digit: u8) -> Result<u8, NotAKey> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(NotAKey),
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A text that is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the key of a request, which is 64 lowercase hex digits")]
pub struct NotAKey;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_as_it_is_written() {
        let key = Key::of(b"anything");
        assert_eq!(key.to_string().parse(), Ok(key));
        assert_eq!(serde_json::to_string(&key).unwrap(), format!("\"{key}\""));
    }

    #[test]
    fn nothing_else_is_a_key() {
        let key = Key::of(b"").to_string();
        let upper = key.to_uppercase();
        let (_, rest) = key.split_at(3);
        let with_path = format!("../{rest}");
        let long = format!("{key}0");
        for text in [
            "",
            "../x",
            "4f",
            &upper,
            &with_path,
            &long,
            rest,
            &"é".repeat(32),
        ] {
            assert_eq!(text.parse::<Key>(), Err(NotAKey), "{text}");
        }
    }
}
