//! The HTTP client.
//!
//! Straight to the server, requests go over connections of [`Pool`]: what a more general client does
//! for each of them costs a third of a small call. Behind an HTTP proxy, which only the
//! environment can ask for, that does not matter, and the general one knows all kinds of proxies.

use std::{env, error::Error, io, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, Uri};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::{legacy::connect::HttpConnector, proxy::matcher::Matcher};
use rustls::{ClientConfig, RootCertStore, crypto::ring};

use super::pool::{Answer, IDLE, IDLE_CONNECTIONS, Pool, TO_CONNECT};

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
    Straight(Box<Pool>),
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
        Ok(Self::Straight(Box::new(Pool::new(connector))))
    }

    /// Sends a request, and waits for the head of the answer.
    ///
    /// # Errors
    /// Why there is none, on one line.
    pub(super) async fn send(&self, request: Request<Bytes>) -> Result<Response, String> {
        match self {
            Self::Straight(pool) => {
                let answer = pool.send(request).await.map_err(|error| cause(&error))?;
                Ok(Response::Straight(Box::new(answer)))
            }
            Self::Proxied(client) => {
                let request = reqwest::Request::try_from(request).map_err(|error| cause(&error))?;
                let sent = client.execute(request).await;
                let response = http::Response::from(sent.map_err(|error| cause(&error))?);
                Ok(Response::Proxied(Box::new(response)))
            }
        }
    }
}

/// An answer whose body is still to be read.
#[derive(Debug)]
pub(in crate::upstream) enum Response {
    Straight(Box<Answer>),
    Proxied(Box<http::Response<reqwest::Body>>),
}

impl Response {
    pub(in crate::upstream) fn status(&self) -> StatusCode {
        match self {
            Self::Straight(answer) => answer.response().status(),
            Self::Proxied(response) => response.status(),
        }
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        match self {
            Self::Straight(answer) => answer.response().headers(),
            Self::Proxied(response) => response.headers(),
        }
    }

    /// How long the body is, if the server says so.
    pub(super) fn content_length(&self) -> Option<u64> {
        match self {
            Self::Straight(answer) => answer.response().body().size_hint().exact(),
            Self::Proxied(response) => response.body().size_hint().exact(),
        }
    }

    /// The next piece of the body; nothing at its end. Cancel safe.
    ///
    /// # Errors
    /// Why it broke off, on one line.
    pub(in crate::upstream) async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            let frame = match self {
                Self::Straight(answer) => answer
                    .body()
                    .frame()
                    .await
                    .map(|frame| frame.map_err(|error| cause(&error))),
                Self::Proxied(response) => response
                    .body_mut()
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
        if !error.is::<reqwest::Error>() {
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
