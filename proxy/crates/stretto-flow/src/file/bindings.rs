//! Where the arguments of lookups came from, and how often that was right.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An argument of a lookup: the lookup's name, and the argument's.
pub type Arg = (String, String);

/// A place in results: the tool whose they are, and the path in them.
pub type SourceRef = (String, String);

/// Everything counted about arguments. Fields are in the order of writing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bindings {
    /// The agent's calls of each lookup, and in how many each argument was passed.
    pub args: BTreeMap<String, (u64, BTreeMap<String, u64>)>,
    /// Where arguments that took text came from.
    #[serde(with = "super::pairs")]
    pub sources: BTreeMap<Arg, Sources>,
    /// How often a pick was the agent's own: first of those the customer had not
    /// mentioned, then of those they had.
    pub agreed: BTreeMap<String, [Tally; 2]>,
    /// How often a pick was used although the customer had named another value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub named_other: BTreeMap<String, Tally>,
    /// How often a pick was used although the record the customer described had been read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub described_read: BTreeMap<String, Tally>,
    /// Where arguments came from, by the tool that had returned last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub site_sources: Vec<SiteSource>,
    /// Where arguments that took lists of text came from.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        with = "super::pairs"
    )]
    pub lists: BTreeMap<Arg, Sources>,
    /// How often a lookup was called without arguments.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bare: BTreeMap<String, u64>,
    /// Arguments that always took one value.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        with = "super::pairs"
    )]
    pub constants: BTreeMap<Arg, Value>,
}

impl Bindings {
    /// The first field in use that only format 2 has.
    pub(super) fn newer_field(&self) -> Option<&'static str> {
        [
            ("named_other", self.named_other.is_empty()),
            ("described_read", self.described_read.is_empty()),
            ("site_sources", self.site_sources.is_empty()),
            ("lists", self.lists.is_empty()),
            ("bare", self.bare.is_empty()),
            ("constants", self.constants.is_empty()),
        ]
        .into_iter()
        .find_map(|(name, is_empty)| (!is_empty).then_some(name))
    }

    /// The arguments that `lookup` needs, by name: those passed in nine of ten calls.
    pub fn required(&self, lookup: &str) -> impl Iterator<Item = &str> {
        let counted = self.args.get(lookup);
        counted.into_iter().flat_map(|(calls, args)| {
            args.iter()
                .filter(|(_, passed)| share_is_at_least(**passed, *calls, 0.9))
                .map(|(arg, _)| arg.as_str())
        })
    }
}

/// Whether `part` is at least `share` of `whole`.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of calls are far below 2^53"
)]
pub(crate) fn share_is_at_least(part: u64, whole: u64, share: f64) -> bool {
    part as f64 >= share * whole as f64
}

/// How often something held, and how often it could have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally(pub u64, pub u64);

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
        self.1 += other.1;
    }
}

impl Tally {
    /// Counts one more time, when it held or did not.
    pub(crate) fn add(&mut self, held: bool) {
        self.0 += u64::from(held);
        self.1 += 1;
    }

    /// The chance that it holds next time, after one imagined time of each kind.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of calls are far below 2^53"
    )]
    pub fn smooth(self) -> f64 {
        (self.0 as f64 + 1.0) / (self.1 as f64 + 2.0)
    }

    /// The chance that it holds next time, when two imagined times held as often as
    /// `usual` says.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of calls are far below 2^53"
    )]
    pub fn against(self, usual: f64) -> f64 {
        (self.0 as f64 + 2.0 * usual) / (self.1 as f64 + 2.0)
    }
}

/// Where the values of one argument came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// How many values it took.
    pub values: u64,
    /// How many of them were found at each place.
    #[serde(with = "super::pairs")]
    pub found: BTreeMap<SourceRef, u64>,
}

impl Sources {
    /// The places worth reading: found twice or more, and for a tenth of the values.
    pub fn usable(&self) -> impl Iterator<Item = (&SourceRef, u64)> {
        self.found
            .iter()
            .map(|(source, found)| (source, *found))
            .filter(|(_, found)| *found >= 2 && share_is_at_least(*found, self.values, 0.1))
    }
}

/// How many values of an argument came from one place after one tool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SiteSource {
    /// The lookup.
    pub tool: String,
    /// Its argument.
    pub arg: String,
    /// The tool that had returned last.
    pub site: String,
    /// Where the values were found.
    pub source: SourceRef,
    /// How many.
    pub values: u64,
}
