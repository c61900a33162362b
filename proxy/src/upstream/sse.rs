//! Event streams: bytes in, messages out.
//!
//! The rules are those that browsers follow (the HTML standard, "server-sent events"). A parser
//! of our own, because a message of many megabytes has to cost its own size and no more, and
//! because what is done about a stream that breaks off differs from what a browser does.

use std::{mem, time::Duration};

use bytes::{Buf, Bytes};
use memchr::memchr2;
use serde::de::IgnoredAny;

/// The longest wait that a server can ask for.
const LONGEST_RETRY: Duration = Duration::from_secs(30);

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads an event stream, however it is cut up.
///
/// Give it bytes with [`EventParser::feed`], then take messages with [`EventParser::take`] until
/// there are none.
#[derive(Debug, Default)]
pub(super) struct EventParser {
    fed: Bytes,
    /// The beginning of a line whose end was not fed yet.
    line: Vec<u8>,
    /// The last line ended with a carriage return, so a line feed that follows belongs to it.
    after_return: bool,
    past_first_line: bool,
    event: Event,
    last_id: Option<String>,
    retry: Option<Duration>,
    has_seen_event: bool,
}

/// An event that has not ended yet.
#[derive(Debug, Default)]
struct Event {
    /// The lines of its data, joined by line feeds.
    data: Vec<u8>,
    has_data: bool,
    /// Whether its name is one that carries messages.
    is_other: bool,
    id: Option<String>,
}

impl EventParser {
    /// A parser for a stream that continues another: its last id counts until there is a new one.
    pub(super) fn continuing(&self) -> Self {
        Self {
            last_id: self.last_id.clone(),
            retry: self.retry,
            ..Self::default()
        }
    }

    /// Adds what was read. What was fed before must have been taken.
    pub(super) fn feed(&mut self, bytes: Bytes) {
        debug_assert!(self.fed.is_empty(), "messages were left untaken");
        self.fed = bytes;
    }

    /// The next message whose event has ended: its data, with line feeds between its lines.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        while !self.fed.is_empty() {
            if mem::take(&mut self.after_return) && self.fed[0] == b'\n' {
                self.fed.advance(1);
                continue;
            }
            let Some(at) = memchr2(b'\n', b'\r', &self.fed) else {
                let rest = mem::take(&mut self.fed);
                self.keep(&rest);
                break;
            };
            self.after_return = self.fed[at] == b'\r';
            let end = self.fed.split_to(at);
            self.fed.advance(1);
            let message = if self.line.is_empty() {
                self.line_ended(&end)
            } else {
                self.keep(&end);
                let mut line = mem::take(&mut self.line);
                let message = self.long_line_ended(&mut line);
                line.clear();
                line.shrink_to(64 * 1024);
                self.line = line;
                message
            };
            if message.is_some() {
                return message;
            }
        }
        None
    }

    /// The message at the end of a stream that broke off in the middle of an event, if the whole of
    /// its data has come.
    pub(super) fn take_rest(&mut self) -> Option<Vec<u8>> {
        let mut line = mem::take(&mut self.line);
        self.skip_byte_order_mark(&mut line);
        // Any other field may have been cut short, which nobody could tell.
        if line.starts_with(b"data:") {
            self.line_ended(&line);
        }
        let data = &self.event.data;
        let is_message = matches!(data.trim_ascii_start().first(), Some(b'{' | b'['))
            && serde_json::from_slice::<IgnoredAny>(data).is_ok();
        if is_message {
            self.event_ended()
        } else {
            self.event = Event::default();
            None
        }
    }

    /// The id of the last event that had one. None also after an event with an empty one.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref().filter(|id| !id.is_empty())
    }

    /// How long the server asks to wait before the stream is opened again, 30 s at most.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Whether an event has ended, with a message or without.
    pub(super) fn has_seen_event(&self) -> bool {
        self.has_seen_event
    }

    fn keep(&mut self, bytes: &[u8]) {
        let is_comment = self.line.first() == Some(&b':');
        if !is_comment {
            self.line.extend_from_slice(bytes);
        }
    }

    /// As [`EventParser::line_ended`], without a second copy of data that is long.
    fn long_line_ended(&mut self, line: &mut Vec<u8>) -> Option<Vec<u8>> {
        self.skip_byte_order_mark(line);
        if self.event.has_data || !line.starts_with(b"data:") {
            return self.line_ended(line);
        }
        let start = if line.get(5) == Some(&b' ') { 6 } else { 5 };
        line.drain(..start);
        self.event.has_data = true;
        mem::swap(&mut self.event.data, line);
        None
    }

    fn skip_byte_order_mark(&mut self, line: &mut Vec<u8>) {
        if !mem::replace(&mut self.past_first_line, true) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
    }

    fn line_ended(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let line = match line.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) if !self.past_first_line => rest,
            _ => line,
        };
        self.past_first_line = true;
        if line.is_empty() {
            return self.event_ended();
        }
        let (field, value) = match line.iter().position(|&byte| byte == b':') {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.event.has_data {
                    self.event.data.push(b'\n');
                }
                self.event.has_data = true;
                self.event.data.extend_from_slice(value);
            }
            b"event" => self.event.is_other = !matches!(value, b"" | b"message"),
            b"id" if !value.contains(&0) => {
                self.event.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry = Some(retry(value));
            }
            // A comment, whose field is empty, and what later versions may bring.
            _ => {}
        }
        None
    }

    fn event_ended(&mut self) -> Option<Vec<u8>> {
        let event = mem::take(&mut self.event);
        self.has_seen_event |= event.has_data || event.id.is_some();
        if event.id.is_some() {
            self.last_id = event.id;
        }
        (!event.data.is_empty() && !event.is_other).then(|| replace_bad_utf8(event.data))
    }
}

fn retry(digits: &[u8]) -> Duration {
    let ms = str::from_utf8(digits)
        .ok()
        .and_then(|text| text.parse().ok());
    ms.map_or(LONGEST_RETRY, Duration::from_millis)
        .min(LONGEST_RETRY)
}

fn replace_bad_utf8(bytes: Vec<u8>) -> Vec<u8> {
    match String::from_utf8(bytes) {
        Ok(text) => text.into_bytes(),
        Err(error) => String::from_utf8_lossy(error.as_bytes())
            .into_owned()
            .into_bytes(),
    }
}

#[cfg(test)]
mod tests;
