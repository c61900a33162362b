//! A checkout of τ²-bench, and results files beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context as _;
use stretto_trace::ToolManifest;
use stretto_trace::tau2::{Results, Split, manifest, read_results, read_split};

/// A results file, with what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What it is called in messages; its path, if nothing else.
    pub label: String,
    /// The file.
    pub path: PathBuf,
}

impl FromStr for Source {
    type Err = String;

    /// Reads `FILE`, or `LABEL=FILE`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (label, path) = text.split_once('=').unwrap_or((text, text));
        if label.is_empty() || path.is_empty() {
            return Err(format!("`{text}` is neither FILE nor LABEL=FILE"));
        }
        Ok(Self {
            label: label.to_owned(),
            path: path.into(),
        })
    }
}

/// A checkout.
#[derive(Clone, Copy, Debug)]
pub struct Checkout<'a>(pub &'a Path);

impl Checkout<'_> {
    /// The results that the benchmark publishes, by name.
    ///
    /// # Errors
    ///
    /// It has no folder of results, or that is empty.
    pub fn published(self) -> anyhow::Result<Vec<Source>> {
        let folder = self.0.join("data/tau2/results/final");
        let files = fs::read_dir(&folder).with_context(|| {
            format!(
                "reading {} (--tau2 names a checkout of τ²-bench)",
                folder.display()
            )
        })?;
        let mut sources = Vec::new();
        for file in files {
            let path = file
                .with_context(|| format!("reading {}", folder.display()))?
                .path();
            if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                let label = path.file_stem().unwrap_or_default();
                sources.push(Source {
                    label: label.to_string_lossy().into_owned(),
                    path,
                });
            }
        }
        anyhow::ensure!(
            !sources.is_empty(),
            "{} has no results files (.json)",
            folder.display()
        );
        sources.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(sources)
    }

    /// Which of a domain's tasks are for training.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no split.
    pub fn split(self, domain: &str) -> anyhow::Result<Split> {
        let path = self
            .0
            .join("data/tau2/domains")
            .join(domain)
            .join("split_tasks.json");
        Ok(read_split(&path)?)
    }

    /// What a domain's tools may do.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or defines no tools.
    pub fn manifest(self, domain: &str) -> anyhow::Result<ToolManifest> {
        let path = self
            .0
            .join("src/tau2/domains")
            .join(domain)
            .join("tools.py");
        let python = fs::read_to_string(&path).with_context(|| {
            format!(
                "reading {} (--tau2 names a checkout of τ²-bench that has the domain)",
                path.display()
            )
        })?;
        let manifest = manifest(&python, domain);
        anyhow::ensure!(
            !manifest.tools.is_empty(),
            "{} defines no tools",
            path.display()
        );
        Ok(manifest)
    }
}

/// Reads results files, and keeps those of the domains that are wanted. Two sources may not be
/// one file: its sessions would count twice.
///
/// # Errors
///
/// A file cannot be read, or is no results file.
pub fn read(sources: &[Source], is_wanted: impl Fn(&str) -> bool) -> anyhow::Result<Vec<Results>> {
    let mut read = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        let is_again = sources[..at]
            .iter()
            .any(|before| before.path == source.path);
        anyhow::ensure!(!is_again, "{} is named twice", source.path.display());
        let results = read_results(&source.path)?;
        if is_wanted(&results.domain) {
            read.push(results);
        }
    }
    Ok(read)
}
