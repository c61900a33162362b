//! How a flow does on tasks that it was not learned from.

use std::sync::Arc;

use super::each::each;
use super::{Score, score};
use crate::decide::{Decider, Settings};
use crate::explore::fold;
use crate::flow::Flow;
use crate::learn::{LearnError, LearnOptions, Progress, Session, Surroundings, learn};

/// How to cross-validate.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossValidation {
    /// How many folds of tasks; each is left out once.
    pub folds: u64,
    /// Whose probabilities decide; by default as a served flow's.
    pub decider: Option<Decider>,
    /// The thresholds to score.
    pub thresholds: Vec<f64>,
    /// The most lookups of a run.
    pub per_call: usize,
}

/// One threshold's score over all folds.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// The threshold.
    pub threshold: f64,
    /// What the flows would have done in the sessions that each was not learned from.
    pub score: Score,
}

/// Learns a flow without each fold of tasks, and scores it on the sessions of that fold.
///
/// # Errors
///
/// What is left without a fold is nothing to learn from.
pub fn cross_validate(
    sessions: &[&Session],
    surroundings: &Surroundings,
    options: &LearnOptions,
    how: &CrossValidation,
    progress: &mut Progress<'_>,
) -> Result<Vec<Scores>, LearnError> {
    let mut scores: Vec<Scores> = how
        .thresholds
        .iter()
        .map(|threshold| Scores {
            threshold: *threshold,
            score: Score::default(),
        })
        .collect();
    for own in 0..how.folds {
        let (left_out, others): (Vec<&Session>, Vec<&Session>) = sessions
            .iter()
            .partition(|session| fold(session.task(), how.folds) == own);
        if left_out.is_empty() {
            continue;
        }
        let learned = learn(&others, surroundings, options, progress);
        let learned = learned.map_err(|why| LearnError::Fold {
            folds: how.folds,
            left_out: left_out.len(),
            why: Box::new(why),
        })?;
        let flow = Arc::new(Flow::new(learned));
        let decider = how.decider.unwrap_or_else(|| flow.default_decider());
        for Scores {
            threshold,
            score: total,
        } in &mut scores
        {
            let settings = Settings {
                threshold: *threshold,
                ..Settings::new(decider, "")
            };
            let scores = each(
                &left_out,
                decider,
                &mut |_| {},
                // A flow that is learned here has no arbiter.
                &mut |_| Err("nobody is asked".to_owned()),
                &|session, ask| score(&flow, session, &settings, how.per_call, &|_| true, ask),
            );
            for score in &scores {
                total.add(score);
            }
        }
    }
    Ok(scores)
}
