//! Every scenario over each of its transports, as a test of its own.
//!
//! What happened is compared with the snapshots in this folder; `cargo insta review` shows
//! what differs, and `stretto-harness run` does the same with more to say.

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use stretto_harness::bins::Programs;
use stretto_harness::runner::usual_jobs;
use stretto_harness::suite::Suite;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(usual_jobs().get());
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a package has a folder above it");
    let programs = Programs {
        proxy: env!("CARGO_BIN_EXE_stretto-proxy").into(),
        demo: env!("CARGO_BIN_EXE_stretto-mcp-demo").into(),
    };
    let suite: &'static Suite = match Suite::read(checkout, programs) {
        Ok(suite) => Box::leak(Box::new(suite)),
        Err(error) => {
            let trial = Trial::test("the scenarios can be read", move || {
                Err(Failed::from(error.to_string()))
            });
            return libtest_mimic::run(&arguments, vec![trial]).exit_code();
        }
    };
    let mut trials: Vec<Trial> = suite
        .jobs()
        .into_iter()
        .map(|job| Trial::test(job.name(), move || suite.run(job).map_err(Failed::from)))
        .collect();
    trials.push(Trial::test("every snapshot is asked for", || {
        suite.every_snapshot_is_asked_for().map_err(Failed::from)
    }));
    libtest_mimic::run(&arguments, trials).exit_code()
}
