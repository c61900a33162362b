//! The sessions of an HTTP server, and what each has to say on its streams.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// All sessions that have begun and not ended.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    begun: u64,
    open: HashMap<String, Arc<Session>>,
    /// What the server had to say before there was a session.
    unclaimed: Vec<String>,
}

impl Sessions {
    /// Begins a session that agreed on a version, and gives it an id.
    pub(crate) fn begin(&self, version: String) -> Arc<Session> {
        let mut table = lock(&self.table);
        table.begun += 1;
        let session = Arc::new(Session::new(format!("demo-session-{}", table.begun)));
        session.agree(version);
        for message in std::mem::take(&mut table.unclaimed) {
            session.say(message);
        }
        table.open.insert(session.id.clone(), Arc::clone(&session));
        session
    }

    /// An id that no session has, and none will have.
    pub(crate) fn lost_id(&self) -> String {
        let mut table = lock(&self.table);
        table.begun += 1;
        format!("demo-session-{}", table.begun)
    }

    /// The open session of that id.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<Session>> {
        lock(&self.table).open.get(id).cloned()
    }

    /// Ends a session, and with it its own stream.
    pub(crate) fn end(&self, id: &str) {
        let session = lock(&self.table).open.remove(id);
        if let Some(session) = session {
            session.end();
        }
    }

    /// Ends all sessions.
    pub(crate) fn end_all(&self) {
        let sessions = std::mem::take(&mut lock(&self.table).open);
        for session in sessions.values() {
            session.end();
        }
    }

    /// Says something in the first session to come.
    pub(crate) fn say_to_the_next(&self, message: String) {
        lock(&self.table).unclaimed.push(message);
    }

    /// The one that began last, of those that are open.
    pub(crate) fn latest(&self) -> Option<Arc<Session>> {
        let table = lock(&self.table);
        (1..=table.begun)
            .rev()
            .find_map(|k| table.open.get(&format!("demo-session-{k}")).cloned())
    }

    /// All that are open.
    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        lock(&self.table).open.values().cloned().collect()
    }
}

/// A session between a host and the server.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The version that the server answered to `initialize`.
    version: Option<String>,
    has_ended: bool,
    /// Which GET has the session's own stream: the latest.
    listener: u64,
    /// The streams of POSTs that go on.
    open: BTreeSet<StreamId>,
    /// The last id that an event got, and the last that a stream got.
    last_event: u64,
    last_stream: u64,
    events: Vec<Event>,
}

/// One of a session's streams: 0 is its own, the others are of its POSTs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamId(u64);

impl StreamId {
    /// The session's own stream.
    pub(crate) const OWN: Self = Self(0);
}

/// An event that was sent, or waits to be.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// Its id, from 1 in each session.
    pub(crate) id: u64,
    stream: StreamId,
    /// The message; empty for an event that only has an id.
    pub(crate) message: String,
    is_sent: bool,
}

/// What a stream brings next.
#[derive(Debug)]
pub(crate) enum Next {
    Event(Event),
    /// Nothing more: the stream, or the session, or the time is over, or another GET took its place.
    End,
}

