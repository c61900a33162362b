//! An arbiter by itself, as a file that flows can be given.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::OWN_WEIGHTS;
use crate::file::{Fit, FlowFile, Predicate, Provenance};

/// How many fits a flow with an arbiter has. A shipped one is the same for every task.
const FOLDS: usize = 5;

/// An arbiter in a file of its own. Fields are in the order of writing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArbiterFile {
    /// The format's version, 1.
    pub stretto_arbiter: u32,
    /// The domain of the sessions that it was fitted on.
    pub domain: String,
    /// Where it came from.
    pub provenance: Provenance,
    /// The predicates that are asked.
    pub predicates: Vec<Predicate>,
    /// Those that are weighed, in the order of the weights.
    pub weighed: Vec<Predicate>,
    /// The weights, and how far the model was right.
    pub fitted: Fit,
    /// The model that is asked.
    pub model: String,
}

impl ArbiterFile {
    /// Reads an arbiter from the text of its file.
    ///
    /// # Errors
    ///
    /// The text is no arbiter that this version reads.
    pub fn parse(text: &str) -> Result<Self, ArbiterError> {
        #[derive(Deserialize)]
        struct Version {
            stretto_arbiter: u64,
        }
        let Version { stretto_arbiter } = serde_json::from_str(text)
            .map_err(|error| ArbiterError::NotAnArbiter(error.to_string()))?;
        if stretto_arbiter != 1 {
            return Err(ArbiterError::Format(stretto_arbiter));
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        let file: Self = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            ArbiterError::Malformed {
                field: error.path().to_string(),
                why: error.into_inner().to_string(),
            }
        })?;
        let expected = file.weighed.len() + OWN_WEIGHTS;
        if file.fitted.weights.len() != expected {
            return Err(ArbiterError::Malformed {
                field: "fitted.weights".to_owned(),
                why: format!(
                    "{} weights, not {expected} ({OWN_WEIGHTS} and one per weighed predicate)",
                    file.fitted.weights.len()
                ),
            });
        }
        Ok(file)
    }

    /// Reads an arbiter's file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no arbiter that this version reads. The error names it.
    pub fn load(path: &Path) -> Result<Self, ArbiterLoadError> {
        let text = std::fs::read_to_string(path).map_err(|source| ArbiterLoadError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text).map_err(|source| ArbiterLoadError::Arbiter {
            path: path.to_owned(),
            source,
        })
    }

    /// The file's text: JSON with two blanks of indent, and no line break at its end.
    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).expect("every part of an arbiter has a JSON form")
    }
}

impl FlowFile {
    /// The flow's arbiter, as a file of its own.
    ///
    /// # Errors
    ///
    /// The flow has none, or one that was fitted for each fold of tasks apart.
    pub fn arbiter(&self) -> Result<ArbiterFile, NoArbiter> {
        let (fitted, others) = self.folds.split_first().ok_or(NoArbiter::None)?;
        if others.iter().any(|other| other != fitted) {
            return Err(NoArbiter::Apart);
        }
        Ok(ArbiterFile {
            stretto_arbiter: 1,
            domain: self.manifest.domain.clone(),
            provenance: self.provenance.clone(),
            predicates: self.predicates.clone(),
            weighed: self.weighed.clone(),
            fitted: fitted.clone(),
            model: self.model.clone(),
        })
    }

    /// Gives the flow the arbiter of another, fit by fit, in place of any that it has. Where the
    /// flow came from stays as it is, but for the number of decisions.
    pub fn take_arbiter(&mut self, other: &Self) {
        self.predicates.clone_from(&other.predicates);
        self.weighed.clone_from(&other.weighed);
        self.model.clone_from(&other.model);
        self.folds.clone_from(&other.folds);
        self.provenance.arbiter_cases = other.provenance.arbiter_cases;
    }

