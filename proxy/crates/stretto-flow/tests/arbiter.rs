//! Arbiters that are fitted to recorded sessions.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something unexpected happens"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stretto_flow::file::Bar;
use stretto_flow::{
    Decider, FitError, Fitting, Flow, FlowFile, LearnOptions, Live, Opening, Session, Settings,
    Surroundings, promote,
};
use stretto_oracle::{Key, Oracle, Response};
use stretto_trace::Event;
use stretto_trace::mcp::{EpisodeBuilder, read_logs};
use support::{data, sessions};

const LOGS: &str = "sessions/logs/shop";

fn options() -> LearnOptions {
    LearnOptions {
        draws: 0,
        ..LearnOptions::default()
    }
}

fn prepare(sessions: &[Session], surroundings: &Surroundings) -> Result<Fitting, FitError> {
    let sessions: Vec<&Session> = sessions.iter().collect();
    Fitting::prepare(
        &sessions,
        surroundings,
        &options(),
        "jev-latest",
        &mut |_, _, _| (),
    )
}

fn mocked(fitting: &Fitting) -> BTreeMap<Key, Response> {
    let requests = fitting.requests().into_iter();
    let answer = |(key, request)| {
        let answered = Oracle::Mock.answer_now(&request, &key).unwrap().unwrap();
        (key, answered.response)
    };
    requests.map(answer).collect()
}

#[test]
fn a_fitted_flow_reads_back_is_served_with_its_arbiter_and_can_give_it_away() {
    let (sessions, surroundings) = sessions(LOGS);
    let fitting = prepare(&sessions, &surroundings).unwrap();
    let decisions = fitting.decisions();
    assert!(decisions > 0);
    let answers = mocked(&fitting);
    let file = fitting.finish(&answers).unwrap();
    let file = FlowFile::parse(&file.to_text()).unwrap();
    assert_eq!(file.provenance.arbiter_cases, decisions as u64);
    assert!(file.provenance.habit_episodes < sessions.len() as u64);
    assert!(file.folds.iter().all(|fit| *fit == file.folds[0]));
    assert!(
        file.folds[0]
            .weights
            .iter()
            .any(|weight| weight.abs() > 1e-3)
    );
    let arbiter = file.arbiter().unwrap();
    assert_eq!(arbiter.model, "jev-latest");

    let mut other = FlowFile::parse(&file.to_text()).unwrap();
    other.folds.clear();
    other.set_arbiter(&arbiter);
    assert_eq!(other.folds, file.folds);
    assert_eq!(Flow::new(file).default_decider(), Decider::Arbiter);
}

/// The questions of a flow after each call of the recorded sessions, as they would be asked live.
fn asked_live(flow: &Arc<Flow>) -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    for log in read_logs(&data(LOGS)).unwrap() {
        let settings = Settings::new(Decider::Arbiter, &log.header.session);
        let mut builder = EpisodeBuilder::new(&log.header);
        let mut live = Live::new(Arc::clone(flow));
        for (entry, message) in log.messages() {
            let before = builder.events().len();
            builder.message(entry.t_ms, entry.from, message);
            live.follow(builder.events());
            let Some(Event::ToolResult { call_id, .. }) = builder.events().get(before) else {
                continue;
            };
            if let Ok(Opening::Open(open)) = live.open(call_id, &settings) {
                keys.insert(flow.question(&open, &builder.after_call(call_id)).key());
            }
        }
    }
    keys
}

#[test]
fn what_is_asked_to_fit_is_what_would_be_asked_live() {
    let (sessions, surroundings) = sessions(LOGS);
    let fitting = prepare(&sessions, &surroundings).unwrap();
    let asked: BTreeSet<Key> = fitting.requests().into_keys().collect();
    let answers = mocked(&fitting);
    let flow = Arc::new(Flow::new(fitting.finish(&answers).unwrap()));
    let live_keys = asked_live(&flow);
    let apart: Vec<&Key> = asked.difference(&live_keys).collect();
    assert_eq!(apart, [] as [&Key; 0], "of {}", asked.len());
}

#[test]
fn promotion_asks_what_was_asked_live_and_counts_what_has_no_answer() {
    let (sessions, surroundings) = sessions(LOGS);
    let fitting = prepare(&sessions, &surroundings).unwrap();
    let answers = mocked(&fitting);
    let flow = Arc::new(Flow::new(fitting.finish(&answers).unwrap()));
    let sessions: Vec<&Session> = sessions.iter().collect();
    // A threshold that every lookup passes, so that runs chain.
    let bar = Bar {
        threshold: 0.0,
        ..Bar::default()
    };
    let score = |per_call: usize, ask: &mut stretto_flow::Ask<'_>| {
        let settings = Settings::new(Decider::Arbiter, "");
        promote(
            &flow,
            &sessions,
            &settings,
            per_call,
            bar,
            &mut |_, _| (),
            ask,
        )
        .1
    };
    let mocked = |per_call: usize| {
        let mut asked = BTreeSet::new();
        let scored = score(per_call, &mut |request| {
            asked.insert(request.key());
            let answered = Oracle::Mock.answer_now(request, &request.key()).unwrap();
            Ok(answered.unwrap().response)
        });
        assert!(scored.used() > 0 && scored.unanswered == 0, "{scored:?}");
        asked
    };
    // A lookup reads like a call of the agent's own, so a run that goes on asks the same as a
    // session in which nothing was looked up.
    let asked = mocked(8);
    assert!(asked.is_subset(&asked_live(&flow)));
    assert!(mocked(1).len() < asked.len(), "no run went on");

    let unanswered = score(8, &mut |_| Err("no cached answer".to_owned()));
    assert_eq!(unanswered.lookups(), 0);
    assert!(unanswered.unanswered > 0);
}

#[test]
fn one_task_is_too_few_and_no_answer_fits_nothing() {
    let (sessions, surroundings) = sessions(LOGS);
    let error = prepare(&sessions[..1], &surroundings).unwrap_err();
    assert_eq!(error, FitError::TooFew(1));
    let fitting = prepare(&sessions, &surroundings).unwrap();
    let decisions = fitting.decisions();
    let error = fitting.finish(&BTreeMap::new()).unwrap_err();
    assert_eq!(error, FitError::NoAnswers(decisions));
}
