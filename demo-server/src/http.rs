//! The server over Streamable HTTP, and a strict one: a client that leaves out its session,
//! the version or what it accepts is to find out here.
//!
//! ```text
//!   connection ──► wire::read ──► checks ──► server::Server ──► exchange ──► JSON, or an event stream
//!       ▲                           │                              │
//!       └── the next request        ├─ sessions: who has begun     └─ faults: cut, slow, refused …
//!                                   └─ mirror: a modern request's headers
//! ```
//!
//! Each connection has a thread of its own, so slow calls run side by side. Plain threads and
//! [`wire`] in place of a library: the faults of a script live below what one offers, and a thread
//! may simply wait.

use std::ffi::OsString;
use std::io::{self, BufReader, Write as _};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::cli::HttpSettings;
use crate::era::{self, Era};
use crate::protocol::{self, Call, Message};
use crate::script::manners::{Delete, Form, Get, Secret, SessionRule, VersionRule};
use crate::script::timeline::{Deed, Entry, Moment};
use crate::server::{Reaction, Server, Subscription};
use exchange::Exchange;
use live::Live;
use sessions::{Session, Sessions, lock};
use wire::{Head, Manner, Request};

mod exchange;
mod live;
mod mirror;
mod sessions;
mod stream;
pub(crate) mod wire;

/// How long the session's own stream stays open.
const LONGEST_STREAM: Duration = Duration::from_mins(1);
/// How much is read at once.
const READ_AT_ONCE: usize = 64 * 1024;
/// The wait before connections are accepted again after that has failed.
const RETRY: Duration = Duration::from_millis(50);

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "Mcp-Session-Id";

/// Serves until the process is killed. Says where, as the first line of stdout.
///
/// # Errors
///
/// When the address cannot be listened on, or stdout cannot be written.
pub(crate) fn serve(
    server: Server,
    settings: &HttpSettings,
    over: Option<&[OsString]>,
) -> io::Result<()> {
    let (live, said) = over.map(Live::start).transpose()?.unzip();
    let listener = listen(&settings.address).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("listening on {}: {error}", settings.address),
        )
    })?;
    let mut stdout = io::stdout();
    writeln!(stdout, "http://{}/mcp", listener.local_addr()?)?;
    stdout.flush()?;

    let require_auth = settings
        .require_auth
        .clone()
        .or_else(|| server.manners.auth.clone());
    let endpoint = Arc::new(Endpoint {
        server,
        require_auth,
        close: settings.close,
        sessions: Sessions::default(),
        nobody: Arc::new(Session::new(String::new())),
        crlf: AtomicBool::new(false),
        listeners: Mutex::default(),
        live,
    });
    if let Some(said) = said {
        let endpoint = Arc::clone(&endpoint);
        thread::spawn(move || {
            if let Some(live) = &endpoint.live {
                live.listen(said, |message| {
                    endpoint.say(message, endpoint.sessions.latest().as_ref());
                });
            }
        });
    }
    for note in endpoint.server.at_first() {
        endpoint.say(note.text, None);
    }
    endpoint.come(&Moment::Start, None);
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                let endpoint = Arc::clone(&endpoint);
                // Without a thread for it, the connection closes.
                drop(thread::Builder::new().spawn(move || endpoint.connection(&stream)));
            }
            // Too many open files, or a client that has gone again: neither is the end.
            Err(_) => thread::sleep(RETRY),
        }
    }
}

fn listen(address: &str) -> io::Result<TcpListener> {
    let addresses: Vec<_> = address.to_socket_addrs()?.collect();
    TcpListener::bind(addresses.as_slice())
}

/// The one path that is served, and all that is going on behind it.
struct Endpoint {
    server: Server,
    require_auth: Option<Secret>,
    close: bool,
    sessions: Sessions,
    /// The one session of a server that gives no ids.
    nobody: Arc<Session>,
    /// Whether the lines of event streams end in CR LF.
    crlf: AtomicBool,
    /// Who has subscribed, in the modern era, and where to tell them.
    listeners: Mutex<Vec<(Subscription, Sender<String>)>>,
    /// The live server behind, if there is one.
    live: Option<Live>,
}

