//! Files that others may read while they are written: whole, or not at all.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// A file that could not be written. Whatever was at its place is there still.
#[derive(Debug, thiserror::Error)]
#[error("writing {}: {why}{}", path.display(), way_out(why.kind()))]
pub struct WriteError {
    path: PathBuf,
    why: io::Error,
}

impl WriteError {
    /// What kind of trouble it is.
    pub fn kind(&self) -> ErrorKind {
        self.why.kind()
    }
}

/// What a person can do about it.
fn way_out(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "; make its folder first, or name another place",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "; name a place where you may write"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "; make room, or name a place that has some"
        }
        ErrorKind::IsADirectory => "; name a file in it",
        ErrorKind::NotADirectory => "; name a place in a folder",
        ErrorKind::InvalidFilename => "; choose a shorter name",
        _ => "",
    }
}

/// Writes a file in one step: whoever reads `path` finds the old content or all of the new.
///
/// The new content goes to another file of the same folder first, which then takes the place
/// of the old one, with the permissions that one had. What is no ordinary file, such as a pipe or a
/// terminal, is written to directly.
///
/// # Errors
///
/// What the file system says.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), WriteError> {
    let write = || {
        if is_special(path) {
            return fs::OpenOptions::new()
                .write(true)
                .open(path)?
                .write_all(content);
        }
        // The place that a link points to is written, not the link replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let file = write_beside(&target, content, Some(&target))?;
        file.persist(&target).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(of(path))
}

/// Writes a file that must not be there yet, with the permissions of `like` if there is one.
///
/// # Errors
///
/// It is there ([`ErrorKind::AlreadyExists`]), or what the file system says. Then nothing is
/// left of it.
pub fn write_new(path: &Path, content: &[u8], like: Option<&Path>) -> Result<(), WriteError> {
    let write = || {
        let file = write_beside(path, content, like)?;
        file.persist_noclobber(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(of(path))
}

/// Makes sure that a file could be written at `path` now, before long or costly work is done for it.
/// What is there stays as it is.
///
/// # Errors
///
/// What the file system would say.
pub fn check_place(path: &Path) -> Result<(), WriteError> {
    let check = || {
        if path.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        if !is_special(path) {
            let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            write_beside(&target, b"", None)?.close()?;
        }
        Ok(())
    };
    check().map_err(of(path))
}

/// Makes sure that files could be written to `folder` now, which need not be there yet.
///
/// # Errors
///
/// What the file system would say of `folder`.
pub fn check_folder(folder: &Path) -> Result<(), WriteError> {
    let check = || {
        let mut there = folder
            .ancestors()
            .filter(|path| !path.as_os_str().is_empty());
        // A relative path may have no part that is there.
        let there = there.find(|path| path.exists()).unwrap_or(Path::new("."));
        if !there.is_dir() {
            return Err(ErrorKind::NotADirectory.into());
        }
        write_beside(&there.join("file"), b"", None)?.close()
    };
    check().map_err(of(folder))
}

fn of(path: &Path) -> impl Fn(io::Error) -> WriteError {
    |why| WriteError {
        path: path.to_owned(),
        why,
    }
}

/// Whether something else than an ordinary file is there.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

/// Another file in the folder of `target`, with the permissions of `like` where that exists.
fn write_beside(
    target: &Path,
    content: &[u8],
    like: Option<&Path>,
) -> io::Result<tempfile::NamedTempFile> {
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Opened here, since temporary files are their owner's alone, and what comes of this one is as
    // open as any new file; and since errors would name it.
    let mut file = tempfile::Builder::new()
        .prefix(".stretto-")
        .make_in(folder, |path| {
            fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(path)
        })?;
    if let Some(Ok(like)) = like.map(fs::metadata) {
        file.as_file().set_permissions(like.permissions())?;
    }
    file.as_file_mut().write_all(content)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.md");
        write_whole(&path, b"a longer text").unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_is_missing_is_an_error_and_stays_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing").join("report.md");
        let said = format!(
            "writing {}: No such file or directory (os error 2); make its folder first, or name \
             another place",
            path.display()
        );
        assert_eq!(check_place(&path).unwrap_err().to_string(), said);
        assert_eq!(write_whole(&path, b"new").unwrap_err().to_string(), said);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn looking_whether_a_file_can_be_written_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.md");
        check_place(&path).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        fs::write(&path, "old").unwrap();
        check_place(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let error = check_place(folder.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
        assert!(
            error.to_string().ends_with("; name a file in it"),
            "{error}"
        );

        check_folder(&folder.path().join("deep/er")).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let error = check_folder(&path.join("deep")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotADirectory);
        let start = format!("writing {}/deep: ", path.display());
        assert!(error.to_string().starts_with(&start), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_could_not_read_stays_so() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("private.json");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let [real, link] = ["real", "link"].map(|name| folder.path().join(name));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
