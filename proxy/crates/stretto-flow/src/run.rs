//! A flow's run after one of the agent's calls, one step at a time.
//!
//! The run is a program, executed by an asynchronous handler. There is no executor: the session
//! polls the handler's future whenever it has an answer, which it leaves in a cell for it.

mod handler;
mod record;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use fugue::Trace;

use self::handler::{Exchange, Handler};
pub use self::record::{RunRecord, ScoreError, Scored, SiteValue, TracedSite};
use crate::flow::Flow;
use crate::program;

/// A run of a flow's program.
pub struct Run {
    future: Option<Pin<Box<dyn Future<Output = Trace> + Send>>>,
    exchange: Arc<Mutex<Exchange>>,
    call: String,
    failed: bool,
    max_lookups: u32,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("call", &self.call)
            .field("failed", &self.failed)
            .field("has_ended", &self.future.is_none())
            .finish_non_exhaustive()
    }
}

/// What a run waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// For a decision: answer with [`Answer::LookUp`] or [`Answer::HandBack`].
    Decide(DecisionSite),
    /// For the result of the lookup that was decided on: answer with [`Answer::Returned`].
    LookUp {
        /// Where the outcome stands in the run, such as `outcome#0`.
        address: String,
        /// The tool.
        tool: String,
    },
    /// For nothing: the run has ended, and the agent gets its result. The record is absent
    /// when the program gave up.
    HandBack(Option<RunRecord>),
}

/// A decision in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionSite {
    /// Where the decision stands in the run, such as `decide#0`.
    pub address: String,
    /// The lookups that the program offers there.
    pub offered: Vec<String>,
}

impl DecisionSite {
    /// Whether the program offers a lookup of `tool`. A decision for another is to be
    /// taken as handing back.
    pub fn offers(&self, tool: &str) -> bool {
        self.offered.iter().any(|offered| offered == tool)
    }
}

/// The answer to what a run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Look this tool up.
    LookUp(String),
    /// Hand back to the agent.
    HandBack,
    /// The lookup returned; whether it succeeded.
    Returned(bool),
}

impl Flow {
    /// Starts the run after a call of `call`, and returns it with what it waits for first.
    ///
    /// `max_lookups` is the most lookups that the run may make.
    pub fn run(&self, call: &str, failed: bool, max_lookups: u32) -> (Run, Next) {
        let exchange = Arc::new(Mutex::new(Exchange::default()));
        let program = &self.file().program;
        let compiled = program::compile(program, &self.statistics, call, failed, max_lookups);
        let mut run = Run {
            // It compiled when the flow was read, with the same names and other numbers.
            future: compiled.ok().map(|compiled| {
                let handler = Handler::new(Arc::clone(&exchange), Arc::clone(&self.statistics));
                let model = compiled.build();
                let future = async move { fugue::run_async(handler, model).await.1 };
                Box::pin(future) as Pin<Box<dyn Future<Output = Trace> + Send>>
            }),
            exchange,
            call: call.to_owned(),
            failed,
            max_lookups,
        };
        let next = run.advance();
        (run, next)
    }
}

impl Run {
    /// Gives the run what it waits for, and returns what it waits for next.
    ///
    /// A lookup that the program does not offer, and an answer to something else than what
    /// the run waits for, are taken as handing back or as a failure.
    pub fn resume(&mut self, answer: Answer) -> Next {
        lock(&self.exchange).answer = Some(answer);
        self.advance()
    }

    fn advance(&mut self) -> Next {
        let Some(future) = &mut self.future else {
            return Next::HandBack(None);
        };
        match future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(trace) => {
                self.future = None;
                let call = std::mem::take(&mut self.call);
                let record = RunRecord::new(call, self.failed, self.max_lookups, &trace);
                Next::HandBack(Some(record))
            }
            Poll::Pending => {
                let asked = lock(&self.exchange).asked.take();
                // Without one it waits for nothing, and would do so for ever.
                asked.unwrap_or_else(|| {
                    self.future = None;
                    Next::HandBack(None)
                })
            }
        }
    }
}

fn lock(exchange: &Mutex<Exchange>) -> std::sync::MutexGuard<'_, Exchange> {
    exchange.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
