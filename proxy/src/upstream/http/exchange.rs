//! One POST, and what comes of it.

use std::{pin::pin, rc::Rc, time::Duration};

use http::{StatusCode, header::HeaderMap};
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::{
    link::{
        Hold, Link, Load, SESSION, Source, drain, is_event_stream, own_id, small_body, whole_body,
    },
    post::{Asks, Kind, Post},
    tools,
    trouble::{ServerError, Trouble},
    wire::Response,
};
use crate::{
    line::Line,
    message::{Heads, Id},
    upstream::{Said, sse::EventParser, stream::EventReader},
};

/// How long `notifications/initialized` goes alone at most: no answer to it says anything.
const ALONE: Duration = Duration::from_secs(10);

/// How long the proxy waits for an answer to a request of its own.
const OWN_PATIENCE: Duration = Duration::from_mins(1);

/// How many pages of a listing of its own the proxy reads.
const PAGES: usize = 50;

/// How much a refusal may say, and how long that may take.
const REFUSAL: (usize, Duration) = (1024 * 1024, Duration::from_secs(10));

/// How often a stream is resumed without hearing anything new.
const TRIES: u32 = 5;

/// The wait before a stream is resumed, when the server names none.
const BEFORE_RESUMING: Duration = Duration::from_millis(500);

/// The error of a server that misses a header, or reads another value in the body.
const HEADER_MISMATCH: i64 = -32_020;

/// An exchange under way.
#[derive(Debug)]
pub(super) struct Exchange {
    link: Rc<Link>,
    post: Post,
    hold: Option<Hold>,
    load: Option<Load>,
    is_repeated: bool,
}

/// What has to be known of a try's headers afterwards.
#[derive(Debug)]
struct Sent {
    had_session: bool,
    /// Those of a call of the newest revision, which may have to be sent once more with others.
    of_call: Option<HeaderMap>,
}

impl Sent {
    fn of(headers: &HeaderMap, post: &Post) -> Self {
        let is_modern_call = post.kind == Kind::Call && post.modern.is_some();
        Self {
            had_session: headers.contains_key(SESSION),
            of_call: is_modern_call.then(|| headers.clone()),
        }
    }
}

/// What came of one try.
#[derive(Debug, PartialEq, Eq)]
enum Tried {
    Done,
    /// It is to be sent once more, with other headers.
    Again,
}

impl Exchange {
    /// An exchange that has not begun. With a `hold` it goes alone.
    pub(super) fn new(link: &Rc<Link>, post: Post, hold: Option<Hold>) -> Self {
        Self {
            load: Some(Load::new(link, post.body.len())),
            link: Rc::clone(link),
            post,
            hold,
            is_repeated: false,
        }
    }

    /// Sends the line, and hands on what the server answers. Each request in it gets one answer.
    pub(super) async fn run(mut self) {
        if let Err(trouble) = self.carry().await {
            warn!("{}: {trouble}", self.post.name);
            for id in self.post.asks.take() {
                self.link.say(Said::Line(trouble.line(&id))).await;
            }
        }
    }

    async fn carry(&mut self) -> Result<(), Trouble> {
        loop {
            let headers = match &self.post.modern {
                Some(modern) => modern.headers(&self.post.body, &self.link.tools.borrow()),
                None => self.link.session_headers(),
            };
            let sent = Sent::of(&headers, &self.post);
            let response = self.send(headers).await?;
            self.load = None;
            if self.answered(response, &sent).await? == Tried::Done {
                return Ok(());
            }
        }
    }

    async fn send(&mut self, headers: HeaderMap) -> Result<Response, Trouble> {
        let link = Rc::clone(&self.link);
        let mut sent = pin!(link.endpoint.post(self.post.body.clone(), headers));
        let response = if self.post.kind == Kind::Initialized {
            let alone = timeout(ALONE, &mut sent).await;
            self.hold = None;
            match alone {
                Ok(response) => response,
                Err(_) => sent.await,
            }
        } else {
            sent.await
        };
        response.map_err(Trouble::Unreachable)
    }

