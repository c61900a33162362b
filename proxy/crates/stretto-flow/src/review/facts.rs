//! What is said of a flow, worked out from its counts.

use std::fmt;

use stretto_trace::ToolDoc;

use crate::file::{Action, FlowFile, SourceRef, Sources, Tally};
use crate::flow::{Flow, RESPOND, site_name};
use crate::plan;

/// A site: a tool, and whether its call failed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SiteFacts {
    pub(super) name: String,
    /// The lookups on offer, with how often each was the next step.
    pub(super) lookups: Vec<(String, u64)>,
    /// What the agent did next, the most frequent first, as counts.
    pub(super) next: Vec<(String, f64)>,
    /// How often the site was followed by anything.
    pub(super) total: f64,
    pub(super) alone: Alone,
    /// Whether the flow may act there.
    pub(super) acts: Acts,
}

/// Whether a flow may act at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acts {
    Yes,
    NotPromoted,
    SwitchedOff,
}

/// What the habit alone does at a site.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Alone {
    /// The likeliest lookup, its share of next steps, and its arguments' pooled chance.
    pub(super) best: Option<(String, f64, f64)>,
    pub(super) threshold: f64,
    pub(super) acts: Acts,
}

impl Alone {
    /// The lookup that is made, if one is.
    pub(super) fn looks_up(&self) -> Option<&str> {
        let (lookup, share, chance) = self.best.as_ref()?;
        let is_made = self.acts == Acts::Yes && share * chance >= self.threshold;
        is_made.then_some(lookup)
    }
}

impl fmt::Display for Alone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((lookup, share, chance)) = &self.best else {
            return f.write_str("hands back: nothing is on offer");
        };
        let product = share * chance;
        let sum = format!("`{lookup}` {share:.2} × {chance:.2} = {product:.2}");
        match self.acts {
            Acts::NotPromoted => write!(f, "hands back: not promoted ({sum})"),
            Acts::SwitchedOff => write!(f, "hands back: switched off ({sum})"),
            Acts::Yes if product >= self.threshold => write!(f, "looks up {sum}"),
            Acts::Yes => write!(f, "hands back: {sum}, below {}", self.threshold),
        }
    }
}

/// The sites of a flow, by name, at a served threshold.
pub(super) fn sites(flow: &Flow, threshold: f64) -> Vec<SiteFacts> {
    let file = flow.file();
    let mut sites: Vec<SiteFacts> = file
        .sites
        .next
        .keys()
        .map(|(tool, failed)| site(flow, tool, *failed, threshold))
        .collect();
    sites.sort_by(|one, other| one.name.cmp(&other.name));
    sites
}

fn site(flow: &Flow, tool: &str, failed: bool, threshold: f64) -> SiteFacts {
    let file = flow.file();
    let name = site_name(tool, failed);
    let followed = &flow.statistics.followed;
    let action = flow.vocabulary.tool(tool);
    let total = followed.total(action, failed);
    let mut next: Vec<(String, f64)> = followed
        .all(action, failed)
        .map(|(next, count)| (action_name(file, next), count))
        .collect();
    next.sort_by(|(one, few), (other, many)| many.total_cmp(few).then_with(|| one.cmp(other)));
    let counted = file.sites.next.get(&(tool.to_owned(), failed));
    let lookups: Vec<(String, u64)> = flow
        .lookups(tool, failed)
        .into_iter()
        .map(|lookup| {
            let count = counted
                .and_then(|counted| counted.get(lookup))
                .copied()
                .unwrap_or(0);
            (lookup.to_owned(), count)
        })
        .collect();
    let acts = acts(file, &name);
    let mut best: Option<(&str, f64)> = None;
    for (lookup, _) in &lookups {
        let count = followed.count(action, failed, flow.vocabulary.tool(lookup));
        let share = if total > 0.0 { count / total } else { 0.0 };
        if best.is_none_or(|(_, most)| share > most) {
            best = Some((lookup, share));
        }
    }
    let best = best.map(|(lookup, share)| (lookup.to_owned(), share, pooled_chance(flow, lookup)));
    let threshold = file.thresholds.get(&name).copied().unwrap_or(threshold);
    SiteFacts {
        name,
        next,
        total,
        alone: Alone {
            best,
            threshold,
            acts,
        },
        acts,
        lookups,
    }
}

