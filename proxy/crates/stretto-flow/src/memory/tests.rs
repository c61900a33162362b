//! Picks by what is kept of a session, against picks by reading all of it again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use stretto_trace::{Event, ToolCall, ToolManifest};

use super::{Memory, Pick, PickKind, Unbound};
use crate::file::{Bindings, SiteSource, Sources};
use crate::plan::Plan;
use crate::value::{self, Found, Reader};

/// The rules as they are written down, on a whole session.
struct Naive<'a> {
    bindings: &'a Bindings,
    outputs: Vec<(&'a str, Value)>,
    output_of: HashMap<&'a str, usize>,
    customer: String,
    made: Vec<&'a ToolCall>,
    given: BTreeSet<String>,
}

impl<'a> Naive<'a> {
    fn new(bindings: &'a Bindings, events: &'a [Event], pending: &BTreeSet<&str>) -> Self {
        let mut naive = Self {
            bindings,
            outputs: Vec::new(),
            output_of: HashMap::new(),
            customer: String::new(),
            made: Vec::new(),
            given: BTreeSet::new(),
        };
        let mut seen = BTreeSet::new();
        let mut last = Vec::new();
        for event in events {
            match event {
                Event::User { text } => {
                    naive.customer.push_str(&text.to_lowercase());
                    naive.customer.push('\n');
                }
                Event::Assistant { calls, .. } => {
                    for call in calls {
                        if pending.contains(call.id.as_str()) {
                            last.push(call);
                        } else {
                            naive.make(call, &seen);
                        }
                    }
                }
                Event::ToolResult {
                    call_id,
                    name,
                    error: false,
                    content,
                } => {
                    let value = value::parse(content);
                    value::forms(&value, &mut |form| {
                        seen.insert(form);
                    });
                    naive.output_of.insert(call_id, naive.outputs.len());
                    naive.outputs.push((name, value));
                }
                Event::ToolResult { .. } => {}
            }
        }
        for call in last {
            naive.make(call, &seen);
        }
        naive
    }

    fn make(&mut self, call: &'a ToolCall, seen: &BTreeSet<String>) {
        value::forms(&call.arguments, &mut |form| {
            if value::is_key_like(&form) && !seen.contains(&form) {
                self.given.insert(form);
            }
        });
        self.made.push(call);
    }

    fn is_mentioned(&self, text: &str) -> bool {
        let form = value::form(text);
        let bare = form.trim_start_matches('#');
        !bare.is_empty() && (self.customer.contains(&form) || self.customer.contains(bare))
    }

    fn is_there_mentioned(&self, found: &Found<'_>) -> bool {
        self.is_mentioned(found.text)
            || found
                .siblings
                .iter()
                .any(|text| text.chars().count() >= 4 && self.is_mentioned(text))
    }

    fn passed(&self, lookup: &str, arg: &str) -> Vec<(String, &'a ToolCall)> {
        let of_lookup = self.made.iter().filter(|call| call.name == lookup);
        of_lookup
            .filter_map(|call| Some((value::text(call.arguments.get(arg)?), *call)))
            .collect()
    }

    fn pick(&self, lookup: &str) -> Result<Pick, Unbound> {
        let required: Vec<&str> = self.bindings.required(lookup).collect();
        if required.is_empty() && self.made.iter().any(|call| call.name == lookup) {
            return Err(Unbound::Already);
        }
        let mut arguments = Map::new();
        let (mut all, mut named, mut described) = (true, false, false);
        for arg in required {
            let key = (lookup.to_owned(), arg.to_owned());
            if let Some(lists) = self.bindings.lists.get(&key) {
                let list = self.list(lookup, arg, lists)?;
                all &= list.iter().all(|text| self.is_mentioned(text));
                arguments.insert(arg.to_owned(), list.into());
                continue;
            }
            let sources = self
                .bindings
                .sources
                .get(&key)
                .ok_or(Unbound::NeverText(arg.to_owned()))?;
            let (text, is_mentioned, is_named, is_described) = self.text(lookup, arg, sources)?;
            if !is_mentioned {
                all = false;
                named |= is_named;
                described |= is_described;
            }
            arguments.insert(arg.to_owned(), text.into());
        }
        let kind = match (all, named, described) {
            (true, ..) => PickKind::Mentioned,
            (_, true, _) => PickKind::NamedOther,
            (_, _, true) => PickKind::Described,
            _ => PickKind::Unmentioned,
        };
        Ok(Pick { arguments, kind })
    }

