//! The smaller parts of a flow.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Arg;

/// Where a flow came from. Fields are in the order of writing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The version of the program that wrote it.
    pub stretto: String,
    /// The models whose sessions it was learned from, sorted and distinct, and after them
    /// those of an arbiter that came from elsewhere.
    pub sources: Vec<String>,
    /// How many sessions the habit was counted on.
    pub habit_episodes: u64,
    /// How many decisions the arbiter was fitted on, 0 without one.
    pub arbiter_cases: u64,
    /// When it was written, in milliseconds of Unix time.
    pub compiled_unix_ms: u64,
    /// The tracing conventions, when it was learned from spans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conventions: Option<String>,
}

/// Something that an agent does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Action {
    /// Says something, without calling a tool.
    Respond,
    /// Calls a tool.
    Tool(String),
}

/// The code features: which fields of a tool's results tell situations apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureMap {
    /// The fields that are read, by tool.
    pub fields: BTreeMap<String, Vec<Field>>,
    /// The id of each combination of values that training saw, 1 to 63 for each tool.
    #[serde(with = "super::pairs")]
    pub ids: BTreeMap<(String, Vec<String>), u32>,
}

/// A field of a JSON result, by path; a path's keys are split at dots.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Field {
    /// The text, number or boolean at a path.
    Scalar(String),
    /// Whether the list at a path has no, one or more elements; the empty path is the
    /// whole result.
    Len(String),
}

/// Where lookups followed in training.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sites {
    /// The tools that only read, sorted.
    pub reads: Vec<String>,
    /// How often each lookup was the very next step, by the tool before it and whether
    /// that had failed.
    #[serde(with = "super::pairs")]
    pub next: BTreeMap<(String, bool), BTreeMap<String, u64>>,
    /// What each lookup's results supplied to writes.
    pub feeds: BTreeMap<String, Vec<(Arg, u64)>>,
    /// Whether every tool that reads is an option everywhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub every_read: bool,
}

/// Which sites may act, and by what measure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Promoted {
    /// The measure.
    pub bar: Bar,
    /// The sites, by name; one that is not listed may not act.
    pub sites: BTreeMap<String, PromotedSite>,
}

/// What a site must show before it may act.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// The threshold that lookups were decided at.
    pub threshold: f64,
    /// The smallest share of used lookups.
    pub min_used: f64,
    /// The smallest lower bound of that share.
    pub min_lower: f64,
    /// The smallest number of distinct tasks with a lookup.
    pub min_tasks: u64,
}

impl Default for Bar {
    fn default() -> Self {
        Self {
            threshold: 0.3,
            min_used: 0.7,
            min_lower: 0.5,
            min_tasks: 3,
        }
    }
}

/// What a site has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PromotedSite {
    /// Decisions taken at the site.
    pub decisions: u64,
    /// Lookups among them.
    pub lookups: u64,
    /// Lookups that the agent went on to make itself.
    pub used: u64,
    /// Distinct tasks with a lookup.
    pub tasks: u64,
    /// The lower bound of the share of used lookups.
    pub lower: f64,
    /// Whether the site may act.
    pub promoted: bool,
}

/// When a session is too unlike the training's for the flow to act in.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SurpriseGate {
    /// How many steps are averaged.
    pub window: u64,
    /// The mean above which the flow stops acting, in nats.
    pub threshold: f64,
    /// The share of training sessions below the threshold; absent when it was set by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantile: Option<f64>,
}
