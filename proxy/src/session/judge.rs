//! The confirmation judge: a write waits for a model's word, and nothing else does.

use std::{collections::VecDeque, mem, time::Duration};

use stretto_guards::{
    Facts, Listings,
    confirm::{Judge, Judgment},
};
use stretto_oracle::{Budget, Response};
use stretto_trace::{Event, ToolCall};

use super::{
    Act, Active, Side, SideLog, commit,
    commit::CommitKey,
    questions::{About, Ticket},
    replies::Era,
    requests::{AgentCall, Asked},
};
use crate::{clock::Millis, line::Line, message::Id};

/// The judge, and the calls that wait for it.
#[derive(Debug)]
pub(crate) struct Judging {
    judge: Judge,
    budget: Budget,
    listings: Listings,
    /// In the order in which they were read; the first one's question is with the model.
    held: VecDeque<Held>,
    open: Option<Ticket>,
    /// Whether it was said that the session's questions are used up.
    has_said_spent: bool,
}

/// A call that waits for the judge.
#[derive(Debug)]
struct Held {
    tool: String,
    judgment: Judgment,
    since: Millis,
    then: Then,
}

/// What a call that passes goes on as.
#[derive(Debug)]
pub(super) enum Then {
    /// The host's line goes to the server.
    Forward {
        line: Line,
        asked_as: Option<(Id, String)>,
        era: Era,
    },
    /// A commit makes its call.
    Commit(CommitKey),
}

impl Judging {
    /// A judge at the beginning of a session, which may ask so many questions.
    pub(crate) fn new(judge: Judge, questions: u64) -> Self {
        Self {
            judge,
            budget: Budget::new(questions),
            listings: Listings::default(),
            held: VecDeque::new(),
            open: None,
            has_said_spent: false,
        }
    }

    pub(super) fn observe(&mut self, event: &Event) {
        self.listings.observe(event);
    }

    /// Begins to judge a call, against the session before it.
    pub(super) fn judge(&self, facts: &Facts, call: &ToolCall, word_list: bool) -> Judgment {
        self.judge
            .judge(facts.exchange(), &self.listings, call, word_list)
    }

    /// Whether any call waits.
    pub(super) fn holds_any(&self) -> bool {
        !self.held.is_empty()
    }

    fn position(&self, matches: impl Fn(&Then) -> bool) -> Option<usize> {
        self.held.iter().position(|held| matches(&held.then))
    }

    /// Lets go of a call, and returns the question that is open about it.
    fn remove(&mut self, position: usize) -> Option<Ticket> {
        drop(self.held.remove(position));
        if position == 0 {
            self.open.take()
        } else {
            None
        }
    }
}

impl Active {
    /// Holds a call until the judge has had its say.
    pub(super) fn hold_for_judge(
        &mut self,
        at: Millis,
        tool: &str,
        judgment: Judgment,
        then: Then,
        acts: &mut Vec<Act>,
    ) {
        let Some(judging) = &mut self.judging else {
            return;
        };
        judging.held.push_back(Held {
            tool: tool.to_owned(),
            judgment,
            since: at,
            then,
        });
        self.ask_judge(at, acts);
    }

    /// Puts the next question about the first call that waits; calls about which there is
    /// nothing to ask any more go on.
    fn ask_judge(&mut self, at: Millis, acts: &mut Vec<Act>) {
        loop {
            let Some(judging) = &mut self.judging else {
                return;
            };
            if judging.open.is_some() {
                return;
            }
            let Some(first) = judging.held.front_mut() else {
                return;
            };
            if let Some(request) = first.judgment.next(&mut judging.budget) {
                let ticket = self.questions.put(About::Judgment, request, acts);
                if let Some(judging) = &mut self.judging {
                    judging.open = Some(ticket);
                }
                return;
            }
            if let Some(judged) = judging.held.pop_front() {
                self.judged(at, judged, acts);
            }
        }
    }

