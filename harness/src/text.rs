//! Putting texts together.

use std::fmt::{self, Write as _};

/// Writes `arguments` to the end of `text`.
pub(crate) fn append(text: &mut String, arguments: fmt::Arguments<'_>) {
    text.write_fmt(arguments)
        .expect("a string takes whatever it is given");
}
