//! `stretto_commit`: several calls in one, in order, each checked first.

use std::collections::VecDeque;

use serde_json::{Value, json};
use stretto_flow::lookup_result;
use stretto_guards::refusal_text;
use stretto_trace::ToolCall;

use super::{
    Act, Active, Side,
    active::{Check, Waiting},
    judge::Then,
    replies::{self, Era},
    requests::{Asked, Purpose},
    splice, tools,
};
use crate::{
    clock::Millis,
    line::Line,
    message::Id,
    skim::{Skim, member},
};

/// The tool's name.
pub(super) const COMMIT: &str = "stretto_commit";

/// What an agent hears that has called the tool wrongly.
const FORM: &str = "the arguments of stretto_commit are {\"calls\": [{\"name\": …, \"arguments\": {…}}, …]}, with one \
                    call or more, each naming another tool of this server; nothing was run.";

/// The commit tool, and the commits under way.
#[derive(Debug, Default)]
pub(super) struct Commits {
    /// Whether the server has a tool of that name itself: then it is the server's.
    is_the_servers: bool,
    begun: u64,
    under_way: Vec<Commit>,
}

/// Names a commit. The host may use one id for two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommitKey(u64);

/// A commit under way.
#[derive(Debug)]
pub(super) struct Commit {
    key: CommitKey,
    id: Id,
    spelling: String,
    era: Era,
    left: VecDeque<OneCall>,
    /// The call that waits for the judge.
    judged: Option<OneCall>,
    /// The call that the server has.
    sent: Option<OneCall>,
    report: Vec<String>,
}

/// One of a commit's calls.
#[derive(Clone, Debug, PartialEq)]
struct OneCall {
    name: String,
    /// As it was written.
    arguments: String,
    value: Value,
}

impl OneCall {
    /// How a report names it: arguments compact, members by name.
    fn named(&self) -> String {
        format!("{} {}", self.name, self.value)
    }
}

/// Why a commit ends before its last call.
enum Stop {
    Refused(String),
    Failed(String),
    NoAnswer,
}

impl Commits {
    /// Whether calls of the tool are ours.
    pub(super) fn takes(&self, tool: &str) -> bool {
        tool == COMMIT && !self.is_the_servers
    }

    /// The commits under way that the host asked for with that id.
    pub(super) fn asked_as(&self, id: &Id) -> Vec<CommitKey> {
        let asked = self.under_way.iter().filter(|commit| commit.id == *id);
        asked.map(|commit| commit.key).collect()
    }

    fn position(&self, key: CommitKey) -> Option<usize> {
        self.under_way.iter().position(|commit| commit.key == key)
    }

    fn get_mut(&mut self, key: CommitKey) -> Option<&mut Commit> {
        self.under_way.iter_mut().find(|commit| commit.key == key)
    }

    /// Those under way, oldest first.
    pub(super) fn keys(&self) -> Vec<CommitKey> {
        self.under_way.iter().map(|commit| commit.key).collect()
    }

    /// The listing with our tool at its end, if that is where it belongs.
    pub(super) fn amended(
        &mut self,
        line: &Line,
        response: &Value,
        acts: &mut Vec<Act>,
    ) -> Option<Line> {
        let result = response.get("result")?;
        if !result.get("tools")?.is_array() {
            return None;
        }
        if tools::lists(result, COMMIT) && !self.is_the_servers {
            self.is_the_servers = true;
            acts.push(Act::Say(format!(
                "the server has a tool named {COMMIT} itself, so --commit adds none and calls of it go to the server"
            )));
        }
        if self.is_the_servers || tools::next_cursor(result).is_some() {
            return None;
        }
        splice::append(line.bytes(), "tools", &tool().to_string())
            .map(|spliced| Line::from(bytes::Bytes::from(spliced)))
    }
}

fn tool() -> Value {
    json!({
        "name": COMMIT,
        "description": "Makes several calls of this server's tools in one step, in the order given. For changes that \
                        the user has confirmed, all of them: once they have agreed, make them together. Each call is \
                        checked against the policy before it is made. The first one that is refused or fails stops the \
                        rest. Returns the result of every call, and which were not run.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "calls": {
                    "type": "array",
                    "minItems": 1,
                    "description": "The calls, in order.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string", "description": "The name of another tool of this server."},
                            "arguments": {"type": "object", "description": "What that tool is given."}
                        },
                        "required": ["name", "arguments"]
                    }
                }
            },
            "required": ["calls"]
        },
        "annotations": {"readOnlyHint": false, "destructiveHint": true}
    })
}

