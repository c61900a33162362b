//! Who answers a command's questions, as the command line names them.

use std::path::PathBuf;

use clap::ValueEnum;
use stretto_oracle::offline::Requests;
use stretto_oracle::{Cache, Jev, Oracle, Patience, Settings, offline};

use crate::screen::Voice;

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Who {
    /// The service, for what the cache does not hold; costs money and needs a key.
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
            let estimate = stretto_oracle::Estimate::of(requests.values());
            Voice::stderr().say(&format!(
                "{} questions of about {} tokens: ${:.4} if none of them is cached",
                estimate.requests,
                estimate.tokens(),
                estimate.dollars()
            ));
        }
        Ok(())
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
