//! What an experiment found: a table, and the same as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::agent::Counts;
use super::interval::{Interval, mean};
use super::session::Outcome;
use super::{Arm, Lab};

/// What an experiment found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of this form.
    pub stretto_lab: u32,
    /// The seed of everything.
    pub seed: u64,
    /// How many sessions each arm played.
    pub sessions: usize,
    /// How many sessions the flow was learned from; 0 when no arm has a flow.
    pub lessons: usize,
    /// The arms; `off` is the first.
    pub arms: Vec<ArmReport>,
}

/// What an arm came to.
#[derive(Clone, Debug, Serialize)]
pub struct ArmReport {
    /// Its name.
    pub arm: &'static str,
    /// All its sessions together.
    pub total: Counts,
    /// Calls of the agent per session, with the interval of that mean.
    pub calls: Interval,
    /// Per session, paired: calls of the agent more than in `off`.
    pub calls_more: Interval,
    /// Turns spared per session.
    pub spared: Interval,
    /// Per session, paired: forbidden writes carried out more than in `off`.
    pub harm_more: Interval,
    /// Per session, paired: wishes served more than in `off`.
    pub served_more: Interval,
    /// How long the agent waited for a call, on average, in milliseconds. Measured: it differs from run to run.
    pub wait_ms: f64,
    /// Per session, paired: milliseconds that a call took longer than in `off`. Measured, too.
    pub wait_more_ms: Interval,
    /// Each session's counts, in the order of the customers, which is the same in all arms.
    pub by_session: Vec<Counts>,
}

impl Report {
    pub(super) fn new(lab: &Lab, lessons: usize, arms: &[(Arm, Vec<Outcome>)]) -> Self {
        let base = arms
            .first()
            .map(|(_, outcomes)| outcomes.as_slice())
            .unwrap_or_default();
        Self {
            stretto_lab: 1,
            seed: lab.seed,
            sessions: lab.sessions.get(),
            lessons,
            arms: arms
                .iter()
                .map(|(arm, outcomes)| ArmReport::new(*arm, outcomes, base))
                .collect(),
        }
    }

    /// The report as a table for a person.
    pub fn table(&self) -> String {
        let mut text = String::from(
            "arm     calls  vs off                turns   lookups        forbidden writes    refusals     wishes  ms a call\n\
             \x20                                    spared  used  detours  tried  carried out  right wrong  served  vs off\n",
        );
        for arm in &self.arms {
            let total = &arm.total;
            let is_base = arm.arm == Arm::Off.name();
            let against = |interval: &Interval, digits: usize| {
                if is_base {
                    "-".to_owned()
                } else {
                    signed(interval, digits)
                }
            };
            let shadow = if is_shadow(arm) { "*" } else { "" };
            writeln!(
                text,
                "{:<7} {:>5.2}  {:<20}  {:>6}  {:>4}  {:>7}  {:>5}  {:>11}  {:>5} {:>5}  {:>6}  {}",
                arm.arm,
                arm.calls.mean,
                against(&arm.calls_more, 2),
                total.spared,
                format!("{}{shadow}", total.used),
                format!("{}{shadow}", total.detours),
                total.forbidden,
                total.harm,
                total.refused_right,
                total.refused_wrong,
                total.served,
                against(&arm.wait_more_ms, 1),
            )
            .expect("a string takes whatever it is given");
        }
        write!(
            text,
            "\n{} sessions in each arm, the same customers (seed {}){}.\n\
             calls are a session's mean; the other counts are of all sessions together. \
             [low, high]: 95%, paired.\n",
            self.sessions,
            self.seed,
            if self.lessons == 0 {
                String::new()
            } else {
                format!("; the flow is learned from {} other sessions", self.lessons)
            },
        )
        .expect("a string takes whatever it is given");
        if self.arms.iter().any(is_shadow) {
            text.push_str(
                "* would have been looked up; used: the agent made the same call later.\n",
            );
        }
        text
    }
}

