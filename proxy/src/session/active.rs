//! Active mode: what is read, and the two stories of a line.

use std::collections::VecDeque;

use serde_json::Value;
use stretto_guards::confirm::Judgment;
use stretto_oracle::Response;
use stretto_trace::{
    ToolCall,
    mcp::{Effect, EpisodeBuilder, Header, Who},
};

use super::{
    Act, Event, Guarding, Judging, OwnIds, Serving, Side, Ticket, commit,
    commit::CommitKey,
    commit::{COMMIT, Commits},
    judge::Then,
    questions::{About, Questions},
    reading,
    replies::{self, Era},
    requests::{AgentCall, Answered, Asked, Listing, Purpose, Requests},
    tools::ServerTools,
};
use crate::{
    clock::Millis,
    line::Line,
    message::{Head, Heads, Id},
    skim::member,
};

/// What an active session does.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// Checks calls.
    pub(crate) guarding: Option<Guarding>,
    /// Has writes judged by a model.
    pub(crate) judging: Option<Judging>,
    /// Runs a flow.
    pub(crate) serving: Option<Serving>,
    /// Adds the commit tool.
    pub(crate) commit: bool,
    /// Reads the conversation.
    pub(crate) listens: bool,
}

/// A session that reads what crosses it.
#[derive(Debug)]
pub(crate) struct Active {
    /// The session so far, as its log would hold it.
    pub(super) episode: EpisodeBuilder,
    pub(super) requests: Requests,
    pub(super) tools: ServerTools,
    /// The era of the host's last request.
    pub(super) era: Era,
    guarding: Option<Guarding>,
    pub(super) judging: Option<Judging>,
    pub(super) questions: Questions,
    pub(super) serving: Option<Serving>,
    commits: Option<Commits>,
    listens: bool,
    /// What goes on once the conversation has been read, in order.
    waiting: VecDeque<Waiting>,
    /// Lines of the host's that use an id of ours, and that id.
    kept_back: VecDeque<(Id, Line)>,
    ends: Ends,
    has_closed_server: bool,
}

/// Which ends are gone.
#[derive(Debug, Default)]
struct Ends {
    /// The host will say no more.
    host_closed: bool,
    /// The server will say no more.
    server_closed: bool,
    /// The server takes no more.
    server_left: bool,
}

/// What comes of checking a call.
#[derive(Debug)]
pub(super) enum Check {
    /// It goes on.
    Passed,
    /// It is refused, for this reason.
    Refused(String),
    /// The guards pass it, and the judge has still to say.
    Undecided(Box<Judgment>),
}

/// What goes on once the conversation has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// The flow's run decides.
    Decision,
    /// This commit makes its next call.
    Commit(CommitKey),
}

impl Active {
    /// A session at its beginning.
    pub(crate) fn new(header: &Header, options: Options, ids: OwnIds) -> Self {
        Self {
            episode: EpisodeBuilder::new(header),
            requests: Requests::new(ids),
            tools: ServerTools::default(),
            era: Era::default(),
            guarding: options.guarding,
            judging: options.judging,
            questions: Questions::default(),
            serving: options.serving,
            commits: options.commit.then(Commits::default),
            listens: options.listens,
            waiting: VecDeque::new(),
            kept_back: VecDeque::new(),
            ends: Ends::default(),
            has_closed_server: false,
        }
    }

    pub(super) fn handle(&mut self, at: Millis, event: Event, acts: &mut Vec<Act>) {
        self.give_up_overdue(at, acts);
        match event {
            Event::Line(Side::Host, line) => self.host_line(at, line, acts),
            Event::Line(Side::Server, line) => self.server_line(at, line, acts),
            Event::Amended { instead, .. } => self.amended_line(at, instead, acts),
            Event::Answered(ticket, answer) => self.answered(at, ticket, answer, acts),
            Event::Said(line) => self.said(at, &line),
            Event::Listened => self.listened(at, acts),
            Event::Closed(Side::Host) => self.host_closed(acts),
            Event::Closed(Side::Server) => self.server_closed(at, acts),
            Event::Left(Side::Server) => self.ends.server_left = true,
            Event::Left(Side::Host) | Event::Tick => {}
        }
        self.admit_kept_back(acts);
        self.close_server(acts);
    }

