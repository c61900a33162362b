//! What changed from one flow to another, and what of it a person should look at.
//!
//! A flow acts on its own, so whatever lets it act where or how it did not before needs a
//! review. What only makes it do less, or moves a number, is listed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fmt::Write as _;

use stretto_trace::ToolKind;

use super::facts::{self, Acts, SiteFacts};
use super::show::{mean_weights, place};
use crate::file::{Bindings, FlowFile, Predicate, SourceRef, Tally};
use crate::flow::Flow;
use crate::program;

/// What a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// What tools may do.
    Tools,
    /// The run after a call.
    Program,
    /// Where lookups are on offer, and what follows calls.
    Sites,
    /// Where the flow may act.
    Promotion,
    /// Where arguments come from.
    Bindings,
    /// The input contracts that are pinned.
    Contracts,
    /// The features of results.
    Features,
    /// The questions to a model, and how they are weighed.
    Arbiter,
    /// Where the flow came from.
    Provenance,
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tools => "Tools",
            Self::Program => "Program",
            Self::Sites => "Sites",
            Self::Promotion => "Promotion",
            Self::Bindings => "Bindings",
            Self::Contracts => "Contracts",
            Self::Features => "Features",
            Self::Arbiter => "Arbiter",
            Self::Provenance => "Provenance",
        })
    }
}

/// One thing that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What it is about.
    pub topic: Topic,
    /// Whether a person should look at it before the new flow is served.
    pub needs_review: bool,
    /// What changed, as a sentence of Markdown without its full stop.
    pub text: String,
}

/// What changed from one flow to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// The changes, by topic.
    pub changes: Vec<Change>,
}

impl Diff {
    /// The changes that need a review.
    pub fn to_review(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.needs_review)
    }

    /// The changes in Markdown: those that need a review first, then all others by topic.
    pub fn markdown(&self) -> String {
        if self.changes.is_empty() {
            return "The flows are the same.\n".to_owned();
        }
        let mut text = String::new();
        let mut write = |line: fmt::Arguments<'_>| {
            text.write_fmt(line).expect("memory takes every write");
        };
        let count = self.to_review().count();
        write(format_args!("# Needs review: {count}\n\n"));
        if count == 0 {
            write(format_args!(
                "Nothing: the new flow does nothing that the old one did not.\n"
            ));
        }
        for change in self.to_review() {
            write(format_args!("- {}: {}\n", change.topic, change.text));
        }
        let mut last = None;
        for change in self.changes.iter().filter(|change| !change.needs_review) {
            if last != Some(change.topic) {
                write(format_args!("\n## {}\n\n", change.topic));
                last = Some(change.topic);
            }
            write(format_args!("- {}\n", change.text));
        }
        text
    }
}

/// What changed from `old` to `new`.
///
/// Shares, chances and weights count as changed when they moved by `tolerance` or more;
/// `threshold` is the one that the flows would be served with.
pub fn diff(old: &Flow, new: &Flow, tolerance: f64, threshold: f64) -> Diff {
    let mut differ = Differ {
        old: old.file(),
        new: new.file(),
        tolerance,
        changes: Vec::new(),
    };
    differ.tools();
    differ.program();
    differ.sites(&facts::sites(old, threshold), &facts::sites(new, threshold));
    differ.promotion();
    differ.bindings();
    differ.contracts();
    differ.features();
    differ.arbiter();
    differ.provenance();
    let mut changes = differ.changes;
    changes.sort_by_key(|change| change.topic);
    Diff { changes }
}

struct Differ<'a> {
    old: &'a FlowFile,
    new: &'a FlowFile,
    tolerance: f64,
    changes: Vec<Change>,
}

