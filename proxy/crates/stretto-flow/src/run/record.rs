//! A run that has ended, and its score.

use fugue::core::address::Address;
use fugue::runtime::interpreters::score_given_trace_strict;
use fugue::{ChoiceValue, Trace};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::flow::Flow;
use crate::program;

/// How far two log-probabilities may differ and count as equal.
const TOLERANCE: f64 = 1e-12;

/// A run that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The tool whose call the run followed.
    pub call: String,
    /// Whether that call had failed.
    pub failed: bool,
    /// The most lookups that the run could have made.
    pub max_lookups: u32,
    /// The sites, step by step, a decision before the outcome of its step.
    pub sites: Vec<TracedSite>,
    /// How unexpected the outcomes were under the flow's statistics, in nats. It is -0
    /// without any.
    pub surprise: f64,
}

/// One site of a run, which stands in logs as `[address, value, logp]`.
#[derive(Clone, Debug, PartialEq)]
pub struct TracedSite {
    /// Where it stands, such as `decide#0`.
    pub address: String,
    /// What came of it.
    pub value: SiteValue,
    /// The value's log-probability; 0 for a decision, which is not drawn.
    pub logp: f64,
}

/// What came of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "serde_json::Value")]
pub enum SiteValue {
    /// A decision: the lookup's number, or 0 for handing back.
    Decided(u64),
    /// An outcome: whether the lookup succeeded.
    Succeeded(bool),
}

impl From<SiteValue> for serde_json::Value {
    fn from(value: SiteValue) -> Self {
        match value {
            SiteValue::Decided(number) => number.into(),
            SiteValue::Succeeded(succeeded) => succeeded.into(),
        }
    }
}

impl Serialize for TracedSite {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut site = serializer.serialize_tuple(3)?;
        site.serialize_element(&self.address)?;
        site.serialize_element(&self.value)?;
        site.serialize_element(&self.logp)?;
        site.end()
    }
}

impl<'de> Deserialize<'de> for TracedSite {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (address, value, logp) = <(String, serde_json::Value, f64)>::deserialize(deserializer)?;
        let value = match (value.as_bool(), value.as_u64()) {
            (Some(succeeded), _) => SiteValue::Succeeded(succeeded),
            (None, Some(number)) => SiteValue::Decided(number),
            (None, None) => {
                let why = format!("{value} is neither a number of an option nor an outcome");
                return Err(serde::de::Error::custom(why));
            }
        };
        Ok(Self {
            address,
            value,
            logp,
        })
    }
}

/// A run's score under its flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// The log-probability of all decisions and outcomes.
    pub log_prior: f64,
    /// The largest difference between an outcome's logged log-probability and its score.
    pub worst: f64,
}

impl Scored {
    /// Whether the logged log-probabilities are those of the flow.
    pub fn agrees(&self) -> bool {
        self.worst <= TOLERANCE
    }
}

/// Why a run cannot be scored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run after {call} does not fit the flow's program: {why}")]
pub struct ScoreError {
    /// The call that the run followed.
    pub call: String,
    /// What does not fit.
    pub why: String,
}

impl RunRecord {
    pub(super) fn new(call: String, failed: bool, max_lookups: u32, trace: &Trace) -> Self {
        let mut sites: Vec<TracedSite> = trace
            .choices
            .iter()
            .filter_map(|(address, choice)| {
                let value = match choice.value {
                    ChoiceValue::Usize(number) => SiteValue::Decided(number as u64),
                    ChoiceValue::Bool(succeeded) => SiteValue::Succeeded(succeeded),
                    // Only the two distributions of flows exist.
                    ChoiceValue::F64(_) | ChoiceValue::U64(_) | ChoiceValue::I64(_) => return None,
                };
                Some(TracedSite {
                    address: address.to_string(),
                    value,
                    logp: choice.logp,
                })
            })
            .collect();
        sites.sort_by_cached_key(|site| place(&site.address, site.value));
        let outcomes = sites
            .iter()
            .filter(|site| matches!(site.value, SiteValue::Succeeded(_)));
        // Folded from +0: an empty sum of floats is -0, which the minus would turn.
        let surprise = -outcomes.fold(0.0, |sum, site| sum + site.logp);
        Self {
            call,
            failed,
            max_lookups,
            sites,
            surprise,
        }
    }
}

/// Step 2 before step 10, and in a step the decision first.
fn place(address: &str, value: SiteValue) -> (u64, bool, String) {
    let step = address
        .rsplit_once('#')
        .and_then(|(_, step)| step.parse().ok())
        .unwrap_or(0);
    (
        step,
        matches!(value, SiteValue::Succeeded(_)),
        address.to_owned(),
    )
}

impl Flow {
    /// Scores a run again with the flow's program.
    ///
    /// # Errors
    ///
    /// The run has other sites than the program comes to.
    pub fn score(&self, run: &RunRecord) -> Result<Scored, ScoreError> {
        let error = |why: String| ScoreError {
            call: run.call.clone(),
            why,
        };
        let program = &self.file().program;
        let RunRecord {
            call,
            failed,
            max_lookups,
            ..
        } = run;
        let compiled = program::compile(program, &self.statistics, call, *failed, *max_lookups)
            .map_err(|why| error(why.to_string()))?;
        let mut base = Trace::default();
        for site in &run.sites {
            let value = match site.value {
                SiteValue::Decided(number) => {
                    let number = usize::try_from(number).map_err(|why| error(why.to_string()))?;
                    ChoiceValue::Usize(number)
                }
                SiteValue::Succeeded(succeeded) => ChoiceValue::Bool(succeeded),
            };
            base.insert_choice(Address::new(site.address.as_str()), value, site.logp);
        }
        let (_, trace) = score_given_trace_strict(base, compiled.build())
            .map_err(|why| error(why.to_string().replace('\n', " ")))?;
        if let Some(extra) = run.sites.iter().find(|site| {
            !trace
                .choices
                .contains_key(&Address::new(site.address.as_str()))
        }) {
            return Err(error(format!("{} is no site of it", extra.address)));
        }
        let mut worst: f64 = 0.0;
        for site in run
            .sites
            .iter()
            .filter(|site| matches!(site.value, SiteValue::Succeeded(_)))
        {
            let scored = trace.choices[&Address::new(site.address.as_str())].logp;
            worst = worst.max((scored - site.logp).abs());
        }
        Ok(Scored {
            log_prior: trace.log_prior,
            worst,
        })
    }
}
