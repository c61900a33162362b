//! Which calls were one turn of the agent's model.
//!
//! MCP carries calls, not turns. They are inferred from order, time and values:
//!
//! ```text
//!               ┌── while a call of the turn is unanswered: it joins
//!   tools/call ─┤
//!               └── else: does it come within half a second of the last answer, with nothing
//!                   said in between, and without a value that only that answer can have
//!                   given it? ── yes: it joins
//!                                no: it begins a new turn
//! ```
//!
//! A model needs longer than half a second to read results and write the next calls; hosts
//! that run a turn's calls one after the other need less between them.

mod known;

use std::collections::HashMap;

use serde_json::Value;

use self::known::Known;
use super::entry::{Entry, Who};
use super::header::Header;
use super::read::Log;
use super::result::{CallResult, id_of, present};
use crate::after_call::AfterCall;
use crate::episode::{Episode, Event, ToolCall};

/// How long after a turn's last answer a call may still belong to it, in milliseconds.
///
/// Between the calls of one turn, hosts were seen to take some 200 ms, and before the next
/// turn at least 850 ms.
const CONTINUES_WITHIN_MS: u64 = 500;

/// The recorded session as an episode.
pub fn episode(log: &Log) -> Episode {
    built(log).finish()
}

/// The recorded session as an episode, and for each call, by id, how many calls of its turn had
/// been answered when it was sent.
///
/// That is 0 for the calls a turn begins with, and more for those that a host sent later, as
/// the model wrote them. Who decided something at one of the answers could not know of those.
/// An id that was used for several calls stands for the last one.
pub fn episode_with_answered(log: &Log) -> (Episode, HashMap<String, usize>) {
    let mut builder = built(log);
    let answered = std::mem::take(&mut builder.answered);
    (builder.finish(), answered)
}

fn built(log: &Log) -> EpisodeBuilder {
    let mut builder = EpisodeBuilder::new(&log.header);
    for entry in &log.entries {
        builder.entry(entry);
    }
    builder
}

/// An episode that grows with its session, message by message.
///
/// What a message costs depends on the message and on its turn, not on how much came before.
#[derive(Clone, Debug)]
pub struct EpisodeBuilder {
    session: String,
    domain: Option<String>,
    agent_model: Option<String>,
    host: HostName,
    events: Vec<Event>,
    turn: Option<Turn>,
    /// The calls without a result, by the JSON text of their request's id.
    pending: HashMap<String, Pending>,
    /// The requests that were answered, but not with their result, newest last. Some may have
    /// been answered since.
    interim: Vec<String>,
    /// The last turn that has a call of this id, as its event's index.
    turn_of: HashMap<String, usize>,
    /// The call that a retry's id stands for.
    retries: HashMap<String, String>,
    answered: HashMap<String, usize>,
    /// What the current turn returned; a line feed after each piece, so that no value is found
    /// across two.
    returned: Known,
    /// All text that the session held before that, likewise.
    known: Known,
}

#[derive(Clone, Debug, Default)]
struct HostName {
    /// From `initialize`, which counts for the whole session.
    initialized: Option<String>,
    /// From a request's `_meta`, where revisions without `initialize` have it.
    meta: Option<String>,
}

/// The turn that calls may still join.
#[derive(Clone, Debug)]
struct Turn {
    /// Its event's index.
    event: usize,
    /// Whose call it began with.
    begun_by: Who,
    /// How many of its calls are waited for.
    open: usize,
    /// How many of its calls have been answered.
    answered: usize,
    /// When the last of the calls that are waited for was answered.
    answered_at: Option<u64>,
    /// Whether something was said since it began.
    is_over: bool,
}

/// What a message meant for the episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: it is no part of an episode.
    None,
    /// Something was said; the index of its event.
    Said(usize),
    /// A call was made.
    Called(CallAt),
    /// A call that had been answered with a question was made again, with the answer to it.
    Retried(CallAt),
    /// A call was cancelled.
    Cancelled(CallAt),
    /// A call was answered, but not with its result.
    Interim(CallAt),
    /// A call returned.
    Returned {
        /// Which one.
        call: CallAt,
        /// The index of the result's event.
        event: usize,
    },
}

/// Where a call stands in an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallAt {
    /// The index of its turn's event.
    pub turn: usize,
    /// Which of the turn's calls it is, from 0.
    pub place: usize,
}

