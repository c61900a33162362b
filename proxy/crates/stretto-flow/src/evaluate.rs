//! What another rule would have brought, told from decisions that were logged with their policy.
//!
//! A log of decisions says what a flow could have taken, with which chance it took what it took,
//! and (as labels) what each option would have been worth to the agent. From that, a *target*, which
//! is another threshold or another decider, is judged without being served.
//!
//! With `a` what the target takes at a record, `b` what was taken, `y` the measures of an option,
//! and `w = [a = b] / propensity(b)`, over the `n` records where the target takes something:
//!
//! ```text
//! direct = Σ y(a)                       IPS = Σ w · y(b)      SNIPS = IPS · n / Σ w
//! DR     = Σ [ŷ(a) + w (y(b) − ŷ(b))]   ESS = (Σ w)² / Σ w²
//! ```
//!
//! `ŷ` is the mean of a lookup's labels over the records of its site that took it, else of any
//! site, else one lookup that is a detour. The estimators are those of Horvitz and Thompson,
//! Hájek, and Robins, Rotnitzky and Zhao; the sample size is Kish's.

mod labels;
mod logged;
mod target;

use std::collections::{BTreeMap, HashMap};

pub use self::labels::{NoSuchCall, label};
pub use self::logged::{Label, Logged, NotLogged};
pub use self::target::{Chances, Target};

/// What options bring: lookups, used ones, detours, and turns of the agent's that are spared.
pub type Measures = [f64; 4];

/// The names of the [`Measures`], in their order.
pub const MEASURES: [&str; 4] = ["lookups", "used", "detours", "turns"];

/// A sum that was estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The sum.
    pub sum: Measures,
    /// Its standard error; 0 for less than two terms, which show none.
    pub error: Measures,
}

/// Estimates that rest on the records in which the log took what the target takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weighted {
    /// By inverse propensities.
    pub ips: Estimate,
    /// The same, divided by the weights instead of by the records.
    pub snips: Measures,
    /// Doubly robust: right if either the propensities or the means are.
    pub dr: Estimate,
}

/// A target at one site, or at all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Records at which the target looks something up.
    pub looks: usize,
    /// Those of them at which the log could not have taken that.
    pub unsupported: usize,
    /// The sum of the labels of what the target takes.
    pub direct: Measures,
    /// The effective sample size; 0 when the log never took what the target takes.
    pub ess: f64,
    /// Missing when the target looks something up and the sample is too small.
    pub weighted: Option<Weighted>,
}

/// A target, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Each site at which the target looks something up.
    pub sites: BTreeMap<String, Row>,
    /// All of them.
    pub total: Row,
}

/// Judges a target. With an effective sample below `min_ess`, what rests on it is left out.
pub fn evaluate(records: &[Logged], target: &Target, min_ess: f64) -> Evaluation {
    let means = Means::of(records);
    let mut all = Vec::new();
    let mut sites = BTreeMap::<&str, Vec<Term>>::new();
    for record in records {
        if let Some(term) = Term::of(record, target, &means) {
            all.push(term);
            sites.entry(&record.site).or_default().push(term);
        }
    }
    Evaluation {
        sites: sites
            .into_iter()
            .map(|(site, terms)| (site.to_owned(), row(&terms, min_ess)))
            .collect(),
        total: row(&all, min_ess),
    }
}

/// What one record says about a target that looks something up there.
#[derive(Clone, Copy, Debug)]
struct Term {
    is_supported: bool,
    weight: f64,
    labels: Measures,
    /// The mean of what the target takes. The log's is the same wherever the weight is not 0.
    mean: Measures,
}

impl Term {
    fn of(record: &Logged, target: &Target, means: &Means) -> Option<Self> {
        let choice = target.takes(record)?;
        let propensity = record.propensity(&choice.tool);
        let is_same = record.taken.as_ref() == Some(&choice.tool);
        Some(Self {
            is_supported: propensity > 0.0,
            weight: if is_same { 1.0 / propensity } else { 0.0 },
            labels: record.measures(&choice.tool),
            mean: means.of_option(&record.site, &choice.tool),
        })
    }

    fn weighted(&self) -> Measures {
        self.labels.map(|label| self.weight * label)
    }

    fn doubly_robust(&self) -> Measures {
        let mut terms = self.mean;
        for (term, (label, mean)) in terms.iter_mut().zip(self.labels.iter().zip(&self.mean)) {
            *term += self.weight * (label - mean);
        }
        terms
    }
}

fn row(terms: &[Term], min_ess: f64) -> Row {
    let weights: f64 = terms.iter().map(|term| term.weight).sum();
    let squares: f64 = terms.iter().map(|term| term.weight * term.weight).sum();
    let ess = if squares > 0.0 {
        weights * weights / squares
    } else {
        0.0
    };
    let looks = terms.len();
    let weighted = (looks == 0 || ess >= min_ess).then(|| {
        let ips = estimate(terms.iter().map(Term::weighted));
        Weighted {
            ips,
            snips: if weights > 0.0 {
                ips.sum.map(|sum| sum * count(looks) / weights)
            } else {
                Measures::default()
            },
            dr: estimate(terms.iter().map(Term::doubly_robust)),
        }
    });
    Row {
        looks,
        unsupported: terms.iter().filter(|term| !term.is_supported).count(),
        direct: estimate(terms.iter().map(|term| term.labels)).sum,
        ess,
        weighted,
    }
}

/// The sum of terms, and its standard error, `√((Σt² − (Σt)²/n) · n/(n−1))`.
fn estimate(terms: impl Iterator<Item = Measures>) -> Estimate {
    let (mut n, mut sum, mut squares) = (0, Measures::default(), Measures::default());
    for term in terms {
        n += 1;
        for (index, value) in term.into_iter().enumerate() {
            sum[index] += value;
            squares[index] += value * value;
        }
    }
    let mut error = Measures::default();
    if n > 1 {
        for (error, (sum, squares)) in error.iter_mut().zip(sum.iter().zip(&squares)) {
            let spread = (squares - sum * sum / count(n)).max(0.0);
            *error = (spread * count(n) / (count(n) - 1.0)).sqrt();
        }
    }
    Estimate { sum, error }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "logs have far fewer than 2^53 decisions"
)]
fn count(n: usize) -> f64 {
    n as f64
}

/// The mean labels of lookups that were made.
struct Means {
    at: HashMap<(String, String), (Measures, usize)>,
    anywhere: HashMap<String, (Measures, usize)>,
}

impl Means {
    fn of(records: &[Logged]) -> Self {
        let mut means = Self {
            at: HashMap::new(),
            anywhere: HashMap::new(),
        };
        for record in records {
            let Some(tool) = &record.taken else { continue };
            let labels = record.measures(tool);
            let at = (record.site.clone(), tool.clone());
            for (sum, n) in [
                means.at.entry(at).or_default(),
                means.anywhere.entry(tool.clone()).or_default(),
            ] {
                *n += 1;
                for (sum, label) in sum.iter_mut().zip(labels) {
                    *sum += label;
                }
            }
        }
        means
    }

    fn of_option(&self, site: &str, tool: &str) -> Measures {
        let at = (site.to_owned(), tool.to_owned());
        let known = self.at.get(&at).or_else(|| self.anywhere.get(tool));
        known.map_or([1.0, 0.0, 1.0, 0.0], |(sum, n)| {
            sum.map(|sum| sum / count(*n))
        })
    }
}

#[cfg(test)]
mod tests;
