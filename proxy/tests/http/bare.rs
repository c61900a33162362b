//! A server on a bare connection, for what no HTTP library would do.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// A request that was received.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    /// The header's values, joined by commas; empty when there is none. The name is in lower case.
    pub(crate) fn header(&self, name: &str) -> String {
        let values = self.headers.iter().filter(|(given, _)| given == name);
        values
            .map(|(_, value)| value.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// The body as JSON; null when it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The method of the message in the body, or of the request.
    pub(crate) fn what(&self) -> String {
        match self.json()["method"].as_str() {
            Some(method) => method.to_owned(),
            None => self.method.clone(),
        }
    }
}

/// Where an answer goes.
pub(crate) struct Out(TcpStream);

impl Out {
    /// The very bytes.
    pub(crate) fn raw(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.0.write_all(bytes.as_ref())
    }

    /// A whole answer.
    pub(crate) fn send(&mut self, status: &str, headers: &str, body: &str) -> io::Result<()> {
        self.raw(format!(
            "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    pub(crate) fn json(&mut self, body: &Value) -> io::Result<()> {
        self.send(
            "200 OK",
            "Content-Type: application/json\r\n",
            &body.to_string(),
        )
    }

    pub(crate) fn accepted(&mut self) -> io::Result<()> {
        self.send("202 Accepted", "", "")
    }

    /// The head of an event stream that ends with the connection.
    pub(crate) fn stream(&mut self) -> io::Result<()> {
        self.raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nConnection: close\r\n\r\n")
    }

    pub(crate) fn event(&mut self, message: &Value) -> io::Result<()> {
        self.raw(format!("data: {message}\n\n"))
    }

    /// Ends the connection.
    pub(crate) fn hang_up(&mut self) -> io::Result<()> {
        self.0.shutdown(Shutdown::Both)
    }

    /// Waits until the client has ended the connection.
    pub(crate) fn wait_for_hang_up(&mut self) {
        let mut byte = [0];
        while matches!(self.0.read(&mut byte), Ok(1)) {}
    }
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    requests: Mutex<Vec<Request>>,
    changed: Condvar,
}

/// A server that answers by a function, a thread for each connection.
pub(crate) struct Bare {
    pub(crate) url: String,
    seen: Arc<Seen>,
}

impl Bare {
    pub(crate) fn start(
        answer: impl Fn(&Request, &mut Out) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let seen = Arc::new(Seen::default());
        let answer = Arc::new(answer);
        let noted = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, noted) = (Arc::clone(&answer), Arc::clone(&noted));
                noted.connections.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || connection(&stream, &*answer, &noted));
            }
        });
        Self { url, seen }
    }

    /// A server with sessions and without a stream of its own, whose other requests are answered by `answer`.
    pub(crate) fn with_sessions(
        answer: impl Fn(&Request, &mut Out) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |request, out| match request.what().as_str() {
            "initialize" => {
                let answer = initialized(&request.json()["id"]);
                let headers = "Content-Type: application/json\r\nMcp-Session-Id: s-1\r\n";
                out.send("200 OK", headers, &answer.to_string())
            }
            "notifications/initialized" => out.accepted(),
            "GET" if request.header("last-event-id").is_empty() => {
                out.send("405 Method Not Allowed", "", "")
            }
            "DELETE" => out.send("200 OK", "", ""),
            _ => answer(request, out),
        })
    }

    /// How many connections were opened so far.
    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::Relaxed)
    }

    /// What was received so far.
    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.requests.lock().expect("no panics").clone()
    }

    /// Waits until a request was received of which `is_it` holds.
    pub(crate) fn wait_for(&self, is_it: impl Fn(&Request) -> bool) -> Request {
        let until = Instant::now() + Duration::from_secs(30);
        let mut requests = self.seen.requests.lock().expect("no panics");
        loop {
            if let Some(found) = requests.iter().find(|request| is_it(request)) {
                return found.clone();
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited in vain; there were {requests:?}");
            requests = self
                .seen
                .changed
                .wait_timeout(requests, left)
                .expect("no panics")
                .0;
        }
    }
}

/// An answer to `initialize`.
pub(crate) fn initialized(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {
        "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "bare", "version": "0"},
    }})
}

/// A result for the request in `request`.
pub(crate) fn result(request: &Request, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": result})
}

fn connection(
    stream: &TcpStream,
    answer: &dyn Fn(&Request, &mut Out) -> io::Result<()>,
    seen: &Seen,
) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut input = BufReader::new(stream.try_clone().ok()?);
    let mut out = Out(stream.try_clone().ok()?);
    loop {
        let request = read(&mut input)?;
        seen.requests.lock().ok()?.push(request.clone());
        seen.changed.notify_all();
        answer(&request, &mut out).ok()?;
    }
}

fn read(input: &mut impl BufRead) -> Option<Request> {
    let mut line = || {
        let mut line = String::new();
        let count = input.read_line(&mut line).ok()?;
        (count > 0).then(|| line.trim_end().to_owned())
    };
    let first = line()?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let line = line()?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request {
        method,
        target,
        headers,
        body: String::new(),
    };
    let length = request.header("content-length").parse().unwrap_or(0);
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    request.body = String::from_utf8_lossy(&body).into_owned();
    Some(request)
}
