//! A server that is reached over Streamable HTTP.
//!
//! ```text
//!   push ──► queue ──► exchanges: a POST each ─┐
//!                                              ├──► lines ──► take_line
//!                      background: the GET ────┘
//!                      stream, subscriptions
//! ```
//!
//! Each line of the host's goes out in a POST, and what the server answers comes back as lines, whether it
//! is one body or a stream of events. The exchanges are futures that [`Http`] owns and that move
//! only in its turn: nothing is spawned, and dropping it ends them all. A host that takes no lines
//! stops the exchanges that have some.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    future::poll_fn,
    mem,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{
    FutureExt as _, StreamExt as _,
    future::{AbortHandle, Abortable, LocalBoxFuture},
    stream::FuturesUnordered,
};
use tokio::{sync::mpsc, time::timeout};
use tracing::warn;

use self::{
    exchange::Exchange,
    link::Hold,
    modern::Modern,
    post::{Kind, Post},
};
use super::{Ending, Pressure, Said, ServerTurn, stream};
use crate::{line::Line, message::Id, session::OwnIds};

mod endpoint;
mod exchange;
mod link;
mod modern;
mod pool;
mod post;
mod tools;
mod trouble;
mod wire;

pub(super) use endpoint::shown_status;
pub(crate) use endpoint::{Endpoint, EndpointError};
pub(super) use link::{Link, Source, is_event_stream};
pub(super) use wire::Response;

/// How many exchanges are under way at most, subscriptions aside.
const EXCHANGES: usize = 1024;

/// How many bytes may be on their way in all before further lines wait.
const LOAD: usize = 64 * 1024 * 1024;

/// How many bytes may wait before the host is read no further. Room for a good many requests, or
/// the host's responses could not come past those that wait.
const HIGH_WATER: usize = 8 * 1024 * 1024;

/// How many lines wait for the loop at most. Each exchange can hold one more.
const LINES: usize = 64;

/// How long ending the session may take.
const TO_END: Duration = Duration::from_secs(5);

/// The same when nobody is there to wait for it.
const TO_END_AT_ONCE: Duration = Duration::from_millis(500);

/// The server's end of a session over HTTP.
pub(crate) struct Http {
    link: Rc<Link>,
    /// What has to wait before it is sent, in the order of the lines.
    queue: VecDeque<Post>,
    /// How many bytes that is.
    waiting: usize,
    exchanges: FuturesUnordered<LocalBoxFuture<'static, Finished>>,
    /// What the end of the session does not wait for: the GET stream, and subscriptions.
    background: FuturesUnordered<LocalBoxFuture<'static, Finished>>,
    /// How to close the streams of requests that can be cancelled by that.
    cancels: HashMap<Id, AbortHandle>,
    /// The revision without sessions that the host's last request was of.
    era: Option<String>,
    has_own_stream: bool,
    heard: mpsc::Receiver<Said>,
    said: VecDeque<Said>,
    phase: Phase,
    /// Whether exchanges were given up at the end.
    gave_up: bool,
}

/// What has ended.
enum Finished {
    /// The exchange of `notifications/initialized`.
    Initialized,
    /// That of a request that could be cancelled by closing its stream.
    Cancellable(Id),
    Other,
}

enum Phase {
    Running,
    /// The host will say no more.
    Closing,
    /// The session is being ended.
    Ending(LocalBoxFuture<'static, ()>),
    Over,
    /// And the loop knows.
    Told,
}

impl Http {
    /// The server at `endpoint`. Nothing is sent before the first line.
    pub(crate) fn new(endpoint: Endpoint, own_ids: OwnIds) -> Self {
        allow_many_connections();
        let (said, heard) = mpsc::channel(LINES);
        Self {
            link: Rc::new(Link::new(endpoint, own_ids, said)),
            queue: VecDeque::new(),
            waiting: 0,
            exchanges: FuturesUnordered::new(),
            background: FuturesUnordered::new(),
            cancels: HashMap::new(),
            era: None,
            has_own_stream: false,
            heard,
            said: VecDeque::new(),
            phase: Phase::Running,
            gave_up: false,
        }
    }

    pub(super) fn take_line(&mut self) -> Option<Said> {
        self.said.pop_front().or_else(|| self.heard.try_recv().ok())
    }

