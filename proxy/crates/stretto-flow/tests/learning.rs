//! Flows learned from recorded sessions.

mod support;

use serde_json::Value;
use stretto_flow::{FlowFile, LearnError, LearnOptions, Session, Surroundings, learn};
use stretto_trace::mcp::{episode_with_answered, manifest_of, read_logs};
use support::data;

fn sessions(directory: &str) -> (Vec<Session>, Surroundings) {
    let logs = read_logs(&data(directory)).unwrap();
    let sessions = logs
        .iter()
        .map(|log| {
            let (mut episode, answered_before) = episode_with_answered(log);
            episode.reward = 1.0;
            Session {
                episode,
                answered_before,
            }
        })
        .collect();
    let contracts = stretto_trace::mcp::Tools::of_all(&logs).contracts().clone();
    (
        sessions,
        Surroundings {
            manifest: manifest_of(&logs, "shop"),
            contracts,
        },
    )
}

fn learned(directory: &str, options: &LearnOptions) -> Result<FlowFile, LearnError> {
    let (sessions, surroundings) = sessions(directory);
    let sessions: Vec<&Session> = sessions.iter().collect();
    learn(&sessions, &surroundings, options, &mut |_, _, _| {})
}

/// A flow without what differs each time.
fn lasting(text: &str) -> Value {
    let mut flow: Value = serde_json::from_str(text).unwrap();
    flow["provenance"]["stretto"] = Value::Null;
    flow["provenance"]["compiled_unix_ms"] = Value::Null;
    flow
}

#[test]
fn the_published_flows_are_learned_again() {
    for (directory, file) in [
        (
            "flows/worked-example",
            "flows/worked-example/expected.flow.json",
        ),
        ("sessions/logs/shop", "flows/shop.flow.json"),
    ] {
        let learned = learned(directory, &LearnOptions::default()).unwrap();
        let expected = std::fs::read_to_string(data(file)).unwrap();
        assert_eq!(lasting(&learned.to_text()), lasting(&expected), "{file}");
        FlowFile::parse(&learned.to_text()).unwrap();
    }
}
