//! What the server still owes the host: requests without an answer.
//!
//! Only the end of a session asks. It is counted after lines have been forwarded, so that
//! no line waits for it.

use std::collections::{HashMap, HashSet};

use memchr::memmem;

use crate::{
    clock::Millis,
    message::{Heads, Id},
};

/// How long a request counts that may well never be answered: a member of a batch, which
/// current servers ignore, or one whose id is no string or small integer, which they drop.
const DOUBTFUL_FOR: Millis = Millis(60_000);

/// The host's requests in flight.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    sure: HashSet<Id>,
    /// With the time from when each counts no more.
    doubtful: HashMap<Id, Millis>,
    /// When the last line counts no more that may hold a request, but could not be read.
    unreadable_until: Millis,
}

/// With so many doubtful ones, those that count no more are let go of.
const MANY: usize = 1024;

impl Owed {
    /// Takes note of a line from the host.
    pub(crate) fn asked(&mut self, at: Millis, line: &[u8]) {
        let Some(heads) = Heads::of(line) else {
            // Real servers answer requests that a strict reader cannot read.
            if memmem::find(line, br#""method""#).is_some()
                && memmem::find(line, br#""id""#).is_some()
            {
                self.unreadable_until = at + DOUBTFUL_FOR;
            }
            return;
        };
        let batched = matches!(heads, Heads::Batch(_));
        for head in heads.iter() {
            match (head.method.as_deref(), &head.id) {
                (Some("notifications/cancelled"), None) => {
                    if let Some(id) = Heads::cancelled(line) {
                        self.forget(&id);
                    }
                }
                // It is answered when the server ends it, which may be never.
                (Some("subscriptions/listen") | None, _) | (_, None) => {}
                (Some(_), Some(id)) if batched || matches!(id, Id::Odd(_)) => {
                    if self.doubtful.len() >= MANY {
                        self.doubtful.retain(|_, until| at < *until);
                    }
                    self.doubtful.insert(id.clone(), at + DOUBTFUL_FOR);
                }
                (Some(_), Some(id)) => {
                    self.sure.insert(id.clone());
                }
            }
        }
    }

    /// Takes note of a line that went to the host.
    pub(crate) fn answered(&mut self, line: &[u8]) {
        if self.sure.is_empty() && self.doubtful.is_empty() {
            return;
        }
        let Some(heads) = Heads::of(line) else { return };
        for head in heads.iter() {
            if let (None, Some(id)) = (&head.method, &head.id) {
                self.forget(id);
            }
        }
    }

    /// Whether the host still waits for an answer.
    pub(crate) fn is_any(&self, at: Millis) -> bool {
        !self.sure.is_empty()
            || at < self.unreadable_until
            || self.doubtful.values().any(|&until| at < until)
    }

    fn forget(&mut self, id: &Id) {
        self.sure.remove(id);
        self.doubtful.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_000);

    fn owed_after(host: &[&str], server: &[&str]) -> Owed {
        let mut owed = Owed::default();
        for line in host {
            owed.asked(NOW, line.as_bytes());
        }
        for line in server {
            owed.answered(line.as_bytes());
        }
        owed
    }

    #[test]
    fn a_request_is_owed_until_its_own_answer() {
        let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        assert!(owed_after(&[request], &[]).is_any(NOW));
        assert!(
            owed_after(&[request], &[r#"{"id":"1","result":{}}"#]).is_any(NOW),
            "the text 1 is another id"
        );
        assert!(
            owed_after(&[request], &[r#"{"id":1,"method":"ping"}"#]).is_any(NOW),
            "a request of the server's"
        );
        assert!(!owed_after(&[request], &[r#"{"result":{},"id":1}"#]).is_any(NOW));
        assert!(
            !owed_after(&[request], &[r#"{"error":{"code":1,"message":""},"id":1}"#]).is_any(NOW)
        );
        assert!(!owed_after(&[request], &[r#"[{"result":{},"id":1}]"#]).is_any(NOW));
    }

    #[test]
    fn an_id_is_its_value_not_its_spelling() {
        assert!(
            !owed_after(
                &[r#"{"id":"a\u0062","method":"ping"}"#],
                &[r#"{"id":"ab","result":{}}"#]
            )
            .is_any(NOW)
        );
    }

    #[test]
    fn nothing_is_owed_for_what_asks_nothing() {
        for line in [
            r#"{"method":"notifications/initialized"}"#,
            r#"{"id":null,"method":"ping"}"#,
            r#"{"id":1,"result":{}}"#,
            r#"{"id":"listen:0","method":"subscriptions/listen"}"#,
            "hello",
            "",
            "[]",
        ] {
            assert!(!owed_after(&[line], &[]).is_any(NOW), "{line}");
        }
    }

    #[test]
    fn a_cancelled_request_is_owed_no_more() {
        let cancel =
            r#"{"method":"notifications/cancelled","params":{"reason":"x","requestId":7}}"#;
        assert!(!owed_after(&[r#"{"id":7,"method":"tools/call"}"#, cancel], &[]).is_any(NOW));
        assert!(owed_after(&[r#"{"id":8,"method":"tools/call"}"#, cancel], &[]).is_any(NOW));
    }

    #[test]
    fn what_servers_may_never_answer_is_owed_for_a_minute() {
        for line in [
            r#"[{"id":1,"method":"ping"}]"#,
            r#"{"id":1.5,"method":"ping"}"#,
            r#"{"id":9007199254740993,"method":"ping"}"#,
            r#"{"id":{},"method":"ping"}"#,
            r#"{"id":1,"method":"ping"} trailing"#,
        ] {
            let owed = owed_after(&[line], &[]);
            assert!(owed.is_any(NOW + Millis(59_999)), "{line}");
            assert!(!owed.is_any(NOW + Millis(60_000)), "{line}");
        }
        assert!(
            !owed_after(
                &[r#"[{"id":1,"method":"ping"}]"#],
                &[r#"{"id":1,"result":{}}"#]
            )
            .is_any(NOW)
        );
    }

    #[test]
    fn a_request_that_only_a_lenient_reader_can_read_is_owed() {
        let deep = format!(
            r#"{{"id":1,"method":"x","params":{}{}}}"#,
            "[".repeat(300),
            "]".repeat(300)
        );
        assert!(
            owed_after(&[&deep, r#"{"id":2,"method":"x","params":1e999}"#], &[])
                .is_any(Millis(u64::MAX))
        );
    }
}