    fn list(&self, lookup: &str, arg: &str, lists: &Sources) -> Result<Vec<String>, Unbound> {
        let usable: Vec<_> = lists.usable().map(|(source, _)| source).collect();
        if usable.is_empty() {
            return Err(Unbound::NoListSource(arg.to_owned()));
        }
        let passed = self.passed(lookup, arg);
        for (tool, value) in self.outputs.iter().rev() {
            for (_, path) in usable.iter().filter(|(of, _)| of == tool) {
                let found = Reader::path(path).read(value);
                let texts: Vec<String> = found.iter().map(|found| found.text.to_owned()).collect();
                let text = json!(texts).to_string();
                if !texts.is_empty() && !passed.iter().any(|(passed, _)| *passed == text) {
                    return Ok(texts);
                }
            }
        }
        Err(Unbound::NoListLeft(arg.to_owned()))
    }

    fn text(
        &self,
        lookup: &str,
        arg: &str,
        sources: &Sources,
    ) -> Result<(String, bool, bool, bool), Unbound> {
        let usable: Vec<_> = sources.usable().map(|(source, _)| source).collect();
        let site = self.outputs.last().map(|(tool, _)| *tool);
        let counts: Vec<u64> = usable
            .iter()
            .map(|source| {
                let at_site = self.bindings.site_sources.iter().filter(|at| {
                    at.tool == lookup
                        && at.arg == arg
                        && Some(at.site.as_str()) == site
                        && at.source == **source
                });
                at_site.map(|at| at.values).sum()
            })
            .collect();
        let newest = || (0..self.outputs.len()).rev();
        let mut places = Vec::new();
        if counts.iter().sum::<u64>() >= 5 {
            let mut order: Vec<usize> = (0..usable.len()).collect();
            order.sort_by_key(|index| std::cmp::Reverse(counts[*index]));
            for source in order {
                places.extend(newest().map(|output| (output, usable[source])));
            }
        } else {
            for output in newest() {
                places.extend(usable.iter().map(|source| (output, *source)));
            }
        }
        let passed = self.passed(lookup, arg);
        let is_passed = |text: &str| passed.iter().any(|(passed, _)| passed == text);
        let mut any_mentioned = false;
        let mut candidates: Vec<(String, bool, Vec<String>)> = Vec::new();
        for (output, (tool, path)) in places {
            let (of, value) = &self.outputs[output];
            if of != tool {
                continue;
            }
            let found = Reader::path(path).read(value);
            let list: Vec<String> = found.iter().map(|found| found.text.to_owned()).collect();
            for found in found {
                let is_mentioned = self.is_there_mentioned(&found);
                any_mentioned |= is_mentioned;
                if !is_passed(found.text) && !candidates.iter().any(|(text, ..)| text == found.text)
                {
                    candidates.push((found.text.to_owned(), is_mentioned, list.clone()));
                }
            }
        }
        let picked = candidates.iter().find(|(_, is_mentioned, _)| *is_mentioned);
        let Some((text, is_mentioned, list)) = picked.or(candidates.first()) else {
            let arg = arg.to_owned();
            return Err(if usable.is_empty() {
                Unbound::NoSource(arg)
            } else {
                Unbound::NothingLeft(arg)
            });
        };
        let mut records = Vec::new();
        for other in list
            .iter()
            .filter(|other| *other != text)
            .collect::<BTreeSet<_>>()
        {
            let output = passed
                .iter()
                .filter(|(passed, _)| passed == other)
                .find_map(|(_, call)| self.output_of.get(call.id.as_str()));
            if let Some(output) = output {
                let mut record = BTreeSet::new();
                value::forms(&self.outputs[*output].1, &mut |form| {
                    record.insert(form);
                });
                records.push(record);
            }
        }
        let is_given = |form: &String| {
            value::is_key_like(form) && (self.given.contains(form) || self.is_mentioned(form))
        };
        let described = records
            .iter()
            .flatten()
            .any(|form| is_given(form) && records.iter().any(|record| !record.contains(form)));
        Ok((text.clone(), *is_mentioned, any_mentioned, described))
    }
}

