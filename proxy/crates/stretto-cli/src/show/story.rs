//! A session's lines in the order a person follows them: what was said, the turns with their
//! calls and results, and everything else that crossed the wire, in groups.

use std::collections::HashMap;
use std::io;

use serde_json::Value;
use stretto_trace::mcp::{Body, CallAt, CallResult, Effect, EpisodeBuilder, Log, Who};

use super::parties::Parties;
use super::wire::{answer_summary, detail};

/// A session, told.
pub(super) struct Story<'a> {
    pub(super) parties: Parties,
    pub(super) rows: Vec<Row<'a>>,
    /// What is part of no turn; rows and turns name these by index.
    pub(super) others: Vec<Other<'a>>,
    pub(super) tally: Tally,
}

/// One step of the story.
pub(super) enum Row<'a> {
    Said {
        t_ms: u64,
        by_user: bool,
        text: String,
    },
    Turn(Turn<'a>),
    Others(Vec<usize>),
}

/// Calls that were made together.
pub(super) struct Turn<'a> {
    /// The turn's number, from 1; the proxy's own calls have none.
    pub(super) number: Option<usize>,
    /// Whether this is the rest of a turn, after something was said.
    pub(super) is_continued: bool,
    pub(super) calls: Vec<Call<'a>>,
    /// What else happened while calls of the turn were open.
    pub(super) others: Vec<usize>,
}

pub(super) struct Call<'a> {
    pub(super) by: Who,
    pub(super) t_ms: u64,
    pub(super) tool: &'a str,
    pub(super) arguments: Option<&'a Value>,
    /// How many messages stood on its line, when it begins a batch.
    pub(super) batch: Option<usize>,
    /// What happened to it besides its result, in order.
    pub(super) steps: Vec<Step>,
    pub(super) returned: Option<Returned>,
}

/// Something that happened to a call.
pub(super) enum Step {
    /// The server asked for something first, or went on with it as a task.
    Interim { t_ms: u64, what: String },
    /// It was made again, with what the server had asked for.
    Retried { t_ms: u64 },
    /// The host wanted its result no more.
    Cancelled { t_ms: u64, reason: Option<String> },
    /// The host was given the proxy's own version of the result.
    Rewritten { t_ms: u64, bytes: usize },
}

pub(super) struct Returned {
    pub(super) t_ms: u64,
    pub(super) by: Who,
    pub(super) result: CallResult,
}

impl Call<'_> {
    /// How long it took, from when it was first sent.
    pub(super) fn took_ms(&self) -> Option<u64> {
        self.returned
            .as_ref()
            .map(|returned| returned.t_ms.saturating_sub(self.t_ms))
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.steps
            .iter()
            .any(|step| matches!(step, Step::Cancelled { .. }))
    }

    pub(super) fn is_error(&self) -> bool {
        self.returned
            .as_ref()
            .is_some_and(|returned| returned.result.error)
    }

    /// Whether it was answered without trouble.
    pub(super) fn is_smooth(&self) -> bool {
        self.steps.is_empty()
            && self
                .returned
                .as_ref()
                .is_some_and(|returned| !returned.result.error)
    }
}

/// A message that is no part of a turn, or a line that is no message.
pub(super) struct Other<'a> {
    pub(super) t_ms: u64,
    pub(super) from: Who,
    pub(super) what: What<'a>,
    /// The whole line, for those who want to see all.
    pub(super) line: Line<'a>,
}

#[derive(Clone, Copy)]
pub(super) enum Line<'a> {
    Message(&'a Value),
    Text(&'a str),
}

pub(super) enum What<'a> {
    Request {
        method: &'a str,
        detail: Option<String>,
        answer: Option<Answer<'a>>,
        is_cancelled: bool,
    },
    Notification {
        method: &'a str,
        detail: Option<String>,
    },
    /// A response to nothing that was asked.
    Stray,
    /// A line that is no JSON.
    Text,
    /// JSON that is no message.
    Odd,
}

pub(super) struct Answer<'a> {
    pub(super) t_ms: u64,
    pub(super) is_error: bool,
    pub(super) summary: String,
    /// The whole message, for those who want to see all.
    pub(super) message: &'a Value,
}

