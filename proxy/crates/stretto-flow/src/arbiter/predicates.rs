//! The predicates that an arbiter which is fitted here asks and weighs.
//!
//! A flow and an arbiter's file carry the texts of their own; these are only for new ones.

use crate::file::{Favors, Predicate};

/// The predicates, in the order of their weights.
pub(super) fn usual() -> Vec<Predicate> {
    [
        (
            "list_pending",
            Favors::SameLookup,
            "Is the assistant partway through a set of similar records, with one or more of them still to be read?",
            "A set of records is being gone through, and part of it is unread.",
            "There is no such set, or what matters of it has been read.",
        ),
        (
            "needs_options",
            Favors::AnyLookup,
            "Does the request turn on choices that have not been fetched so far, such as a variant, another product, \
             or another date or route?",
            "Choices the request turns on are missing from the results.",
            "The results cover those choices, or the request turns on none.",
        ),
        (
            "must_ask",
            Favors::HandBack,
            "Is the assistant stuck until the person supplies something no read can supply, like proof of identity, \
             a decision or consent?",
            "Only a question to the person moves things forward.",
            "More reads can still move things forward.",
        ),
    ]
    .into_iter()
    .map(|(id, favors, question, yes, no)| Predicate {
        id: id.to_owned(),
        favors,
        question: question.to_owned(),
        yes: yes.to_owned(),
        no: no.to_owned(),
    })
    .collect()
}
