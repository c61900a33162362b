//! Where the server is, and what goes with every request to it.

use std::{env, error::Error as _, fmt, io, net::IpAddr, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use reqwest::{
    Body, Certificate, Client, Method, Request, Response, StatusCode, Url,
    header::{
        ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, InvalidHeaderName,
    },
    redirect::{Action, Attempt, Policy},
};

/// How long connecting may take, the handshake of TLS included.
const TO_CONNECT: Duration = Duration::from_secs(10);

/// How long a connection is kept for the next request. Many servers close theirs after 5 s, and a
/// request that meets that moment is lost.
const IDLE: Duration = Duration::from_secs(4);

/// How many connections wait for the next request, at most.
const IDLE_CONNECTIONS: usize = 64;

/// How many redirects are followed.
const REDIRECTS: usize = 5;

/// The variable that names a file with more certificates to trust.
const CERTIFICATES: &str = "SSL_CERT_FILE";

/// The headers that are the transport's own.
const OWN_HEADERS: [&str; 11] = [
    "accept",
    "content-type",
    "content-length",
    "transfer-encoding",
    "connection",
    "host",
    "mcp-session-id",
    "mcp-protocol-version",
    "last-event-id",
    "mcp-method",
    "mcp-name",
];

/// So do these begin.
const OWN_PREFIX: &str = "mcp-param-";

const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// A server's address, and the headers that go with every request to it.
///
/// It holds secrets, which its `Debug` does not show.
pub(crate) struct Endpoint {
    client: Client,
    url: Url,
    headers: HeaderMap,
}

/// What is wrong with `--upstream` or an `--upstream-header`. No value is ever part of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndpointError {
    #[error("--upstream takes an absolute http or https URL, such as https://example.com/mcp")]
    Url,
    #[error("--upstream-header takes NAME=VAR: a header, and the variable that holds its value")]
    Form,
    #[error("the variable {variable} is not set; it holds the value of the header {header}")]
    Unset { header: String, variable: String },
    #[error("the variable {variable} is not text; it holds the value of the header {header}")]
    NotText { header: String, variable: String },
    #[error("{header:?} is no name of an HTTP header")]
    Name {
        header: String,
        source: InvalidHeaderName,
    },
    #[error("the header {0} is set by the proxy itself")]
    Own(String),
    #[error(
        "the variable {variable} holds what HTTP does not allow as the value of the header {header}"
    )]
    Value { header: String, variable: String },
    #[error("reading the certificates that {CERTIFICATES} names")]
    Certificates(#[source] io::Error),
    #[error("setting up the HTTP client")]
    Client(#[source] reqwest::Error),
}

impl Endpoint {
    /// The endpoint at `url`, with `headers` as `NAME=VAR`: the values are read from the environment now.
    ///
    /// Nothing is sent.
    ///
    /// # Errors
    /// The URL or a header cannot be used, or a value is not there.
    pub(crate) fn new(url: &str, headers: &[String]) -> Result<Self, EndpointError> {
        let mut url = Url::parse(url.trim()).map_err(|_| EndpointError::Url)?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(EndpointError::Url);
        }
        let mut all = HeaderMap::new();
        for header in headers {
            let (name, value) = header_from_environment(header)?;
            all.append(name, value);
        }
        if let Some(credentials) = take_credentials(&mut url)
            && !all.contains_key(AUTHORIZATION)
        {
            all.insert(AUTHORIZATION, credentials);
        }
        // A fragment is never sent.
        url.set_fragment(None);
        Ok(Self {
            client: client(&url)?,
            url,
            headers: all,
        })
    }

    /// POSTs `body`, and waits for the head of the answer.
    ///
    /// # Errors
    /// Why there is none, on one line.
    pub(super) async fn post(&self, body: Bytes, headers: HeaderMap) -> Result<Response, String> {
        let mut request = self.request(Method::POST, headers);
        request.headers_mut().insert(CONTENT_TYPE, JSON);
        request.headers_mut().insert(ACCEPT, BOTH);
        *request.body_mut() = Some(Body::from(body));
        self.send(request).await
    }

    /// Opens an event stream.
    ///
    /// # Errors
    /// As [`Endpoint::post`].
    pub(super) async fn get(&self, headers: HeaderMap) -> Result<Response, String> {
        let mut request = self.request(Method::GET, headers);
        request.headers_mut().insert(ACCEPT, EVENTS);
        self.send(request).await
    }

    /// Ends a session.
    ///
    /// # Errors
    /// As [`Endpoint::post`].
    pub(super) async fn delete(&self, headers: HeaderMap) -> Result<Response, String> {
        self.send(self.request(Method::DELETE, headers)).await
    }

    fn request(&self, method: Method, headers: HeaderMap) -> Request {
        let mut request = Request::new(method, self.url.clone());
        *request.headers_mut() = headers;
        for (name, value) in &self.headers {
            request.headers_mut().append(name, value.clone());
        }
        request
    }

    async fn send(&self, request: Request) -> Result<Response, String> {
        self.client
            .execute(request)
            .await
            .map_err(|error| cause(&error))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

/// Why an exchange failed, without the URL, which may hold a secret, and without what every such
/// error begins with.
pub(in crate::upstream) fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() && error.is_connect() {
        return format!("no connection within {} s", TO_CONNECT.as_secs());
    }
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(error) = next {
        causes.push(error.to_string().replace(['\n', '\r'], " "));
        next = error.source();
    }
    // The first says whose error it is, not what happened.
    if causes.len() > 1 {
        causes.remove(0);
    }
    causes.dedup();
    if causes.is_empty() {
        "the HTTP client does not say why".into()
    } else {
        causes.join(": ")
    }
}

/// A status as people know it.
pub(in crate::upstream) fn shown_status(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("HTTP {} {reason}", status.as_u16()),
        None => format!("HTTP {}", status.as_u16()),
    }
}

