//! HTTP/1.1 on a bare connection: reading a request, writing an answer.
//!
//! Small enough to own, and owned because half of the faults that the server plays live below
//! what an HTTP library offers: a body that breaks off, a byte every 20 ms, a connection that
//! closes without an answer.

use std::io::{self, BufRead, Read as _, Write};
use std::thread;
use std::time::Duration;

/// A request, as far as it was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path, with its query.
    pub(crate) target: String,
    /// The header lines in order: names in lower case, values without the blanks around them.
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    /// Whether the client would go on with the connection.
    pub(crate) keeps_alive: bool,
    /// Whether the client understands a body in chunks.
    pub(crate) takes_chunks: bool,
    /// Whether the body came in a way that is not read.
    pub(crate) has_no_length: bool,
}

impl Request {
    /// The path without its query.
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The first header of that name, which must be in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers
            .iter()
            .find(|(given, _)| given == name)
            .map(|(_, value)| value.as_slice())
    }

    /// The first header of that name as text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.header(name)
            .and_then(|value| str::from_utf8(value).ok())
    }

    /// Whether `Accept` names a media type, parameters and case aside. Wildcards name none.
    pub(crate) fn accepts(&self, media_type: &str) -> bool {
        let values = self.headers.iter().filter(|(name, _)| name == "accept");
        values
            .flat_map(|(_, value)| value.split(|&byte| byte == b','))
            .any(|item| {
                let item = item.split(|&byte| byte == b';').next().unwrap_or_default();
                item.trim_ascii()
                    .eq_ignore_ascii_case(media_type.as_bytes())
            })
    }
}

/// Reads the next request of a connection; none when the client has ended it.
///
/// Of a head that breaks off, what came is used, and lines in it that are no headers are
/// skipped. Only bodies with a `Content-Length` are read. A client that waits for leave to send
/// its body is given it, on `out`.
pub(crate) fn read(input: &mut impl BufRead, out: &mut impl Write) -> io::Result<Option<Request>> {
    let mut line = Vec::new();
    // A client may leave empty lines between two requests.
    while line.trim_ascii().is_empty() {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
    }
    let first = String::from_utf8_lossy(&line);
    let mut words = first.split_ascii_whitespace();
    let mut word = || words.next().unwrap_or_default().to_owned();
    let mut request = Request {
        method: word(),
        target: word(),
        ..Request::default()
    };
    let is_current = word() == "HTTP/1.1";
    request.takes_chunks = is_current;
    request.keeps_alive = is_current;

    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 || line.trim_ascii().is_empty() {
            break;
        }
        let Some(colon) = memchr::memchr(b':', &line) else {
            continue;
        };
        let (name, value) = line.split_at(colon);
        let name = String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase();
        request.headers.push((
            name,
            value.get(1..).unwrap_or_default().trim_ascii().to_vec(),
        ));
    }

    let says = |name: &str, what: &str| {
        request
            .header(name)
            .is_some_and(|value| value.eq_ignore_ascii_case(what.as_bytes()))
    };
    if says("connection", "close") {
        request.keeps_alive = false;
    }
    if request.header("transfer-encoding").is_some() {
        request.has_no_length = true;
        request.keeps_alive = false;
        return Ok(Some(request));
    }
    let length: u64 = request
        .text("content-length")
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    if length > 0
        && request
            .text("expect")
            .is_some_and(|expects| expects.eq_ignore_ascii_case("100-continue"))
    {
        out.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let read = input.take(length).read_to_end(&mut request.body)?;
    if (read as u64) < length {
        request.keeps_alive = false;
    }
    Ok(Some(request))
}

/// The head of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
}

impl Head {
    pub(crate) fn new(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
        }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    fn bytes(&self, framing: &str, keeps_alive: bool) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        let connection = if keeps_alive {
            ""
        } else {
            "Connection: close\r\n"
        };
        for (name, value) in &self.headers {
            for part in [name, ": ", value, "\r\n"] {
                head.push_str(part);
            }
        }
        for part in [framing, connection, "\r\n"] {
            head.push_str(part);
        }
        head.into_bytes()
    }
}

/// How a body is sent, when it is not sent as fast as it goes, to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manner {
    /// After how many bytes it breaks off.
    pub(crate) cut: Option<u64>,
    /// In pieces of how many bytes, with what wait between them.
    pub(crate) pieces: Option<(usize, Duration)>,
}

/// Sends an answer with a body that is known whole.
pub(crate) fn send(
    out: &mut impl Write,
    head: &Head,
    body: &[u8],
    keeps_alive: bool,
    manner: Manner,
) -> io::Result<()> {
    let framing = match head.status {
        204 | 304 => String::new(),
        _ => format!("Content-Length: {}\r\n", body.len()),
    };
    let mut bytes = head.bytes(&framing, keeps_alive);
    if manner == Manner::default() {
        // One write, so that a small answer is one packet.
        bytes.extend_from_slice(body);
        return out.write_all(&bytes);
    }
    out.write_all(&bytes)?;
    Body {
        out,
        chunked: false,
        manner,
        sent: 0,
    }
    .write(body)
}

