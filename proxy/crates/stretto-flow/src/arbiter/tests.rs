use std::sync::Arc;

use serde_json::{Value, json};
use stretto_oracle::{Answer, Oracle, Request, Usage};
use stretto_trace::mcp::{EpisodeBuilder, Header, Who};

use super::*;
use crate::{Decider, Live, Opening, Settings, Verdict};

const FLOW: &str =
    include_str!("../../tests/data/flows/retail-5-sessions-shipped-arbiter.flow.json");

fn flow() -> Arc<Flow> {
    Arc::new(Flow::parse(FLOW).unwrap())
}

/// The calls of the written numbers, and what they return.
const CALLS: [(&str, &str); 3] = [
    ("find_user_id_by_email", "user_7"),
    (
        "get_user_details",
        r##"{"user_id":"user_7","orders":["#W7a","#W7b"]}"##,
    ),
    (
        "get_order_details",
        r##"{"order_id":"#W7a","status":"pending"}"##,
    ),
];

/// The open decision after the first `count` calls, and its question.
fn opened(flow: &Arc<Flow>, count: usize) -> (Open, Request) {
    let mut builder = EpisodeBuilder::new(&Header::new("s", 0, Vec::new()));
    for (id, (name, text)) in CALLS.iter().take(count).enumerate() {
        let at = 1000 * id as u64;
        let call =
            json!({"id": id, "method": "tools/call", "params": {"name": name, "arguments": {}}});
        let result = json!({"id": id, "result": {"content": [{"type": "text", "text": text}]}});
        builder.message(at, Who::Client, &call);
        builder.message(at, Who::Server, &result);
    }
    let mut live = Live::new(Arc::clone(flow));
    live.follow(builder.events());
    let after = (count - 1).to_string();
    let settings = Settings::new(Decider::Arbiter, "t");
    let Opening::Open(open) = live.open(&after, &settings).unwrap() else {
        panic!("the decision is not open");
    };
    let request = flow.question(&open, &builder.after_call(&after));
    (open, request)
}

fn mock(request: &Request) -> Response {
    Oracle::Mock
        .answer_now(request, &request.key())
        .unwrap()
        .unwrap()
        .response
}

fn settled(flow: &Arc<Flow>, count: usize, answer: impl FnOnce(&Request) -> Response) -> Decision {
    let (open, request) = opened(flow, count);
    flow.settle(open, &request.key(), "t", Ok(&answer(&request)))
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 5e-7, "{found} is not {expected}");
}

#[test]
fn the_priors_are_the_written_ones() {
    let flow = flow();
    let priors = |count| {
        let (open, _) = opened(&flow, count);
        let lookups = open.lookups.iter().cloned().zip(open.habit.iter().copied());
        (lookups.collect::<BTreeMap<_, _>>(), open.habit_respond)
    };
    let (lookups, respond) = priors(1);
    near(lookups["get_user_details"], 0.252_666);
    near(respond, 0.747_334);
    let (lookups, respond) = priors(2);
    near(lookups["get_order_details"], 0.560_370);
    near(respond, 0.439_630);
    let (lookups, respond) = priors(3);
    near(lookups["get_order_details"], 0.640_093);
    near(lookups["get_product_details"], 0.095_271);
    near(respond, 0.264_635);
}

#[test]
fn reliability_and_coverage_are_the_written_ones() {
    let file = flow();
    let rates = &file.file().folds[0].rates;
    for (site, expected) in [
        ("find_user_id_by_email", (0.739_092, 0.998_991)),
        ("get_user_details", (0.740_321, 0.999_853)),
        ("get_order_details", (0.712_235, 0.999_944)),
        // A site that was never seen is as all of them together.
        ("nowhere", (0.751_828, 0.990_915)),
    ] {
        let (reliability, coverage) = rates.at(site);
        near(reliability, expected.0);
        near(coverage, expected.1);
    }
}

#[test]
fn with_the_mock_the_probabilities_are_the_written_ones() {
    let flow = flow();
    let first = settled(&flow, 1, mock);
    near(first.probs["get_user_details"], 0.469_078);
    near(first.probs["respond"], 0.529_913);
    near(first.binding.unwrap(), 0.75);
    let second = settled(&flow, 2, mock);
    near(second.probs["get_order_details"], 0.559_884);
    near(second.probs["respond"], 0.439_969);
    let third = settled(&flow, 3, mock);
    near(third.probs["get_order_details"], 0.486_446);
    near(third.probs["get_product_details"], 0.156_391);
    near(third.probs["respond"], 0.357_107);
    // 0.469078 · 3/4 reaches the threshold.
    let expected = json!({"user_id": "user_7"}).as_object().cloned().unwrap();
    let Verdict::LookUp { tool, arguments } = first.verdict else {
        panic!("{:?}", first.verdict);
    };
    assert_eq!((tool.as_str(), arguments), ("get_user_details", expected));
}