fn is_shadow(report: &ArmReport) -> bool {
    Arm::ALL
        .iter()
        .any(|arm| arm.is_shadow() && arm.name() == report.arm)
}

impl ArmReport {
    fn new(arm: Arm, outcomes: &[Outcome], base: &[Outcome]) -> Self {
        let each = |of: &dyn Fn(&Outcome) -> f64| {
            Interval::of(&outcomes.iter().map(of).collect::<Vec<_>>())
        };
        let more = |of: &dyn Fn(&Outcome) -> f64| {
            let pairs = outcomes.iter().zip(base);
            Interval::of(
                &pairs
                    .map(|(one, base)| of(one) - of(base))
                    .collect::<Vec<_>>(),
            )
        };
        let calls = |outcome: &Outcome| number(outcome.counts.calls);
        let wait = |outcome: &Outcome| mean(&outcome.waits);
        Self {
            arm: arm.name(),
            total: outcomes
                .iter()
                .fold(Counts::default(), |sum, outcome| sum.with(&outcome.counts)),
            calls: each(&calls),
            calls_more: more(&calls),
            spared: each(&|outcome| number(outcome.counts.spared)),
            harm_more: more(&|outcome| number(outcome.counts.harm)),
            served_more: more(&|outcome| number(outcome.counts.served)),
            wait_ms: each(&wait).mean,
            wait_more_ms: more(&wait),
            by_session: outcomes.iter().map(|outcome| outcome.counts).collect(),
        }
    }
}

impl Counts {
    fn with(self, other: &Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            spared: self.spared + other.spared,
            lookups: self.lookups + other.lookups,
            used: self.used + other.used,
            detours: self.detours + other.detours,
            writes: self.writes + other.writes,
            forbidden: self.forbidden + other.forbidden,
            harm: self.harm + other.harm,
            refused_right: self.refused_right + other.refused_right,
            refused_wrong: self.refused_wrong + other.refused_wrong,
            served: self.served + other.served,
        }
    }
}

/// A difference with its interval: `-1.20 [-1.45, -0.95]`.
fn signed(interval: &Interval, digits: usize) -> String {
    let number = |number: f64| {
        let text = format!("{number:+.digits$}");
        // Rounded to nothing, a number has no sign.
        if text.chars().any(|c| ('1'..='9').contains(&c)) {
            text
        } else {
            format!("{:.digits$}", 0.0)
        }
    };
    format!(
        "{} [{}, {}]",
        number(interval.mean),
        number(interval.low),
        number(interval.high)
    )
}

#[expect(clippy::cast_precision_loss, reason = "no session has 2^53 calls")]
pub(super) fn number(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(calls: usize, wait: f64) -> Outcome {
        Outcome {
            task: String::new(),
            counts: Counts {
                calls,
                ..Counts::default()
            },
            waits: vec![wait; calls],
            log: std::path::PathBuf::new(),
        }
    }

    #[test]
    fn differences_are_of_the_same_customer_in_two_arms() {
        let base = [outcome(9, 20.0), outcome(3, 20.0)];
        let arm = [outcome(7, 25.0), outcome(1, 25.0)];
        let report = ArmReport::new(Arm::Reach, &arm, &base);
        // Two customers as unlike as these leave a wide mean, and yet the pairs agree.
        assert!(report.calls.high - report.calls.low > 3.0);
        assert_eq!(signed(&report.calls_more, 2), "-2.00 [-2.00, -2.00]");
        assert_eq!(signed(&report.wait_more_ms, 1), "+5.0 [+5.0, +5.0]");
        assert_eq!(report.total.calls, 8);
    }

    #[test]
    fn what_rounds_to_nothing_has_no_sign() {
        let near = Interval {
            mean: -0.001,
            low: -0.004,
            high: 0.004,
        };
        assert_eq!(signed(&near, 2), "0.00 [0.00, 0.00]");
    }
}
