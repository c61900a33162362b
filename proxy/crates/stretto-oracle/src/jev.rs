//! The service's client.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Certificate, Client, StatusCode, Url, redirect};

use crate::{ApiKey, AskError, Request, Response, Settings};

/// The longest that the service may make us wait with `Retry-After`.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(30);

/// How much of a failed response is quoted, in characters.
const QUOTED: usize = 500;

/// How many bytes of a body are read. Answers take a few hundred.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// How long the service may take, and how often it is asked again.
///
/// It is asked again when the status is 429, 529, 500, 502, 503 or 504, when no connection can
/// be made, and when an attempt takes too long. Every other failure is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long one attempt may take in all.
    pub attempt: Duration,
    /// The wait before each further attempt, so there is one more attempt than waits. A longer
    /// `Retry-After` of up to 30 s counts in its place.
    pub waits: Vec<Duration>,
    /// Counted from the first attempt, the latest time at which another may start.
    pub start_by: Option<Duration>,
    /// Counted from the first attempt, when the one in progress is given up.
    pub end_by: Option<Duration>,
}

impl Patience {
    /// For a program with time: five attempts of 30 s each, with waits of 1, 2, 4 and 8 s.
    pub fn offline() -> Self {
        Self {
            attempt: Duration::from_secs(30),
            waits: [1, 2, 4, 8].map(Duration::from_secs).into(),
            start_by: None,
            end_by: None,
        }
    }

    /// For a program that somebody waits for: as [`offline`](Self::offline), but no attempt
    /// starts more than 20 s after the first, and none goes on for more than 30 s after it.
    pub fn live() -> Self {
        Self {
            start_by: Some(Duration::from_secs(20)),
            end_by: Some(Duration::from_secs(30)),
            ..Self::offline()
        }
    }

    /// How long an attempt may take that starts at `at`.
    fn allowed(&self, at: Duration) -> Duration {
        let left = self.end_by.map(|end| end.saturating_sub(at));
        left.map_or(self.attempt, |left| left.min(self.attempt))
    }

    /// The wait before the next attempt, `done` of them having been made, or nothing when there
    /// is to be no other.
    fn wait(&self, done: usize, at: Duration, retry_after: Option<Duration>) -> Option<Duration> {
        let wait = *self.waits.get(done.checked_sub(1)?)?;
        let asked = retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
        let wait = wait.max(asked);
        let is_in_time = self.start_by.is_none_or(|latest| at + wait <= latest);
        is_in_time.then_some(wait)
    }
}

/// The service, as one asker sees it.
///
/// Clones share their connections.
#[derive(Clone)]
pub struct Jev {
    client: Client,
    url: Url,
    authorization: Option<HeaderValue>,
    /// To be taken out of what the service says.
    key: Option<ApiKey>,
    patience: Patience,
}

impl Jev {
    /// A client for the service that `settings` name. It connects when it is first asked.
    ///
    /// Redirects are not followed: the state would go where nobody wanted it to go. Proxies that
    /// the environment names are used, unless the service is on this machine.
    ///
    /// # Errors
    ///
    /// The base URL or the file of certificates cannot be used.
    pub fn new(settings: &Settings, patience: Patience) -> Result<Self, ClientError> {
        let url = address(&settings.base_url).ok_or(ClientError::BaseUrl)?;
        let mut client = Client::builder()
            .user_agent(concat!("stretto/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .referer(false);
        if is_loopback(&url) {
            client = client.no_proxy();
        }
        client = if url.scheme() == "https" {
            client.tls_certs_merge(trusted(settings.certificates.as_deref())?)
        } else {
            // Reading a few hundred certificates takes time and memory.
            client.tls_certs_only([])
        };
        // Somebody else in the process may have chosen one, which is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
        let authorization = settings.api_key.as_ref().map(|key| {
            let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose()))
                .expect("a key holds only what a header may");
            value.set_sensitive(true);
            value
        });
        Ok(Self {
            client: client
                .build()
                .map_err(|error| ClientError::Build(error.without_url()))?,
            url,
            authorization,
            key: settings.api_key.clone(),
            patience,
        })
    }

    /// Whether it can be asked at all: whether there is a key.
    pub fn has_key(&self) -> bool {
        self.authorization.is_some()
    }

