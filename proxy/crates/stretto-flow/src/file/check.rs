//! The checks of a flow that has been read, in the order in which they are made.

use super::{BackOff, FlowError, FlowFile};
use crate::program;
use crate::step;

/// How many weights a fit has beside those of the weighed predicates.
const OWN_WEIGHTS: usize = 5;

impl FlowFile {
    /// Checks that the parts belong together and can be served.
    pub(super) fn check(&self) -> Result<(), FlowError> {
        if self.stretto_flow == 1 {
            if !self.thresholds.is_empty() {
                return Err(FlowError::ThresholdsInFirst);
            }
            if let Some(field) = self.bindings.newer_field() {
                return Err(FlowError::BindingsInFirst(field));
            }
            if self.surprise.is_some() {
                return Err(FlowError::SurpriseInFirst);
            }
        }
        if self.surprise.is_some_and(|gate| gate.window == 0) {
            return Err(FlowError::EmptyWindow);
        }
        program::check(&self.program).map_err(FlowError::Program)?;
        self.check_arbiter()?;
        self.check_vocab()?;
        self.check_model("habit.base", &self.habit.base)?;
        check_concentration("habit.beta", self.habit.beta)?;
        for (group, level) in &self.habit.top {
            check_level(
                &format!("habit.top of group {group}"),
                level,
                self.habit.base.order,
            )?;
        }
        match &self.reach {
            Some(reach) => self.check_model("reach", reach),
            None => Ok(()),
        }
    }

    fn check_arbiter(&self) -> Result<(), FlowError> {
        if !matches!(self.folds.len(), 0 | 5) {
            return inconsistent("folds", format!("{} fits, not 0 or 5", self.folds.len()));
        }
        let expected = self.weighed.len() + OWN_WEIGHTS;
        for (index, fit) in self.folds.iter().enumerate() {
            if fit.weights.len() != expected {
                let why = format!(
                    "{} weights, not {expected} ({OWN_WEIGHTS} and one per weighed predicate)",
                    fit.weights.len()
                );
                return inconsistent(&format!("folds[{index}].weights"), why);
            }
        }
        Ok(())
    }

    fn check_vocab(&self) -> Result<(), FlowError> {
        if self.vocab.len() > step::MAX_ACTION as usize {
            let why = format!("{} actions, more than ids can tell apart", self.vocab.len());
            return inconsistent("vocab", why);
        }
        let mut seen = std::collections::BTreeSet::new();
        match self.vocab.iter().find(|action| !seen.insert(*action)) {
            Some(twice) => inconsistent("vocab", format!("{twice:?} comes twice")),
            None => Ok(()),
        }
    }

    fn check_model(&self, field: &str, model: &BackOff) -> Result<(), FlowError> {
        let levels = model.levels.len();
        if model.order.checked_add(1) != Some(levels) {
            let why = format!(
                "{levels} levels, not one more than the order {}",
                model.order
            );
            return inconsistent(&format!("{field}.levels"), why);
        }
        if model.vocab_size != self.vocab_size() {
            let why = format!(
                "{}, not {} (the actions of `vocab`, and one for all others)",
                model.vocab_size,
                self.vocab_size()
            );
            return inconsistent(&format!("{field}.vocab_size"), why);
        }
        check_concentration(&format!("{field}.alpha"), model.alpha)?;
        for (length, level) in model.levels.iter().enumerate() {
            check_level(&format!("{field}.levels[{length}]"), level, length)?;
        }
        Ok(())
    }
}

/// Histories of one length, and counts that are none below zero.
fn check_level(
    field: &str,
    level: &std::collections::BTreeMap<Vec<u32>, super::Counts>,
    length: usize,
) -> Result<(), FlowError> {
    for (history, counts) in level {
        if history.len() != length {
            return inconsistent(
                field,
                format!("the history {history:?} has not {length} symbols"),
            );
        }
        let is_count = |count: f64| count.is_finite() && count >= 0.0;
        if !is_count(counts.total) || !counts.by_action.values().all(|count| is_count(*count)) {
            return inconsistent(field, format!("a count after {history:?} is below zero"));
        }
    }
    Ok(())
}

/// Dividing by counts and a concentration needs the latter above zero.
fn check_concentration(field: &str, value: f64) -> Result<(), FlowError> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    inconsistent(field, format!("{value} is not above zero"))
}

fn inconsistent(field: &str, why: String) -> Result<(), FlowError> {
    Err(FlowError::Inconsistent {
        field: field.to_owned(),
        why,
    })
}