    async fn answered(&mut self, response: Response, sent: &Sent) -> Result<Tried, Trouble> {
        let status = response.status();
        if !status.is_success() {
            return self.refused(response, sent).await;
        }
        if self.post.kind == Kind::Initialize {
            self.link.begin_session(response.headers());
        }
        if status != StatusCode::ACCEPTED && is_event_stream(&response) {
            return self.stream(response).await.map(|()| Tried::Done);
        }
        if status != StatusCode::ACCEPTED && self.post.expects_body() {
            let body = whole_body(response).await.map_err(Trouble::CutOff)?;
            self.body(body).await;
        } else if let Some(body) = drain(response).await
            && let Some(error) = ServerError::of(&body)
            && self.post.asks.is_empty()
        {
            return Err(Trouble::Refused(status, Some(error)));
        }
        if self.post.asks.is_empty() {
            Ok(Tried::Done)
        } else {
            Err(Trouble::NoAnswer)
        }
    }

    async fn body(&mut self, mut body: Vec<u8>) {
        const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
        if body.starts_with(BYTE_ORDER_MARK) {
            body.drain(..BYTE_ORDER_MARK.len());
        }
        self.hand_on(body, true).await;
    }

    async fn hand_on(&mut self, text: Vec<u8>, is_body: bool) {
        let Post {
            asks, kind, modern, ..
        } = &mut self.post;
        let source = Source {
            asks,
            kind: Some(kind),
            is_modern: modern.is_some(),
            is_body,
        };
        self.link.hand_on(text, source).await;
        let Post { asks, kind, .. } = &self.post;
        if *kind == Kind::Initialize && asks.is_empty() {
            // The rest of the stream is read beside what comes next.
            self.hold = None;
        }
    }

    /// Reads events to the end of the stream, and of those that continue it.
    async fn stream(&mut self, response: Response) -> Result<(), Trouble> {
        let mut events = EventReader::new(response, EventParser::default());
        let mut tries = 0;
        loop {
            while let Some(text) = events.next().await {
                self.hand_on(text, false).await;
            }
            if self.post.asks.is_empty() {
                return Ok(());
            }
            if events.parser().has_seen_event() {
                tries = 0;
            }
            events = self.resumed(events, &mut tries).await?;
        }
    }

    /// The stream that goes on where `ended` has ended. Every wait counts as a try.
    async fn resumed(
        &mut self,
        ended: EventReader,
        tries: &mut u32,
    ) -> Result<EventReader, Trouble> {
        let parser = ended.parser().continuing();
        let mut why = ended.into_cause();
        let Some(last_id) = parser.last_id().filter(|_| self.post.modern.is_none()) else {
            return Err(Trouble::EndedEarly(why));
        };
        while *tries < TRIES {
            *tries += 1;
            sleep(parser.retry().unwrap_or(BEFORE_RESUMING)).await;
            if self.post.asks.is_empty() {
                // Answered on another stream meanwhile: one that is over stands for this one.
                return Ok(EventReader::over(parser));
            }
            debug!("{}: resuming its stream, try {tries}", self.post.name);
            let response = match self.link.listen(Some(last_id)).await {
                Ok(response) => response,
                Err(cause) => {
                    why = Some(cause);
                    continue;
                }
            };
            let status = response.status();
            if status.is_success() && is_event_stream(&response) {
                return Ok(EventReader::new(response, parser));
            }
            drain(response).await;
            why = Some(format!(
                "resuming it: the server answered {}",
                super::endpoint::shown_status(status)
            ));
            if is_final(status) {
                break;
            }
        }
        Err(Trouble::EndedEarly(why))
    }

    /// A status that is no success.
    async fn refused(&mut self, response: Response, sent: &Sent) -> Result<Tried, Trouble> {
        let status = response.status();
        let body = small_body(response, REFUSAL.0, REFUSAL.1)
            .await
            .unwrap_or_default();
        let error = ServerError::of(&body);
        if status == StatusCode::NOT_FOUND && sent.had_session {
            return Err(Trouble::SessionEnded(error));
        }
        let is_mismatch = status == StatusCode::BAD_REQUEST
            && error
                .as_ref()
                .is_some_and(|error| error.code == HEADER_MISMATCH);
        if is_mismatch
            && !self.is_repeated
            && let Some(headers) = &sent.of_call
        {
            self.is_repeated = true;
            if self.learns_other_headers(headers).await {
                return Ok(Tried::Again);
            }
        }
        if self.is_answer(&body) {
            self.hand_on(body, true).await;
        }
        if self.post.asks.is_empty() && self.post.expects_body() {
            debug!(
                "{}: the server answered {}",
                self.post.name,
                super::endpoint::shown_status(status)
            );
            Ok(Tried::Done)
        } else {
            Err(Trouble::Refused(status, error))
        }
    }