/// What becomes of a connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// It carries another request.
    Keep,
    /// It closes.
    Close,
}

impl Endpoint {
    /// Answers the requests of a connection, one after another, until either side ends it.
    fn connection(self: &Arc<Self>, stream: &TcpStream) {
        // A client that is gone, at whatever point, ends its connection and nothing else.
        drop(self.requests(stream));
    }

    fn requests(self: &Arc<Self>, mut stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut input = BufReader::with_capacity(READ_AT_ONCE, stream);
        while let Some(mut request) = wire::read(&mut input, &mut stream)? {
            self.server.transcript.http(&request);
            request.keeps_alive &= !self.close;
            if self.answer(&request, stream)? == After::Close || !request.keeps_alive {
                break;
            }
        }
        Ok(())
    }

    /// The checks that every request meets, in their order, and then what its method asks for.
    fn answer(self: &Arc<Self>, request: &Request, out: &TcpStream) -> io::Result<After> {
        if request.path() != "/mcp" {
            return empty(request, out, &Head::new(404));
        }
        if let Some(required) = &self.require_auth
            && request.header("authorization") != Some(required.0.as_bytes())
        {
            return empty(request, out, &Head::new(401));
        }
        let is_modern_only = self.server.era() == Era::Modern;
        match request.method.as_str() {
            "POST" if request.has_no_length => empty(request, out, &Head::new(411)),
            "POST" if !(request.accepts(JSON) && request.accepts(EVENTS)) => {
                empty(request, out, &Head::new(406))
            }
            "POST" => self.post(request, out),
            _ if is_modern_only => empty(request, out, &Head::new(405).with("Allow", "POST")),
            "GET" => self.get(request, out),
            "DELETE" => self.delete(request, out),
            _ => empty(
                request,
                out,
                &Head::new(405).with("Allow", "GET, POST, DELETE"),
            ),
        }
    }

    fn post(self: &Arc<Self>, request: &Request, out: &TcpStream) -> io::Result<After> {
        let message = Message::read(&request.body);
        let is_modern = self.is_modern(request, &message);
        match &message {
            Message::Request(_, call) if is_modern => {
                return self.modern(request, &message, call, out);
            }
            // A modern client sends no responses, since the server sends no requests.
            Message::Response(_) if is_modern => return empty(request, out, &Head::new(400)),
            Message::Notification(call) if call.method == "initialize" => {
                return empty(request, out, &Head::new(400));
            }
            Message::Request(_, call) if call.method == "initialize" => {
                return self.initialize(request, &message, out);
            }
            _ if is_modern => {
                return self.exchange(request, None, out).carry_out(
                    self.server.react(&message),
                    Form::Json,
                    None,
                );
            }
            _ => {}
        }

        let session = match self.server.manners.session {
            SessionRule::None | SessionRule::Wrong => Arc::clone(&self.nobody),
            SessionRule::Required => {
                let Some(id) = request.text("mcp-session-id") else {
                    return empty(request, out, &Head::new(400));
                };
                let Some(session) = self.sessions.find(id) else {
                    return empty(request, out, &Head::new(404));
                };
                session
            }
        };
        let is_checked = self.server.manners.version == VersionRule::Checked;
        if is_checked && !session.takes_version(request.text("mcp-protocol-version")) {
            return empty(request, out, &Head::new(400));
        }
        let notice = match &message {
            Message::Request(_, call) => self.notice(call, false),
            _ => None,
        };
        let form = self.form(&message);
        self.exchange(request, Some(session), out).carry_out(
            self.server.react(&message),
            form,
            notice.as_deref(),
        )
    }

    fn initialize(
        self: &Arc<Self>,
        request: &Request,
        message: &Message,
        out: &TcpStream,
    ) -> io::Result<After> {
        let mut exchange = self.exchange(request, None, out);
        exchange.begins_a_session = true;
        exchange.carry_out(self.server.react(message), self.form(message), None)
    }

