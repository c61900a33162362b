//! Runs, step by step.

use fugue::program::Program;

use super::{Answer, Next, RunRecord, SiteValue};
use crate::file::FlowFile;
use crate::flow::Flow;

fn file() -> FlowFile {
    FlowFile::parse(include_str!("../../tests/data/flows/shop.flow.json")).unwrap()
}

fn with_program(text: &str) -> Flow {
    let program = Program::parse(text).unwrap();
    let text = FlowFile { program, ..file() }.to_text();
    Flow::parse(&text).unwrap()
}

fn site(next: &Next) -> (&str, Vec<&str>) {
    let Next::Decide(site) = next else {
        panic!("{next:?} is no decision")
    };
    (
        &site.address,
        site.offered.iter().map(String::as_str).collect(),
    )
}

fn record(next: Next) -> RunRecord {
    let Next::HandBack(Some(record)) = next else {
        panic!("{next:?} is no end with a record")
    };
    record
}

#[test]
fn a_run_asks_for_decisions_and_results_in_turn() {
    let flow = Flow::new(file());
    let (mut run, next) = flow.run("find_user_id_by_email", false, 8);
    assert_eq!(site(&next), ("decide#0", vec!["get_user_details"]));
    let next = run.resume(Answer::LookUp("get_user_details".to_owned()));
    let expected = Next::LookUp {
        address: "outcome#0".to_owned(),
        tool: "get_user_details".to_owned(),
    };
    assert_eq!(next, expected);
    // The lookup failed, and nothing ever followed that.
    let next = run.resume(Answer::Returned(false));
    assert_eq!(site(&next), ("decide#1", vec![]));
    let record = record(run.resume(Answer::HandBack));
    let values: Vec<SiteValue> = record.sites.iter().map(|site| site.value).collect();
    assert_eq!(
        values,
        [
            SiteValue::Decided(3),
            SiteValue::Succeeded(false),
            SiteValue::Decided(0)
        ]
    );
    assert!(
        (record.surprise - 8.0_f64.ln()).abs() < 1e-12,
        "{}",
        record.surprise
    );
    assert!(flow.score(&record).unwrap().agrees());
    assert_eq!(run.resume(Answer::HandBack), Next::HandBack(None));
}

#[test]
fn a_run_ends_with_its_last_lookup() {
    let flow = Flow::new(file());
    let (mut run, mut next) = flow.run("get_user_details", false, 12);
    for _ in 0..12 {
        assert!(matches!(next, Next::Decide(_)));
        run.resume(Answer::LookUp("get_order_details".to_owned()));
        next = run.resume(Answer::Returned(true));
    }
    let record = record(next);
    let addresses: Vec<&str> = record
        .sites
        .iter()
        .map(|site| site.address.as_str())
        .collect();
    assert_eq!(
        &addresses[..4],
        ["decide#0", "outcome#0", "decide#1", "outcome#1"]
    );
    assert_eq!(
        &addresses[20..],
        ["decide#10", "outcome#10", "decide#11", "outcome#11"]
    );
    assert!(flow.score(&record).unwrap().agrees());
}

#[test]
fn a_lookup_that_is_not_on_offer_hands_back() {
    let flow = Flow::new(file());
    let (mut run, _) = flow.run("find_user_id_by_email", false, 8);
    let record = record(run.resume(Answer::LookUp("get_order_details".to_owned())));
    assert_eq!(record.sites.len(), 1);
    assert_eq!(record.sites[0].value, SiteValue::Decided(0));
    assert_eq!(serde_json::to_string(&record.surprise).unwrap(), "-0.0");
}

#[test]
fn a_run_may_follow_a_tool_that_the_flow_does_not_know() {
    let flow = Flow::new(file());
    let (mut run, next) = flow.run("stranger", true, 8);
    assert_eq!(site(&next), ("decide#0", vec![]));
    let record = record(run.resume(Answer::HandBack));
    assert_eq!((record.call.as_str(), record.failed), ("stranger", true));
    assert!(flow.score(&record).unwrap().agrees());
}

#[test]
fn without_lookups_to_make_a_run_ends_at_once() {
    let (_, next) = Flow::new(file()).run("find_user_id_by_email", false, 0);
    assert_eq!(record(next).sites, []);
}

