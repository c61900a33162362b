//! What a scenario lets the System-One model say.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::duration;

/// A line of `oracle`, as it is written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OracleForm {
    /// The question's id, such as `confirmed` or `next`.
    question: String,
    /// Text that the request must hold. Without it the line fits whatever is asked.
    about: Option<String>,
    /// Answers with this probability of yes.
    noul: Option<f64>,
    /// Answers with these options and their probabilities.
    choice: Option<BTreeMap<String, f64>>,
    /// Answers with this HTTP status, and nothing else.
    fails: Option<u16>,
    /// How long the answer takes, such as `"300ms"`. Without it: no time.
    takes: Option<String>,
}

/// One thing that the model says.
#[derive(Clone, Debug)]
pub(crate) struct Says {
    pub(crate) question: String,
    pub(crate) about: Option<String>,
    pub(crate) told: Told,
    pub(crate) takes: Duration,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Noul(f64),
    Choice(BTreeMap<String, f64>),
    Fails(u16),
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Noul(probability) => write!(f, "{probability}"),
            Self::Choice(probabilities) => {
                let options: Vec<String> = probabilities
                    .iter()
                    .map(|(option, p)| format!("{option} {p}"))
                    .collect();
                f.write_str(&options.join(", "))
            }
            Self::Fails(status) => write!(f, "fails with {status}"),
        }
    }
}

/// Reads a line.
///
/// # Errors
///
/// What is wrong with it, for the line's place.
pub(crate) fn read(form: OracleForm) -> Result<Says, String> {
    let is_probability = |p: &f64| (0.0..=1.0).contains(p);
    let told = match (form.noul, form.choice, form.fails) {
        (Some(p), None, None) if is_probability(&p) => Told::Noul(p),
        (None, Some(choice), None) if !choice.is_empty() && choice.values().all(is_probability) => {
            Told::Choice(choice)
        }
        (None, None, Some(status)) if (400..=599).contains(&status) => Told::Fails(status),
        (None, None, Some(status)) => {
            return Err(format!("`fails` is a status from 400 to 599, not {status}"));
        }
        (Some(_), None, None) | (None, Some(_), None) => {
            return Err(
                "a probability is between 0 and 1, and a choice has at least one option".to_owned(),
            );
        }
        _ => return Err("an oracle's line says one of noul, choice and fails".to_owned()),
    };
    let takes = form
        .takes
        .map(|takes| duration::read(&takes))
        .transpose()?
        .unwrap_or_default();
    Ok(Says {
        question: form.question,
        about: form.about,
        told,
        takes,
    })
}

impl Says {
    /// Whether this answers a question about that state.
    pub(crate) fn fits(&self, id: &str, question: &Value, state: &Value) -> bool {
        let holds = |about: &String| holds(state, about) || holds(question, about);
        self.question == id && self.about.as_ref().is_none_or(holds)
    }
}

/// Whether a text somewhere in the value holds this.
fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(other) => other.contains(text),
        Value::Array(items) => items.iter().any(|item| holds(item, text)),
        Value::Object(members) => members
            .iter()
            .any(|(name, member)| name.contains(text) || holds(member, text)),
        other => other.to_string().contains(text),
    }
}
