//! A threshold for each site, chosen on tasks that the flow was not learned from.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{LearnError, LearnOptions, Progress, Session, SiteThresholds, Stage, Surroundings};
use crate::decide::Settings;
use crate::explore::fold;
use crate::flow::Flow;
use crate::score::{PER_CALL, score};

/// How many folds of tasks there are.
const FOLDS: u64 = 5;

/// The thresholds that are tried, from the highest; above 1 a site is switched off.
const TRIED: [f64; 10] = [2.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1];

/// What the flows are learned with, as the one that the thresholds are for.
pub(super) struct Known<'a> {
    pub(super) surroundings: &'a Surroundings,
    pub(super) options: &'a LearnOptions,
    pub(super) alpha: f64,
}

impl Known<'_> {
    /// The threshold of each site that any lookup was made at: that of the most worth, and of
    /// equals the highest. Other sites have shown nothing, and get none.
    ///
    /// # Errors
    ///
    /// What is left without a fold is nothing to learn from.
    pub(super) fn choose(
        &self,
        training: &[&Session],
        how: SiteThresholds,
        progress: &mut Progress<'_>,
    ) -> Result<BTreeMap<String, f64>, LearnError> {
        let mut worths = HashMap::<String, [f64; TRIED.len()]>::new();
        let mut done = 0;
        for own in 0..FOLDS {
            let (left_out, others): (Vec<&Session>, Vec<&Session>) = training
                .iter()
                .partition(|session| fold(session.task(), FOLDS) == own);
            if left_out.is_empty() || others.is_empty() {
                continue;
            }
            let flow = self.learn_part(&others)?;
            for session in left_out {
                progress(Stage::Thresholds, done, training.len());
                done += 1;
                for (index, threshold) in TRIED.into_iter().enumerate() {
                    let settings = Settings {
                        threshold,
                        ..Settings::new(how.decider, "")
                    };
                    let ask = &mut |_: &_| Err("nobody is asked".to_owned());
                    let scored = score(&flow, session, &settings, PER_CALL, &|_| true, ask);
                    for (name, site) in scored.sites {
                        #[expect(clippy::cast_precision_loss, reason = "a session has few lookups")]
                        let (used, lookups) = (site.used as f64, site.lookups as f64);
                        if lookups > 0.0 {
                            let worth = worths.entry(name).or_default();
                            worth[index] += used - how.detour_cost * (lookups - used);
                        }
                    }
                }
            }
        }
        Ok(worths
            .into_iter()
            .map(|(name, worth)| (name, TRIED[first_largest(&worth)]))
            .collect())
    }

    /// A flow learned from some of the sessions, with the whole flow's alpha.
    fn learn_part(&self, sessions: &[&Session]) -> Result<Arc<Flow>, LearnError> {
        let options = LearnOptions {
            draws: 0,
            site_thresholds: None,
            surprise: None,
            ..self.options.clone()
        };
        let mut file = super::learn(sessions, self.surroundings, &options, &mut |_, _, _| {})?;
        file.habit.base.alpha = self.alpha;
        file.habit.beta = self.alpha;
        if let Some(reach) = &mut file.reach {
            reach.alpha = self.alpha;
        }
        Ok(Arc::new(Flow::new(file)))
    }
}

fn first_largest(worth: &[f64]) -> usize {
    let mut best = 0;
    for (index, value) in worth.iter().enumerate() {
        if *value > worth[best] {
            best = index;
        }
    }
    best
}
