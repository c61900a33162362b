//! The scenarios as tests of a test harness: one for each scenario and transport.

use std::num::NonZeroUsize;
use std::path::Path;

use crate::bins::Programs;
use crate::collection::{Choice, CollectError, Collection};
use crate::event::Finished;
use crate::report;
use crate::run::{Job, RunOptions};
use crate::runner::{self, Plan, run_repeatedly};
use crate::snapshot::Update;

/// All scenarios of a checkout, ready to be run one by one.
#[derive(Debug)]
pub struct Suite {
    collection: Collection,
    plan: Plan,
}

impl Suite {
    /// The scenarios in `checkout/scenarios`, with their snapshots in `checkout/snapshots`.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub fn read(checkout: &Path, programs: Programs) -> Result<Self, CollectError> {
        let root = checkout.join("scenarios");
        let collection = Collection::read(&root, None)?;
        let options = RunOptions {
            programs,
            scenarios: root,
            keep: Some(runner::keep_folder(Some(checkout))),
            keep_passed: false,
        };
        let plan = Plan {
            options,
            jobs: NonZeroUsize::MIN,
            repeat: NonZeroUsize::MIN,
            slow: true,
            fail_fast: false,
            update: Update::from_environment(),
            rerun: "stretto-harness run ".to_owned(),
            unreferenced: true,
        };
        Ok(Self { collection, plan })
    }

    /// Every scenario over each of its transports.
    pub fn jobs(&self) -> Vec<Job<'_>> {
        self.collection.jobs(&Choice::default())
    }

    /// Runs one.
    ///
    /// # Errors
    ///
    /// Everything that was not as it must be, as a text for a person.
    pub fn run(&self, job: Job<'_>) -> Result<(), String> {
        let outcome = run_repeatedly(&self.collection, job, &self.plan);
        if outcome.failures.is_empty() {
            return Ok(());
        }
        Err(report::plain(&Finished::of(job, outcome, &self.plan.rerun)))
    }

    /// Looks for snapshots that no scenario asks for.
    ///
    /// # Errors
    ///
    /// Their names.
    pub fn every_snapshot_is_asked_for(&self) -> Result<(), String> {
        let left: Vec<String> = self
            .collection
            .unreferenced()
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("no scenario asks for {}", left.join(", ")))
        }
    }
}
