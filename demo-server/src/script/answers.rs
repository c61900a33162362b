//! Answers: the rules of a script, and which of them a call meets.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use regex::Regex;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::faults::{Fault, even_null};
use super::fill::{self, Filling};
use crate::protocol::{Call, RpcError, text_result};
use crate::worlds;

/// A rule as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Written {
    name: Option<String>,
    tool: Option<String>,
    method: Option<String>,
    args: BTreeMap<String, Value>,
    nth: Option<Nth>,
    after: Vec<String>,
    text: Option<String>,
    #[serde(deserialize_with = "even_null")]
    json: Option<Value>,
    #[serde(deserialize_with = "even_null")]
    structured: Option<Value>,
    content: Option<Vec<Value>>,
    error: Option<String>,
    rpc_error: Option<WrittenError>,
    #[serde(deserialize_with = "even_null")]
    result: Option<Value>,
    delay_ms: Delay,
    progress: u64,
    fault: Option<Fault>,
    odds: Option<f64>,
    seed: Option<u64>,
    when: Option<When>,
}

/// Which of the matching calls a rule is for.
#[derive(Debug, PartialEq, Eq)]
struct Nth(Vec<u64>);

impl<'de> Deserialize<'de> for Nth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Nth;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number from 1, or a list of them")
            }

            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Nth, E> {
                if n == 0 {
                    Err(E::invalid_value(de::Unexpected::Unsigned(0), &self))
                } else {
                    Ok(Nth(vec![n]))
                }
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<Nth, A::Error> {
                let mut all = Vec::new();
                while let Some(n) = items.next_element::<u64>()? {
                    if n == 0 {
                        return Err(de::Error::invalid_value(de::Unexpected::Unsigned(0), &self));
                    }
                    all.push(n);
                }
                if all.is_empty() {
                    Err(de::Error::invalid_length(0, &self))
                } else {
                    Ok(Nth(all))
                }
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// How long an answer waits.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Delay {
    /// So long.
    Fixed(Duration),
    /// As many milliseconds as this argument of the call says.
    Argument(String),
}

impl Default for Delay {
    fn default() -> Self {
        Self::Fixed(Duration::ZERO)
    }
}

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Delay;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("milliseconds, or \"{args.NAME}\"")
            }

            fn visit_u64<E: de::Error>(self, ms: u64) -> Result<Delay, E> {
                Ok(Delay::Fixed(Duration::from_millis(ms)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Delay, E> {
                let argument = fill::only_argument(text)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))?;
                Ok(Delay::Argument(argument.to_owned()))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// A JSON-RPC error as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenError {
    code: i64,
    message: String,
    #[serde(default, deserialize_with = "even_null")]
    data: Option<Value>,
}

/// On which side of the server's own work a fault happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum When {
    /// Before it has waited, and before the call counts as made.
    #[default]
    Before,
    /// When the answer is ready.
    After,
}

/// A rule: which calls it is for, what they get, what goes wrong.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Its name, or its place in the file.
    pub(crate) label: String,
    target: Target,
    arguments: Vec<(String, Matcher)>,
    nth: Option<Nth>,
    after: Vec<String>,
    answer: Option<Template>,
    delay: Delay,
    progress: u64,
    pub(crate) fault: Option<Fault>,
    odds: Option<f64>,
    seed: u64,
    when: When,
}

#[derive(Debug, PartialEq, Eq)]
enum Target {
    AnyTool,
    Tool(String),
    Method(String),
}

#[derive(Debug)]
enum Matcher {
    Is(Value),
    Pattern(Regex),
}

/// What a rule answers, before its placeholders are filled.
#[derive(Debug)]
enum Template {
    Text(String),
    Json(Value),
    Content(Vec<Value>),
    /// Nothing but what `structured` says.
    Empty,
    Error(String),
    Rpc(WrittenError),
    Result(Value),
    /// One of the first four, with structured content beside it.
    Structured(Box<Template>, Value),
}

