//! The timeline: what a server does by itself.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::faults::Fault;

/// An entry as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    name: Option<String>,
    after: String,
    #[serde(default)]
    ms: u64,
    send: Option<Value>,
    line: Option<String>,
    relist: Option<String>,
    exit: Option<i32>,
    fault: Option<Fault>,
}

/// Something that happens in a session, which the timeline may wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The server has started.
    Start,
    /// `initialize` has been answered.
    Initialize,
    /// The host has said that it is initialized.
    Initialized,
    /// A subscription has been acknowledged.
    Listen,
    /// A call of this tool has been answered, or left without an answer.
    Call(String),
}

/// What the server does when the time has come.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Deed {
    /// Sends a message.
    Send(Value),
    /// Writes a text as a line.
    Line(String),
    /// Takes another listing, and says that the tools have changed.
    Relist(String),
    /// Does what a fault does.
    Fault(Box<Fault>),
}

/// An entry of the timeline.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// Its name, or its place in the file.
    pub(crate) label: String,
    after: Moment,
    /// How long after the moment.
    pub(crate) wait: Duration,
    pub(crate) deed: Deed,
}

impl Entry {
    /// The entry that is written, at a place of the file. An error begins with the member it is about.
    pub(super) fn of(written: Written, place: &str) -> Result<Self, String> {
        let after = match written.after.as_str() {
            "start" => Moment::Start,
            "initialize" => Moment::Initialize,
            "initialized" => Moment::Initialized,
            "listen" => Moment::Listen,
            other => match other.strip_prefix("call:") {
                Some(tool) if !tool.is_empty() => Moment::Call(tool.to_owned()),
                _ => {
                    let allowed = "`start`, `initialize`, `initialized`, `listen` or `call:TOOL`";
                    return Err(format!("after: it is {allowed}, and not `{other}`"));
                }
            },
        };
        if let Some(fault) = &written.fault {
            fault.check().map_err(|what| format!("fault: {what}"))?;
            let allowed = [
                "exit",
                "signal",
                "close_stdout",
                "close_stdin",
                "line",
                "bytes",
                "crlf",
                "stderr",
                "ignore_eof",
                "ms",
                "end_session",
            ];
            if let Some((name, _)) = fault
                .members()
                .iter()
                .find(|(name, _)| !allowed.contains(name))
            {
                return Err(format!(
                    "fault: `{name}` needs an answer; without one there are {}",
                    allowed.join(", ")
                ));
            }
        }
        if written
            .exit
            .is_some_and(|status| !(0..=255).contains(&status))
        {
            return Err("exit: a status is between 0 and 255".into());
        }
        let deeds = [
            written.send.map(Deed::Send),
            written.line.map(Deed::Line),
            written.relist.map(Deed::Relist),
            written.exit.map(|status| {
                Deed::Fault(Box::new(Fault {
                    exit: Some(status),
                    ..Fault::default()
                }))
            }),
            written.fault.map(|fault| Deed::Fault(Box::new(fault))),
        ];
        let mut deeds = deeds.into_iter().flatten();
        let (Some(deed), None) = (deeds.next(), deeds.next()) else {
            return Err(
                "an entry does one thing: `send`, `line`, `relist`, `exit` or `fault`".into(),
            );
        };
        let label = written.name.unwrap_or_else(|| place.to_owned());
        Ok(Self {
            label,
            after,
            wait: Duration::from_millis(written.ms),
            deed,
        })
    }

    /// Whether it waits for this moment.
    pub(crate) fn waits_for(&self, moment: &Moment) -> bool {
        match (&self.after, moment) {
            (Moment::Call(any), Moment::Call(_)) if any == "*" => true,
            (after, moment) => after == moment,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(written: Value) -> Result<Entry, String> {
        let written: Written =
            serde_json::from_value(written).map_err(|error| error.to_string())?;
        Entry::of(written, "timeline[0]")
    }

    #[test]
    fn an_entry_waits_for_its_moment_alone() {
        let moments = [
            Moment::Start,
            Moment::Initialize,
            Moment::Initialized,
            Moment::Listen,
            Moment::Call("a".into()),
        ];
        for (at, after) in ["start", "initialize", "initialized", "listen", "call:a"]
            .into_iter()
            .enumerate()
        {
            let entry = entry(json!({"after": after, "line": "x"})).unwrap();
            let waits: Vec<bool> = moments
                .iter()
                .map(|moment| entry.waits_for(moment))
                .collect();
            assert_eq!(waits.iter().position(|waits| *waits), Some(at));
            assert_eq!(waits.iter().filter(|waits| **waits).count(), 1);
        }
    }

    #[test]
    fn a_star_waits_for_any_call() {
        let entry = entry(json!({"after": "call:*", "line": "x"})).unwrap();
        assert!(entry.waits_for(&Moment::Call("a".into())) && !entry.waits_for(&Moment::Start));
    }

    #[test]
    fn an_entry_that_cannot_be_meant_is_refused() {
        for (written, why) in [
            (json!({"line": "x"}), "missing field `after`"),
            (
                json!({"after": "later", "line": "x"}),
                "after: it is `start`",
            ),
            (
                json!({"after": "call:", "line": "x"}),
                "after: it is `start`",
            ),
            (json!({"after": "start"}), "does one thing"),
            (
                json!({"after": "start", "line": "x", "exit": 1}),
                "does one thing",
            ),
            (json!({"after": "start", "exit": 300}), "between 0 and 255"),
            (
                json!({"after": "start", "fault": {"twice": true}}),
                "`twice` needs an answer",
            ),
            (
                json!({"after": "start", "lines": "x"}),
                "unknown field `lines`",
            ),
        ] {
            let said = entry(written.clone()).unwrap_err();
            assert!(said.contains(why), "{written}: {said}");
        }
    }
}
