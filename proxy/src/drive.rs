//! The loop: what happens becomes events, what the session says becomes deeds.

use std::{collections::VecDeque, io, mem, time::Duration};

use stretto_oracle::Response;
use stretto_trace::mcp::Who;
use tracing::{info, warn};

use crate::{
    asker::Asker,
    clock::{Clock, Millis},
    conversation::Conversation,
    host::{Host, HostTurn},
    line::Line,
    owed::Owed,
    patience::{Due, Patience},
    record::SessionLog,
    session::{Act, Event, Session, Side, Ticket},
    sidelogs::SideLogs,
    signals::{Signals, Stop},
    upstream::{Ending, Pressure, Said, ServerTurn, Upstream},
};

/// How often a session that waits for something of its own is looked at.
const TICK: Millis = Millis(250);

/// How often a session on its way to its end is looked at.
const LOOK: Millis = Millis(50);

/// How the session came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The server's end came, by itself or because it was pressed.
    Server(Ending),
    /// The proxy was told to stop, at that time.
    Stopped(Stop, Millis),
}

/// One session under way.
#[derive(Debug)]
pub(crate) struct Drive<'a> {
    host: Host,
    server: Upstream,
    session: Session,
    log: Option<&'a SessionLog>,
    beside: Beside,
    clock: Clock,
    owed: Owed,
    patience: Patience,
    /// When it was last seen whether the host is still there.
    looked: Millis,
    stop: Option<(Stop, Millis)>,
    /// How the server's process ended, once it has.
    ending: Option<Ending>,
    /// What the host said, and what was sent to it, in this step; it has still to be counted.
    uncounted: Vec<(Side, Line)>,
    acts: Vec<Act>,
    /// Lines that were kept back, and are not any more, in the order in which they came.
    admitted: VecDeque<Line>,
}

/// What a session has beside its log.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// What is said between the user and the agent.
    pub(crate) conversation: Option<Conversation>,
    /// Who answers questions.
    pub(crate) asker: Asker,
    /// The flow's log, and the others.
    pub(crate) logs: SideLogs,
}

/// What woke the loop.
#[derive(Debug)]
enum Woken {
    Host(HostTurn),
    Server(ServerTurn),
    Answered(Ticket, Result<Response, String>),
    Stop(Stop),
    Time,
    Tick,
}

impl<'a> Drive<'a> {
    /// A session between `host` and `server` that has not begun.
    pub(crate) fn new(
        host: Host,
        server: Upstream,
        session: Session,
        log: Option<&'a SessionLog>,
        beside: Beside,
        clock: Clock,
    ) -> Self {
        Self {
            host,
            server,
            session,
            log,
            beside,
            clock,
            owed: Owed::default(),
            patience: Patience::default(),
            looked: Millis::default(),
            stop: None,
            ending: None,
            uncounted: Vec::new(),
            acts: Vec::new(),
            admitted: VecDeque::new(),
        }
    }

    /// Carries lines until both ends are done.
    pub(crate) async fn run(mut self, signals: &mut Signals) -> Outcome {
        loop {
            if let Some(ending) = self.ending
                && self.host.is_drained()
            {
                return self.over(ending);
            }
            match self.next(signals).await {
                Woken::Host(turn) => self.host_turn(turn),
                Woken::Server(turn) => self.server_turn(turn),
                Woken::Stop(stop) => self.stop(stop),
                Woken::Answered(ticket, answer) => self.handle(Event::Answered(ticket, answer)),
                Woken::Time => {}
                Woken::Tick => self.handle(Event::Tick),
            }
            self.flush();
            self.count();
            if self.is_watched()
                && let Some(ending) = self.press()
            {
                return self.over(ending);
            }
        }
    }

    /// Waits for the next thing to happen. Each arm is cancel safe, so nothing is lost with the others.
    async fn next(&mut self, signals: &mut Signals) -> Woken {
        let (host_may_speak, server_may_speak) = (self.server.has_room(), self.host.has_room());
        tokio::select! {
            turn = self.host.turn(host_may_speak) => Woken::Host(turn),
            turn = self.server.turn(server_may_speak), if self.ending.is_none() => Woken::Server(turn),
            (ticket, answer) = self.beside.asker.next(), if self.beside.asker.is_asked() => Woken::Answered(ticket, answer),
            stop = signals.next(), if self.stop.is_none() => Woken::Stop(stop),
            () = pass(LOOK), if self.is_watched() => Woken::Time,
            () = pass(TICK), if self.session.is_waiting() => Woken::Tick,
        }
    }

