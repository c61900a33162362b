//! What flows would have done on tasks that they were not learned from, as a report.

use std::fmt::Write as _;

use serde::Serialize;
use stretto_flow::{CrossValidation, Decider, LearnOptions, Scores, Session};

/// The report of a cross-validation.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    folds: u64,
    decider: &'static str,
    history: usize,
    every_session: bool,
    detour_cost: Option<f64>,
    sessions: usize,
    successful: usize,
    scores: Vec<Line>,
}

/// One threshold.
#[derive(Debug, Serialize)]
struct Line {
    threshold: f64,
    decisions: u64,
    lookups: u64,
    used: u64,
    detours: u64,
    turns_spared: u64,
    turns: u64,
    share_spared: f64,
}

impl Report {
    pub(super) fn new(
        how: &CrossValidation,
        options: &LearnOptions,
        sessions: &[&Session],
        scores: &[Scores],
    ) -> Self {
        let successful = sessions
            .iter()
            .filter(|session| session.episode.succeeded())
            .count();
        Self {
            folds: how.folds,
            // Every flow that is learned has the counts of reach.
            decider: how.decider.unwrap_or(Decider::Reach).name(),
            history: options.order,
            every_session: options.every_session,
            detour_cost: options.site_thresholds.map(|how| how.detour_cost),
            sessions: sessions.len(),
            successful,
            scores: scores.iter().map(Line::of).collect(),
        }
    }

    pub(super) fn markdown(&self) -> String {
        let Self {
            folds,
            decider,
            history,
            every_session,
            detour_cost,
            sessions,
            successful,
            scores,
        } = self;
        let teachers = if *every_session {
            "sessions"
        } else {
            "successful sessions"
        };
        let mut how = format!("decided by {decider}, after the latest {history} steps");
        if let Some(cost) = detour_cost {
            write!(
                how,
                ", at thresholds of each site's own with a detour at {cost}"
            )
            .expect("memory takes every write");
        }
        let mut text = format!(
            "# Cross-validation\n\n\
             {sessions} sessions, {successful} of them successful; {folds} folds of tasks; {how}. \
             Each flow was learned from the {teachers} of the other folds, and scored on all sessions of the fold left out.\n\n\
             | threshold | decisions | lookups | used | detours | turns spared | of all turns |\n\
             |---:|---:|---:|---:|---:|---:|---:|\n"
        );
        for line in scores {
            let Line {
                threshold,
                decisions,
                lookups,
                used,
                detours,
                turns_spared,
                turns,
                ..
            } = line;
            let share = line.share_spared * 100.0;
            writeln!(
                text,
                "| {threshold} | {decisions} | {lookups} | {used} | {detours} | {turns_spared} | \
                 {share:.1}% of {turns} |"
            )
            .expect("memory takes every write");
        }
        text
    }
}

impl Line {
    #[expect(clippy::cast_precision_loss, reason = "turns are far below 2^53")]
    fn of(Scores { threshold, score }: &Scores) -> Self {
        Self {
            threshold: *threshold,
            decisions: score.decisions(),
            lookups: score.lookups(),
            used: score.used(),
            detours: score.detours(),
            turns_spared: score.turns_spared,
            turns: score.turns,
            share_spared: score.turns_spared as f64 / (score.turns as f64).max(1.0),
        }
    }
}