impl Active {
    /// The host called the tool.
    pub(super) fn start_commit(
        &mut self,
        at: Millis,
        (id, spelling): (Id, String),
        era: Era,
        line: &Line,
        acts: &mut Vec<Act>,
    ) {
        let Some(left) = calls_of(line.content()) else {
            return self.send(
                at,
                Side::Host,
                replies::result(&spelling, &era, FORM, true),
                acts,
            );
        };
        // In use until it is answered, though the server does not have it.
        self.requests.asked(id.clone(), Asked::Other);
        let commits = self.commits_mut();
        commits.begun += 1;
        let key = CommitKey(commits.begun);
        commits.under_way.push(Commit {
            key,
            id,
            spelling,
            era,
            left,
            judged: None,
            sent: None,
            report: Vec::new(),
        });
        self.after_listening(at, Waiting::Commit(key), acts);
    }

    /// Makes the next call of a commit, or reports.
    pub(super) fn go_on_with_commit(&mut self, at: Millis, key: CommitKey, acts: &mut Vec<Act>) {
        let Some(commit) = self.commits_mut().get_mut(key) else {
            return;
        };
        let Some(next) = commit.left.pop_front() else {
            return self.report(at, key, None, acts);
        };
        let spelling = commit.spelling.clone();
        let call = ToolCall {
            id: spelling.clone(),
            name: next.name.clone(),
            arguments: next.value.clone(),
        };
        match self.check(&call, Some(&spelling), acts) {
            Check::Refused(reason) => {
                self.report(at, key, Some((next, Stop::Refused(reason))), acts);
            }
            Check::Passed => self.make_commit_call(at, key, next, acts),
            Check::Undecided(judgment) => {
                let tool = next.name.clone();
                if let Some(commit) = self.commits_mut().get_mut(key) {
                    commit.judged = Some(next);
                }
                self.hold_for_judge(at, &tool, *judgment, Then::Commit(key), acts);
            }
        }
    }

    /// The judge has had its say about a commit's next call.
    pub(super) fn commit_call_judged(
        &mut self,
        at: Millis,
        key: CommitKey,
        refusal: Option<String>,
        acts: &mut Vec<Act>,
    ) {
        let Some(commit) = self.commits_mut().get_mut(key) else {
            return;
        };
        let Some(call) = commit.judged.take() else {
            return;
        };
        match refusal {
            Some(reason) => self.report(at, key, Some((call, Stop::Refused(reason))), acts),
            None => self.make_commit_call(at, key, call, acts),
        }
    }

    fn make_commit_call(&mut self, at: Millis, key: CommitKey, call: OneCall, acts: &mut Vec<Act>) {
        if !self.server_takes_input() {
            return self.report(at, key, Some((call, Stop::NoAnswer)), acts);
        }
        let own = self.requests.ask(at, Purpose::Commit(key), &call.name);
        let Some(commit) = self.commits_mut().get_mut(key) else {
            return;
        };
        let request = replies::call(&own, &commit.era, &call.name, &call.arguments);
        commit.sent = Some(call);
        self.send(at, Side::Server, request, acts);
    }

    /// The server has answered a call of a commit; with nothing when the answer could not be read.
    pub(super) fn commit_call_answered(
        &mut self,
        at: Millis,
        key: CommitKey,
        response: Option<&Value>,
        is_final: bool,
        acts: &mut Vec<Act>,
    ) {
        let Some(commit) = self.commits_mut().get_mut(key) else {
            return;
        };
        let Some(sent) = commit.sent.take() else {
            return;
        };
        let (text, failed) = response.map_or_else(Default::default, lookup_result);
        if response.is_none() || failed || !is_final {
            return self.report(at, key, Some((sent, Stop::Failed(text))), acts);
        }
        commit.report.push(format!("{}:\n{text}", sent.named()));
        if commit.left.is_empty() {
            self.report(at, key, None, acts);
        } else if self.can_send() {
            self.after_listening(at, Waiting::Commit(key), acts);
        } else {
            self.commit_call_lost(at, key, acts);
        }
    }

    /// The server will not answer the call that it has: the commit ends there.
    pub(super) fn commit_call_lost(&mut self, at: Millis, key: CommitKey, acts: &mut Vec<Act>) {
        let Some(commit) = self.commits_mut().get_mut(key) else {
            return;
        };
        let stopped = commit
            .sent
            .take()
            .or_else(|| commit.judged.take())
            .or_else(|| commit.left.pop_front());
        self.report(at, key, stopped.map(|call| (call, Stop::NoAnswer)), acts);
    }

