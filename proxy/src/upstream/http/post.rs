//! A line of the host's on its way to the server, and what is known of it.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use bytes::Bytes;
use serde::de::IgnoredAny;

use super::modern::Modern;
use crate::{
    line::Line,
    message::{Head, Heads, Id},
};

/// One POST.
#[derive(Debug)]
pub(super) struct Post {
    /// The line without its end and without blanks before that.
    pub(super) body: Bytes,
    pub(super) kind: Kind,
    /// What it is called when something is said about it.
    pub(super) name: String,
    /// The requests in it that wait for an answer.
    pub(super) asks: Asks,
    /// What the newest revision adds to it.
    pub(super) modern: Option<Modern>,
}

/// What a line is, as far as it matters to how it is sent and what its answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::upstream) enum Kind {
    Initialize,
    Initialized,
    /// A `tools/list`.
    List,
    /// A `tools/call`.
    Call,
    /// A `subscriptions/listen`, which is answered when it ends.
    Listen,
    /// Any other request.
    Request,
    /// A notification that the request with this id is not wanted any more.
    Cancelled(Option<Id>),
    /// Any other notification.
    Notification,
    /// What the host answers to a request of the server's.
    Response,
    Batch,
    /// No message.
    Unreadable,
}

impl Post {
    /// What is to be sent for a line; nothing when it is blank.
    pub(super) fn of(line: &Line, open: &Rc<OpenRequests>) -> Option<Self> {
        let content = line.bytes().trim_ascii_end();
        if content.is_empty() {
            return None;
        }
        let body = line.bytes().slice(..content.len());
        let mut asks = Asks::none(open);
        let mut name = String::new();
        let kind = match Heads::of(content) {
            Some(Heads::One(head)) => {
                let kind = kind_of(&head, content);
                if let (Some(method), Some(id)) = (&head.method, head.id) {
                    name = method.clone().into_owned();
                    asks.add(id);
                } else {
                    name = head
                        .method
                        .map_or("a response".into(), std::borrow::Cow::into_owned);
                }
                kind
            }
            Some(Heads::Batch(heads)) => {
                for head in heads {
                    if let (Some(_), Some(id)) = (head.method, head.id) {
                        asks.add(id);
                    }
                }
                name.push_str("a batch");
                Kind::Batch
            }
            None if is_array(content) => {
                name.push_str("a batch");
                Kind::Batch
            }
            None => {
                name.push_str("a line that is no message");
                Kind::Unreadable
            }
        };
        let modern = match kind {
            Kind::Batch | Kind::Unreadable | Kind::Initialize => None,
            _ => Modern::of(content),
        };
        Some(Self {
            body,
            kind,
            name,
            asks,
            modern,
        })
    }

    /// Whether it is one request, of whatever method.
    pub(super) fn is_request(&self) -> bool {
        !matches!(self.kind, Kind::Batch) && !self.asks.is_empty()
    }

    /// The id of the request that ends when its stream is closed.
    pub(super) fn cancelled_by_closing(&self) -> Option<&Id> {
        self.modern.as_ref().and(self.asks.only())
    }

    /// Whether the body of its answer can be for the host.
    pub(super) fn expects_body(&self) -> bool {
        !self.asks.is_empty() || self.kind == Kind::Batch
    }
}

/// Whether the line is a batch, whatever is in it.
fn is_array(line: &[u8]) -> bool {
    line.trim_ascii_start().first() == Some(&b'[')
        && serde_json::from_slice::<IgnoredAny>(line).is_ok()
}

fn kind_of(head: &Head<'_>, line: &[u8]) -> Kind {
    match (head.method.as_deref(), &head.id) {
        (Some("initialize"), Some(_)) => Kind::Initialize,
        (Some("tools/list"), Some(_)) => Kind::List,
        (Some("tools/call"), Some(_)) => Kind::Call,
        (Some("subscriptions/listen"), Some(_)) => Kind::Listen,
        (Some(_), Some(_)) => Kind::Request,
        (Some("notifications/initialized"), None) => Kind::Initialized,
        (Some("notifications/cancelled"), None) => Kind::Cancelled(Heads::cancelled(line)),
        (Some(_), None) => Kind::Notification,
        (None, Some(_)) => Kind::Response,
        (None, None) => Kind::Unreadable,
    }
}

/// The requests of the host that have no answer yet, over all exchanges.
///
/// A response that answers none of them is not news: servers repeat answers when a stream is
/// resumed.
#[derive(Debug, Default)]
pub(super) struct OpenRequests(RefCell<HashMap<Id, usize>>);

impl OpenRequests {
    fn open(&self, id: &Id) {
        *self.0.borrow_mut().entry(id.clone()).or_default() += 1;
    }

    /// Takes an answer to `id`. False if nothing waits for one.
    pub(super) fn answer(&self, id: &Id) -> bool {
        let mut open = self.0.borrow_mut();
        let Some(count) = open.get_mut(id) else {
            return false;
        };
        *count -= 1;
        if *count == 0 {
            open.remove(id);
        }
        true
    }

    /// Whether something waits for an answer to `id`.
    pub(super) fn is_open(&self, id: &Id) -> bool {
        self.0.borrow().contains_key(id)
    }
}

/// The requests of one exchange that wait for their answers. Dropped, they wait no longer.
#[derive(Debug)]
pub(in crate::upstream) struct Asks {
    ids: Vec<Id>,
    open: Rc<OpenRequests>,
}

impl Asks {
    /// An exchange that nothing waits for.
    pub(super) fn none(open: &Rc<OpenRequests>) -> Self {
        Self {
            ids: Vec::new(),
            open: Rc::clone(open),
        }
    }

