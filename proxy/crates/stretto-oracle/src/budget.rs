//! How much may be asked.

use crate::Request;

/// What a million tokens of input cost, in dollars.
const DOLLARS_PER_MILLION_TOKENS: f64 = 0.042;

/// How many bytes of a request's canonical JSON are about one token.
const BYTES_PER_TOKEN: u64 = 4;

/// The questions that a session may still put to an oracle, whoever answers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    left: u64,
}

impl Budget {
    /// A budget of this many questions.
    pub fn new(questions: u64) -> Self {
        Self { left: questions }
    }

    /// How many may still be asked.
    pub fn left(self) -> u64 {
        self.left
    }

    /// Takes one question out. False when there is none left.
    #[must_use]
    pub fn take(&mut self) -> bool {
        let is_there = self.left > 0;
        self.left -= u64::from(is_there);
        is_there
    }
}

/// What asking would cost, roughly, if no answer were known yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// How many requests.
    pub requests: u64,
    /// The bytes of their canonical JSON.
    pub bytes: u64,
}

impl Estimate {
    /// What `requests` would cost together.
    pub fn of<'a, R: IntoIterator<Item = &'a Request>>(requests: R) -> Self {
        let mut estimate = Self::default();
        for request in requests {
            estimate.requests += 1;
            estimate.bytes += request.canonical().len() as u64;
        }
        estimate
    }

    /// About how many tokens they are.
    pub fn tokens(self) -> u64 {
        self.bytes / BYTES_PER_TOKEN
    }

    /// About what they cost.
    #[expect(
        clippy::cast_precision_loss,
        reason = "an estimate needs no more than a float holds"
    )]
    pub fn dollars(self) -> f64 {
        self.tokens() as f64 * DOLLARS_PER_MILLION_TOKENS / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Question;

    #[test]
    fn a_budget_is_spent_one_question_at_a_time() {
        let mut budget = Budget::new(2);
        assert!(budget.take() && budget.take());
        assert!(!budget.take() && !budget.take());
        assert_eq!(budget.left(), 0);
    }

    #[test]
    fn a_token_is_four_bytes_of_the_canonical_text() {
        let request = Request {
            model: String::new(),
            state: "x".repeat(4_000_000).into(),
            questions: [("q".to_owned(), Question::noul("?"))].into(),
        };
        let estimate = Estimate::of([&request, &request]);
        let bytes = 2 * request.canonical().len() as u64;
        assert_eq!((estimate.requests, estimate.tokens()), (2, bytes / 4));
        assert!(
            (estimate.dollars() - 0.084).abs() < 1e-4,
            "{}",
            estimate.dollars()
        );
    }
}