    fn is_answer(&self, body: &[u8]) -> bool {
        let Some(heads) = Heads::of(body) else {
            return false;
        };
        heads.iter().any(|head| {
            let id = head.id.as_ref().filter(|_| head.is_response());
            id.is_some_and(|id| self.post.asks.has(id))
        })
    }

    /// Lists the tools, and tells whether the call needs other headers than it was sent with.
    async fn learns_other_headers(&self, sent: &HeaderMap) -> bool {
        let Some(modern) = &self.post.modern else {
            return false;
        };
        let listed = timeout(OWN_PATIENCE, self.list_tools(&modern.version)).await;
        if let Err(trouble) = listed.unwrap_or(Err(Trouble::NoAnswer)) {
            warn!("listing the server's tools, for the headers of a call: {trouble}");
        }
        modern.headers(&self.post.body, &self.link.tools.borrow()) != *sent
    }

    /// Lists the tools for the proxy itself.
    async fn list_tools(&self, version: &str) -> Result<(), Trouble> {
        let mut cursor = None;
        for _ in 0..PAGES {
            let id = own_id(&self.link);
            let request = own_listing(&id, version, cursor.as_deref());
            self.link.say(Said::Asked(request.clone())).await;
            let Some(post) = Post::of(&request, &self.link.open) else {
                return Err(Trouble::NoAnswer);
            };
            let answer = self.own_answer(post).await?;
            self.link.learn_tools(&answer);
            cursor = tools::next_cursor(answer.content());
            if cursor.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// The answer to a request of the proxy's own. Whatever the server says meanwhile is not for the host.
    async fn own_answer(&self, post: Post) -> Result<Line, Trouble> {
        let Some(modern) = &post.modern else {
            return Err(Trouble::NoAnswer);
        };
        let headers = modern.headers(&post.body, &self.link.tools.borrow());
        let response = self
            .link
            .endpoint
            .post(post.body, headers)
            .await
            .map_err(Trouble::Unreachable)?;
        let status = response.status();
        if !status.is_success() {
            let body = small_body(response, REFUSAL.0, REFUSAL.1)
                .await
                .unwrap_or_default();
            return Err(Trouble::Refused(status, ServerError::of(&body)));
        }
        if !is_event_stream(&response) {
            let body = whole_body(response).await.map_err(Trouble::CutOff)?;
            return self
                .own_line(body, &post.asks)
                .await
                .ok_or(Trouble::NoAnswer);
        }
        let mut events = EventReader::new(response, EventParser::default());
        while let Some(text) = events.next().await {
            if let Some(answer) = self.own_line(text, &post.asks).await {
                return Ok(answer);
            }
        }
        Err(Trouble::EndedEarly(events.into_cause()))
    }

    /// Records a text that is not for the host. The line, if it is the answer.
    async fn own_line(&self, text: Vec<u8>, asks: &Asks) -> Option<Line> {
        let line = super::link::line_of(text);
        self.link.say(Said::Aside(line.clone())).await;
        let Some(Heads::One(head)) = Heads::of(line.content()) else {
            return None;
        };
        let is_answer = head.is_response() && head.id.is_some_and(|id| asks.has(&id));
        is_answer.then_some(line)
    }
}

/// Whether asking once more will not help.
fn is_final(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
    )
}

fn own_listing(id: &Id, version: &str, cursor: Option<&str>) -> Line {
    let mut params = serde_json::json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    if let Some(cursor) = cursor {
        params["cursor"] = cursor.into();
    }
    Line::own(format!(
        r#"{{"jsonrpc":"2.0","id":{},"method":"tools/list","params":{params}}}"#,
        id.to_json()
    ))
}
