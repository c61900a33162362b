//! Runs many scenarios at a time, and tells what happens.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use crate::collection::Collection;
use crate::event::{About, EVENTS_VERSION, Event, Finished, Totals};
use crate::process;
use crate::run::{Failure, Job, Outcome, RunOptions, run};
use crate::snapshot::{self, Snapshot, Update};

/// How a whole run goes about it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How each scenario is run.
    pub options: RunOptions,
    /// How many at a time.
    pub jobs: NonZeroUsize,
    /// How often each; the transcripts must be the same.
    pub repeat: NonZeroUsize,
    /// Whether slow ones are run, too.
    pub slow: bool,
    /// Whether the first failure ends the run.
    pub fail_fast: bool,
    /// What is written when a transcript is not what its snapshot holds.
    pub update: Update,
    /// How the command that runs a scenario again begins.
    pub rerun: String,
    /// Whether snapshots that no scenario asks for fail the run.
    pub unreferenced: bool,
}

/// Runs these and tells `listener` what happens, one event after the other.
///
/// When all have ended, nothing that they started is left.
pub fn run_all(
    collection: &Collection,
    jobs: &[Job<'_>],
    plan: &Plan,
    mut listener: impl FnMut(&Event),
) -> Totals {
    let began = Instant::now();
    let chosen: Vec<Job<'_>> = jobs
        .iter()
        .copied()
        .filter(|job| plan.slow || !job.scenario.slow)
        .collect();
    listener(&Event::RunStarted {
        version: EVENTS_VERSION,
        scenarios: chosen.len(),
        jobs: plan.jobs.get(),
    });

    let mut totals = Totals::default();
    let queue = Mutex::new(chosen.iter());
    let is_over = AtomicBool::new(false);
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..plan.jobs.get().min(chosen.len()) {
            let (queue, is_over, tell) = (&queue, &is_over, tell.clone());
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) && !process::is_stopped() {
                    let Some(job) = queue.lock().ok().and_then(|mut queue| queue.next()) else {
                        return;
                    };
                    let started = tell.send(Event::ScenarioStarted(About::of(*job)));
                    let outcome = run_repeatedly(collection, *job, plan);
                    if plan.fail_fast && !outcome.failures.is_empty() {
                        is_over.store(true, Ordering::Relaxed);
                    }
                    let finished = Finished::of(*job, outcome, &plan.rerun);
                    if started
                        .and(tell.send(Event::ScenarioFinished(Box::new(finished))))
                        .is_err()
                    {
                        return;
                    }
                }
            });
        }
        drop(tell);
        for event in told {
            if let Event::ScenarioFinished(finished) = &event {
                let count = if finished.passed {
                    &mut totals.passed
                } else {
                    &mut totals.failed
                };
                *count += 1;
                totals.slow += usize::from(finished.slow);
            }
            listener(&event);
        }
    });
    totals.not_run = jobs.len() - totals.passed - totals.failed;
    totals.too_slow = jobs.len() - chosen.len();
    if plan.unreferenced {
        totals.unreferenced = collection.unreferenced();
    }
    totals.took = began.elapsed();
    listener(&Event::RunFinished(totals.clone()));
    totals
}

/// Runs a scenario as often as the plan says, and holds the first transcript against the snapshot.
pub fn run_repeatedly(collection: &Collection, job: Job<'_>, plan: &Plan) -> Outcome {
    let mut first = run(job, &plan.options);
    if first.failures.is_empty() {
        first
            .failures
            .extend(compare(collection, job, &first, plan.update).err());
    }
    for _ in 1..plan.repeat.get() {
        if !first.failures.is_empty() || process::is_stopped() {
            break;
        }
        let again = run(job, &plan.options);
        let is_same = again.transcript == first.transcript;
        first.took += again.took;
        first.kept = again.kept.or(first.kept);
        first.failures = again.failures;
        if first.failures.is_empty() && !is_same {
            let what = format!(
                "another run had another transcript\n{}",
                snapshot::diff(&first.transcript, &again.transcript)
            );
            first.failures.push(Failure::Promise { name: "same", what });
        }
    }
    first
}

fn compare(
    collection: &Collection,
    job: Job<'_>,
    outcome: &Outcome,
    update: Update,
) -> Result<(), Failure> {
    let snapshot = Snapshot {
        file: collection.snapshot(job),
        input_file: collection.input_file(job.scenario),
    };
    snapshot.compare(&outcome.transcript, update)
}

/// How many to run at a time when nobody says: three for each processor, since most of a scenario is waiting.
pub fn usual_jobs() -> NonZeroUsize {
    let processors = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    processors.saturating_mul(NonZeroUsize::new(3).unwrap_or(NonZeroUsize::MIN))
}

/// Where the folders of failed runs are kept.
pub fn keep_folder(checkout: Option<&std::path::Path>) -> PathBuf {
    match checkout {
        Some(checkout) => crate::bins::target_of(checkout).join("stretto-harness"),
        None => std::env::temp_dir().join("stretto-harness"),
    }
}