    /// What becomes of a host's line: it is turned away, answered here, held, or passed on.
    fn host_line(&mut self, at: Millis, line: Line, acts: &mut Vec<Act>) {
        if self.guarding.is_some()
            && let Err(unread) = reading::is_clear(line.content())
        {
            return self.turn_away(at, &line, unread, acts);
        }
        let Some(message) = reading::message(line.content()) else {
            return acts.push(Act::Forward(Side::Server, line));
        };
        if let Value::Array(batch) = &message {
            self.host_batch(at, batch);
            return acts.push(Act::Forward(Side::Server, line));
        }
        let id = id_of(&line);
        if let Some((id, _)) = &id {
            self.requests.saw(id);
        }
        let method = message.get("method").and_then(Value::as_str);
        match (method, id) {
            (Some("tools/call"), id) => self.host_call(at, line, &message, id, acts),
            (Some("notifications/cancelled"), _) => self.cancelled(at, line, &message, acts),
            (Some(method), Some((id, _))) => {
                self.era = Era::of(&message);
                let asked = if method == "tools/list" {
                    Asked::Listing(listing(&message))
                } else {
                    Asked::Other
                };
                self.requests.asked(id, asked);
                self.pass(at, line, &message, acts);
            }
            _ => self.pass(at, line, &message, acts),
        }
    }

    fn host_call(
        &mut self,
        at: Millis,
        line: Line,
        message: &Value,
        id: Option<(Id, String)>,
        acts: &mut Vec<Act>,
    ) {
        self.era = Era::of(message);
        let era = self.era.clone();
        let spelling = id.as_ref().map(|(_, spelling)| spelling.clone());
        let call = call_of(message, id.as_ref().map(|(id, _)| id));
        if self
            .commits
            .as_ref()
            .is_some_and(|commits| commits.takes(&call.name))
        {
            self.note(at, Who::Client, message);
            return match id {
                Some(id) => self.start_commit(at, id, era, &line, acts),
                None => acts.push(Act::Say(format!(
                    "dropped a call of {COMMIT} without an id: nothing was run"
                ))),
            };
        }
        // Against the session before this call.
        let check = self.check(&call, spelling.as_deref(), acts);
        self.note(at, Who::Client, message);
        let agent_call = |(id, spelling): (Id, String)| {
            let call = AgentCall {
                id: id.clone(),
                spelling,
                tool: call.name.clone(),
            };
            (id, Asked::Call(call))
        };
        match check {
            Check::Passed => {
                if let Some((id, asked)) = id.map(agent_call) {
                    self.requests.asked(id, asked);
                }
                acts.push(Act::Forward(Side::Server, line));
            }
            // Without an id there is nobody to answer; what was refused has been said.
            Check::Refused(reason) => {
                if let Some(spelling) = spelling {
                    self.send(
                        at,
                        Side::Host,
                        commit::refusal(&spelling, &era, &call.name, &reason),
                        acts,
                    );
                }
            }
            Check::Undecided(judgment) => {
                // In use from now on, though the server does not have it.
                if let Some((id, _)) = &id {
                    self.requests.asked(id.clone(), Asked::Other);
                }
                let then = Then::Forward {
                    line,
                    asked_as: id,
                    era,
                };
                self.hold_for_judge(at, &call.name, *judgment, then, acts);
            }
        }
    }

    /// What the guards say of a call, against the session so far. Says on stderr what is refused.
    pub(super) fn check(
        &mut self,
        call: &ToolCall,
        asked_as: Option<&str>,
        acts: &mut Vec<Act>,
    ) -> Check {
        let Some(guarding) = &self.guarding else {
            return Check::Passed;
        };
        let checked = guarding.check(call, asked_as, acts);
        if let Some(reason) = checked.refusal() {
            acts.push(Act::Say(format!("refused {}: {reason}", call.name)));
            return Check::Refused(reason);
        }
        match (&self.judging, checked.word_list()) {
            (Some(judging), Some(word_list)) => {
                Check::Undecided(Box::new(judging.judge(guarding.facts(), call, word_list)))
            }
            _ => Check::Passed,
        }
    }

