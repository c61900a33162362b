//! What the word list and the judge say about recorded writes, counted.

use std::collections::BTreeSet;

use serde::Serialize;
use stretto_guards::confirm::Judge;

use super::writes::Write;

/// How much of a reply an example quotes, in characters.
const QUOTED: usize = 160;

/// The writes of a domain.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Audit {
    pub(super) domain: String,
    /// Writes that were accepted in successful sessions.
    pub(super) successful: Counts,
    /// Writes that were accepted in failed sessions.
    pub(super) failed: Counts,
    /// Writes that were refused.
    pub(super) refused: Counts,
    pub(super) episodes: Episodes,
    pub(super) examples: Examples,
    /// The sessions that `episodes` has counted, with the way in which a write of theirs fails.
    #[serde(skip)]
    sessions: BTreeSet<(Way, String)>,
}

/// How many writes fail in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    pub(super) writes: usize,
    /// The word list fails it.
    pub(super) word_list: usize,
    /// The first question fails it.
    pub(super) judge: usize,
    /// One of the two questions fails it.
    pub(super) two_questions: usize,
    /// The word list and the first question fail it.
    pub(super) both: usize,
    /// A question got no answer.
    pub(super) unanswered: usize,
}

/// How many successful and failed sessions have an accepted write that fails in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Episodes {
    pub(super) word_list: [usize; 2],
    pub(super) judge: [usize; 2],
    pub(super) two_questions: [usize; 2],
    pub(super) both: [usize; 2],
}

/// Accepted writes that a person should look at.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Examples {
    /// The word list passes what the first question fails.
    pub(super) judge: Vec<Example>,
    /// The first question passes what the word list fails.
    pub(super) word_list: Vec<Example>,
    /// Only the second question fails it.
    pub(super) second: Vec<Example>,
}

/// One of them.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Example {
    pub(super) task: String,
    pub(super) tool: String,
    pub(super) p_yes: Option<f64>,
    pub(super) p_second: Option<f64>,
    pub(super) success: bool,
    /// The beginning of what the customer replied, on one line.
    pub(super) reply: String,
}

/// How a write may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    WordList,
    Judge,
    TwoQuestions,
    Both,
}

/// The ways in which a write fails.
fn ways(write: &Write, judge: &Judge) -> impl Iterator<Item = Way> {
    let (word_list, first) = (!write.word_list, fails(write.p_yes, judge));
    let ways = [
        (Way::WordList, word_list),
        (Way::Judge, first),
        (Way::TwoQuestions, first || fails(write.p_second, judge)),
        (Way::Both, word_list && first),
    ];
    ways.into_iter()
        .filter_map(|(way, fails)| fails.then_some(way))
}

fn fails(p: Option<f64>, judge: &Judge) -> bool {
    p.is_some_and(|p| judge.fails(p))
}

impl Counts {
    fn of(&mut self, way: Way) -> &mut usize {
        match way {
            Way::WordList => &mut self.word_list,
            Way::Judge => &mut self.judge,
            Way::TwoQuestions => &mut self.two_questions,
            Way::Both => &mut self.both,
        }
    }
}

impl Episodes {
    fn of(&mut self, way: Way) -> &mut [usize; 2] {
        match way {
            Way::WordList => &mut self.word_list,
            Way::Judge => &mut self.judge,
            Way::TwoQuestions => &mut self.two_questions,
            Way::Both => &mut self.both,
        }
    }
}

impl Audit {
    /// An audit of no write yet.
    pub(super) fn of(domain: &str) -> Self {
        Self {
            domain: domain.to_owned(),
            successful: Counts::default(),
            failed: Counts::default(),
            refused: Counts::default(),
            episodes: Episodes::default(),
            examples: Examples::default(),
            sessions: BTreeSet::new(),
        }
    }

    /// Counts a write, and keeps up to `most` examples of each kind.
    pub(super) fn add(&mut self, write: &Write, judge: &Judge, most: usize) {
        let counts = match (write.refused, write.success) {
            (true, _) => &mut self.refused,
            (false, true) => &mut self.successful,
            (false, false) => &mut self.failed,
        };
        let lacks_second = judge.second.is_some() && write.p_second.is_none();
        counts.writes += 1;
        counts.unanswered += usize::from(write.p_yes.is_none() || lacks_second);
        for way in ways(write, judge) {
            *counts.of(way) += 1;
            if !write.refused && self.sessions.insert((way, write.episode.clone())) {
                self.episodes.of(way)[usize::from(!write.success)] += 1;
            }
        }
        if !write.refused {
            self.examples.add(write, judge, most);
        }
    }
}

impl Examples {
    fn add(&mut self, write: &Write, judge: &Judge, most: usize) {
        let (first_fails, second_fails) = (fails(write.p_yes, judge), fails(write.p_second, judge));
        let first_passes = write.p_yes.is_some() && !first_fails;
        for (kind, is_one) in [
            (&mut self.judge, first_fails && write.word_list),
            (&mut self.word_list, first_passes && !write.word_list),
            (&mut self.second, first_passes && second_fails),
        ] {
            if is_one && kind.len() < most {
                kind.push(Example::of(write));
            }
        }
    }
}

impl Example {
    fn of(write: &Write) -> Self {
        let words: Vec<&str> = write.customer.split_whitespace().collect();
        Self {
            task: write.task_id.clone(),
            tool: write.tool.clone(),
            p_yes: write.p_yes,
            p_second: write.p_second,
            success: write.success,
            reply: words.join(" ").chars().take(QUOTED).collect(),
        }
    }
}
