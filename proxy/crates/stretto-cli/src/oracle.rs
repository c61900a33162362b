//! Who answers a command's questions, as the command line names them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::ValueEnum;
use stretto_oracle::offline::{Asked, Requests};
use stretto_oracle::{
    Cache, Estimate, Jev, Key, Oracle, Patience, Request, Response, Settings, offline,
};

use crate::bar;
use crate::files::write_whole;
use crate::screen::{Voice, one_line};

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Who {
    /// The service, for what the cache does not hold; costs money, and needs the key in
    /// `TYPESAFE_API_KEY`, or in the file that `TYPESAFE_API_KEY_FILE` names.
    Jev,
    /// The cache alone.
    Replay,
    /// A stand-in that always says the same.
    Mock,
}

/// Where answers are kept.
#[derive(Debug, clap::Args)]
pub struct CacheArgs {
    /// The folder of cached answers
    #[arg(long, value_name = "DIR", default_value = ".oracle-cache")]
    oracle_cache: PathBuf,
}

impl CacheArgs {
    /// The cache.
    pub fn cache(&self) -> Cache {
        Cache::new(&self.oracle_cache)
    }
}

/// Whoever answers, and the model that questions are for.
#[derive(Debug)]
pub struct Answerer {
    /// Who answers.
    pub oracle: Oracle,
    /// The model that questions ask for. It is part of their keys.
    pub model: String,
}

impl Answerer {
    /// Whoever `who` names, with the answers in `cache`.
    ///
    /// # Errors
    ///
    /// The environment's settings for the service cannot be used. Only `jev` reads more of them
    /// than the model.
    pub fn new(who: Who, cache: Cache) -> anyhow::Result<Self> {
        let (oracle, settings) = match who {
            Who::Mock => (Oracle::Mock, Settings::model_from_env()?),
            Who::Replay => (Oracle::Replay(cache), Settings::model_from_env()?),
            Who::Jev => {
                let settings = Settings::from_env()?;
                let jev = Jev::new(&settings, Patience::offline())?;
                (Oracle::jev(jev, cache), settings)
            }
        };
        Ok(Self {
            oracle,
            model: settings.model,
        })
    }

    /// Says what asking may cost, and refuses what is above `budget` dollars.
    ///
    /// # Errors
    ///
    /// It is above.
    pub fn check_cost(&self, requests: &Requests, budget: f64) -> anyhow::Result<()> {
        offline::check_cost(&self.oracle, requests, budget)?;
        if self.oracle.costs() {
            let estimate = Estimate::of(requests.values());
            Voice::stderr().say(&format!(
                "{} questions of about {} tokens: ${:.4} if none of them is cached",
                estimate.requests,
                estimate.tokens(),
                estimate.dollars()
            ));
        }
        Ok(())
    }

    /// Asks all of `requests`, shows how far it has come, and says what could not be answered.
    ///
    /// # Errors
    ///
    /// Most got no answer, as with a wrong key or without the cache.
    pub fn ask(&self, requests: &Requests) -> anyhow::Result<Asked> {
        let bar = bar::new();
        let asked = offline::ask_all(&self.oracle, requests, |asked| {
            bar::show(&bar, "asking", asked.finished(), requests.len());
        });
        bar.finish_and_clear();
        let mut asked = asked.context("starting the model's client")?;
        if let Some(trouble) = asked.not_kept.take() {
            let trouble = one_line(&trouble.into());
            Voice::stderr().say(&format!(
                "answers are used, but not all of them kept: {trouble}"
            ));
        }
        if let Some((_, first)) = asked.failures.first_key_value() {
            let failed = asked.failures.len();
            let summary = format!(
                "{failed} of {} questions got no answer, the first: {}",
                asked.finished(),
                first.one_line()
            );
            anyhow::ensure!(!asked.gave_up, "gave up: {summary}");
            Voice::stderr().say(&summary);
        }
        Ok(asked)
    }
}

/// Writes requests as lines, `{"key": …, "request": …}`. They hold what was said in the sessions.
///
/// # Errors
///
/// The file cannot be written.
pub fn dump(requests: &Requests, file: &Path) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for (key, request) in requests {
        let line = serde_json::json!({"key": key, "request": request});
        serde_json::to_writer(&mut lines, &line)?;
        lines.push(b'\n');
    }
    Ok(write_whole(file, &lines)?)
}

/// Whoever answers, asked one question at a time: each once, and none above a budget.
#[derive(Debug)]
pub struct OneByOne {
    answerer: Answerer,
    budget: f64,
    spent: f64,
    known: BTreeMap<Key, Result<Response, String>>,
}

impl OneByOne {
    /// `answerer`, for `budget` dollars at most, as if no answer were cached.
    pub fn new(answerer: Answerer, budget: f64) -> Self {
        Self {
            answerer,
            budget,
            spent: 0.0,
            known: BTreeMap::new(),
        }
    }

    /// Answers a request.
    ///
    /// # Errors
    ///
    /// Why there is no answer, on one line.
    pub fn ask(&mut self, request: &Request) -> Result<Response, String> {
        let key = request.key();
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let answer = self.ask_once(request);
        self.known.insert(key, answer.clone());
        answer
    }

    fn ask_once(&mut self, request: &Request) -> Result<Response, String> {
        if self.answerer.oracle.costs() {
            self.spent += Estimate::of([request]).dollars();
            if self.spent > self.budget {
                return Err(format!("the budget of ${} is spent", self.budget));
            }
        }
        let found = offline::ask_one(&self.answerer.oracle, request);
        found
            .map(|found| found.response)
            .map_err(|error| error.one_line())
    }

    /// How many questions there were, how many of them got no answer, and the reason for one.
    pub fn unanswered(&self) -> (usize, usize, Option<&str>) {
        let mut reasons = self.known.values().filter_map(|known| known.as_ref().err());
        let first = reasons.next().map(String::as_str);
        let failed = reasons.count() + usize::from(first.is_some());
        (self.known.len(), failed, first)
    }
}

/// A budget in dollars, from a command line.
///
/// # Errors
///
/// The text is no number from 0.
pub fn dollars(text: &str) -> Result<f64, String> {
    let number = text
        .parse()
        .ok()
        .filter(|dollars: &f64| dollars.is_finite() && *dollars >= 0.0);
    number.ok_or_else(|| "not an amount of dollars".to_owned())
}
