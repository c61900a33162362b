//! Whoever answers.

use crate::{Cache, CacheError, Key, QuestionError, Request, Response, mock};

#[cfg(feature = "jev")]
use std::sync::Arc;

#[cfg(feature = "jev")]
use crate::Jev;

/// Whoever answers questions.
///
/// - `Jev` looks into the cache and, for what is not there, asks the service (which takes a key)
///   and keeps the answer.
/// - `Replay` has the cache and nothing else.
/// - `Mock` needs neither.
#[derive(Clone, Debug)]
pub enum Oracle {
    /// Says the same to everything: 0.5 to a yes-or-no question, 0.6 for the first option by
    /// name, the lowest level.
    Mock,
    /// Knows what is in the cache, and nothing else.
    Replay(Cache),
    /// The service, and what it has said before.
    #[cfg(feature = "jev")]
    Jev(Arc<Jev>, Cache),
}

impl Oracle {
    /// The service, and what it has said before.
    #[cfg(feature = "jev")]
    pub fn jev(jev: Jev, cache: Cache) -> Self {
        Self::Jev(Arc::new(jev), cache)
    }

    /// Whether a question may cost something: whether the service is asked.
    pub fn costs(&self) -> bool {
        match self {
            Self::Mock | Self::Replay(_) => false,
            #[cfg(feature = "jev")]
            Self::Jev(..) => true,
        }
    }

    /// The answers that can be had without asking anyone; nothing when the service has to be
    /// asked, which only `Jev` does.
    ///
    /// `key` is the request's own, which the asker has at hand.
    ///
    /// # Errors
    ///
    /// The request cannot be asked, its cached answers cannot be read, or there are none and
    /// nobody else to ask.
    pub fn answer_now(&self, request: &Request, key: &Key) -> Result<Option<Answered>, AskError> {
        request.check()?;
        match self {
            Self::Mock => Ok(Some(Answered::new(mock::answer(request), Origin::Mock))),
            Self::Replay(cache) => match cache.read(key)? {
                Some(response) => Ok(Some(Answered::new(response, Origin::Cache))),
                None => Err(AskError::Miss { key: *key }),
            },
            #[cfg(feature = "jev")]
            Self::Jev(_, cache) => {
                let cached = cache.read(key)?;
                Ok(cached.map(|response| Answered::new(response, Origin::Cache)))
            }
        }
    }

    /// Answers a request: from the cache where it can, else by asking the service and keeping
    /// what it says.
    ///
    /// Dropped before it is done, an answer on its way is lost, though it was paid for. A program
    /// that gives up a question lets this run to its end.
    ///
    /// # Errors
    ///
    /// As [`answer_now`](Self::answer_now), or the service did not answer.
    #[cfg(feature = "jev")]
    pub async fn ask(&self, request: Request) -> Result<Answered, AskError> {
        let key = request.key();
        let oracle = self.clone();
        let (request, known) = aside(move || {
            let known = oracle.answer_now(&request, &key);
            (request, known)
        })
        .await?;
        if let Some(known) = known? {
            return Ok(known);
        }
        let Self::Jev(jev, cache) = self else {
            return Err(AskError::Miss { key });
        };
        let response = jev.ask(&request).await?;
        let cache = cache.clone();
        let (response, kept) = aside(move || {
            let kept = cache.write(&key, &response);
            (response, kept)
        })
        .await?;
        Ok(Answered {
            not_kept: kept.err(),
            ..Answered::new(response, Origin::Model)
        })
    }
}

/// Runs what waits for a disk on a thread of its own, so that nothing else has to wait for it.
#[cfg(feature = "jev")]
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, AskError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| AskError::Ending)
}

/// Answers, and where they came from.
#[derive(Debug)]
pub struct Answered {
    /// The answers.
    pub response: Response,
    /// Where they came from.
    pub origin: Origin,
    /// Why new answers could not be kept, if they could not. They are good all the same; a
    /// program says so once.
    pub not_kept: Option<CacheError>,
}

impl Answered {
    fn new(response: Response, origin: Origin) -> Self {
        Self {
            response,
            origin,
            not_kept: None,
        }
    }
}

/// Where answers came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// They were known.
    Cache,
    /// The service was asked.
    Model,
    /// Nobody thought about them.
    Mock,
}

