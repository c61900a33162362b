//! How many observations a shorter history counts for.
//!
//! Alpha is drawn from its posterior: the prior is log-normal around 1, and the likelihood
//! is that of the sessions' steps, each predicted from those before it. The draws are part
//! of what a flow is: the same sessions and seed give the same alpha, to the bit.

use std::collections::HashMap;
use std::sync::Arc;

use fugue::{ModelExt, Normal, adaptive_mcmc_chain, addr, factor, sample};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::{LearnOptions, Lesson, Progress, Stage};
use crate::file::BackOff;
use crate::step;

/// The standard deviation of alpha's logarithm before any session is seen.
const SPREAD: f64 = 2.0;

/// What each step's prediction was made from: at each level, how often the history had come
/// and how often with this action. They do not depend on alpha, so they are counted once.
#[derive(Debug, Default)]
pub(super) struct Prequential {
    /// One pair for each level, step after step.
    counts: Vec<(f64, f64)>,
    levels: usize,
    vocab_size: usize,
}

impl Prequential {
    fn of(lesson: &Lesson<'_>) -> Self {
        let mut seen = HashMap::<(usize, Vec<u32>), (f64, HashMap<u32, f64>)>::new();
        let order = lesson.order;
        let mut counts = Vec::new();
        for session in lesson.training {
            let steps = step::steps(&session.episode.events, lesson.vocabulary, &lesson.map);
            let symbols: Vec<u32> = steps.iter().map(|(step, _)| step.symbol()).collect();
            for (at, (step, _)) in steps.iter().enumerate() {
                let context = BackOff::context(&symbols[..at], order);
                for length in 0..=order {
                    let history = context[order - length..].to_vec();
                    let (total, by_action) = seen.entry((length, history)).or_default();
                    let count = by_action.entry(step.action).or_default();
                    counts.push((*count, *total));
                    *count += 1.0;
                    *total += 1.0;
                }
            }
        }
        Self {
            counts,
            levels: order + 1,
            vocab_size: lesson.vocab_size,
        }
    }

    /// The log-probability of all steps under `alpha`.
    #[expect(clippy::cast_precision_loss, reason = "a vocabulary has few actions")]
    fn log_likelihood(&self, alpha: f64) -> f64 {
        let uniform = 1.0 / self.vocab_size as f64;
        let chance = |row: &[(f64, f64)]| {
            row.iter().fold(uniform, |chance, (count, total)| {
                if *total > 0.0 {
                    (count + alpha * chance) / (total + alpha)
                } else {
                    chance
                }
            })
        };
        self.counts
            .chunks_exact(self.levels)
            .map(|row| chance(row).ln())
            .sum()
    }
}

/// Draws alpha: the median of its posterior.
pub(super) fn draw(
    lesson: &Lesson<'_>,
    options: &LearnOptions,
    progress: &mut Progress<'_>,
) -> f64 {
    if options.draws == 0 {
        return 1.0;
    }
    let steps = Arc::new(Prequential::of(lesson));
    let prior = Normal::new(0.0, SPREAD).expect("the spread is above zero");
    let progress = std::cell::RefCell::new((0, progress));
    let all = options.draws + options.warm_up;
    let model = || {
        let (done, progress) = &mut *progress.borrow_mut();
        progress(Stage::Alpha, *done, all);
        *done = (*done + 1).min(all);
        let steps = Arc::clone(&steps);
        sample(addr!("log_alpha"), prior).bind(move |log_alpha: f64| {
            factor(steps.log_likelihood(log_alpha.exp())).map(move |()| log_alpha)
        })
    };
    let mut generator = StdRng::seed_from_u64(options.seed);
    let draws = adaptive_mcmc_chain(&mut generator, model, options.draws, options.warm_up);
    let mut draws: Vec<f64> = draws.into_iter().map(|(log_alpha, _)| log_alpha).collect();
    draws.sort_by(f64::total_cmp);
    // Half of n − 1, a half rounded up.
    draws[draws.len() / 2].exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Action, FeatureMap};
    use crate::learn::Session;
    use crate::step::Vocabulary;
    use stretto_trace::{Event, ToolCall, ToolManifest};

    fn session(cancels: bool) -> Session {
        let mut session = Session::default();
        let mut call = |name: &str| {
            let events = &mut session.episode.events;
            let id = events.len().to_string();
            let call = ToolCall {
                id: id.clone(),
                name: name.to_owned(),
                arguments: serde_json::json!({}),
            };
            events.push(Event::Assistant {
                text: None,
                calls: vec![call],
                usage: None,
            });
            events.push(Event::ToolResult {
                call_id: id,
                name: name.to_owned(),
                error: false,
                content: String::new(),
            });
        };
        ["find", "user", "order", "order"]
            .into_iter()
            .for_each(&mut call);
        let message = || Event::Assistant {
            text: Some(String::new()),
            calls: vec![],
            usage: None,
        };
        if cancels {
            session.episode.events.push(message());
            session.episode.events.push(Event::User {
                text: String::new(),
            });
            let events = &mut session.episode.events;
            let id = "c".to_owned();
            let call = ToolCall {
                id: id.clone(),
                name: "cancel".to_owned(),
                arguments: serde_json::json!({}),
            };
            events.push(Event::Assistant {
                text: None,
                calls: vec![call],
                usage: None,
            });
            events.push(Event::ToolResult {
                call_id: id,
                name: "cancel".to_owned(),
                error: false,
                content: String::new(),
            });
        }
        session.episode.events.push(message());
        session
    }

    #[test]
    fn the_published_seed_draws_the_published_alpha() {
        let sessions: Vec<Session> = [true, false, true, false, true, true]
            .map(session)
            .into_iter()
            .collect();
        let training: Vec<&Session> = sessions.iter().collect();
        let tool = |name: &str| Action::Tool(name.to_owned());
        let vocab = [
            Action::Respond,
            tool("cancel"),
            tool("find"),
            tool("order"),
            tool("user"),
        ];
        let lesson = Lesson {
            training: &training,
            manifest: &ToolManifest::default(),
            vocabulary: &Vocabulary::new(&vocab),
            vocab_size: 6,
            map: FeatureMap::default(),
            order: 2,
        };
        let alpha = draw(&lesson, &LearnOptions::default(), &mut |_, _, _| {});
        assert_eq!(
            alpha.to_bits(),
            0.697_396_007_266_390_1_f64.to_bits(),
            "{alpha}"
        );
        let fixed = LearnOptions {
            draws: 0,
            ..LearnOptions::default()
        };
        assert_eq!(
            draw(&lesson, &fixed, &mut |_, _, _| {}).to_bits(),
            1.0_f64.to_bits()
        );
    }
}
