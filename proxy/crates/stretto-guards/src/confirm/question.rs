//! What is asked about a call, and what it is asked about.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};
use stretto_oracle::Question;
use stretto_trace::ToolCall;

use crate::Exchange;

/// How much of the agent's words the model sees: this many characters from their end.
const PROPOSAL_LENGTH: usize = 1500;

/// How much of the customer's reply the model sees: this many characters from its beginning.
const REPLY_LENGTH: usize = 600;

/// The id of the question that is always asked, and first: whether the reply explicitly agrees
/// to this very change.
pub const FIRST: &str = "confirmed";

/// What may be asked beside the first question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    /// Whether the agent had put the change forward before the reply.
    Proposed,
    /// Whether the agent's message alone spells the change out. Too literal for most agents,
    /// who seldom repeat every detail.
    Described,
}

impl Second {
    /// The question's id in a request.
    pub fn id(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Described => "described",
        }
    }
}

/// A question, word for word: its text is part of the key of every answer.
pub(super) fn by_id(id: &str) -> &'static Question {
    &QUESTIONS[id]
}

/// The questions by their ids, from a file whose every character is part of the keys.
static QUESTIONS: LazyLock<BTreeMap<String, Question>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct File {
        questions: BTreeMap<String, Question>,
    }
    let file: File = serde_json::from_str(include_str!("questions.json"))
        .expect("the file is part of the program, and a test reads it");
    file.questions
});

/// What the model sees of a session: the last exchange and the call, and nothing else.
///
/// Long words are cut without a mark: the agent's at their beginning, since a proposal ends
/// with what is proposed, the customer's at their end.
pub fn state(exchange: &Exchange, call: &ToolCall) -> Value {
    json!({
        "agent_said_last": last(exchange.proposal(), PROPOSAL_LENGTH),
        "customer_replied": first(exchange.reply().unwrap_or_default(), REPLY_LENGTH),
        "call_about_to_be_made": {"tool": call.name, "arguments": call.arguments},
    })
}

/// The first `count` characters.
fn first(text: &str, count: usize) -> &str {
    let end = text.char_indices().nth(count);
    end.map_or(text, |(end, _)| text.split_at(end).0)
}

/// The last `count` characters.
fn last(text: &str, count: usize) -> &str {
    let start = count
        .checked_sub(1)
        .and_then(|before| text.char_indices().nth_back(before));
    start.map_or(text, |(start, _)| text.split_at(start).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_is_in_the_file_with_both_meanings() {
        for id in [FIRST, Second::Proposed.id(), Second::Described.id()] {
            assert!(
                matches!(
                    by_id(id),
                    Question::Noul {
                        criteria: Some(_),
                        ..
                    }
                ),
                "{id}"
            );
        }
    }

    #[test]
    fn cuts_count_characters_of_any_size_and_add_no_mark() {
        for character in ["x", "é", "漢", "🙂"] {
            let text = format!("<{}>", character.repeat(1500));
            assert_eq!(
                last(&text, PROPOSAL_LENGTH),
                format!("{}>", character.repeat(1499))
            );
            assert_eq!(
                first(&text, REPLY_LENGTH),
                format!("<{}", character.repeat(599))
            );
        }
        for length in [0, 1, 599, 600] {
            let text = "é".repeat(length);
            assert_eq!(first(&text, REPLY_LENGTH), text);
            assert_eq!(last(&text, PROPOSAL_LENGTH), text);
        }
        assert_eq!(
            last(&"é".repeat(1500), PROPOSAL_LENGTH).chars().count(),
            1500
        );
    }

    #[test]
    fn nothing_is_trimmed_and_silence_is_empty() {
        let call = ToolCall {
            id: "1".to_owned(),
            name: "cancel_pending_order".to_owned(),
            arguments: json!({}),
        };
        let mut exchange = Exchange::default();
        let shown = |exchange: &Exchange| {
            let state = state(exchange, &call);
            [
                state["agent_said_last"].clone(),
                state["customer_replied"].clone(),
            ]
        };
        exchange.agent_said(" Shall I?\n");
        assert_eq!(shown(&exchange), ["", ""]);
        exchange.user_said(" Yes. ");
        exchange.agent_said("Done.");
        assert_eq!(shown(&exchange), [" Shall I?\n", " Yes. "]);
        assert_eq!(
            state(&exchange, &call)["call_about_to_be_made"],
            json!({"tool": "cancel_pending_order", "arguments": {}})
        );
    }
}