impl Rule {
    /// The rule that is written, at a place of the file. An error begins with the member it is about.
    pub(super) fn of(written: Written, place: &str) -> Result<Self, String> {
        let target = match (written.tool, written.method) {
            (Some(tool), None) if tool == "*" => Target::AnyTool,
            (Some(tool), None) => Target::Tool(tool),
            (None, Some(method)) if method == "tools/call" => Target::AnyTool,
            (None, Some(method)) => Target::Method(method),
            (None, None) => {
                return Err(
                    "a rule is for a `tool`, which `*` stands for any of, or for a `method`".into(),
                );
            }
            (Some(_), Some(_)) => {
                return Err("a rule is for a `tool` or for a `method`, and not for both".into());
            }
        };

        let mut arguments = Vec::new();
        let mut groups = 0;
        for (name, value) in written.args {
            let matcher = match value.as_str().and_then(|text| text.strip_prefix("re:")) {
                None => Matcher::Is(value),
                Some(pattern) => {
                    let pattern = Regex::new(pattern).map_err(|error| {
                        format!("args.{name}: {}", one_line(&error.to_string()))
                    })?;
                    groups += pattern.captures_len() - 1;
                    Matcher::Pattern(pattern)
                }
            };
            arguments.push((name, matcher));
        }

        let is_call = !matches!(target, Target::Method(_));
        if !is_call {
            let only_calls = [
                ("args", !arguments.is_empty()),
                ("text", written.text.is_some()),
                ("json", written.json.is_some()),
                ("structured", written.structured.is_some()),
                ("content", written.content.is_some()),
                ("error", written.error.is_some()),
            ];
            if let Some((name, _)) = only_calls.into_iter().find(|(_, is_set)| *is_set) {
                return Err(format!(
                    "{name}: only calls of tools have it; a method's answer is a `result` or an `rpc_error`"
                ));
            }
        }

        let answer = answer(
            [
                ("text", written.text.map(Template::Text)),
                ("json", written.json.map(Template::Json)),
                ("content", written.content.map(Template::Content)),
                ("error", written.error.map(Template::Error)),
                ("rpc_error", written.rpc_error.map(Template::Rpc)),
                ("result", written.result.map(Template::Result)),
            ],
            written.structured,
        )?;
        if let Some(highest) = answer.as_ref().map(Template::highest_group)
            && highest > groups
        {
            return Err(format!(
                "{{{highest}}} names a group, and the patterns in `args` have {groups}"
            ));
        }

        if let Some(fault) = &written.fault {
            fault.check().map_err(|what| format!("fault: {what}"))?;
        }
        for (name, is_set) in [
            ("odds", written.odds.is_some()),
            ("when", written.when.is_some()),
        ] {
            if is_set && written.fault.is_none() {
                return Err(format!("{name}: it aims a `fault`, and there is none"));
            }
        }
        if written
            .odds
            .is_some_and(|odds| !(0.0..=1.0).contains(&odds))
        {
            return Err("odds: they are between 0 and 1".into());
        }
        if written.seed.is_some() && written.odds.is_none() {
            return Err("seed: it goes with `odds`".into());
        }
        if answer.is_none()
            && written.fault.is_none()
            && written.delay_ms == Delay::default()
            && written.progress == 0
        {
            return Err("a rule that does nothing: it needs an answer, a `fault`, a `delay_ms` or `progress`".into());
        }

        Ok(Self {
            label: written.name.unwrap_or_else(|| place.to_owned()),
            target,
            arguments,
            nth: written.nth,
            after: written.after,
            answer,
            delay: written.delay_ms,
            progress: written.progress,
            fault: written.fault,
            odds: written.odds,
            seed: written.seed.unwrap_or_default(),
            when: written.when.unwrap_or_default(),
        })
    }

    /// What the groups of its patterns match, if the call meets all conditions but `nth`.
    fn matches(&self, call: &Call, made: &BTreeSet<String>) -> Option<Vec<String>> {
        let is_call = call.method == "tools/call";
        let is_target = match &self.target {
            Target::AnyTool => is_call,
            Target::Tool(tool) => is_call && call.tool() == tool,
            Target::Method(method) => call.method == *method,
        };
        if !is_target || !self.after.iter().all(|tool| made.contains(tool)) {
            return None;
        }
        let mut groups = Vec::new();
        for (name, matcher) in &self.arguments {
            let argument = call
                .params
                .get("arguments")
                .and_then(|arguments| arguments.get(name))?;
            match matcher {
                Matcher::Is(value) if value == argument => {}
                Matcher::Is(_) => return None,
                Matcher::Pattern(pattern) => {
                    let found = pattern.captures(argument.as_str()?)?;
                    groups.extend(found.iter().skip(1).map(|group| {
                        group
                            .map(|group| group.as_str().to_owned())
                            .unwrap_or_default()
                    }));
                }
            }
        }
        Some(groups)
    }
}

/// The one answer of a rule, or none.
fn answer(
    given: [(&str, Option<Template>); 6],
    structured: Option<Value>,
) -> Result<Option<Template>, String> {
    let mut given = given
        .into_iter()
        .filter_map(|(name, template)| template.map(|template| (name, template)));
    let first = given.next();
    if let (Some((one, _)), Some((other, _))) = (&first, given.next()) {
        return Err(format!(
            "a rule has one answer, and this one has `{one}` and `{other}`"
        ));
    }
    match (first, structured) {
        (first, None) => Ok(first.map(|(_, template)| template)),
        (None, Some(value)) => Ok(Some(Template::Structured(Box::new(Template::Empty), value))),
        (Some(("text" | "json" | "content" | "error", template)), Some(value)) => {
            Ok(Some(Template::Structured(Box::new(template), value)))
        }
        (Some((name, _)), Some(_)) => Err(format!("structured: it does not go with `{name}`")),
    }
}