#[test]
fn another_program_asks_only_where_it_has_something_to_ask() {
    // An outcome of no decision, a site that cannot be built, and a factor.
    let flow = with_program(
        "let ok <- sample(addr!(\"first\"), Outcome(1));
         let d <- sample(addr!(\"odd\"), Decide(99, false));
         factor(0.5);
         let e <- sample(addr!(\"last\"), Decide(call, call_failed));
         pure(e)",
    );
    let (mut run, next) = flow.run("get_user_details", false, 8);
    assert_eq!(site(&next).0, "last");
    let record = record(run.resume(Answer::LookUp("get_order_details".to_owned())));
    let values: Vec<(&str, SiteValue)> = record
        .sites
        .iter()
        .map(|site| (site.address.as_str(), site.value))
        .collect();
    assert_eq!(
        values,
        [
            ("last", SiteValue::Decided(2)),
            ("odd", SiteValue::Decided(0)),
            ("first", SiteValue::Succeeded(false))
        ]
    );
}

#[test]
fn a_program_that_goes_on_for_ever_is_given_up() {
    let loops = "for i in 0..9000000000000000000 {
                     let ok <- sample(addr!(\"o\", i), Outcome(1));
                 }
                 pure(0)";
    let (_, next) = with_program(loops).run("get_user_details", false, 8);
    assert_eq!(next, Next::HandBack(None));
    for again in [
        "let ok <- sample(addr!(\"same\"), Outcome(1));",
        "factor(0.1);",
    ] {
        let text = format!("for i in 0..9000000000000000000 {{ {again} }} pure(0)");
        let (_, next) = with_program(&text).run("get_user_details", false, 8);
        assert_eq!(next, Next::HandBack(None));
    }
    let asks = "for i in 0..9000000000000000000 {
                    let d <- sample(addr!(\"d\", i), Decide(call, call_failed));
                }
                pure(0)";
    let (mut run, mut next) = with_program(asks).run("get_user_details", false, 8);
    let mut asked = 0;
    while let Next::Decide(_) = next {
        asked += 1;
        next = run.resume(Answer::HandBack);
    }
    assert_eq!(next, Next::HandBack(None));
    assert!(asked < 10_000, "{asked}");
}

#[test]
fn a_run_of_other_sites_cannot_be_scored() {
    let flow = Flow::new(file());
    let (mut run, _) = flow.run("find_user_id_by_email", false, 8);
    let record = record(run.resume(Answer::HandBack));
    let mut renamed = record.clone();
    renamed.sites[0].address = "decide#7".to_owned();
    let error = flow.score(&renamed).unwrap_err().to_string();
    assert!(
        error.starts_with("the run after find_user_id_by_email does not fit"),
        "{error}"
    );
    assert!(!error.contains('\n'));
    let mut longer = record.clone();
    longer.sites.push(super::TracedSite {
        address: "outcome#0".to_owned(),
        value: SiteValue::Succeeded(true),
        logp: 0.0,
    });
    assert!(
        flow.score(&longer)
            .unwrap_err()
            .to_string()
            .ends_with("outcome#0 is no site of it")
    );
}

#[test]
fn a_loop_that_asks_nothing_must_be_short() {
    let checked = |text: &str| crate::program::check(&Program::parse(text).unwrap());
    for text in [
        "for i in 0..9000000000000000000 { let x = 1; } pure(0)",
        "for i in 0..max_lookups { if call_failed { factor(0.0); } } pure(0)",
        "for i in 0..10 { for j in 0..10 { let x = 1; } } pure(0)",
    ] {
        let error = checked(text).unwrap_err();
        assert_eq!(
            error, "the loop over `i` may go round for ever, asking nothing",
            "{text}"
        );
    }
    for text in [
        crate::program::STANDARD_RUN,
        "let x = 1; for i in 0..10 { x = x + 1; } pure(x)",
        "for i in 0..max_lookups { for j in 0..2 { let x = 1; } factor(0.0); } pure(0)",
        "for i in 0..max_lookups { if call_failed { break; } factor(0.0); } pure(0)",
    ] {
        assert_eq!(checked(text), Ok(()), "{text}");
    }
}
