//! What the host hears: which line a step waits for, and whether it is as the step says.

use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::Value;

use crate::host::Waited;
use crate::message::{Kind, Message};
use crate::process;
use crate::record::Seen;
use crate::scenario::Transport;
use crate::scenario::placeholders::Places;
use crate::scenario::step::{Awaited, Expected};

use super::{Player, Wrong, unset};

impl Player<'_> {
    pub(super) fn hear(&mut self, line: Vec<u8>) {
        self.heard.push(Message::of(line));
        self.is_consumed.push(false);
    }

    /// Whether this line has no place of its own among the others: over HTTP, the server's own messages.
    pub(super) fn is_untimed(&self, at: usize) -> bool {
        let is_own = |message: &Message| {
            matches!(
                message.kind,
                Kind::Request { .. } | Kind::Notification { .. }
            )
        };
        self.stage.over == Transport::Http && self.heard.get(at).is_some_and(is_own)
    }

    /// Shows the host what came before `end`, in the order it came.
    pub(super) fn show_up_to(&mut self, end: usize) {
        for at in self.shown..end {
            if !self.is_untimed(at) {
                self.view.push(Seen::Heard(at));
            }
        }
        self.shown = self.shown.max(end);
    }

    pub(super) fn wait_for(&mut self, awaited: &Awaited, expected: &Expected) -> Result<(), Wrong> {
        let deadline = Instant::now() + self.stage.patience;
        let mut looked_at = 0;
        let found = loop {
            let fresh = (looked_at..self.heard.len())
                .find(|at| self.is_awaited(*at, awaited) && self.is_the_one(*at, expected));
            if let Some(found) = fresh {
                break found;
            }
            looked_at = self.heard.len();
            match self.host.wait_until(deadline) {
                Waited::Line(line) => self.hear(line),
                Waited::Ended => return Err(self.nothing(awaited, "the proxy closed its stdout")),
                Waited::TimedOut => {
                    let why = format!("nothing more for {} s", self.stage.patience.as_secs());
                    return Err(self.nothing(awaited, &why));
                }
            }
        };
        if self.is_untimed(found) {
            self.view.push(Seen::Heard(found));
        } else {
            self.show_up_to(found + 1);
        }
        if let Some(consumed) = self.is_consumed.get_mut(found) {
            *consumed = true;
        }
        let mark = self.mark;
        if !self.is_untimed(found) {
            self.mark = mark.max(found + 1);
        }
        let is_answer = matches!(awaited, Awaited::Response(_));
        self.has_answer = self.has_answer || is_answer;
        let Some(message) = self.heard.get(found) else {
            return Ok(());
        };
        let others: Vec<String> = (mark..found)
            .filter(|at| !self.is_untimed(*at))
            .filter_map(|at| self.heard.get(at))
            .map(excerpt)
            .collect();
        if expected.only && !others.is_empty() {
            return Err(Wrong {
                expected: "nothing else to arrive before".to_owned(),
                came: others.join("\n"),
            });
        }
        check(message, expected, &self.places)?;
        let said = message.said();
        for (name, pattern) in &expected.take {
            let taken = Regex::new(pattern)
                .ok()
                .and_then(|regex| Some(regex.captures(&said)?.get(1)?.as_str().to_owned()));
            let Some(taken) = taken else {
                return Err(Wrong {
                    expected: format!("a text in which {pattern} finds ${name}"),
                    came: said,
                });
            };
            self.places.set(name, taken);
        }
        Ok(())
    }

    pub(super) fn is_awaited(&self, at: usize, awaited: &Awaited) -> bool {
        let Some(message) = self.heard.get(at) else {
            return false;
        };
        if self.is_consumed.get(at) == Some(&true) {
            return false;
        }
        match (awaited, &message.kind) {
            (Awaited::Response(wanted), Kind::Response { id }) => wanted == id,
            (
                Awaited::Message(wanted),
                Kind::Request { method, .. } | Kind::Notification { method },
            ) => wanted == method,
            (Awaited::ErrorWithoutId, Kind::Response { id: Value::Null })
            | (Awaited::Line, Kind::Other) => true,
            _ => false,
        }
    }

    /// Over HTTP the server's own messages come in any order, so what a step says of one tells which it means.
    pub(super) fn is_the_one(&self, at: usize, expected: &Expected) -> bool {
        let Some(message) = self.heard.get(at).filter(|_| self.is_untimed(at)) else {
            return true;
        };
        let said = message.text();
        let holds = |text: &String| {
            self.places
                .fill(text)
                .is_ok_and(|text| said.contains(&text))
        };
        expected.contains.as_ref().is_none_or(holds)
    }

    /// What to say when what was waited for never came.
    pub(super) fn nothing(&mut self, awaited: &Awaited, why: &str) -> Wrong {
        let expected = match awaited {
            Awaited::Response(id) => format!("the answer to {id}"),
            Awaited::Message(method) => format!("{method} from the server"),
            Awaited::ErrorWithoutId => "an error without an id".to_owned(),
            Awaited::Line => "a line that is no single message".to_owned(),
        };
        let mut came: Vec<String> = self.heard.iter().skip(self.mark).map(excerpt).collect();
        came.push(why.to_owned());
        let soon = Instant::now() + Duration::from_millis(200);
        if let Ok(Some(status)) = self.proxy.wait_until(soon) {
            came.push(format!("the proxy exited with {}", process::ending(status)));
        }
        let stderr = self.stage.stderr_text();
        came.extend(
            stderr
                .lines()
                .rev()
                .take(5)
                .map(|line| format!("stderr: {line}")),
        );
        Wrong {
            expected,
            came: came.join("\n"),
        }
    }
}