    /// The host wants no answer any more: the call under way is cancelled, and no other is made.
    pub(super) fn cancel_commit(&mut self, at: Millis, key: CommitKey, acts: &mut Vec<Act>) {
        let commits = self.commits_mut();
        if let Some(position) = commits.position(key) {
            commits.under_way.remove(position);
            self.drop_held_commit_call(at, key, acts);
            self.give_up(
                at,
                &Purpose::Commit(key),
                "the host cancelled the commit",
                acts,
            );
        }
    }

    /// Answers the host: what came of each call.
    fn report(
        &mut self,
        at: Millis,
        key: CommitKey,
        stop: Option<(OneCall, Stop)>,
        acts: &mut Vec<Act>,
    ) {
        let commits = self.commits_mut();
        let Some(position) = commits.position(key) else {
            return;
        };
        let mut commit = commits.under_way.remove(position);
        let is_error = stop.is_some();
        if let Some((call, stop)) = stop {
            let named = call.named();
            commit.report.push(match stop {
                Stop::Refused(reason) => {
                    format!("{named} was refused by the policy check: {reason}")
                }
                Stop::Failed(text) => format!("{named} (error):\n{text}"),
                Stop::NoAnswer => format!("{named} got no answer from the server"),
            });
        }
        commit.report.extend(
            commit
                .left
                .iter()
                .map(|call| format!("{} was not run", call.named())),
        );
        let text = commit.report.join("\n\n");
        self.send(
            at,
            Side::Host,
            replies::result(&commit.spelling, &commit.era, &text, is_error),
            acts,
        );
    }
}

/// The text of a refusal, as the agent gets it.
pub(super) fn refusal(spelling: &str, era: &Era, tool: &str, reason: &str) -> String {
    replies::result(spelling, era, &refusal_text(tool, reason), true)
}

/// The calls in the line's arguments; nothing when they have not the form.
fn calls_of(content: &[u8]) -> Option<VecDeque<OneCall>> {
    let calls = ["params", "arguments", "calls"]
        .iter()
        .try_fold(content, |object, name| {
            member(object, name).map(|at| &object[at])
        })?;
    let mut skim = Skim::new(calls);
    if !skim.takes(b'[') {
        return None;
    }
    let mut list = VecDeque::new();
    while skim.next_item(b']')? {
        let call = skim.value()?;
        let name: String = serde_json::from_slice(&call[member(call, "name")?]).ok()?;
        let arguments = member(call, "arguments").map_or(b"{}".as_slice(), |at| &call[at]);
        let value: Value = serde_json::from_slice(arguments).ok()?;
        if name == COMMIT || !value.is_object() {
            return None;
        }
        list.push_back(OneCall {
            name,
            arguments: str::from_utf8(arguments).ok()?.to_owned(),
            value,
        });
    }
    (!list.is_empty()).then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(arguments: &str) -> Option<Vec<String>> {
        let line = format!(
            r#"{{"id":1,"method":"tools/call","params":{{"name":"stretto_commit","arguments":{arguments}}}}}"#
        );
        Some(
            calls_of(line.as_bytes())?
                .iter()
                .map(|call| format!("{} {}", call.name, call.arguments))
                .collect(),
        )
    }

    #[test]
    fn arguments_go_on_as_they_were_written() {
        assert_eq!(
            calls(r#"{"x":1,"calls":[{"arguments":{"b": 1.0,"a":9007199254740993},"name":"w\u0031"},{"name":"r","y":2}]}"#)
                .unwrap(),
            [r#"w1 {"b": 1.0,"a":9007199254740993}"#, "r {}"]
        );
    }

    #[test]
    fn arguments_of_another_form_are_none() {
        for arguments in [
            "{}",
            "[]",
            "null",
            r#"{"calls":[]}"#,
            r#"{"calls":"x"}"#,
            r#"{"calls":{"name":"x"}}"#,
            r#"{"calls":["x"]}"#,
            r#"{"calls":[{"arguments":{}}]}"#,
            r#"{"calls":[{"name":7}]}"#,
            r#"{"calls":[{"name":"x","arguments":[]}]}"#,
            r#"{"calls":[{"name":"x","arguments":null}]}"#,
            r#"{"calls":[{"name":"x"},{"name":"stretto_commit"}]}"#,
        ] {
            assert_eq!(calls(arguments), None, "{arguments}");
        }
    }
}
