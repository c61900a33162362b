//! Transcripts that were reviewed, in the files that `cargo insta` reads and writes.
//!
//! A snapshot that differs leaves a `.snap.new` beside it, and `cargo insta review` shows
//! the two with the scenario's name. In CI nothing is written.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use similar::{ChangeTag, TextDiff};

use crate::run::Failure;

/// What the files name as the test that wrote them.
const SOURCE: &str = "snapshots/suite.rs";

/// What is written when a transcript is not what its snapshot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Nothing.
    No,
    /// The transcript, as `.snap.new`, for a review.
    New,
    /// The transcript, as the snapshot.
    Accept,
}

impl Update {
    /// What the environment asks for: `INSTA_UPDATE`, and nothing written where `CI` is set.
    pub fn from_environment() -> Self {
        let is_ci = env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()));
        match env::var("INSTA_UPDATE").as_deref() {
            Ok("no") => Self::No,
            Ok("always" | "force") => Self::Accept,
            Ok("new" | "unseen") => Self::New,
            _ if is_ci => Self::No,
            _ => Self::New,
        }
    }
}

/// A snapshot's place, and the scenario that it belongs to.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The file.
    pub file: PathBuf,
    /// The scenario's file, as the snapshot names it.
    pub input_file: String,
}

impl Snapshot {
    /// Holds a transcript against the snapshot, and writes what `update` says.
    ///
    /// # Errors
    ///
    /// How they differ, or what is wrong with the file.
    pub fn compare(&self, transcript: &str, update: Update) -> Result<(), Failure> {
        note_reference(&self.file);
        let failure = |what: String| Failure::Snapshot {
            file: self.file.clone(),
            what,
        };
        let held = match fs::read_to_string(&self.file) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failure(format!("it cannot be read: {error}"))),
        };
        let held = match held {
            None => None,
            Some(text) => Some(self.body_of(&text).map_err(failure)?.to_owned()),
        };
        if held
            .as_deref()
            .is_some_and(|held| held.trim_end() == transcript.trim_end())
        {
            // A review that is not needed any more would only be in the way.
            drop(fs::remove_file(self.pending()));
            return Ok(());
        }
        let diff = diff(held.as_deref().unwrap_or_default(), transcript);
        let written =
            match update {
                Update::No => Ok(()),
                Update::New => self.write(&self.pending(), transcript),
                Update::Accept => self.write(&self.file, transcript).and_then(|()| {
                    match fs::remove_file(self.pending()) {
                        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                        _ => Ok(()),
                    }
                }),
            };
        match (written, update) {
            (Err(error), _) => Err(failure(format!("it cannot be written: {error}"))),
            (Ok(()), Update::Accept) => Ok(()),
            (Ok(()), _) if held.is_none() => Err(failure(format!(
                "there is none yet; what happened:\n{diff}"
            ))),
            (Ok(()), _) => Err(failure(diff)),
        }
    }

    fn pending(&self) -> PathBuf {
        self.file.with_extension("snap.new")
    }

    /// The transcript in a snapshot file.
    fn body_of<'a>(&self, text: &'a str) -> Result<&'a str, String> {
        let no_header = || "it has no header; accept the transcript anew".to_owned();
        let rest = text.strip_prefix("---\n").ok_or_else(no_header)?;
        let (header, body) = rest.split_once("\n---\n").ok_or_else(no_header)?;
        let input_file = header
            .lines()
            .find_map(|line| line.strip_prefix("input_file: "));
        match input_file.map(|file| file.trim_matches('"')) {
            Some(file) if file == self.input_file => Ok(body),
            Some(file) => Err(format!(
                "it belongs to {file}, and not to {}",
                self.input_file
            )),
            None => Err(format!(
                "it does not say that it belongs to {}",
                self.input_file
            )),
        }
    }

    fn write(&self, file: &Path, transcript: &str) -> io::Result<()> {
        let folder = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut whole = tempfile::NamedTempFile::new_in(folder)?;
        write!(
            whole,
            "---\nsource: {SOURCE}\ninput_file: {}\n---\n{}\n",
            self.input_file,
            transcript.trim_end()
        )?;
        // Temporary files are for their owner alone, and these are for everybody who has the checkout.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            whole
                .as_file()
                .set_permissions(fs::Permissions::from_mode(0o644))?;
        }
        whole.persist(file)?;
        Ok(())
    }
}

