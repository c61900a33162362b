//! Connections to one server, each of which carries one request after the other.
//!
//! hyper's own client opens a connection whenever none is free at that very moment, which is often
//! while one is just being put back. A host that calls once at a time would get a new connection
//! every few dozen calls, and one that calls hundreds of times at once would get hundreds.

use std::{
    fmt,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Request, Uri, header::HOST, uri::PathAndQuery};
use http_body_util::Full;
use hyper::{
    Response,
    body::{Body as _, Incoming},
    client::conn::http1::{self, SendRequest},
};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::{JoinSet, yield_now},
    time::timeout,
};
use tower_service::Service as _;

/// How long connecting may take, the handshake of TLS included.
pub(super) const TO_CONNECT: Duration = Duration::from_secs(10);

/// How long a connection is kept for the next request. Many servers close theirs after 5 s, and a
/// request that meets that moment is lost.
pub(super) const IDLE: Duration = Duration::from_secs(4);

/// How many connections wait for the next request, at most.
pub(super) const IDLE_CONNECTIONS: usize = 64;

/// How long none of those may come free before requests that wait get some of their own. A server
/// that answers at once thus does with them, however many requests are under way and however slow the
/// machine; one whose answers take their time holds nobody up.
const STALLED: Duration = Duration::from_millis(20);

/// How long a request waits while some do come free, at most: slow calls may hold most of them.
const TURN: Duration = Duration::from_secs(1);

type Sender = SendRequest<Full<Bytes>>;

/// Connections that wait for a request, the one used last at the end, and since when they do.
type Idle = Mutex<Vec<(Sender, Instant)>>;

/// What answers give back when they are over.
#[derive(Debug)]
struct Shared {
    idle: Idle,
    flow: Mutex<Flow>,
}

/// Whether connections come free.
#[derive(Debug)]
struct Flow {
    /// When one did, or when some waiting requests were let through because none had.
    since: Instant,
    /// How many are let through when it has stalled next: twice as many each time.
    next: u32,
    /// How many of them still may.
    left: u32,
}

impl Flow {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            next: 1,
            left: 0,
        }
    }

    /// Whether a waiting request may have a connection of its own.
    fn lets_through(&mut self) -> bool {
        if self.left == 0 && self.since.elapsed() >= STALLED {
            self.left = self.next;
            self.next = self.next.saturating_mul(2);
            self.since = Instant::now();
        }
        let is_let = self.left > 0;
        self.left -= u32::from(is_let);
        is_let
    }
}

/// A turn, over when it is dropped.
#[derive(Debug)]
struct Turn {
    shared: Arc<Shared>,
    /// None when the wait for one was too long.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        *lock(&self.shared.flow) = Flow::new();
    }
}

/// Connections to one server. Dropping it closes them.
pub(super) struct Pool {
    connector: HttpsConnector<HttpConnector>,
    shared: Arc<Shared>,
    turns: Arc<Semaphore>,
    /// What carries bytes for each connection.
    carriers: Mutex<JoinSet<()>>,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum PoolError {
    #[error("no connection within {} s", TO_CONNECT.as_secs())]
    TooSlow,
    #[error(transparent)]
    Connecting(Box<dyn std::error::Error + Send + Sync>),
    #[error(transparent)]
    Http(#[from] hyper::Error),
}

impl Pool {
    pub(super) fn new(connector: HttpsConnector<HttpConnector>) -> Self {
        Self {
            connector,
            shared: Arc::new(Shared {
                idle: Idle::default(),
                flow: Mutex::new(Flow::new()),
            }),
            turns: Arc::new(Semaphore::new(IDLE_CONNECTIONS)),
            carriers: Mutex::default(),
        }
    }

    /// Sends a request, and waits for the head of the answer.
    pub(super) async fn send(&self, request: Request<Bytes>) -> Result<Answer, PoolError> {
        let turn = self.turn().await;
        let uri = request.uri().clone();
        let mut request = in_origin_form(request).map(Full::new);
        loop {
            let (mut sender, is_fresh) = match self.idle().await {
                Some(sender) => (sender, false),
                None => (self.connect(&uri).await?, true),
            };
            match sender.try_send_request(request).await {
                Ok(response) => {
                    return Ok(Answer {
                        response,
                        sender: Some(sender),
                        turn,
                    });
                }
                Err(mut error) => match error.take_message() {
                    // The server has closed it meanwhile, and nothing of the request went out.
                    Some(unsent) if !is_fresh => request = unsent,
                    _ => return Err(error.into_error().into()),
                },
            }
        }
    }

    /// Waits until fewer requests are under way than connections are kept, but not for long.
    async fn turn(&self) -> Turn {
        let began = Instant::now();
        let mut permit = pin!(Arc::clone(&self.turns).acquire_owned());
        let permit = loop {
            if let Ok(permit) = timeout(STALLED, permit.as_mut()).await {
                break permit.ok();
            }
            // When it is this process that was held up, the answers lie there already.
            yield_now().await;
            if began.elapsed() >= TURN || lock(&self.shared.flow).lets_through() {
                break None;
            }
        };
        Turn {
            shared: Arc::clone(&self.shared),
            _permit: permit,
        }
    }

    /// The connection that was used last, if it can be used again.
    async fn idle(&self) -> Option<Sender> {
        loop {
            let (mut sender, since) = lock(&self.shared.idle).pop()?;
            if since.elapsed() < IDLE && sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    async fn connect(&self, uri: &Uri) -> Result<Sender, PoolError> {
        let connected = timeout(TO_CONNECT, self.connector.clone().call(uri.clone())).await;
        let stream = connected
            .map_err(|_| PoolError::TooSlow)?
            .map_err(PoolError::Connecting)?;
        let (sender, connection) = http1::handshake(stream).await?;
        let mut carriers = lock(&self.carriers);
        while carriers.try_join_next().is_some() {}
        carriers.spawn(async move {
            // It ends with the sender, and has told that side of what went wrong.
            connection.await.ok();
        });
        Ok(sender)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("idle", &lock(&self.shared.idle).len())
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request as it is sent to the server itself: a path, and the server's name in a header.
fn in_origin_form(mut request: Request<Bytes>) -> Request<Bytes> {
    let uri = request.uri();
    let usual = if uri.scheme_str() == Some("https") {
        443
    } else {
        80
    };
    let host = uri.host().unwrap_or_default();
    let host = match uri.port_u16().filter(|port| *port != usual) {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let path = uri
        .path_and_query()
        .cloned()
        .unwrap_or_else(|| PathAndQuery::from_static("/"));
    if let Ok(host) = host.parse() {
        request.headers_mut().entry(HOST).or_insert(host);
    }
    *request.uri_mut() = Uri::from(path);
    request
}

/// An answer, and the connection that it comes on.
#[derive(Debug)]
pub(in crate::upstream) struct Answer {
    response: Response<Incoming>,
    /// Given back once the body has been read to its end; a body that is not closes the connection.
    sender: Option<Sender>,
    /// Over once the connection has been given back, so that whoever is next finds it.
    turn: Turn,
}

impl Answer {
    pub(super) fn response(&self) -> &Response<Incoming> {
        &self.response
    }

    pub(super) fn body(&mut self) -> &mut Incoming {
        self.response.body_mut()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let sender = self.sender.take();
        if let Some(sender) = sender.filter(|_| self.response.body().is_end_stream()) {
            let mut idle = lock(&self.turn.shared.idle);
            if idle.len() < IDLE_CONNECTIONS {
                idle.push((sender, Instant::now()));
            }
        }
    }
}