    /// The model has answered, or will not.
    pub(super) fn judge_answered(
        &mut self,
        at: Millis,
        ticket: Ticket,
        answer: Result<Response, String>,
        acts: &mut Vec<Act>,
    ) {
        let Some(judging) = &mut self.judging else {
            return;
        };
        if judging.open != Some(ticket) {
            return;
        }
        judging.open = None;
        if let Some(first) = judging.held.front_mut()
            && let Some(error) = first.judgment.answered(answer)
        {
            acts.push(Act::Say(format!(
                "the judge could not say whether {} was confirmed: {error}",
                first.tool
            )));
        }
        self.ask_judge(at, acts);
    }

    /// A call has been judged: it goes on, or is refused.
    fn judged(&mut self, at: Millis, held: Held, acts: &mut Vec<Act>) {
        let waited = Duration::from_millis((at - held.since).0);
        let judged = held.judgment.finish(waited);
        let entry = serde_json::to_string(&judged.entry);
        acts.push(Act::Note(
            SideLog::Confirm,
            entry.expect("an entry is text, numbers and JSON"),
        ));
        if let (Some(skipped), Some(judging)) = (&judged.entry.skipped, &mut self.judging)
            && !judging.has_said_spent
        {
            judging.has_said_spent = true;
            acts.push(Act::Say(format!(
                "the judge asks nothing more, and refuses nothing more: {skipped}"
            )));
        }
        if let Some(reason) = &judged.refusal {
            acts.push(Act::Say(format!("refused {}: {reason}", held.tool)));
        }
        match (held.then, judged.refusal) {
            (Then::Forward { line, asked_as, .. }, None) => {
                if let Some((id, spelling)) = asked_as {
                    let call = AgentCall {
                        id: id.clone(),
                        spelling,
                        tool: held.tool,
                    };
                    self.requests.asked(id, Asked::Call(call));
                }
                acts.push(Act::Forward(Side::Server, line));
            }
            (Then::Forward { asked_as, era, .. }, Some(reason)) => {
                // Without an id there is nobody to answer.
                if let Some((id, spelling)) = asked_as {
                    self.requests.forget(&id);
                    self.send(
                        at,
                        Side::Host,
                        commit::refusal(&spelling, &era, &held.tool, &reason),
                        acts,
                    );
                }
            }
            (Then::Commit(key), refusal) => self.commit_call_judged(at, key, refusal, acts),
        }
    }

    /// The host wants no answer to a call that waits for the judge. False when none does.
    pub(super) fn drop_held_call(&mut self, at: Millis, id: &Id, acts: &mut Vec<Act>) -> bool {
        let is_it = |then: &Then| matches!(then, Then::Forward { asked_as: Some((asked, _)), .. } if asked == id);
        let dropped = self.let_go(at, is_it, acts);
        if dropped {
            self.requests.forget(id);
        }
        dropped
    }

    /// The commit is cancelled, or over.
    pub(super) fn drop_held_commit_call(
        &mut self,
        at: Millis,
        key: CommitKey,
        acts: &mut Vec<Act>,
    ) {
        self.let_go(
            at,
            |then| matches!(then, Then::Commit(commit) if *commit == key),
            acts,
        );
    }

    fn let_go(&mut self, at: Millis, matches: impl Fn(&Then) -> bool, acts: &mut Vec<Act>) -> bool {
        let Some(judging) = &mut self.judging else {
            return false;
        };
        let Some(position) = judging.position(matches) else {
            return false;
        };
        if let Some(ticket) = judging.remove(position) {
            self.questions.give_up(ticket);
        }
        self.ask_judge(at, acts);
        true
    }

    /// The server has gone: nobody is left to run what waits.
    pub(super) fn drop_all_held_calls(&mut self) {
        let Some(judging) = &mut self.judging else {
            return;
        };
        drop(mem::take(&mut judging.held));
        if let Some(ticket) = judging.open.take() {
            self.questions.give_up(ticket);
        }
    }
}
