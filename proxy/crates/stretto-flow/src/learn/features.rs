//! Fields of results that tell apart situations in which the agent goes on differently.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use stretto_trace::Event;

use super::{Lesson, Progress, Stage};
use crate::explore::fold;
use crate::file::{BackOff, FeatureMap, Field};
use crate::step::{self, Step};

/// How many folds of tasks score a set of fields.
const FOLDS: u64 = 5;
/// How many nats a further field must gain.
const GAIN: f64 = 5.0;
/// The most fields.
const MOST: usize = 8;
/// The largest id of a tool's combinations of values.
const LAST_ID: u32 = 63;

/// A field of a tool's results.
type Candidate = (String, Field);

/// Selects fields, one after the other: each time the one by which held-out sessions gain
/// most, while one gains enough.
pub(super) fn select(lesson: &Lesson<'_>, alpha: f64, progress: &mut Progress<'_>) -> FeatureMap {
    let results = Results::of(lesson);
    let mut candidates = results.candidates();
    let mut chosen: Vec<Candidate> = Vec::new();
    let mut best = results.score(lesson, &results.map(&chosen), alpha);
    while chosen.len() < MOST {
        let mut gain: Option<(usize, f64)> = None;
        for (index, candidate) in candidates.iter().enumerate() {
            progress(
                Stage::Features,
                chosen.len() * candidates.len() + index,
                MOST * candidates.len(),
            );
            let mut with = chosen.clone();
            with.push(candidate.clone());
            let score = results.score(lesson, &results.map(&with), alpha);
            if gain.is_none_or(|(_, most)| score > most) {
                gain = Some((index, score));
            }
        }
        match gain {
            Some((index, score)) if score - best >= GAIN => {
                chosen.push(candidates.remove(index));
                best = score;
            }
            _ => break,
        }
    }
    results.map(&chosen)
}

/// A step, and where its result stands among its tool's.
type Placed = (Step, Option<(String, usize)>);

/// The JSON results of all training sessions.
struct Results {
    /// Each tool's results.
    by_tool: BTreeMap<String, Vec<Value>>,
    /// Each session's steps, and where its results stand in `by_tool`.
    sessions: Vec<Vec<Placed>>,
}

impl Results {
    fn of(lesson: &Lesson<'_>) -> Self {
        let mut by_tool = BTreeMap::<String, Vec<Value>>::new();
        let mut sessions = Vec::new();
        for session in lesson.training {
            let events = &session.episode.events;
            let mut contents = HashMap::new();
            for event in events {
                if let Event::ToolResult {
                    call_id, content, ..
                } = event
                {
                    contents.entry(call_id.as_str()).or_insert(content.as_str());
                }
            }
            let steps = step::steps(events, lesson.vocabulary, &FeatureMap::default());
            let mut calls = session.episode.tool_calls();
            let placed = steps.into_iter().map(|(step, tool)| {
                let call = tool.and_then(|_| calls.next());
                let output = call.and_then(|call| {
                    let content = contents.get(call.id.as_str())?;
                    let value = serde_json::from_str(content).ok()?;
                    let outputs = by_tool.entry(call.name.clone()).or_default();
                    outputs.push(value);
                    Some((call.name.clone(), outputs.len() - 1))
                });
                (step, output)
            });
            sessions.push(placed.collect());
        }
        Self { by_tool, sessions }
    }

    /// The fields that take a few values, none of them nearly always.
    fn candidates(&self) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for (tool, outputs) in &self.by_tool {
            let fields: BTreeSet<Field> = outputs.iter().flat_map(fields).collect();
            for field in fields {
                let mut values = BTreeMap::<String, u64>::new();
                for output in outputs {
                    *values.entry(field.read(output)).or_default() += 1;
                }
                let most = values.values().copied().max().unwrap_or(0);
                let all = outputs.len() as u64;
                // None in more than 98 of a hundred.
                let is_nearly_always = most * 100 > all * 98;
                if (2..=8).contains(&values.len()) && !is_nearly_always {
                    candidates.push((tool.clone(), field));
                }
            }
        }
        candidates
    }

    /// The map of a set of fields, with an id for every combination of values.
    fn map(&self, chosen: &[Candidate]) -> FeatureMap {
        let mut map = FeatureMap::default();
        for (tool, field) in chosen {
            map.fields
                .entry(tool.clone())
                .or_default()
                .push(field.clone());
        }
        for (tool, fields) in &map.fields {
            let combinations: BTreeSet<Vec<String>> = self.by_tool[tool]
                .iter()
                .map(|output| fields.iter().map(|field| field.read(output)).collect())
                .collect();
            for (values, id) in combinations.into_iter().zip(1..=LAST_ID) {
                map.ids.insert((tool.clone(), values), id);
            }
        }
        map
    }

    /// The log-probability of each fold's steps by a model of the others.
    fn score(&self, lesson: &Lesson<'_>, map: &FeatureMap, alpha: f64) -> f64 {
        let ids: BTreeMap<&str, Vec<u32>> = map
            .fields
            .iter()
            .map(|(tool, fields)| {
                let id = |output: &Value| {
                    let values: Vec<String> =
                        fields.iter().map(|field| field.read(output)).collect();
                    map.ids.get(&(tool.clone(), values)).copied().unwrap_or(0)
                };
                (tool.as_str(), self.by_tool[tool].iter().map(id).collect())
            })
            .collect();
        let sessions: Vec<(u64, Vec<u32>, Vec<u32>)> = self
            .sessions
            .iter()
            .zip(lesson.training)
            .map(|(steps, session)| {
                let with_feature = |(step, output): &Placed| {
                    let feature = output
                        .as_ref()
                        .and_then(|(tool, index)| ids.get(tool.as_str()).map(|ids| ids[*index]));
                    Step {
                        feature: feature.unwrap_or(0),
                        ..*step
                    }
                    .symbol()
                };
                let symbols = steps.iter().map(with_feature).collect();
                let actions = steps.iter().map(|(step, _)| step.action).collect();
                (fold(session.task(), FOLDS), symbols, actions)
            })
            .collect();
        let mut total = 0.0;
        for own in 0..FOLDS {
            let mut model = BackOff::new(lesson.order, alpha, lesson.vocab_size);
            for (fold, symbols, actions) in &sessions {
                if *fold != own {
                    for (at, action) in actions.iter().enumerate() {
                        model.learn(
                            &symbols[at.saturating_sub(lesson.order)..at],
                            &[*action],
                            1.0,
                        );
                    }
                }
            }
            for (fold, symbols, actions) in &sessions {
                if *fold == own {
                    for (at, action) in actions.iter().enumerate() {
                        let history = &symbols[at.saturating_sub(lesson.order)..at];
                        total += model.chances(history, &[*action])[0].ln();
                    }
                }
            }
        }
        total
    }
}

/// The fields of one result.
fn fields(output: &Value) -> Vec<Field> {
    fn is_scalar(value: &Value) -> bool {
        !value.is_array() && !value.is_object()
    }
    match output {
        Value::Array(_) => vec![Field::Len(String::new())],
        Value::Object(members) => members
            .iter()
            .flat_map(|(key, member)| match member {
                Value::Array(_) => vec![Field::Len(key.clone())],
                Value::Object(inner) => inner
                    .iter()
                    .filter(|(_, member)| is_scalar(member))
                    .map(|(inner, _)| Field::Scalar(format!("{key}.{inner}")))
                    .collect(),
                _ => vec![Field::Scalar(key.clone())],
            })
            .collect(),
        _ => Vec::new(),
    }
}
