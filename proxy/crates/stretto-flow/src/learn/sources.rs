//! Where arguments came from.

use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::{HashMap, HashSet};

use serde_json::Value;
use stretto_trace::{Episode, Event, ToolCall};

use super::{LearnError, Lesson, Progress, Stage, whole};
use crate::file::{Arg, Bindings, SiteSource, SourceRef, share_is_at_least};
use crate::value::{self, Reader};

/// From how many calls on one value may be taken for the only one.
const ENOUGH_CALLS: u64 = 5;

/// Results, and which of them held a text last.
#[derive(Default)]
struct Outputs {
    values: Vec<(String, Value)>,
    last_with: HashMap<String, usize>,
}

impl Outputs {
    fn add(&mut self, tool: &str, content: &str) {
        let value = value::parse(content);
        let index = self.values.len();
        note(&value, index, &mut self.last_with);
        self.values.push((tool.to_owned(), value));
    }

    fn last_tool(&self) -> Option<&str> {
        self.values.last().map(|(tool, _)| tool.as_str())
    }

    /// The first path to `text` in the newest result that holds it.
    fn source(&self, text: &str) -> Option<SourceRef> {
        let (tool, value) = &self.values[*self.last_with.get(text)?];
        let path = value::find(value, text).into_iter().next()?;
        Some((tool.clone(), path))
    }

    /// The newest result with a path that holds all of `texts`.
    fn list_source(&self, texts: &[&str]) -> Option<SourceRef> {
        let newest = *self.last_with.get(*texts.first()?)?;
        self.values[..=newest]
            .iter()
            .rev()
            .find_map(|(tool, value)| {
                let paths = value::find(value, texts[0]);
                let path = paths.into_iter().find(|path| {
                    let found = Reader::path(path).read(value);
                    let there: HashSet<&str> = found.iter().map(|found| found.text).collect();
                    texts.iter().all(|text| there.contains(text))
                })?;
                Some((tool.clone(), path))
            })
    }
}