    /// Asks, again and again as far as the [`Patience`] goes.
    ///
    /// This reads no cache and writes none; [`Oracle::ask`](crate::Oracle::ask) does. It has to
    /// run on a tokio runtime with time and I/O.
    ///
    /// # Errors
    ///
    /// There is no key, or no answer that can be read.
    pub async fn ask(&self, request: &Request) -> Result<Response, AskError> {
        let authorization = self.authorization.clone().ok_or(AskError::NoKey)?;
        let headers = HeaderMap::from_iter([
            (AUTHORIZATION, authorization),
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        ]);
        let body = request.canonical();
        let first = Instant::now();
        let mut attempts = 0_u32;
        loop {
            attempts += 1;
            let allowed = self.patience.allowed(first.elapsed());
            let failure = match self.attempt(&headers, &body, allowed).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            let again = failure
                .may_pass
                .then_some(attempts as usize)
                .and_then(|done| {
                    self.patience
                        .wait(done, first.elapsed(), failure.retry_after)
                });
            let Some(wait) = again else {
                return Err(failure.into_error(attempts));
            };
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        allowed: Duration,
    ) -> Result<Response, Failure> {
        let sent = self
            .client
            .post(self.url.clone())
            .headers(headers.clone())
            .timeout(allowed)
            .body(body.to_owned());
        let mut answer = sent.send().await.map_err(Failure::transport)?;
        let status = answer.status();
        let retry_after = retry_after(answer.headers());
        let mut text = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(Failure::transport)? {
            text.extend_from_slice(&chunk);
            if text.len() > MOST_BYTES {
                let what = format!("its answer is longer than {MOST_BYTES} bytes");
                return Err(Failure::last(What::Transport(what)));
            }
        }
        if status.is_success() {
            return Response::parse(&text).map_err(|error| Failure::last(What::Decoding(error)));
        }
        Err(Failure {
            what: What::Status(status, self.quotable(&text)),
            may_pass: may_pass(status),
            retry_after,
        })
    }

    /// The beginning of a failed response on one line, without the key, which a server that
    /// echoes requests would have in it.
    fn quotable(&self, body: &[u8]) -> String {
        let mut text = String::from_utf8_lossy(body).into_owned();
        if let Some(key) = &self.key {
            text = text.replace(key.expose(), "<redacted>");
        }
        let words: Vec<&str> = text
            .split(|c: char| c.is_whitespace() || c.is_control())
            .filter(|word| !word.is_empty())
            .collect();
        words.join(" ").chars().take(QUOTED).collect()
    }
}

impl fmt::Debug for Jev {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jev")
            .field("service", &self.url.origin().ascii_serialization())
            .field("has_key", &self.has_key())
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// Where requests go, or nothing when the base URL is none.
fn address(base_url: &str) -> Option<Url> {
    let mut url: Url = base_url.parse().ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    // The key stands for us; credentials in the URL would send a second authorization.
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    url.path_segments_mut()
        .ok()?
        .pop_if_empty()
        .extend(["v1", "systemone"]);
    Some(url)
}

/// An attempt that brought no answer.
struct Failure {
    what: What,
    /// Whether another attempt may do better.
    may_pass: bool,
    retry_after: Option<Duration>,
}

enum What {
    Status(StatusCode, String),
    Transport(String),
    Decoding(serde_json::Error),
}

impl Failure {
    fn last(what: What) -> Self {
        Self {
            what,
            may_pass: false,
            retry_after: None,
        }
    }

    fn transport(error: reqwest::Error) -> Self {
        // A URL may hold credentials.
        let error = error.without_url();
        let may_pass = error.is_timeout() || (error.is_connect() && !is_tls(&error));
        let what = if error.is_timeout() {
            "no answer in time".to_owned()
        } else {
            causes(&error)
        };
        Self {
            what: What::Transport(what),
            may_pass,
            retry_after: None,
        }
    }

    fn into_error(self, attempts: u32) -> AskError {
        match self.what {
            What::Status(status, body) => AskError::Status {
                status: status.as_u16(),
                attempts,
                body,
            },
            What::Transport(what) => AskError::Transport { what, attempts },
            What::Decoding(error) => AskError::Decoding(error),
        }
    }
}

/// Whether a status is one that the same request may get past.
fn may_pass(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 500 | 502 | 503 | 504 | 529)
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds))
}

/// Whether a connection was made that could not be trusted, which no further attempt changes.
/// The TLS library reports that as data that makes no sense.
fn is_tls(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        // One such error may be wrapped in another, which then shows the inner one's causes
        // as its own and leaves it out.
        let mut wrapped = error.downcast_ref::<io::Error>();
        while let Some(error) = wrapped {
            if error.kind() == io::ErrorKind::InvalidData {
                return true;
            }
            wrapped = error.get_ref().and_then(|inner| inner.downcast_ref());
        }
        cause = error.source();
    }
    false
}