/// A line as a failure report shows it.
pub(super) fn excerpt(message: &Message) -> String {
    const MOST: usize = 400;
    let text = message.text();
    if text.chars().count() <= MOST {
        text
    } else {
        format!("{}…", text.chars().take(MOST).collect::<String>())
    }
}

/// Holds a line against what its step expects.
fn check(message: &Message, expected: &Expected, places: &Places) -> Result<(), Wrong> {
    let filled = |text: &str| places.fill(text).map_err(|name| unset(&name));
    let said = || message.said();
    if let Some(text) = &expected.fails {
        let text = filled(text)?;
        match message.failure() {
            Some(failure) if failure.contains(&text) => {}
            Some(failure) => {
                return Err(Wrong {
                    expected: format!("an error that holds: {text}"),
                    came: failure,
                });
            }
            None => {
                return Err(Wrong {
                    expected: format!("an error that holds: {text}"),
                    came: excerpt(message),
                });
            }
        }
    } else if message.failure().is_some() && expected.is_error.is_some() {
        return Err(Wrong {
            expected: "a result".to_owned(),
            came: excerpt(message),
        });
    }
    if let Some(wanted) = expected.is_error
        && message.is_error() != wanted
    {
        let expected = if wanted {
            "a result that is marked as an error"
        } else {
            "a result that is no error"
        };
        return Err(Wrong {
            expected: expected.to_owned(),
            came: excerpt(message),
        });
    }
    if let Some(text) = &expected.contains {
        let text = filled(text)?;
        // An answer's text first; what stands elsewhere in the line counts, too.
        if !said().contains(&text) && !message.text().contains(&text) {
            return Err(Wrong {
                expected: format!("the text to hold: {text}"),
                came: said(),
            });
        }
    }
    if let Some(text) = &expected.lacks {
        let text = filled(text)?;
        if said().contains(&text) || message.text().contains(&text) {
            return Err(Wrong {
                expected: format!("the text not to hold: {text}"),
                came: said(),
            });
        }
    }
    if let Some(text) = &expected.exactly {
        let text = filled(text)?;
        if message.content() != text.as_bytes() {
            return Err(Wrong {
                expected: format!("the line to be: {text}"),
                came: message.text(),
            });
        }
    }
    Ok(())
}
