//! The configuration files of MCP hosts, and a proxy's place in them.
//!
//! A host that starts MCP servers reads which ones from a JSON file. [`Host`] knows the hosts
//! and the shape of their files, [`Entry`] is a server behind a proxy as such a file names it,
//! and [`add`], [`wrap`] and [`undo`] change the text of a file: they take the whole text and
//! return the whole new one, in which every byte outside the server's entry is the old one.
//! Nothing here reads or writes files.
//!
//! # How [`undo`] finds the original bytes
//!
//! It needs nothing but the entry that [`wrap`] wrote, so whatever else in the file was edited
//! in between does not matter. Everything that the entry held is still in it as it was spelled:
//!
//! - A command moves, as the same JSON string, to where the proxy's own arguments end. Those are
//!   put before the first of the server's arguments, so that spacing and comments around the
//!   old arguments stay where they are.
//! - An entry without `args` gets some right behind its command, and they end without a space. In
//!   `args` that were empty, the proxy's end with one space. So the two can be told apart.
//! - A `url` becomes the last words of the proxy's arguments. `headers` become `env`: each value
//!   stays where it is, and only its name turns into that of a variable, which the arguments pair
//!   with the header. The values are often secrets, and so appear in no argument.
//!
//! A formatter that moves the entry's own spaces in between costs no more than those spaces, and
//! an empty `args` where there was none.

mod add;
mod document;
mod edit;
mod entry;
mod host;
mod shell;

pub use add::add;
pub use document::EditError;
pub use edit::{undo, without_values, wrap};
pub use entry::{Entry, NameError, Proxy, Server, check_name};
pub use host::Host;
pub use shell::{command_line, quote};
