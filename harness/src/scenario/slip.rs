//! What is wrong with a file that a person wrote: where, what, and what would do.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// One mistake in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slip {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, and what is allowed.
    pub what: String,
}

impl fmt::Display for Slip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

/// All the mistakes that were found in one go; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slips(pub Vec<Slip>);

impl fmt::Display for Slips {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, slip) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{slip}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Slips {}

impl From<Slip> for Slips {
    fn from(slip: Slip) -> Self {
        Self(vec![slip])
    }
}

/// A file's text, from which places become lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) path: &'a Path,
    pub(crate) text: &'a str,
}

impl Source<'_> {
    /// The line on which the byte `at` stands, counted from 1.
    pub(crate) fn line_of(&self, at: usize) -> usize {
        let before = self.text.as_bytes().iter().take(at);
        1 + before.filter(|byte| **byte == b'\n').count()
    }

    /// The line of `needle` within `span`, or the line on which `span` starts.
    pub(crate) fn line_within(&self, span: &Range<usize>, needle: &str) -> usize {
        let inside = self.text.get(span.clone()).unwrap_or_default();
        let offset = inside.find(needle).unwrap_or_default();
        self.line_of(span.start + offset)
    }

    pub(crate) fn slip(&self, span: &Range<usize>, what: impl Into<String>) -> Slip {
        self.slip_on(self.line_of(span.start), what)
    }

    pub(crate) fn slip_on(&self, line: usize, what: impl Into<String>) -> Slip {
        Slip {
            file: self.path.to_owned(),
            line,
            what: what.into(),
        }
    }

    /// What the TOML reader found, in one line with its place.
    pub(crate) fn toml_slip(&self, error: &toml::de::Error) -> Slip {
        let span = error.span().unwrap_or(0..0);
        let what = error.message().lines().collect::<Vec<_>>().join("; ");
        self.slip(&span, what)
    }
}
