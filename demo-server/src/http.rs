//! The server over Streamable HTTP, strict on purpose: it finds clients that forget the session,
//! the version, or what they accept.
//!
//! ```text
//!   connection ──► wire::read ──► checks ──► server::Server ──► JSON, or an event stream
//!       ▲                           │
//!       └── the next request        └─ sessions: who has begun, on which version
//! ```
//!
//! Each connection has a thread of its own, so slow calls run side by side. Plain threads and
//! [`wire`] in place of a library: the faults of a script live below what one offers, and a thread
//! may simply wait.

use std::io::{self, BufReader, Write as _};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::HttpSettings;
use crate::protocol::{self, Message};
use crate::script::manners::Secret;
use crate::server::Server;
use sessions::{Session, Sessions};
use wire::{Head, Manner, Request};

mod sessions;
pub(crate) mod wire;

/// How long the session's own stream stays open.
const LONGEST_STREAM: Duration = Duration::from_mins(1);
/// How much is read at once.
const READ_AT_ONCE: usize = 64 * 1024;
/// The longest wait before connections are accepted again after that has failed.
const RETRY: Duration = Duration::from_millis(50);

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// Serves until the process is killed. Says where, as the first line of stdout.
///
/// # Errors
///
/// When the address cannot be listened on, or stdout cannot be written.
pub(crate) fn serve(server: Server, settings: &HttpSettings) -> io::Result<()> {
    let addresses: Vec<_> = settings.address.to_socket_addrs()?.collect();
    let listener = TcpListener::bind(addresses.as_slice())?;
    let mut stdout = io::stdout();
    writeln!(stdout, "http://{}/mcp", listener.local_addr()?)?;
    stdout.flush()?;

    let endpoint = Endpoint {
        server,
        require_auth: settings.require_auth.clone(),
        close: settings.close,
        sessions: Sessions::default(),
    };
    thread::scope(|threads| {
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    let endpoint = &endpoint;
                    threads.spawn(move || endpoint.connection(&stream));
                }
                // Too many open files, or a client that has gone again: neither is the end.
                Err(_) => thread::sleep(RETRY),
            }
        }
    })
}

struct Endpoint {
    server: Server,
    require_auth: Option<Secret>,
    close: bool,
    sessions: Sessions,
}

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// It carries another request.
    Keep,
    /// It closes.
    Close,
}

impl Endpoint {
    /// Answers the requests of a connection, one after another, until either side ends it.
    fn connection(&self, stream: &TcpStream) {
        // A client that is gone, at whatever point, ends its connection and nothing else.
        drop(self.requests(stream));
    }

    fn requests(&self, mut stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut input = BufReader::with_capacity(READ_AT_ONCE, stream);
        while let Some(mut request) = wire::read(&mut input, &mut stream)? {
            self.server.transcript.http(&request);
            request.keeps_alive &= !self.close;
            if self.answer(&request, &mut stream)? == Next::Close || !request.keeps_alive {
                break;
            }
        }
        Ok(())
    }

    /// The checks, in their order, and then what the method asks for.
    fn answer(&self, request: &Request, out: &mut &TcpStream) -> io::Result<Next> {
        let refuse = |out: &mut &TcpStream, head: Head| empty(request, out, &head);
        if request.path() != "/mcp" {
            return refuse(out, Head::new(404));
        }
        if let Some(required) = &self.require_auth
            && request.header("authorization") != Some(required.0.as_bytes())
        {
            return refuse(out, Head::new(401));
        }
        match request.method.as_str() {
            "POST" if request.has_no_length => refuse(out, Head::new(411)),
            "POST" if !(request.accepts(JSON) && request.accepts(EVENTS)) => {
                refuse(out, Head::new(406))
            }
            "POST" => self.post(request, out),
            "GET" if !request.accepts(EVENTS) => refuse(out, Head::new(406)),
            "GET" => self.get(request, out),
            "DELETE" => {
                self.sessions
                    .end(request.text("mcp-session-id").unwrap_or_default());
                refuse(out, Head::new(200))
            }
            _ => refuse(out, Head::new(405).with("Allow", "GET, POST, DELETE")),
        }
    }

