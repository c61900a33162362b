//! A call on its way through the judge.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use stretto_oracle::{Budget, Key, Request, Response};
use stretto_trace::ToolCall;

use super::{FIRST, Judge};
use crate::{Exchange, Flag, Listings};

/// What the log says of a question that the session's budget did not allow.
const SPENT: &str = "the session's questions are used up; --confirm-questions allows more";

/// How every refusal of the judge's begins, once it is told apart from the guards'.
pub const NOT_AGREED: &str = "the customer has not explicitly agreed to this exact change";

/// A call that is being judged.
///
/// It holds the questions, made when the call was read; only their answers are waited for.
#[derive(Clone, Debug)]
pub struct Judgment {
    judge: Judge,
    first: AboutCall,
    second: Option<AboutCall>,
    next: Next,
    call: ToolCall,
    word_list: bool,
    proposal_check: Vec<Flag>,
    error: Option<String>,
    is_spent: bool,
}

/// A question about the call.
#[derive(Clone, Debug)]
struct AboutCall {
    id: &'static str,
    key: Key,
    /// Given away when it is put.
    request: Option<Request>,
    /// The probability of a yes, once that is known.
    p: Option<f64>,
}

/// Which question is to be put next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    First,
    Second,
    /// Both were, as far as there are two.
    None,
}

impl Judgment {
    pub(super) fn new(
        judge: &Judge,
        exchange: &Exchange,
        listings: &Listings,
        call: &ToolCall,
        word_list: bool,
    ) -> Self {
        let about = |id, request: Request| AboutCall {
            id,
            key: request.key(),
            request: Some(request),
            p: None,
        };
        let (first, second) = judge.requests(exchange, call);
        let second = judge.second.zip(second);
        Self {
            judge: judge.clone(),
            first: about(FIRST, first),
            second: second.map(|(second, request)| about(second.id(), request)),
            next: Next::First,
            call: call.clone(),
            word_list,
            proposal_check: listings.check(exchange, call),
            error: None,
            is_spent: false,
        }
    }

    /// The next question, or nothing when all were asked or the session may ask no more.
    ///
    /// Taking one is what counts against the budget, whoever answers it. Its answer goes to
    /// [`answered`](Self::answered) before the next is taken.
    pub fn next(&mut self, budget: &mut Budget) -> Option<Request> {
        let (question, next) = match self.next {
            Next::First => (&mut self.first, Next::Second),
            Next::Second => (self.second.as_mut()?, Next::None),
            Next::None => return None,
        };
        if self.is_spent || !budget.take() {
            self.is_spent = true;
            return None;
        }
        self.next = next;
        question.request.take()
    }

    /// Takes in what came of the question last taken: the answers, or why there are none, on
    /// one line. Returns why the question got no probability of a yes, if it got none: that
    /// refuses nothing, and is for a person to see.
    pub fn answered(&mut self, answer: Result<Response, String>) -> Option<&str> {
        let question = match (self.next, &mut self.second) {
            (Next::Second, _) => &mut self.first,
            (Next::None, Some(second)) => second,
            (Next::None, None) | (Next::First, _) => return None,
        };
        let id = question.id;
        let error = match answer.map(|response| response.noul(id)) {
            Ok(Some(p)) => {
                question.p = Some(p);
                return None;
            }
            Ok(None) => format!(
                "the question `{id}` got no yes-or-no answer; delete the cached answer {} to ask again",
                question.key
            ),
            Err(error) => error,
        };
        Some(self.error.insert(error))
    }

    /// The judgment, and the line of the log that tells of it. `waited` is how long the call
    /// waited for it.
    pub fn finish(self, waited: Duration) -> Judged {
        let p_yes = self.first.p;
        let p_second = self.second.as_ref().and_then(|second| second.p);
        let mut counting = vec![("p_yes", p_yes)];
        if self.second.is_some() && !self.judge.second_is_shadow {
            counting.push(("p_second", p_second));
        }
        let failing: Vec<(&str, f64)> = counting
            .iter()
            .filter_map(|(field, p)| Some((*field, (*p)?)))
            .filter(|(_, p)| self.judge.fails(*p))
            .collect();
        let fails = !failing.is_empty();
        let unknown = !fails && counting.iter().any(|(_, p)| p.is_none());
        // When the budget had ended at the first question, the second was not come to.
        let second = self.second.filter(|_| self.next != Next::First);
        Judged {
            refusal: (fails && self.judge.is_enforced).then(|| refusal(&failing)),
            entry: Entry {
                arguments: self.call.arguments,
                enforced: self.judge.is_enforced,
                error: self.error,
                fails,
                key: self.first.key,
                ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
                p_second,
                p_yes,
                proposal_check: self.proposal_check,
                second_key: second.map(|second| second.key),
                second_shadow: self.judge.second_is_shadow.then_some(true),
                skipped: self.is_spent.then(|| SPENT.to_owned()),
                tool: self.call.name,
                unknown,
                word_list: self.word_list,
            },
        }
    }
}

/// Why the agent's call is not made, as [`refusal_text`](crate::refusal_text) takes it.
fn refusal(failing: &[(&str, f64)]) -> String {
    let fields: Vec<String> = failing
        .iter()
        .map(|(field, p)| format!("{field} {p:.2}"))
        .collect();
    format!(
        "{NOT_AGREED} (confirmation judge: {}); \
         describe the change and ask the customer to confirm it first",
        fields.join(", ")
    )
}

/// What came of a judgment.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The line of the confirmation log.
    pub entry: Entry,
    /// Why the call is refused, when it is; what [`refusal_text`](crate::refusal_text) takes.
    pub refusal: Option<String>,
}

/// A line of the confirmation log. Its members are in the order of their names.
///
/// It holds the call's arguments, so it is as sensitive as a session log.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "these are the members of a line, whose format is given"
)]
pub struct Entry {
    /// What the call passes.
    pub arguments: Value,
    /// Whether a write that fails is refused; not whether this one was.
    pub enforced: bool,
    /// Why a question got no probability; the last reason, if there were two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether the answer to a question that counts is below the threshold.
    pub fails: bool,
    /// The key of the first question.
    pub key: Key,
    /// How many milliseconds the call waited for the judge.
    pub ms: u64,
    /// The probability of a yes to the second question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_second: Option<f64>,
    /// The probability of a yes to the first question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_yes: Option<f64>,
    /// The values of the call whose record the exchange chose another of.
    pub proposal_check: Vec<Flag>,
    /// The key of the second question, if it was come to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_key: Option<Key>,
    /// True when the second answer is only logged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_shadow: Option<bool>,
    /// Why a question was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// The tool that is called.
    pub tool: String,
    /// Whether nothing fails and a question that counts got no probability.
    pub unknown: bool,
    /// Whether the word list passes the call.
    pub word_list: bool,
}
