//! Flows learned from recorded sessions.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something unexpected happens"
)]

mod support;

use serde_json::Value;
use stretto_flow::file::Bar;
use stretto_flow::{
    Decider, Flow, FlowFile, LearnError, LearnOptions, Session, Settings, learn, promote,
};
use stretto_trace::Event;
use support::{data, flow, sessions};

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

#[test]
fn results_that_stay_on_disk_teach_what_they_teach_in_memory() {
    let directory = "sessions/logs/shop";
    let (mut sessions, surroundings) = sessions(directory);
    for session in &mut sessions {
        let log = data(directory).join(format!("{}.jsonl", session.episode.id));
        session.contents_in = Some(log);
        for event in &mut session.episode.events {
            if let Event::ToolResult { content, .. } = event {
                content.clear();
            }
        }
    }
    let learn = |sessions: &[Session], options: &LearnOptions| {
        let sessions: Vec<&Session> = sessions.iter().collect();
        learn(&sessions, &surroundings, options, &mut |_, _, _| {})
    };
    let options = LearnOptions::default();
    assert_eq!(learn(&sessions, &options), learned(directory, &options));

    let unread = |learned: Result<FlowFile, LearnError>| match learned {
        Err(LearnError::Unread(why)) => why,
        other => panic!("{other:?}"),
    };
    let features = LearnOptions {
        features: true,
        ..LearnOptions::default()
    };
    assert!(unread(learn(&sessions, &features)).contains("without its results"));
    sessions[0].contents_in = Some(data("no such log.jsonl"));
    assert!(unread(learn(&sessions, &options)).contains("no such log.jsonl"));
}

#[test]
fn the_published_sites_are_promoted_again() {
    let shop = flow("shop.flow.json");
    let (recorded, _) = sessions("sessions/shadow/shop");
    let recorded: Vec<&Session> = recorded.iter().collect();
    let settings = Settings::new(Decider::Reach, "");
    let (promoted, score) = promote(
        &shop,
        &recorded,
        &settings,
        8,
        Bar::default(),
        &mut |_, _| {},
        &mut |_| panic!("reach asks nobody"),
    );
    let expected = flow("shop.promoted.flow.json");
    assert_eq!(Some(&promoted), expected.file().promoted.as_ref());
    assert_eq!((score.lookups(), score.used(), score.detours()), (9, 9, 0));
    let mut file = shop.file().clone();
    file.promoted = Some(promoted);
    file.set_format();
    let published = std::fs::read_to_string(data("flows/shop.promoted.flow.json")).unwrap();
    assert_eq!(lasting(&file.to_text()), lasting(&published));
    drop(Flow::new(file));
}

#[test]
fn what_a_flow_looked_up_for_the_agent_speaks_neither_for_it_nor_against() {
    let shop = flow("shop.flow.json");
    let settings = Settings::new(Decider::Reach, "");
    let (served, _) = sessions("sessions/served/shop");
    let scores: Vec<_> = served
        .iter()
        .map(|session| {
            let mut unasked = |_: &_| Err("reach asks nobody".to_owned());
            stretto_flow::score(&shop, session, &settings, 8, &|_| true, &mut unasked)
        })
        .collect();
    // A call and a message, before and after the customer agreed; a call and a message.
    let turns: Vec<u64> = scores.iter().map(|score| score.turns).collect();
    assert_eq!(turns, [4, 2]);
    let counted: Vec<_> = scores
        .iter()
        .map(|score| (score.decisions(), score.lookups()))
        .collect();
    assert_eq!(counted, [(5, 0), (4, 0)]);
}