/// A call without its result.
#[derive(Clone, Debug)]
struct Pending {
    call_id: String,
    at: CallAt,
    /// Whether the turn waits for it.
    holds: bool,
    /// Whether the host asked for a task: an answer may be a handle to it.
    as_task: bool,
    /// Whether it was answered, but not with its result.
    is_interim: bool,
}

impl EpisodeBuilder {
    /// An episode of the session that `header` names, in which nothing has happened.
    pub fn new(header: &Header) -> Self {
        Self {
            session: header.session.clone(),
            domain: header.domain.clone(),
            agent_model: header.agent_model.clone(),
            host: HostName::default(),
            events: Vec::new(),
            turn: None,
            pending: HashMap::new(),
            interim: Vec::new(),
            turn_of: HashMap::new(),
            retries: HashMap::new(),
            answered: HashMap::new(),
            returned: Known::default(),
            known: Known::default(),
        }
    }

    /// Takes in the log's next line. Raw text changes nothing.
    pub fn entry(&mut self, entry: &Entry) {
        for message in entry.messages() {
            self.step(entry.t_ms, entry.from, message);
        }
    }

    /// Takes in a message that was read at `t_ms`, or the messages of a batch.
    pub fn message(&mut self, t_ms: u64, from: Who, message: &Value) {
        match message {
            Value::Array(batch) => {
                for item in batch {
                    self.step(t_ms, from, item);
                }
            }
            message => {
                self.step(t_ms, from, message);
            }
        }
    }

    /// Takes in one message, which is not a batch, and says what it meant.
    pub fn step(&mut self, t_ms: u64, from: Who, message: &Value) -> Effect {
        let effect = match from {
            Who::Context => self.said(message),
            Who::Client | Who::Proxy => match message.get("method").and_then(Value::as_str) {
                Some(method) => self.asked(t_ms, from, method, message),
                None if from == Who::Proxy => self.answered(t_ms, message),
                None => None,
            },
            Who::Server => self.answered(t_ms, message),
        };
        effect.unwrap_or(Effect::None)
    }

