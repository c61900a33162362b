//! How a flow decides when it is held against recorded sessions.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use stretto_flow::{Decider, Flow, PER_CALL, Settings};

use crate::oracle::{Answerer, CacheArgs, OneByOne, Who, dollars};
use crate::screen::Voice;

/// Options of commands that have a flow decide.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Deciding {
    /// Who answers the arbiter's questions
    #[arg(long, value_name = "WHO", default_value = "replay")]
    oracle: Who,
    #[command(flatten)]
    cache: CacheArgs,
    /// Ask nothing that takes the questions above this
    #[arg(long, value_name = "DOLLARS", default_value = "1", value_parser = dollars)]
    oracle_budget: f64,
    /// The threshold of lookups
    #[arg(long, value_name = "P", default_value_t = 0.3)]
    pub(crate) threshold: f64,
    /// The most lookups after a call
    #[arg(long, value_name = "N", default_value_t = PER_CALL)]
    pub(crate) per_call: usize,
}

impl Deciding {
    /// Reads a flow, and says who decides for it: whoever is `named`, else whom `usual` picks.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is no flow, or lacks what the decider reads.
    pub(crate) fn flow(
        file: &Path,
        named: Option<Decider>,
        usual: impl FnOnce(&Flow) -> Decider,
    ) -> anyhow::Result<(Arc<Flow>, Decider)> {
        let flow = Arc::new(Flow::load(file)?);
        let decider = named.unwrap_or_else(|| usual(&flow));
        flow.check_decider(decider)
            .with_context(|| format!("deciding by {decider}"))?;
        Ok((flow, decider))
    }

    /// The flow's settings.
    pub(crate) fn settings(&self, decider: Decider) -> Settings {
        Settings {
            threshold: self.threshold,
            ..Settings::new(decider, "")
        }
    }

    /// Whoever answers the arbiter's questions.
    ///
    /// # Errors
    ///
    /// The service is asked for, and there is no key, or no client for it.
    pub(crate) fn asking(&self) -> anyhow::Result<OneByOne> {
        let answerer = Answerer::new(self.oracle, self.cache.cache())?;
        Ok(OneByOne::new(answerer, self.oracle_budget))
    }
}

/// Says how many questions got no answer, if any did.
pub(crate) fn say_unanswered(asking: &OneByOne, voice: &mut Voice) {
    if let (all, failed, Some(reason)) = asking.unanswered() {
        voice.say(&format!(
            "{failed} of {all} questions got no answer, such as: {reason}"
        ));
    }
}
