use super::*;
use crate::file::Favors;

const FLOW: &str =
    include_str!("../../tests/data/flows/retail-5-sessions-shipped-arbiter.flow.json");

fn user(text: &str) -> Event {
    Event::User {
        text: text.to_owned(),
    }
}

fn agent(text: &str) -> Event {
    Event::Assistant {
        text: Some(text.to_owned()),
        calls: Vec::new(),
        usage: None,
    }
}

fn turn(ids: &[usize]) -> Event {
    let call = |id: &usize| ToolCall {
        id: id.to_string(),
        name: format!("tool_{id}"),
        arguments: json!({"n": id}),
    };
    Event::Assistant {
        text: None,
        calls: ids.iter().map(call).collect(),
        usage: None,
    }
}

fn result(id: usize, error: bool, content: &str) -> Event {
    Event::ToolResult {
        call_id: id.to_string(),
        name: format!("tool_{id}"),
        error,
        content: content.to_owned(),
    }
}

#[test]
fn a_session_that_has_hardly_begun_shows_what_there_is() {
    assert_eq!(
        state([turn(&[1]), result(1, false, " found\n")].iter()),
        json!({
            "customer_request": null,
            "latest_results": [{"tool_call": "tool_1", "arguments": {"n": 1}, "result": "found"}],
        })
    );
}

#[test]
fn words_are_the_first_the_last_four_and_the_agents_last_that_are_not_blank() {
    let events = [
        user("hello"),
        agent("Yes?"),
        user("a"),
        user("b"),
        agent("So?"),
        agent("  "),
        user("c"),
        user("d"),
        user("e"),
        turn(&[1]),
        result(1, true, "no"),
    ];
    assert_eq!(
        state(events.iter()),
        json!({
            "customer_request": "hello",
            "later_customer_messages": ["b", "c", "d", "e"],
            "agent_last_message": "So?",
            "latest_results": [
                {"tool_call": "tool_1", "arguments": {"n": 1}, "result": "no", "error": true}
            ],
        })
    );
}

#[test]
fn four_calls_are_shown_in_full_and_sixteen_before_them_in_short() {
    let mut events = Vec::new();
    for id in 0..22 {
        events.push(turn(&[id]));
        // The one before the last never returned.
        if id != 20 {
            events.push(result(id, id == 3, "r"));
        }
    }
    let state = state(events.iter());
    let earlier = state["earlier_lookups"].as_array().unwrap();
    assert_eq!(earlier.len(), 16);
    assert_eq!(earlier[0], r#"tool_2({"n":2}) → ok"#);
    assert_eq!(earlier[1], r#"tool_3({"n":3}) → error"#);
    let latest = state["latest_results"].as_array().unwrap();
    assert_eq!(latest.len(), 4);
    assert_eq!(
        latest[2],
        json!({"tool_call": "tool_20", "arguments": {"n": 20}, "result": NO_RESULT, "error": true})
    );
}

#[test]
fn texts_are_trimmed_and_cut_with_a_mark() {
    let long = format!(" {} ", "é".repeat(2000));
    let events = [
        user(&long),
        user(&long),
        agent(&long),
        turn(&[1]),
        result(1, false, &long),
    ];
    let state = state(events.iter());
    let cut = |length: usize| Value::from(format!("{}…", "é".repeat(length)));
    assert_eq!(state["customer_request"], cut(1000));
    assert_eq!(state["later_customer_messages"][0], cut(600));
    assert_eq!(state["agent_last_message"], cut(600));
    assert_eq!(state["latest_results"][0]["result"], cut(1500));
    assert_eq!(super::cut(" exact ", 5), "exact");
}

/// The questions after `get_order_details`.
fn questions(flow: &Flow, failed: bool, lookups: &[&str]) -> BTreeMap<String, Question> {
    let lookups: Vec<String> = lookups.iter().map(|lookup| (*lookup).to_owned()).collect();
    flow.questions("get_order_details", failed, &lookups)
}

#[test]
fn the_questions_name_the_call_and_offer_its_lookups_with_what_they_do() {
    let flow = Flow::parse(FLOW).unwrap();
    let questions = questions(&flow, false, &["get_item_details", "no_docs"]);
    let ids: Vec<&str> = questions.keys().map(String::as_str).collect();
    let expected = [
        "go_on",
        "next",
        "pred_list_pending",
        "pred_must_ask",
        "pred_needs_options",
        "tool",
    ];
    assert_eq!(ids, expected);
    let Question::Choice {
        instructions,
        criteria,
    } = &questions["next"]
    else {
        panic!("{questions:?}");
    };
    assert!(instructions.starts_with("The state shows a conversation"));
    assert!(instructions.contains(
        " The call just made, `get_order_details`, succeeded; its result is the newest one. Name the"
    ));
    assert_eq!(criteria["no_docs"], "The read `no_docs`.");
    assert!(
        criteria["get_item_details"].starts_with("Get the "),
        "{criteria:?}"
    );
    assert_eq!(criteria.len(), 3);
    assert!(criteria.values().all(|means| means.chars().count() <= 255));
    let Question::Noul {
        instructions,
        criteria: Some(meanings),
    } = &questions["pred_must_ask"]
    else {
        panic!("{questions:?}");
    };
    let must_ask = &flow.file().predicates[2];
    assert_eq!(must_ask.favors, Favors::HandBack);
    assert_eq!(*instructions, format!("{CONTEXT} {}", must_ask.question));
    assert_eq!((&meanings.yes, &meanings.no), (&must_ask.yes, &must_ask.no));
}

#[test]
fn a_call_that_failed_is_said_to_have() {
    let flow = Flow::parse(FLOW).unwrap();
    let questions = questions(&flow, true, &["get_item_details"]);
    let Question::Noul { instructions, .. } = &questions["go_on"] else {
        panic!("{questions:?}");
    };
    assert!(instructions.contains(" The call just made, `get_order_details`, failed. Is the very"));
    assert!(!questions.contains_key("tool"));
}
