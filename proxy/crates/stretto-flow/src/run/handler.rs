//! The handler of a live run: it asks, and waits for the answer.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use fugue::core::address::Address;
use fugue::{AsyncHandler, ChoiceValue, Distribution, Trace};

use super::{Answer, DecisionSite, Next, lock};
use crate::program::{Decide, Statistics};

/// How many sites and factors a run may come to. A program that comes to more does not end,
/// or not for the sake of lookups.
const MOST_STEPS: usize = 4096;

/// What passes between a run and its session.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    pub(super) asked: Option<Next>,
    pub(super) answer: Option<Answer>,
}

/// Takes decisions from the session and outcomes from the server.
pub(super) struct Handler {
    exchange: Arc<Mutex<Exchange>>,
    statistics: Arc<Statistics>,
    trace: Trace,
    /// The lookup that was decided on and not yet made.
    decided: Option<String>,
    steps: usize,
}

impl Handler {
    pub(super) fn new(exchange: Arc<Mutex<Exchange>>, statistics: Arc<Statistics>) -> Self {
        Self {
            exchange,
            statistics,
            trace: Trace::default(),
            decided: None,
            steps: 0,
        }
    }

    /// Counts a step. Past the most that a run may take, it waits for nothing, which ends it.
    async fn step(&mut self) {
        self.steps += 1;
        let steps = self.steps;
        poll_fn(|_| {
            if steps <= MOST_STEPS {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    async fn ask(&self, next: Next) -> Answer {
        lock(&self.exchange).asked = Some(next);
        poll_fn(|_| match lock(&self.exchange).answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        })
        .await
    }

    /// Takes what stands at a site that neither the session nor the server answers.
    fn record(&mut self, addr: &Address, value: ChoiceValue, logp: f64) {
        self.trace.insert_choice(addr.clone(), value, logp);
    }

    fn observe<T>(&mut self, dist: &dyn Distribution<T>, value: &T) {
        self.trace.log_likelihood += dist.log_prob(value);
    }
}

impl AsyncHandler for Handler {
    async fn on_sample_usize(&mut self, addr: &Address, dist: &dyn Distribution<usize>) -> usize {
        self.step().await;
        let offered = dist
            .downcast_ref::<Decide>()
            .map(|site| Arc::clone(&site.meta().offered));
        let mut chosen = 0;
        self.decided = None;
        if let Some(offered) = offered {
            let name = |number: &usize| self.statistics.lookup(*number).map(str::to_owned);
            let names: Vec<String> = offered.iter().filter_map(name).collect();
            let site = DecisionSite {
                address: addr.to_string(),
                offered: names.clone(),
            };
            if let Answer::LookUp(tool) = self.ask(Next::Decide(site)).await
                && let Some(at) = names.iter().position(|offered| *offered == tool)
            {
                chosen = offered[at];
                self.decided = Some(tool);
            }
        }
        // The choice was the rule's; nothing was drawn.
        self.record(addr, ChoiceValue::Usize(chosen), 0.0);
        chosen
    }

    async fn on_sample_bool(&mut self, addr: &Address, dist: &dyn Distribution<bool>) -> bool {
        self.step().await;
        let succeeded = match self.decided.take() {
            Some(tool) => {
                let look_up = Next::LookUp {
                    address: addr.to_string(),
                    tool,
                };
                self.ask(look_up).await == Answer::Returned(true)
            }
            None => false,
        };
        let logp = dist.log_prob(&succeeded);
        self.record(addr, ChoiceValue::Bool(succeeded), logp);
        self.trace.log_likelihood += logp;
        succeeded
    }

    async fn on_sample_f64(&mut self, addr: &Address, _: &dyn Distribution<f64>) -> f64 {
        self.step().await;
        self.record(addr, ChoiceValue::F64(0.0), 0.0);
        0.0
    }

    async fn on_sample_u64(&mut self, addr: &Address, _: &dyn Distribution<u64>) -> u64 {
        self.step().await;
        self.record(addr, ChoiceValue::U64(0), 0.0);
        0
    }

    async fn on_sample_i64(&mut self, addr: &Address, _: &dyn Distribution<i64>) -> i64 {
        self.step().await;
        self.record(addr, ChoiceValue::I64(0), 0.0);
        0
    }

    async fn on_observe_f64(&mut self, _: &Address, dist: &dyn Distribution<f64>, value: f64) {
        self.step().await;
        self.observe(dist, &value);
    }

    async fn on_observe_bool(&mut self, _: &Address, dist: &dyn Distribution<bool>, value: bool) {
        self.step().await;
        self.observe(dist, &value);
    }

    async fn on_observe_u64(&mut self, _: &Address, dist: &dyn Distribution<u64>, value: u64) {
        self.step().await;
        self.observe(dist, &value);
    }

    async fn on_observe_usize(
        &mut self,
        _: &Address,
        dist: &dyn Distribution<usize>,
        value: usize,
    ) {
        self.step().await;
        self.observe(dist, &value);
    }

    async fn on_observe_i64(&mut self, _: &Address, dist: &dyn Distribution<i64>, value: i64) {
        self.step().await;
        self.observe(dist, &value);
    }

    async fn on_factor(&mut self, logw: f64) {
        self.step().await;
        self.trace.log_factors += logw;
    }

    async fn finish(self) -> Trace {
        self.trace
    }
}
