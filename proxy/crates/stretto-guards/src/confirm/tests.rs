use std::time::Duration;

use serde_json::{Value, json};
use stretto_oracle::{Answer, Budget, Oracle, Request, Response, Usage};
use stretto_trace::ToolCall;

use super::*;
use crate::refusal_text;

/// Requests with their keys, four of which are this judge's.
const VECTORS: &str = include_str!("../../../stretto-oracle/tests/data/key-vectors.json");

fn cancel(order: &str, reason: &str) -> ToolCall {
    ToolCall {
        id: "7".to_owned(),
        name: "cancel_pending_order".to_owned(),
        arguments: json!({"order_id": order, "reason": reason}),
    }
}

fn exchange(proposal: &str, reply: &str) -> Exchange {
    let mut exchange = Exchange::default();
    exchange.agent_said(proposal);
    exchange.user_said(reply);
    exchange
}

fn judge() -> Judge {
    Judge::new("jev-latest")
}

fn with_second() -> Judge {
    Judge {
        second: Some(Second::Proposed),
        ..judge()
    }
}

fn enforcing(judge: Judge) -> Judge {
    Judge {
        is_enforced: true,
        ..judge
    }
}

/// What comes back for a question.
#[derive(Clone, Copy)]
enum Back {
    Noul(f64),
    OtherType,
    OtherId,
    Error(&'static str),
}
use Back::{Error, Noul, OtherId, OtherType};

fn answer(request: &Request, back: Back) -> Result<Response, String> {
    let id = request.questions.keys().next().unwrap().clone();
    let answers = match back {
        Error(error) => return Err(error.to_owned()),
        Noul(noul) => (id, Answer::Noul { noul }),
        OtherId => ("else".to_owned(), Answer::Noul { noul: 0.9 }),
        OtherType => {
            let choice = Answer::Choice {
                choice: "yes".to_owned(),
                probabilities: [].into(),
                confidence: 1.0,
            };
            (id, choice)
        }
    };
    Ok(Response {
        model: "m".to_owned(),
        answers: [answers].into(),
        usage: Usage::default(),
    })
}

const SPENT: &str = "the session's questions are used up; --confirm-questions allows more";

/// Judges a call with a budget, the answers coming in this order.
fn judged(judge: &Judge, questions: u64, back: &[Back]) -> Judged {
    let exchange = exchange("Shall I cancel #W7a?", "Yes.");
    let listings = Listings::default();
    let call = cancel("#W7a", "no longer needed");
    let mut judgment = judge.judge(&exchange, &listings, &call, true);
    let mut budget = Budget::new(questions);
    let mut back = back.iter();
    while let Some(request) = judgment.next(&mut budget) {
        let back = *back.next().expect("no other question");
        let is_answered = matches!(back, Noul(_));
        let told = judgment.answered(answer(&request, back));
        assert_eq!(told.is_none(), is_answered, "whatever is no answer is told");
    }
    assert_eq!(back.len(), 0, "a question was not asked");
    judgment.finish(Duration::from_millis(7))
}

/// The line of the log, without what is the same in all of them.
fn line(judge: &Judge, questions: u64, back: &[Back]) -> Value {
    let entry = judged(judge, questions, back).entry;
    let mut line = serde_json::to_value(entry).unwrap();
    let members = line.as_object_mut().unwrap();
    let (first, second) = judge.requests(
        &exchange("Shall I cancel #W7a?", "Yes."),
        &cancel("#W7a", "no longer needed"),
    );
    assert_eq!(members.remove("key").unwrap(), json!(first.key()));
    if let Some(Value::String(error)) = members.get_mut("error") {
        *error = error.replace(&first.key().to_string(), "KEY");
    }
    if let Some(key) = members.get_mut("second_key") {
        assert_eq!(*key, json!(second.unwrap().key()));
        *key = json!("second");
    }
    for (member, value) in [
        (
            "arguments",
            json!({"order_id": "#W7a", "reason": "no longer needed"}),
        ),
        ("ms", json!(7)),
        ("proposal_check", json!([])),
        ("tool", json!("cancel_pending_order")),
        ("word_list", json!(true)),
        ("enforced", json!(judge.is_enforced)),
    ] {
        assert_eq!(members.remove(member), Some(value), "{member}");
    }
    line
}

#[test]
fn the_written_requests_are_the_ones_that_are_asked() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let key = |name: &str| {
        let mut vectors = vectors["vectors"].as_array().unwrap().iter();
        let vector = vectors.find(|vector| vector["name"].as_str().unwrap().starts_with(name));
        vector.unwrap()["key"].clone()
    };
    let about = exchange(
        "I can cancel order #W7a because you no longer need it. Shall I go ahead?",
        "Yes, please go ahead.",
    );
    let call = cancel("#W7a", "no longer needed");
    for (second, name) in [
        (Second::Proposed, "the second question, proposed"),
        (Second::Described, "the second question, described"),
    ] {
        let judge = Judge {
            second: Some(second),
            ..judge()
        };
        let (first, asked) = judge.requests(&about, &call);
        assert_eq!(json!(first.key()), key("the first confirmation question"));
        assert_eq!(json!(asked.unwrap().key()), key(name));
    }
    let about = exchange(
        "Order #W61a is pending. Shall I cancel it, as ordered by mistake?",
        "Yes, cancel it.",
    );
    let (first, second) = judge().requests(&about, &cancel("#W61a", "ordered by mistake"));
    assert_eq!(json!(first.key()), key("the fixture session's write"));
    assert_eq!(second, None);
}