    fn answered(
        &mut self,
        at: Millis,
        ticket: Ticket,
        answer: Result<Response, String>,
        acts: &mut Vec<Act>,
    ) {
        match self.questions.answered(ticket) {
            Some(About::Judgment) => self.judge_answered(at, ticket, answer, acts),
            Some(About::Decision) => self.decision_answered(at, ticket, &answer, acts),
            None => {}
        }
    }

    /// What becomes of a server's line: answers that we asked for stay, a result may be held
    /// while a flow runs, a listing may get our tool, and the rest is passed on.
    fn server_line(&mut self, at: Millis, line: Line, acts: &mut Vec<Act>) {
        let id = match Heads::of(line.content()) {
            Some(Heads::Batch(heads)) => {
                let ids: Vec<Id> = heads
                    .into_iter()
                    .filter_map(|head| head.id.filter(|_| head.method.is_none()))
                    .collect();
                return self.server_batch(at, line, &ids, acts);
            }
            Some(Heads::One(head)) if head.method.is_none() && is_outcome(line.content()) => {
                head.id
            }
            _ => None,
        };
        let Some(id) = id else {
            return acts.push(Act::Forward(Side::Host, line));
        };
        let message = reading::message(line.content());
        let effect = message
            .as_ref()
            .map(|message| self.note(at, Who::Server, message));
        let is_final = !matches!(effect, Some(Effect::Interim(_)));
        match (self.requests.answered(&id), message) {
            (Answered::Own(purpose), message) => {
                self.own_answered(at, &purpose, message.as_ref(), is_final, acts);
            }
            (Answered::Over, _) => {}
            (Answered::Host(Asked::Listing(listing)), Some(message)) => {
                self.listed(line, &listing, &message, acts);
            }
            (Answered::Host(Asked::Call(call)), Some(message)) => {
                match self.followed_by_flow(effect, &message) {
                    Some(after) => self.hold(at, line, call, after, acts),
                    None => acts.push(Act::Forward(Side::Host, line)),
                }
            }
            (Answered::Host(_) | Answered::Unknown, _) => acts.push(Act::Forward(Side::Host, line)),
        }
    }

    /// A line that the host may not get as the server said it is one of ours wherever it is passed on.
    fn amended_line(&mut self, at: Millis, line: Line, acts: &mut Vec<Act>) {
        let before = acts.len();
        self.server_line(at, line, acts);
        for act in &mut acts[before..] {
            if let Act::Forward(Side::Host, line) = act {
                *act = Act::Send(Side::Host, line.clone());
            }
        }
    }

    /// The id in the episode of the call that just returned, and whether it failed, if a run may follow it.
    fn followed_by_flow(&self, effect: Option<Effect>, message: &Value) -> Option<(String, bool)> {
        let Some(Effect::Returned { call: place, .. }) = effect else {
            return None;
        };
        let serving = self.serving.as_ref()?;
        let result = message.get("result")?;
        if message.get("error").is_some_and(|error| !error.is_null()) {
            return None;
        }
        let call_id = &self.episode.call(place)?.id;
        let failed = result.get("isError") == Some(&Value::Bool(true));
        serving
            .may_follow(call_id)
            .then(|| (call_id.clone(), failed))
    }

    fn own_answered(
        &mut self,
        at: Millis,
        purpose: &Purpose,
        response: Option<&Value>,
        is_final: bool,
        acts: &mut Vec<Act>,
    ) {
        match purpose {
            Purpose::Lookup => self.lookup_answered(at, response, is_final, acts),
            Purpose::Commit(key) => self.commit_call_answered(at, *key, response, is_final, acts),
        }
    }

    fn listed(&mut self, line: Line, listing: &Listing, response: &Value, acts: &mut Vec<Act>) {
        self.tools.listed(listing, response);
        let amended = self
            .commits
            .as_mut()
            .and_then(|commits| commits.amended(&line, response, acts));
        acts.push(match amended {
            Some(amended) => Act::Send(Side::Host, amended),
            None => Act::Forward(Side::Host, line),
        });
    }

