//! A recorded session once more, call by call.
//!
//! An episode puts the calls of a turn where its first one was sent. Live, each was judged when
//! it came, against all that had crossed the proxy before. Replaying a log does the same.

use stretto_trace::mcp::{EpisodeBuilder, Log};
use stretto_trace::{Event, ToolCall};

/// The next thing that happened in a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step<'a> {
    /// A call was sent.
    Called(&'a ToolCall),
    /// Anything else: something was said, or a call returned.
    Happened(&'a Event),
}

/// Goes through a session's log, in the order of its lines.
///
/// Turns play no part. What is a call, and which response is its result, is as in the log's
/// [episode](stretto_trace::mcp::episode); calls that the proxy made on its own account, such
/// as those of a commit, are among them.
///
/// ```
/// use stretto_guards::{Facts, Guards, Step, replay};
/// # use stretto_trace::mcp::Log;
///
/// # fn audit(log: &Log) -> Result<(), stretto_guards::UnknownDomain> {
/// let guards = Guards::for_domain("retail")?;
/// let mut facts = Facts::default();
/// replay(log, |step| match step {
///     Step::Called(call) => {
///         let checked = guards.check(&facts, call);
///         println!("{}: {:?}", call.name, checked.refusal());
///         facts.called(call);
///     }
///     Step::Happened(event) => facts.observe(event),
/// });
/// # Ok(())
/// # }
/// ```
pub fn replay(log: &Log, mut step: impl FnMut(Step<'_>)) {
    let mut builder = EpisodeBuilder::new(&log.header);
    // The event of the turn that calls may still join, and how many of its calls were told.
    let mut turn = 0;
    let mut told = 0;
    for (entry, message) in log.messages() {
        let before = builder.events().len();
        builder.message(entry.t_ms, entry.from, message);
        for (place, event) in builder.events().iter().enumerate().skip(before) {
            if calls_of(event).is_empty() {
                step(Step::Happened(event));
            } else {
                (turn, told) = (place, 0);
            }
        }
        let calls = builder.events().get(turn).map_or(&[][..], calls_of);
        for call in calls.iter().skip(told) {
            step(Step::Called(call));
        }
        told = calls.len();
    }
}

fn calls_of(event: &Event) -> &[ToolCall] {
    match event {
        Event::Assistant { calls, .. } => calls,
        Event::User { .. } | Event::ToolResult { .. } => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a log of these lines tells, each as its sender and the message.
    fn steps(lines: &[(&str, &str)]) -> Vec<String> {
        let header = r#"{"stretto_mcp_log":2,"session":"s","started_unix_ms":0}"#;
        let entry = |&(from, message): &(&str, &str)| {
            format!(r#"{{"t_ms":0,"from":"{from}","message":{message}}}"#)
        };
        let entries: Vec<String> = lines.iter().map(entry).collect();
        let text = format!("{header}\n{}", entries.join("\n"));
        let log = Log::parse(text.as_bytes()).unwrap();
        let mut steps = Vec::new();
        replay(&log, |step| {
            steps.push(match step {
                Step::Called(call) => format!("call {}", call.id),
                Step::Happened(Event::User { text }) => format!("user {text}"),
                Step::Happened(Event::Assistant { text, .. }) => {
                    format!("agent {}", text.as_deref().unwrap_or_default())
                }
                Step::Happened(Event::ToolResult {
                    call_id, content, ..
                }) => {
                    format!("result {call_id} {content}")
                }
            });
        });
        steps
    }

    fn call(id: &str) -> String {
        format!(r#"{{"id":{id},"method":"tools/call","params":{{"name":"t{id}"}}}}"#)
    }

    fn result(id: &str) -> String {
        format!(r#"{{"id":{id},"result":{{"content":[{{"type":"text","text":"ok"}}]}}}}"#)
    }

    #[test]
    fn calls_of_one_turn_come_when_they_were_sent() {
        let (call, result) = (|id| ("client", call(id)), |id| ("server", result(id)));
        let user = ("context", r#"{"role":"user","content":"wait"}"#.to_owned());
        // Call 3 joins the turn of 1 and 2, since 2 is still open.
        let lines = [
            call("1"),
            call("2"),
            result("1"),
            user,
            call("3"),
            result("3"),
            result("2"),
        ];
        let lines = lines
            .each_ref()
            .map(|(from, message)| (*from, message.as_str()));
        let expected = [
            "call 1",
            "call 2",
            "result 1 ok",
            "user wait",
            "call 3",
            "result 3 ok",
            "result 2 ok",
        ];
        assert_eq!(steps(&lines), expected);
    }

    #[test]
    fn a_batch_is_taken_apart_and_the_proxys_own_calls_are_told() {
        let batch = format!("[{},{}]", call("1"), call("2"));
        let (own, its_result) = (
            call("\"stretto-1\"").replace("t\"stretto-1\"", "t"),
            result("\"stretto-1\""),
        );
        let (first, second) = (result("1"), result("2"));
        let lines = [
            ("client", batch.as_str()),
            ("server", first.as_str()),
            ("proxy", own.as_str()),
            ("server", its_result.as_str()),
            ("proxy", second.as_str()),
            ("server", second.as_str()),
        ];
        let expected = [
            "call 1",
            "call 2",
            "result 1 ok",
            "call stretto-1",
            "result stretto-1 ok",
            "result 2 ok",
        ];
        assert_eq!(steps(&lines), expected);
    }

    #[test]
    fn what_the_agent_says_is_told_apart_from_its_calls() {
        let (first, answer, second) = (call("1"), result("1"), call("2"));
        let lines = [
            ("context", r#"{"role":"assistant","content":"Hello"}"#),
            ("client", first.as_str()),
            ("server", answer.as_str()),
            ("context", r#"{"role":"assistant","content":"Shall I?"}"#),
            ("context", r#"{"role":"user","content":"yes"}"#),
            ("client", second.as_str()),
        ];
        let expected = [
            "agent Hello",
            "call 1",
            "result 1 ok",
            "agent Shall I?",
            "user yes",
            "call 2",
        ];
        assert_eq!(steps(&lines), expected);
        assert_eq!(steps(&[]), [""; 0]);
    }
}