    fn modern(
        self: &Arc<Self>,
        request: &Request,
        message: &Message,
        call: &Call,
        out: &TcpStream,
    ) -> io::Result<After> {
        let is_admitted = era::admit(self.server.era(), call, true).is_ok();
        if is_admitted && let Err(error) = mirror::check(request, call, &self.server.modern_tools())
        {
            let Message::Request(id, _) = message else {
                return Ok(After::Close);
            };
            let reaction = Reaction {
                answer: Some(protocol::answer(id, &Err(error))),
                status: 400,
                ..Reaction::default()
            };
            return self
                .exchange(request, None, out)
                .carry_out(reaction, Form::Json, None);
        }
        let reaction = self.server.react(message);
        // A status that says more than 200 has to stand in the head.
        let form = if reaction.status == 200 {
            self.form(message)
        } else {
            Form::Json
        };
        let notice = self.notice(call, true);
        self.exchange(request, None, out)
            .carry_out(reaction, form, notice.as_deref())
    }

    fn get(self: &Arc<Self>, request: &Request, out: &TcpStream) -> io::Result<After> {
        let manners = &self.server.manners;
        if let Get::Status(status) = manners.get {
            let head = Head::new(status);
            let head = if status == 405 {
                head.with("Allow", "POST, DELETE")
            } else {
                head
            };
            return empty(request, out, &head);
        }
        if !request.accepts(EVENTS) {
            return empty(request, out, &Head::new(406));
        }
        let session = match manners.session {
            SessionRule::None | SessionRule::Wrong => Some(Arc::clone(&self.nobody)),
            SessionRule::Required => request
                .text("mcp-session-id")
                .and_then(|id| self.sessions.find(id)),
        };
        let Some(session) = session else {
            return empty(request, out, &Head::new(404));
        };
        let longest = match manners.get {
            Get::Html => {
                let head = Head::new(200).with("Content-Type", "text/html; charset=utf-8");
                wire::send(
                    &mut &*out,
                    &head,
                    b"<!doctype html><title>Sign in</title>",
                    request.keeps_alive,
                    Manner::default(),
                )?;
                return Ok(after(request));
            }
            Get::Empty => Duration::ZERO,
            Get::Open | Get::Closes | Get::Status(_) => LONGEST_STREAM,
        };
        // A recorded or a live server says what it says, and nothing else.
        let hello = (self.server.is_built_in() && self.server.speaks_for_itself())
            .then(|| log_message("hello from the server's own stream"));
        let exchange = self.exchange(request, Some(Arc::clone(&session)), out);
        exchange.own_stream(
            &session,
            longest,
            manners.get == Get::Closes,
            hello.as_deref(),
        )
    }

    fn delete(self: &Arc<Self>, request: &Request, out: &TcpStream) -> io::Result<After> {
        match self.server.manners.delete {
            Delete::Status(status) => {
                if status < 300 {
                    self.sessions
                        .end(request.text("mcp-session-id").unwrap_or_default());
                }
                empty(request, out, &Head::new(status))
            }
            Delete::Hang => {
                self.exchange(request, None, out).never();
                Ok(After::Close)
            }
        }
    }