/// An error's causes on one line. Its own text says only that a request was sent.
fn causes(error: &reqwest::Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if texts.last() != Some(&text) {
            texts.push(text);
        }
        cause = error.source();
    }
    if texts.is_empty() {
        texts.push(error.to_string());
    }
    texts.join(": ")
}

fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let address = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    })
}

/// What is trusted besides the system's own roots: the usual public ones, and those in a file.
/// The system may have none, as in a container; and on some systems the TLS library takes a file
/// that `SSL_CERT_FILE` names for all that may be trusted.
fn trusted(file: Option<&Path>) -> Result<Vec<Certificate>, ClientError> {
    let mut trusted = match file {
        Some(path) => certificates(path)?,
        None => Vec::new(),
    };
    for root in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        trusted.push(Certificate::from_der(root).map_err(ClientError::Build)?);
    }
    Ok(trusted)
}

fn certificates(path: &Path) -> Result<Vec<Certificate>, ClientError> {
    let path = || path.to_owned();
    let text = std::fs::read(path()).map_err(|source| ClientError::Certificates {
        path: path(),
        source,
    })?;
    match Certificate::from_pem_bundle(&text) {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(ClientError::NoCertificates { path: path() }),
    }
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The base URL is none. It is not shown: it may hold a password.
    #[error("the variable TYPESAFE_BASE_URL is not an http or https URL")]
    BaseUrl,
    /// The file of certificates cannot be read.
    #[error("reading the certificates that SSL_CERT_FILE names, {}", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file holds no certificates.
    #[error("the file {} that SSL_CERT_FILE names holds no PEM certificates", path.display())]
    NoCertificates {
        /// The file.
        path: PathBuf,
    },
    /// The HTTP library refused.
    #[error("setting up the client of the model's service")]
    Build(#[source] reqwest::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn offline_there_are_five_attempts_with_doubling_waits() {
        let patience = Patience::offline();
        let waits: Vec<_> = (1..=5)
            .map(|done| patience.wait(done, seconds(999), None))
            .collect();
        assert_eq!(
            waits,
            [
                Some(seconds(1)),
                Some(seconds(2)),
                Some(seconds(4)),
                Some(seconds(8)),
                None
            ]
        );
        assert_eq!(patience.allowed(seconds(999)), seconds(30));
    }

    #[test]
    fn live_no_attempt_starts_after_20_s_and_none_goes_on_after_30_s() {
        let patience = Patience::live();
        assert_eq!(patience.wait(2, seconds(18), None), Some(seconds(2)));
        assert_eq!(patience.wait(2, seconds(19), None), None);
        assert_eq!(patience.allowed(seconds(0)), seconds(30));
        assert_eq!(patience.allowed(seconds(18)), seconds(12));
        assert_eq!(patience.allowed(seconds(31)), seconds(0));
    }

    #[test]
    fn a_longer_retry_after_counts_up_to_30_s() {
        let patience = Patience::offline();
        let wait = |after| patience.wait(3, seconds(0), Some(seconds(after)));
        assert_eq!(wait(3), Some(seconds(4)));
        assert_eq!(wait(7), Some(seconds(7)));
        assert_eq!(wait(3600), Some(seconds(30)));
        assert_eq!(
            Patience::live().wait(1, seconds(5), Some(seconds(16))),
            None
        );
    }

    #[test]
    fn exactly_the_statuses_that_may_pass_are_asked_again() {
        let again: Vec<u16> = (100..1000)
            .filter(|status| may_pass(StatusCode::from_u16(*status).unwrap()))
            .collect();
        assert_eq!(again, [429, 500, 502, 503, 504, 529]);
    }

    #[test]
    fn loopback_is_told_by_name_and_by_number() {
        let is = |url: &str| is_loopback(&url.parse().unwrap());
        for near in [
            "http://localhost:1",
            "http://127.0.0.1",
            "http://[::1]:9/x",
            "http://127.9.9.9",
        ] {
            assert!(is(near), "{near}");
        }
        for far in [
            "https://api.typesafe.ai",
            "http://localhost.example",
            "http://10.0.0.1",
        ] {
            assert!(!is(far), "{far}");
        }
    }
}