/// What there was how often.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) turns: usize,
    pub(super) lines: usize,
    pub(super) batches: usize,
    pub(super) raw: usize,
    /// Lines of the conversation: by the user, and by the agent.
    pub(super) said: (usize, usize),
    /// What crossed the wire, in bytes: from the host, from the server, and the proxy's own.
    pub(super) bytes: (usize, usize, usize),
    pub(super) ended_ms: u64,
    /// Later answers to what had been answered already, by the server.
    pub(super) repeated: usize,
    /// Calls whose id was used again before they were answered.
    pub(super) displaced: usize,
    /// Whether a line has an earlier time than one before it.
    pub(super) goes_back: bool,
}

impl<'a> Story<'a> {
    /// The story of `log`.
    pub(super) fn of(log: &'a Log) -> Self {
        let mut teller = Teller {
            story: Self {
                parties: Parties::of(log),
                rows: Vec::new(),
                others: Vec::new(),
                tally: Tally::default(),
            },
            builder: EpisodeBuilder::new(&log.header),
            calls: HashMap::new(),
            numbers: HashMap::new(),
            asked: HashMap::new(),
            open: 0,
            batch: None,
        };
        for entry in &log.entries {
            let tally = &mut teller.story.tally;
            tally.lines += 1;
            tally.goes_back |= entry.t_ms < tally.ended_ms;
            tally.ended_ms = tally.ended_ms.max(entry.t_ms);
            let bytes = match &entry.body {
                Body::Message(message) => json_size(message),
                Body::Raw(text) => text.len(),
            };
            match entry.from {
                Who::Client => tally.bytes.0 += bytes,
                Who::Server => tally.bytes.1 += bytes,
                Who::Proxy => tally.bytes.2 += bytes,
                Who::Context => {}
            }
            match &entry.body {
                Body::Raw(text) => {
                    tally.raw += usize::from(!text.trim().is_empty());
                    teller.other(entry.t_ms, entry.from, What::Text, Line::Text(text));
                }
                Body::Message(message) => {
                    tally.batches += usize::from(message.is_array() && entry.from != Who::Context);
                    if message.is_null() {
                        teller.other(entry.t_ms, entry.from, What::Odd, Line::Message(message));
                    }
                    teller.batch = message.as_array().map(Vec::len);
                    for message in entry.messages() {
                        teller.message(entry.t_ms, entry.from, message);
                    }
                }
            }
        }
        teller.story
    }

    /// All calls, the proxy's own among them.
    pub(super) fn calls(&self) -> impl Iterator<Item = &Call<'a>> {
        self.rows.iter().flat_map(|row| match row {
            Row::Turn(turn) => turn.calls.as_slice(),
            Row::Said { .. } | Row::Others(_) => &[],
        })
    }
}

/// Tells a story, line by line.
struct Teller<'a> {
    story: Story<'a>,
    builder: EpisodeBuilder,
    /// Where each call is told: its row, and its place there.
    calls: HashMap<CallAt, (usize, usize)>,
    /// The numbers of the turns, by their events.
    numbers: HashMap<usize, Option<usize>>,
    /// The last request of each id, as JSON text, and who it was put to.
    asked: HashMap<(Peer, String), Asked>,
    /// How many calls are waited for.
    open: usize,
    /// The size of the batch that is being told, until a call of it has been.
    batch: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Peer {
    Host,
    Server,
}

#[derive(Clone, Copy)]
enum Asked {
    Call(CallAt),
    Other(usize),
}

impl<'a> Teller<'a> {
    fn message(&mut self, t_ms: u64, from: Who, message: &'a Value) {
        match self.builder.step(t_ms, from, message) {
            Effect::Said(_) => self.said(t_ms, message),
            Effect::Called(at) => self.called(t_ms, from, at, message),
            Effect::Retried(at) => {
                self.asked
                    .insert((Peer::Server, id_text(message)), Asked::Call(at));
                self.open += 1;
                self.note(at, Step::Retried { t_ms });
            }
            Effect::Cancelled(at) => {
                let reason = message.pointer("/params/reason").and_then(Value::as_str);
                self.open = self.open.saturating_sub(1);
                self.note(
                    at,
                    Step::Cancelled {
                        t_ms,
                        reason: reason.map(str::to_owned),
                    },
                );
            }
            Effect::Interim(at) => {
                let what = interim(message);
                self.open = self.open.saturating_sub(1);
                self.note(at, Step::Interim { t_ms, what });
            }
            Effect::Returned { call, .. } => self.returned(t_ms, from, call, message),
            Effect::None if from == Who::Context => {}
            Effect::None => self.beside(t_ms, from, message),
        }
    }