    /// What has happened so far, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The session as it is right after the call `call_id` has returned.
    ///
    /// `call_id` is the text of the id of the request, or of any that it was retried with. See
    /// [`AfterCall::new`] for an id that no call has.
    pub fn after_call(&self, call_id: &str) -> AfterCall<'_> {
        let call_id = self.retries.get(call_id).map_or(call_id, String::as_str);
        match self.turn_of.get(call_id) {
            Some(&turn) => AfterCall::in_turn(&self.events, turn, call_id),
            None => AfterCall::new(&self.events, call_id),
        }
    }

    /// How many calls of its turn had been answered when the call `call_id` was sent.
    pub fn answered_before(&self, call_id: &str) -> Option<usize> {
        let call_id = self.retries.get(call_id).map_or(call_id, String::as_str);
        self.answered.get(call_id).copied()
    }

    /// What is known of the agent's model: its name, else the host's, else `unknown`.
    pub fn agent_model(&self) -> &str {
        let host = self
            .host
            .initialized
            .as_deref()
            .or(self.host.meta.as_deref());
        self.agent_model.as_deref().or(host).unwrap_or("unknown")
    }

    /// The episode so far, as a copy.
    pub fn episode(&self) -> Episode {
        self.clone_head(self.events.clone())
    }

    /// The episode.
    pub fn finish(mut self) -> Episode {
        let events = std::mem::take(&mut self.events);
        self.clone_head(events)
    }

    fn clone_head(&self, events: Vec<Event>) -> Episode {
        Episode {
            id: self.session.clone(),
            task_id: String::new(),
            trial: 0,
            domain: self.domain.clone().unwrap_or_else(|| "mcp".to_owned()),
            agent_model: self.agent_model().to_owned(),
            reward: 0.0,
            events,
        }
    }

    /// A line of the conversation.
    fn said(&mut self, message: &Value) -> Option<Effect> {
        let text = match message.get("content") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => {
                let texts = parts
                    .iter()
                    .filter_map(|part| part.get("text").and_then(Value::as_str));
                texts.collect::<Vec<_>>().join("\n")
            }
            _ => String::new(),
        };
        self.known.push(&text);
        self.known.push("\n");
        let event = match message.get("role").and_then(Value::as_str) {
            Some("user") => Event::User { text },
            Some("assistant") if !text.is_empty() => Event::Assistant {
                text: Some(text),
                calls: Vec::new(),
                usage: None,
            },
            _ => return None,
        };
        self.events.push(event);
        if let Some(turn) = &mut self.turn {
            turn.is_over = true;
        }
        Some(Effect::Said(self.events.len() - 1))
    }

    /// A request or notification.
    fn asked(&mut self, t_ms: u64, from: Who, method: &str, message: &Value) -> Option<Effect> {
        let params = message.get("params").unwrap_or(&Value::Null);
        if from == Who::Client {
            self.host.learn(method, message, params);
        }
        match method {
            "tools/call" => {
                let id = id_of(message)?;
                let name = params.get("name")?.as_str()?;
                self.called(t_ms, from, id, name, params)
            }
            "notifications/cancelled" => {
                let request = params.get("requestId")?.to_string();
                let at = self.pending.get(&request)?.at;
                self.release(&request);
                Some(Effect::Cancelled(at))
            }
            _ => None,
        }
    }

    fn called(
        &mut self,
        t_ms: u64,
        from: Who,
        id: &Value,
        name: &str,
        params: &Value,
    ) -> Option<Effect> {
        let request = id.to_string();
        let call_id = id.as_str().map_or_else(|| request.clone(), str::to_owned);
        let arguments = params
            .get("arguments")
            .cloned()
            .unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        let is_retry =
            params.get("inputResponses").is_some() || params.get("requestState").is_some();
        if is_retry && let Some(at) = self.retried(&request, &call_id, name, &arguments) {
            return Some(Effect::Retried(at));
        }
        // An id that is used again belongs to the new call from now on.
        self.release(&request);
        self.pending.remove(&request);

        let joins = self.turn.as_ref().is_some_and(|turn| turn.open > 0)
            || (from == Who::Client && self.continues(t_ms, &arguments));
        if !joins {
            self.begin_turn(from);
        }
        self.known.push(&arguments.to_string());
        self.known.push("\n");
        let turn = self.turn.as_mut()?;
        let Event::Assistant { calls, .. } = self.events.get_mut(turn.event)? else {
            return None;
        };
        let at = CallAt {
            turn: turn.event,
            place: calls.len(),
        };
        self.retries.remove(&call_id);
        self.turn_of.insert(call_id.clone(), turn.event);
        self.answered.insert(call_id.clone(), turn.answered);
        turn.open += 1;
        let pending = Pending {
            call_id: call_id.clone(),
            at,
            holds: true,
            as_task: present(params.get("task")).is_some(),
            is_interim: false,
        };
        self.pending.insert(request, pending);
        calls.push(ToolCall {
            id: call_id,
            name: name.to_owned(),
            arguments,
        });
        Some(Effect::Called(at))
    }

    /// Lets a call that was answered with a question go on under the retry's id, if there is
    /// one of this name and these arguments.
    fn retried(
        &mut self,
        request: &str,
        retry_id: &str,
        name: &str,
        arguments: &Value,
    ) -> Option<CallAt> {
        let is_same = |waiting: &String| {
            self.pending
                .get(waiting)
                .filter(|pending| pending.is_interim)
                .and_then(|pending| self.call(pending.at))
                .is_some_and(|call| call.name == name && call.arguments == *arguments)
        };
        let waiting = self.interim.remove(self.interim.iter().rposition(is_same)?);
        let mut pending = self.pending.remove(&waiting)?;
        let at = pending.at;
        pending.is_interim = false;
        // The retry's id may belong to yet another call that was never answered.
        self.release(request);
        // The same turn waits for it again, unless another one has begun.
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.event == at.turn) {
            turn.open += 1;
            pending.holds = true;
        }
        if retry_id != pending.call_id {
            self.retries
                .insert(retry_id.to_owned(), pending.call_id.clone());
        }
        self.pending.insert(request.to_owned(), pending);
        Some(at)
    }

    /// The call that stands at `at`.
    pub fn call(&self, at: CallAt) -> Option<&ToolCall> {
        match self.events.get(at.turn)? {
            Event::Assistant { calls, .. } => calls.get(at.place),
            Event::User { .. } | Event::ToolResult { .. } => None,
        }
    }

    /// Whether a call of the host's goes on with the current turn, though all its calls have
    /// been answered.
    fn continues(&mut self, t_ms: u64, arguments: &Value) -> bool {
        let Some(turn) = &self.turn else { return false };
        let is_soon = turn
            .answered_at
            .is_some_and(|at| t_ms.saturating_sub(at) <= CONTINUES_WITHIN_MS);
        is_soon && turn.begun_by != Who::Proxy && !turn.is_over && !self.passes_returned(arguments)
    }

    /// Whether a value in `arguments` can only come from what the current turn returned.
    fn passes_returned(&mut self, arguments: &Value) -> bool {
        match arguments {
            Value::String(text) => self.is_new(text),
            Value::Number(number) => self.is_new(&number.to_string()),
            Value::Array(items) => items.iter().any(|item| self.passes_returned(item)),
            Value::Object(members) => members.values().any(|member| self.passes_returned(member)),
            Value::Null | Value::Bool(_) => false,
        }
    }

    fn is_new(&mut self, value: &str) -> bool {
        // Single characters are found anywhere, which says nothing.
        if value.chars().nth(1).is_none() || !self.returned.contains(value) {
            return false;
        }
        !self.known.contains(value)
    }

    fn begin_turn(&mut self, begun_by: Who) {
        self.known.push(std::mem::take(&mut self.returned).text());
        let event = self.events.len();
        self.events.push(Event::Assistant {
            text: None,
            calls: Vec::new(),
            usage: None,
        });
        self.turn = Some(Turn {
            event,
            begun_by,
            open: 0,
            answered: 0,
            answered_at: None,
            is_over: false,
        });
    }

    /// Stops waiting for a call; its answer may still come. Whether it was waited for.
    fn release(&mut self, request: &str) -> bool {
        let Some(pending) = self.pending.get_mut(request) else {
            return false;
        };
        let held = std::mem::take(&mut pending.holds);
        if held && let Some(turn) = &mut self.turn {
            turn.open -= 1;
        }
        held
    }

    /// A response. Only a call's first one is its result.
    fn answered(&mut self, t_ms: u64, response: &Value) -> Option<Effect> {
        let request = id_of(response)?.to_string();
        let pending = self.pending.get_mut(&request)?;
        let result = CallResult::of(response)?;
        let at = pending.at;
        if is_interim(response, pending.as_task) {
            if !std::mem::replace(&mut pending.is_interim, true) {
                self.interim.push(request.clone());
            }
            self.release(&request);
            return Some(Effect::Interim(at));
        }
        let held = self.release(&request);
        let pending = self.pending.remove(&request)?;
        let name = self
            .call(at)
            .map(|call| call.name.clone())
            .unwrap_or_default();
        if let Some(turn) = &mut self.turn {
            turn.answered += usize::from(turn.event == at.turn);
            if held && turn.open == 0 {
                turn.answered_at = Some(t_ms);
            }
        }
        self.returned.push(&result.content);
        self.returned.push("\n");
        self.events.push(Event::ToolResult {
            call_id: pending.call_id,
            name,
            error: result.error,
            content: result.content,
        });
        Some(Effect::Returned {
            call: at,
            event: self.events.len() - 1,
        })
    }
}

impl HostName {
    fn learn(&mut self, method: &str, message: &Value, params: &Value) {
        const META: &str = "io.modelcontextprotocol/clientInfo";
        let name = |info: Option<&Value>| info?.get("name")?.as_str().map(str::to_owned);
        if method == "initialize" {
            if self.initialized.is_none() {
                self.initialized = name(params.get("clientInfo"));
            }
        } else if self.meta.is_none() && id_of(message).is_some() {
            self.meta = name(params.get("_meta").and_then(|meta| meta.get(META)));
        }
    }
}

/// Whether a response to a call is not its result yet: it asks for something, or names a task
/// that goes on.
fn is_interim(response: &Value, as_task: bool) -> bool {
    let Some(result) = response.get("result") else {
        return false;
    };
    let kind = result.get("resultType").and_then(Value::as_str);
    let is_handle = as_task && result.get("task").is_some_and(Value::is_object);
    matches!(kind, Some("input_required" | "task")) || is_handle
}

#[cfg(test)]
mod tests;
