//! Files that commands write: whole, or not at all, and told in time when they cannot be.

use std::path::PathBuf;

pub(crate) use stretto_trace::files::{
    WriteError, check_folder, check_place, write_new, write_whole,
};

/// Makes sure that the files that are named could be written now, before anything is read or asked
/// for them.
///
/// # Errors
///
/// What the file system would say of the first that could not.
pub(crate) fn check_places<const N: usize>(files: [&Option<PathBuf>; N]) -> Result<(), WriteError> {
    files
        .into_iter()
        .flatten()
        .try_for_each(|file| check_place(file))
}