    fn said(&mut self, t_ms: u64, message: &Value) {
        use stretto_trace::Event;
        let (by_user, text) = match self.builder.events().last() {
            Some(Event::User { text }) => (true, text.clone()),
            Some(Event::Assistant {
                text: Some(text), ..
            }) => (false, text.clone()),
            _ => (
                message.get("role").and_then(Value::as_str) == Some("user"),
                String::new(),
            ),
        };
        let said = &mut self.story.tally.said;
        *(if by_user { &mut said.0 } else { &mut said.1 }) += 1;
        self.story.rows.push(Row::Said {
            t_ms,
            by_user,
            text,
        });
    }

    fn called(&mut self, t_ms: u64, from: Who, at: CallAt, message: &'a Value) {
        let displaced = self
            .asked
            .insert((Peer::Server, id_text(message)), Asked::Call(at));
        if let Some(Asked::Call(earlier)) = displaced
            && let Some(call) = self.call(earlier)
            && call.returned.is_none()
            && !call.is_cancelled()
            && !call
                .steps
                .iter()
                .any(|step| matches!(step, Step::Interim { .. }))
        {
            self.story.tally.displaced += 1;
            self.open = self.open.saturating_sub(1);
        }
        self.open += 1;
        if at.place == 0 {
            let number = (from == Who::Client).then(|| {
                self.story.tally.turns += 1;
                self.story.tally.turns
            });
            self.numbers.insert(at.turn, number);
        }
        let number = self.numbers.get(&at.turn).copied().flatten();
        let is_new = at.place == 0;
        let goes_on = matches!(self.story.rows.last(), Some(Row::Turn(turn)) if turn.number == number && !is_new);
        if !goes_on {
            let turn = Turn {
                number,
                is_continued: !is_new,
                calls: Vec::new(),
                others: Vec::new(),
            };
            self.story.rows.push(Row::Turn(turn));
        }
        let row = self.story.rows.len() - 1;
        if let Some(Row::Turn(turn)) = self.story.rows.last_mut() {
            self.calls.insert(at, (row, turn.calls.len()));
            let params = message.get("params");
            turn.calls.push(Call {
                by: from,
                t_ms,
                tool: params
                    .and_then(|params| params.get("name")?.as_str())
                    .unwrap_or_default(),
                arguments: params.and_then(|params| params.get("arguments")),
                batch: self.batch.take(),
                steps: Vec::new(),
                returned: None,
            });
        }
    }

    fn returned(&mut self, t_ms: u64, by: Who, at: CallAt, message: &Value) {
        self.open = self.open.saturating_sub(usize::from(
            self.call(at).is_some_and(|call| !call.is_cancelled()),
        ));
        if let Some(result) = CallResult::of(message)
            && let Some(call) = self.call(at)
        {
            call.returned = Some(Returned { t_ms, by, result });
        }
    }

    fn note(&mut self, at: CallAt, step: Step) {
        if let Some(call) = self.call(at) {
            call.steps.push(step);
        }
    }

