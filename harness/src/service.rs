//! The System-One service's side of HTTP: a listener on this machine, and whoever gives its answers.
//!
//! It speaks as much HTTP as the service's clients do, so that what is tried out with it are the
//! client, its retries and its cache as people use them.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Map, Value, json};

/// Requests larger than this are none of the client's.
const LARGEST: u64 = 64 * 1024 * 1024;

/// How long a connection may stay silent.
const SILENCE: Duration = Duration::from_mins(1);

/// What a client has sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Where it was sent, such as `/v1/systemone`.
    pub path: String,
    /// The credentials, as the header has them.
    pub authorization: Option<String>,
    /// The request itself.
    pub body: Vec<u8>,
}

/// What is sent back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub text: String,
    /// For the header of that name, in seconds.
    pub retry_after: Option<u64>,
}

impl Reply {
    /// These answers to questions, by their ids, in the form that the service gives them.
    pub fn answers(model: &str, answers: &Map<String, Value>) -> Self {
        let usage = json!({ "input_tokens": 0, "output_tokens": 0 });
        Self {
            status: 200,
            text: json!({ "model": model, "answers": answers, "usage": usage }).to_string(),
            retry_after: None,
        }
    }

    /// A status that is no success, and why.
    pub fn refused(status: u16, why: &str) -> Self {
        Self {
            status,
            text: json!({ "error": why }).to_string(),
            retry_after: None,
        }
    }
}

/// Whoever answers: a call is told its reply, or nothing when its connection is to be cut.
type Answerer = dyn Fn(&Call) -> Option<Reply> + Send + Sync;

/// A service that listens on a port of its own, each connection on a thread of its own. Dropping
/// it ends it; a reply that somebody still works at is then lost.
pub struct Service {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Service {
    /// Starts one whose replies come from `answer`.
    ///
    /// # Errors
    ///
    /// When no port or no thread can be had.
    pub fn start(
        answer: impl Fn(&Call) -> Option<Reply> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (answer, ends): (Arc<Answerer>, _) = (Arc::new(answer), Arc::clone(&is_over));
        let listening = thread::Builder::new()
            .name("service".to_owned())
            .spawn(move || listen(&listener, &answer, &ends))?;
        Ok(Self {
            address,
            is_over,
            listening: Some(listening),
        })
    }

    /// Where it listens, such as `127.0.0.1:41234`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // The wait for a connection ends with one.
        drop(TcpStream::connect(self.address));
        if let Some(listening) = self.listening.take() {
            drop(listening.join());
        }
    }
}

fn listen(listener: &TcpListener, answer: &Arc<Answerer>, is_over: &AtomicBool) {
    for connection in listener.incoming() {
        if is_over.load(Ordering::Acquire) {
            return;
        }
        let Ok(connection) = connection else { continue };
        let answer = Arc::clone(answer);
        let served = thread::Builder::new()
            .name("service-connection".to_owned())
            // A client that goes away in the middle has no use for an error.
            .spawn(move || drop(serve(&connection, &*answer)));
        drop(served);
    }
}

/// Answers the calls of one connection until it ends, or is cut.
fn serve(connection: &TcpStream, answer: &Answerer) -> io::Result<()> {
    connection.set_read_timeout(Some(SILENCE))?;
    let mut reader = BufReader::new(connection);
    let mut writer = connection;
    while let Some(call) = read_call(&mut reader)? {
        let Some(Reply {
            status,
            text,
            retry_after,
        }) = answer(&call)
        else {
            break;
        };
        let retry_after =
            retry_after.map_or_else(String::new, |seconds| format!("Retry-After: {seconds}\r\n"));
        let head = format!(
            "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\n{retry_after}Content-Length: {}\r\n\r\n",
            text.len()
        );
        writer.write_all(head.as_bytes())?;
        writer.write_all(text.as_bytes())?;
        writer.flush()?;
    }
    Ok(())
}

/// The next call of a connection; nothing when there is none.
fn read_call(reader: &mut impl BufRead) -> io::Result<Option<Call>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut call = Call {
        path: line.split(' ').nth(1).unwrap_or_default().to_owned(),
        ..Call::default()
    };
    let mut length = 0_u64;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        match name.trim().to_ascii_lowercase().as_str() {
            "authorization" => call.authorization = Some(value.trim().to_owned()),
            "content-length" => length = value.trim().parse().unwrap_or_default(),
            _ => {}
        }
    }
    reader
        .take(length.min(LARGEST))
        .read_to_end(&mut call.body)?;
    Ok(Some(call))
}