/// Opens an answer whose body is not known yet.
pub(crate) fn open<W: Write>(
    mut out: W,
    head: &Head,
    keeps_alive: bool,
    manner: Manner,
) -> io::Result<Body<W>> {
    let framing = if keeps_alive {
        "Transfer-Encoding: chunked\r\n"
    } else {
        ""
    };
    out.write_all(&head.bytes(framing, keeps_alive))?;
    Ok(Body {
        out,
        chunked: keeps_alive,
        manner,
        sent: 0,
    })
}

/// The body of an answer, as it is sent.
#[derive(Debug)]
pub(crate) struct Body<W> {
    out: W,
    chunked: bool,
    manner: Manner,
    sent: u64,
}

impl<W: Write> Body<W> {
    /// Sends some of the body at once.
    ///
    /// # Errors
    ///
    /// Of the kind `ConnectionAborted` when the body is to break off here: the caller then drops
    /// the connection.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let left = self
            .manner
            .cut
            .map_or(u64::MAX, |cut| cut.saturating_sub(self.sent));
        let breaks_off = left < bytes.len() as u64;
        let bytes = match usize::try_from(left) {
            Ok(left) => bytes.get(..left).unwrap_or(bytes),
            Err(_) => bytes,
        };
        match self.manner.pieces {
            None => self.piece(bytes)?,
            Some((size, wait)) => {
                for piece in bytes.chunks(size.max(1)) {
                    self.piece(piece)?;
                    thread::sleep(wait);
                }
            }
        }
        self.sent += bytes.len() as u64;
        if breaks_off {
            Err(io::ErrorKind::ConnectionAborted.into())
        } else {
            Ok(())
        }
    }

    fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if !self.chunked {
            return self.out.write_all(bytes);
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.out.write_all(&chunk)
    }

    /// Ends the body.
    pub(crate) fn end(mut self) -> io::Result<()> {
        if self.chunked {
            self.out.write_all(b"0\r\n\r\n")
        } else {
            Ok(())
        }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        204 => "No Content",
        302 => "Found",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(mut bytes: &[u8]) -> Vec<Request> {
        let mut requests = Vec::new();
        while let Some(request) = read(&mut bytes, &mut Vec::new()).unwrap() {
            requests.push(request);
        }
        requests
    }

    #[test]
    fn two_requests_on_a_connection_are_read_one_after_the_other() {
        let requests = read_all(b"POST /mcp?a=b HTTP/1.1\r\nContent-Length: 2\r\nAccept: A/b; q=1 ,c/d\r\n\r\n{}GET / HTTP/1.1\n\n");
        assert_eq!(
            (
                requests[0].method.as_str(),
                requests[0].path(),
                requests[0].body.as_slice()
            ),
            ("POST", "/mcp", &b"{}"[..])
        );
        assert!(
            requests[0].accepts("a/b") && requests[0].accepts("c/d") && !requests[0].accepts("e/f")
        );
        assert_eq!(
            (requests[1].method.as_str(), requests[1].path()),
            ("GET", "/")
        );
    }

    #[test]
    fn header_lines_without_a_colon_are_skipped() {
        let requests = read_all(b"GET / HTTP/1.1\r\nnonsense\r\nX: 1\r\n\r\n");
        assert_eq!(requests[0].headers, [("x".to_owned(), b"1".to_vec())]);
    }

    #[test]
    fn a_head_cut_off_is_read_as_far_as_it_goes() {
        let requests = read_all(b"DELETE /mcp HTTP/1.1\r\nMcp-Session-Id: s");
        assert_eq!(requests[0].text("mcp-session-id"), Some("s"));
        assert_eq!(read_all(b"GET")[0].method, "GET");
    }

    #[test]
    fn a_body_shorter_than_its_length_ends_the_connection() {
        let requests = read_all(b"POST / HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\nabc");
        assert_eq!(
            (requests[0].body.as_slice(), requests[0].keeps_alive),
            (&b"abc"[..], false)
        );
    }

    #[test]
    fn a_client_that_waits_for_leave_gets_it() {
        let mut out = Vec::new();
        let mut input =
            &b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx"[..];
        read(&mut input, &mut out).unwrap();
        assert_eq!(out, b"HTTP/1.1 100 Continue\r\n\r\n");
    }

    #[test]
    fn a_cut_body_breaks_off_where_it_should() {
        let mut out = Vec::new();
        let manner = Manner {
            cut: Some(4),
            pieces: Some((3, Duration::ZERO)),
        };
        let mut body = open(&mut out, &Head::new(200), true, manner).unwrap();
        body.write(b"ab").unwrap();
        assert_eq!(
            body.write(b"cdef").unwrap_err().kind(),
            io::ErrorKind::ConnectionAborted
        );
        assert!(
            String::from_utf8(out)
                .unwrap()
                .ends_with("\r\n\r\n2\r\nab\r\n2\r\ncd\r\n")
        );
    }

    #[test]
    fn a_whole_body_has_its_length() {
        let mut out = Vec::new();
        send(
            &mut out,
            &Head::new(405).with("Allow", "GET"),
            b"no",
            false,
            Manner::default(),
        )
        .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"
        );
    }
}