/// The answers that another model might give after an order.
fn others(_: &Request) -> Response {
    let choice = |choice: &str, probabilities: Value| Answer::Choice {
        choice: choice.to_owned(),
        probabilities: serde_json::from_value(probabilities).unwrap(),
        confidence: 0.7,
    };
    let next = json!({"get_order_details": 0.1, "get_product_details": 0.2, "respond": 0.7});
    let tool = json!({"get_order_details": 0.25, "get_product_details": 0.75});
    let answers = [
        ("next", choice("respond", next)),
        ("go_on", Answer::Noul { noul: 0.3 }),
        ("tool", choice("get_product_details", tool)),
        ("pred_list_pending", Answer::Noul { noul: 0.2 }),
        ("pred_needs_options", Answer::Noul { noul: 0.35 }),
        ("pred_must_ask", Answer::Noul { noul: 0.9 }),
    ];
    Response {
        model: "m".to_owned(),
        answers: answers
            .into_iter()
            .map(|(id, answer)| (id.to_owned(), answer))
            .collect(),
        usage: Usage::default(),
    }
}

#[test]
fn with_other_answers_the_probabilities_are_the_written_ones() {
    let decision = settled(&flow(), 3, others);
    near(decision.probs["get_order_details"], 0.026_539);
    near(decision.probs["get_product_details"], 0.094_688);
    near(decision.probs["respond"], 0.878_718);
    near(decision.heard.oracle["respond"], 0.7);
    let ids: Vec<&str> = decision
        .heard
        .predicates
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(ids, ["list_pending", "must_ask", "needs_options"]);
    near(decision.heard.predicates["must_ask"], 0.9);
}

#[test]
fn a_choice_that_is_no_option_counts_as_handing_back() {
    let with_choice = |wanted: &str| {
        settled(&flow(), 3, |request| {
            let mut response = others(request);
            if let Some(Answer::Choice { choice, .. }) = response.answers.get_mut("next") {
                wanted.clone_into(choice);
            }
            response
        })
    };
    assert_eq!(with_choice("transfer").probs, with_choice("respond").probs);
    assert_ne!(
        with_choice("get_order_details").probs,
        with_choice("respond").probs
    );
}

#[test]
fn an_answer_that_lacks_one_of_the_three_is_incomplete_and_a_predicate_may_lack() {
    for id in ["next", "go_on", "tool"] {
        let decision = settled(&flow(), 3, |request| {
            let mut response = others(request);
            response.answers.insert(
                id.to_owned(),
                Answer::Score {
                    score: 0.0,
                    probabilities: [].into(),
                    confidence: 1.0,
                    legend: Value::Null,
                },
            );
            response
        });
        let reason = "the System-One answer was incomplete".to_owned();
        assert_eq!(decision.verdict, Verdict::HandBack { reason }, "{id}");
        assert!(decision.probs.is_empty() && decision.heard.key.is_some());
    }
    let without = settled(&flow(), 3, |request| {
        let mut response = others(request);
        response.answers.remove("pred_must_ask");
        response
    });
    assert!(without.probs["respond"] < 0.878_7);
    assert!(!without.heard.predicates.contains_key("must_ask"));
}

#[test]
fn a_site_with_one_lookup_is_not_asked_which_it_would_be() {
    let (_, request) = opened(&flow(), 1);
    let ids: Vec<&str> = request.questions.keys().map(String::as_str).collect();
    let expected = [
        "go_on",
        "next",
        "pred_list_pending",
        "pred_must_ask",
        "pred_needs_options",
    ];
    assert_eq!(ids, expected);
}

#[test]
fn a_model_that_failed_is_told_with_the_key() {
    let flow = flow();
    let (open, request) = opened(&flow, 1);
    let decision = flow.settle(open, &request.key(), "t", Err("no cached answer"));
    let reason = "the System-One model failed: no cached answer".to_owned();
    assert_eq!(decision.verdict, Verdict::HandBack { reason });
    assert_eq!(decision.site.unwrap(), "find_user_id_by_email");
    assert_eq!(decision.heard.key, Some(request.key().to_string()));
}
