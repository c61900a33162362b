//! Questions to a System-One model. They are asked beside the traffic: only what depends on
//! an answer waits for it.

use std::collections::HashMap;

use stretto_oracle::Request;

use super::Act;

/// Names a question, so that its answer finds its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ticket(u64);

#[cfg(test)]
impl Ticket {
    /// The ticket of some question.
    pub(crate) fn of_test(number: u64) -> Self {
        Self(number)
    }
}

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// The flow's next step.
    Decision,
    /// Whether a write was confirmed.
    Judgment,
}

/// The questions that are with the model, and whose answers somebody waits for.
#[derive(Debug, Default)]
pub(super) struct Questions {
    put: u64,
    open: HashMap<Ticket, About>,
}

impl Questions {
    /// Puts a question.
    pub(super) fn put(&mut self, about: About, request: Request, acts: &mut Vec<Act>) -> Ticket {
        self.put += 1;
        let ticket = Ticket(self.put);
        self.open.insert(ticket, about);
        acts.push(Act::Ask(ticket, Box::new(request)));
        ticket
    }

    /// Nobody waits for this answer any more. When it comes it is kept for another time, and that is all.
    pub(super) fn give_up(&mut self, ticket: Ticket) {
        self.open.remove(&ticket);
    }

    /// Whether any answer is waited for.
    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// What the question was about whose answer has come.
    pub(super) fn answered(&mut self, ticket: Ticket) -> Option<About> {
        self.open.remove(&ticket)
    }
}