/// Tells `cargo insta test --unreferenced` that this snapshot is in use.
fn note_reference(file: &Path) {
    let Some(list) = env::var_os("INSTA_SNAPSHOT_REFERENCES_FILE") else {
        return;
    };
    let written = File::options()
        .create(true)
        .append(true)
        .open(list)
        .and_then(|mut list| {
            let full = file.canonicalize().unwrap_or_else(|_| file.to_owned());
            list.write_all(format!("{}\n", full.display()).as_bytes())
        });
    // The list is a service to the tool; the comparison does not depend on it.
    drop(written);
}

/// The lines that differ, with a little of what stands around them.
pub(crate) fn diff(old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    let mut text = String::new();
    for (i, group) in diff.grouped_ops(2).iter().enumerate() {
        if i > 0 {
            text.push_str("   …\n");
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Delete => "- ",
                ChangeTag::Insert => "+ ",
                ChangeTag::Equal => "  ",
            };
            text.push_str(sign);
            text.push_str(change.value().trim_end_matches('\n'));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(folder: &Path) -> Snapshot {
        Snapshot {
            file: folder.join("a.snap"),
            input_file: "scenarios/a.toml".to_owned(),
        }
    }

    #[test]
    fn what_was_accepted_is_the_same_the_next_time() {
        let folder = tempfile::tempdir().unwrap();
        let snapshot = snapshot(folder.path());
        snapshot
            .compare("host\n  >> 1 ping\n", Update::Accept)
            .unwrap();
        snapshot.compare("host\n  >> 1 ping\n", Update::No).unwrap();
        assert!(snapshot.compare("host\n  >> 2 ping\n", Update::No).is_err());
        assert!(!snapshot.pending().exists());
    }

    #[test]
    fn what_differs_waits_for_a_review_and_leaves_when_it_does_not_differ_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let snapshot = snapshot(folder.path());
        snapshot.compare("one\n", Update::Accept).unwrap();
        let failure = snapshot.compare("two\n", Update::New).unwrap_err();
        assert!(
            matches!(failure, Failure::Snapshot { what, .. } if what.contains("- one") && what.contains("+ two"))
        );
        assert!(snapshot.pending().exists());
        snapshot.compare("one\n", Update::New).unwrap();
        assert!(!snapshot.pending().exists());
    }

    #[test]
    fn a_snapshot_of_another_scenario_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mine = snapshot(folder.path());
        let other = Snapshot {
            input_file: "scenarios/b.toml".to_owned(),
            ..mine.clone()
        };
        other.compare("one\n", Update::Accept).unwrap();
        let failure = mine.compare("one\n", Update::Accept).unwrap_err();
        assert!(
            matches!(failure, Failure::Snapshot { what, .. } if what.contains("belongs to scenarios/b.toml"))
        );
    }

    #[test]
    fn the_review_tools_own_library_reads_the_file_as_we_do() {
        let folder = tempfile::tempdir().unwrap();
        let snapshot = snapshot(folder.path());
        let transcript = "host\n  >> 1 ping\n\n  | \"quoted\" and \\escaped\\\nexit 0\n";
        snapshot.compare(transcript, Update::Accept).unwrap();
        let read = insta::Snapshot::from_file(&snapshot.file).unwrap();
        assert_eq!(read.metadata().input_file(), Some("scenarios/a.toml"));
        assert_eq!(read.metadata().source(), Some(SOURCE));
        assert_eq!(
            read.contents().as_text().unwrap().to_string().trim_end(),
            transcript.trim_end()
        );
    }
}
