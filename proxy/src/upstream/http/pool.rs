//! Connections to one server, each of which carries one request after the other.
//!
//! hyper's own client opens a connection whenever none is free at that very moment, which is often
//! while one is just being put back. A host that calls once at a time would get a new connection
//! every few dozen calls, and one that calls hundreds of times at once would get hundreds.

use std::{
    fmt,
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
use tokio::{sync::Semaphore, task::JoinSet, time::timeout};
use tower_service::Service as _;

/// How long connecting may take, the handshake of TLS included.
pub(super) const TO_CONNECT: Duration = Duration::from_secs(10);

/// How long a connection is kept for the next request. Many servers close theirs after 5 s, and a
/// request that meets that moment is lost.
pub(super) const IDLE: Duration = Duration::from_secs(4);

/// How many connections wait for the next request, at most.
pub(super) const IDLE_CONNECTIONS: usize = 64;

/// How long a request waits for one of those when as many are under way. A server that answers at
/// once then does with them; one whose answers take their time holds nobody up for longer.
const TURN: Duration = Duration::from_millis(20);

type Sender = SendRequest<Full<Bytes>>;

/// Connections that wait for a request, the one used last at the end, and since when they do.
type Idle = Mutex<Vec<(Sender, Instant)>>;

/// Connections to one server. Dropping it closes them.
pub(super) struct Pool {
    connector: HttpsConnector<HttpConnector>,
    idle: Arc<Idle>,
    turns: Semaphore,
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
            idle: Arc::default(),
            turns: Semaphore::new(IDLE_CONNECTIONS),
            carriers: Mutex::default(),
        }
    }

    /// Sends a request, and waits for the head of the answer.
    pub(super) async fn send(&self, request: Request<Bytes>) -> Result<Answer, PoolError> {
        let turn = timeout(TURN, self.turns.acquire()).await;
        let uri = request.uri().clone();
        let mut request = in_origin_form(request).map(Full::new);
        loop {
            let (mut sender, is_fresh) = match self.idle().await {
                Some(sender) => (sender, false),
                None => (self.connect(&uri).await?, true),
            };
            match sender.try_send_request(request).await {
                Ok(response) => {
                    drop(turn);
                    return Ok(Answer {
                        response,
                        lease: Some((sender, Arc::clone(&self.idle))),
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

    /// The connection that was used last, if it can be used again.
    async fn idle(&self) -> Option<Sender> {
        loop {
            let (mut sender, since) = lock(&self.idle).pop()?;
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
            .field("idle", &lock(&self.idle).len())
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
    lease: Option<(Sender, Arc<Idle>)>,
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
        if let Some((sender, idle)) = self
            .lease
            .take()
            .filter(|_| self.response.body().is_end_stream())
        {
            let mut idle = lock(&idle);
            if idle.len() < IDLE_CONNECTIONS {
                idle.push((sender, Instant::now()));
            }
        }
    }
}
