//! What all exchanges of one session over HTTP share.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use memchr::memchr2_iter;
use serde::{Deserialize, de::IgnoredAny};
use tokio::{sync::mpsc, time::timeout};
use tracing::{debug, warn};

use super::{
    endpoint::Endpoint,
    post::{Asks, Kind, OpenRequests},
    tools::KnownTools,
    trouble::{ServerError, error_line},
    wire::Response,
};
use crate::{
    line::Line,
    message::{Heads, Id},
    session::OwnIds,
    upstream::Said,
};

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// How much of a body that is for nobody is read, so that its connection can be used again.
const DRAINED: usize = 64 * 1024;

/// How long that may take.
const TO_DRAIN: Duration = Duration::from_secs(2);

/// The endpoint, the session, and the way to the loop.
#[derive(Debug)]
pub(in crate::upstream) struct Link {
    pub(super) endpoint: Endpoint,
    pub(super) open: Rc<OpenRequests>,
    pub(super) tools: RefCell<KnownTools>,
    pub(super) own_ids: OwnIds,
    session: RefCell<HeaderMap>,
    said: mpsc::Sender<Said>,
    /// Whether an exchange that goes alone is under way.
    is_held: Cell<bool>,
    is_closing: Cell<bool>,
    /// How many bytes have been sent and may still be on their way.
    load: Cell<usize>,
}

impl Link {
    pub(super) fn new(endpoint: Endpoint, own_ids: OwnIds, said: mpsc::Sender<Said>) -> Self {
        Self {
            endpoint,
            open: Rc::default(),
            tools: RefCell::default(),
            own_ids,
            session: RefCell::default(),
            said,
            is_held: Cell::new(false),
            is_closing: Cell::new(false),
            load: Cell::new(0),
        }
    }

    /// The headers that stand for the session, as far as it has begun.
    pub(super) fn session_headers(&self) -> HeaderMap {
        self.session.borrow().clone()
    }

    /// Opens an event stream of the session, after the event `last_id` if there was one.
    ///
    /// # Errors
    /// Why the server could not be reached, on one line.
    pub(in crate::upstream) async fn listen(
        &self,
        last_id: Option<&str>,
    ) -> Result<Response, String> {
        let mut headers = self.session_headers();
        // An id that cannot be sent back was not meant to be.
        if let Some(id) = last_id.and_then(|id| HeaderValue::from_bytes(id.as_bytes()).ok()) {
            headers.insert(LAST_EVENT_ID, id);
        }
        self.endpoint.get(headers).await
    }

    pub(super) fn has_session(&self) -> bool {
        self.session.borrow().contains_key(SESSION)
    }

    /// Takes the session's id from the head of the answer to `initialize`.
    pub(super) fn begin_session(&self, answer: &HeaderMap) {
        if let Some(id) = answer.get(SESSION) {
            self.session.borrow_mut().insert(SESSION, id.clone());
        }
    }

    /// Takes the agreed version from the answer to `initialize`.
    fn agree(&self, answer: &[u8]) {
        #[derive(Deserialize)]
        struct Answer {
            result: Agreed,
        }
        #[derive(Deserialize)]
        struct Agreed {
            #[serde(rename = "protocolVersion")]
            version: String,
        }
        let version = serde_json::from_slice::<Answer>(answer)
            .ok()
            .and_then(|answer| HeaderValue::try_from(answer.result.version).ok());
        if let Some(version) = version {
            self.session.borrow_mut().insert(VERSION, version);
        }
    }

    /// Ends the session.
    ///
    /// # Errors
    /// Why the server did not answer, on one line.
    pub(super) async fn end_session(&self) -> Result<(), String> {
        let response = self.endpoint.delete(self.session_headers()).await?;
        drain(response).await;
        Ok(())
    }

    /// Hands something to the loop, once it has room for it.
    pub(super) async fn say(&self, said: Said) {
        // The loop is over, and so is everything that was to be said.
        self.said.send(said).await.ok();
    }

    /// Hands on what the server said, as a line, unless it is a response that nobody waits for.
    pub(in crate::upstream) async fn hand_on(&self, text: Vec<u8>, source: Source<'_>) {
        let Source {
            asks,
            kind,
            is_modern,
            is_body,
        } = source;
        let line = line_of(text);
        let mut instead = None;
        match Heads::of(line.content()) {
            Some(Heads::One(head)) if head.is_response() => match head.id {
                Some(id) => {
                    let is_own = asks.has(&id);
                    if !asks.answer(&id) {
                        debug!("dropped an answer to a request that is not waiting for one");
                        return;
                    }
                    match kind {
                        Some(Kind::Initialize) if is_own => self.agree(line.content()),
                        Some(Kind::List) if is_own && is_modern => {
                            instead = self.learn_tools(&line);
                        }
                        _ => {}
                    }
                }
                // Servers that cannot tell which request they refuse.
                None => {
                    if let Some(error) = ServerError::of(line.content())
                        && let Some(id) = asks.take_only()
                    {
                        let message =
                            format!("the server answered without an id: {}", error.message);
                        self.say(Said::Line(error_line(&id, &error.with_message(message))))
                            .await;
                        return;
                    }
                }
            },
            Some(Heads::Batch(heads)) => {
                let mut is_news = heads.is_empty() && !is_body;
                for head in &heads {
                    is_news |= match &head.id {
                        Some(id) if head.is_response() => asks.answer(id),
                        _ => true,
                    };
                }
                if !is_news {
                    debug!("dropped answers to requests that are not waiting for any");
                    return;
                }
            }
            Some(Heads::One(head)) if head.method.is_none() && is_body => return,
            None if is_body && (is_blank(&line) || is_json(line.content())) => return,
            Some(Heads::One(_)) | None => {}
        }
        self.say(match instead {
            Some(instead) => Said::Amended { line, instead },
            None => Said::Line(line),
        })
        .await;
    }

