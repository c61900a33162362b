//! What the proxy says on stderr: one line each, `stretto-proxy: ` first.

use std::{
    fmt::{self, Write as _},
    io::{self, Write as _},
};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    layer::{Context, SubscriberExt},
    registry,
    util::SubscriberInitExt,
};

/// The variable that has the proxy say more, such as `debug`.
const MORE: &str = "STRETTO_LOG";

/// Lets events be heard on stderr from now on.
pub(crate) fn start() {
    let more = std::env::var(MORE)
        .ok()
        .and_then(|more| more.parse::<Targets>().ok());
    let wanted = more.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    // A second start, as tests may do, changes nothing.
    registry().with(Voice.with_filter(wanted)).try_init().ok();
}

/// Joins an error and its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Writing to a String cannot go wrong.
        write!(text, ": {error}").ok();
        cause = error.source();
    }
    one_line(&text)
}

/// The text on one line, without what would steer a terminal: parts of it come from servers and hosts.
fn one_line(text: &str) -> String {
    let steers =
        |c: char| c.is_control() || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    text.replace(steers, " ")
}

struct Voice;

impl<S: Subscriber> Layer<S> for Voice {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut message = Message::default();
        event.record(&mut message);
        let level = match *event.metadata().level() {
            Level::ERROR | Level::INFO => "",
            Level::WARN => "warning: ",
            Level::DEBUG => "debug: ",
            Level::TRACE => "trace: ",
        };
        let line = format!("stretto-proxy: {level}{}\n", one_line(&message.0));
        // With stderr gone there is nobody left to tell.
        io::stderr().write_all(line.as_bytes()).ok();
    }
}

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a String cannot go wrong.
        if field.name() == "message" {
            self.0.insert_str(0, &format!("{value:?}"));
        } else {
            write!(self.0, " {}={value:?}", field.name()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("loading x")]
    struct Outer(#[source] io::Error);

    #[test]
    fn causes_stand_on_one_line() {
        let error = Outer(io::Error::other("first\nsecond"));
        assert_eq!(chain(&error), "loading x: first second");
        let error = Outer(io::Error::other("\u{1b}[31m\r\u{9b}red\u{202e}"));
        assert_eq!(chain(&error), "loading x:  [31m  red ");
    }
}