impl Differ<'_> {
    fn review(&mut self, topic: Topic, text: String) {
        self.changes.push(Change {
            topic,
            needs_review: true,
            text,
        });
    }

    fn list(&mut self, topic: Topic, text: String) {
        self.changes.push(Change {
            topic,
            needs_review: false,
            text,
        });
    }

    fn has_moved(&self, old: f64, new: f64) -> bool {
        (old - new).abs() >= self.tolerance
    }

    fn tools(&mut self) {
        let (old, new) = (&self.old.manifest, &self.new.manifest);
        if old.domain != new.domain {
            self.list(
                Topic::Tools,
                format!("the domain is `{}`, was `{}`", new.domain, old.domain),
            );
        }
        let names: BTreeSet<&String> = old.tools.keys().chain(new.tools.keys()).collect();
        for tool in names {
            match (old.kind(tool), new.kind(tool)) {
                (before, after) if before == after => {}
                (None, Some(ToolKind::Read)) => {
                    self.review(Topic::Tools, format!("`{tool}` is new, and only reads"));
                }
                (Some(before), Some(ToolKind::Read)) => {
                    let before = kind(before);
                    self.review(
                        Topic::Tools,
                        format!("`{tool}` now only reads, was {before}"),
                    );
                }
                (None, Some(after)) => {
                    self.list(Topic::Tools, format!("`{tool}` is new, {}", kind(after)));
                }
                (Some(before), Some(after)) => {
                    let (before, after) = (kind(before), kind(after));
                    self.list(
                        Topic::Tools,
                        format!("`{tool}` is now {after}, was {before}"),
                    );
                }
                (_, None) => self.list(Topic::Tools, format!("`{tool}` is gone")),
            }
        }
    }

    fn program(&mut self) {
        if self.old.program == self.new.program {
            return;
        }
        let what = if program::is_standard(&self.new.program) {
            "the run is the standard one again; it was another"
        } else {
            "the run is another program; read it with flow-show"
        };
        self.review(Topic::Program, what.to_owned());
    }

    fn sites(&mut self, old: &[SiteFacts], new: &[SiteFacts]) {
        match (self.old.sites.every_read, self.new.sites.every_read) {
            (false, true) => {
                self.review(
                    Topic::Sites,
                    "every lookup is now on offer after every call".to_owned(),
                );
            }
            (true, false) => {
                let what = "lookups are on offer only where they followed, no more everywhere";
                self.list(Topic::Sites, what.to_owned());
            }
            _ => {}
        }
        let old: BTreeMap<&str, &SiteFacts> =
            old.iter().map(|site| (site.name.as_str(), site)).collect();
        let new: BTreeMap<&str, &SiteFacts> =
            new.iter().map(|site| (site.name.as_str(), site)).collect();
        for (name, site) in &new {
            let before = old.get(name);
            let offered = |lookup: &str| {
                before.is_some_and(|site| site.lookups.iter().any(|(other, _)| other == lookup))
            };
            for (lookup, _) in site.lookups.iter().filter(|(lookup, _)| !offered(lookup)) {
                self.review(
                    Topic::Sites,
                    format!("`{lookup}` is now on offer after `{name}`"),
                );
            }
            let Some(before) = before else { continue };
            for (lookup, _) in &before.lookups {
                if !site.lookups.iter().any(|(other, _)| other == lookup) {
                    self.list(
                        Topic::Sites,
                        format!("`{lookup}` is no longer on offer after `{name}`"),
                    );
                }
            }
            self.site(before, site);
        }
        for name in old.keys().filter(|name| !new.contains_key(*name)) {
            self.list(
                Topic::Sites,
                format!("nothing is on offer after `{name}` any more"),
            );
        }
    }

    /// A site of both flows.
    fn site(&mut self, old: &SiteFacts, new: &SiteFacts) {
        let name = &new.name;
        match (old.acts, new.acts) {
            (Acts::NotPromoted | Acts::SwitchedOff, Acts::Yes) => {
                self.review(
                    Topic::Promotion,
                    format!("the flow now acts after `{name}`"),
                );
            }
            (Acts::Yes, Acts::NotPromoted | Acts::SwitchedOff) => {
                self.list(
                    Topic::Promotion,
                    format!("the flow no longer acts after `{name}`"),
                );
            }
            _ => {}
        }
        if old.alone.looks_up() != new.alone.looks_up() {
            let text = format!(
                "after `{name}` the habit alone {}; before, it {}",
                new.alone, old.alone
            );
            self.list(Topic::Sites, text);
        }
        let share = |site: &SiteFacts, next: &str| {
            let count = site
                .next
                .iter()
                .find(|(other, _)| other == next)
                .map_or(0.0, |(_, count)| *count);
            if site.total > 0.0 {
                count / site.total
            } else {
                0.0
            }
        };
        let steps: BTreeSet<&str> = old
            .next
            .iter()
            .chain(&new.next)
            .map(|(next, _)| next.as_str())
            .collect();
        let moved: Vec<String> = steps
            .into_iter()
            .map(|next| (next, share(old, next), share(new, next)))
            .filter(|(_, before, after)| self.has_moved(*before, *after))
            .map(|(next, before, after)| {
                format!("`{next}` {:.0}% → {:.0}%", before * 100.0, after * 100.0)
            })
            .collect();
        if !moved.is_empty() {
            let (before, after) = (old.total, new.total);
            let text = format!(
                "after `{name}` ({before} → {after} times): {}",
                moved.join(", ")
            );
            self.list(Topic::Sites, text);
        }
    }

    fn promotion(&mut self) {
        let names: BTreeSet<&String> = self
            .old
            .thresholds
            .keys()
            .chain(self.new.thresholds.keys())
            .collect();
        for site in names {
            let (before, after) = (self.old.thresholds.get(site), self.new.thresholds.get(site));
            if before != after {
                let say = |threshold: Option<&f64>| {
                    threshold.map_or_else(|| "the served one".to_owned(), f64::to_string)
                };
                let (before, after) = (say(before), say(after));
                self.list(
                    Topic::Promotion,
                    format!("the threshold after `{site}`: {before} → {after}"),
                );
            }
        }
        match (&self.old.promoted, &self.new.promoted) {
            (None, Some(_)) => {
                self.list(Topic::Promotion, "only promoted sites act now".to_owned());
            }
            (Some(_), None) => {
                self.list(
                    Topic::Promotion,
                    "no site has to be promoted any more".to_owned(),
                );
            }
            (Some(old), Some(new)) if old.bar != new.bar => {
                self.list(
                    Topic::Promotion,
                    "sites are promoted by another bar".to_owned(),
                );
            }
            _ => {}
        }
        if self.old.surprise != self.new.surprise {
            let what = match (&self.old.surprise, &self.new.surprise) {
                (None, _) => "a surprise gate was added",
                (_, None) => "the surprise gate is gone",
                _ => "the surprise gate is another",
            };
            self.list(Topic::Promotion, what.to_owned());
        }
    }

    fn bindings(&mut self) {
        let (old, new) = (places(self.old), places(self.new));
        for (lookup, arg, source) in new.difference(&old) {
            let text = format!("`{arg}` of `{lookup}` may now come from {}", place(source));
            self.review(Topic::Bindings, text);
        }
        for (lookup, arg, source) in old.difference(&new) {
            let text = format!(
                "`{arg}` of `{lookup}` no longer comes from {}",
                place(source)
            );
            self.list(Topic::Bindings, text);
        }
        let (old, new) = (&self.old.bindings, &self.new.bindings);
        for ((lookup, arg), value) in &new.constants {
            match old.constants.get(&(lookup.clone(), arg.clone())) {
                Some(before) if before == value => {}
                Some(before) => {
                    let text = format!("`{arg}` of `{lookup}` is always `{value}`, was `{before}`");
                    self.review(Topic::Bindings, text);
                }
                None => {
                    let text = format!("`{arg}` of `{lookup}` is now always `{value}`");
                    self.review(Topic::Bindings, text);
                }
            }
        }
        for (lookup, arg) in old
            .constants
            .keys()
            .filter(|key| !new.constants.contains_key(*key))
        {
            let text = format!("`{arg}` of `{lookup}` no longer takes one value always");
            self.list(Topic::Bindings, text);
        }
        let lookups: BTreeSet<&String> = old.args.keys().chain(new.args.keys()).collect();
        for lookup in lookups {
            self.chances(lookup);
            let args = new.required(lookup).chain(old.required(lookup));
            for arg in args.collect::<BTreeSet<_>>() {
                let (before, after) = (
                    facts::orders(self.old, lookup, arg),
                    facts::orders(self.new, lookup, arg),
                );
                if before != after {
                    let text = format!("where to look first for `{arg}` of `{lookup}` is another");
                    self.list(Topic::Bindings, text);
                }
            }
        }
    }

    fn chances(&mut self, lookup: &str) {
        let chances = |file: &FlowFile| {
            let [unmentioned, mentioned] = file
                .bindings
                .agreed
                .get(lookup)
                .copied()
                .unwrap_or_default();
            let usual = unmentioned.smooth();
            let against = |counted: &BTreeMap<String, Tally>| {
                counted
                    .get(lookup)
                    .map_or(usual, |tally| tally.against(usual))
            };
            [
                usual,
                mentioned.smooth(),
                against(&file.bindings.named_other),
                against(&file.bindings.described_read),
            ]
        };
        // Without a count of its own, a kind of pick is trusted as any that was not mentioned.
        let is_counted = |counted: fn(&Bindings) -> &BTreeMap<String, Tally>| {
            [self.old, self.new]
                .iter()
                .any(|file| counted(&file.bindings).contains_key(lookup))
        };
        let kinds = [
            ("not mentioned", true),
            ("mentioned", true),
            (
                "another named",
                is_counted(|bindings| &bindings.named_other),
            ),
            (
                "described and read",
                is_counted(|bindings| &bindings.described_read),
            ),
        ];
        let (before, after) = (chances(self.old), chances(self.new));
        for (((name, is_counted), before), after) in kinds.into_iter().zip(before).zip(after) {
            if is_counted && self.has_moved(before, after) {
                let text = format!("`{lookup}`'s arguments, {name}: {before:.2} → {after:.2}");
                self.list(Topic::Bindings, text);
            }
        }
    }

    fn contracts(&mut self) {
        let (old, new) = (&self.old.contracts, &self.new.contracts);
        if old.is_empty() || new.is_empty() {
            return;
        }
        for tool in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
            if old.get(tool) != new.get(tool) {
                let say = |contract: Option<&String>| {
                    contract.map_or_else(
                        || "nothing pinned".to_owned(),
                        |contract| format!("`{contract}`"),
                    )
                };
                let text = format!(
                    "`{tool}` takes {}, was {}",
                    say(new.get(tool)),
                    say(old.get(tool))
                );
                self.list(Topic::Contracts, text);
            }
        }
    }

    fn features(&mut self) {
        if self.old.map != self.new.map {
            let tools = |file: &FlowFile| match file.map.fields.len() {
                0 => "no tool".to_owned(),
                _ => file
                    .map
                    .fields
                    .keys()
                    .map(|tool| format!("`{tool}`"))
                    .collect::<Vec<_>>()
                    .join(", "),
            };
            let text = format!("features of {}, was {}", tools(self.new), tools(self.old));
            self.list(Topic::Features, text);
        }
    }

    fn arbiter(&mut self) {
        match (self.old.folds.is_empty(), self.new.folds.is_empty()) {
            (true, true) => return,
            (true, false) => {
                let text = format!(
                    "an arbiter was added: it asks `{}`, with {} predicates",
                    self.new.model,
                    self.new.predicates.len()
                );
                self.review(Topic::Arbiter, text);
                return;
            }
            (false, true) => {
                self.list(Topic::Arbiter, "the arbiter is gone".to_owned());
                return;
            }
            (false, false) => {}
        }
        if self.old.model != self.new.model {
            let text = format!(
                "the arbiter asks `{}`, was `{}`",
                self.new.model, self.old.model
            );
            self.review(Topic::Arbiter, text);
        }
        let by_id = |predicates: &[Predicate]| -> BTreeMap<String, Predicate> {
            predicates
                .iter()
                .map(|predicate| (predicate.id.clone(), predicate.clone()))
                .collect()
        };
        let (old, new) = (by_id(&self.old.predicates), by_id(&self.new.predicates));
        for (id, predicate) in &new {
            match old.get(id) {
                Some(before) if before == predicate => {}
                Some(_) => self.review(
                    Topic::Arbiter,
                    format!("the predicate `{id}` is worded anew"),
                ),
                None => self.review(Topic::Arbiter, format!("the predicate `{id}` is new")),
            }
        }
        for id in old.keys().filter(|id| !new.contains_key(*id)) {
            self.list(Topic::Arbiter, format!("the predicate `{id}` is gone"));
        }
        let before: BTreeMap<String, f64> = mean_weights(self.old).into_iter().collect();
        for (name, after) in mean_weights(self.new) {
            let before = before.get(&name).copied().unwrap_or(0.0);
            if self.has_moved(before, after) {
                self.list(
                    Topic::Arbiter,
                    format!("the weight of {name}: {before:.3} → {after:.3}"),
                );
            }
        }
    }

    fn provenance(&mut self) {
        let (old, new) = (&self.old.provenance, &self.new.provenance);
        if old.sources != new.sources {
            let (old, new) = (old.sources.join(", "), new.sources.join(", "));
            self.list(Topic::Provenance, format!("learned from {new}, was {old}"));
        }
        if old.habit_episodes != new.habit_episodes {
            let (old, new) = (old.habit_episodes, new.habit_episodes);
            self.list(Topic::Provenance, format!("{new} sessions, were {old}"));
        }
        if old.arbiter_cases != new.arbiter_cases {
            let (old, new) = (old.arbiter_cases, new.arbiter_cases);
            self.list(
                Topic::Provenance,
                format!("{new} decisions of the arbiter's, were {old}"),
            );
        }
        match (&self.old.reach, &self.new.reach) {
            (None, Some(_)) => self.list(Topic::Provenance, "reach is counted now".to_owned()),
            (Some(_), None) => {
                self.list(Topic::Provenance, "reach is no longer counted".to_owned());
            }
            _ => {}
        }
    }
}

/// All places that arguments may come from.
fn places(file: &FlowFile) -> BTreeSet<(String, String, SourceRef)> {
    let bindings = &file.bindings;
    bindings
        .sources
        .iter()
        .chain(&bindings.lists)
        .flat_map(|((lookup, arg), sources)| {
            sources
                .usable()
                .map(|(source, _)| (lookup.clone(), arg.clone(), source.clone()))
        })
        .collect()
}

fn kind(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "a lookup",
        ToolKind::Write => "a write",
        ToolKind::Generic => "of no known kind",
    }
}
