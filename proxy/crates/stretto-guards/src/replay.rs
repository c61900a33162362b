//! A recorded session once more, call by call.
//!
//! An episode puts the calls of a turn where its first one was sent. Live, each was judged when
//! it came, against all that had crossed the proxy before. Replaying a log does the same.

use std::collections::HashMap;

use stretto_trace::mcp::{CallAt, Effect, EpisodeBuilder, Log};
use stretto_trace::{Episode, Event, ToolCall};

/// The next thing that happened in a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step<'a> {
    /// The customer or the agent said something.
    Said(&'a Event),
    /// A call was sent.
    Called {
        /// Which one of the session, for its result to be found by. Ids may come again.
        at: CallAt,
        /// The call.
        call: &'a ToolCall,
    },
    /// A call returned.
    Returned {
        /// Which one.
        at: CallAt,
        /// Its result.
        result: &'a Event,
    },
}

/// Goes through a session's log, in the order of its lines.
///
/// Turns play no part. What is a call, and which response is its result, is as in the log's
/// [episode](stretto_trace::mcp::episode()); calls that the proxy made on its own account, such
/// as those of a commit, are among them. A call that was made again with the answer to a
/// question of the server's is told once.
///
/// ```
/// use stretto_guards::{Facts, Guards, Step, replay};
/// # use stretto_trace::mcp::Log;
///
/// # fn audit(log: &Log) -> Result<(), stretto_guards::UnknownDomain> {
/// let guards = Guards::for_domain("retail")?;
/// let mut facts = Facts::default();
/// replay(log, |step| match step {
///     Step::Called { call, .. } => {
///         let checked = guards.check(&facts, call);
///         println!("{}: {:?}", call.name, checked.refusal());
///         facts.called(call);
///     }
///     Step::Said(event) | Step::Returned { result: event, .. } => facts.observe(event),
/// });
/// # Ok(())
/// # }
/// ```
pub fn replay(log: &Log, mut tell: impl FnMut(Step<'_>)) {
    let mut builder = EpisodeBuilder::new(&log.header);
    for (entry, message) in log.messages() {
        let effect = builder.step(entry.t_ms, entry.from, message);
        let step = match effect {
            Effect::Said(event) => builder.events().get(event).map(Step::Said),
            Effect::Called(at) => builder.call(at).map(|call| Step::Called { at, call }),
            Effect::Returned { call: at, event } => {
                let result = builder.events().get(event);
                result.map(|result| Step::Returned { at, result })
            }
            Effect::None | Effect::Retried(_) | Effect::Cancelled(_) | Effect::Interim(_) => None,
        };
        if let Some(step) = step {
            tell(step);
        }
    }
}

/// Goes through an episode that was not recorded by the proxy, turn by turn: the calls of a turn
/// come before what the agent said in it, since each was made without knowing the others'
/// results.
pub fn replay_episode(episode: &Episode, mut tell: impl FnMut(Step<'_>)) {
    let mut made: HashMap<&str, CallAt> = HashMap::new();
    for (turn, event) in episode.events.iter().enumerate() {
        match event {
            Event::User { .. } => tell(Step::Said(event)),
            Event::Assistant { text, calls, .. } => {
                for (place, call) in calls.iter().enumerate() {
                    let at = CallAt { turn, place };
                    made.insert(&call.id, at);
                    tell(Step::Called { at, call });
                }
                if text.is_some() {
                    tell(Step::Said(event));
                }
            }
            Event::ToolResult { call_id, .. } => {
                if let Some(at) = made.remove(call_id.as_str()) {
                    tell(Step::Returned { at, result: event });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log of these lines, each its sender and the message.
    fn log(lines: &[(&str, &str)]) -> Log {
        let header = r#"{"stretto_mcp_log":2,"session":"s","started_unix_ms":0}"#;
        let entry = |&(from, message): &(&str, &str)| {
            format!(r#"{{"t_ms":0,"from":"{from}","message":{message}}}"#)
        };
        let entries: Vec<String> = lines.iter().map(entry).collect();
        let text = format!("{header}\n{}", entries.join("\n"));
        Log::parse(text.as_bytes()).unwrap()
    }

    /// What it tells.
    fn steps(lines: &[(&str, &str)]) -> Vec<String> {
        let mut steps = Vec::new();
        replay(&log(lines), |step| {
            steps.push(match step {
                Step::Called { call, .. } => format!("call {}", call.id),
                Step::Said(Event::User { text }) => format!("user {text}"),
                Step::Said(Event::Assistant {
                    text: Some(text), ..
                }) => format!("agent {text}"),
                Step::Returned {
                    result:
                        Event::ToolResult {
                            call_id, content, ..
                        },
                    ..
                } => {
                    format!("result {call_id} {content}")
                }
                step => panic!("{step:?}"),
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

    #[test]
    fn a_result_is_of_its_call_though_ids_come_again() {
        let (first, answer) = (call("1"), result("1"));
        let lines = [
            ("client", first.as_str()),
            ("client", first.as_str()),
            ("server", answer.as_str()),
        ];
        let mut calls = Vec::new();
        let mut results = Vec::new();
        replay(&log(&lines), |step| match step {
            Step::Called { at, .. } => calls.push(at),
            Step::Returned { at, .. } => results.push(at),
            Step::Said(_) => {}
        });
        assert_eq!(calls.len(), 2);
        assert_eq!(results, calls[1..]);
    }

    #[test]
    fn a_call_made_again_with_an_answer_is_told_once() {
        let question = r#"{"id":1,"result":{"resultType":"input_required","requestState":"s"}}"#;
        let again = r#"{"id":2,"method":"tools/call","params":{"name":"t1","requestState":"s"}}"#;
        let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":2}}"#;
        let (first, answer) = (call("1"), result("2"));
        let lines = [
            ("client", first.as_str()),
            ("server", question),
            ("client", again),
            ("client", cancel),
            ("server", answer.as_str()),
        ];
        assert_eq!(steps(&lines), ["call 1", "result 1 ok"]);
    }
}
