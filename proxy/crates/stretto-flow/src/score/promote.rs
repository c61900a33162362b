//! Which sites of a flow have shown enough to act.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::each::each;
use super::{Ask, Score, SiteScore, score};
use crate::decide::Settings;
use crate::file::{Bar, Promoted, PromotedSite};
use crate::flow::Flow;
use crate::learn::Session;

/// The quantile of the normal distribution that one-sided bounds of 95% are made with.
const Z: f64 = 1.644_853_6;

/// How often scoring with the sites promoted so far is repeated, at most.
const ROUNDS: usize = 8;

/// The lower bound of a share: Wilson's, one-sided, at 95%.
///
/// ```
/// assert!((stretto_flow::lower_bound(3, 3) - 0.5258044340133321).abs() < 1e-12);
/// assert_eq!(stretto_flow::lower_bound(0, 0), 0.0);
/// ```
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of lookups are far below 2^53"
)]
pub fn lower_bound(used: u64, lookups: u64) -> f64 {
    if lookups == 0 {
        return 0.0;
    }
    let n = lookups as f64;
    let share = used as f64 / n;
    let spread = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    ((share + Z * Z / (2.0 * n) - spread) / (1.0 + Z * Z / n)).max(0.0)
}

impl Bar {
    /// What a site has shown, and whether it passes.
    fn judge(&self, site: &SiteScore) -> PromotedSite {
        let SiteScore {
            decisions,
            lookups,
            used,
            ref tasks,
        } = *site;
        let tasks = tasks.len() as u64;
        let lower = lower_bound(used, lookups);
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts of lookups are far below 2^53"
        )]
        let is_used = lookups > 0 && used as f64 / lookups as f64 >= self.min_used;
        let promoted = is_used && lower >= self.min_lower && tasks >= self.min_tasks;
        PromotedSite {
            decisions,
            lookups,
            used,
            tasks,
            lower,
            promoted,
        }
    }
}

/// Scores every site of `flow` on `sessions`, and says which pass `bar`.
///
/// Runs chain through every site at first, then only through those that passed, until the
/// same ones pass again. The arbiter's questions go to `ask`, the same ones in each round.
pub fn promote(
    flow: &Arc<Flow>,
    sessions: &[&Session],
    settings: &Settings,
    per_call: usize,
    bar: Bar,
    progress: &mut dyn FnMut(usize, usize),
    ask: &mut Ask<'_>,
) -> (Promoted, Score) {
    let settings = Settings {
        threshold: bar.threshold,
        ..settings.clone()
    };
    let mut round = |may_chain: &(dyn Fn(&str) -> bool + Sync)| {
        let mut total = Score::default();
        let scores = each(
            sessions,
            settings.decider,
            &mut |done| progress(done, sessions.len()),
            ask,
            &|session, ask| score(flow, session, &settings, per_call, may_chain, ask),
        );
        for score in &scores {
            total.add(score);
        }
        let judged = total
            .sites
            .iter()
            .map(|(name, site)| (name.clone(), bar.judge(site)));
        (judged.collect::<BTreeMap<_, _>>(), total)
    };
    let (mut sites, mut total) = round(&|_| true);
    for _ in 0..ROUNDS {
        let before = sites;
        (sites, total) = round(&|site| before.get(site).is_some_and(|site| site.promoted));
        if sites == before {
            break;
        }
    }
    (Promoted { bar, sites }, total)
}
