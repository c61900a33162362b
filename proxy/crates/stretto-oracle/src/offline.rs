//! Asking many questions at once, in a program that has nothing else to do.

use std::collections::BTreeMap;
use std::io;

use crate::{Answered, AskError, CacheError, Estimate, Key, Oracle, Request, Response};

/// How many requests are on their way at a time.
#[cfg(feature = "jev")]
const AT_ONCE: usize = 8;

/// From how many failures on it may be that nothing will ever be answered.
const MANY_FAILURES: usize = 20;

/// Requests by their keys, so that equal ones are asked once.
pub type Requests = BTreeMap<Key, Request>;

/// What became of many requests.
#[derive(Debug, Default)]
pub struct Asked {
    /// The answers that came.
    pub answers: BTreeMap<Key, Response>,
    /// Why others did not.
    pub failures: BTreeMap<Key, AskError>,
    /// Whether the rest was not asked any more: at least 20 had failed, and more than half of
    /// those that were finished, as with a wrong key or a cache that is not there.
    pub gave_up: bool,
    /// Why new answers could not be kept: the first reason of that kind.
    pub not_kept: Option<CacheError>,
}

impl Asked {
    /// How many requests are finished, one way or the other.
    pub fn finished(&self) -> usize {
        self.answers.len() + self.failures.len()
    }

    fn take(&mut self, key: Key, answered: Result<Answered, AskError>) {
        match answered {
            Ok(answered) => {
                self.answers.insert(key, answered.response);
                if self.not_kept.is_none() {
                    self.not_kept = answered.not_kept;
                }
            }
            Err(error) => {
                self.failures.insert(key, error);
            }
        }
        let failed = self.failures.len();
        self.gave_up = failed >= MANY_FAILURES && 2 * failed > self.finished();
    }
}

/// Refuses to start what may cost too much.
///
/// Only the service costs anything. The estimate is made as if no answer were known yet.
///
/// # Errors
///
/// The estimate is above `dollars`.
pub fn check_cost(oracle: &Oracle, requests: &Requests, dollars: f64) -> Result<(), TooDear> {
    let estimate = Estimate::of(requests.values());
    if !oracle.costs() || estimate.dollars() <= dollars {
        return Ok(());
    }
    Err(TooDear {
        estimate,
        budget: dollars,
    })
}

/// Asking would cost more than it may.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "asking {} questions would cost about ${:.4}, above the budget of ${budget}; raise --oracle-budget to ask them",
    estimate.requests,
    estimate.dollars()
)]
pub struct TooDear {
    /// What it would cost.
    pub estimate: Estimate,
    /// What it may, in dollars.
    pub budget: f64,
}

/// Asks all of `requests`, and waits for the answers.
///
/// What is known already is looked up first; the service is then asked with 8 requests at a
/// time, in the order of their keys. `progress` is told after each one how many are finished.
///
/// Not to be called on a thread that runs async tasks, since it waits.
///
/// # Errors
///
/// The system does not let the client run. Questions without answers are no error here.
pub fn ask_all(
    oracle: &Oracle,
    requests: &Requests,
    mut progress: impl FnMut(&Asked),
) -> io::Result<Asked> {
    let mut asked = Asked::default();
    let mut unknown = Vec::new();
    for (key, request) in requests {
        match oracle.answer_now(request, key).transpose() {
            Some(answered) => asked.take(*key, answered),
            None => unknown.push((*key, request)),
        }
        progress(&asked);
        if asked.gave_up {
            return Ok(asked);
        }
    }
    #[cfg(feature = "jev")]
    if let Oracle::Jev(..) = oracle
        && !unknown.is_empty()
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(ask_service(oracle, unknown, &mut asked, &mut progress));
    }
    Ok(asked)
}

#[cfg(feature = "jev")]
async fn ask_service(
    oracle: &Oracle,
    unknown: Vec<(Key, &Request)>,
    asked: &mut Asked,
    progress: &mut impl FnMut(&Asked),
) {
    let mut waiting = unknown.into_iter();
    let mut on_their_way = tokio::task::JoinSet::new();
    loop {
        while !asked.gave_up
            && on_their_way.len() < AT_ONCE
            && let Some((key, request)) = waiting.next()
        {
            let (oracle, request) = (oracle.clone(), request.clone());
            on_their_way.spawn(async move { (key, oracle.ask(request).await) });
        }
        // What is on its way was paid for, so it is waited for even after giving up.
        let Some(done) = on_their_way.join_next().await else {
            return;
        };
        if let Ok((key, answered)) = done {
            let gave_up = asked.gave_up;
            asked.take(key, answered);
            asked.gave_up |= gave_up;
            progress(asked);
        }
    }
}

/// Answers one request, and waits for it.
///
/// # Errors
///
/// Why there is no answer. That the system does not let the client run is one of the reasons.
pub fn ask_one(oracle: &Oracle, request: &Request) -> Result<Answered, AskError> {
    let key = request.key();
    if let Some(answered) = oracle.answer_now(request, &key)? {
        return Ok(answered);
    }
    #[cfg(feature = "jev")]
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| AskError::Transport {
            what: error.to_string(),
            attempts: 0,
        })?;
        runtime.block_on(oracle.ask(request.clone()))
    }
    #[cfg(not(feature = "jev"))]
    Err(AskError::Miss { key })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cache, Question};

    fn requests(count: usize) -> Requests {
        let request = |state: usize| Request {
            model: "jev-latest".to_owned(),
            state: state.into(),
            questions: [("q".to_owned(), Question::noul("?"))].into(),
        };
        let keyed = (0..count).map(|state| (request(state).key(), request(state)));
        keyed.collect()
    }

    #[test]
    fn the_mock_answers_all_and_progress_is_told_of_each() {
        let mut told = Vec::new();
        let asked = ask_all(&Oracle::Mock, &requests(3), |asked| {
            told.push(asked.finished());
        });
        let asked = asked.unwrap();
        assert_eq!(
            (asked.answers.len(), asked.failures.len(), asked.gave_up),
            (3, 0, false)
        );
        assert_eq!(told, [1, 2, 3]);
    }

    #[test]
    fn a_cache_that_is_not_there_is_given_up_after_20_misses() {
        let folder = tempfile::tempdir().unwrap();
        let replay = Oracle::Replay(Cache::new(folder.path()));
        let asked = ask_all(&replay, &requests(19), |_| ()).unwrap();
        assert_eq!((asked.failures.len(), asked.gave_up), (19, false));
        let asked = ask_all(&replay, &requests(50), |_| ()).unwrap();
        assert_eq!((asked.failures.len(), asked.gave_up), (20, true));
    }

    #[test]
    fn misses_among_as_many_hits_are_no_reason_to_give_up() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path());
        let requests = requests(60);
        // Every other one, in the order in which they are asked.
        for (key, request) in requests.iter().step_by(2) {
            let answered = Oracle::Mock.answer_now(request, key).unwrap().unwrap();
            cache.write(key, &answered.response).unwrap();
        }
        let asked = ask_all(&Oracle::Replay(cache), &requests, |_| ()).unwrap();
        assert_eq!(
            (asked.answers.len(), asked.failures.len(), asked.gave_up),
            (30, 30, false)
        );
    }

    #[test]
    fn what_costs_nothing_is_within_any_budget() {
        assert_eq!(check_cost(&Oracle::Mock, &requests(3), 0.0), Ok(()));
    }
}