    pub(super) fn push(&mut self, line: &Line) {
        if !matches!(self.phase, Phase::Running) {
            return;
        }
        let Some(mut post) = Post::of(line, &self.link.open) else {
            return;
        };
        self.note_era(&mut post);
        match &post.kind {
            // The server waits for it, and may not answer anything else before it comes.
            Kind::Response => self.start(post),
            Kind::Cancelled(_) if !self.link.is_held() => {
                self.start_what_may_go();
                self.cancel(post);
            }
            _ => self.enqueue(post),
        }
    }

    /// Starts what may go. The exchanges themselves move in the next turn.
    pub(super) fn flush_now(&mut self) {
        self.start_what_may_go();
    }

    pub(super) fn has_room(&self) -> bool {
        self.waiting < HIGH_WATER
    }

    pub(super) fn close(&mut self) {
        if matches!(self.phase, Phase::Running) {
            self.phase = Phase::Closing;
            self.link.close();
        }
    }

    /// Nothing that is under way can reach anybody any more.
    pub(super) fn cut_short(&mut self) {
        self.queue.clear();
        self.waiting = 0;
        self.exchanges.clear();
        self.background.clear();
        self.phase = match mem::replace(&mut self.phase, Phase::Over) {
            Phase::Running | Phase::Closing => self.ending(TO_END_AT_ONCE),
            Phase::Ending(ending) => {
                Phase::Ending(timeout(TO_END_AT_ONCE, ending).map(drop).boxed_local())
            }
            over @ (Phase::Over | Phase::Told) => over,
        };
    }

    pub(super) fn press(&mut self, pressure: Pressure) {
        match (&self.phase, pressure) {
            (Phase::Running | Phase::Closing, Pressure::Ask) => {
                self.gave_up = true;
                self.cut_short();
            }
            (Phase::Running | Phase::Closing | Phase::Ending(_), Pressure::Force) => {
                self.cut_short();
                self.phase = Phase::Over;
            }
            (Phase::Ending(_) | Phase::Over | Phase::Told, _) => {}
        }
    }

    /// Whether exchanges were under way when the server was pressed.
    pub(super) fn gave_up(&self) -> bool {
        self.gave_up
    }

    pub(super) async fn turn(&mut self, may_speak: bool) -> ServerTurn {
        poll_fn(|context| self.poll_turn(context, may_speak)).await
    }

    /// Everything that is under way is kept in `self`, so nothing is lost when this is not waited for.
    fn poll_turn(&mut self, context: &mut Context<'_>, may_speak: bool) -> Poll<ServerTurn> {
        loop {
            self.start_what_may_go();
            let has_finished = self.poll_exchanges(context);
            if may_speak && let Poll::Ready(Some(said)) = self.heard.poll_recv(context) {
                self.said.push_back(said);
                return Poll::Ready(ServerTurn::Spoke);
            }
            if has_finished || self.may_go() {
                continue;
            }
            match &mut self.phase {
                Phase::Closing if self.exchanges.is_empty() && self.queue.is_empty() => {
                    self.background.clear();
                    self.phase = self.ending(TO_END);
                }
                Phase::Ending(ending) => match ending.poll_unpin(context) {
                    Poll::Ready(()) => self.phase = Phase::Over,
                    Poll::Pending => return Poll::Pending,
                },
                Phase::Over if self.heard.is_empty() => {
                    self.phase = Phase::Told;
                    return Poll::Ready(ServerTurn::Ended);
                }
                Phase::Told => return Poll::Ready(ServerTurn::Gone(Ending::SessionOver)),
                _ => return Poll::Pending,
            }
        }
    }

    /// True if an exchange has ended.
    fn poll_exchanges(&mut self, context: &mut Context<'_>) -> bool {
        let mut has_finished = false;
        while let Poll::Ready(Some(finished)) = self.exchanges.poll_next_unpin(context) {
            has_finished = true;
            self.finished(finished);
        }
        while let Poll::Ready(Some(finished)) = self.background.poll_next_unpin(context) {
            self.finished(finished);
        }
        has_finished
    }

    fn finished(&mut self, finished: Finished) {
        match finished {
            // A host that has nothing more to say could not answer what the server asks there.
            Finished::Initialized
                if matches!(self.phase, Phase::Running)
                    && !mem::replace(&mut self.has_own_stream, true) =>
            {
                let messages = stream::own_messages(Rc::clone(&self.link));
                let messages = messages.map(|()| Finished::Other);
                self.background.push(messages.boxed_local());
            }
            Finished::Cancellable(id) => drop(self.cancels.remove(&id)),
            Finished::Initialized | Finished::Other => {}
        }
    }

