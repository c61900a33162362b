//! The lab's System-One model. It has no mind of its own: it is told what is true, and is wrong about
//! some of it, always about the same for the same request.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::draws::Draws;
use super::mind::{Mind, Truth};
use super::report::number;
use crate::service::{Call, Reply, Service};

/// How long it takes to answer: what the real service takes, in the middle.
pub(crate) const TAKES: Duration = Duration::from_millis(650);

/// How often it is wrong about yes or no, in a hundred.
pub(crate) const WRONG_NOUL: usize = 10;

/// How often it chooses another option than the right one, in a hundred.
pub(crate) const WRONG_CHOICE: usize = 15;

/// The key that the lab's sessions have.
pub(crate) const KEY: &str = "lab";

/// The name that requests ask for.
pub(crate) const NAME: &str = "lab";

/// A session's minds, shared with the model that is asked about them.
pub(crate) type SharedMind = Arc<Mutex<Mind>>;

pub(crate) fn look_into(mind: &SharedMind) -> MutexGuard<'_, Mind> {
    mind.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sessions that may ask, by what their base URL ends in.
type Sessions = Arc<Mutex<HashMap<String, SharedMind>>>;

/// The model, which all sessions of an experiment share. Each has an address of its own there.
#[derive(Debug)]
pub(crate) struct Model {
    service: Service,
    sessions: Sessions,
}

impl Model {
    /// Starts it.
    pub(crate) fn start() -> io::Result<Self> {
        let sessions = Sessions::default();
        let theirs = Arc::clone(&sessions);
        let service = Service::start(move |call| Some(reply(&theirs, call)))?;
        Ok(Self { service, sessions })
    }

    /// Where the session of this name asks.
    pub(crate) fn base_url(&self, session: &str, mind: &SharedMind) -> String {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.insert(session.to_owned(), Arc::clone(mind));
        format!("http://{}/{session}", self.service.address())
    }
}

fn reply(sessions: &Sessions, call: &Call) -> Reply {
    if call.authorization != Some(format!("Bearer {KEY}")) {
        return Reply::refused(401, "not the lab's key");
    }
    let session = call.path.strip_suffix("/v1/systemone").unwrap_or_default();
    let sessions = sessions.lock().unwrap_or_else(PoisonError::into_inner);
    let mind = sessions.get(session.trim_start_matches('/')).cloned();
    drop(sessions);
    let (Some(mind), Ok(request)) = (mind, serde_json::from_slice::<Value>(&call.body)) else {
        return Reply::refused(400, "no session of the lab's asks that");
    };
    let truth = look_into(&mind).truth(&request["state"]);
    thread::sleep(TAKES);
    Reply::answers(NAME, &answers(&request, &truth))
}

/// Answers a request, as the service would, when this is true.
pub(crate) fn answers(request: &Value, truth: &Truth) -> Map<String, Value> {
    let just_made = request["state"]["latest_results"]
        .as_array()
        .and_then(|results| results.last())
        .map(|result| &result["tool_call"]);
    let is_yes = |id: &str| match id {
        "confirmed" => truth.intent.is_agreed,
        "proposed" | "described" => truth.intent.is_proposed,
        "pred_must_ask" => truth.next.is_none(),
        "pred_list_pending" => {
            truth.next.is_some() && truth.next.as_deref() == just_made.and_then(Value::as_str)
        }
        // `go_on`, and whether a choice needs more to be read.
        _ => truth.next.is_some(),
    };
    let text = request.to_string();
    let questions = request["questions"].as_object();
    let answer = |(id, question): (&String, &Value)| {
        // The same request is answered the same, in whatever run.
        let mut draws = Draws::new(hash(&text), id, 0);
        let answer = match question["criteria"].as_object() {
            Some(options) if question["type"] == "choice" => {
                let options: Vec<&str> = options.keys().map(String::as_str).collect();
                let right = truth.next.as_deref().unwrap_or("respond");
                choice(&options, right, &mut draws)
            }
            _ => json!({"type": "noul", "noul": noul(is_yes(id), &mut draws)}),
        };
        (id.clone(), answer)
    };
    questions.into_iter().flatten().map(answer).collect()
}

/// A probability of a yes: above 0.7 when it takes that for the truth, below 0.3 when not.
fn noul(is_yes: bool, draws: &mut Draws) -> f64 {
    let is_wrong = draws.happens(WRONG_NOUL);
    let doubt = 0.3 * share(draws);
    if is_yes == is_wrong {
        doubt
    } else {
        1.0 - doubt
    }
}

/// A choice: more than half for the option that it takes for the right one.
fn choice(options: &[&str], right: &str, draws: &mut Draws) -> Value {
    let others: Vec<&str> = options
        .iter()
        .copied()
        .filter(|option| *option != right)
        .collect();
    let is_wrong = draws.happens(WRONG_CHOICE) || !options.contains(&right);
    let picked = match draws.pick(&others) {
        Some(other) if is_wrong => *other,
        _ => right,
    };
    let p = 0.95 - 0.4 * share(draws);
    let rest = (1.0 - p) / number(others.len().max(1));
    let probabilities: Map<String, Value> = options
        .iter()
        .map(|option| {
            let p = if *option == picked { p } else { rest };
            ((*option).to_owned(), json!(p))
        })
        .collect();
    json!({"type": "choice", "choice": picked, "probabilities": probabilities, "confidence": p})
}

/// From 0 to below 1.
fn share(draws: &mut Draws) -> f64 {
    number(draws.below(1000)) / 1000.0
}

/// FNV-1a with 64 bits (Fowler, Noll and Vo).
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::agent::Intent;

    fn request(number: usize) -> Value {
        json!({"state": number, "questions": {
            "confirmed": {"type": "noul"},
            "next": {"type": "choice", "criteria": {"a": "", "b": "", "respond": ""}},
        }})
    }

    #[test]
    fn it_is_mostly_right_and_sometimes_wrong() {
        let truth = Truth {
            next: Some("b".to_owned()),
            intent: Intent {
                is_agreed: true,
                is_proposed: true,
            },
        };
        let all = (0..1000).map(|number| answers(&request(number), &truth));
        let (mut yes, mut right) = (0, 0);
        for answers in all {
            yes += usize::from(answers["confirmed"]["noul"].as_f64() > Some(0.5));
            right += usize::from(answers["next"]["choice"] == "b");
            let sum: f64 = answers["next"]["probabilities"]
                .as_object()
                .unwrap()
                .values()
                .filter_map(Value::as_f64)
                .sum();
            assert!((sum - 1.0).abs() < 1e-9);
        }
        assert!((870..930).contains(&yes), "{yes}");
        assert!((810..890).contains(&right), "{right}");
    }

    #[test]
    fn the_same_request_is_answered_the_same() {
        let truth = Truth::default();
        assert_eq!(
            answers(&request(1), &truth),
            answers(&request(1), &truth.clone())
        );
        assert_ne!(answers(&request(1), &truth), answers(&request(2), &truth));
    }
}
