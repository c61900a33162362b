//! The surprise gate: a session too unlike the training's is left to the agent.

use std::collections::VecDeque;

use crate::decide::prior;
use crate::file::SurpriseGate;
use crate::flow::Flow;
use crate::live::View;

/// A step's probability is not taken to be smaller than this.
pub(crate) const FLOOR: f64 = 1e-6;

/// What one session's steps have scored.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    limit: SurpriseGate,
    latest: VecDeque<f64>,
    /// The mean that tripped the gate, once one has.
    tripped: Option<f64>,
    /// The largest mean of any window so far.
    largest: Option<f64>,
}

impl Gate {
    pub(crate) fn new(limit: SurpriseGate) -> Self {
        Self {
            limit,
            latest: VecDeque::new(),
            tripped: None,
            largest: None,
        }
    }

    /// Scores the agent's step after `view`: its first call's tool, or nothing for a
    /// message, and for the user speaking.
    pub(crate) fn score(&mut self, flow: &Flow, view: &View, step: Option<&str>) {
        let Some((tool, failed)) = &view.last else {
            return;
        };
        let lookups = flow.lookups(tool, *failed);
        if lookups.is_empty() {
            return;
        }
        let (chances, respond) = prior(flow, &view.history, &lookups);
        let offered = lookups.iter().position(|lookup| Some(*lookup) == step);
        let chance = offered.map_or(respond, |index| chances[index]);
        self.add(-chance.max(FLOOR).ln());
    }

    #[expect(clippy::cast_precision_loss, reason = "a window has few steps")]
    fn add(&mut self, nats: f64) {
        self.latest.push_back(nats);
        let window = usize::try_from(self.limit.window).unwrap_or(usize::MAX);
        if self.latest.len() > window {
            self.latest.pop_front();
        }
        if self.latest.len() < window {
            return;
        }
        let mean = self.latest.iter().sum::<f64>() / window as f64;
        self.largest = Some(self.largest.map_or(mean, |largest| largest.max(mean)));
        if mean > self.limit.threshold {
            self.tripped.get_or_insert(mean);
        }
    }

    /// The largest mean of any window so far.
    pub(crate) fn largest(&self) -> Option<f64> {
        self.largest
    }

    /// Why the flow hands back for the rest of the session, once it does.
    pub(crate) fn reason(&self) -> Option<String> {
        self.tripped.map(|mean| {
            let SurpriseGate { window, threshold, .. } = self.limit;
            format!(
                "the session surprised the flow: {mean:.2} nats a step over {window}, above {threshold}"
            )
        })
    }
}
