//! A stand-in for a model: free, and always of the same mind.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Answer, Question, Request, Response, Usage};

/// The probability of a yes to every question.
const NOUL: f64 = 0.5;

/// The probability of the option that is chosen.
const CONFIDENCE: f64 = 0.6;

/// Answers every question: a yes is as likely as a no, of options the first by name is chosen,
/// and the lowest level is certain.
pub(crate) fn answer(request: &Request) -> Response {
    let answers = request.questions.iter().map(|(id, question)| {
        let answer = match question {
            Question::Noul { .. } => Answer::Noul { noul: NOUL },
            Question::Choice { criteria, .. } => choice(criteria),
            Question::Score { criteria, .. } => score(criteria.len()),
        };
        (id.clone(), answer)
    });
    Response {
        model: "mock".to_owned(),
        answers: answers.collect(),
        usage: Usage::default(),
    }
}

fn choice(options: &BTreeMap<String, String>) -> Answer {
    let first = options.keys().next().cloned().unwrap_or_default();
    let others = u32::try_from(options.len().saturating_sub(1)).unwrap_or(u32::MAX);
    let probability = |option: &String| {
        if *option == first {
            CONFIDENCE
        } else {
            (1.0 - CONFIDENCE) / f64::from(others)
        }
    };
    let probabilities = options
        .keys()
        .map(|option| (option.clone(), probability(option)));
    Answer::Choice {
        probabilities: probabilities.collect(),
        choice: first,
        confidence: CONFIDENCE,
    }
}

fn score(levels: usize) -> Answer {
    let probability = |level: usize| if level == 0 { 1.0 } else { 0.0 };
    let probabilities = (0..levels).map(|level| (level.to_string(), probability(level)));
    Answer::Score {
        score: 0.0,
        probabilities: probabilities.collect(),
        confidence: 1.0,
        legend: Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answered(question: &Value) -> Answer {
        let request = json!({"model": "jev-latest", "state": "s", "questions": {"q": question}});
        let response = answer(&serde_json::from_value(request).unwrap());
        assert_eq!(
            (response.model.as_str(), response.usage),
            ("mock", Usage::default())
        );
        response.answers["q"].clone()
    }

    #[test]
    fn a_yes_is_as_likely_as_a_no() {
        let noul = json!({"type": "noul", "instructions": "?"});
        assert_eq!(answered(&noul), Answer::Noul { noul: 0.5 });
    }

    #[test]
    fn the_first_option_by_name_is_chosen_and_the_others_share_the_rest() {
        let choice = |options: &[&str]| {
            let criteria: BTreeMap<_, _> = options.iter().map(|option| (option, "")).collect();
            answered(&json!({"type": "choice", "instructions": "?", "criteria": criteria}))
        };
        let expected = |choice: &str, probabilities: &[(&str, f64)]| {
            let probabilities = probabilities
                .iter()
                .map(|(option, p)| ((*option).to_owned(), *p));
            Answer::Choice {
                choice: choice.to_owned(),
                probabilities: probabilities.collect(),
                confidence: 0.6,
            }
        };
        assert_eq!(choice(&["only"]), expected("only", &[("only", 0.6)]));
        assert_eq!(
            choice(&["respond", "a", "b"]),
            expected("a", &[("a", 0.6), ("b", 0.2), ("respond", 0.2)])
        );
    }

    #[test]
    fn the_lowest_level_is_certain() {
        let score = json!({"type": "score", "instructions": "?", "criteria": ["fine", "bad"]});
        assert_eq!(
            answered(&score),
            Answer::Score {
                score: 0.0,
                probabilities: [("0".to_owned(), 1.0), ("1".to_owned(), 0.0)].into(),
                confidence: 1.0,
                legend: Value::Null,
            }
        );
    }
}
