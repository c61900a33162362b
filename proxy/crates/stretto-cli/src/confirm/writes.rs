//! The writes of recorded sessions that a confirmation is asked of.

use std::collections::HashMap;

use serde::Serialize;
use stretto_guards::confirm::{FIRST, Judge};
use stretto_guards::{Facts, REFUSAL_START, Step};
use stretto_oracle::Key;
use stretto_oracle::offline::{Asked, Requests};
use stretto_trace::Event;
use stretto_trace::mcp::CallAt;

use crate::guarded::Guarded;

/// A write, and what the word list and the judge say of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Write {
    pub(super) domain: String,
    pub(super) task_id: String,
    /// The session.
    pub(super) episode: String,
    pub(super) tool: String,
    /// Whether the session was successful.
    pub(super) success: bool,
    /// Whether the tool refused it, or the proxy in the tool's place.
    pub(super) refused: bool,
    /// Whether the word list passes it.
    pub(super) word_list: bool,
    /// The probabilities of a yes, where there are answers.
    pub(super) p_yes: Option<f64>,
    pub(super) p_second: Option<f64>,
    /// What the customer had replied, in full.
    pub(super) customer: String,
    pub(super) key: Key,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) second_key: Option<Key>,
}

impl Write {
    /// Takes over the answers to its questions.
    pub(super) fn take_answers(&mut self, judge: &Judge, asked: &Asked) {
        let answer = |key: &Key, id: &str| asked.answers.get(key)?.noul(id);
        self.p_yes = answer(&self.key, FIRST);
        let second = self.second_key.zip(judge.second);
        self.p_second = second.and_then(|(key, second)| answer(&key, second.id()));
    }
}

/// The writes of a session, each against what came before it, as it would have been judged
/// live: without those that an enforced rule refuses. What is to be asked goes to `requests`.
pub(super) fn of_session(session: &Guarded, judge: &Judge, requests: &mut Requests) -> Vec<Write> {
    let guards = &session.guards;
    let mut facts = Facts::default();
    let mut writes: Vec<Write> = Vec::new();
    let mut places: HashMap<CallAt, usize> = HashMap::new();
    session.replay(|step| match step {
        Step::Said(event) => facts.observe(event),
        Step::Called { at, call } => {
            let checked = guards.check(&facts, call);
            if let (Some(word_list), None) = (checked.word_list(), checked.refused_by().next()) {
                let (first, second) = judge.requests(facts.exchange(), call);
                let mut keep = |request: stretto_oracle::Request| {
                    let key = request.key();
                    requests.insert(key, request);
                    key
                };
                places.insert(at, writes.len());
                writes.push(Write {
                    domain: guards.domain().to_owned(),
                    task_id: session.task.clone(),
                    episode: session.id.clone(),
                    tool: call.name.clone(),
                    success: session.is_successful,
                    refused: false,
                    word_list,
                    p_yes: None,
                    p_second: None,
                    customer: facts.exchange().reply().unwrap_or_default().to_owned(),
                    key: keep(first),
                    second_key: second.map(keep),
                });
            }
            facts.called(call);
        }
        Step::Returned { at, result } => {
            if let Some(write) = places.get(&at).and_then(|&place| writes.get_mut(place)) {
                write.refused = matches!(result, Event::ToolResult { error, content, .. }
                    if *error || content.starts_with(REFUSAL_START));
            }
            facts.observe(result);
        }
    });
    writes
}