/// Why a request has no answers. None of these shows a key or a state, as far as the service's
/// own words do not quote them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The request cannot be asked.
    #[error(transparent)]
    Question(#[from] QuestionError),
    /// The service has to be asked, and there is no key.
    #[error(
        "no key to ask the model with: set TYPESAFE_API_KEY, or TYPESAFE_API_KEY_FILE to a file that holds it"
    )]
    NoKey,
    /// Only known answers were wanted, and there are none.
    #[error("no cached answer for request {key}; --oracle jev asks the model")]
    Miss {
        /// The request's key.
        key: Key,
    },
    /// The cached answers cannot be read.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The service answered with a status that is no success.
    #[error("the model answered {status}{}{}; {}", after(*attempts), quoted(body), advice(*status))]
    Status {
        /// The status.
        status: u16,
        /// How often it was asked.
        attempts: u32,
        /// The beginning of what it said, on one line.
        body: String,
    },
    /// No answer arrived.
    #[error("asking the model{}: {what}; check the network and TYPESAFE_BASE_URL", after(*attempts))]
    Transport {
        /// What went wrong.
        what: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// The service's answer is not one.
    #[error("what the model answered is not a response; check TYPESAFE_BASE_URL")]
    Decoding(#[source] serde_json::Error),
    /// Nobody works at the answer any more: the program is ending, or what asked has broken.
    #[error("the question was given up before an answer came")]
    Ending,
}

impl AskError {
    /// The error and its causes on one line, as logs hold it.
    pub fn one_line(&self) -> String {
        let mut line = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            line.push_str(": ");
            line.push_str(&error.to_string());
            cause = error.source();
        }
        line
    }
}

fn after(attempts: u32) -> String {
    match attempts {
        0 | 1 => String::new(),
        more => format!(" after {more} attempts"),
    }
}

/// What to do about a status.
fn advice(status: u16) -> &'static str {
    match status {
        401 | 403 => "check the key in TYPESAFE_API_KEY or TYPESAFE_API_KEY_FILE",
        413 => "the request is too long for it",
        429 => "it is asked too often; try again later",
        500.. => "the service is in trouble; try again later",
        _ => "check TYPESAFE_BASE_URL and TYPESAFE_DEFAULT_MODEL",
    }
}

fn quoted(body: &str) -> String {
    if body.is_empty() {
        String::new()
    } else {
        format!(": {body}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Question;

    fn request() -> Request {
        Request {
            model: "jev-latest".to_owned(),
            state: "s".into(),
            questions: [("q".to_owned(), Question::noul("?"))].into(),
        }
    }

    #[test]
    fn a_replay_knows_what_is_cached_and_names_the_key_of_a_miss() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().join("cache"));
        let replay = Oracle::Replay(cache.clone());
        let key = request().key();

        let error = replay.answer_now(&request(), &key).unwrap_err();
        assert_eq!(
            error.one_line(),
            format!("no cached answer for request {key}; --oracle jev asks the model")
        );
        assert!(!cache.root().exists(), "a replay writes nothing");

        let response = mock::answer(&request());
        cache.write(&key, &response).unwrap();
        let answered = replay.answer_now(&request(), &key).unwrap().unwrap();
        assert_eq!(
            (answered.response, answered.origin),
            (response, Origin::Cache)
        );
    }

    #[test]
    fn a_broken_answer_is_told_with_its_file_and_what_is_wrong_on_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path());
        let key = request().key();
        cache.write(&key, &mock::answer(&request())).unwrap();
        std::fs::write(cache.path(&key), "{\n}").unwrap();
        let line = Oracle::Replay(cache.clone())
            .answer_now(&request(), &key)
            .unwrap_err()
            .one_line();
        assert!(line.contains(cache.path(&key).to_str().unwrap()), "{line}");
        assert!(line.contains("model") && !line.contains('\n'), "{line}");
    }

    #[test]
    fn the_mock_answers_a_request_that_can_be_asked() {
        let answered = Oracle::Mock
            .answer_now(&request(), &request().key())
            .unwrap()
            .unwrap();
        assert_eq!(answered.response.noul("q"), Some(0.5));
        let mut wrong = request();
        let score = Question::Score {
            instructions: String::new(),
            criteria: Vec::new(),
        };
        wrong.questions.insert("s".to_owned(), score);
        let error = Oracle::Mock.answer_now(&wrong, &wrong.key()).unwrap_err();
        assert!(matches!(error, AskError::Question(_)), "{error:?}");
    }
}