impl Template {
    fn highest_group(&self) -> usize {
        match self {
            Self::Text(text) | Self::Error(text) => fill::highest_group(&json!(text)),
            Self::Json(value) | Self::Result(value) => fill::highest_group(value),
            Self::Content(items) => items.iter().map(fill::highest_group).max().unwrap_or(0),
            Self::Empty => 0,
            Self::Rpc(error) => fill::highest_group(&json!(error.message))
                .max(error.data.as_ref().map_or(0, fill::highest_group)),
            Self::Structured(beside, value) => {
                beside.highest_group().max(fill::highest_group(value))
            }
        }
    }

    fn fill(&self, filling: &Filling<'_>) -> Result<Value, RpcError> {
        Ok(match self {
            Self::Text(text) => text_result(&filling.text(text), false),
            Self::Json(value) => text_result(&filling.value(value).to_string(), false),
            Self::Content(items) => {
                let items: Vec<Value> = items.iter().map(|item| filling.value(item)).collect();
                json!({"content": items, "isError": false})
            }
            Self::Empty => json!({"content": [], "isError": false}),
            Self::Error(text) => text_result(&filling.text(text), true),
            Self::Rpc(error) => {
                return Err(RpcError {
                    code: error.code,
                    message: filling.text(&error.message),
                    data: error.data.as_ref().map(|data| filling.value(data)),
                });
            }
            Self::Result(value) => filling.value(value),
            Self::Structured(beside, value) => {
                let mut result = beside.fill(filling)?;
                result["structuredContent"] = filling.value(value);
                result
            }
        })
    }
}

/// The rules of a script, and what they remember of the calls so far.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) rules: Vec<Rule>,
    seen: Vec<Seen>,
    made: BTreeSet<String>,
}

/// What a rule remembers.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    calls: u64,
    draws: u64,
}

/// What the rules make of a call.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// What it gets, if a rule has an answer for it, and whether that is a result given whole.
    pub(crate) answer: Option<Answered>,
    pub(crate) delay: Duration,
    pub(crate) progress: u64,
    pub(crate) faults: Vec<Aimed>,
}

/// A rule's answer.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) outcome: Result<Value, RpcError>,
    /// Whether the script gave the result with all its members.
    pub(crate) is_whole: bool,
}

/// A fault that will happen, and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Aimed {
    pub(crate) label: String,
    pub(crate) fault: Fault,
    pub(crate) when: When,
}

impl Answers {
    pub(crate) fn new(rules: Vec<Rule>) -> Self {
        let seen = vec![Seen::default(); rules.len()];
        Self {
            rules,
            seen,
            made: BTreeSet::new(),
        }
    }

    /// Counts a call of a tool as made with success.
    pub(crate) fn made(&mut self, tool: &str) {
        if !self.made.contains(tool) {
            self.made.insert(tool.to_owned());
        }
    }

    /// What the rules make of a call. The first that matches and has an answer answers it; those
    /// that match before it, and have none, add their delays, progress and faults.
    ///
    /// Every rule counts the calls that match it, whether or not an earlier one has answered.
    pub(crate) fn judge(&mut self, call: &Call) -> Verdict {
        let mut verdict = Verdict::default();
        let arguments = call.arguments();
        for (rule, seen) in self.rules.iter().zip(&mut self.seen) {
            let Some(groups) = rule.matches(call, &self.made) else {
                continue;
            };
            seen.calls += 1;
            let is_its_turn = rule
                .nth
                .as_ref()
                .is_none_or(|nth| nth.0.contains(&seen.calls));
            if !is_its_turn || verdict.answer.is_some() {
                continue;
            }
            verdict.delay += match &rule.delay {
                Delay::Fixed(delay) => *delay,
                Delay::Argument(name) => worlds::delay_named(&arguments, name),
            };
            verdict.progress += rule.progress;
            if let Some(fault) = &rule.fault
                && rule.odds.is_none_or(|odds| seen.draw(rule.seed) < odds)
            {
                verdict.faults.push(Aimed {
                    label: rule.label.clone(),
                    fault: fault.clone(),
                    when: rule.when,
                });
            }
            verdict.answer = rule.answer.as_ref().map(|template| Answered {
                outcome: template.fill(&Filling {
                    arguments: &arguments,
                    groups: &groups,
                    n: seen.calls,
                }),
                is_whole: matches!(template, Template::Result(_)),
            });
        }
        verdict
    }
}

impl Seen {
    /// The next draw of a rule, in [0, 1): `SplitMix64` over the seed and the number of the draw.
    fn draw(&mut self, seed: u64) -> f64 {
        self.draws += 1;
        let mut z = seed.wrapping_add(self.draws.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        // The upper 53 bits are as many as a float holds exactly.
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let draw = (z >> 11) as f64;
        draw * 2_f64.powi(-53)
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