fn sources(values: u64, found: &[(&str, &str, u64)]) -> Sources {
    let found = found
        .iter()
        .map(|(tool, path, count)| (((*tool).to_owned(), (*path).to_owned()), *count));
    Sources {
        values,
        found: found.collect(),
    }
}

fn bindings() -> Bindings {
    let arg = |lookup: &str, arg: &str| (lookup.to_owned(), arg.to_owned());
    let calls = |args: &[&str]| (20, args.iter().map(|arg| ((*arg).to_owned(), 20)).collect());
    Bindings {
        args: [
            ("get".to_owned(), calls(&["id"])),
            ("pair".to_owned(), calls(&["id", "owner"])),
            ("many".to_owned(), calls(&["ids"])),
            ("ping".to_owned(), calls(&[])),
            ("odd".to_owned(), calls(&["n"])),
        ]
        .into(),
        sources: [
            (
                arg("get", "id"),
                sources(
                    20,
                    &[
                        ("find", "$", 4),
                        ("get", "$.rel", 3),
                        ("list", "$[*].id", 9),
                    ],
                ),
            ),
            (arg("pair", "id"), sources(20, &[("list", "$[*].id", 9)])),
            (
                arg("pair", "owner"),
                sources(20, &[("get", "$.owner", 9), ("list", "$[*].owner", 2)]),
            ),
        ]
        .into(),
        lists: [(
            arg("many", "ids"),
            sources(20, &[("get", "$.all[*]", 3), ("list", "$[*].id", 9)]),
        )]
        .into(),
        site_sources: vec![
            SiteSource {
                tool: "get".to_owned(),
                arg: "id".to_owned(),
                site: "get".to_owned(),
                source: ("list".to_owned(), "$[*].id".to_owned()),
                values: 5,
            },
            SiteSource {
                tool: "get".to_owned(),
                arg: "id".to_owned(),
                site: "get".to_owned(),
                source: ("get".to_owned(), "$.rel".to_owned()),
                values: 2,
            },
        ],
        ..Bindings::default()
    }
}

const LOOKUPS: [&str; 5] = ["get", "pair", "many", "ping", "odd"];

/// A record's key, of few.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        (1..7_u8).prop_map(|n| format!("#W10{n}")),
        (1..4_u8).prop_map(|n| format!("w{n}"))
    ]
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => key(),
        1 => prop::sample::select(vec!["Ann Lee", "Bo", "555-0102", "555-0103", "open", "W10", "#", ""])
            .prop_map(str::to_owned),
    ]
}

/// What a tool returns.
fn output(tool: &'static str) -> BoxedStrategy<String> {
    let record = (key(), key(), word(), word(), prop::collection::vec(key(), 0..3)).prop_map(
        |(id, rel, owner, phone, all)| json!({"id": id, "rel": rel, "owner": owner, "phone": phone, "n": 5550, "all": all}),
    );
    match tool {
        "list" => prop::collection::vec((key(), word()), 0..4)
            .prop_map(|rows| {
                let rows = rows
                    .into_iter()
                    .map(|(id, owner)| json!({"id": id, "owner": owner}));
                Value::from(rows.collect::<Vec<_>>()).to_string()
            })
            .boxed(),
        "find" => word().boxed(),
        _ => record.prop_map(|record| record.to_string()).boxed(),
    }
}

