//! Writes that wait for the judge's answer.

use super::*;

/// A session in which the customer has agreed to a change that the guards let pass.
fn agreed(options: Options) -> Play {
    let mut play = Play::new(options);
    play.says("user", "I am c7@example.com, cancel #W7a");
    play.host(find(1));
    play.server(result(1, "user_7"));
    play.host(call(2, "get_order_details", json!({"order_id": "#W7a"})));
    play.server(result(
        2,
        &json!({"order_id": "#W7a", "user_id": "user_7", "status": "pending"}).to_string(),
    ));
    play.says("assistant", "Shall I cancel #W7a?");
    play.says("user", "yes please");
    play
}

fn held() -> Play {
    let mut play = agreed(judging());
    assert_eq!(play.host(write(4)), ["ask"]);
    play
}

fn write(id: u32) -> String {
    call(
        id,
        "cancel_pending_order",
        json!({"order_id": "#W7a", "reason": "no longer needed"}),
    )
}

#[test]
fn a_yes_lets_the_held_call_go_on_as_it_came() {
    let mut play = held();
    play.later(650);
    assert_eq!(play.answers(Ok(0.92)), [to_server(&write(4))]);
    let (log, line) = play.notes.last().unwrap();
    assert_eq!(*log, SideLog::Confirm);
    assert_eq!(
        (&line["p_yes"], &line["fails"], &line["ms"]),
        (&json!(0.92), &json!(false), &json!(650))
    );
}

#[test]
fn a_no_refuses_it() {
    let mut play = held();
    let told = play.answers(Ok(0.15));
    assert_eq!(
        answer_text(&told),
        "Refused by the policy check, so cancel_pending_order was not run and nothing changed: the customer has \
         not explicitly agreed to this exact change (confirmation judge: p_yes 0.15); describe the change and ask \
         the customer to confirm it first."
    );
}

#[test]
fn no_answer_refuses_nothing() {
    let mut play = held();
    assert_eq!(
        play.answers(Err("the service is down")),
        [to_server(&write(4))]
    );
    assert!(play.said.last().unwrap().contains("the service is down"));
    assert_eq!(play.notes.last().unwrap().1["unknown"], true);
}

#[test]
fn everything_else_moves_while_a_call_is_held() {
    let mut play = held();
    assert_eq!(
        play.host(request(5, "ping")),
        [to_server(&request(5, "ping"))]
    );
    assert_eq!(play.server(result(5, "x")), [to_host(&result(5, "x"))]);
    let read = call(6, "get_order_details", json!({"order_id": "#W7b"}));
    assert_eq!(
        play.host(&read),
        [to_server(&read)],
        "a later call overtakes a held one"
    );
}

#[test]
fn two_held_calls_are_asked_about_one_after_the_other() {
    let mut play = held();
    assert_eq!(
        play.host(write(5)),
        [""; 0],
        "its question waits for the first one's answer"
    );
    assert_eq!(play.answers(Ok(0.9)), [to_server(&write(4)), "ask".into()]);
    assert_eq!(play.answers(Ok(0.9)), [to_server(&write(5))]);
}

#[test]
fn a_cancelled_call_is_dropped_unsent_and_unanswered() {
    let mut play = held();
    assert_eq!(play.host(cancel(4)), [""; 0]);
    assert!(!play.session.is_waiting(), "its answer is not waited for");
    assert_eq!(play.answers(Ok(0.9)), [""; 0], "the answer comes too late");
    assert_eq!(play.host_closes(), ["close server"]);
}

#[test]
fn a_cancelled_call_makes_way_for_the_next_one() {
    let mut play = held();
    play.host(write(5));
    assert_eq!(play.host(cancel(4)), ["ask"]);
    // The first answer is about the call that is gone.
    assert_eq!(play.answers(Ok(0.1)), [""; 0]);
    assert_eq!(play.answers(Ok(0.9)), [to_server(&write(5))]);
}

#[test]
fn an_answer_to_another_question_refuses_nothing_and_is_said() {
    let mut play = held();
    let other = r#"{"model": "m", "answers": {"proposed": {"type": "noul", "noul": 0.01}}}"#;
    assert_eq!(
        play.is_told(Ok(Response::parse(other.as_bytes()).unwrap())),
        [to_server(&write(4))]
    );
    assert!(play.said.last().unwrap().contains("no yes-or-no answer"));
}

#[test]
fn that_the_questions_are_used_up_is_said_once() {
    let judge = Judge {
        is_enforced: true,
        ..Judge::new("jev-latest")
    };
    let mut play = agreed(Options {
        judging: Some(Judging::new(judge, 0)),
        ..judging()
    });
    for id in [4, 5] {
        assert_eq!(play.host(write(id)), [to_server(&write(id))]);
    }
    assert_eq!(
        play.said,
        [
            "the judge asks nothing more, and refuses nothing more: the session's questions \
             are used up; --confirm-questions allows more"
        ]
    );
}

#[test]
fn the_server_s_input_stays_open_until_the_held_call_was_sent() {
    let mut play = held();
    assert_eq!(play.host_closes(), [""; 0]);
    assert_eq!(
        play.answers(Ok(0.9)),
        [to_server(&write(4)), "close server".into()]
    );
}

#[test]
fn the_server_s_input_closes_after_a_refusal_too() {
    let mut play = held();
    play.host_closes();
    assert_eq!(play.answers(Ok(0.1)).last().unwrap(), "close server");
}

#[test]
fn a_server_that_goes_takes_the_held_call_with_it() {
    let mut play = held();
    assert_eq!(play.server_closes(), [""; 0]);
    assert!(!play.session.is_waiting());
    assert_eq!(play.answers(Ok(0.9)), [""; 0]);
}

/// A commit whose call waits for the judge.
fn held_commit() -> Play {
    let mut play = Play::new(Options {
        commit: true,
        ..judging()
    });
    play.says("user", "I am c7@example.com");
    play.host(find(1));
    play.server(result(1, "user_7"));
    play.host(call(2, "get_order_details", json!({"order_id": "#W7a"})));
    play.server(result(
        2,
        &json!({"order_id": "#W7a", "user_id": "user_7", "status": "pending"}).to_string(),
    ));
    let write = json!({"name": "cancel_pending_order", "arguments": {"order_id": "#W7a", "reason": "no longer needed"}});
    assert_eq!(
        play.host(call(3, "stretto_commit", json!({"calls": [write]}))),
        ["ask"]
    );
    play
}

#[test]
fn a_commit_that_is_cancelled_makes_no_call_and_has_no_answer() {
    let mut play = held_commit();
    assert_eq!(play.host(cancel(3)), [""; 0]);
    assert!(!play.session.is_waiting());
    assert_eq!(play.answers(Ok(0.9)), [""; 0], "the answer comes too late");
    assert_eq!(play.host_closes(), ["close server"]);
}

#[test]
fn a_server_that_goes_leaves_the_commit_answered() {
    let mut play = held_commit();
    let text = answer_text(&play.server_closes());
    assert!(text.ends_with(" got no answer from the server"), "{text}");
    assert_eq!(play.answers(Ok(0.9)), [""; 0]);
}

#[test]
fn a_commit_s_call_waits_for_the_judge_and_counts_as_held() {
    let mut play = held_commit();
    assert_eq!(play.host_closes(), [""; 0]);
    let told = play.answers(Ok(0.9));
    assert!(told[0].starts_with("server (own) "), "{told:?}");
    assert_eq!(told[1], "close server");
    assert!(answer_text(&play.server(result("stretto-1", "done"))).ends_with(":\ndone"));
}
