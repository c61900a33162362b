//! Event streams as they come in, and the one for what the server says on its own.

use std::{rc::Rc, time::Duration};

use http::StatusCode;
use tokio::time::sleep;
use tracing::{debug, warn};

use super::{
    http::{Link, Response, Source, is_event_stream, shown_status},
    sse::EventParser,
};

/// The wait before the stream is opened again: this, times the failures in a row.
const WAIT: Duration = Duration::from_millis(500);

/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// How many failures in a row end it.
const FAILURES: u32 = 5;

/// Reads events out of a response.
#[derive(Debug)]
pub(super) struct EventReader {
    /// Nothing when the stream has ended.
    response: Option<Response>,
    parser: EventParser,
    broke: Option<String>,
}

impl EventReader {
    /// The events in `response`.
    pub(super) fn new(response: Response, parser: EventParser) -> Self {
        Self {
            response: Some(response),
            parser,
            broke: None,
        }
    }

    /// A stream that has ended.
    pub(super) fn over(parser: EventParser) -> Self {
        Self {
            response: None,
            parser,
            broke: None,
        }
    }

    /// The next message; nothing when the stream has ended, or has broken off.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(text) = self.parser.take() {
                return Some(text);
            }
            let response = self.response.as_mut()?;
            match response.chunk().await {
                Ok(Some(bytes)) => self.parser.feed(bytes),
                ended => {
                    self.broke = ended.err();
                    self.response = None;
                    return self.parser.take_rest();
                }
            }
        }
    }

    /// What the stream has said of itself.
    pub(super) fn parser(&self) -> &EventParser {
        &self.parser
    }

    /// Why the stream broke off, if it did.
    pub(super) fn into_cause(self) -> Option<String> {
        self.broke
    }
}

/// Reads what the server says on its own for as long as the session lasts. The stream is opened
/// again whenever it ends.
pub(super) async fn own_messages(link: Rc<Link>) {
    let mut asks = link.no_asks();
    let mut parser = EventParser::default();
    let mut patience = Patience::default();
    loop {
        match opened(&link, &parser).await {
            Opened::Stream(response) => {
                let mut events = EventReader::new(response, parser);
                while let Some(text) = events.next().await {
                    let source = Source {
                        asks: &mut asks,
                        kind: None,
                        is_modern: false,
                        is_body: false,
                    };
                    link.hand_on(text, source).await;
                }
                patience.ended(events.parser().has_seen_event());
                parser = events.parser().continuing();
            }
            Opened::Never(why) => {
                if let Some(why) = why {
                    warn!("the server's own messages will not be heard: {why}");
                }
                return;
            }
            Opened::Failed(why) => {
                debug!("the stream of the server's own messages: {why}");
                if !patience.failed() {
                    warn!("the server's own messages will not be heard any more: {why}");
                    return;
                }
            }
        }
        sleep(patience.wait(parser.retry())).await;
        if link.is_closing() {
            return;
        }
    }
}

/// What came of opening the stream.
enum Opened {
    Stream(Response),
    /// There is none, and there will be none. If that is worth saying, why.
    Never(Option<String>),
    Failed(String),
}

async fn opened(link: &Link, parser: &EventParser) -> Opened {
    let response = match link.listen(parser.last_id()).await {
        Ok(response) => response,
        Err(why) => return Opened::Failed(why),
    };
    let status = response.status();
    match status {
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND => Opened::Never(None),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Opened::Never(Some(format!(
            "the server answered {}",
            shown_status(status)
        ))),
        _ if !status.is_success() => {
            Opened::Failed(format!("the server answered {}", shown_status(status)))
        }
        _ if is_event_stream(&response) => Opened::Stream(response),
        _ => Opened::Failed("the server's answer is no event stream".into()),
    }
}

/// How long to wait, after what has happened so far.
#[derive(Debug, Default)]
struct Patience {
    failures: u32,
    /// Streams in a row that ended without an event.
    empty: u32,
}

impl Patience {
    /// A stream was there, and has ended.
    fn ended(&mut self, has_spoken: bool) {
        self.failures = 0;
        self.empty = if has_spoken { 0 } else { self.empty + 1 };
    }

    /// There was no stream. False when it is enough.
    fn failed(&mut self) -> bool {
        self.failures += 1;
        self.failures < FAILURES
    }

    /// How long to wait now, at least as long as the server asks for.
    fn wait(&self, asked: Option<Duration>) -> Duration {
        let after_failures = WAIT * self.failures.max(1);
        let after_silence = WAIT.saturating_mul(1 << self.empty.saturating_sub(1).min(16));
        after_failures
            .max(after_silence)
            .max(asked.unwrap_or_default())
            .min(LONGEST_WAIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(patience: &Patience) -> u128 {
        patience.wait(None).as_millis()
    }

    #[test]
    fn waits_grow_with_failures_and_the_fifth_is_the_last() {
        let mut patience = Patience::default();
        let mut waits = Vec::new();
        while patience.failed() {
            waits.push(ms(&patience));
        }
        assert_eq!(waits, [500, 1_000, 1_500, 2_000]);
        patience.ended(true);
        assert_eq!(ms(&patience), 500);
        assert!(patience.failed(), "the count begins again");
    }

    #[test]
    fn silent_streams_double_the_wait_up_to_half_a_minute() {
        let mut patience = Patience::default();
        let waits: Vec<u128> = (0..9)
            .map(|_| {
                patience.ended(false);
                ms(&patience)
            })
            .collect();
        assert_eq!(
            waits,
            [
                500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000
            ]
        );
        patience.ended(true);
        assert_eq!(ms(&patience), 500);
    }

    #[test]
    fn the_server_may_ask_for_a_longer_wait_and_not_for_a_shorter_one() {
        let patience = Patience::default();
        assert_eq!(patience.wait(Some(Duration::from_millis(20))), WAIT);
        assert_eq!(
            patience.wait(Some(Duration::from_secs(3))),
            Duration::from_secs(3)
        );
    }
}
