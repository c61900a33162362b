//! What a flow's bindings say to read, prepared for a session.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use stretto_trace::ToolManifest;

use crate::file::{Bindings, Sources};
use crate::value::Reader;

/// From how many values on the order of sources after one tool is trusted.
const ENOUGH_AT_SITE: u64 = 5;

/// How each lookup's arguments are bound.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) lookups: BTreeMap<String, Lookup>,
    pub(crate) slots: Vec<Slot>,
    by_tool: HashMap<String, Vec<Reading>>,
    anywhere: Vec<Reading>,
}

/// One lookup's arguments.
#[derive(Debug, Default)]
pub(crate) struct Lookup {
    /// The arguments it needs, by name.
    pub(crate) required: Vec<(String, Supply)>,
    /// Further arguments that always take one value.
    pub(crate) constants: Vec<(String, Value)>,
    /// Whether training never called it, so that arguments are bound by their names.
    pub(crate) is_by_name: bool,
}

/// Where an argument's value comes from.
#[derive(Clone, Debug)]
pub(crate) enum Supply {
    /// It always takes this value.
    Constant(Value),
    /// From results: a slot of the plan.
    Slot(usize),
    /// Training never saw it take text.
    Nowhere,
}

/// An argument whose values are read from results.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) lookup: String,
    pub(crate) arg: String,
    /// Whether it takes a list of texts.
    pub(crate) is_list: bool,
    /// The places to read, in their order.
    pub(crate) readers: Vec<Reader>,
    /// After a tool that this has: the readers' ranks.
    orders: HashMap<String, Vec<usize>>,
}

impl Slot {
    /// The ranks of the readers when `site` returned last, if training says so.
    pub(crate) fn ranks(&self, site: Option<&str>) -> Option<&[usize]> {
        site.and_then(|site| self.orders.get(site))
            .map(Vec::as_slice)
    }
}

/// A reader of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) slot: usize,
    pub(crate) reader: usize,
}

impl Plan {
    /// Prepares what training counted, and the arguments that are bound by name because
    /// training never called their lookup.
    pub(crate) fn new(bindings: &Bindings, reads: &[String], manifest: &ToolManifest) -> Self {
        let mut plan = Self::default();
        for lookup in bindings.args.keys() {
            let required = bindings
                .required(lookup)
                .map(|arg| (arg.to_owned(), plan.supply(bindings, lookup, arg)))
                .collect::<Vec<_>>();
            let is_required = |arg: &str| required.iter().any(|(name, _)| name == arg);
            let constants = bindings
                .constants
                .iter()
                .filter(|((tool, arg), _)| tool == lookup && !is_required(arg))
                .map(|((_, arg), value)| (arg.clone(), value.clone()))
                .collect();
            plan.lookups.insert(
                lookup.clone(),
                Lookup {
                    required,
                    constants,
                    is_by_name: false,
                },
            );
        }
        for lookup in reads
            .iter()
            .filter(|read| !bindings.args.contains_key(*read))
        {
            let Some(doc) = manifest.docs.get(lookup) else {
                continue;
            };
            let by_name = |arg: &String| {
                let slot = plan.slots.len();
                plan.slots.push(Slot {
                    lookup: lookup.clone(),
                    arg: arg.clone(),
                    is_list: false,
                    readers: vec![Reader::Key(arg.clone())],
                    orders: HashMap::new(),
                });
                plan.anywhere.push(Reading { slot, reader: 0 });
                (arg.clone(), Supply::Slot(slot))
            };
            let required = doc.args.keys().map(by_name).collect();
            plan.lookups.insert(
                lookup.clone(),
                Lookup {
                    required,
                    constants: Vec::new(),
                    is_by_name: true,
                },
            );
        }
        plan
    }

    fn supply(&mut self, bindings: &Bindings, lookup: &str, arg: &str) -> Supply {
        let key = (lookup.to_owned(), arg.to_owned());
        if let Some(value) = bindings.constants.get(&key) {
            return Supply::Constant(value.clone());
        }
        let (sources, is_list) = match (bindings.lists.get(&key), bindings.sources.get(&key)) {
            (Some(lists), _) => (lists, true),
            (None, Some(sources)) => (sources, false),
            (None, None) => return Supply::Nowhere,
        };
        let slot = self.slots.len();
        let mut readers = Vec::new();
        for ((tool, path), _) in sources.usable() {
            let reading = Reading {
                slot,
                reader: readers.len(),
            };
            self.by_tool.entry(tool.clone()).or_default().push(reading);
            readers.push(Reader::path(path));
        }
        let orders = if is_list {
            HashMap::new()
        } else {
            orders(bindings, lookup, arg, sources)
        };
        self.slots.push(Slot {
            lookup: lookup.to_owned(),
            arg: arg.to_owned(),
            is_list,
            readers,
            orders,
        });
        Supply::Slot(slot)
    }

    /// The readers that read results of `tool`, each slot's in their order.
    pub(crate) fn readings(&self, tool: &str) -> impl Iterator<Item = Reading> {
        self.by_tool
            .get(tool)
            .into_iter()
            .flatten()
            .chain(&self.anywhere)
            .copied()
    }
}

/// The orders of an argument's sources, after each tool that training knows enough about:
/// the source that supplied most first, ties in the sources' own order.
pub(crate) fn orders(
    bindings: &Bindings,
    lookup: &str,
    arg: &str,
    sources: &Sources,
) -> HashMap<String, Vec<usize>> {
    let usable: Vec<_> = sources.usable().map(|(source, _)| source).collect();
    let mut counts = HashMap::<String, Vec<u64>>::new();
    for at_site in &bindings.site_sources {
        if at_site.tool != lookup || at_site.arg != arg {
            continue;
        }
        if let Some(index) = usable.iter().position(|source| **source == at_site.source) {
            let counts = counts
                .entry(at_site.site.clone())
                .or_insert_with(|| vec![0; usable.len()]);
            counts[index] = counts[index].saturating_add(at_site.values);
        }
    }
    counts.retain(|_, counts| {
        counts
            .iter()
            .fold(0, |sum: u64, count| sum.saturating_add(*count))
            >= ENOUGH_AT_SITE
    });
    counts
        .into_iter()
        .map(|(site, counts)| {
            let mut order: Vec<usize> = (0..counts.len()).collect();
            order.sort_by_key(|index| std::cmp::Reverse(counts[*index]));
            let mut ranks = vec![0; order.len()];
            for (rank, index) in order.into_iter().enumerate() {
                ranks[index] = rank;
            }
            (site, ranks)
        })
        .collect()
}