#[test]
fn each_answer_of_one_question_has_its_line() {
    let low = json!({"fails": true, "unknown": false, "p_yes": 0.49});
    let high = json!({"fails": false, "unknown": false, "p_yes": 0.5});
    let without = |error: &str| json!({"fails": false, "unknown": true, "error": error});
    let no_answer = without(
        "the question `confirmed` got no yes-or-no answer; delete the cached answer KEY to ask again",
    );
    let spent = json!({"fails": false, "unknown": true, "skipped": SPENT});
    for judge in [judge(), enforcing(judge())] {
        assert_eq!(line(&judge, 1, &[Noul(0.49)]), low);
        assert_eq!(line(&judge, 1, &[Noul(0.5)]), high);
        assert_eq!(line(&judge, 1, &[OtherType]), no_answer);
        assert_eq!(line(&judge, 1, &[OtherId]), no_answer);
        assert_eq!(line(&judge, 1, &[Error("no key")]), without("no key"));
        assert_eq!(line(&judge, 0, &[]), spent);
    }
}

#[test]
fn each_pair_of_answers_has_its_line() {
    let p = |first: f64, second: f64, fails: bool| {
        json!({"fails": fails, "unknown": false, "p_yes": first, "p_second": second,
               "second_key": "second"})
    };
    for judge in [with_second(), enforcing(with_second())] {
        assert_eq!(line(&judge, 2, &[Noul(0.9), Noul(0.8)]), p(0.9, 0.8, false));
        assert_eq!(line(&judge, 2, &[Noul(0.9), Noul(0.1)]), p(0.9, 0.1, true));
        assert_eq!(line(&judge, 2, &[Noul(0.1), Noul(0.8)]), p(0.1, 0.8, true));
        // One that fails is enough to know.
        assert_eq!(
            line(&judge, 2, &[Noul(0.2), Error("the model answered 503")]),
            json!({"fails": true, "unknown": false, "p_yes": 0.2, "second_key": "second",
                   "error": "the model answered 503"})
        );
        assert_eq!(
            line(&judge, 2, &[Error("gone"), Noul(0.9)]),
            json!({"fails": false, "unknown": true, "p_second": 0.9, "second_key": "second",
                   "error": "gone"})
        );
        // Of two errors the last is told.
        assert_eq!(
            line(&judge, 2, &[Error("gone"), Error("gone again")])["error"],
            "gone again"
        );
        // The budget ends between the questions, or before both.
        assert_eq!(
            line(&judge, 1, &[Noul(0.92)]),
            json!({"fails": false, "unknown": true, "p_yes": 0.92, "second_key": "second",
                   "skipped": SPENT})
        );
        assert_eq!(
            line(&judge, 0, &[]),
            json!({"fails": false, "unknown": true,
                   "skipped": SPENT})
        );
    }
}

#[test]
fn a_second_answer_in_shadow_is_logged_and_counts_for_nothing() {
    let judge = enforcing(Judge {
        second_is_shadow: true,
        ..with_second()
    });
    let shadow = line(&judge, 2, &[Noul(0.92), Noul(0.1)]);
    assert_eq!(
        shadow,
        json!({"fails": false, "unknown": false, "p_yes": 0.92, "p_second": 0.1,
               "second_key": "second", "second_shadow": true})
    );
    assert_eq!(judged(&judge, 2, &[Noul(0.92), Noul(0.1)]).refusal, None);
    assert_eq!(
        line(&judge, 2, &[Noul(0.92), Error("gone")])["unknown"],
        false
    );
    assert_eq!(line(&judge, 1, &[Noul(0.92)])["unknown"], false);

    let refusal = judged(&judge, 2, &[Noul(0.2), Noul(0.1)]).refusal.unwrap();
    assert!(refusal.contains("judge: p_yes 0.20)"), "{refusal}");
}

