//! Rules to be judged by the log of another.

use std::str::FromStr;

use super::Logged;
use crate::decide::{Choice, Decider};

/// Which of the logged probabilities a target reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chances {
    /// Those that the log's own decider had.
    Logged,
    /// The habit's.
    Habit,
}

/// A rule to be judged: whose probabilities, and what they must reach.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// What it is called.
    pub name: String,
    /// Whose probabilities it reads.
    pub chances: Chances,
    /// What a lookup must reach, with its arguments.
    pub threshold: f64,
}

impl Target {
    /// What it takes at a record.
    pub(super) fn takes<'a>(&self, record: &'a Logged) -> Option<&'a Choice> {
        let options = &record.policy.options;
        let by_reach = record.policy.decider == Decider::Reach && self.chances == Chances::Logged;
        if by_reach {
            let able = options
                .iter()
                .filter(|option| self.chance(option) >= self.threshold);
            let best = first_best(able.filter_map(|option| Some((option, self.product(option)?))));
            return best
                .filter(|(_, product)| *product >= self.threshold)
                .map(|(option, _)| option);
        }
        let (likeliest, chance) =
            first_best(options.iter().map(|option| (option, self.chance(option))))?;
        let is_taken = chance >= self.threshold
            && self
                .product(likeliest)
                .is_some_and(|product| product >= self.threshold);
        is_taken.then_some(likeliest)
    }

    fn chance(&self, option: &Choice) -> f64 {
        match self.chances {
            Chances::Logged => option.p,
            Chances::Habit => option.habit,
        }
    }

    /// With the chance of its arguments, if it has any.
    fn product(&self, option: &Choice) -> Option<f64> {
        Some(self.chance(option) * option.binding?)
    }
}

fn first_best<'a>(those: impl Iterator<Item = (&'a Choice, f64)>) -> Option<(&'a Choice, f64)> {
    those.fold(None, |best, one| match best {
        Some((_, value)) if one.1 <= value => best,
        _ => Some(one),
    })
}

impl FromStr for Target {
    type Err = String;

    /// Reads `NAME=DECIDER@THRESHOLD`, or the same without a name.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rule) = text.split_once('=').unwrap_or((text, text));
        let form = || {
            format!("`{text}` is no target: write NAME=DECIDER@THRESHOLD, such as low=habit@0.2")
        };
        let (decider, threshold) = rule.rsplit_once('@').ok_or_else(form)?;
        let chances = match decider {
            "arbiter" => Chances::Logged,
            "habit" => Chances::Habit,
            _ => {
                return Err(format!(
                    "`{decider}` is neither arbiter (what the log's decider said) nor habit"
                ));
            }
        };
        let threshold = threshold.parse().map_err(|_| form())?;
        Ok(Self {
            name: name.to_owned(),
            chances,
            threshold,
        })
    }
}
