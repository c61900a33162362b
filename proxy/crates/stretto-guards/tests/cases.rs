//! The written cases of the rules and of the proposal check.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use stretto_guards::cases::{Case, CaseEvent, NextCall};
use stretto_guards::{Exchange, Facts, Flag, Listings};
use stretto_trace::ToolCall;

#[test]
fn the_rules_say_what_the_cases_expect() {
    let records = records();
    let cases: Vec<Case> = lines("guards/cases.jsonl");
    assert_eq!(cases.len(), 56);
    for case in cases {
        let differences = case.differences(&records).unwrap();
        assert_eq!(differences, [], "{}", case.name);
    }
}

#[test]
fn the_proposal_check_flags_what_the_cases_expect() {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ProposalCase {
        name: String,
        events: Vec<CaseEvent>,
        call: NextCall,
        proposal_check: Vec<ExpectedFlag>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ExpectedFlag {
        argument: String,
        value: String,
    }

    let records = records();
    let cases: Vec<ProposalCase> = lines("confirm/proposal-cases.jsonl");
    assert_eq!(cases.len(), 14);
    for case in cases {
        let mut facts = Facts::default();
        let mut listings = Listings::default();
        for event in &case.events {
            let event = event.to_event(&records).unwrap();
            facts.observe(&event);
            listings.observe(&event);
        }
        let NextCall { name, arguments } = case.call;
        let call = ToolCall {
            id: "next".to_owned(),
            name,
            arguments,
        };
        let exchange: &Exchange = facts.exchange();
        let expected = case.proposal_check.into_iter();
        let expected = expected.map(|ExpectedFlag { argument, value }| Flag { argument, value });
        let expected: Vec<Flag> = expected.collect();
        assert_eq!(listings.check(exchange, &call), expected, "{}", case.name);
    }
}

fn lines<T: for<'de> Deserialize<'de>>(name: &str) -> Vec<T> {
    let text = read(name);
    text.lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

fn records() -> Value {
    serde_json::from_str(&read("tau2/retail-mini.json")).expect("the records are JSON")
}

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    fs::read_to_string(&path).expect(name)
}