fn note(value: &Value, index: usize, last_with: &mut HashMap<String, usize>) {
    match value {
        Value::String(text) => match last_with.get_mut(text) {
            Some(last) => *last = index,
            None => drop(last_with.insert(text.clone(), index)),
        },
        Value::Array(items) => items.iter().for_each(|item| note(item, index, last_with)),
        Value::Object(members) => members
            .values()
            .for_each(|member| note(member, index, last_with)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What may still turn out to be an argument's only value.
struct OnlyValue {
    value: Value,
    is_only: bool,
}

#[derive(Default)]
struct Tracer {
    bindings: Bindings,
    at_site: BTreeMap<(String, String, String, SourceRef), u64>,
    only: BTreeMap<Arg, OnlyValue>,
}

/// Traces the arguments of the training sessions' lookups to results.
pub(super) fn trace(
    lesson: &Lesson<'_>,
    constants: bool,
    progress: &mut Progress<'_>,
) -> Result<Bindings, LearnError> {
    let count = |tracer: &mut Tracer, episode: &Episode| tracer.episode(lesson, episode);
    let mut tracer = whole::count(
        lesson.training,
        Stage::Sources,
        progress,
        count,
        Tracer::join,
    )?;
    if constants {
        tracer.constants(lesson);
    }
    Ok(tracer.finish())
}

impl Tracer {
    fn episode(&mut self, lesson: &Lesson<'_>, episode: &Episode) {
        let mut outputs = Outputs::default();
        for event in &episode.events {
            match event {
                Event::Assistant { calls, .. } => {
                    let mut read_before = None;
                    for call in calls.iter().filter(|call| lesson.is_read(&call.name)) {
                        self.call(call, read_before, &outputs);
                        read_before = Some(call.name.as_str());
                    }
                }
                Event::ToolResult {
                    name,
                    error: false,
                    content,
                    ..
                } => outputs.add(name, content),
                Event::ToolResult { .. } | Event::User { .. } => {}
            }
        }
    }

    /// Adds what was traced in other sessions.
    fn join(&mut self, other: Self) {
        let Self {
            bindings: other,
            at_site,
            only,
        } = other;
        let own = &mut self.bindings;
        for (tool, (calls, passed)) in other.args {
            let (own_calls, own_passed) = own.args.entry(tool).or_default();
            *own_calls += calls;
            add(own_passed, passed);
        }
        add(&mut own.bare, other.bare);
        for (own, other) in [
            (&mut own.sources, other.sources),
            (&mut own.lists, other.lists),
        ] {
            for (arg, sources) in other {
                let own = own.entry(arg).or_default();
                own.values += sources.values;
                add(&mut own.found, sources.found);
            }
        }
        add(&mut self.at_site, at_site);
        for (arg, other) in only {
            match self.only.entry(arg) {
                Entry::Occupied(mut own) => {
                    let own = own.get_mut();
                    own.is_only &= other.is_only && own.value == other.value;
                }
                Entry::Vacant(own) => {
                    own.insert(other);
                }
            }
        }
    }

    fn call(&mut self, call: &ToolCall, read_before: Option<&str>, outputs: &Outputs) {
        let Value::Object(arguments) = &call.arguments else {
            return;
        };
        let tool = &call.name;
        let (calls, passed) = self.bindings.args.entry(tool.clone()).or_default();
        *calls += 1;
        for arg in arguments.keys() {
            *passed.entry(arg.clone()).or_default() += 1;
        }
        *self.bindings.bare.entry(tool.clone()).or_default() += u64::from(arguments.is_empty());
        for (arg, value) in arguments {
            let key = (tool.clone(), arg.clone());
            let source = match value {
                Value::String(text) => {
                    let sources = self.bindings.sources.entry(key.clone()).or_default();
                    sources.values += 1;
                    let source = outputs.source(text);
                    if let Some(source) = &source {
                        *sources.found.entry(source.clone()).or_default() += 1;
                        if let Some(site) = read_before.or_else(|| outputs.last_tool()) {
                            let at = (tool.clone(), arg.clone(), site.to_owned(), source.clone());
                            *self.at_site.entry(at).or_default() += 1;
                        }
                    }
                    source
                }
                Value::Array(items) => {
                    let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                    texts.filter(|texts| !texts.is_empty()).and_then(|texts| {
                        let lists = self.bindings.lists.entry(key.clone()).or_default();
                        lists.values += 1;
                        let source = outputs.list_source(&texts)?;
                        *lists.found.entry(source.clone()).or_default() += 1;
                        Some(source)
                    })
                }
                _ => None,
            };
            let only = self.only.entry(key).or_insert_with(|| OnlyValue {
                value: value.clone(),
                is_only: true,
            });
            only.is_only &= only.value == *value && source.is_none();
        }
    }

    /// Arguments passed often, always with one value that no result and no customer gave.
    fn constants(&mut self, lesson: &Lesson<'_>) {
        let mut said = String::new();
        for session in lesson.training {
            for event in &session.episode.events {
                if let Event::User { text } = event {
                    said.push_str(&text.to_lowercase());
                    said.push('\n');
                }
            }
        }
        let is_from_customer = |value: &Value| {
            let Value::String(text) = value else {
                return false;
            };
            let form = value::form(text);
            (text.contains('@') || value::is_key_like(&form)) && said.contains(&form)
        };
        for ((tool, arg), OnlyValue { value, is_only }) in &self.only {
            let (calls, args) = &self.bindings.args[tool];
            let passed = args[arg];
            if *is_only
                && passed >= ENOUGH_CALLS
                && share_is_at_least(passed, *calls, 0.5)
                && !is_from_customer(value)
            {
                self.bindings
                    .constants
                    .insert((tool.clone(), arg.clone()), value.clone());
            }
        }
    }

    fn finish(mut self) -> Bindings {
        let bindings = &mut self.bindings;
        let bare = std::mem::take(&mut bindings.bare);
        bindings.bare = bare
            .into_iter()
            .filter(|(tool, bare)| {
                *bare < bindings.args[tool].0 && bindings.required(tool).next().is_none()
            })
            .collect();
        for ((tool, arg, site, source), values) in self.at_site {
            let key = (tool, arg);
            if bindings
                .sources
                .get(&key)
                .is_some_and(|sources| sources.found.len() > 1)
            {
                let (tool, arg) = key;
                bindings.site_sources.push(SiteSource {
                    tool,
                    arg,
                    site,
                    source,
                    values,
                });
            }
        }
        self.bindings
    }
}

fn add<K: Ord>(counts: &mut BTreeMap<K, u64>, others: BTreeMap<K, u64>) {
    for (key, count) in others {
        *counts.entry(key).or_default() += count;
    }
}