    /// Whether time matters: the session is on its way to its end, or could be without our
    /// knowing, as nothing is read from the host while the server takes nothing.
    fn is_watched(&self) -> bool {
        self.patience.is_ending() || !self.server.has_room()
    }

    fn host_turn(&mut self, turn: HostTurn) {
        match turn {
            HostTurn::Spoke => self.take_from_host(),
            HostTurn::Took => {}
            HostTurn::Ended => self.host_ended(),
            HostTurn::Broke(error) => {
                warn!("reading from the client: {error}; taken as its end");
                self.host_ended();
            }
            HostTurn::Left(error) => self.left(Side::Host, &error),
        }
    }

    fn server_turn(&mut self, turn: ServerTurn) {
        match turn {
            ServerTurn::Spoke => self.take_from_server(),
            ServerTurn::Took => {}
            ServerTurn::Ended => self.server_ended(),
            ServerTurn::Broke(error) => {
                warn!("reading from the server: {error}; taken as its end");
                self.server_ended();
            }
            ServerTurn::Left(error) => self.left(Side::Server, &error),
            ServerTurn::Gone(ending) => self.gone(ending),
        }
    }

    fn take_from_host(&mut self) {
        let at = self.clock.now();
        while let Some(line) = self.host.take_line() {
            self.take(at, Side::Host, line);
        }
    }

    fn take_from_server(&mut self) {
        let at = self.clock.now();
        self.patience.heard(at);
        while let Some(said) = self.server.take_line() {
            match said {
                Said::Line(line) => self.take(at, Side::Server, line),
                Said::Amended { line, instead } => {
                    self.record(at, Who::Server, &line);
                    self.handle(Event::Amended { line, instead });
                }
                Said::Asked(line) => self.record(at, Who::Proxy, &line),
                Said::Aside(line) => self.record(at, Who::Server, &line),
            }
        }
    }

    /// A line's way: it is recorded before anything is done with it.
    fn take(&mut self, at: Millis, from: Side, line: Line) {
        if from == Side::Host {
            if self.session.keeps_back(&line) {
                return;
            }
            if self.session.wants_conversation(&line) {
                for event in self.listen() {
                    self.handle(event);
                }
            }
        }
        self.record(at, who(from), &line);
        self.handle(Event::Line(from, line));
    }

    /// Records what is new in the conversation, and returns it.
    fn listen(&mut self) -> Vec<Event> {
        let Some(conversation) = &mut self.beside.conversation else {
            return Vec::new();
        };
        let lines = conversation.new_lines();
        let at = self.clock.now();
        for line in &lines {
            self.record(at, Who::Context, line);
        }
        lines.into_iter().map(Event::Said).collect()
    }

    fn record(&self, at: Millis, from: Who, line: &Line) {
        if let Some(log) = self.log {
            log.record(at, from, line);
        }
    }

    /// Has the session take an event, and does what it says, which may lead to more events.
    fn handle(&mut self, event: Event) {
        // Most events lead to no others, so nothing is allocated for those.
        let (mut next, mut more) = (Some(event), VecDeque::new());
        let mut acts = mem::take(&mut self.acts);
        while let Some(event) = next {
            self.session.handle(self.clock.now(), event, &mut acts);
            for act in acts.drain(..) {
                match act {
                    Act::Forward(to, line) => {
                        if to == Side::Server {
                            self.uncounted.push((Side::Host, line.clone()));
                        }
                        self.push(to, line);
                    }
                    Act::Send(to, line) => {
                        self.record(self.clock.now(), Who::Proxy, &line);
                        self.push(to, line);
                    }
                    Act::Listen => {
                        more.extend(self.listen());
                        more.push_back(Event::Listened);
                    }
                    Act::Ask(ticket, request) => self.beside.asker.ask(ticket, *request),
                    Act::Admit(line) => self.admitted.push_back(line),
                    Act::Note(log, line) => self.beside.logs.append(log, &line),
                    Act::Say(what) => info!("{what}"),
                    Act::Close(Side::Server) => self.server.close(),
                    Act::Close(Side::Host) => {}
                }
            }
            next = more.pop_front();
        }
        self.acts = acts;
        while let Some(line) = self.admitted.pop_front() {
            self.take(self.clock.now(), Side::Host, line);
        }
    }

