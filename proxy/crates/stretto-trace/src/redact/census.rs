//! How common each value is.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::rewrite::Redactor;
use super::walk::{self, Sink};
use super::words::words;
use super::{Options, normal};
use crate::mcp::Log;

/// What there is in a batch of sessions, and in how many of them.
#[derive(Debug)]
pub struct Census {
    options: Options,
    fields: HashSet<String>,
    /// Those of them that were met.
    met: HashSet<String>,
    /// The sessions that have each value, by number; not more of them than matter.
    seen: HashMap<String, Vec<usize>>,
    sessions: HashMap<String, usize>,
    /// The session that is being counted.
    current: usize,
    /// What servers say their tools and fields are called.
    declared: HashSet<String>,
    forced: HashSet<String>,
    /// Values of two or more words, which may be met again in running text.
    phrases: HashSet<String>,
}

impl Census {
    /// Nothing counted yet.
    pub fn new(options: &Options) -> Self {
        let fields = options
            .hash_fields
            .iter()
            .map(|field| normal(field))
            .collect();
        Self {
            options: options.clone(),
            fields,
            met: HashSet::new(),
            seen: HashMap::new(),
            sessions: HashMap::new(),
            current: 0,
            declared: HashSet::new(),
            forced: HashSet::new(),
            phrases: HashSet::new(),
        }
    }

    /// Counts what is in `log`. Several logs of one session count as one session.
    pub fn count(&mut self, log: &Log) {
        let next = self.sessions.len();
        self.current = *self
            .sessions
            .entry(log.header.session.clone())
            .or_insert(next);
        // What comes of the walk is the log itself: counting changes nothing.
        drop(walk::log(log, &mut Counter { census: self }));
    }

    /// Takes in what another census of the same batch has counted, of other logs.
    pub fn join(&mut self, other: Self) {
        let mut names: Vec<(String, usize)> = other.sessions.into_iter().collect();
        names.sort_by_key(|(_, number)| *number);
        let mut numbers = Vec::with_capacity(names.len());
        for (name, _) in names {
            let next = self.sessions.len();
            numbers.push(*self.sessions.entry(name).or_insert(next));
        }
        for (value, sessions) in other.seen {
            let own = self.seen.entry(value).or_default();
            for number in sessions.into_iter().filter_map(|at| numbers.get(at)) {
                if own.len() < self.options.keep_shared && !own.contains(number) {
                    own.push(*number);
                }
            }
        }
        self.met.extend(other.met);
        self.declared.extend(other.declared);
        self.forced.extend(other.forced);
        self.phrases.extend(other.phrases);
    }

    /// Names of fields to be hashed that no log has had: misspelled, perhaps.
    pub fn unmet_fields(&self) -> Vec<&str> {
        let names = self.options.hash_fields.iter().map(String::as_str);
        names
            .filter(|name| !self.met.contains(&normal(name)))
            .collect()
    }

    /// What redacts the logs that were counted.
    pub fn finish(self) -> Redactor {
        let Self {
            options,
            fields,
            seen,
            declared,
            forced,
            phrases,
            ..
        } = self;
        let is_shared = |sessions: &Vec<usize>| sessions.len() >= options.keep_shared;
        let mut kept: HashSet<String> = seen
            .into_iter()
            .filter(|(_, sessions)| is_shared(sessions))
            .map(|(value, _)| value)
            .collect();
        kept.extend(declared);
        kept.retain(|value| !forced.contains(value));
        Redactor::new(options, fields, kept, &forced, phrases)
    }

    fn saw(&mut self, normal: String) {
        if normal.is_empty() {
            return;
        }
        let sessions = self.seen.entry(normal).or_default();
        if sessions.last() != Some(&self.current)
            && sessions.len() < self.options.keep_shared
            && !sessions.contains(&self.current)
        {
            sessions.push(self.current);
        }
    }

    /// Takes in what a listing of tools declares: their names, and in their schemas the names
    /// of properties and the texts of enumerations.
    fn declare(&mut self, result: &Value) {
        let tools = result.get("tools").and_then(Value::as_array);
        for tool in tools.into_iter().flatten() {
            if let Some(name) = tool.get("name").and_then(Value::as_str) {
                self.declared.insert(normal(name));
            }
            for schema in ["inputSchema", "outputSchema"] {
                if let Some(schema) = tool.get(schema) {
                    self.declare_schema(schema);
                }
            }
        }
    }

    fn declare_schema(&mut self, schema: &Value) {
        match schema {
            Value::Array(items) => items.iter().for_each(|item| self.declare_schema(item)),
            Value::Object(members) => {
                for (name, member) in members {
                    match (name.as_str(), member) {
                        ("properties", Value::Object(properties)) => {
                            self.declared
                                .extend(properties.keys().map(|property| normal(property)));
                        }
                        ("enum", Value::Array(values)) => {
                            self.declared
                                .extend(values.iter().filter_map(Value::as_str).map(normal));
                        }
                        _ => {}
                    }
                    self.declare_schema(member);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

struct Counter<'c> {
    census: &'c mut Census,
}

impl Sink for Counter<'_> {
    fn value(&mut self, text: &str, is_forced: bool) -> String {
        let normal_form = normal(text);
        if is_forced {
            self.census.forced.extend(words(text).map(normal));
            self.census.forced.insert(normal_form.clone());
        }
        if words(text).nth(1).is_some() && !self.census.phrases.contains(&normal_form) {
            self.census.phrases.insert(normal_form.clone());
        }
        self.census.saw(normal_form);
        text.to_owned()
    }

    fn line(&mut self, text: &str) -> String {
        for word in words(text) {
            self.census.saw(normal(word));
        }
        text.to_owned()
    }

    fn raw_line(&mut self, text: &str) -> String {
        text.to_owned()
    }

    fn blob(&mut self, data: &str) -> String {
        data.to_owned()
    }

    fn is_field(&mut self, name: &str) -> bool {
        if self.census.fields.is_empty() {
            return false;
        }
        let name = normal(name);
        let is_field = self.census.fields.contains(&name);
        if is_field {
            self.census.met.insert(name);
        }
        is_field
    }

    fn listed(&mut self, result: &Value) {
        self.census.declare(result);
    }
}
