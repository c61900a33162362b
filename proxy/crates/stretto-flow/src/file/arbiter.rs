//! What an arbiter is made of: questions with answers, and how to weigh them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A yes-or-no question about a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Predicate {
    /// Its name, unique in the flow.
    pub id: String,
    /// The options that a yes speaks for.
    pub favors: Favors,
    /// The question.
    pub question: String,
    /// What a yes means.
    pub yes: String,
    /// What a no means.
    pub no: String,
}

/// The options that a predicate speaks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Favors {
    /// The tool that just returned.
    SameLookup,
    /// Every lookup.
    AnyLookup,
    /// Handing back to the agent.
    HandBack,
    /// One lookup, by name.
    Lookup(String),
}

/// One fit of an arbiter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// Four weights, one per weighed predicate, and one for the model's pick.
    pub weights: Vec<f64>,
    /// How far the model was right.
    pub rates: Rates,
}

/// How far an arbiter's model was right, by site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// The record of each site, by its name.
    #[serde(with = "super::pairs")]
    pub sites: BTreeMap<String, SiteRecord>,
    /// How often the model agreed with the agent, over all sites.
    pub agree: f64,
    /// How often the agent's step was on offer, over all sites.
    pub cover: f64,
}

/// A site's record: decisions; those where the model agreed with the agent; those where
/// the agent's step was on offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SiteRecord(pub f64, pub f64, pub f64);
