//! The confirmation judge: did the customer agree to this very change?
//!
//! A change needs the customer's own yes, and whether a reply is one cannot be told by its words alone.
//! The judge puts the last [`Exchange`] and the call to a System-One model, as one or two
//! yes-or-no questions. It judges the calls that a confirmation is asked of
//! ([`Checked::word_list`](crate::Checked::word_list)) and that no enforced rule refuses.
//!
//! Nothing here asks anybody. A [`Judgment`] says what to ask next and is told what came back,
//! so whoever holds the call can do something else meanwhile:
//!
//! ```
//! use std::time::Duration;
//!
//! use serde_json::json;
//! use stretto_guards::confirm::{Judge, Judgment};
//! use stretto_guards::{Exchange, Listings};
//! use stretto_oracle::{Budget, Oracle};
//! use stretto_trace::ToolCall;
//!
//! let judge = Judge { is_enforced: true, ..Judge::new("jev-latest") };
//! let mut budget = Budget::new(100);
//!
//! let mut exchange = Exchange::default();
//! exchange.agent_said("I can cancel #W7a because you no longer need it. Shall I?");
//! exchange.user_said("What would I get back?");
//! let call = ToolCall {
//!     id: "7".to_owned(),
//!     name: "cancel_pending_order".to_owned(),
//!     arguments: json!({"order_id": "#W7a", "reason": "no longer needed"}),
//! };
//!
//! // When the call is read, against the session before it.
//! let mut judgment = judge.judge(&exchange, &Listings::default(), &call, false);
//! // Then, until there is nothing to ask any more.
//! while let Some(request) = judgment.next(&mut budget) {
//!     let answer = Oracle::Mock.answer_now(&request, &request.key());
//!     let answer = answer.map_err(|error| error.one_line());
//!     judgment.answered(answer.map(|answered| answered.expect("a mock answers").response));
//! }
//! let judged = judgment.finish(Duration::from_millis(3));
//!
//! // The mock is of two minds, which passes.
//! assert_eq!(judged.refusal, None);
//! assert_eq!(judged.entry.p_yes, Some(0.5));
//! println!("{}", serde_json::to_string(&judged.entry)?);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod judgment;
mod question;

use serde_json::Value;
use stretto_oracle::Request;
use stretto_trace::ToolCall;

use crate::{Exchange, Listings};

pub use judgment::{Entry, Judged, Judgment, NOT_AGREED};
pub use question::{FIRST, Second, state};

/// The probability of a yes from which a write passes, unless another is named.
pub const THRESHOLD: f64 = 0.5;

/// What the judge asks, and what it does with the answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Judge {
    /// The model that is asked for, which is part of every cached answer's key.
    pub model: String,
    /// A question to ask beside the first.
    pub second: Option<Second>,
    /// Whether the second answer is only logged.
    pub second_is_shadow: bool,
    /// The least probability of a yes that passes. One equal to it passes.
    pub threshold: f64,
    /// Whether a write that fails is refused, not only logged.
    pub is_enforced: bool,
}

impl Judge {
    /// A judge that asks `model` one question and refuses nothing.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            second: None,
            second_is_shadow: false,
            threshold: THRESHOLD,
            is_enforced: false,
        }
    }

    /// Begins to judge a call, against the session before it.
    ///
    /// `word_list` is what the word list says of it, and `listings` what the session's results
    /// have held, for the check that is logged beside.
    pub fn judge(
        &self,
        exchange: &Exchange,
        listings: &Listings,
        call: &ToolCall,
        word_list: bool,
    ) -> Judgment {
        Judgment::new(self, exchange, listings, call, word_list)
    }

    /// The questions about a call: the first, and the second if one is asked. Each is a request
    /// of its own, over the same state, with its one question under [`FIRST`] or
    /// [`Second::id`].
    pub fn requests(&self, exchange: &Exchange, call: &ToolCall) -> (Request, Option<Request>) {
        let state = state(exchange, call);
        let second = self
            .second
            .map(|second| self.request(second.id(), state.clone()));
        (self.request(FIRST, state), second)
    }

    fn request(&self, id: &str, state: Value) -> Request {
        Request {
            model: self.model.clone(),
            state,
            questions: [(id.to_owned(), question::by_id(id).clone())].into(),
        }
    }

    /// Whether a probability of a yes is too low to pass.
    pub fn fails(&self, p: f64) -> bool {
        p < self.threshold
    }
}

#[cfg(test)]
mod tests;
