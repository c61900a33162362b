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
