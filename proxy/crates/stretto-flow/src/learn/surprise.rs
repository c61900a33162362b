//! The threshold of the surprise gate.

use std::sync::Arc;

use super::{Progress, Session, Stage};
use crate::explore::fold;
use crate::file::{BackOff, FlowFile, Habit, SurpriseGate};
use crate::flow::Flow;
use crate::live::Live;
use crate::step::{self, Vocabulary};

/// How many steps a gate averages.
const WINDOW: u64 = 5;

/// How many folds of tasks there are.
const FOLDS: u64 = 5;

/// A gate that as many of the training sessions stay below as `quantile` says, each
/// measured by a habit that was learned without its fold of tasks. There is none when no
/// session has enough steps.
pub(super) fn gate(
    training: &[&Session],
    file: &FlowFile,
    quantile: f64,
    progress: &mut Progress<'_>,
) -> Option<SurpriseGate> {
    let mut largest = Vec::new();
    let mut done = 0;
    for own in 0..FOLDS {
        let (left_out, others): (Vec<&Session>, Vec<&Session>) = training
            .iter()
            .partition(|session| fold(session.task(), FOLDS) == own);
        if left_out.is_empty() {
            continue;
        }
        let open = SurpriseGate {
            window: WINDOW,
            threshold: f64::INFINITY,
            quantile: None,
        };
        let habit = habit(&others, file);
        let flow = Arc::new(Flow::new(FlowFile {
            habit,
            surprise: Some(open),
            ..file.clone()
        }));
        for session in left_out {
            progress(Stage::Surprise, done, training.len());
            done += 1;
            let mut live = Live::new(Arc::clone(&flow));
            live.follow(&session.episode.events);
            largest.extend(live.gate.and_then(|gate| gate.largest()));
        }
    }
    largest.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, and the rank is cut to the sessions there are"
    )]
    let rank = (quantile * largest.len() as f64).ceil() as usize;
    let threshold = *largest.get(rank.max(1) - 1).or(largest.last())?;
    Some(SurpriseGate {
        window: WINDOW,
        threshold,
        quantile: Some(quantile),
    })
}

fn habit(sessions: &[&Session], file: &FlowFile) -> Habit {
    let vocabulary = Vocabulary::new(&file.vocab);
    let order = file.habit.base.order;
    let mut base = BackOff::new(order, file.habit.base.alpha, file.vocab_size());
    for session in sessions {
        let steps = step::steps(&session.episode.events, &vocabulary, &file.map);
        let symbols: Vec<u32> = steps.iter().map(|(step, _)| step.symbol()).collect();
        for (at, (step, _)) in steps.iter().enumerate() {
            base.learn(&symbols[at.saturating_sub(order)..at], &[step.action], 1.0);
        }
    }
    let top = [(file.group, base.levels[order].clone())].into();
    Habit {
        base,
        beta: file.habit.beta,
        top,
    }
}
