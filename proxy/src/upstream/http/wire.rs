//! The HTTP client.
//!
//! Straight to the server, requests go through hyper's own client: what a more general one does
//! for each of them costs a third of a small call. Behind an HTTP proxy, which only the
//! environment can ask for, that does not matter, and the general one knows all kinds of proxies.

use std::{
    env,
    error::Error,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, Uri, response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::{
        legacy::{Client, connect::HttpConnector},
        proxy::matcher::Matcher,
    },
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use tokio::time::timeout;
use tower_service::Service;

/// How long connecting may take, the handshake of TLS included.
const TO_CONNECT: Duration = Duration::from_secs(10);

/// How long a connection is kept for the next request. Many servers close theirs after 5 s, and a
/// request that meets that moment is lost.
const IDLE: Duration = Duration::from_secs(4);

/// How many connections wait for the next request, at most.
const IDLE_CONNECTIONS: usize = 64;

/// The variable that names a file with more certificates to trust.
const CERTIFICATES: &str = "SSL_CERT_FILE";

/// What keeps the client from being set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("reading the certificates that {CERTIFICATES} names")]
    Certificates(#[source] io::Error),
    #[error("setting up TLS")]
    Tls(#[from] rustls::Error),
    #[error("setting up the HTTP client")]
    Client(#[source] reqwest::Error),
}

/// Connections to one server, which are used again and again.
pub(super) enum Wire {
    Straight(Box<Client<Timed<HttpsConnector<HttpConnector>>, Full<Bytes>>>),
    Proxied(reqwest::Client),
}

impl Wire {
    /// A client for the server at `uri`. Servers on this machine are never reached through a proxy.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub(super) fn to(uri: &Uri, is_on_this_machine: bool) -> Result<Self, WireError> {
        let tls = tls(uri)?;
        if !is_on_this_machine && Matcher::from_env().intercept(uri).is_some() {
            return proxied(tls).map(Self::Proxied).map_err(WireError::Client);
        }
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .build(Timed(connector));
        Ok(Self::Straight(Box::new(client)))
    }

    /// Sends a request, and waits for the head of the answer.
    ///
    /// # Errors
    /// Why there is none, on one line.
    pub(super) async fn send(&self, request: Request<Bytes>) -> Result<Response, String> {
        match self {
            Self::Straight(client) => {
                let sent = client.request(request.map(Full::new)).await;
                let (head, body) = sent.map_err(|error| cause(&error))?.into_parts();
                Ok(Response {
                    head,
                    body: Body::Straight(body),
                })
            }
            Self::Proxied(client) => {
                let request = reqwest::Request::try_from(request).map_err(|error| cause(&error))?;
                let sent = client.execute(request).await;
                let response = http::Response::from(sent.map_err(|error| cause(&error))?);
                let (head, body) = response.into_parts();
                Ok(Response {
                    head,
                    body: Body::Proxied(body),
                })
            }
        }
    }
}

/// An answer whose body is still to be read.
#[derive(Debug)]
pub(in crate::upstream) struct Response {
    head: response::Parts,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Straight(Incoming),
    Proxied(reqwest::Body),
}

impl Response {
    pub(in crate::upstream) fn status(&self) -> StatusCode {
        self.head.status
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// How long the body is, if the server says so.
    pub(super) fn content_length(&self) -> Option<u64> {
        match &self.body {
            Body::Straight(body) => body.size_hint().exact(),
            Body::Proxied(body) => body.size_hint().exact(),
        }
    }

    /// The next piece of the body; nothing at its end. Cancel safe.
    ///
    /// # Errors
    /// Why it broke off, on one line.
    pub(in crate::upstream) async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            let frame = match &mut self.body {
                Body::Straight(body) => body
                    .frame()
                    .await
                    .map(|frame| frame.map_err(|error| cause(&error))),
                Body::Proxied(body) => body
                    .frame()
                    .await
                    .map(|frame| frame.map_err(|error| cause(&error))),
            };
            match frame.transpose()? {
                None => return Ok(None),
                // Trailers say nothing that matters here.
                Some(frame) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }
}

/// A connector with a time limit on all that it does.
#[derive(Clone, Debug)]
pub(super) struct Timed<C>(C);

/// The connection did not come about in time.
#[derive(Debug, thiserror::Error)]
#[error("no connection within {} s", TO_CONNECT.as_secs())]
struct TooSlow;

type Failure = Box<dyn Error + Send + Sync>;

impl<C> Service<Uri> for Timed<C>
where
    C: Service<Uri, Error = Failure>,
    C::Future: Send + 'static,
    C::Response: Send,
{
    type Response = C::Response;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<C::Response, Failure>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connected = timeout(TO_CONNECT, self.0.call(uri));
        Box::pin(async move { connected.await.unwrap_or_else(|_| Err(TooSlow.into())) })
    }
}

/// Whom to trust: the public roots in addition to the system's own, which may be missing (in
/// containers) or be replaced by the one file that a variable names.
fn tls(uri: &Uri) -> Result<ClientConfig, WireError> {
    let mut roots = RootCertStore::empty();
    // Reading a few hundred certificates takes time and memory.
    if uri.scheme_str() == Some("https") {
        if let Some(file) = env::var_os(CERTIFICATES) {
            std::fs::File::open(file).map_err(WireError::Certificates)?;
        }
        let public = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned();
        roots.add_parsable_certificates(public);
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

fn proxied(tls: ClientConfig) -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(TO_CONNECT)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .tcp_nodelay(true)
        .referer(false)
        .redirect(reqwest::redirect::Policy::none())
        .build()
}

/// Why an exchange failed, without what may hold the URL, and so a secret: every error but the
/// last ones in its chain is only about whose error it is.
fn cause(error: &(dyn Error + 'static)) -> String {
    let mut causes = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        next = error.source();
        let is_general =
            error.is::<reqwest::Error>() || error.is::<hyper_util::client::legacy::Error>();
        if !is_general || (next.is_none() && !error.is::<reqwest::Error>()) {
            causes.push(error.to_string().replace(['\n', '\r'], " "));
        }
    }
    causes.dedup();
    if causes.is_empty() {
        "the HTTP client does not say why".into()
    } else {
        causes.join(": ")
    }
}