fn header_from_environment(option: &str) -> Result<(HeaderName, HeaderValue), EndpointError> {
    let (header, variable) = option.split_once('=').ok_or(EndpointError::Form)?;
    let (header, variable) = (header.to_owned(), variable.to_owned());
    let name = match HeaderName::try_from(&header) {
        Ok(name) => name,
        Err(source) => return Err(EndpointError::Name { header, source }),
    };
    if OWN_HEADERS.contains(&name.as_str()) || name.as_str().starts_with(OWN_PREFIX) {
        return Err(EndpointError::Own(header));
    }
    // Neither may stand in the name of a variable, and asking for such a one is an error of its own.
    if variable.is_empty() || variable.contains(['=', '\0']) {
        return Err(EndpointError::Unset { header, variable });
    }
    let value = match env::var(&variable) {
        Ok(value) => value,
        Err(env::VarError::NotPresent) => return Err(EndpointError::Unset { header, variable }),
        Err(env::VarError::NotUnicode(_)) => {
            return Err(EndpointError::NotText { header, variable });
        }
    };
    match HeaderValue::try_from(value) {
        Ok(mut value) => {
            value.set_sensitive(true);
            Ok((name, value))
        }
        Err(_) => Err(EndpointError::Value { header, variable }),
    }
}

/// The URL's user and password as Basic authorization. The URL has none afterwards.
fn take_credentials(url: &mut Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut credentials = percent_decoded(url.username());
    credentials.push(b':');
    credentials.extend(percent_decoded(url.password().unwrap_or_default()));
    // Neither fails for a URL that has a host.
    url.set_username("").ok();
    url.set_password(None).ok();
    let mut value =
        HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(credentials))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| byte == b'%');
        let value = escaped
            .and_then(|digits| str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(value.unwrap_or(byte));
        rest = if value.is_some() { &after[2..] } else { after };
    }
    decoded
}

fn client(url: &Url) -> Result<Client, EndpointError> {
    let mut builder = Client::builder()
        .connect_timeout(TO_CONNECT)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .tcp_nodelay(true)
        .referer(false)
        .redirect(Policy::custom(followed));
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder = if url.scheme() == "https" {
        with_certificates(builder)?
    } else {
        // Reading a few hundred certificates takes time and memory.
        builder.tls_certs_only([])
    };
    // Somebody else in the process may have chosen one, which is as good.
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    builder.build().map_err(EndpointError::Client)
}

