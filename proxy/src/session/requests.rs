//! Requests in flight: the host's, and the proxy's own.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::commit::CommitKey;
use crate::{clock::Millis, message::Id};

/// How long a request of our own may stay unanswered.
pub(super) const PATIENCE: Millis = Millis(60_000);

/// What the ids of the proxy's own requests start with.
const OWN: &str = "stretto-";

/// The numbers of the proxy's own requests, counted from 1 over the whole session.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnIds(Arc<AtomicU64>);

impl OwnIds {
    /// The next id that is not `taken`.
    pub(crate) fn next(&self, taken: impl Fn(&Id) -> bool) -> String {
        loop {
            let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            let id = format!("{OWN}{number}");
            if !taken(&Id::Text(id.clone())) {
                return id;
            }
        }
    }
}

/// A call of the agent's that the server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentCall {
    /// The request's id.
    pub(super) id: Id,
    /// How it was spelled.
    pub(super) spelling: String,
    /// The tool.
    pub(super) tool: String,
}

/// A `tools/list` of the host's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listing {
    /// The page it asked for; none for the first.
    pub(super) cursor: Option<String>,
}

/// What a request of the host's was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Call(AgentCall),
    Listing(Listing),
    Other,
}

/// What a request of our own is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A lookup of the flow that is running.
    Lookup,
    /// A call of this commit.
    Commit(CommitKey),
}

#[derive(Clone, Debug)]
struct Own {
    purpose: Purpose,
    tool: String,
    sent: Millis,
}

/// Whose request a response answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// One of our own that is waited for.
    Own(Purpose),
    /// One of our own that is not waited for any more.
    Over,
    /// One of the host's.
    Host(Asked),
    /// Nobody's.
    Unknown,
}

/// All requests that wait for an answer.
#[derive(Debug, Default)]
pub(super) struct Requests {
    ids: OwnIds,
    host: HashMap<Id, Asked>,
    own: HashMap<Id, Own>,
    /// Requests of our own that are waited for no more: given up, or answered, so that whatever
    /// else the server says to them stays here.
    over: HashSet<Id>,
    /// Ids of the host's, answered or not, that look like our own: used for one of ours, they
    /// would stand for two calls in the session and in its log.
    like_ours: HashSet<Id>,
}

impl Requests {
    pub(super) fn new(ids: OwnIds) -> Self {
        Self {
            ids,
            ..Self::default()
        }
    }

    /// The host uses that id, though the server may never have it.
    pub(super) fn saw(&mut self, id: &Id) {
        if matches!(id, Id::Text(text) if text.starts_with(OWN)) {
            self.like_ours.insert(id.clone());
        }
    }

    /// The host's request is on its way to the server.
    pub(super) fn asked(&mut self, id: Id, asked: Asked) {
        // Reused by the host, the id's next answer is the host's.
        self.over.remove(&id);
        self.saw(&id);
        self.host.insert(id, asked);
    }

    /// A new request of our own is on its way. Returns its id.
    pub(super) fn ask(&mut self, at: Millis, purpose: Purpose, tool: &str) -> String {
        let taken = |id: &Id| self.like_ours.contains(id) || self.over.contains(id);
        let id = self.ids.next(taken);
        self.own.insert(
            Id::Text(id.clone()),
            Own {
                purpose,
                tool: tool.to_owned(),
                sent: at,
            },
        );
        id
    }

    /// A response came: whose request does it answer? That request waits no more.
    pub(super) fn answered(&mut self, id: &Id) -> Answered {
        if let Some(own) = self.own.remove(id) {
            self.over.insert(id.clone());
            return Answered::Own(own.purpose);
        }
        if self.over.contains(id) {
            return Answered::Over;
        }
        self.host
            .remove(id)
            .map_or(Answered::Unknown, Answered::Host)
    }

    /// The host waits no more for an answer to its request. One that comes all the same is nobody's.
    pub(super) fn forget(&mut self, id: &Id) {
        self.host.remove(id);
    }

    /// Whether an answer with this id is for the proxy itself.
    pub(super) fn is_own(&self, id: &Id) -> bool {
        self.own.contains_key(id) || self.over.contains(id)
    }

    /// Whether a request of our own with this id waits for its answer.
    pub(super) fn is_waited_for(&self, id: &Id) -> bool {
        self.own.contains_key(id)
    }

    /// Waits no more for the request of our own that is for `purpose`. Returns its id, if there was one.
    pub(super) fn give_up(&mut self, purpose: &Purpose) -> Option<String> {
        let id = self
            .own
            .iter()
            .find(|(_, own)| own.purpose == *purpose)
            .map(|(id, _)| id.clone())?;
        self.own.remove(&id);
        self.over.insert(id.clone());
        match id {
            Id::Text(text) => Some(text),
            Id::Number(_) | Id::Odd(_) => None,
        }
    }

    /// The requests of our own that have waited too long: what for, and for which tool.
    pub(super) fn overdue(&self, at: Millis) -> Vec<(Purpose, String)> {
        let overdue = self.own.values().filter(|own| at - own.sent > PATIENCE);
        overdue
            .map(|own| (own.purpose.clone(), own.tool.clone()))
            .collect()
    }

    /// Whether any request of our own waits.
    pub(super) fn is_waiting(&self) -> bool {
        !self.own.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(id: &str) -> Id {
        Id::Text(id.into())
    }

    #[test]
    fn ids_that_the_host_uses_are_skipped() {
        let mut requests = Requests::default();
        requests.asked(text("stretto-1"), Asked::Other);
        requests.asked(Id::Number(2), Asked::Other);
        assert_eq!(requests.ask(Millis(0), Purpose::Lookup, "x"), "stretto-2");
        assert_eq!(
            requests.answered(&text("stretto-1")),
            Answered::Host(Asked::Other)
        );
        assert_eq!(
            requests.answered(&text("stretto-2")),
            Answered::Own(Purpose::Lookup)
        );
        assert_eq!(
            requests.answered(&text("stretto-2")),
            Answered::Over,
            "a second answer goes no further"
        );

        requests.asked(text("stretto-3"), Asked::Other);
        requests.answered(&text("stretto-3"));
        assert_eq!(requests.ask(Millis(0), Purpose::Lookup, "x"), "stretto-4");
    }

    #[test]
    fn a_late_answer_is_swallowed_unless_the_host_has_reused_the_id() {
        let mut requests = Requests::default();
        requests.ask(Millis(0), Purpose::Lookup, "x");
        assert_eq!(
            requests.give_up(&Purpose::Lookup).as_deref(),
            Some("stretto-1")
        );
        assert_eq!(requests.give_up(&Purpose::Lookup), None);
        assert_eq!(requests.answered(&text("stretto-1")), Answered::Over);

        requests.ask(Millis(0), Purpose::Lookup, "x");
        requests.give_up(&Purpose::Lookup);
        requests.asked(text("stretto-2"), Asked::Other);
        assert_eq!(
            requests.answered(&text("stretto-2")),
            Answered::Host(Asked::Other)
        );
    }

    #[test]
    fn a_request_is_overdue_after_more_than_a_minute() {
        let mut requests = Requests::default();
        requests.ask(Millis(5), Purpose::Lookup, "x");
        assert_eq!(requests.overdue(Millis(60_005)), []);
        assert_eq!(
            requests.overdue(Millis(60_006)),
            [(Purpose::Lookup, "x".into())]
        );
    }
}