    fn exchange<'a>(
        self: &'a Arc<Self>,
        request: &'a Request,
        session: Option<Arc<Session>>,
        out: &'a TcpStream,
    ) -> Exchange<'a> {
        let head = match self.server.manners.session {
            SessionRule::Wrong => Head::new(200).with(SESSION, self.sessions.lost_id()),
            SessionRule::Required | SessionRule::None => Head::new(200),
        };
        Exchange {
            endpoint: self,
            request,
            session,
            out,
            head,
            begins_a_session: false,
        }
    }

    /// Whether a message is taken as one of the modern era. What is no request says nothing of it
    /// in its body, but does in its headers.
    fn is_modern(&self, request: &Request, message: &Message) -> bool {
        match (self.server.era(), message) {
            (Era::Legacy, _) => false,
            (Era::Modern, _) => true,
            (Era::Dual, Message::Request(_, call)) => Era::Dual.takes_as_modern(call),
            (Era::Dual, _) => request
                .text("mcp-protocol-version")
                .is_some_and(|version| era::VERSIONS.contains(&version)),
        }
    }

    /// In which form a message is answered.
    fn form(&self, message: &Message) -> Form {
        match self.server.manners.answers {
            Form::Auto => match message {
                Message::Request(_, call)
                    if matches!(call.method.as_str(), "tools/call" | "subscriptions/listen") =>
                {
                    Form::Stream
                }
                _ => Form::Json,
            },
            given => given,
        }
    }

    /// What a call's stream begins with.
    fn notice(&self, call: &Call, is_modern: bool) -> Option<String> {
        let is_wanted = self.server.speaks_for_itself()
            && call.method == "tools/call"
            && (!is_modern || era::wants_log(call));
        is_wanted.then(|| log_message(&format!("calling {}", call.tool())))
    }

    fn gives_ids(&self) -> bool {
        self.server.manners.get_ids
    }

    /// Subscribes somebody, who is told on the other end of the channel.
    fn subscribe(&self, subscription: Subscription) -> Receiver<String> {
        let (tell, told) = channel();
        lock(&self.listeners).push((subscription, tell));
        told
    }

    /// Starts what the timeline has for a moment of a session.
    fn come(self: &Arc<Self>, moment: &Moment, session: Option<&Arc<Session>>) {
        for entry in self.server.due(moment) {
            if entry.wait.is_zero() {
                self.enact(&entry, session);
            } else {
                let (endpoint, session) = (Arc::clone(self), session.cloned());
                thread::spawn(move || {
                    thread::sleep(entry.wait);
                    endpoint.enact(&entry, session.as_ref());
                });
            }
        }
    }

    fn enact(&self, entry: &Entry, session: Option<&Arc<Session>>) {
        self.server.fire(&entry.label);
        match &entry.deed {
            Deed::Send(message) => self.say(message.to_string(), session),
            Deed::Line(text) => self.say(text.clone(), session),
            Deed::Relist(listing) => {
                self.server.relist(listing);
                self.tell_of_changed_tools();
            }
            Deed::Fault(fault) => {
                if let Some(line) = &fault.line {
                    self.say(line.clone(), session);
                }
                if fault.end_session {
                    match session {
                        Some(session) => self.sessions.end(&session.id),
                        None => self.sessions.end_all(),
                    }
                }
                self.befall(fault);
            }
        }
    }

    /// Says something on a session's own stream, or on the next session's when there is none yet.
    fn say(&self, message: String, session: Option<&Arc<Session>>) {
        match session {
            Some(session) => session.say(message),
            None if self.server.manners.session == SessionRule::Required => {
                self.sessions.say_to_the_next(message);
            }
            None => self.nobody.say(message),
        }
    }

    fn tell_of_changed_tools(&self) {
        const CHANGED: &str = "notifications/tools/list_changed";
        lock(&self.listeners).retain(|(subscription, tell)| {
            let mut params = json!({});
            era::subscribe(&mut params, &subscription.id);
            // A client that has left is forgotten.
            !subscription.to_tools || tell.send(protocol::notification(CHANGED, &params)).is_ok()
        });
        if self.server.era() == Era::Modern {
            return;
        }
        let mut sessions = self.sessions.all();
        if self.server.manners.session != SessionRule::Required {
            sessions.push(Arc::clone(&self.nobody));
        }
        for session in sessions {
            session.say(json!({"jsonrpc": "2.0", "method": CHANGED}).to_string());
        }
    }
}

fn after(request: &Request) -> After {
    if request.keeps_alive {
        After::Keep
    } else {
        After::Close
    }
}

fn empty(request: &Request, mut out: &TcpStream, head: &Head) -> io::Result<After> {
    wire::send(&mut out, head, b"", request.keeps_alive, Manner::default())?;
    Ok(after(request))
}

fn log_message(what: &str) -> String {
    protocol::notification(
        "notifications/message",
        &json!({"level": "info", "data": what}),
    )
}
