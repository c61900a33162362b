//! Answers on disk, one file per request, shared by every process that is given the folder.
//!
//! ```text
//! DIR/4f/4fe20bad….json     the response, and nothing else
//! ```
//!
//! A file is written beside its place and then renamed into it, so a reader finds a whole
//! answer or none, however many write at once and whenever one of them is killed. A file that
//! was left half written has another ending, and is never read.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Key, Response};

/// A folder of answers.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The cache in `root`, which is made when the first answer is written.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the answers to a request are.
    pub fn path(&self, key: &Key) -> PathBuf {
        let (mut path, name) = self.shard(key);
        path.push(format!("{name}.json"));
        path
    }

    /// The folder of a key's file, and the key as text.
    fn shard(&self, key: &Key) -> (PathBuf, String) {
        let name = key.to_string();
        let (first, _) = name.split_at(2);
        (self.root.join(first), name)
    }

    /// The answers that are kept under `key`, or nothing.
    ///
    /// # Errors
    ///
    /// There is a file, and it cannot be read or is no response. This is no miss: the question
    /// would be paid for again and again, and nobody would know.
    pub fn read(&self, key: &Key) -> Result<Option<Response>, CacheError> {
        let path = self.path(key);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(CacheError::Reading { path, source }),
        };
        match Response::parse(&text) {
            Ok(response) => Ok(Some(response)),
            Err(source) => Err(CacheError::Broken { path, source }),
        }
    }

    /// Keeps answers under `key`, in place of any that were.
    ///
    /// # Errors
    ///
    /// The file cannot be written. What was there before is still there.
    pub fn write(&self, key: &Key, response: &Response) -> Result<(), CacheError> {
        self.write_file(key, &response.to_pretty())
            .map_err(|source| CacheError::Writing {
                path: self.path(key),
                source,
            })
    }

    fn write_file(&self, key: &Key, text: &[u8]) -> io::Result<()> {
        let (shard, name) = self.shard(key);
        self.make_root()?;
        made(fs::create_dir(&shard))?;
        let mut file = temporary(&shard, &format!("{name}.tmp"))?;
        file.write_all(text)?;
        // Without this, a loss of power right after the rename could leave an empty file.
        file.as_file().sync_data()?;
        file.persist(self.path(key))?;
        Ok(())
    }

    /// Makes the folder, for its owner alone, unless there is one.
    fn make_root(&self) -> io::Result<()> {
        if self.root.is_dir() {
            return Ok(());
        }
        if let Some(parent) = self.root.parent() {
            fs::create_dir_all(parent)?;
        }
        made(owners_only().create(&self.root))
    }

    /// The keys of all answers, sorted.
    ///
    /// Only files in a key's folder count whose name is the key and `.json`. No folder: none.
    ///
    /// # Errors
    ///
    /// A folder cannot be read. The error names it.
    pub fn keys(&self) -> Result<Vec<Key>, CacheError> {
        let mut keys = Vec::new();
        for shard in names(&self.root)? {
            let folder = self.root.join(&shard);
            if shard.len() != 2 || !folder.is_dir() {
                continue;
            }
            for name in names(&folder)? {
                let Some(Ok(key)) = name.strip_suffix(".json").map(str::parse::<Key>) else {
                    continue;
                };
                if name.starts_with(&shard) {
                    keys.push(key);
                }
            }
        }
        keys.sort_unstable();
        Ok(keys)
    }
}

/// Answers with their key: a line of an export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// What they are kept under.
    pub key: Key,
    /// The answers.
    pub response: Response,
}

/// The names in a folder that are text; none when there is no such folder.
fn names(folder: &Path) -> Result<Vec<String>, CacheError> {
    let list = || -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    };
    match list() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(|source| CacheError::Reading {
            path: folder.to_owned(),
            source,
        }),
    }
}

/// A folder that another process made at the same time is as good.
fn made(created: io::Result<()>) -> io::Result<()> {
    match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created,
    }
}

fn owners_only() -> DirBuilder {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes to set"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// A new file in `folder` that goes away again unless it is persisted.
fn temporary(folder: &Path, prefix: &str) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    // What the process gives any new file; a temporary one would be its owner's alone, also
    // in a cache that others share.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// Why answers could not be read or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// A file or folder cannot be read.
    #[error("reading {}", path.display())]
    Reading {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file holds something else.
    #[error("{} is not a cached response; delete it to ask again", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A file cannot be written.
    #[error("writing {}", path.display())]
    Writing {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests;