    fn call(&mut self, at: CallAt) -> Option<&mut Call<'a>> {
        let &(row, place) = self.calls.get(&at)?;
        match self.story.rows.get_mut(row)? {
            Row::Turn(turn) => turn.calls.get_mut(place),
            Row::Said { .. } | Row::Others(_) => None,
        }
    }

    /// A message that is no part of the episode.
    fn beside(&mut self, t_ms: u64, from: Who, message: &'a Value) {
        let id = message.get("id").filter(|id| !id.is_null());
        let asks = if from == Who::Server {
            Peer::Host
        } else {
            Peer::Server
        };
        let line = Line::Message(message);
        match (message.get("method").and_then(Value::as_str), id) {
            (Some(method), Some(id)) => {
                let what = What::Request {
                    method,
                    detail: detail(method, message),
                    answer: None,
                    is_cancelled: false,
                };
                let other = self.other(t_ms, from, what, line);
                self.asked
                    .insert((asks, id.to_string()), Asked::Other(other));
            }
            (Some(method @ "notifications/cancelled"), None) => {
                let request = message
                    .pointer("/params/requestId")
                    .map(|id| (asks, id.to_string()));
                let asked = request
                    .and_then(|request| self.asked.get(&request))
                    .copied();
                if let Some(Asked::Other(other)) = asked
                    && let Some(other) = self.story.others.get_mut(other)
                    && let What::Request { is_cancelled, .. } = &mut other.what
                {
                    *is_cancelled = true;
                }
                self.other(
                    t_ms,
                    from,
                    What::Notification {
                        method,
                        detail: None,
                    },
                    line,
                );
            }
            (Some(method), None) => {
                let what = What::Notification {
                    method,
                    detail: detail(method, message),
                };
                self.other(t_ms, from, what, line);
            }
            (None, Some(id)) if is_answer(message) => {
                // The server and the proxy answer the host; the host answers the server.
                let to = if from == Who::Client {
                    Peer::Host
                } else {
                    Peer::Server
                };
                self.answered(t_ms, from, &(to, id.to_string()), message);
            }
            (None, _) => {
                let what = if is_answer(message) {
                    What::Stray
                } else {
                    What::Odd
                };
                self.other(t_ms, from, what, line);
            }
        }
    }

    /// A response that is not the first one to a call.
    fn answered(&mut self, t_ms: u64, from: Who, key: &(Peer, String), message: &'a Value) {
        match self.asked.get(key).copied() {
            Some(Asked::Call(at)) if from == Who::Proxy => {
                let bytes = json_size(message);
                self.note(at, Step::Rewritten { t_ms, bytes });
            }
            Some(Asked::Call(_)) => self.story.tally.repeated += 1,
            Some(Asked::Other(other)) => {
                let Some(Other {
                    what: What::Request { method, answer, .. },
                    ..
                }) = self.story.others.get_mut(other)
                else {
                    return;
                };
                if answer.is_none() || from == Who::Proxy {
                    let (is_error, summary) = answer_summary(method, message);
                    *answer = Some(Answer {
                        t_ms,
                        is_error,
                        summary,
                        message,
                    });
                } else {
                    self.story.tally.repeated += 1;
                }
            }
            None => {
                self.other(t_ms, from, What::Stray, Line::Message(message));
            }
        }
    }

    /// Keeps something beside the turns: with the turn while one is open, else between them.
    fn other(&mut self, t_ms: u64, from: Who, what: What<'a>, line: Line<'a>) -> usize {
        let index = self.story.others.len();
        self.story.others.push(Other {
            t_ms,
            from,
            what,
            line,
        });
        match self.story.rows.last_mut() {
            Some(Row::Turn(turn)) if self.open > 0 => turn.others.push(index),
            Some(Row::Others(group)) => group.push(index),
            _ => self.story.rows.push(Row::Others(vec![index])),
        }
        index
    }
}

fn is_answer(message: &Value) -> bool {
    message.get("result").is_some() || message.get("error").is_some_and(|error| !error.is_null())
}

fn id_text(message: &Value) -> String {
    message.get("id").map(Value::to_string).unwrap_or_default()
}

/// What a result says that is none yet.
fn interim(message: &Value) -> String {
    let Some(requests) = message
        .pointer("/result/inputRequests")
        .and_then(Value::as_object)
    else {
        let kind = message
            .pointer("/result/resultType")
            .and_then(Value::as_str);
        let task = message
            .pointer("/result/task/taskId")
            .or_else(|| message.pointer("/result/taskId"))
            .and_then(Value::as_str);
        return match (kind, task) {
            (Some("input_required"), _) => "asks to be called again".to_owned(),
            (_, Some(task)) => format!("goes on as task {task}"),
            _ => "goes on as a task".to_owned(),
        };
    };
    let methods: Vec<&str> = requests
        .values()
        .filter_map(|request| request.get("method")?.as_str())
        .collect();
    format!("asks for input: {}", methods.join(", "))
}

/// How long `message` is as JSON.
fn json_size(message: &Value) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Counting takes every write, and a message that was read can be written.
    serde_json::to_writer(&mut counter, message).map_or(0, |()| counter.0)
}