    fn push(&mut self, to: Side, line: Line) {
        match to {
            Side::Server => self.server.push(&line),
            Side::Host => {
                self.host.push(&line);
                self.uncounted.push((Side::Server, line));
            }
        }
    }

    fn host_ended(&mut self) {
        self.take_from_host();
        self.patience.input_ended(self.clock.now());
        for event in self.listen() {
            self.handle(event);
        }
        self.handle(Event::Closed(Side::Host));
    }

    fn server_ended(&mut self) {
        self.take_from_server();
        self.patience.output_ended(self.clock.now());
        self.handle(Event::Closed(Side::Server));
    }

    fn left(&mut self, side: Side, error: &io::Error) {
        let (it, other) = match side {
            Side::Host => ("client", "server"),
            Side::Server => ("server", "client"),
        };
        warn!(
            "forwarding to the {it}: {error}; what the {other} still says is recorded, if a log is kept"
        );
        self.handle(Event::Left(side));
    }

    fn stop(&mut self, stop: Stop) {
        let now = self.clock.now();
        self.stop = Some((stop, now));
        self.patience.stop(now);
        self.server.cut_short();
    }

    /// Sends on its way what was taken in this step, and lets the log's writer know.
    fn flush(&mut self) {
        if let Err(error) = self.server.flush_now() {
            self.left(Side::Server, &error);
        }
        if let Err(error) = self.host.flush_now() {
            self.left(Side::Host, &error);
        }
        if let Some(log) = self.log {
            log.nudge();
        }
    }

    /// Counts what is owed, now that no line waits for it.
    fn count(&mut self) {
        if self.uncounted.is_empty() {
            return;
        }
        let now = self.clock.now();
        for (from, line) in self.uncounted.drain(..) {
            match from {
                Side::Host => self.owed.asked(now, line.content()),
                Side::Server => self.owed.answered(line.content()),
            }
        }
    }

    /// Ends a server that has had its time. An ending when the rest of its output is not waited for.
    fn press(&mut self) -> Option<Ending> {
        let now = self.clock.now();
        if now - self.looked >= LOOK {
            self.looked = now;
            self.look_for_host(now);
        }
        let is_delivering = !self.host.is_drained();
        if self.stop.is_none() && self.ending.is_some() {
            // Nothing is left but what the host has not taken yet. It has all the time it wants.
            return None;
        }
        let is_unanswered = self.owed.is_any(now) || self.session.is_waiting();
        if is_unanswered && self.patience.is_worth_a_word(now) {
            info!(
                "the host has closed its end, and the server still owes it an answer; \
                 waiting for that, however long it takes (SIGTERM ends both)"
            );
        }
        match self.patience.due(now, is_unanswered || is_delivering)? {
            Due::Press(pressure) => {
                self.server.press(pressure);
                None
            }
            Due::GiveUp => {
                let ending = self
                    .ending
                    .or_else(|| self.server.ending())
                    .unwrap_or(Ending::Unknown);
                if self.stop.is_some() {
                    self.host.abandon();
                    return Some(ending);
                }
                self.gone(ending);
                None
            }
        }
    }

    /// The server is over. Whoever in its group did not go with it goes now, if it was pressed.
    fn gone(&mut self, ending: Ending) {
        if self.patience.pressure().is_some() {
            self.server.press(Pressure::Force);
        }
        self.ending = Some(ending);
    }

    fn look_for_host(&mut self, now: Millis) {
        if !self.host.is_gone() {
            return;
        }
        if !self.patience.is_input_ended() && self.host.has_hung_up() {
            // There is more to read from it, but nobody waits for what comes of that.
            self.patience.input_ended(now);
        }
        if self.patience.is_input_ended() {
            self.patience.host_is_gone(now);
            self.server.host_is_gone();
        }
    }

    fn over(&mut self, ending: Ending) -> Outcome {
        if self.stop.is_none()
            && let Some(pressure) = self.patience.pressure()
            && let Some(what) = self.server.after_pressure(pressure)
        {
            warn!("{what}");
        }
        self.stop.map_or(Outcome::Server(ending), |(stop, at)| {
            Outcome::Stopped(stop, at)
        })
    }
}

/// Lets time pass. The timer is made when it is polled: one for each line would cost as much as reading the line.
async fn pass(time: Millis) {
    tokio::time::sleep(Duration::from_millis(time.0)).await;
}

fn who(side: Side) -> Who {
    match side {
        Side::Host => Who::Client,
        Side::Server => Who::Server,
    }
}
