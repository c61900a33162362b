//! What the arbiter asks a System-One model at an open decision.
//!
//! All questions of a decision are one request, over one state: the conversation and the latest
//! results, cut to a length. A decision made again from the same session asks the very same,
//! so its answer is found in the cache. The texts are part of the key of every answer; those of
//! predicates stand in the flow.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};
use stretto_oracle::{Criteria, Question, Request};
use stretto_trace::{AfterCall, Event, ToolCall};

use crate::decide::Open;
use crate::file::Predicate;
use crate::flow::{Flow, RESPOND};

/// The id of the question for the next step.
pub(crate) const NEXT: &str = "next";
/// The id of the question whether another lookup comes.
pub(crate) const GO_ON: &str = "go_on";
/// The id of the question which lookup it would be.
pub(crate) const TOOL: &str = "tool";

const CONTEXT: &str = "The state shows a conversation in which an assistant serves a person with the help of tools. \
Tools that only read may be used at any moment. Whatever alters a record, or hands the person over to somebody else, \
waits for the person's consent.";
const NEXT_ASKS: &str =
    "Name the assistant's very next step: one of the listed reads, or 'respond' for anything else.";
const RESPOND_MEANS: &str = "Anything but a read: a question, a request for consent, an answer or a report to the \
person, a change, or a hand-over.";
const GO_ON_ASKS: &str = "Is the very next step one more read, rather than a message or a change?";
const GO_ON_YES: &str = "Information that a read can supply is still missing.";
const GO_ON_NO: &str = "It is ready to write to the person or to make a change.";
const TOOL_ASKS: &str = "Take it as given that the next step is a read. Which of these is it?";
const NO_RESULT: &str = "The call has not returned.";

/// The most characters of what an option means.
const OPTION_LENGTH: usize = 250;

/// How many calls are shown with their results, and how many before them without.
const LATEST: usize = 4;
const EARLIER: usize = 16;

/// The id of a predicate's question.
pub(crate) fn predicate_id(predicate: &Predicate) -> String {
    format!("pred_{}", predicate.id)
}

impl Flow {
    /// The questions of an open decision.
    ///
    /// `session` is the session after the call that the decision follows, the same that it was
    /// [opened](crate::Live::open) on. What comes back goes to [`Flow::settle`].
    pub fn question(&self, open: &Open, session: &AfterCall<'_>) -> Request {
        Request {
            model: self.file().model.clone(),
            state: state(session.events()),
            questions: self.questions(&open.tool, open.failed, &open.lookups),
        }
    }

    /// The questions after a call of `tool`, with these lookups on offer.
    fn questions(
        &self,
        tool: &str,
        failed: bool,
        lookups: &[String],
    ) -> BTreeMap<String, Question> {
        let last = if failed {
            format!("The call just made, `{tool}`, failed.")
        } else {
            format!("The call just made, `{tool}`, succeeded; its result is the newest one.")
        };
        let asks = |question: &str| format!("{CONTEXT} {last} {question}");
        let lookups: BTreeMap<String, String> = lookups
            .iter()
            .map(|lookup| (lookup.clone(), self.means(lookup)))
            .collect();
        let mut options = lookups.clone();
        options.insert(RESPOND.to_owned(), RESPOND_MEANS.to_owned());

        let next = Question::Choice {
            instructions: asks(NEXT_ASKS),
            criteria: options,
        };
        let go_on = yes_or_no(asks(GO_ON_ASKS), GO_ON_YES, GO_ON_NO);
        let mut questions = BTreeMap::from([(NEXT.to_owned(), next), (GO_ON.to_owned(), go_on)]);
        if lookups.len() > 1 {
            let tool = Question::Choice {
                instructions: asks(TOOL_ASKS),
                criteria: lookups,
            };
            questions.insert(TOOL.to_owned(), tool);
        }
        for predicate in &self.file().predicates {
            let instructions = format!("{CONTEXT} {}", predicate.question);
            let question = yes_or_no(instructions, &predicate.yes, &predicate.no);
            questions.insert(predicate_id(predicate), question);
        }
        questions
    }