type Made = (&'static str, Value, bool, String);

fn call() -> impl Strategy<Value = Made> {
    let tool = prop::sample::select(vec![
        "list", "find", "get", "get", "get", "pair", "many", "ping",
    ]);
    tool.prop_flat_map(|tool| {
        let arguments = match tool {
            "get" => key().prop_map(|id| json!({"id": id})).boxed(),
            "pair" => (key(), word())
                .prop_map(|(id, owner)| json!({"id": id, "owner": owner}))
                .boxed(),
            "many" => prop::collection::vec(key(), 0..3)
                .prop_map(|ids| json!({"ids": ids}))
                .boxed(),
            "find" => word().prop_map(|phone| json!({"phone": phone})).boxed(),
            _ => Just(json!({})).boxed(),
        };
        (
            Just(tool),
            arguments,
            prop::bool::weighted(0.15),
            output(tool),
        )
    })
}

#[derive(Clone, Debug)]
enum Happens {
    Said(String),
    Turn(Vec<Made>),
}

fn session() -> impl Strategy<Value = Vec<Happens>> {
    let said = prop::collection::vec(word(), 1..3).prop_map(|words| Happens::Said(words.join(" ")));
    let turn = prop::collection::vec(call(), 1..4).prop_map(Happens::Turn);
    prop::collection::vec(prop_oneof![1 => said, 3 => turn], 1..14)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_kept_picks_as_reading_everything_again_does(session in session()) {
        let bindings = bindings();
        let plan = Arc::new(Plan::new(&bindings, &[], &ToolManifest::default()));
        let mut memory = Memory::new(plan);
        let mut events = Vec::new();
        let mut next = 0;
        for happens in session {
            match happens {
                Happens::Said(text) => {
                    memory.hear(&text);
                    events.push(Event::User { text });
                    same(&bindings, &events, &BTreeSet::new(), &mut memory)?;
                }
                Happens::Turn(made) => {
                    let begun = memory.outputs();
                    let mut calls = Vec::new();
                    let mut indexes = Vec::new();
                    for (tool, arguments, ..) in &made {
                        indexes.push(memory.call(tool, arguments, begun));
                        next += 1;
                        calls.push(ToolCall { id: next.to_string(), name: (*tool).to_owned(), arguments: arguments.clone() });
                    }
                    let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
                    events.push(Event::Assistant { text: None, calls, usage: None });
                    // Later calls may return first.
                    for at in (0..made.len()).rev() {
                        let (tool, _, failed, content) = &made[at];
                        if !failed {
                            memory.output(Some(indexes[at]), tool, &value::parse(content));
                        }
                        memory.returned(indexes[at]);
                        events.push(Event::ToolResult {
                            call_id: ids[at].clone(),
                            name: (*tool).to_owned(),
                            error: *failed,
                            content: content.clone(),
                        });
                        let pending: BTreeSet<&str> = ids[..at].iter().map(String::as_str).collect();
                        same(&bindings, &events, &pending, &mut memory)?;
                    }
                }
            }
        }
    }
}

fn same(
    bindings: &Bindings,
    events: &[Event],
    pending: &BTreeSet<&str>,
    memory: &mut Memory,
) -> Result<(), TestCaseError> {
    let naive = Naive::new(bindings, events, pending);
    for lookup in LOOKUPS {
        prop_assert_eq!(
            memory.pick(lookup),
            naive.pick(lookup),
            "{} after {:?}",
            lookup,
            events
        );
    }
    Ok(())
}

#[test]
fn a_lookup_that_training_never_made_is_not_picked() {
    let plan = Plan::new(&bindings(), &[], &ToolManifest::default());
    assert_eq!(
        Memory::new(Arc::new(plan)).pick("other"),
        Err(Unbound::NeverCalled)
    );
}
