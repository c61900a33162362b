//! What the word list and the judge say about recorded writes, counted.

use std::collections::BTreeMap;

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
    /// What each session's accepted writes have failed so far, and whether it was successful.
    #[serde(skip)]
    sessions: BTreeMap<String, (bool, Failures)>,
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
    pub(super) judge_only: Vec<Example>,
    /// The first question passes what the word list fails.
    pub(super) word_list_only: Vec<Example>,
    /// Only the second question fails it.
    pub(super) second_only: Vec<Example>,
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

/// How one write fails.
#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    word_list: bool,
    judge: bool,
    second: bool,
    both: bool,
}

impl Failures {
    fn of(write: &Write, judge: &Judge) -> Self {
        let fails = |p: Option<f64>| p.is_some_and(|p| judge.fails(p));
        let (word_list, first) = (!write.word_list, fails(write.p_yes));
        Self {
            word_list,
            judge: first,
            second: fails(write.p_second),
            both: word_list && first,
        }
    }

    fn two_questions(self) -> bool {
        self.judge || self.second
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
            sessions: BTreeMap::new(),
        }
    }

    /// Counts a write, and keeps up to `most` examples of each kind.
    pub(super) fn add(&mut self, write: &Write, judge: &Judge, most: usize) {
        let fails = Failures::of(write, judge);
        let lacks_second = judge.second.is_some() && write.p_second.is_none();
        let counts = match (write.refused, write.success) {
            (true, _) => &mut self.refused,
            (false, true) => &mut self.successful,
            (false, false) => &mut self.failed,
        };
        counts.writes += 1;
        counts.word_list += usize::from(fails.word_list);
        counts.judge += usize::from(fails.judge);
        counts.two_questions += usize::from(fails.two_questions());
        counts.both += usize::from(fails.both);
        counts.unanswered += usize::from(write.p_yes.is_none() || lacks_second);
        if !write.refused {
            self.add_to_session(write, fails);
            self.examples.add(write, fails, most);
        }
    }

    /// Counts a session when one of its writes fails in a way for the first time.
    fn add_to_session(&mut self, write: &Write, fails: Failures) {
        let session = self.sessions.entry(write.episode.clone());
        let (_, before) = session.or_insert((write.success, Failures::default()));
        let outcome = usize::from(!write.success);
        let episodes = &mut self.episodes;
        for (count, was, is) in [
            (&mut episodes.word_list, before.word_list, fails.word_list),
            (&mut episodes.judge, before.judge, fails.judge),
            (
                &mut episodes.two_questions,
                before.two_questions(),
                fails.two_questions(),
            ),
            (&mut episodes.both, before.both, fails.both),
        ] {
            count[outcome] += usize::from(is && !was);
        }
        before.word_list |= fails.word_list;
        before.judge |= fails.judge;
        before.second |= fails.second;
        before.both |= fails.both;
    }
}

impl Examples {
    fn add(&mut self, write: &Write, fails: Failures, most: usize) {
        let passes = write.p_yes.is_some() && !fails.judge;
        let kind = if fails.judge && !fails.word_list {
            &mut self.judge_only
        } else if passes && fails.word_list {
            &mut self.word_list_only
        } else if passes && fails.second {
            &mut self.second_only
        } else {
            return;
        };
        if kind.len() < most {
            kind.push(Example::of(write));
        }
        // A write that the word list fails may also be one that only the second question does.
        if passes && fails.word_list && fails.second && self.second_only.len() < most {
            self.second_only.push(Example::of(write));
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