    /// Calls in a batch start no flow, but the session has to know of them.
    fn host_batch(&mut self, at: Millis, batch: &[Value]) {
        for message in batch {
            self.note(at, Who::Client, message);
            let id = message
                .get("id")
                .and_then(|id| Id::of(id.to_string().as_bytes()));
            if let (Some(_), Some(id)) = (message.get("method"), id) {
                self.requests.asked(id, Asked::Other);
            }
        }
    }

    /// A batch goes on as it is, unless there is nothing in it but answers to requests of our own.
    fn server_batch(&mut self, at: Millis, line: Line, ids: &[Id], acts: &mut Vec<Act>) {
        let is_ours = !ids.is_empty() && ids.iter().all(|id| self.requests.is_own(id));
        let Some(Value::Array(batch)) = reading::message(line.content()) else {
            return acts.push(Act::Forward(Side::Host, line));
        };
        for message in &batch {
            let effect = self.note(at, Who::Server, message);
            let id = message
                .get("id")
                .and_then(|id| Id::of(id.to_string().as_bytes()));
            let Some(id) = id.filter(|_| message.get("method").is_none()) else {
                continue;
            };
            match self.requests.answered(&id) {
                Answered::Own(purpose) => {
                    let is_final = !matches!(effect, Effect::Interim(_));
                    self.own_answered(at, &purpose, Some(message), is_final, acts);
                }
                Answered::Host(Asked::Listing(listing)) => self.tools.listed(&listing, message),
                Answered::Host(_) | Answered::Over | Answered::Unknown => {}
            }
        }
        if !is_ours {
            acts.push(Act::Forward(Side::Host, line));
        }
    }

    /// A line that does not pass the guards, by its form: it is answered, if anybody waits, and goes nowhere.
    fn turn_away(&mut self, at: Millis, line: &Line, unread: reading::Unread, acts: &mut Vec<Act>) {
        let reading::Unanswered { answer, id } = reading::unanswered(line.content(), unread);
        let which = id.map(|id| format!(" (id {id})")).unwrap_or_default();
        acts.push(Act::Say(format!(
            "did not forward a line of the host's{which}: {}",
            unread.why()
        )));
        if let Some(message) = reading::message(line.content()) {
            // As in the log: what is in it was asked, though it goes nowhere.
            self.note_all(at, Who::Client, &message);
        }
        if let Some(answer) = answer {
            self.send(at, Side::Host, answer, acts);
        }
    }

    fn cancelled(&mut self, at: Millis, line: Line, message: &Value, acts: &mut Vec<Act>) {
        let Some(id) = Heads::cancelled(line.content()) else {
            return self.pass(at, line, message, acts);
        };
        let commits = self
            .commits
            .as_ref()
            .map(|commits| commits.asked_as(&id))
            .unwrap_or_default();
        if !commits.is_empty() {
            self.note(at, Who::Client, message);
            self.requests.forget(&id);
            for key in commits {
                self.cancel_commit(at, key, acts);
            }
            return;
        }
        // A request of ours under that id is not the host's to cancel.
        if self.drop_held_call(at, &id, acts) || self.requests.is_waited_for(&id) {
            self.note(at, Who::Client, message);
            return;
        }
        self.requests.forget(&id);
        self.pass(at, line, message, acts);
        if self
            .serving
            .as_ref()
            .is_some_and(|serving| serving.holds(&id))
        {
            self.drop_run(at, acts);
        }
    }

    fn said(&mut self, at: Millis, line: &Line) {
        if let Some(message) = reading::message(line.content()) {
            self.note_all(at, Who::Context, &message);
        }
    }

    /// Goes on with `waiting` once the conversation has been read.
    pub(super) fn after_listening(&mut self, at: Millis, waiting: Waiting, acts: &mut Vec<Act>) {
        if self.listens {
            self.waiting.push_back(waiting);
            acts.push(Act::Listen);
        } else {
            self.go_on(at, waiting, acts);
        }
    }

