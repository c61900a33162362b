//! Reports: for a person, as `JUnit`, as JSON. Each is made from events, and from nothing else.

mod human;
mod json;
mod junit;

pub use human::{Human, Verbosity, plain};
pub use json::Json;
pub use junit::JUnit;
