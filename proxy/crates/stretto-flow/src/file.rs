//! The flow file: one JSON object on one line, conventionally `NAME.flow.json`.
//!
//! [`FlowFile`] is the data as it stands in the file. Reading checks everything that a
//! later step relies on, so that a file which loads can be served; writing gives back the
//! bytes that were read, except that a file without a program gains the standard one.
//! Members that this version does not know are not read, and not written again.

mod arbiter;
mod back_off;
mod bindings;
mod check;
mod pairs;
mod parts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fugue::program::Program;
use serde::{Deserialize, Serialize};
use stretto_trace::ToolManifest;

pub use arbiter::{Favors, Fit, Predicate, Rates, SiteRecord};
pub use back_off::{BackOff, Counts, Habit, PADDING};
pub(crate) use bindings::share_is_at_least;
pub use bindings::{Arg, Bindings, SiteSource, SourceRef, Sources, Tally};
pub use parts::{
    Action, Bar, FeatureMap, Field, Promoted, PromotedSite, Provenance, Sites, SurpriseGate,
};

use crate::program;

/// The newest version of the format that this crate reads and writes.
pub const FORMAT: u32 = 2;

/// A flow as it stands in its file. Fields are in the order of writing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowFile {
    /// The format's version, 1 or 2; see [`FlowFile::set_format`].
    pub stretto_flow: u32,
    /// Where the flow came from.
    pub provenance: Provenance,
    /// The actions that have an id, which is their position here.
    pub vocab: Vec<Action>,
    /// The tools, as the server listed them when the flow was learned.
    pub manifest: ToolManifest,
    /// The code features of results.
    pub map: FeatureMap,
    /// Which group of `habit.top` this flow is of; 1 in a flow without a goal.
    pub group: u64,
    /// What the agent did next.
    pub habit: Habit,
    /// Where lookups followed.
    pub sites: Sites,
    /// The questions put to the arbiter's model beside its own three.
    pub predicates: Vec<Predicate>,
    /// Those of `predicates` that the arbiter weighs, in the order of its weights.
    pub weighed: Vec<Predicate>,
    /// The arbiter's fits, one per fold of tasks, or none.
    pub folds: Vec<Fit>,
    /// Where arguments came from.
    pub bindings: Bindings,
    /// The arbiter's model, empty without an arbiter.
    pub model: String,
    /// The run after a call, as a program.
    #[serde(default = "program::standard")]
    pub program: Program,
    /// Which sites may act; without it, all may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted: Option<Promoted>,
    /// Thresholds by site name, in place of the served one; above 1 switches a site off.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub thresholds: BTreeMap<String, f64>,
    /// Each tool's input contract when the sessions were recorded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub contracts: BTreeMap<String, String>,
    /// What the agent did before its next write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<BackOff>,
    /// When a session is too unlike the training's to act in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surprise: Option<SurpriseGate>,
}

impl FlowFile {
    /// Reads a flow from the text of its file.
    ///
    /// # Errors
    ///
    /// The first check that the text does not pass; see [`FlowError`].
    pub fn parse(text: &str) -> Result<Self, FlowError> {
        #[derive(Deserialize)]
        struct Version {
            stretto_flow: serde_json::Number,
        }
        if !text.trim_start().starts_with('{') {
            // Lists would be read as an object's members in order.
            return Err(FlowError::NotAFlow("it is no JSON object".to_owned()));
        }
        let Version { stretto_flow } =
            serde_json::from_str(text).map_err(|error| FlowError::NotAFlow(error.to_string()))?;
        if !(stretto_flow.is_u64() || stretto_flow.is_i64()) {
            let why = format!("`stretto_flow` is {stretto_flow}, not an integer");
            return Err(FlowError::NotAFlow(why));
        }
        if !matches!(stretto_flow.as_u64(), Some(1 | 2)) {
            return Err(FlowError::Format(stretto_flow.to_string()));
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        let file: Self = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let field = error.path().to_string();
            FlowError::Malformed {
                field,
                why: error.into_inner().to_string(),
            }
        })?;
        reader.end().map_err(|error| FlowError::Malformed {
            field: ".".to_owned(),
            why: error.to_string(),
        })?;
        file.check()?;
        Ok(file)
    }

    /// Reads a flow's file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no flow that this version serves. The error names it.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let text = std::fs::read_to_string(path).map_err(|source| LoadError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text).map_err(|source| LoadError::Flow {
            path: path.to_owned(),
            source,
        })
    }

    /// The file's text: one line, with no line break at its end.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("every part of a flow has a JSON form")
    }

    /// Sets the version to what the flow's contents ask for.
    ///
    /// Version 1 knows neither thresholds by site, nor a surprise gate, nor the finer
    /// counts of bindings. To be called after any of those changed.
    pub fn set_format(&mut self) {
        let is_second = !self.thresholds.is_empty()
            || self.surprise.is_some()
            || self.bindings.newer_field().is_some();
        self.stretto_flow = if is_second { 2 } else { 1 };
    }

    /// How many ids there are: one per listed action, and one for all others.
    pub fn vocab_size(&self) -> usize {
        self.vocab.len() + 1
    }
}

/// Why a text is no flow that can be served.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowError {
    /// The text is not a JSON object with an integer `stretto_flow`.
    #[error("not a stretto flow: {0}")]
    NotAFlow(String),
    /// Another version of the format.
    #[error("flow format {0} is not supported (this build reads 1 and 2)")]
    Format(String),
    /// A field is missing, or of the wrong type.
    #[error("`{field}`: {why}")]
    Malformed {
        /// The field, as a path from the file's root; `.` is the root.
        field: String,
        /// What is wrong with it.
        why: String,
    },
    /// Format 1 with thresholds by site.
    #[error("a flow with per-site thresholds is format 2")]
    ThresholdsInFirst,
    /// Format 1 with a field of bindings that only format 2 has.
    #[error("a flow whose bindings count `{0}` is format 2")]
    BindingsInFirst(&'static str),
    /// Format 1 with a surprise gate.
    #[error("a flow with a surprise gate is format 2")]
    SurpriseInFirst,
    /// A surprise gate over no steps.
    #[error("a surprise gate averages over one step or more")]
    EmptyWindow,
    /// The program does not compile.
    #[error("the flow's program: {0}")]
    Program(String),
    /// A field's value contradicts the rest of the flow.
    #[error("`{field}`: {why}")]
    Inconsistent {
        /// The field, as a path from the file's root.
        field: String,
        /// What it contradicts.
        why: String,
    },
}

/// Why a flow could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("reading the flow {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is no flow that this version serves.
    #[error("loading the flow {}", path.display())]
    Flow {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: FlowError,
    },
}