    /// Learns from a listing. What the host is to get instead of it, if it may not get all of it.
    pub(super) fn learn_tools(&self, line: &Line) -> Option<Line> {
        let unfit = self.tools.borrow_mut().learn(line);
        for (tool, fault) in unfit.tools {
            warn!("the tool {tool} is left out of the server's list: {fault}");
        }
        unfit.instead
    }

    /// The session is on its way to its end.
    pub(super) fn close(&self) {
        self.is_closing.set(true);
    }

    /// Whether the session is on its way to its end: no stream for the server's own messages is opened again.
    pub(in crate::upstream) fn is_closing(&self) -> bool {
        self.is_closing.get()
    }

    /// The requests of a stream that belongs to none.
    pub(in crate::upstream) fn no_asks(&self) -> Asks {
        Asks::none(&self.open)
    }

    /// Whether nothing may be sent but the host's responses.
    pub(super) fn is_held(&self) -> bool {
        self.is_held.get()
    }

    /// How many bytes were sent whose arrival is not known.
    pub(super) fn load(&self) -> usize {
        self.load.get()
    }
}

/// Where something comes from that the server said.
#[derive(Debug)]
pub(in crate::upstream) struct Source<'a> {
    /// The requests of the exchange.
    pub(in crate::upstream) asks: &'a mut Asks,
    /// What the exchange's line was, unless it is the server's own stream.
    pub(in crate::upstream) kind: Option<&'a Kind>,
    /// Whether the line was of the newest revision.
    pub(in crate::upstream) is_modern: bool,
    /// Whether it is a whole body. Servers write into one what is no message, and not for the host.
    pub(in crate::upstream) is_body: bool,
}

/// While it exists, an exchange goes alone.
#[derive(Debug)]
pub(super) struct Hold(Rc<Link>);

impl Hold {
    pub(super) fn new(link: &Rc<Link>) -> Self {
        link.is_held.set(true);
        Self(Rc::clone(link))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.is_held.set(false);
    }
}

/// Bytes on their way, as long as it exists.
#[derive(Debug)]
pub(super) struct Load(Rc<Link>, usize);

impl Load {
    pub(super) fn new(link: &Rc<Link>, bytes: usize) -> Self {
        link.load.set(link.load.get() + bytes);
        Self(Rc::clone(link), bytes)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.load.set(self.0.load.get() - self.1);
    }
}

/// A text as a line. Line breaks in it become blanks: in JSON they can only stand between tokens.
pub(super) fn line_of(mut text: Vec<u8>) -> Line {
    let breaks: Vec<usize> = memchr2_iter(b'\n', b'\r', &text).collect();
    for at in breaks {
        text[at] = b' ';
    }
    let kept = text.trim_ascii();
    let mut from = 0;
    if kept.len() < text.len() && is_json(kept) {
        let kept_until = text.trim_ascii_end().len();
        from = kept_until - kept.len();
        text.truncate(kept_until);
    }
    text.push(b'\n');
    Line::from(Bytes::from(text).slice(from..))
}

fn is_blank(line: &Line) -> bool {
    line.content().trim_ascii().is_empty()
}

fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

/// Whether an answer comes as events.
pub(in crate::upstream) fn is_event_stream(response: &Response) -> bool {
    const EVENTS: &[u8] = b"text/event-stream";
    let value = response.headers().get(CONTENT_TYPE);
    value.is_some_and(|value| {
        let start = value.as_bytes().get(..EVENTS.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(EVENTS))
    })
}

/// Reads a whole body.
///
/// # Errors
/// Why it broke off, on one line.
pub(super) async fn whole_body(mut response: Response) -> Result<Vec<u8>, String> {
    /// What a server says of a length may be wrong, so not too much is taken at its word.
    const BELIEVED: u64 = 16 * 1024 * 1024;
    let length = response.content_length().unwrap_or(0).min(BELIEVED);
    // One more, for the end of the line.
    let mut body = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// What comes of a body within limits of size and time; nothing when that is not all of it.
pub(super) async fn small_body(
    mut response: Response,
    most: usize,
    within: Duration,
) -> Option<Vec<u8>> {
    let read = async {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.ok()? {
            if body.len() + chunk.len() > most {
                return None;
            }
            body.extend_from_slice(&chunk);
        }
        Some(body)
    };
    timeout(within, read).await.ok()?
}

/// Reads away a body that is not for the host. It is returned if that was all of it.
pub(super) async fn drain(response: Response) -> Option<Vec<u8>> {
    small_body(response, DRAINED, TO_DRAIN).await
}

/// An id that a host's request may not have while one of ours has it.
pub(super) fn own_id(link: &Link) -> Id {
    Id::Text(link.own_ids.next(|id| link.open.is_open(id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> String {
        let line = line_of(text.as_bytes().to_vec());
        String::from_utf8(line.bytes().to_vec()).expect("UTF-8")
    }

    #[test]
    fn json_over_several_lines_becomes_one_line_and_keeps_its_spelling() {
        assert_eq!(
            line("{\r\n  \"a\": 1.0,\n \"a\":1e2}\n"),
            "{    \"a\": 1.0,  \"a\":1e2}\n"
        );
        assert_eq!(line("\n [1]\t"), "[1]\n");
        assert_eq!(line("{}"), "{}\n");
    }

    #[test]
    fn text_that_is_not_json_keeps_its_blanks() {
        assert_eq!(line(" <html>\r\n</html>\n"), " <html>  </html> \n");
    }
}