    /// Gives the flow an arbiter from elsewhere, in place of any that it has.
    pub fn set_arbiter(&mut self, arbiter: &ArbiterFile) {
        self.predicates.clone_from(&arbiter.predicates);
        self.weighed.clone_from(&arbiter.weighed);
        self.model.clone_from(&arbiter.model);
        self.folds = vec![arbiter.fitted.clone(); FOLDS];
        self.provenance.arbiter_cases = arbiter.provenance.arbiter_cases;
        let sources = arbiter.provenance.sources.iter();
        let sources = sources.map(|source| format!("arbiter ({}): {source}", arbiter.domain));
        self.provenance.sources.extend(sources);
    }
}

/// Why a text is no arbiter that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArbiterError {
    /// The text is not a JSON object with an integer `stretto_arbiter`.
    #[error("not a stretto arbiter: {0}")]
    NotAnArbiter(String),
    /// Another version of the format.
    #[error("arbiter format {0} is not supported (this build reads 1)")]
    Format(u64),
    /// A field is missing, or not as it should be.
    #[error("`{field}`: {why}")]
    Malformed {
        /// The field, as a path from the file's root.
        field: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Why an arbiter could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArbiterLoadError {
    /// The file cannot be read.
    #[error("reading the arbiter {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is no arbiter that this version reads.
    #[error("loading the arbiter {}", path.display())]
    Arbiter {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ArbiterError,
    },
}

/// Why a flow's arbiter cannot be had by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoArbiter {
    /// There is none.
    #[error("the flow has no arbiter")]
    None,
    /// There is one per fold.
    #[error(
        "the flow's arbiter was fitted for each fold of tasks apart; compile it with --pooled-arbiter"
    )]
    Apart,
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITH: &str =
        include_str!("../../tests/data/flows/retail-5-sessions-shipped-arbiter.flow.json");
    const WITHOUT: &str = include_str!("../../tests/data/flows/retail-5-sessions.flow.json");

    #[test]
    fn an_arbiter_that_is_taken_out_makes_the_same_flow_of_one_without() {
        let with = FlowFile::parse(WITH).unwrap();
        let mut arbiter = with.arbiter().unwrap();
        // The shipped file lists its own sources, without what the flow says of where they are from.
        let own = |source: &String| source.strip_prefix("arbiter (retail): ").map(str::to_owned);
        arbiter.provenance.sources = arbiter.provenance.sources.iter().filter_map(own).collect();
        let arbiter = ArbiterFile::parse(&arbiter.to_text()).unwrap();

        let mut given = FlowFile::parse(WITHOUT).unwrap();
        given.set_arbiter(&arbiter);
        given.provenance.compiled_unix_ms = with.provenance.compiled_unix_ms;
        assert_eq!(given.to_text(), with.to_text());
    }

    #[test]
    fn a_flow_without_an_arbiter_or_with_several_gives_none() {
        let mut file = FlowFile::parse(WITHOUT).unwrap();
        assert_eq!(file.arbiter().unwrap_err(), NoArbiter::None);
        file = FlowFile::parse(WITH).unwrap();
        file.folds[3].weights[0] += 1.0;
        let error = file.arbiter().unwrap_err();
        assert!(error.to_string().contains("--pooled-arbiter"), "{error}");
    }

    #[test]
    fn the_version_is_checked_before_anything_else() {
        let error = |text: &str| ArbiterFile::parse(text).unwrap_err().to_string();
        assert!(
            error("{}").starts_with("not a stretto arbiter: "),
            "{}",
            error("{}")
        );
        assert_eq!(
            error(r#"{"stretto_arbiter": 2}"#),
            "arbiter format 2 is not supported (this build reads 1)"
        );
        assert!(error(r#"{"stretto_arbiter": 1}"#).contains("domain"));
        let mut arbiter = FlowFile::parse(WITH).unwrap().arbiter().unwrap();
        arbiter.fitted.weights.pop();
        assert!(error(&arbiter.to_text()).starts_with("`fitted.weights`: 7 weights, not 8"));
    }
}
