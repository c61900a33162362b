//! What comes back.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The answers to a request, as the service sends them and the cache keeps them.
///
/// Read from JSON, unknown members are ignored, and an answer with a probability that is no
/// number from 0 to 1 is left out: its question counts as not answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The exact version of the model that answered.
    pub model: String,
    /// The answers, by the questions' ids. A question may have none.
    #[serde(deserialize_with = "usable")]
    pub answers: BTreeMap<String, Answer>,
    /// What it took.
    #[serde(default)]
    pub usage: Usage,
}

impl Response {
    /// Reads the text of a response.
    ///
    /// # Errors
    ///
    /// The text is not a response.
    pub fn parse(text: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(text)
    }

    /// The probability of a yes to the question `id`; nothing when it got no yes-or-no answer.
    pub fn noul(&self, id: &str) -> Option<f64> {
        match self.answers.get(id)? {
            Answer::Noul { noul } => Some(*noul),
            Answer::Choice { .. } | Answer::Score { .. } => None,
        }
    }

    /// The choice made for the question `id`, and the probability of each option that was given
    /// one; nothing when it got another kind of answer, or none.
    pub fn choice(&self, id: &str) -> Option<(&str, &BTreeMap<String, f64>)> {
        match self.answers.get(id)? {
            Answer::Choice {
                choice,
                probabilities,
                ..
            } => Some((choice, probabilities)),
            Answer::Noul { .. } | Answer::Score { .. } => None,
        }
    }

    /// As a cached file holds it: JSON with two blanks of indent.
    pub(crate) fn to_pretty(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("every response has a JSON form")
    }
}

/// The answer to one question. Probabilities are from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Answer {
    /// To yes or no.
    Noul {
        /// The probability of a yes.
        noul: f64,
    },
    /// To one of several.
    Choice {
        /// The option chosen.
        choice: String,
        /// The probability of each option.
        probabilities: BTreeMap<String, f64>,
        /// How sure the model is of its choice.
        confidence: f64,
    },
    /// To a rating.
    Score {
        /// The mean level, weighted by probability; the lowest level is 0.
        score: f64,
        /// The probability of each level, by its number.
        probabilities: BTreeMap<String, f64>,
        /// How sure the model is of the rating.
        confidence: f64,
        /// What the levels mean, as the service puts it; null when it does not.
        legend: Value,
    },
}

/// How many tokens a request took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens that the model read.
    pub input_tokens: u64,
    /// Tokens that it wrote.
    pub output_tokens: u64,
}

/// Reads answers, without those whose probabilities are none.
fn usable<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Answer>, D::Error> {
    /// An answer whose probabilities may be anything.
    #[derive(Deserialize)]
    #[serde(tag = "type", rename_all = "lowercase")]
    enum Raw {
        Noul {
            noul: Value,
        },
        Choice {
            choice: String,
            probabilities: BTreeMap<String, Value>,
            confidence: f64,
        },
        Score {
            score: f64,
            probabilities: BTreeMap<String, Value>,
            confidence: f64,
            #[serde(default)]
            legend: Value,
        },
    }

    impl Raw {
        fn usable(self) -> Option<Answer> {
            Some(match self {
                Self::Noul { noul } => Answer::Noul {
                    noul: probability(&noul)?,
                },
                Self::Choice {
                    choice,
                    probabilities,
                    confidence,
                } => Answer::Choice {
                    choice,
                    probabilities: all(probabilities)?,
                    confidence,
                },
                Self::Score {
                    score,
                    probabilities,
                    confidence,
                    legend,
                } => Answer::Score {
                    score,
                    probabilities: all(probabilities)?,
                    confidence,
                    legend,
                },
            })
        }
    }

    fn all(raw: BTreeMap<String, Value>) -> Option<BTreeMap<String, f64>> {
        let read = |(option, value): (String, Value)| Some((option, probability(&value)?));
        raw.into_iter().map(read).collect()
    }

    fn probability(value: &Value) -> Option<f64> {
        value.as_f64().filter(|p| (0.0..=1.0).contains(p))
    }

    let raw = BTreeMap::<String, Raw>::deserialize(deserializer)?;
    let usable = raw
        .into_iter()
        .filter_map(|(id, raw)| Some((id, raw.usable()?)));
    Ok(usable.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Response {
        Response::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_response_is_kept_in_the_order_and_indent_of_the_cache() {
        let response = parse(
            r#"{"usage":{"output_tokens":4,"input_tokens":41},"model":"jev-1.13.0",
                "answers":{"urgent":{"noul":0.93,"type":"noul"}}}"#,
        );
        let expected = r#"{
  "model": "jev-1.13.0",
  "answers": {
    "urgent": {
      "type": "noul",
      "noul": 0.93
    }
  },
  "usage": {
    "input_tokens": 41,
    "output_tokens": 4
  }
}"#;
        assert_eq!(String::from_utf8(response.to_pretty()).unwrap(), expected);
        assert_eq!(Response::parse(expected.as_bytes()).unwrap(), response);
    }

    #[test]
    fn usage_and_legend_may_be_missing_and_other_members_are_ignored() {
        let response = parse(
            r#"{"model":"m","id":7,"answers":{"s":{"type":"score","score":1,"probabilities":
                {"0":0.25,"1":0.75},"confidence":0.75,"why":"it is"}}}"#,
        );
        assert_eq!(response.usage, Usage::default());
        let Answer::Score { score, legend, .. } = &response.answers["s"] else {
            panic!("{response:?}");
        };
        assert_eq!((*score, legend), (1.0, &Value::Null));
    }

    #[test]
    fn a_probability_out_of_range_leaves_its_question_unanswered() {
        let answers = |noul: &str, p: &str| {
            let response = parse(&format!(
                r#"{{"model":"m","answers":{{"n":{{"type":"noul","noul":{noul}}},
                    "c":{{"type":"choice","choice":"a","probabilities":{{"a":{p}}},"confidence":1}}}}}}"#
            ));
            response.answers.into_keys().collect::<Vec<_>>()
        };
        assert_eq!(answers("0", "1"), ["c", "n"]);
        for wrong in ["1.01", "-0.1", "\"0.5\"", "null", "true"] {
            assert_eq!(answers(wrong, "0.5"), ["c"], "{wrong}");
            assert_eq!(answers("0.5", wrong), ["n"], "{wrong}");
        }
    }

    #[test]
    fn what_lacks_a_member_or_has_an_unknown_type_is_no_response() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"model":"m"}"#,
            r#"{"answers":{}}"#,
            r#"{"model":"m","answers":{"q":{"type":"noul"}}}"#,
            r#"{"model":"m","answers":{"q":{"type":"guess","guess":1}}}"#,
            r#"{"model":"m","answers":{}} {}"#,
        ] {
            assert!(Response::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
