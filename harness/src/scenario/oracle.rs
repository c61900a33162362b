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
    /// With `fails`: asks the client to come again after so many seconds.
    retry_after: Option<u64>,
    /// Answers with this text, whatever it is, as if it were a response.
    says: Option<String>,
    /// `true`: cuts the connection in place of an answer.
    cuts: Option<bool>,
    /// How long the answer takes, such as `"300ms"`. Without it: no time.
    takes: Option<String>,
    /// `true`: the answer is held back until a step releases it.
    held: Option<bool>,
    /// Answers so often, and then no more. Without it: as often as it is asked.
    times: Option<u64>,
}

/// One thing that the model says.
#[derive(Clone, Debug)]
pub(crate) struct Says {
    pub(crate) question: String,
    pub(crate) about: Option<String>,
    pub(crate) told: Told,
    pub(crate) takes: Duration,
    /// Whether the answer waits for a step that releases it.
    pub(crate) is_held: bool,
    /// How often it answers; without a limit when there is none.
    pub(crate) times: Option<u64>,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Noul(f64),
    Choice(BTreeMap<String, f64>),
    Fails {
        status: u16,
        /// In seconds.
        retry_after: Option<u64>,
    },
    /// The text of a response, or of what should be one.
    Text(String),
    /// The connection ends.
    Cut,
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
            Self::Fails {
                status,
                retry_after: None,
            } => write!(f, "fails with {status}"),
            Self::Fails {
                status,
                retry_after: Some(seconds),
            } => write!(
                f,
                "fails with {status}, to be asked again after {seconds} s"
            ),
            Self::Text(text) => write!(f, "the text {text:?}"),
            Self::Cut => f.write_str("a cut connection"),
        }
    }
}

const NO_PROBABILITY: &str =
    "a probability is between 0 and 1, and a choice has at least one option";

/// Reads a line.
///
/// # Errors
///
/// What is wrong with it, for the line's place.
pub(crate) fn read(form: OracleForm) -> Result<Says, String> {
    let is_probability = |p: &f64| (0.0..=1.0).contains(p);
    if form.retry_after.is_some() && form.fails.is_none() {
        return Err("`retry_after` goes with `fails`".to_owned());
    }
    if form.cuts == Some(false) || form.held == Some(false) {
        return Err("`cuts` and `held` are true or left out".to_owned());
    }
    let is_cut = form.cuts.is_some();
    let told = match (form.noul, form.choice, form.fails, form.says) {
        (Some(p), None, None, None) if !is_cut => is_probability(&p)
            .then_some(Told::Noul(p))
            .ok_or(NO_PROBABILITY)?,
        (None, Some(choice), None, None) if !is_cut => {
            let is_one = !choice.is_empty() && choice.values().all(is_probability);
            is_one
                .then_some(Told::Choice(choice))
                .ok_or(NO_PROBABILITY)?
        }
        (None, None, Some(status), None) if !is_cut => {
            if !(400..=599).contains(&status) {
                return Err(format!("`fails` is a status from 400 to 599, not {status}"));
            }
            Told::Fails {
                status,
                retry_after: form.retry_after,
            }
        }
        (None, None, None, Some(text)) if !is_cut => Told::Text(text),
        (None, None, None, None) if is_cut => Told::Cut,
        _ => {
            return Err(
                "an oracle's line says one of noul, choice, fails, says and cuts".to_owned(),
            );
        }
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
        is_held: form.held.unwrap_or_default(),
        times: form.times,
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