    fn listened(&mut self, at: Millis, acts: &mut Vec<Act>) {
        if let Some(waiting) = self.waiting.pop_front() {
            self.go_on(at, waiting, acts);
        }
    }

    fn go_on(&mut self, at: Millis, waiting: Waiting, acts: &mut Vec<Act>) {
        match waiting {
            Waiting::Decision => self.decide(at, acts),
            Waiting::Commit(key) => self.go_on_with_commit(at, key, acts),
        }
    }

    fn host_closed(&mut self, acts: &mut Vec<Act>) {
        self.ends.host_closed = true;
        self.stop_asking(acts);
    }

    fn server_closed(&mut self, at: Millis, acts: &mut Vec<Act>) {
        self.ends.server_closed = true;
        self.drop_all_held_calls();
        self.requests.give_up(&Purpose::Lookup);
        self.cut_run_short(acts);
        for key in self.commits.as_ref().map(Commits::keys).unwrap_or_default() {
            self.requests.give_up(&Purpose::Commit(key));
            self.commit_call_lost(at, key, acts);
        }
    }

    fn give_up_overdue(&mut self, at: Millis, acts: &mut Vec<Act>) {
        for (purpose, tool) in self.requests.overdue(at) {
            acts.push(Act::Say(format!("the server has not answered a call of {tool} within 60 s; its answer is not waited for any more")));
            self.give_up(at, &purpose, "no answer within 60 s", acts);
            match &purpose {
                Purpose::Lookup => self.cut_run_short(acts),
                Purpose::Commit(key) => self.commit_call_lost(at, *key, acts),
            }
        }
    }

    /// Waits no more for a request of our own, and lets the server know.
    pub(super) fn give_up(
        &mut self,
        at: Millis,
        purpose: &Purpose,
        reason: &str,
        acts: &mut Vec<Act>,
    ) {
        if let Some(id) = self.requests.give_up(purpose)
            && self.can_send()
        {
            self.send(at, Side::Server, replies::cancellation(&id, reason), acts);
        }
    }

    fn admit_kept_back(&mut self, acts: &mut Vec<Act>) {
        let free =
            |(id, _): &(Id, Line)| self.ends.server_closed || !self.requests.is_waited_for(id);
        if let Some(position) = self.kept_back.iter().position(free)
            && let Some((_, line)) = self.kept_back.remove(position)
        {
            acts.push(Act::Admit(line));
        }
    }

    /// Ends the server's input once the host has said its last and nothing of it is kept back.
    fn close_server(&mut self, acts: &mut Vec<Act>) {
        let is_due = self.ends.host_closed
            && !self.judging.as_ref().is_some_and(Judging::holds_any)
            && self.kept_back.is_empty()
            && !acts.iter().any(|act| matches!(act, Act::Admit(_)));
        if is_due && !self.has_closed_server {
            self.has_closed_server = true;
            acts.push(Act::Close(Side::Server));
        }
    }

    pub(super) fn wants_conversation(&self, line: &Line) -> bool {
        let is_call = |heads: &Heads<'_>| matches!(heads, Heads::One(head) if head.method.as_deref() == Some("tools/call"));
        self.listens && Heads::of(line.content()).as_ref().is_some_and(is_call)
    }

    pub(super) fn keeps_back(&mut self, line: &Line) -> bool {
        if self.kept_back.is_empty() && !self.requests.is_waiting() {
            return false;
        }
        let Some(heads) = Heads::of(line.content()) else {
            return false;
        };
        let is_ours = |id: &&Id| self.requests.is_waited_for(id);
        let asked = heads.iter().filter(|head| head.method.is_some());
        let used = asked
            .filter_map(|head| head.id.as_ref())
            .find(is_ours)
            .cloned();
        // The cancellation of a line that is kept back comes after it.
        let cancels = |head: &Head<'_>| head.method.as_deref() == Some("notifications/cancelled");
        let cancelled = if heads.iter().any(cancels) {
            Heads::cancelled(line.content())
        } else {
            None
        };
        let cancelled = cancelled.filter(|id| self.kept_back.iter().any(|(kept, _)| kept == id));
        match used.or(cancelled) {
            Some(id) => {
                self.kept_back.push_back((id, line.clone()));
                true
            }
            None => false,
        }
    }

