//! Counts of what came next, from the shortest history to the longest.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The symbol that stands before a session's first step.
pub const PADDING: u32 = u32::MAX;

/// How often each action came after a history.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// The counts, by action id; an action that never came is absent.
    #[serde(with = "super::pairs")]
    pub by_action: BTreeMap<u32, f64>,
    /// How often the history came.
    pub total: f64,
}

impl Counts {
    /// How often `action` came.
    pub fn of(&self, action: u32) -> f64 {
        self.by_action.get(&action).copied().unwrap_or(0.0)
    }

    /// Counts one more of each of `actions` after one more history.
    pub(crate) fn add(&mut self, actions: impl IntoIterator<Item = u32>, weight: f64) {
        self.total += weight;
        for action in actions {
            *self.by_action.entry(action).or_default() += weight;
        }
    }
}

/// One level's counts, by history.
type Level = BTreeMap<Vec<u32>, Counts>;

/// A model that knows histories of each length up to `order`, and lets a longer one
/// speak as loudly as it was seen often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackOff {
    /// The longest history's length.
    pub order: usize,
    /// How many observations the shorter history counts for.
    pub alpha: f64,
    /// How many action ids there are.
    pub vocab_size: usize,
    /// Level `j` has histories of `j` symbols.
    #[serde(serialize_with = "write_levels", deserialize_with = "read_levels")]
    pub levels: Vec<Level>,
}

impl BackOff {
    /// A model that has seen nothing.
    pub fn new(order: usize, alpha: f64, vocab_size: usize) -> Self {
        Self {
            order,
            alpha,
            vocab_size,
            levels: vec![Level::new(); order + 1],
        }
    }

    /// The last `length` symbols of `history`, which is padded at its beginning.
    pub(crate) fn context(history: &[u32], length: usize) -> Vec<u32> {
        let known = &history[history.len().saturating_sub(length)..];
        let mut context = vec![PADDING; length - known.len()];
        context.extend_from_slice(known);
        context
    }

    /// Counts `actions` after `history`, at every level.
    pub(crate) fn learn(&mut self, history: &[u32], actions: &[u32], weight: f64) {
        let context = Self::context(history, self.order);
        for (length, level) in self.levels.iter_mut().enumerate() {
            let context = &context[self.order - length..];
            if !level.contains_key(context) {
                level.insert(context.to_vec(), Counts::default());
            }
            let counts = level.get_mut(context).expect("it was just put there");
            counts.add(actions.iter().copied(), weight);
        }
    }

    /// The chance of each of `actions` after `history`:
    /// `P_j(a) = (n(c_j, a) + α · P_{j-1}(a)) / (n(c_j) + α)`, with `P_{-1} = 1 / V`; a
    /// level that never saw the history has no say.
    ///
    /// Chances of a model whose histories count several actions each need not sum to 1.
    pub fn chances(&self, history: &[u32], actions: &[u32]) -> Vec<f64> {
        let context = Self::context(history, self.order);
        #[expect(clippy::cast_precision_loss, reason = "a vocabulary has few actions")]
        let mut chances = vec![1.0 / self.vocab_size as f64; actions.len()];
        for (length, level) in self.levels.iter().enumerate() {
            if let Some(counts) = level.get(&context[self.order - length..]) {
                mix(&mut chances, actions, counts, self.alpha);
            }
        }
        chances
    }
}

/// Lets `counts` speak after what is known so far.
fn mix(chances: &mut [f64], actions: &[u32], counts: &Counts, concentration: f64) {
    for (chance, action) in chances.iter_mut().zip(actions) {
        *chance = (counts.of(*action) + concentration * *chance) / (counts.total + concentration);
    }
}

/// What the agent did next: a back-off model, and on top of it the counts of each group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Habit {
    /// The model of all groups together.
    pub base: BackOff,
    /// How many observations the model of all groups counts for.
    pub beta: f64,
    /// Each group's counts after the longest histories.
    #[serde(serialize_with = "write_top", deserialize_with = "read_top")]
    pub top: BTreeMap<u64, Level>,
}

impl Habit {
    /// The chance of each of `actions` to be the agent's next, after `history`.
    pub fn chances(&self, group: u64, history: &[u32], actions: &[u32]) -> Vec<f64> {
        let mut chances = self.base.chances(history, actions);
        let context = BackOff::context(history, self.base.order);
        if let Some(counts) = self.top.get(&group).and_then(|level| level.get(&context)) {
            mix(&mut chances, actions, counts, self.beta);
        }
        chances
    }
}

fn write_levels<S: Serializer>(levels: &[Level], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(levels.iter().map(Written))
}

fn read_levels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Level>, D::Error> {
    let levels = Vec::<Read>::deserialize(deserializer)?;
    Ok(levels.into_iter().map(|Read(level)| level).collect())
}

#[derive(Serialize)]
struct Written<'a>(#[serde(with = "super::pairs")] &'a Level);

#[derive(Deserialize)]
struct Read(#[serde(with = "super::pairs")] Level);

fn write_top<S: Serializer>(top: &BTreeMap<u64, Level>, serializer: S) -> Result<S::Ok, S::Error> {
    let entries = top.iter().flat_map(|(group, level)| {
        level
            .iter()
            .map(move |(history, counts)| ((group, history), counts))
    });
    serializer.collect_seq(entries)
}

fn read_top<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<u64, Level>, D::Error> {
    let entries: BTreeMap<(u64, Vec<u32>), Counts> = super::pairs::deserialize(deserializer)?;
    let mut top = BTreeMap::<u64, Level>::new();
    for ((group, history), counts) in entries {
        top.entry(group).or_default().insert(history, counts);
    }
    Ok(top)
}
