//! `--retain-days`: old files are deleted when a session starts.

use std::{
    io,
    path::Path,
    time::{Duration, SystemTime},
};

use tracing::{info, warn};
use walkdir::{DirEntry, WalkDir};

/// Files with these last extensions are logs and cached answers.
const EXTENSIONS: [&str; 2] = ["jsonl", "json"];

/// Files that end so are kept by people, not left behind by sessions.
const KEPT: [&str; 2] = [".flow.json", ".arbiter.json"];

const SECONDS_A_DAY: u64 = 86_400;

/// What came of pruning a folder.
#[derive(Debug)]
pub(crate) struct Pruned<'a> {
    root: &'a Path,
    days: u64,
    deleted: u64,
    error: Option<io::Error>,
}

/// Deletes what is older than `days` under `root`. At the first file that cannot be deleted, what is left stays.
pub(crate) fn prune(root: &Path, days: u64) -> Pruned<'_> {
    let mut pruned = Pruned {
        root,
        days,
        deleted: 0,
        error: None,
    };
    let age = Duration::from_secs(days.saturating_mul(SECONDS_A_DAY));
    // Without such a time, no file can be older.
    if let Some(before) = SystemTime::now().checked_sub(age) {
        pruned.error = delete_older(root, before, &mut pruned.deleted).err();
    }
    pruned
}

impl Pruned<'_> {
    /// Says what was deleted, if anything, and what could not be.
    pub(crate) fn say(&self) {
        let root = self.root.display();
        if let Some(error) = &self.error {
            warn!("pruning {root}: {error}; what is left there stays");
        }
        match self.deleted {
            0 => {}
            1 => info!("pruned 1 file older than {} days in {root}", self.days),
            deleted => info!(
                "pruned {deleted} files older than {} days in {root}",
                self.days
            ),
        }
    }
}

fn delete_older(root: &Path, before: SystemTime, deleted: &mut u64) -> io::Result<()> {
    match std::fs::metadata(root) {
        Ok(metadata) if !metadata.is_dir() => return Err(io::ErrorKind::NotADirectory.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Ok(_) | Err(_) => {}
    }
    for entry in WalkDir::new(root) {
        if let Some(entry) = unless_gone(entry.map_err(io::Error::from))?
            && delete_if_older(&entry, before)?
        {
            *deleted += 1;
        }
    }
    Ok(())
}

fn delete_if_older(entry: &DirEntry, before: SystemTime) -> io::Result<bool> {
    // A link's own type is looked at, so links are neither followed nor deleted.
    if !entry.file_type().is_file() || !is_left_behind(entry.path()) {
        return Ok(false);
    }
    let Some(metadata) = unless_gone(entry.metadata().map_err(io::Error::from))? else {
        return Ok(false);
    };
    if metadata.modified()? >= before {
        return Ok(false);
    }
    Ok(unless_gone(std::fs::remove_file(entry.path()))?.is_some())
}

fn is_left_behind(path: &Path) -> bool {
    let extension = path
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    EXTENSIONS.contains(&extension) && !KEPT.iter().any(|kept| name.ends_with(kept))
}

/// Another proxy that starts at the same time may have deleted it first, which is as good.
fn unless_gone<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, path::PathBuf};

    use super::*;

    const DAY: Duration = Duration::from_secs(SECONDS_A_DAY);

    fn put(folder: &Path, name: &str, age: Duration) -> PathBuf {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "x").unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
        path
    }

    #[test]
    fn only_old_logs_and_answers_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let old = [
            "a.jsonl",
            "a.flow.jsonl",
            "a.confirm.jsonl",
            "deep/er/answer.json",
            ".json.jsonl",
        ];
        let kept_old = [
            "a.txt",
            "shop.flow.json",
            "shop.arbiter.json",
            "a.jsonl.gz",
            "a.JSONL",
            "json",
            ".jsonl",
        ];
        let old = old.map(|name| put(folder.path(), name, 3 * DAY));
        let kept_old = kept_old.map(|name| put(folder.path(), name, 3 * DAY));
        let young = put(folder.path(), "b.jsonl", DAY);
        prune(folder.path(), 2);
        assert_eq!(old.iter().filter(|path| path.exists()).count(), 0);
        assert_eq!(kept_old.iter().filter(|path| !path.exists()).count(), 0);
        assert!(young.exists());
        assert!(folder.path().join("deep/er").is_dir(), "directories stay");
    }

    #[test]
    fn zero_days_deletes_all_that_is_there_and_a_future_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let now = put(folder.path(), "a.jsonl", Duration::from_millis(5));
        let future = put(folder.path(), "b.jsonl", Duration::ZERO);
        fs::File::options()
            .write(true)
            .open(&future)
            .unwrap()
            .set_modified(SystemTime::now() + DAY)
            .unwrap();
        prune(folder.path(), 0);
        assert!(!now.exists());
        assert!(future.exists());
    }

    #[test]
    fn a_huge_number_of_days_deletes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = put(folder.path(), "a.jsonl", 20_000 * DAY);
        prune(folder.path(), u64::MAX);
        assert!(path.exists());
    }

    #[test]
    fn links_are_neither_followed_nor_deleted_unless_the_root_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let target = put(outside.path(), "a.jsonl", 3 * DAY);
        symlink(&target, folder.path().join("link.jsonl")).unwrap();
        symlink(outside.path(), folder.path().join("folder")).unwrap();
        prune(folder.path(), 0);
        assert!(target.exists());
        assert!(folder.path().join("link.jsonl").exists());
        prune(&folder.path().join("folder"), 0);
        assert!(!target.exists());
    }

    #[test]
    fn a_missing_root_is_nothing_to_delete_and_a_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut deleted = 0;
        delete_older(&folder.path().join("none"), SystemTime::now(), &mut deleted).unwrap();
        let file = put(folder.path(), "a.jsonl", 3 * DAY);
        delete_older(&file, SystemTime::now(), &mut deleted).unwrap_err();
        assert!(file.exists());
        assert_eq!(deleted, 0);
    }
}
