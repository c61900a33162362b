//! Questions on their way to a System-One model.

use std::collections::HashMap;

use stretto_oracle::{Answered, AskError, Oracle, Request, Response};
use tokio::task::{Id, JoinSet};
use tracing::warn;

use crate::session::Ticket;

/// Asks, beside everything else.
///
/// Dropping it gives up what is still asked.
#[derive(Debug, Default)]
pub(crate) struct Asker {
    oracle: Option<Oracle>,
    asked: JoinSet<Result<Answered, AskError>>,
    /// Whose question each task asks.
    tickets: HashMap<Id, Ticket>,
    has_said_not_kept: bool,
}

impl Asker {
    /// Asks `oracle`.
    pub(crate) fn of(oracle: Oracle) -> Self {
        Self {
            oracle: Some(oracle),
            ..Self::default()
        }
    }

    /// Puts a question. Its answer comes from [`Asker::next`].
    pub(crate) fn ask(&mut self, ticket: Ticket, request: Request) {
        // A session without an oracle has nothing that asks.
        let Some(oracle) = self.oracle.clone() else {
            return;
        };
        let task = self.asked.spawn(async move { oracle.ask(request).await });
        self.tickets.insert(task.id(), ticket);
    }

    /// Whether any question is open.
    pub(crate) fn is_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// The next answer, or why there is none, on one line. For ever pending when nothing is asked. Cancel safe.
    pub(crate) async fn next(&mut self) -> (Ticket, Result<Response, String>) {
        loop {
            let (task, answer) = match self.asked.join_next_with_id().await {
                Some(Ok(done)) => done,
                // Whoever waits for it goes on without it, whatever broke.
                Some(Err(error)) => (error.id(), Err(AskError::Ending)),
                None => std::future::pending().await,
            };
            if let Some(ticket) = self.tickets.remove(&task) {
                return (ticket, self.unpack(answer));
            }
        }
    }

    fn unpack(&mut self, answer: Result<Answered, AskError>) -> Result<Response, String> {
        let answered = answer.map_err(|error| error.one_line())?;
        if let Some(error) = &answered.not_kept
            && !self.has_said_not_kept
        {
            self.has_said_not_kept = true;
            warn!("an answer could not be kept: {error}; it is asked for again the next time");
        }
        Ok(answered.response)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stretto_oracle::{Cache, Question};

    use super::*;

    fn request(state: u32) -> Request {
        Request {
            model: "m".to_owned(),
            state: json!(state),
            questions: [("q".to_owned(), Question::noul("?"))].into(),
        }
    }

    #[tokio::test]
    async fn each_answer_comes_with_the_ticket_of_its_question() {
        let mut asker = Asker::of(Oracle::Mock);
        asker.ask(Ticket::of_test(1), request(1));
        asker.ask(Ticket::of_test(2), request(2));
        let mut tickets = Vec::new();
        while asker.is_asked() {
            let (ticket, answer) = asker.next().await;
            assert_eq!(answer.unwrap().noul("q"), Some(0.5));
            tickets.push(ticket);
        }
        tickets.sort_by_key(|ticket| *ticket != Ticket::of_test(1));
        assert_eq!(tickets, [1, 2].map(Ticket::of_test));
    }

    #[tokio::test]
    async fn a_question_whose_task_ends_without_an_answer_is_told_so() {
        let folder = tempfile::tempdir().unwrap();
        let mut asker = Asker::of(Oracle::Replay(Cache::new(folder.path())));
        asker.ask(Ticket::of_test(7), request(7));
        asker.asked.abort_all();
        let (ticket, answer) = asker.next().await;
        assert_eq!(ticket, Ticket::of_test(7));
        let expected = "the question was given up before an answer came";
        assert_eq!(answer, Err(expected.to_owned()));
    }
}