#[test]
fn only_what_fails_and_is_enforced_is_refused_and_the_reason_names_what_failed() {
    let fields = |judge: &Judge, back: &[Back]| {
        let refusal = judged(judge, 2, back).refusal?;
        let (_, fields) = refusal.split_once("(confirmation judge: ").unwrap();
        Some(fields.split_once(')').unwrap().0.to_owned())
    };
    assert_eq!(fields(&judge(), &[Noul(0.0)]), None);
    let enforced = enforcing(with_second());
    assert_eq!(fields(&enforced, &[Noul(0.9), Noul(0.9)]), None);
    assert_eq!(
        fields(&enforced, &[Noul(0.15), Noul(0.2)]).unwrap(),
        "p_yes 0.15, p_second 0.20"
    );
    assert_eq!(
        fields(&enforced, &[Noul(0.9), Noul(0.1)]).unwrap(),
        "p_second 0.10"
    );
    assert_eq!(fields(&enforced, &[Error("gone"), Noul(0.9)]), None);

    let refusal = judged(&enforcing(judge()), 1, &[Noul(0.15)])
        .refusal
        .unwrap();
    assert_eq!(
        refusal_text("cancel_pending_order", &refusal),
        "Refused by the policy check, so cancel_pending_order was not run and nothing changed: \
         the customer has not explicitly agreed to this exact change (confirmation judge: p_yes \
         0.15); describe the change and ask the customer to confirm it first."
    );
}

#[test]
fn the_threshold_is_the_least_that_passes() {
    let at = |threshold: f64| {
        let judge = Judge {
            threshold,
            ..judge()
        };
        let mut judgment = judge.judge(
            &Exchange::default(),
            &Listings::default(),
            &cancel("#W1", "x"),
            false,
        );
        let request = judgment.next(&mut Budget::new(1)).unwrap();
        let mock = Oracle::Mock
            .answer_now(&request, &request.key())
            .unwrap()
            .unwrap();
        judgment.answered(Ok(mock.response));
        judgment.finish(Duration::ZERO).entry.fails
    };
    assert!(!at(0.5));
    assert!(at(0.51));
    assert!(!at(0.0));
}

#[test]
fn a_log_line_has_the_members_of_a_recorded_one_in_the_order_of_their_names() {
    // Recorded by another implementation, whose question has another key.
    let recorded = r##"{"arguments":{"order_id":"#W61a","reason":"ordered by mistake"},"enforced":false,"fails":false,"key":"69fc9e05804e05e8afd64314f43599aadbb64db289b486763ed9ee6e25f83db5","ms":0,"p_yes":0.5,"proposal_check":[],"tool":"cancel_pending_order","unknown":false,"word_list":true}"##;
    let about = exchange(
        "Order #W61a is pending. Shall I cancel it, as ordered by mistake?",
        "Yes, cancel it.",
    );
    let call = cancel("#W61a", "ordered by mistake");
    let mut judgment = judge().judge(&about, &Listings::default(), &call, true);
    let request = judgment.next(&mut Budget::new(1)).unwrap();
    judgment.answered(answer(&request, Noul(0.5)));
    let mut entry = judgment.finish(Duration::ZERO).entry;
    let key = "69fc9e05804e05e8afd64314f43599aadbb64db289b486763ed9ee6e25f83db5";
    entry.key = key.parse().unwrap();
    assert_eq!(serde_json::to_string(&entry).unwrap(), recorded);
}

#[test]
fn members_of_a_line_are_sorted_when_all_are_there() {
    let judge = enforcing(Judge {
        second_is_shadow: true,
        ..with_second()
    });
    let entry = Entry {
        error: Some("e".to_owned()),
        skipped: Some("s".to_owned()),
        ..judged(&judge, 2, &[Noul(0.1), Noul(0.2)]).entry
    };
    let text = serde_json::to_string(&entry).unwrap();
    let sorted: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(text, sorted.to_string());
    assert_eq!(sorted.as_object().unwrap().len(), 15);
}

#[test]
fn the_proposal_check_stands_beside_the_answer_and_refuses_nothing() {
    let mut listings = Listings::default();
    listings.returned(false, r##"{"orders": ["#W7a", "#W7b"]}"##);
    let about = exchange(
        "I can cancel order #W7a. Shall I?",
        "Yes, cancel #W7a, please.",
    );
    let call = cancel("#W7b", "no longer needed");
    let mut judgment = enforcing(judge()).judge(&about, &listings, &call, true);
    let request = judgment.next(&mut Budget::new(1)).unwrap();
    judgment.answered(answer(&request, Noul(0.71)));
    let judged = judgment.finish(Duration::ZERO);
    assert_eq!(judged.refusal, None);
    assert_eq!(
        serde_json::to_value(&judged.entry.proposal_check).unwrap(),
        json!([{"argument": "order_id", "value": "#w7b"}])
    );
}

#[test]
fn an_answer_that_nobody_waits_for_changes_nothing() {
    let about = exchange("Shall I?", "Yes.");
    let call = cancel("#W1", "x");
    let mut judgment = judge().judge(&about, &Listings::default(), &call, true);
    judgment.answered(Err("too early".to_owned()));
    assert!(judgment.next(&mut Budget::new(0)).is_none());
    judgment.answered(Err("never asked".to_owned()));
    assert_eq!(judgment.finish(Duration::ZERO).entry.error, None);
}