    /// What choosing a lookup means: what its documentation says it does.
    fn means(&self, lookup: &str) -> String {
        let documented = self
            .file()
            .manifest
            .docs
            .get(lookup)
            .map(|doc| doc.summary.trim());
        match documented.filter(|summary| !summary.is_empty()) {
            Some(summary) => cut(summary, OPTION_LENGTH),
            None => cut(&format!("The read `{lookup}`."), OPTION_LENGTH),
        }
    }
}

fn yes_or_no(instructions: String, yes: &str, no: &str) -> Question {
    Question::Noul {
        instructions,
        criteria: Some(Criteria {
            yes: yes.to_owned(),
            no: no.to_owned(),
        }),
    }
}

/// A call, and its result if it has one.
struct Called<'a> {
    call: &'a ToolCall,
    result: Option<(bool, &'a str)>,
}

impl Called<'_> {
    fn failed(&self) -> bool {
        self.result.is_none_or(|(failed, _)| failed)
    }
}

/// What the model sees of a session.
fn state<'a, E: Iterator<Item = &'a Event>>(events: E) -> Value {
    let mut said_by_user = Vec::new();
    let mut said_by_agent = None;
    let mut calls: Vec<Called<'_>> = Vec::new();
    let mut waiting: HashMap<&str, usize> = HashMap::new();
    for event in events {
        match event {
            Event::User { text } => said_by_user.push(text),
            Event::Assistant {
                text, calls: made, ..
            } => {
                if made.is_empty() {
                    said_by_agent = text
                        .as_ref()
                        .filter(|text| !text.trim().is_empty())
                        .or(said_by_agent);
                }
                for call in made {
                    // A result belongs to the newest call of its id.
                    waiting.insert(&call.id, calls.len());
                    calls.push(Called { call, result: None });
                }
            }
            Event::ToolResult {
                call_id,
                error,
                content,
                ..
            } => {
                let place = waiting.remove(call_id.as_str());
                if let Some(called) = place.and_then(|place| calls.get_mut(place)) {
                    called.result = Some((*error, content));
                }
            }
        }
    }

    let mut state = Map::new();
    let mut said = said_by_user.into_iter();
    let request = said.next().map(|text| cut(text, 1000));
    state.insert("customer_request".to_owned(), json!(request));
    let later: Vec<String> = said.map(|text| cut(text, 600)).collect();
    let (_, later) = later.split_at(later.len().saturating_sub(4));
    if !later.is_empty() {
        state.insert("later_customer_messages".to_owned(), json!(later));
    }
    if let Some(text) = said_by_agent {
        state.insert("agent_last_message".to_owned(), json!(cut(text, 600)));
    }
    let (earlier, latest) = calls.split_at(calls.len().saturating_sub(LATEST));
    let (_, earlier) = earlier.split_at(earlier.len().saturating_sub(EARLIER));
    if !earlier.is_empty() {
        let earlier: Vec<String> = earlier.iter().map(in_short).collect();
        state.insert("earlier_lookups".to_owned(), json!(earlier));
    }
    let latest: Vec<Value> = latest.iter().map(in_full).collect();
    state.insert("latest_results".to_owned(), Value::Array(latest));
    Value::Object(state)
}

fn in_short(called: &Called<'_>) -> String {
    let arguments = cut(&called.call.arguments.to_string(), 160);
    let ended = if called.failed() { "error" } else { "ok" };
    format!("{}({arguments}) → {ended}", called.call.name)
}

fn in_full(called: &Called<'_>) -> Value {
    let content = called.result.map_or(NO_RESULT, |(_, content)| content);
    let mut shown = json!({
        "tool_call": called.call.name,
        "arguments": called.call.arguments,
        "result": cut(content, 1500),
    });
    if called.failed() {
        shown["error"] = json!(true);
    }
    shown
}

/// `text` without blanks at its ends, and no more than `length` characters of it; a mark shows
/// where it was cut.
fn cut(text: &str, length: usize) -> String {
    let text = text.trim();
    match text.char_indices().nth(length) {
        Some((end, _)) => format!("{}…", text.split_at(end).0),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