/// The public roots in addition to the system's own, which may be missing (in containers) or be
/// replaced by the one file that a variable names.
fn with_certificates(
    builder: reqwest::ClientBuilder,
) -> Result<reqwest::ClientBuilder, EndpointError> {
    if let Some(file) = env::var_os(CERTIFICATES) {
        std::fs::File::open(file).map_err(EndpointError::Certificates)?;
    }
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS
        .iter()
        .map(|root| Certificate::from_der(root))
        .collect::<Result<Vec<_>, _>>()
        .map_err(EndpointError::Client)?;
    Ok(builder.tls_certs_merge(roots))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

/// Only redirects that repeat the request, and only within the origin: what goes with every
/// request is for that origin alone.
fn followed(attempt: Attempt<'_>) -> Action {
    let repeats = matches!(
        attempt.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let previous = attempt.previous();
    let within_origin = previous
        .first()
        .is_some_and(|first| first.origin() == attempt.url().origin());
    if repeats && within_origin && previous.len() <= REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str) -> Endpoint {
        Endpoint::new(url, &[]).expect("an endpoint")
    }

    #[test]
    fn an_endpoint_is_an_absolute_http_url() {
        for wrong in [
            "",
            "example.com/mcp",
            "/mcp",
            "ftp://h/",
            "http://",
            "file:///etc",
            "mailto:a@b",
        ] {
            assert!(
                matches!(Endpoint::new(wrong, &[]), Err(EndpointError::Url)),
                "{wrong}"
            );
        }
        assert_eq!(
            endpoint("HTTPS://Example.com/mcp?a=1#x").url.as_str(),
            "https://example.com/mcp?a=1"
        );
    }

    #[test]
    fn a_user_and_a_password_become_a_header() {
        let endpoint = endpoint("http://me%40home:p%3Ass%zz@127.0.0.1:1/mcp");
        assert_eq!(endpoint.url.as_str(), "http://127.0.0.1:1/mcp");
        let value = endpoint.headers[AUTHORIZATION].to_str().expect("text");
        let credentials = BASE64_STANDARD.decode(value.strip_prefix("Basic ").expect("basic"));
        assert_eq!(credentials.expect("base64"), b"me@home:p:ss%zz");
        assert!(!format!("{endpoint:?}").contains("Basic"));
    }

    #[test]
    fn a_header_is_checked_before_its_variable() {
        let refused = |option: &str| {
            let error = Endpoint::new("http://h/", &[option.to_owned()]).unwrap_err();
            error.to_string()
        };
        assert!(refused("Authorization").contains("NAME=VAR"));
        assert!(refused("A b=PATH").contains("\"A b\""));
        assert!(refused("=PATH").contains("no name"));
        for own in [
            "Accept",
            "HOST",
            "Mcp-Session-Id",
            "mcp-param-x",
            "Mcp-Name",
        ] {
            assert!(refused(&format!("{own}=PATH")).contains(own), "{own}");
        }
        let unset = refused("X-Key=STRETTO_TEST_NOBODY_SETS_THIS");
        assert!(unset.contains("X-Key") && unset.contains("STRETTO_TEST_NOBODY_SETS_THIS"));
        assert!(refused("X-Key=").contains("not set"));
    }

    #[test]
    fn the_same_header_twice_has_both_values() {
        let twice = [
            "X-A=CARGO_PKG_NAME".to_owned(),
            "x-a=CARGO_PKG_VERSION".to_owned(),
        ];
        let endpoint = Endpoint::new("http://h/", &twice).expect("an endpoint");
        let request = endpoint.request(Method::GET, HeaderMap::new());
        let values: Vec<_> = request.headers().get_all("x-a").iter().collect();
        assert_eq!(values, ["stretto-proxy", env!("CARGO_PKG_VERSION")]);
    }

    #[test]
    fn loopback_has_many_names() {
        for url in [
            "http://localhost/",
            "http://LOCALHOST:1/",
            "http://127.1.2.3/",
            "http://[::1]:7/",
        ] {
            assert!(is_loopback(&Url::parse(url).expect("a URL")), "{url}");
        }
        for url in [
            "http://example.com/",
            "http://10.0.0.1/",
            "http://localhost.example.com/",
        ] {
            assert!(!is_loopback(&Url::parse(url).expect("a URL")), "{url}");
        }
    }
}