    /// Messages that do not name a revision are of the one that the host's last request was of.
    fn note_era(&mut self, post: &mut Post) {
        if post.is_request() {
            self.era = post.modern.as_ref().map(|modern| modern.version.clone());
        } else if post.modern.is_none()
            && matches!(
                post.kind,
                Kind::Notification | Kind::Cancelled(_) | Kind::Response
            )
            && let Some(version) = &self.era
        {
            let method = (post.kind != Kind::Response).then_some(post.name.as_str());
            post.modern = Some(Modern::alike(version.clone(), method));
        }
    }

    fn enqueue(&mut self, post: Post) {
        self.waiting += post.body.len();
        self.queue.push_back(post);
    }

    /// Whether the first of those that wait may go.
    fn may_go(&self) -> bool {
        !self.queue.is_empty()
            && !self.link.is_held()
            && self.exchanges.len() < EXCHANGES
            && (self.link.load() < LOAD || self.exchanges.is_empty())
    }

    fn start_what_may_go(&mut self) {
        while self.may_go()
            && let Some(post) = self.queue.pop_front()
        {
            self.waiting -= post.body.len();
            match post.kind {
                Kind::Cancelled(_) => self.cancel(post),
                _ => self.start(post),
            }
        }
    }

    fn start(&mut self, post: Post) {
        let hold = matches!(post.kind, Kind::Initialize | Kind::Initialized)
            .then(|| Hold::new(&self.link));
        let is_listen = post.kind == Kind::Listen;
        let is_initialized = post.kind == Kind::Initialized;
        let id = post.cancelled_by_closing().cloned();
        let exchange = Exchange::new(&self.link, post, hold).run();
        let exchange = match id {
            Some(id) => {
                let (cancel, registration) = AbortHandle::new_pair();
                self.cancels.insert(id.clone(), cancel);
                let exchange = Abortable::new(exchange, registration);
                exchange.map(|_| Finished::Cancellable(id)).boxed_local()
            }
            None if is_initialized => exchange.map(|()| Finished::Initialized).boxed_local(),
            None => exchange.map(|()| Finished::Other).boxed_local(),
        };
        if is_listen {
            self.background.push(exchange);
        } else {
            self.exchanges.push(exchange);
        }
    }

    /// Cancels a request in the way of its revision.
    fn cancel(&mut self, post: Post) {
        let Kind::Cancelled(target) = &post.kind else {
            return;
        };
        if let Some(id) = target {
            let unsent = |waiting: &Post| waiting.asks.only() == Some(id);
            if let Some(at) = self.queue.iter().position(unsent) {
                // The server never heard of it.
                let unsent = self.queue.remove(at);
                self.waiting -= unsent.map_or(0, |unsent| unsent.body.len());
                return;
            }
            if let Some(cancel) = self.cancels.remove(id) {
                cancel.abort();
                return;
            }
        }
        // Without sessions, a server could not tell whose request is meant.
        if post.modern.is_none() {
            self.start(post);
        }
    }

    /// Ends the session, if there is one, within `limit`.
    fn ending(&self, limit: Duration) -> Phase {
        if !self.link.has_session() {
            return Phase::Over;
        }
        let link = Rc::clone(&self.link);
        let ending = async move {
            let ended = timeout(limit, link.end_session()).await;
            let ended = ended.unwrap_or_else(|_| Err(format!("no answer within {limit:?}")));
            if let Err(why) = ended {
                warn!("ending the HTTP session: {why}");
            }
        };
        Phase::Ending(ending.boxed_local())
    }
}

/// Each exchange has a connection of its own, and many systems give a process fewer than that at
/// first.
#[cfg(unix)]
fn allow_many_connections() {
    use rustix::process::{Resource, getrlimit, setrlimit};

    const WANTED: u64 = 2 * EXCHANGES as u64;
    let mut limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    if limit
        .current
        .is_some_and(|current| current < WANTED.min(most))
    {
        limit.current = Some(WANTED.min(most));
        // Refused, the requests beyond the limit fail one by one.
        setrlimit(Resource::Nofile, limit).ok();
    }
}

/// Elsewhere there is no such limit.
#[cfg(not(unix))]
fn allow_many_connections() {}

impl fmt::Debug for Http {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Http")
            .field("queue", &self.queue.len())
            .field("exchanges", &self.exchanges.len())
            .field("background", &self.background.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