    fn post(&self, request: &Request, out: &mut &TcpStream) -> io::Result<Next> {
        let message = Message::read(&request.body);
        match &message {
            Message::Notification(call) if call.method == "initialize" => {
                return empty(request, out, &Head::new(400));
            }
            Message::Request(_, call) if call.method == "initialize" => {
                return self.initialize(request, &message, out);
            }
            _ => {}
        }

        let Some(id) = request.text("mcp-session-id") else {
            return empty(request, out, &Head::new(400));
        };
        let Some(session) = self.sessions.find(id) else {
            return empty(request, out, &Head::new(404));
        };
        if request.text("mcp-protocol-version") != Some(&session.version) {
            return empty(request, out, &Head::new(400));
        }

        match &message {
            Message::Request(_, call) if call.method == "tools/call" => {
                self.stream(request, &message, call.tool(), out)
            }
            _ => match self.server.react(&message).answer {
                None => empty(request, out, &Head::new(202)),
                Some(answer) => whole(request, out, Head::new(200), &answer),
            },
        }
    }

    fn initialize(
        &self,
        request: &Request,
        message: &Message,
        out: &mut &TcpStream,
    ) -> io::Result<Next> {
        let answer = self.server.react(message).answer.unwrap_or_default();
        let session = self.sessions.begin(version(&answer));
        whole(
            request,
            out,
            Head::new(200).with("Mcp-Session-Id", session.id.clone()),
            &answer,
        )
    }

    /// Answers a call on an event stream. The stream opens, with a notification, before the call
    /// takes its time: a client that waits for whole bodies is found that way.
    fn stream(
        &self,
        request: &Request,
        message: &Message,
        tool: &str,
        out: &mut &TcpStream,
    ) -> io::Result<Next> {
        let reaction = self.server.react(message);
        let mut body = wire::open(out, &events(), streams_on(request), Manner::default())?;
        body.write(event(&log_message(&format!("calling {tool}"))).as_bytes())?;
        thread::sleep(reaction.delay);
        if let Some(answer) = reaction.answer {
            body.write(event(&answer).as_bytes())?;
        }
        body.end()?;
        Ok(after(streams_on(request)))
    }

    /// The session's own stream.
    fn get(&self, request: &Request, out: &mut &TcpStream) -> io::Result<Next> {
        let Some(session) = self.session(request) else {
            return empty(request, out, &Head::new(404));
        };
        let mut body = wire::open(out, &events(), streams_on(request), Manner::default())?;
        body.write(event(&log_message("hello from the server's own stream")).as_bytes())?;
        session.wait_for_end(LONGEST_STREAM);
        body.end()?;
        Ok(after(streams_on(request)))
    }

    fn session(&self, request: &Request) -> Option<std::sync::Arc<Session>> {
        self.sessions.find(request.text("mcp-session-id")?)
    }
}

/// The version that an answer to `initialize` agrees on.
fn version(answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    match &answer["result"]["protocolVersion"] {
        Value::String(version) => version.clone(),
        other => other.to_string(),
    }
}

/// Whether a stream to this client ends without ending the connection.
fn streams_on(request: &Request) -> bool {
    request.keeps_alive && request.takes_chunks
}

fn after(keeps_alive: bool) -> Next {
    if keeps_alive { Next::Keep } else { Next::Close }
}

fn empty(request: &Request, out: &mut &TcpStream, head: &Head) -> io::Result<Next> {
    wire::send(out, head, b"", request.keeps_alive, Manner::default())?;
    Ok(after(request.keeps_alive))
}

fn whole(request: &Request, out: &mut &TcpStream, head: Head, body: &str) -> io::Result<Next> {
    wire::send(
        out,
        &head.with("Content-Type", JSON),
        body.as_bytes(),
        request.keeps_alive,
        Manner::default(),
    )?;
    Ok(after(request.keeps_alive))
}

fn events() -> Head {
    Head::new(200)
        .with("Content-Type", EVENTS)
        .with("Cache-Control", "no-cache")
        .with("X-Accel-Buffering", "no")
}

/// A message as an event.
fn event(message: &str) -> String {
    format!("event: message\ndata: {message}\n\n")
}

fn log_message(what: &str) -> String {
    protocol::notification(
        "notifications/message",
        &json!({"level": "info", "data": what}),
    )
}
