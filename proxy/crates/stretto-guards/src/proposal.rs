//! The proposal check: does the call use another record than the one that was agreed on?
//!
//! A customer who is asked about one order and says yes has agreed to that order. When the call
//! then passes another order of the same list, somebody should know. The check needs no model:
//! it looks for the lists that the session's results held, such as a user's orders or payment
//! methods, and for the records of a list that the last exchange names. It misses lapses and
//! flags good calls now and then, so nothing is refused for it; it is logged beside the
//! confirmation judge's answer.

mod lists;
mod naming;

use serde::Serialize;
use stretto_trace::{Event, ToolCall};

use crate::exchange::Exchange;
use lists::{List, scalars};
use naming::Words;

pub use lists::Listings;

/// A value of a call whose record is not the one that the exchange chose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flag {
    /// The call's argument.
    pub argument: String,
    /// The value in it, trimmed and in lower case.
    pub value: String,
}

impl Listings {
    /// Takes in an event of an episode. Only results matter.
    pub fn observe(&mut self, event: &Event) {
        if let Event::ToolResult { error, content, .. } = event {
            self.returned(*error, content);
        }
    }

    /// The values of a call whose record the exchange chose another of, by argument and then in
    /// the order in which they stand in it. A value that is passed twice is flagged twice.
    ///
    /// ```
    /// use serde_json::json;
    /// use stretto_guards::{Exchange, Listings};
    /// use stretto_trace::ToolCall;
    ///
    /// let mut listings = Listings::default();
    /// listings.returned(false, r##"{"user_id": "user_7", "orders": ["#W7a", "#W7b"]}"##);
    /// let mut exchange = Exchange::default();
    /// exchange.agent_said("I can cancel order #W7a. Shall I?");
    /// exchange.user_said("Yes, please.");
    ///
    /// let call = ToolCall {
    ///     id: "3".to_owned(),
    ///     name: "cancel_pending_order".to_owned(),
    ///     arguments: json!({"order_id": "#W7b"}),
    /// };
    /// let flags = listings.check(&exchange, &call);
    /// assert_eq!((flags[0].argument.as_str(), flags[0].value.as_str()), ("order_id", "#w7b"));
    /// ```
    pub fn check(&self, exchange: &Exchange, call: &ToolCall) -> Vec<Flag> {
        let Some(arguments) = call.arguments.as_object() else {
            return Vec::new();
        };
        let proposal = Words::of(exchange.proposal());
        let reply = Words::of(exchange.reply().unwrap_or_default());
        let passed = scalars(&call.arguments);

        let mut flags = Vec::new();
        for (argument, given) in arguments {
            for value in scalars(given) {
                let of_another = self.with_latest_list(&value, |list| {
                    let chosen = chosen(list, &proposal, &reply);
                    is_of_another(list, &chosen, &passed)
                });
                if of_another == Some(true) {
                    flags.push(Flag {
                        argument: argument.clone(),
                        value,
                    });
                }
            }
        }
        flags
    }
}

/// The records of a list that the exchange chose, by their place in it: those the reply names,
/// or else the only one that the proposal names. A proposal that names several offers a choice
/// and makes none.
fn chosen(list: &List, proposal: &Words, reply: &Words) -> Vec<usize> {
    let named = list.named_in(reply);
    if !named.is_empty() {
        return named;
    }
    let named = list.named_in(proposal);
    if named.len() == 1 { named } else { Vec::new() }
}

/// Whether records were chosen and the call passes none of them. It passes one when some argument
/// is a field of it: the value that is looked at, or another one. The latter spares an exchange,
/// which passes both the item that the reply names and the one that takes its place.
fn is_of_another(list: &List, chosen: &[usize], passed: &[String]) -> bool {
    let records = chosen.iter().map(|&place| &list.records[place]);
    let mut fields = records.flat_map(|record| &record.fields);
    !chosen.is_empty() && !fields.any(|field| passed.contains(field))
}

#[cfg(test)]
mod tests;
