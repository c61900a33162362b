//! Exploration: now and then, another lookup than the rule's.
//!
//! Draws depend on nothing but the seed, the task and the session, so that a session
//! played again explores again.

use serde_json::Value;
use stretto_trace::Event;

/// The hash of a text that folds of tasks and draws begin with.
///
/// It is FNV-1a with a start value of its own.
///
/// ```
/// assert_eq!(stretto_flow::task_hash("t"), 4953290900002159797);
/// assert_eq!(stretto_flow::fold("104", 5), 4);
/// ```
pub fn task_hash(text: &str) -> u64 {
    hash(HASH_START, text.as_bytes())
}

/// Which of `folds` folds a task is in.
pub fn fold(task: &str, folds: u64) -> u64 {
    task_hash(task) % folds.max(1)
}

const HASH_START: u64 = 1_469_598_103_934_665_603;

fn hash(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211)
    })
}

/// How often to explore, and from which seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Explore {
    /// The chance that a decision explores, 0 to 1. With 0 nothing is explored, and
    /// policies are logged all the same.
    pub epsilon: f64,
    /// The seed of the draws.
    pub seed: u64,
}

/// The generator of the draws: splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Draws(u64);

impl Draws {
    /// The draws of a session as it stands, with the task's name and a hash of its events.
    pub(crate) fn new(seed: u64, session: u64) -> Self {
        Self(seed ^ session)
    }

    /// A number from 0 up to, not including, 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are what a float holds")]
    pub(crate) fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mixed(self.0) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A number whose every bit depends on every bit of `number`: the end of splitmix64.
pub(crate) fn mixed(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The events of a session as draws see them: as JSON, without ids and costs.
///
/// What stands before the last turn can change no more and is kept as a hash.
#[derive(Clone, Debug)]
pub(crate) struct Trail {
    before: u64,
    /// The first event that `before` does not hold.
    from: usize,
    /// The events from there on.
    since: Vec<Value>,
}

impl Trail {
    /// The trail of a session of `task` in which nothing has happened.
    pub(crate) fn new(task: &str) -> Self {
        let before = hash(HASH_START, format!("{task}/[").as_bytes());
        Self {
            before,
            from: 0,
            since: Vec::new(),
        }
    }

    /// Takes in a new event.
    pub(crate) fn take(&mut self, index: usize, event: &Event) {
        if matches!(event, Event::Assistant { calls, .. } if !calls.is_empty()) {
            for earlier in std::mem::take(&mut self.since) {
                self.before = next(self.before, self.from == 0, &earlier);
                self.from += 1;
            }
        }
        debug_assert_eq!(index, self.from + self.since.len());
        self.since.push(bare(event));
    }

    /// Takes in calls that joined the last turn.
    pub(crate) fn turn_grew(&mut self, index: usize, event: &Event) {
        if let Some(known) = index
            .checked_sub(self.from)
            .and_then(|at| self.since.get_mut(at))
        {
            *known = bare(event);
        }
    }

    /// The hash of the session; `turn` names the last turn's event and which of its calls
    /// the view has, in their order.
    pub(crate) fn hash(&self, turn: Option<&(usize, Vec<usize>)>) -> u64 {
        let mut seen = self.before;
        for (offset, event) in self.since.iter().enumerate() {
            let index = self.from + offset;
            let viewed = match turn {
                Some((turn, order)) if *turn == index => Some(reordered(event, order)),
                _ => None,
            };
            seen = next(seen, index == 0, viewed.as_ref().unwrap_or(event));
        }
        hash(seen, b"]")
    }
}

fn next(seen: u64, is_first: bool, event: &Value) -> u64 {
    let seen = if is_first { seen } else { hash(seen, b",") };
    hash(seen, event.to_string().as_bytes())
}

fn reordered(event: &Value, order: &[usize]) -> Value {
    let mut event = event.clone();
    if let Some(Value::Array(calls)) = event.get_mut("calls") {
        *calls = order
            .iter()
            .filter_map(|position| calls.get(*position).cloned())
            .collect();
    }
    event
}

/// An event without ids and costs.
fn bare(event: &Event) -> Value {
    let mut value = serde_json::to_value(event).expect("events have a JSON form");
    strip(&mut value);
    value
}

fn strip(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Object(members) => {
            members.retain(|key, _| !matches!(key.as_str(), "id" | "call_id" | "usage"));
            members.values_mut().for_each(strip);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_hash_and_fold_as_published() {
        assert_eq!((task_hash(""), fold("", 5)), (1_469_598_103_934_665_603, 3));
        assert_eq!(
            (task_hash("t"), fold("t", 5)),
            (4_953_290_900_002_159_797, 2)
        );
        assert_eq!(
            (task_hash("104"), fold("104", 5)),
            (4_593_265_144_760_316_274, 4)
        );
        assert_eq!(fold("20260923T212000.123Z-4242", 5), 0);
    }

    #[test]
    fn draws_are_those_of_splitmix64() {
        // The first outputs of the generator from state 0, by its reference implementation.
        let mut draws = Draws::new(5, 5);
        #[expect(clippy::cast_precision_loss, reason = "53 bits are what a float holds")]
        let expected = |output: u64| (output >> 11) as f64 / (1_u64 << 53) as f64;
        for output in [
            0xe220_a839_7b1d_cdaf,
            0x6e78_9e6a_a1b9_65f4,
            0x06c4_5d18_8009_454f,
        ] {
            assert_eq!(draws.draw().to_bits(), expected(output).to_bits());
        }
    }
}