/// Whether the flow may act at a site.
pub(super) fn acts(file: &FlowFile, site: &str) -> Acts {
    let is_held = |promoted: &crate::file::Promoted| {
        !promoted.sites.get(site).is_some_and(|site| site.promoted)
    };
    if file.promoted.as_ref().is_some_and(is_held) {
        Acts::NotPromoted
    } else if file
        .thresholds
        .get(site)
        .is_some_and(|threshold| *threshold > 1.0)
    {
        Acts::SwitchedOff
    } else {
        Acts::Yes
    }
}

/// An action's name by its id.
fn action_name(file: &FlowFile, id: u32) -> String {
    match usize::try_from(id).ok().and_then(|id| file.vocab.get(id)) {
        Some(Action::Respond) => RESPOND.to_owned(),
        Some(Action::Tool(tool)) => tool.clone(),
        None => "another tool".to_owned(),
    }
}

/// The chance that a lookup's arguments are the agent's own, mentioned or not.
pub(super) fn pooled_chance(flow: &Flow, lookup: &str) -> f64 {
    let bindings = &flow.file().bindings;
    let Some((calls, _)) = bindings.args.get(lookup) else {
        let doc = flow.file().manifest.docs.get(lookup);
        return match doc {
            Some(ToolDoc { args, .. }) if args.is_empty() => 1.0,
            Some(_) => 0.5,
            None => 0.0,
        };
    };
    let required: Vec<&str> = bindings.required(lookup).collect();
    if required.is_empty() {
        return bindings
            .bare
            .get(lookup)
            .map_or(1.0, |bare| Tally(*bare, *calls).smooth());
    }
    if required
        .iter()
        .any(|arg| supplies(flow.file(), lookup, arg).is_nothing())
    {
        return 0.0;
    }
    let [Tally(one, of), Tally(other, of_other)] =
        bindings.agreed.get(lookup).copied().unwrap_or_default();
    Tally(one.saturating_add(other), of.saturating_add(of_other)).smooth()
}

/// What supplies an argument.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Supplies {
    pub(super) constant: Option<serde_json::Value>,
    pub(super) is_list: bool,
    /// How many values it took.
    pub(super) values: u64,
    /// The usable places, with how many values came from each.
    pub(super) sources: Vec<(SourceRef, u64)>,
}

impl Supplies {
    pub(super) fn is_nothing(&self) -> bool {
        self.constant.is_none() && self.sources.is_empty()
    }
}

/// What supplies the argument `arg` of `lookup`.
pub(super) fn supplies(file: &FlowFile, lookup: &str, arg: &str) -> Supplies {
    let bindings = &file.bindings;
    let key = (lookup.to_owned(), arg.to_owned());
    let lists = bindings.lists.get(&key);
    let sources = lists.or_else(|| bindings.sources.get(&key));
    Supplies {
        constant: bindings.constants.get(&key).cloned(),
        is_list: lists.is_some(),
        values: sources.map_or(0, |sources| sources.values),
        sources: sources
            .into_iter()
            .flat_map(Sources::usable)
            .map(|(source, values)| (source.clone(), values))
            .collect(),
    }
}

/// The orders of an argument's sources after tools that training knows enough about, with
/// two sources or more: the tool, and the sources in their order.
pub(super) fn orders(file: &FlowFile, lookup: &str, arg: &str) -> Vec<(String, Vec<SourceRef>)> {
    let key = (lookup.to_owned(), arg.to_owned());
    let Some(sources) = file.bindings.sources.get(&key) else {
        return Vec::new();
    };
    let usable: Vec<&SourceRef> = sources.usable().map(|(source, _)| source).collect();
    if usable.len() < 2 {
        return Vec::new();
    }
    let mut orders: Vec<(String, Vec<SourceRef>)> =
        plan::orders(&file.bindings, lookup, arg, sources)
            .into_iter()
            .map(|(site, ranks)| {
                let mut order: Vec<usize> = (0..usable.len()).collect();
                order.sort_by_key(|index| ranks[*index]);
                (
                    site,
                    order
                        .into_iter()
                        .map(|index| usable[index].clone())
                        .collect(),
                )
            })
            .collect();
    orders.sort();
    orders
}
