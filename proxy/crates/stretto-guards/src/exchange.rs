//! The last exchange of a conversation: what the customer last said, and what it answers.

/// What the customer said last, and what the agent had said last before that.
///
/// Only the agent's words before the customer's last message belong to it. A customer who writes
/// twice in a row answers the same words both times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The agent's last words so far. They become the proposal when the customer speaks.
    agent_said_last: String,
    proposal: String,
    reply: Option<String>,
}

impl Exchange {
    /// Takes in a message of the customer's. An empty one is a reply like any other.
    pub fn user_said(&mut self, text: &str) {
        self.proposal.clone_from(&self.agent_said_last);
        self.reply = Some(text.to_owned());
    }

    /// Takes in what the agent said in a turn. Blank text is nothing said.
    pub fn agent_said(&mut self, text: &str) {
        if !text.trim().is_empty() {
            text.clone_into(&mut self.agent_said_last);
        }
    }

    /// What the agent had said last when the customer last spoke, empty when nothing.
    pub fn proposal(&self) -> &str {
        &self.proposal
    }

    /// The customer's last message, if there was one.
    pub fn reply(&self) -> Option<&str> {
        self.reply.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reply_answers_what_the_agent_said_before_it() {
        let mut exchange = Exchange::default();
        assert_eq!((exchange.proposal(), exchange.reply()), ("", None));

        exchange.agent_said("Shall I cancel it?");
        assert_eq!((exchange.proposal(), exchange.reply()), ("", None));

        exchange.user_said("Yes");
        exchange.agent_said("Done.");
        assert_eq!(
            (exchange.proposal(), exchange.reply()),
            ("Shall I cancel it?", Some("Yes"))
        );
    }

    #[test]
    fn a_second_message_in_a_row_answers_the_same_words() {
        let mut exchange = Exchange::default();
        exchange.agent_said("Shall I?");
        exchange.user_said("Wait");
        exchange.user_said("");
        assert_eq!(
            (exchange.proposal(), exchange.reply()),
            ("Shall I?", Some(""))
        );
    }

    #[test]
    fn blank_words_of_the_agent_replace_nothing() {
        let mut exchange = Exchange::default();
        exchange.agent_said(" Shall I? ");
        exchange.agent_said(" \n\u{a0}");
        exchange.user_said("yes");
        assert_eq!(exchange.proposal(), " Shall I? ");
    }

    #[test]
    fn a_customer_who_speaks_first_answers_nothing() {
        let mut exchange = Exchange::default();
        exchange.user_said("Hello");
        assert_eq!((exchange.proposal(), exchange.reply()), ("", Some("Hello")));
    }
}
