//! Files that others may read while they are written: whole, or not at all.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// Writes a file in one step: whoever reads `path` finds the old content or all of the new.
///
/// The new content goes to another file of the same folder first, which then takes the place
/// of the old one, with the permissions that one had. What is no ordinary file, such as a pipe or a terminal, is written to
/// directly.
///
/// # Errors
///
/// What the file system says.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
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
}

/// Writes a file that must not be there yet, with the permissions of `like` if there is one.
///
/// # Errors
///
/// It is there ([`io::ErrorKind::AlreadyExists`]), or what the file system says. Then nothing is
/// left of it.
pub fn write_new(path: &Path, content: &[u8], like: Option<&Path>) -> io::Result<()> {
    let file = write_beside(path, content, like)?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(())
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
    let mut builder = tempfile::Builder::new();
    builder.prefix(".stretto-");
    readable_as_usual(&mut builder);
    let mut file = builder.tempfile_in(folder)?;
    if let Some(Ok(like)) = like.map(fs::metadata) {
        file.as_file().set_permissions(like.permissions())?;
    }
    file.write_all(content)?;
    Ok(file)
}

/// Temporary files are their owner's alone; what comes of this one is as open as any new file.
#[cfg(unix)]
fn readable_as_usual(builder: &mut tempfile::Builder<'_, '_>) {
    use std::os::unix::fs::PermissionsExt as _;
    builder.permissions(fs::Permissions::from_mode(0o666));
}

#[cfg(not(unix))]
fn readable_as_usual(_: &mut tempfile::Builder<'_, '_>) {}

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
        assert!(write_whole(&path, b"new").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
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
