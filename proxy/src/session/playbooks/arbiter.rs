//! The flow asks the model what comes next, and goes on with its answer.

use super::*;

/// A session whose flow has just asked the model what comes after call 1.
fn asking_with(limits: Limits) -> Play {
    let name = "retail-5-sessions-shipped-arbiter";
    let mut play = Play::new(serving_flow(name, limits, false, None));
    assert_eq!(play.host(find(1)), [to_server(&find(1))]);
    assert_eq!(play.server(result(1, "user_7")), ["ask"]);
    play
}

fn asking() -> Play {
    asking_with(LIMITS)
}

/// The model is sure of a lookup.
fn sure(lookup: &str) -> Response {
    let answers = json!({
        "next": {"type": "choice", "choice": lookup, "probabilities": {lookup: 0.9, "respond": 0.1}, "confidence": 0.9},
        "go_on": {"type": "noul", "noul": 0.95},
    });
    let text = json!({"model": "m", "answers": answers}).to_string();
    Response::parse(text.as_bytes()).unwrap()
}

fn first_lookup() -> String {
    own_call(1, "get_user_details", json!({"user_id": "user_7"}))
}

#[test]
fn what_the_model_is_sure_of_is_looked_up_and_the_next_question_follows_its_result() {
    let mut play = asking();
    play.later(650);
    assert_eq!(play.is_told(Ok(sure("get_user_details"))), [first_lookup()]);
    assert_eq!(play.flow_notes()[0]["ms"], 650);
    assert_eq!(play.server(result("stretto-1", &details())), ["ask"]);
}

#[test]
fn only_the_held_result_waits_for_the_model() {
    let mut play = asking();
    let ping = request(2, "ping");
    assert_eq!(play.host(&ping), [to_server(&ping)]);
    assert_eq!(play.server(result(2, "x")), [to_host(&result(2, "x"))]);
    let other = call(3, "get_order_details", json!({"order_id": "#W7a"}));
    assert_eq!(play.host(&other), [to_server(&other)]);
    let returned = result(3, "{}");
    assert_eq!(
        play.server(&returned),
        [to_host(&returned)],
        "no second run beside the first"
    );
}

#[test]
fn a_model_that_fails_leaves_the_result_as_it_is_and_that_is_said_and_logged() {
    let mut play = asking();
    let told = play.is_told(Err("the model answered 503".into()));
    assert_eq!(told, [to_host(&result(1, "user_7"))]);
    assert_eq!(
        play.said,
        [
            "the flow hands back after find_user_id_by_email: the System-One model failed: the model answered 503"
        ]
    );
    let decision = play.flow_notes()[0];
    assert_eq!(
        decision["reason"],
        "the System-One model failed: the model answered 503"
    );
    assert!(decision["key"].is_string());
}

#[test]
fn an_answer_by_halves_leaves_the_result_as_it_is_and_that_is_said_too() {
    let mut play = asking();
    let told = play.answers(Ok(0.9));
    assert_eq!(told, [to_host(&result(1, "user_7"))]);
    assert!(
        play.said[0].contains("the System-One answer was incomplete; delete the cached answer "),
        "{:?}",
        play.said
    );
    assert_eq!(
        play.flow_notes()[0]["reason"],
        "the System-One answer was incomplete"
    );
}

#[test]
fn a_host_that_closes_gets_its_result_at_once_and_a_late_answer_changes_nothing() {
    let mut play = asking();
    let expected = [to_host(&result(1, "user_7")), "close server".into()];
    assert_eq!(play.host_closes(), expected);
    assert!(!play.session.is_waiting(), "nothing is waited for any more");
    assert_eq!(play.is_told(Ok(sure("get_user_details"))), [""; 0]);
    assert!(play.flow_notes().is_empty());
}

#[test]
fn a_host_that_cancels_gets_nothing_more_and_the_next_call_may_be_followed() {
    let mut play = asking();
    assert_eq!(play.host(cancel(1)), [to_server(&cancel(1))]);
    assert!(!play.session.is_waiting());
    assert_eq!(play.host(find(2)), [to_server(&find(2))]);
    assert_eq!(play.server(result(2, "user_7")), ["ask"]);
    assert_eq!(
        play.is_told(Ok(sure("get_user_details"))),
        [""; 0],
        "the first question's answer is nobody's"
    );
    assert_eq!(play.is_told(Ok(sure("get_user_details"))), [first_lookup()]);
}

#[test]
fn a_server_that_ends_leaves_the_agent_what_came_back_so_far() {
    let mut play = asking();
    play.is_told(Ok(sure("get_user_details")));
    play.server(result("stretto-1", &details()));
    let text = own_answer(&play.server_closes())["result"]["content"][1]["text"].clone();
    assert!(text.as_str().unwrap().ends_with(&details()), "{text}");
    assert_eq!(play.is_told(Ok(sure("get_order_details"))), [""; 0]);
}

#[test]
fn questions_are_capped_for_a_session() {
    let mut play = asking_with(Limits {
        questions: 1,
        ..LIMITS
    });
    assert_eq!(play.is_told(Ok(sure("get_user_details"))), [first_lookup()]);
    let told = play.server(result("stretto-1", &details()));
    assert_eq!(own_answer(&told)["id"], 1, "its result goes out");
    assert_eq!(play.host(find(2)), [to_server(&find(2))]);
    let returned = result(2, "user_7");
    assert_eq!(play.server(&returned), [to_host(&returned)]);
}
