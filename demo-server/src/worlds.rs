//! The built-in worlds: which tools there are, and what a call of one returns.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::{Hint, Settings, WorldName};
use crate::protocol::{Call, RpcError};

mod echo;
mod retail;

pub(crate) use echo::Echo;
pub(crate) use retail::Retail;

/// The longest that a call's `delay_ms` makes it wait.
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(10);

/// A set of tools that keeps no state.
pub(crate) trait World: Send + Sync {
    /// The tools, in the order they are listed.
    fn tools(&self) -> Vec<Value>;

    /// The tools that a modern host sees.
    fn modern_tools(&self) -> Vec<Value> {
        self.tools()
    }

    /// What a modern call of a tool gets that may have to ask back; none for a tool that never does.
    fn call_back(&self, _tool: &str, _call: &Call) -> Option<Result<Value, RpcError>> {
        None
    }

    /// What a call of a listed tool returns: its text, or the text of its failure.
    fn call(&self, tool: &str, arguments: &Value) -> Result<String, String>;

    /// One sentence about the server.
    fn instructions(&self) -> &'static str;
}

/// The world that the command line asks for.
pub(crate) fn world(settings: &Settings) -> Box<dyn World> {
    match settings.world {
        WorldName::Echo => Box::new(Echo),
        WorldName::Retail => Box::new(Retail::new(settings.hide.clone(), settings.hint.clone())),
    }
}

/// How long a call asks to wait: its `delay_ms`, where that is an integer that is not negative.
pub(crate) fn delay(arguments: &Value) -> Duration {
    delay_named(arguments, "delay_ms")
}

/// How long a call asks to wait in an argument of this name.
pub(crate) fn delay_named(arguments: &Value, name: &str) -> Duration {
    let asked = arguments.get(name).and_then(Value::as_u64).unwrap_or(0);
    Duration::from_millis(asked).min(LONGEST_DELAY)
}

/// What a tool lists as its annotations under a changed hint.
pub(crate) fn annotations(hint: Hint) -> Value {
    match hint {
        Hint::False => json!({"readOnlyHint": false}),
        Hint::True => json!({"readOnlyHint": true}),
        Hint::None => json!({}),
    }
}

/// The text of an argument; the empty text when it is missing or something else.
fn text<'a>(arguments: &'a Value, name: &str) -> &'a str {
    arguments
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
