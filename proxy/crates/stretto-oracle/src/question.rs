//! What is asked.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter};

use crate::Key;

/// The most options that a choice may have.
const MOST_OPTIONS: usize = 255;

/// Questions about one state, which are answered together.
///
/// The fields are in the order of the [canonical JSON](Request::canonical).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The model to ask, such as `jev-latest`. The one that answers may name itself more exactly.
    pub model: String,
    /// The matter to judge: text, or a JSON object or array.
    pub state: Value,
    /// The questions, by an id that the answers will have.
    pub questions: BTreeMap<String, Question>,
}

impl Request {
    /// The text whose hash is the request's [key](Request::key), which is also what is sent.
    ///
    /// Members of a request and of a question stand in a fixed order, all others by name, with
    /// no blanks between them; characters outside ASCII stand for themselves.
    pub fn canonical(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut writer = serde_json::Serializer::with_formatter(&mut text, Plain);
        self.serialize(&mut writer)
            .expect("every request has a JSON form: all its names are texts");
        text
    }

    /// What answers are kept under.
    pub fn key(&self) -> Key {
        Key::of(&self.canonical())
    }

    /// Checks that the questions can be asked at all.
    ///
    /// # Errors
    ///
    /// A question has fewer or more options or levels than its type allows. The error names it.
    pub fn check(&self) -> Result<(), QuestionError> {
        for (id, question) in &self.questions {
            let allowed = match question {
                Question::Noul { .. } => continue,
                Question::Choice { criteria, .. } => {
                    (1..=MOST_OPTIONS).contains(&criteria.len()).then_some(())
                }
                Question::Score { criteria, .. } => {
                    (2..=10).contains(&criteria.len()).then_some(())
                }
            };
            allowed.ok_or_else(|| QuestionError {
                id: id.clone(),
                asks: question.asks(),
            })?;
        }
        Ok(())
    }
}

/// Compact JSON whose exponents have no plus sign: `1e16`.
struct Plain;

impl Formatter for Plain {
    fn write_f64<W: io::Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let mut text = Vec::with_capacity(24);
        CompactFormatter.write_f64(&mut text, value)?;
        text.retain(|byte| *byte != b'+');
        writer.write_all(&text)
    }
}

/// One question, by the type of its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum Question {
    /// Yes or no: the answer is the probability of a yes.
    Noul {
        /// What is asked.
        instructions: String,
        /// What each answer means.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        criteria: Option<Criteria>,
    },
    /// One of several: the answer has a probability for each option.
    Choice {
        /// What is asked.
        instructions: String,
        /// What each option means, by its name. From 1 to 255.
        criteria: BTreeMap<String, String>,
    },
    /// A rating: the answer is the mean level.
    Score {
        /// What is asked.
        instructions: String,
        /// What each level means, the lowest first. From 2 to 10.
        criteria: Vec<String>,
    },
}

impl Question {
    /// A yes-or-no question that explains its answers by itself.
    pub fn noul(instructions: impl Into<String>) -> Self {
        Self::Noul {
            instructions: instructions.into(),
            criteria: None,
        }
    }

    /// What can be asked with this type, for people.
    fn asks(&self) -> &'static str {
        match self {
            Self::Noul { .. } => "a yes or a no",
            Self::Choice { .. } => "a choice of 1 to 255 options",
            Self::Score { .. } => "a score of 2 to 10 levels",
        }
    }
}

/// What the answers to a yes-or-no question mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Criteria {
    /// What a yes means.
    #[serde(rename = "true")]
    pub yes: String,
    /// What a no means.
    #[serde(rename = "false")]
    pub no: String,
}

/// A question that no model takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the question `{id}` is not {asks}")]
pub struct QuestionError {
    /// The question's id.
    pub id: String,
    /// What its type allows.
    asks: &'static str,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asking(question: Question) -> Request {
        Request {
            model: "m".to_owned(),
            state: json!({}),
            questions: [("q".to_owned(), question)].into(),
        }
    }

    fn choice(options: usize) -> Question {
        let options = (0..options).map(|option| (option.to_string(), String::new()));
        Question::Choice {
            instructions: String::new(),
            criteria: options.collect(),
        }
    }

    fn score(levels: usize) -> Question {
        Question::Score {
            instructions: String::new(),
            criteria: vec![String::new(); levels],
        }
    }

    #[test]
    fn a_choice_has_1_to_255_options_and_a_score_2_to_10_levels() {
        for fine in [choice(1), choice(255), score(2), score(10)] {
            assert_eq!(asking(fine).check(), Ok(()));
        }
        for wrong in [choice(0), choice(256), score(1), score(11)] {
            assert_eq!(asking(wrong).check().unwrap_err().id, "q");
        }
    }

    #[test]
    fn a_misspelt_member_of_a_question_is_refused() {
        let text = r#"{"type":"noul","instructions":"Well?","criterias":{}}"#;
        let error = serde_json::from_str::<Question>(text).unwrap_err();
        assert!(error.to_string().contains("criterias"), "{error}");
    }
}
