//! A session as a sequence of steps, and a step as a number.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use stretto_trace::Event;

use crate::file::{Action, FeatureMap, Field};

/// The largest action id that leaves every symbol below the padding symbol.
pub(crate) const MAX_ACTION: u32 = (1 << 18) - 2;

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Outcome {
    /// The call returned.
    Ok = 0,
    /// The call failed, or never returned.
    Error = 1,
    /// The message got a reply.
    Replied = 2,
    /// The message got none, before the agent went on or the session ended.
    Ended = 3,
}

/// One step of an agent: a message without calls, or one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The action's id in the vocabulary.
    pub(crate) action: u32,
    /// How it ended.
    pub(crate) outcome: Outcome,
    /// The id of the result's features, 0 for none.
    pub(crate) feature: u32,
}

impl Step {
    /// The step as one number: `(action × 4 + outcome) × 4096 + feature`.
    pub(crate) fn symbol(self) -> u32 {
        (self.action * 4 + self.outcome as u32) * 4096 + self.feature.min(4095)
    }
}

/// The action and outcome of a symbol, or nothing for the padding before a session.
pub(crate) fn parts(symbol: u32) -> Option<(u32, u32)> {
    (symbol != crate::file::PADDING).then_some((symbol / 16384, symbol / 4096 % 4))
}

/// The ids of actions.
#[derive(Clone, Debug)]
pub(crate) struct Vocabulary {
    tools: HashMap<String, u32>,
    respond: u32,
    other: u32,
}

impl Vocabulary {
    /// The ids of the actions of a flow: their positions.
    pub(crate) fn new(vocab: &[Action]) -> Self {
        let other = u32::try_from(vocab.len())
            .unwrap_or(MAX_ACTION)
            .min(MAX_ACTION);
        let mut ids = Self {
            tools: HashMap::new(),
            respond: other,
            other,
        };
        for (action, id) in vocab.iter().zip(0..other) {
            match action {
                Action::Respond => ids.respond = id,
                Action::Tool(name) => {
                    ids.tools.insert(name.clone(), id);
                }
            }
        }
        ids
    }

    /// The id of calling `tool`; one id stands for every tool that is not listed.
    pub(crate) fn tool(&self, tool: &str) -> u32 {
        self.tools.get(tool).copied().unwrap_or(self.other)
    }

    /// The id of a message without calls.
    pub(crate) fn respond(&self) -> u32 {
        self.respond
    }
}

/// All steps of a finished session, with the tool of each call.
pub(crate) fn steps<'a>(
    events: &'a [Event],
    vocabulary: &Vocabulary,
    map: &FeatureMap,
) -> Vec<(Step, Option<&'a str>)> {
    let mut results = HashMap::new();
    for event in events {
        if let Event::ToolResult {
            call_id,
            error,
            content,
            ..
        } = event
        {
            // The first answer to a call is its result.
            results
                .entry(call_id.as_str())
                .or_insert((*error, content.as_str()));
        }
    }
    let mut steps: Vec<(Step, Option<&str>)> = Vec::new();
    let mut open_message = None;
    for event in events {
        match event {
            Event::User { .. } => {
                if let Some(index) = open_message.take() {
                    let (step, _): &mut (Step, _) = &mut steps[index];
                    step.outcome = Outcome::Replied;
                }
            }
            Event::Assistant { calls, .. } if calls.is_empty() => {
                open_message = Some(steps.len());
                let action = vocabulary.respond();
                steps.push((
                    Step {
                        action,
                        outcome: Outcome::Ended,
                        feature: 0,
                    },
                    None,
                ));
            }
            Event::Assistant { calls, .. } => {
                open_message = None;
                for call in calls {
                    let (outcome, feature) = match results.get(call.id.as_str()) {
                        Some((false, content)) => (Outcome::Ok, feature(map, &call.name, content)),
                        Some((true, content)) => {
                            (Outcome::Error, feature(map, &call.name, content))
                        }
                        None => (Outcome::Error, 0),
                    };
                    let action = vocabulary.tool(&call.name);
                    steps.push((
                        Step {
                            action,
                            outcome,
                            feature,
                        },
                        Some(&call.name),
                    ));
                }
            }
            Event::ToolResult { .. } => {}
        }
    }
    steps
}

/// The id of the features of a result, 0 for none.
pub(crate) fn feature(map: &FeatureMap, tool: &str, content: &str) -> u32 {
    let Some(fields) = map.fields.get(tool) else {
        return 0;
    };
    let Ok(output) = serde_json::from_str(content) else {
        return 0;
    };
    let values: Vec<String> = fields.iter().map(|field| field.read(&output)).collect();
    map.ids
        .get(&(tool.to_owned(), values))
        .copied()
        .unwrap_or(0)
}

/// What a field says that is not there, or of another kind.
const NOTHING: &str = "∅";

impl Field {
    /// What the field says of `output`.
    pub fn read(&self, output: &Value) -> String {
        match self {
            Self::Scalar(path) => match member(output, path) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Bool(truth)) => truth.to_string(),
                Some(Value::Number(number)) => number.to_string(),
                _ => NOTHING.to_owned(),
            },
            Self::Len(path) => {
                let list = if path.is_empty() {
                    Some(output)
                } else {
                    member(output, path)
                };
                match list.and_then(Value::as_array).map(Vec::len) {
                    Some(0) => "0".to_owned(),
                    Some(1) => "1".to_owned(),
                    Some(_) => "2+".to_owned(),
                    None => NOTHING.to_owned(),
                }
            }
        }
    }
}

/// The value at a path of keys, split at dots.
fn member<'a>(output: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.')
        .try_fold(output, |value, key| value.as_object()?.get(key))
}

/// How many options each site had next, summed over what came before it.
///
/// The habit's histories of one symbol, without the symbol's features: what followed a
/// call of each tool, by whether it failed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Followed {
    by_site: BTreeMap<(u32, bool), (BTreeMap<u32, f64>, f64)>,
}

impl Followed {
    /// Sums the histories of one symbol in `habit`.
    pub(crate) fn new(habit: &crate::file::BackOff) -> Self {
        let mut followed = Self::default();
        for (history, counts) in habit.levels.get(1).into_iter().flatten() {
            let Some((action, outcome @ (0 | 1))) = history.first().and_then(|s| parts(*s)) else {
                continue;
            };
            let (by_action, total) = followed.by_site.entry((action, outcome == 1)).or_default();
            *total += counts.total;
            for (next, count) in &counts.by_action {
                *by_action.entry(*next).or_default() += count;
            }
        }
        followed
    }

    /// How often the site was followed by anything.
    pub(crate) fn total(&self, action: u32, failed: bool) -> f64 {
        self.by_site
            .get(&(action, failed))
            .map_or(0.0, |(_, total)| *total)
    }

    /// How often the site was followed by `next`.
    pub(crate) fn count(&self, action: u32, failed: bool, next: u32) -> f64 {
        self.by_site
            .get(&(action, failed))
            .and_then(|(by_action, _)| by_action.get(&next))
            .copied()
            .unwrap_or(0.0)
    }

    /// What followed the site, by action id.
    pub(crate) fn all(&self, action: u32, failed: bool) -> impl Iterator<Item = (u32, f64)> {
        self.by_site
            .get(&(action, failed))
            .into_iter()
            .flat_map(|(by_action, _)| by_action.iter().map(|(next, count)| (*next, *count)))
    }
}
