//! Sessions drawn from a seed, played through this package's own proxy.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "a test whose surroundings are broken has failed"
)]

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use stretto_harness::bins::Programs;
use stretto_harness::run::RunOptions;
use stretto_harness::runner::usual_jobs;
use stretto_harness::scenario::read_text;
use stretto_harness::soak::{Soak, text};

fn soak(proxy: PathBuf, sessions: usize, failed: &Path) -> Soak {
    Soak {
        options: RunOptions {
            programs: Programs {
                proxy,
                demo: env!("CARGO_BIN_EXE_stretto-mcp-demo").into(),
            },
            scenarios: "scenarios".into(),
            keep: None,
            keep_passed: false,
        },
        seed: 11,
        sessions: NonZeroUsize::new(sessions).unwrap(),
        jobs: usual_jobs(),
        failed: failed.to_owned(),
    }
}

#[test]
fn whatever_order_things_happen_in_every_promise_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let soak = soak(
        env!("CARGO_BIN_EXE_stretto-proxy").into(),
        80,
        folder.path(),
    );
    let broken = soak.run(&|_| {}).unwrap();
    let shown: Vec<_> = broken
        .iter()
        .map(|broken| (broken.session, &broken.why, text(11, broken.session)))
        .collect();
    assert!(broken.is_empty(), "{shown:#?}");
}

#[test]
fn a_session_that_fails_is_written_as_a_scenario_that_plays_it_again() {
    let folder = tempfile::tempdir().unwrap();
    // No proxy at all: it ends at once, and says nothing.
    let broken = soak("/bin/false".into(), 3, folder.path())
        .run(&|_| {})
        .unwrap();
    assert_eq!(broken.len(), 3);
    for broken in broken {
        assert!(!broken.why.is_empty());
        let written = fs::read_to_string(&broken.scenario).unwrap();
        assert!(written.starts_with("# "), "{written}");
        assert!(written.ends_with(&text(11, broken.session)));
        let scenarios = read_text(&broken.scenario, "again", &written).unwrap();
        assert_eq!(scenarios.len(), 1);
    }
}