impl Session {
    /// A session of this id, which has not agreed on a version yet.
    pub(crate) fn new(id: String) -> Self {
        Self {
            id,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Agrees on a version.
    pub(crate) fn agree(&self, version: String) {
        lock(&self.state).version = Some(version);
    }

    /// Whether a request may name this version, or none.
    pub(crate) fn takes_version(&self, version: Option<&str>) -> bool {
        let agreed = &lock(&self.state).version;
        agreed.is_none() || agreed.as_deref() == version
    }

    /// Says something on the session's own stream.
    pub(crate) fn say(&self, message: String) {
        lock(&self.state).add(StreamId::OWN, message, false);
        self.changed.notify_all();
    }

    /// Begins the stream of a POST.
    pub(crate) fn open_stream(&self) -> StreamId {
        let mut state = lock(&self.state);
        state.last_stream += 1;
        let stream = StreamId(state.last_stream);
        state.open.insert(stream);
        stream
    }

    /// Keeps an event of a POST's stream, and gives its id.
    pub(crate) fn keep(&self, stream: StreamId, message: &str) -> u64 {
        let id = lock(&self.state).add(stream, message.to_owned(), true);
        self.changed.notify_all();
        id
    }

    /// Ends the stream of a POST.
    pub(crate) fn close_stream(&self, stream: StreamId) {
        lock(&self.state).open.remove(&stream);
        self.changed.notify_all();
    }

    /// The stream that an event of this id was on.
    pub(crate) fn stream_of(&self, id: u64) -> Option<StreamId> {
        lock(&self.state)
            .events
            .iter()
            .find(|event| event.id == id)
            .map(|event| event.stream)
    }

    /// Takes the session's own stream, away from whoever had it.
    pub(crate) fn listen(&self) -> u64 {
        let mut state = lock(&self.state);
        state.listener += 1;
        let listener = state.listener;
        drop(state);
        self.changed.notify_all();
        listener
    }

    /// Waits for what has not been sent on the session's own stream.
    pub(crate) fn next(&self, listener: u64, until: Instant) -> Next {
        self.wait(until, |state| {
            if state.listener != listener {
                return Some(Next::End);
            }
            let event = state
                .events
                .iter_mut()
                .find(|event| event.stream == StreamId::OWN && !event.is_sent)?;
            event.is_sent = true;
            Some(Next::Event(event.clone()))
        })
    }

    /// Waits for the event that comes after one of this id on the stream of a POST.
    pub(crate) fn next_after(&self, stream: StreamId, id: u64, until: Instant) -> Next {
        self.wait(until, |state| {
            match state
                .events
                .iter()
                .find(|event| event.stream == stream && event.id > id)
            {
                Some(event) => Some(Next::Event(event.clone())),
                None => (!state.open.contains(&stream)).then_some(Next::End),
            }
        })
    }

    /// Has the session's own stream go on after an event of this id.
    pub(crate) fn rewind(&self, id: u64) {
        for event in &mut lock(&self.state).events {
            if event.stream == StreamId::OWN && event.id > id {
                event.is_sent = false;
            }
        }
    }

    fn wait(&self, until: Instant, mut look: impl FnMut(&mut State) -> Option<Next>) -> Next {
        let mut state = lock(&self.state);
        loop {
            if state.has_ended {
                return Next::End;
            }
            if let Some(next) = look(&mut state) {
                return next;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Next::End;
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn end(&self) {
        lock(&self.state).has_ended = true;
        self.changed.notify_all();
    }
}

impl State {
    fn add(&mut self, stream: StreamId, message: String, is_sent: bool) -> u64 {
        self.last_event += 1;
        self.events.push(Event {
            id: self.last_event,
            stream,
            message,
            is_sent,
        });
        self.last_event
    }
}

/// Each statement leaves what is locked whole, so a panic elsewhere does not matter.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    fn message(next: Next) -> Option<String> {
        match next {
            Next::Event(event) => Some(event.message),
            Next::End => None,
        }
    }

    #[test]
    fn what_is_said_waits_for_a_listener_and_is_sent_once() {
        let sessions = Sessions::default();
        sessions.say_to_the_next("early".into());
        let session = sessions.begin("v".into());
        session.say("late".into());
        let listener = session.listen();
        assert_eq!(
            message(session.next(listener, soon())).as_deref(),
            Some("early")
        );
        assert_eq!(
            message(session.next(listener, soon())).as_deref(),
            Some("late")
        );
        assert_eq!(message(session.next(listener, Instant::now())), None);
        session.rewind(1);
        assert_eq!(
            message(session.next(listener, soon())).as_deref(),
            Some("late")
        );
    }

    #[test]
    fn a_second_listener_takes_the_place_of_the_first() {
        let session = Session::new("s".into());
        let first = session.listen();
        let second = session.listen();
        session.say("x".into());
        assert_eq!(message(session.next(first, soon())), None);
        assert_eq!(message(session.next(second, soon())).as_deref(), Some("x"));
    }

    #[test]
    fn a_stream_of_a_post_goes_on_after_any_of_its_events() {
        let session = Session::new("s".into());
        let stream = session.open_stream();
        let first = session.keep(stream, "a");
        session.say("own".into());
        session.keep(stream, "b");
        session.close_stream(stream);
        assert_eq!(session.stream_of(first), Some(stream));
        let Next::Event(event) = session.next_after(stream, first, soon()) else {
            panic!("nothing came")
        };
        assert_eq!(event.message, "b");
        assert_eq!(message(session.next_after(stream, event.id, soon())), None);
    }

    #[test]
    fn a_session_that_has_ended_has_nothing_to_say() {
        let sessions = Sessions::default();
        let session = sessions.begin("v".into());
        session.say("x".into());
        sessions.end(&session.id);
        assert_eq!(message(session.next(session.listen(), soon())), None);
        assert!(sessions.find(&session.id).is_none());
    }

    #[test]
    fn only_the_agreed_version_is_taken() {
        let session = Session::new("s".into());
        assert!(session.takes_version(None));
        session.agree("a".into());
        assert!(
            session.takes_version(Some("a"))
                && !session.takes_version(Some("b"))
                && !session.takes_version(None)
        );
    }
}
