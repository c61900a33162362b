//! Where the server is, and what goes with every request to it.

use std::{env, fmt, net::IpAddr};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{
    Method, StatusCode, Uri,
    header::{
        ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, InvalidHeaderName,
        LOCATION,
    },
};
use reqwest::Url;

use super::wire::{Response, Wire, WireError};

/// How many redirects are followed.
const REDIRECTS: usize = 5;

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
    wire: Wire,
    url: Url,
    uri: Uri,
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
    #[error(transparent)]
    Wire(#[from] WireError),
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
        let uri = Uri::try_from(url.as_str()).map_err(|_| EndpointError::Url)?;
        Ok(Self {
            wire: Wire::to(&uri, is_loopback(&url))?,
            url,
            uri,
            headers: all,
        })
    }

    /// POSTs `body`, and waits for the head of the answer.
    ///
    /// # Errors
    /// Why there is none, on one line.
    pub(super) async fn post(
        &self,
        body: Bytes,
        mut headers: HeaderMap,
    ) -> Result<Response, String> {
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, BOTH);
        self.send(Method::POST, headers, body).await
    }

    /// Opens an event stream.
    ///
    /// # Errors
    /// As [`Endpoint::post`].
    pub(super) async fn get(&self, mut headers: HeaderMap) -> Result<Response, String> {
        headers.insert(ACCEPT, EVENTS);
        self.send(Method::GET, headers, Bytes::new()).await
    }

    /// Ends a session.
    ///
    /// # Errors
    /// As [`Endpoint::post`].
    pub(super) async fn delete(&self, headers: HeaderMap) -> Result<Response, String> {
        self.send(Method::DELETE, headers, Bytes::new()).await
    }

    /// Follows only redirects that repeat the request, and only within the origin: what goes with
    /// every request is for that origin alone. Any other is an answer like the rest.
    async fn send(
        &self,
        method: Method,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, String> {
        for (name, value) in &self.headers {
            headers.append(name, value.clone());
        }
        let mut uri = self.uri.clone();
        let mut redirected = None;
        for _ in 0..REDIRECTS {
            let response = self
                .wire
                .send(request(&method, &uri, &headers, &body))
                .await?;
            let from = redirected.as_ref().unwrap_or(&self.url);
            let Some((url, its_uri)) = self.redirected(from, &response) else {
                return Ok(response);
            };
            uri = its_uri;
            redirected = Some(url);
        }
        self.wire
            .send(request(&method, &uri, &headers, &body))
            .await
    }

    /// Where the same request is to go instead, if that is within the origin.
    fn redirected(&self, from: &Url, response: &Response) -> Option<(Url, Uri)> {
        let repeats = matches!(
            response.status(),
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        );
        let location = response.headers().get(LOCATION).filter(|_| repeats)?;
        let mut next = from.join(location.to_str().ok()?).ok()?;
        next.set_fragment(None);
        if next.origin() != self.url.origin() {
            return None;
        }
        let uri = Uri::try_from(next.as_str()).ok()?;
        Some((next, uri))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

fn request(method: &Method, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> http::Request<Bytes> {
    let mut request = http::Request::new(body.clone());
    *request.method_mut() = method.clone();
    *request.uri_mut() = uri.clone();
    *request.headers_mut() = headers.clone();
    request
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

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
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
        let values: Vec<_> = endpoint.headers.get_all("x-a").iter().collect();
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