    fn add(&mut self, id: Id) {
        self.open.open(&id);
        self.ids.push(id);
    }

    /// Whether all have been answered, be it on another stream.
    pub(super) fn is_empty(&self) -> bool {
        !self.ids.iter().any(|id| self.open.is_open(id))
    }

    /// Takes an answer that came on this exchange's stream, or on another's. False if nothing waits for it.
    pub(super) fn answer(&mut self, id: &Id) -> bool {
        let own = self
            .ids
            .iter()
            .position(|own| own == id)
            .or_else(|| self.odd_one(id));
        match own {
            Some(at) => {
                let id = self.ids.swap_remove(at);
                self.open.answer(&id)
            }
            None => self.open.answer(id),
        }
    }

    /// The one request, if it is the only one.
    pub(super) fn only(&self) -> Option<&Id> {
        match self.ids.as_slice() {
            [id] => Some(id),
            _ => None,
        }
    }

    /// The one request, if it is the only one. It has been answered now.
    pub(super) fn take_only(&mut self) -> Option<Id> {
        if self.ids.len() != 1 {
            return None;
        }
        self.ids.pop().filter(|id| self.open.answer(id))
    }

    /// All that have no answer. They have one now.
    pub(super) fn take(&mut self) -> Vec<Id> {
        let mut ids = std::mem::take(&mut self.ids);
        ids.retain(|id| self.open.answer(id));
        ids
    }

    /// The ids that this exchange waits for, as they were when it began or since.
    pub(super) fn has(&self, id: &Id) -> bool {
        self.ids.contains(id)
    }

    /// Where our one request stands if its id is a number that the server spells otherwise, such as 2 for 2.0.
    fn odd_one(&self, answered: &Id) -> Option<usize> {
        let [Id::Odd(asked)] = self.ids.as_slice() else {
            return None;
        };
        let asked: f64 = asked.parse().ok()?;
        let answered: f64 = answered.to_json().parse().ok()?;
        (asked.to_bits() == answered.to_bits()).then_some(0)
    }
}

impl Drop for Asks {
    fn drop(&mut self) {
        self.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(line: &str) -> Post {
        let open = Rc::new(OpenRequests::default());
        Post::of(&Line::own(line.to_owned()), &open).expect("not blank")
    }

    #[test]
    fn a_line_is_sent_without_its_end() {
        let open = Rc::new(OpenRequests::default());
        let body = |text: &'static [u8]| {
            Post::of(&Line::from(Bytes::from_static(text)), &open).map(|post| post.body)
        };
        assert_eq!(body(b" {} \t\r\n").expect("a body"), &b" {}"[..]);
        assert_eq!(body(b"{\r}").expect("a body"), &b"{\r}"[..]);
        for blank in [&b"\n"[..], b"\r\n", b"  \t\n", b""] {
            assert!(body(blank).is_none());
        }
    }

    #[test]
    fn lines_are_told_apart() {
        for (line, kind) in [
            (r#"{"id":0,"method":"initialize"}"#, Kind::Initialize),
            (r#"{"method":"initialize"}"#, Kind::Notification),
            (
                r#"{"method":"notifications/initialized"}"#,
                Kind::Initialized,
            ),
            (
                r#"{"method":"notifications/initialized","id":1}"#,
                Kind::Request,
            ),
            (
                r#"{"method":"notifications/cancelled","params":{"requestId":3}}"#,
                Kind::Cancelled(Some(Id::Number(3))),
            ),
            (
                r#"{"method":"notifications/cancelled"}"#,
                Kind::Cancelled(None),
            ),
            (r#"{"id":"a","result":{}}"#, Kind::Response),
            (r#"[{"id":1,"method":"ping"}]"#, Kind::Batch),
            ("[1]", Kind::Batch),
            ("[]", Kind::Batch),
            ("[1", Kind::Unreadable),
            ("hello", Kind::Unreadable),
            (r#"{"jsonrpc":"2.0"}"#, Kind::Unreadable),
        ] {
            assert_eq!(post(line).kind, kind, "{line}");
        }
    }

    #[test]
    fn what_waits_for_an_answer_is_counted_once() {
        let open = Rc::new(OpenRequests::default());
        let of = |line: &str| Post::of(&Line::own(line.to_owned()), &open).expect("not blank");
        let one = Id::Number(1);
        let mut first = of(r#"{"id":1,"method":"a"}"#);
        let mut again = of(r#"{"id":1,"method":"b"}"#);
        assert!(first.asks.answer(&one));
        assert!(first.asks.take().is_empty());
        assert_eq!(again.asks.take(), std::slice::from_ref(&one));
        assert!(!first.asks.answer(&one), "answered twice by now");
        drop(of(r#"[{"id":1,"method":"a"},{"id":"1","method":"a"}]"#));
        assert!(!open.is_open(&one), "nobody waits any longer");
    }

    #[test]
    fn an_answer_on_another_stream_is_an_answer() {
        let open = Rc::new(OpenRequests::default());
        let mut asks = Post::of(&Line::own(r#"{"id":1,"method":"a"}"#.into()), &open)
            .expect("not blank")
            .asks;
        let mut other = Asks::none(&open);
        assert!(!asks.is_empty());
        assert!(other.answer(&Id::Number(1)));
        assert!(asks.is_empty());
        assert_eq!(asks.take_only(), None);
    }

    #[test]
    fn an_odd_id_is_known_by_its_value() {
        let mut asks = post(r#"{"id":2.0,"method":"a"}"#).asks;
        assert!(!asks.answer(&Id::Number(3)));
        assert!(asks.answer(&Id::Number(2)));
    }
}