    /// Whether anything is under way that the proxy itself has begun.
    pub(super) fn is_waiting(&self) -> bool {
        self.requests.is_waiting()
            || self.questions.are_open()
            || self.judging.as_ref().is_some_and(Judging::holds_any)
    }

    /// Whether a request of our own can still reach the server.
    pub(super) fn can_send(&self) -> bool {
        !self.ends.host_closed && !self.ends.server_closed && !self.ends.server_left
    }

    /// Whether the server's input is open, be it only for what was held when the host ended.
    pub(super) fn server_takes_input(&self) -> bool {
        !self.has_closed_server && !self.ends.server_closed && !self.ends.server_left
    }

    pub(super) fn serving_mut(&mut self) -> Option<&mut Serving> {
        self.serving.as_mut()
    }

    /// The commits. There are some only where the tool was added.
    pub(super) fn commits_mut(&mut self) -> &mut Commits {
        self.commits.get_or_insert_default()
    }

    /// Sends a line of the proxy's own, which is part of the session like any other.
    pub(super) fn send(&mut self, at: Millis, to: Side, text: String, acts: &mut Vec<Act>) {
        let line = Line::own(text);
        if let Some(message) = reading::message(line.content()) {
            self.note_all(at, Who::Proxy, &message);
        }
        acts.push(Act::Send(to, line));
    }

    fn pass(&mut self, at: Millis, line: Line, message: &Value, acts: &mut Vec<Act>) {
        self.note(at, Who::Client, message);
        acts.push(Act::Forward(Side::Server, line));
    }

    /// Takes a line's message into the session, or each message of a batch.
    fn note_all(&mut self, at: Millis, from: Who, message: &Value) {
        match message {
            Value::Array(batch) => {
                for message in batch {
                    self.note(at, from, message);
                }
            }
            message => {
                self.note(at, from, message);
            }
        }
    }

    /// Takes one message into the session, and says what it meant.
    fn note(&mut self, at: Millis, from: Who, message: &Value) -> Effect {
        let effect = self.episode.step(at.0, from, message);
        if let Some(guarding) = &mut self.guarding {
            guarding.follow(effect, &self.episode);
        }
        if let (Some(judging), Effect::Returned { event, .. }) = (&mut self.judging, effect)
            && let Some(event) = self.episode.events().get(event)
        {
            judging.observe(event);
        }
        if let Some(serving) = &mut self.serving {
            serving.follow(self.episode.events());
        }
        effect
    }
}

/// A line's id, and how it is spelled.
fn id_of(line: &Line) -> Option<(Id, String)> {
    let content = line.content();
    let spelling = &content[member(content, "id")?];
    Some((Id::of(spelling)?, str::from_utf8(spelling).ok()?.to_owned()))
}

/// The call in a `tools/call`. A missing name counts as the empty text, missing arguments as none.
fn call_of(message: &Value, id: Option<&Id>) -> ToolCall {
    let params = message.get("params");
    let name = params
        .and_then(|params| params.get("name"))
        .and_then(Value::as_str);
    let arguments = params.and_then(|params| params.get("arguments"));
    ToolCall {
        id: match id {
            Some(Id::Text(text) | Id::Odd(text)) => text.clone(),
            Some(Id::Number(number)) => number.to_string(),
            None => String::new(),
        },
        name: name.unwrap_or_default().to_owned(),
        arguments: arguments
            .cloned()
            .unwrap_or_else(|| Value::Object(serde_json::Map::new())),
    }
}

fn listing(message: &Value) -> Listing {
    let cursor = message.pointer("/params/cursor").and_then(Value::as_str);
    Listing {
        cursor: cursor.map(str::to_owned),
    }
}

/// Whether a message without a method is an answer: it has a result or an error, be it null.
fn is_outcome(content: &[u8]) -> bool {
    member(content, "result").is_some() || member(content, "error").is_some()
}
