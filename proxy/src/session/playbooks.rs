//! Plays events to a session and reads what it asks for: the tables of what active mode does,
//! row by row. Times are numbers, and nothing is waited for.

#![expect(
    clippy::needless_pass_by_value,
    reason = "a play reads like what is sent"
)]

mod any_order;

use std::{path::Path, sync::Arc};

use serde_json::{Value, json};
use stretto_flow::Flow;
use stretto_guards::{Guards, confirm::Judge};
use stretto_oracle::Response;
use stretto_trace::mcp::Header;

use super::*;

/// A session that is played to.
struct Play {
    session: Session,
    at: Millis,
    /// What the conversation's file holds and nobody has read yet.
    unread: Vec<String>,
    asked: Vec<Ticket>,
    notes: Vec<(SideLog, Value)>,
    said: Vec<String>,
}

impl Play {
    fn new(options: Options) -> Self {
        let header = Header::new("20260101T000000.000Z-1", 0, Vec::new());
        Self {
            session: Session::active(Active::new(&header, options, OwnIds::default())),
            at: Millis(0),
            unread: Vec::new(),
            asked: Vec::new(),
            notes: Vec::new(),
            said: Vec::new(),
        }
    }

    /// A line from the host.
    fn host(&mut self, text: impl ToString) -> Vec<String> {
        let line = Line::own(text.to_string());
        if self.session.keeps_back(&line) {
            return vec!["kept back".into()];
        }
        if self.session.wants_conversation(&line) {
            self.listen();
        }
        self.event(Event::Line(Side::Host, line))
    }

    /// A line from the server.
    fn server(&mut self, text: impl ToString) -> Vec<String> {
        self.event(Event::Line(Side::Server, Line::own(text.to_string())))
    }

    fn host_closes(&mut self) -> Vec<String> {
        self.listen();
        self.event(Event::Closed(Side::Host))
    }

    fn server_closes(&mut self) -> Vec<String> {
        self.event(Event::Closed(Side::Server))
    }

    /// So much time passes.
    fn later(&mut self, ms: u64) -> Vec<String> {
        self.at = self.at + Millis(ms);
        self.event(Event::Tick)
    }

    /// The host writes into the conversation's file.
    fn says(&mut self, role: &str, content: &str) {
        self.unread
            .push(json!({"role": role, "content": content}).to_string());
    }

    /// The model answers the oldest open question.
    fn answers(&mut self, answer: Result<f64, &str>) -> Vec<String> {
        self.is_told(answer.map(confirmed).map_err(str::to_owned))
    }

    fn is_told(&mut self, answer: Result<Response, String>) -> Vec<String> {
        let ticket = self.asked.remove(0);
        self.event(Event::Answered(ticket, answer))
    }

    fn listen(&mut self) {
        for line in std::mem::take(&mut self.unread) {
            let acts = self.event(Event::Said(Line::own(line)));
            assert_eq!(acts, [""; 0], "words lead to nothing by themselves");
        }
    }

    fn event(&mut self, event: Event) -> Vec<String> {
        let mut acts = Vec::new();
        self.session.handle(self.at, event, &mut acts);
        let mut told = Vec::new();
        for act in acts {
            match act {
                Act::Forward(to, line) => told.push(format!("{} {}", name(to), text(&line))),
                Act::Send(to, line) => told.push(format!("{} (own) {}", name(to), text(&line))),
                Act::Close(side) => told.push(format!("close {}", name(side))),
                Act::Say(what) => self.said.push(what),
                Act::Note(log, line) => {
                    self.notes.push((log, serde_json::from_str(&line).unwrap()));
                }
                Act::Ask(ticket, _) => {
                    self.asked.push(ticket);
                    told.push("ask".into());
                }
                Act::Listen => {
                    self.listen();
                    told.extend(self.event(Event::Listened));
                }
                Act::Admit(line) => told.extend(self.host(text(&line))),
            }
        }
        told
    }

    fn flow_notes(&self) -> Vec<&Value> {
        let flow = self.notes.iter().filter(|(log, _)| *log == SideLog::Flow);
        flow.map(|(_, line)| line).collect()
    }
}

fn name(side: Side) -> &'static str {
    match side {
        Side::Host => "host",
        Side::Server => "server",
    }
}

fn text(line: &Line) -> String {
    String::from_utf8(line.content().to_vec()).unwrap()
}

fn confirmed(p: f64) -> Response {
    let text =
        json!({"model": "m", "answers": {"confirmed": {"type": "noul", "noul": p}}, "usage": {}})
            .to_string();
    Response::parse(text.as_bytes()).unwrap()
}

fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        .to_string()
}

fn request(id: impl Into<Value>, method: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method}).to_string()
}

fn cancel(id: impl Into<Value>) -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id.into()}}).to_string()
}

fn result(id: impl Into<Value>, text: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id.into(), "result": {"content": [{"type": "text", "text": text}]}}).to_string()
}

/// The line that forwards this to the server.
fn to_server(line: &str) -> String {
    format!("server {line}")
}

fn to_host(line: &str) -> String {
    format!("host {line}")
}

/// The request of our own with that number, as the server gets it.
fn own_call(number: u32, tool: &str, arguments: Value) -> String {
    format!(
        r#"server (own) {{"jsonrpc":"2.0","id":"stretto-{number}","method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

fn own_cancellation(number: u32) -> Value {
    json!({"requestId": format!("stretto-{number}")})
}

/// What the host is told of its own, as JSON.
fn own_answer(told: &[String]) -> Value {
    let [answer] = told else {
        panic!("one act: {told:?}")
    };
    serde_json::from_str(
        answer
            .strip_prefix("host (own) ")
            .unwrap_or_else(|| panic!("own: {answer}")),
    )
    .unwrap()
}

fn answer_text(told: &[String]) -> String {
    own_answer(told)["result"]["content"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn guarding() -> Options {
    Options {
        guarding: Some(Guarding::new(Guards::for_domain("retail").unwrap(), true)),
        ..Options::default()
    }
}

fn committing() -> Options {
    Options {
        commit: true,
        ..Options::default()
    }
}

fn judging() -> Options {
    let judge = Judge {
        is_enforced: true,
        ..Judge::new("jev-latest")
    };
    Options {
        judging: Some(Judging::new(judge, 100)),
        listens: true,
        ..guarding()
    }
}

/// The flow of the demo shop: after an email, the user's details and both orders.
fn serving_with(limits: Limits, is_shadow: bool, granted: Option<&[&str]>) -> Options {
    serving_flow("shop", limits, is_shadow, granted)
}

fn serving_flow(name: &str, limits: Limits, is_shadow: bool, granted: Option<&[&str]>) -> Options {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!(
        "crates/stretto-flow/tests/data/flows/{name}.flow.json"
    ));
    let flow = Arc::new(Flow::load(&path).unwrap());
    let settings = stretto_flow::Settings::new(flow.default_decider(), "task");
    let granted = granted.map(|tools| tools.iter().map(|&tool| tool.to_owned()).collect());
    Options {
        serving: Some(Serving::new(flow, settings, limits, granted, is_shadow)),
        ..Options::default()
    }
}

const LIMITS: Limits = Limits {
    per_call: 8,
    per_session: 40,
    questions: 300,
};

fn serving() -> Options {
    serving_with(LIMITS, false, None)
}

fn find(id: impl Into<Value>) -> String {
    call(
        id,
        "find_user_id_by_email",
        json!({"email": "c7@example.com"}),
    )
}

fn details() -> String {
    json!({"user_id": "user_7", "orders": ["#W7a", "#W7b"]}).to_string()
}

/// A session whose flow has just sent its first lookup behind call 1.
fn looking_up(options: Options) -> Play {
    let mut play = Play::new(options);
    assert_eq!(play.host(find(1)), [to_server(&find(1))]);
    assert_eq!(
        play.server(result(1, "user_7")),
        [own_call(
            1,
            "get_user_details",
            json!({"user_id": "user_7"})
        )],
        "{:?}",
        play.said
    );
    play
}

mod lines_nobody_acts_on {
    use super::*;

    /// Everything at once, so that whatever is switched on has its chance to touch a line.
    fn all() -> Play {
        Play::new(Options {
            commit: true,
            serving: serving().serving,
            ..Options::default()
        })
    }

    #[test]
    fn pass_unchanged_from_the_host() {
        for line in [
            "",
            "hello",
            "[1]",
            r#"{ "id":1 , "method":"ping","id":2}"#,
            r#"{"method":"notifications/x","params":1e999}"#,
            r#"{"id":7,"result":{"roots":[]}}"#,
            &call("1", "any", json!([1, 2])),
            r#"[{"id":1,"method":"tools/call","params":{"name":"a"}}]"#,
        ] {
            assert_eq!(all().host(line), [to_server(line)], "{line}");
        }
    }

    #[test]
    fn pass_unchanged_from_the_server() {
        for line in [
            "",
            "Listening on stdio",
            r#"{"id":1,"method":"sampling/createMessage","params":{}}"#,
            r#"{"method":"notifications/message"}"#,
            r#"{"id":99,"result":{"tools":[]}}"#,
            r#"{"id":null,"error":{"code":-32700}}"#,
            r#"{"id":1}"#,
            r#"[{"id":1,"result":{}}]"#,
            r#"{"id":1,"result":{},"x":"\ud800"}"#,
        ] {
            assert_eq!(all().server(line), [to_host(line)], "{line}");
        }
    }

    #[test]
    fn a_line_keeps_its_own_ending() {
        let mut play = all();
        let mut acts = Vec::new();
        let line = Line::from(bytes::Bytes::from_static(
            b"{\"id\":1,\"method\":\"ping\"} \r\n",
        ));
        play.session
            .handle(Millis(0), Event::Line(Side::Host, line.clone()), &mut acts);
        assert_eq!(acts, [Act::Forward(Side::Server, line)]);
    }

    #[test]
    fn both_ends_close_in_their_order() {
        let mut play = all();
        assert_eq!(play.host_closes(), ["close server"]);
        assert_eq!(play.server_closes(), [""; 0]);
    }
}

mod guards {
    use super::*;

    fn no_reason() -> String {
        call(
            4,
            "cancel_pending_order",
            json!({"order_id": "#W7a", "reason": "found it cheaper"}),
        )
    }

    /// A session in which the user is known and order #W7a has been read.
    fn informed(options: Options) -> Play {
        let mut play = Play::new(options);
        play.host(find(1));
        play.server(result(1, "user_7"));
        play.host(call(2, "get_order_details", json!({"order_id": "#W7a"})));
        play.server(result(
            2,
            &json!({"order_id": "#W7a", "user_id": "user_7", "status": "pending"}).to_string(),
        ));
        play
    }

    #[test]
    fn a_refused_call_stays_here() {
        let mut play = informed(guarding());
        let told = play.host(no_reason());
        assert_eq!(
            told,
            [
                r#"host (own) {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"Refused by the policy check, so cancel_pending_order was not run and nothing changed: 'found it cheaper' is not an accepted reason (policy check retail.cancel_reason)."}],"isError":true}}"#
            ]
        );
        assert_eq!(
            play.said,
            [
                "refused cancel_pending_order: 'found it cheaper' is not an accepted reason (policy check retail.cancel_reason)"
            ]
        );
    }

    #[test]
    fn a_call_that_passes_goes_on_as_it_came() {
        let mut play = informed(guarding());
        let line = r##"{"method":"tools/call", "id":4,"params":{"arguments":{"reason":"no longer needed","order_id":"#W7a"},"name":"cancel_pending_order"}}"##;
        assert_eq!(play.host(line), [to_server(line)]);
    }

    #[test]
    fn a_call_is_checked_against_the_session_before_it() {
        let mut play = Play::new(guarding());
        let told = play.host(call(
            1,
            "cancel_pending_order",
            json!({"order_id": "#W7a", "reason": "no longer needed"}),
        ));
        assert!(
            answer_text(&told).contains("retail.authenticated"),
            "{told:?}"
        );
    }

    #[test]
    fn a_refused_call_without_an_id_is_dropped() {
        let mut play = informed(guarding());
        let line = r##"{"method":"tools/call","params":{"name":"cancel_pending_order","arguments":{"order_id":"#W7a","reason":"x"}}}"##;
        assert_eq!(play.host(line), [""; 0]);
        assert_eq!(play.said.len(), 1);
    }

    #[test]
    fn each_check_leaves_a_line_with_every_verdict() {
        let mut play = informed(guarding());
        play.host(no_reason());
        let (log, line) = play.notes.last().unwrap();
        assert_eq!(*log, SideLog::Explain);
        assert_eq!(line["id"], 4);
        assert_eq!(line["refused_by"], json!(["retail.cancel_reason"]));
        assert_eq!(line["verdicts"]["retail.pending"]["verdict"], "pass");
        assert_eq!(play.notes.len(), 3, "lookups are checked too");
    }

    #[test]
    fn an_answer_in_a_modern_session_says_that_it_is_complete() {
        let mut play = informed(guarding());
        let line = json!({"id": 9, "method": "tools/call", "params": {
            "name": "cancel_pending_order", "arguments": {"order_id": "#W7a", "reason": "x"},
            "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}});
        assert_eq!(
            own_answer(&play.host(line))["result"]["resultType"],
            "complete"
        );
    }

    #[test]
    fn a_batch_with_a_call_is_answered_and_goes_nowhere() {
        let mut play = informed(guarding());
        let told = play.host(format!("[{},{}]", request(8, "ping"), no_reason()));
        let errors = own_answer(&told);
        assert_eq!((&errors[0]["id"], &errors[1]["id"]), (&json!(8), &json!(4)));
        assert_eq!(errors[0]["error"]["code"], -32600);
    }

    #[test]
    fn what_cannot_be_read_whole_goes_nowhere() {
        let mut play = informed(guarding());
        let twice = r#"{"id":4,"method":"tools/call","params":{"name":"a","name":"b"}}"#;
        assert_eq!(own_answer(&play.host(twice))["error"]["code"], -32600);
        assert_eq!(own_answer(&play.host("hello"))["error"]["code"], -32700);
        assert_eq!(
            play.host(r#"{"id":1,"id":1,"result":{}}"#),
            [""; 0],
            "a response of the host's"
        );
        assert_eq!(play.said.len(), 3);
    }
}

mod judge {
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
}

mod arbiter {
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
            play.said[0]
                .contains("the System-One answer was incomplete; delete the cached answer "),
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
}

mod commit {
    use super::*;

    fn commit(id: u32) -> String {
        let calls = json!([{"name": "a", "arguments": {"x": 1}}, {"name": "b"}, {"name": "c", "arguments": {}}]);
        call(id, "stretto_commit", json!({"calls": calls}))
    }

    fn begun() -> Play {
        let mut play = Play::new(committing());
        assert_eq!(play.host(commit(6)), [own_call(1, "a", json!({"x": 1}))]);
        play
    }

    fn listed(id: u32, tools: Value, next: Option<&str>) -> String {
        let mut result = json!({"tools": tools});
        if let Some(next) = next {
            result["nextCursor"] = next.into();
        }
        json!({"id": id, "result": result}).to_string()
    }

    #[test]
    fn the_tool_is_listed_last_and_the_rest_stays_as_it_was() {
        let mut play = Play::new(committing());
        play.host(request(1, "tools/list"));
        let told = play.server(r#"{"id":1, "result":{ "tools":[ {"name":"a","x":1.0} ]}}"#);
        let own = told[0]
            .strip_prefix(r#"host (own) {"id":1, "result":{ "tools":[ {"name":"a","x":1.0} ,"#)
            .unwrap();
        let tool: Value = serde_json::from_str(own.strip_suffix("]}}").unwrap()).unwrap();
        assert_eq!(tool["name"], "stretto_commit");
        assert_eq!(
            tool["annotations"],
            json!({"readOnlyHint": false, "destructiveHint": true})
        );
        assert_eq!(tool["inputSchema"]["required"], json!(["calls"]));
        assert_eq!(tool["inputSchema"]["properties"]["calls"]["minItems"], 1);
    }

    #[test]
    fn only_the_last_page_has_it() {
        let mut play = Play::new(committing());
        play.host(request(1, "tools/list"));
        let first = listed(1, json!([]), Some(""));
        assert_eq!(play.server(&first), [to_host(&first)]);
        play.host(r#"{"id":2,"method":"tools/list","params":{"cursor":""}}"#);
        let told = play.server(listed(2, json!([]), None));
        assert_eq!(
            own_answer(&told)["result"]["tools"][0]["name"],
            "stretto_commit"
        );
    }

    #[test]
    fn an_answer_without_a_list_of_tools_is_left_alone() {
        for answer in [
            r#"{"id":1,"error":{"code":1}}"#,
            r#"{"id":1,"result":{}}"#,
            r#"{"id":1,"result":{"tools":{}}}"#,
        ] {
            let mut play = Play::new(committing());
            play.host(request(1, "tools/list"));
            assert_eq!(play.server(answer), [to_host(answer)]);
        }
    }

    #[test]
    fn a_tool_of_the_server_s_with_that_name_is_the_server_s() {
        let mut play = Play::new(committing());
        play.host(request(1, "tools/list"));
        let listing = listed(1, json!([{"name": "stretto_commit"}]), None);
        assert_eq!(play.server(&listing), [to_host(&listing)]);
        assert_eq!(play.said.len(), 1);
        assert_eq!(play.host(commit(6)), [to_server(&commit(6))]);
    }

    #[test]
    fn the_calls_are_made_in_order_and_all_reported() {
        let mut play = begun();
        assert_eq!(
            play.server(result("stretto-1", "one")),
            [own_call(2, "b", json!({}))]
        );
        assert_eq!(
            play.server(result("stretto-2", "two")),
            [own_call(3, "c", json!({}))]
        );
        let told = play.server(result("stretto-3", "three"));
        assert_eq!(
            answer_text(&told),
            "a {\"x\":1}:\none\n\nb {}:\ntwo\n\nc {}:\nthree"
        );
        assert_eq!(own_answer(&told)["result"]["isError"], false);
        assert_eq!(own_answer(&told)["id"], 6);
    }

    #[test]
    fn a_call_that_fails_ends_it() {
        for failed in [
            r#"{"id":"stretto-1","result":{"isError":true,"content":[{"type":"text","text":"no"}]}}"#,
            r#"{"id":"stretto-1","error":{"code":1,"message":"no"}}"#,
        ] {
            let told = begun().server(failed);
            assert_eq!(
                answer_text(&told),
                "a {\"x\":1} (error):\nno\n\nb {} was not run\n\nc {} was not run"
            );
            assert_eq!(own_answer(&told)["result"]["isError"], true);
        }
    }

    #[test]
    fn an_answer_that_is_not_final_is_a_failure() {
        let told = begun().server(
            r#"{"id":"stretto-1","result":{"resultType":"input_required","inputRequests":{}}}"#,
        );
        assert!(
            answer_text(&told).starts_with("a {\"x\":1} (error):\n"),
            "{told:?}"
        );
    }

    #[test]
    fn a_call_that_the_guards_refuse_ends_it() {
        let mut play = Play::new(Options {
            commit: true,
            ..guarding()
        });
        let write = json!({"name": "cancel_pending_order", "arguments": {"order_id": "#W7a", "reason": "x"}});
        let told = play.host(call(
            1,
            "stretto_commit",
            json!({"calls": [write, {"name": "b"}]}),
        ));
        let text = answer_text(&told);
        assert!(text.starts_with("cancel_pending_order {\"order_id\":\"#W7a\",\"reason\":\"x\"} was refused by the policy check: "));
        assert!(
            text.ends_with("(policy check retail.cancel_reason)\n\nb {} was not run"),
            "{text}"
        );
    }

    #[test]
    fn each_call_is_checked_against_the_earlier_ones() {
        let mut play = Play::new(Options {
            commit: true,
            ..guarding()
        });
        play.host(find(1));
        play.server(result(1, "user_7"));
        let calls = json!([{"name": "get_order_details", "arguments": {"order_id": "#W7a"}},
            {"name": "cancel_pending_order", "arguments": {"order_id": "#W7a", "reason": "no longer needed"}}]);
        play.host(call(2, "stretto_commit", json!({"calls": calls})));
        let order =
            json!({"order_id": "#W7a", "user_id": "user_7", "status": "pending"}).to_string();
        let told = play.server(result("stretto-1", &order));
        assert!(told[0].contains("cancel_pending_order"), "{told:?}");
        assert!(told[0].starts_with("server (own)"), "{told:?}");
    }

    #[test]
    fn wrong_arguments_run_nothing() {
        let mut play = Play::new(committing());
        let told = play.host(call(1, "stretto_commit", json!({"calls": []})));
        assert!(answer_text(&told).ends_with("nothing was run."));
        assert_eq!(own_answer(&told)["result"]["isError"], true);
    }

    #[test]
    fn no_answer_within_a_minute_ends_it_and_a_late_one_is_swallowed() {
        let mut play = begun();
        assert_eq!(play.later(60_000), [""; 0]);
        let told = play.later(1);
        let cancelled: Value =
            serde_json::from_str(told[0].strip_prefix("server (own) ").unwrap()).unwrap();
        assert_eq!(
            cancelled["params"]["requestId"],
            own_cancellation(1)["requestId"]
        );
        assert_eq!(
            answer_text(&told[1..]),
            "a {\"x\":1} got no answer from the server\n\nb {} was not run\n\nc {} was not run"
        );
        assert_eq!(play.server(result("stretto-1", "late")), [""; 0]);
        assert!(
            play.said[0].contains("call of a") && play.said[0].contains("60 s"),
            "{:?}",
            play.said
        );
    }

    #[test]
    fn a_host_that_cancels_gets_no_answer_and_no_further_call_is_made() {
        let mut play = begun();
        let told = play.host(cancel(6));
        assert_eq!(
            told.len(),
            1,
            "only our own cancellation goes to the server: {told:?}"
        );
        assert!(
            told[0].starts_with("server (own) ") && told[0].contains("stretto-1"),
            "{told:?}"
        );
        assert_eq!(play.server(result("stretto-1", "late")), [""; 0]);
    }

    #[test]
    fn after_the_host_s_end_the_call_under_way_is_waited_for_and_no_other_is_made() {
        let mut play = begun();
        assert_eq!(play.host_closes(), ["close server"]);
        let told = play.server(result("stretto-1", "one"));
        assert_eq!(
            answer_text(&told),
            "a {\"x\":1}:\none\n\nb {} got no answer from the server\n\nc {} was not run"
        );
    }

    #[test]
    fn a_server_that_ends_leaves_the_commit_answered() {
        let told = begun().server_closes();
        assert_eq!(
            answer_text(&told),
            "a {\"x\":1} got no answer from the server\n\nb {} was not run\n\nc {} was not run"
        );
    }

    #[test]
    fn two_commits_at_once_are_independent() {
        let mut play = begun();
        assert_eq!(play.host(commit(7)), [own_call(2, "a", json!({"x": 1}))]);
        assert_eq!(
            play.server(result("stretto-2", "x")),
            [own_call(3, "b", json!({}))]
        );
        assert_eq!(
            play.server(result("stretto-1", "x")),
            [own_call(4, "b", json!({}))]
        );
    }

    #[test]
    fn two_commits_with_one_id_are_two() {
        let mut play = begun();
        assert_eq!(play.host(commit(6)), [own_call(2, "a", json!({"x": 1}))]);
        assert_eq!(
            play.server(result("stretto-1", "first")),
            [own_call(3, "b", json!({}))]
        );
        assert_eq!(
            play.server(result("stretto-2", "second")),
            [own_call(4, "b", json!({}))]
        );
        play.server(result("stretto-3", "x"));
        let told = play.server(result("stretto-5", "x"));
        assert!(
            answer_text(&told).starts_with("a {\"x\":1}:\nfirst\n"),
            "{told:?}"
        );
    }

    #[test]
    fn the_id_of_a_commit_is_in_use() {
        let mut play = Play::new(committing());
        let line = call(
            "stretto-1",
            "stretto_commit",
            json!({"calls": [{"name": "a"}]}),
        );
        assert_eq!(play.host(line), [own_call(2, "a", json!({}))]);
        assert_eq!(
            own_answer(&play.server(result("stretto-2", "x")))["id"],
            "stretto-1"
        );
    }

    #[test]
    fn the_cancellation_of_a_line_that_is_kept_back_comes_after_it() {
        let mut play = begun();
        assert_eq!(play.host(request("stretto-1", "ping")), ["kept back"]);
        assert_eq!(play.host(cancel("stretto-1")), ["kept back"]);
        assert_eq!(
            play.server(result("stretto-1", "x")),
            [
                own_call(2, "b", json!({})),
                to_server(&request("stretto-1", "ping")),
                to_server(&cancel("stretto-1"))
            ]
        );
    }

    #[test]
    fn a_request_of_our_own_is_not_the_host_s_to_cancel() {
        assert_eq!(begun().host(cancel("stretto-1")), [""; 0]);
    }

    #[test]
    fn a_batch_that_uses_an_id_of_ours_is_kept_back() {
        let mut play = begun();
        let batch = format!("[{}]", request("stretto-1", "ping"));
        assert_eq!(play.host(&batch), ["kept back"]);
        let told = play.server(result("stretto-1", "x"));
        assert_eq!(told[1], to_server(&batch));
    }

    #[test]
    fn the_conversation_is_read_before_each_call() {
        let mut play = Play::new(Options {
            commit: true,
            listens: true,
            ..guarding()
        });
        play.says("user", "one");
        play.host(commit(6));
        play.says("user", "two");
        play.server(result("stretto-1", "x"));
        assert_eq!(play.unread, [""; 0]);
    }
}

mod flows {
    use super::*;

    #[test]
    fn lookups_are_made_behind_the_call_and_handed_over_with_its_result() {
        let mut play = looking_up(serving());
        assert_eq!(
            play.server(result("stretto-1", &details())),
            [own_call(
                2,
                "get_order_details",
                json!({"order_id": "#W7a"})
            )]
        );
        assert_eq!(
            play.server(result("stretto-2", "A")),
            [own_call(
                3,
                "get_order_details",
                json!({"order_id": "#W7b"})
            )]
        );
        let told = play.server(result("stretto-3", "B"));
        let answer = own_answer(&told);
        assert_eq!(answer["result"]["content"][0]["text"], "user_7");
        assert_eq!(
            answer["result"]["content"][1]["text"],
            format!(
                "--- Also looked up automatically (current results; no need to repeat these calls) ---\n\n\
                 get_user_details {{\"user_id\":\"user_7\"}}:\n{}\n\n\
                 get_order_details {{\"order_id\":\"#W7a\"}}:\nA\n\nget_order_details {{\"order_id\":\"#W7b\"}}:\nB",
                details()
            )
        );
        let notes = play.flow_notes();
        assert_eq!(notes.len(), 5, "four decisions and a run");
        assert_eq!(notes[4]["run"]["call"], "find_user_id_by_email");
    }

    #[test]
    fn everything_else_moves_while_a_lookup_is_waited_for() {
        let mut play = looking_up(serving());
        let ping = request(2, "ping");
        assert_eq!(play.host(&ping), [to_server(&ping)]);
        assert_eq!(
            play.server(r#"{"id":2,"result":{}}"#),
            [to_host(r#"{"id":2,"result":{}}"#)]
        );
        let sampling = r#"{"id":"stretto-1","method":"sampling/createMessage"}"#;
        assert_eq!(
            play.server(sampling),
            [to_host(sampling)],
            "the server's ids are its own"
        );
        let answer = r#"{"id":"stretto-1","result":{"role":"user"}}"#;
        assert_eq!(play.host(answer), [to_server(answer)]);
    }

    #[test]
    fn a_result_that_comes_meanwhile_is_forwarded() {
        let mut play = looking_up(serving());
        play.host(find(2));
        assert_eq!(
            play.server(result(2, "user_8")),
            [to_host(&result(2, "user_8"))]
        );
    }

    #[test]
    fn an_error_starts_no_flow() {
        let mut play = Play::new(serving());
        play.host(find(1));
        let error = r#"{"id":1,"error":{"code":-32602,"message":"no"}}"#;
        assert_eq!(play.server(error), [to_host(error)]);
    }

    #[test]
    fn an_interim_result_starts_no_flow() {
        let mut play = Play::new(serving());
        play.host(find(1));
        let asks = r#"{"id":1,"result":{"resultType":"input_required","inputRequests":{}}}"#;
        assert_eq!(play.server(asks), [to_host(asks)]);
        assert!(play.notes.is_empty());
    }

    #[test]
    fn a_call_that_was_cancelled_is_followed_by_no_flow() {
        let mut play = Play::new(serving());
        play.host(find(1));
        assert_eq!(play.host(cancel(1)), [to_server(&cancel(1))]);
        assert_eq!(
            play.server(result(1, "user_7")),
            [to_host(&result(1, "user_7"))]
        );
    }

    #[test]
    fn without_a_lookup_the_original_bytes_go_on() {
        let mut play = Play::new(serving_with(LIMITS, true, None));
        play.host(find(1));
        let odd = r#"{ "id":1,"result":{"content":[{"text":"user_7","type":"text"}],"n":1.00}}"#;
        assert_eq!(play.server(odd), [to_host(odd)]);
        assert_eq!(play.flow_notes()[0]["shadow"], true);
        assert_eq!(play.flow_notes()[0]["action"], "lookup");
    }

    #[test]
    fn a_tool_that_is_not_granted_is_withheld_and_said_once() {
        let mut play = Play::new(serving_with(LIMITS, false, Some(&["get_order_details"])));
        for id in [1, 2] {
            play.host(find(id));
            assert_eq!(
                play.server(result(id, "user_7")),
                [to_host(&result(id, "user_7"))]
            );
            play.later(1_000);
        }
        assert_eq!(
            play.said,
            ["the flow leaves get_user_details to the agent: --flow-tools does not grant it"]
        );
        assert!(
            play.flow_notes()
                .iter()
                .all(|note| note["run"].is_object() || note["withheld"].is_string())
        );
    }

    #[test]
    fn a_tool_that_the_server_does_not_list_is_withheld() {
        let mut play = Play::new(serving());
        play.host(request(9, "tools/list"));
        play.server(json!({"id": 9, "result": {"tools": [{"name": "find_user_id_by_email", "annotations": {"readOnlyHint": true}}]}}));
        play.host(find(1));
        assert_eq!(
            play.server(result(1, "user_7")),
            [to_host(&result(1, "user_7"))]
        );
        assert_eq!(
            play.flow_notes()[0]["withheld"],
            "the server no longer lists it"
        );
    }

    #[test]
    fn lookups_are_capped_for_a_result() {
        let mut play = looking_up(serving_with(
            Limits {
                per_call: 1,
                ..LIMITS
            },
            false,
            None,
        ));
        let told = play.server(result("stretto-1", &details()));
        assert!(
            own_answer(&told)["result"]["content"][1]["text"]
                .as_str()
                .unwrap()
                .contains("get_user_details")
        );
        assert_eq!(
            play.flow_notes().len(),
            2,
            "one decision and the run: at the cap nothing is decided"
        );
    }

    #[test]
    fn lookups_are_capped_for_a_session() {
        let mut play = looking_up(serving_with(
            Limits {
                per_session: 1,
                ..LIMITS
            },
            false,
            None,
        ));
        play.server(result("stretto-1", &details()));
        play.later(1_000);
        play.host(find(2));
        assert_eq!(
            play.server(result(2, "user_7")),
            [to_host(&result(2, "user_7"))]
        );
    }

    #[test]
    fn a_lookup_that_fails_is_handed_over_as_failed() {
        let mut play = looking_up(serving());
        let told = play.server(r#"{"id":"stretto-1","error":{"code":1,"message":"no such user"}}"#);
        assert!(
            own_answer(&told)["result"]["content"][1]["text"]
                .as_str()
                .unwrap()
                .ends_with(" (error):\nno such user")
        );
    }

    #[test]
    fn after_a_minute_the_result_goes_out_and_a_late_answer_is_swallowed() {
        let mut play = looking_up(serving());
        assert_eq!(play.later(60_000), [""; 0]);
        let told = play.later(1);
        assert!(
            told[0].starts_with("server (own) ") && told[0].contains("notifications/cancelled"),
            "{told:?}"
        );
        assert_eq!(told[1], to_host(&result(1, "user_7")));
        assert_eq!(play.server(result("stretto-1", &details())), [""; 0]);
        assert_eq!(
            play.flow_notes().len(),
            1,
            "a run that was cut short leaves no run line"
        );
    }

    #[test]
    fn a_host_that_cancels_the_held_call_gets_nothing_more_of_it() {
        let mut play = looking_up(serving());
        let told = play.host(cancel(1));
        assert_eq!(told[0], to_server(&cancel(1)));
        assert!(
            told[1].starts_with("server (own) ") && told[1].contains("stretto-1"),
            "{told:?}"
        );
        assert_eq!(told.len(), 2);
        assert_eq!(play.server(result("stretto-1", "late")), [""; 0]);
    }

    #[test]
    fn after_the_host_s_end_the_lookup_in_flight_is_waited_for_and_no_other_is_made() {
        let mut play = looking_up(serving());
        assert_eq!(play.host_closes(), ["close server"]);
        let told = play.server(result("stretto-1", &details()));
        assert!(
            own_answer(&told)["result"]["content"][1]["text"]
                .as_str()
                .unwrap()
                .contains("get_user_details")
        );
    }

    #[test]
    fn a_server_that_ends_leaves_the_agent_its_result() {
        assert_eq!(
            looking_up(serving()).server_closes(),
            [to_host(&result(1, "user_7"))]
        );
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_a_failure_and_stays_here() {
        let told =
            looking_up(serving()).server(r#"{"id":"stretto-1","result":{"content":[],"x":1e999}}"#);
        assert!(
            own_answer(&told)["result"]["content"][1]["text"]
                .as_str()
                .unwrap()
                .contains("(error):")
        );
    }

    #[test]
    fn an_answer_in_a_batch_stays_here_too() {
        let mut play = looking_up(serving());
        let told = play.server(format!("[{}]", result("stretto-1", &details())));
        assert_eq!(
            told,
            [own_call(
                2,
                "get_order_details",
                json!({"order_id": "#W7a"})
            )]
        );
    }

    #[test]
    fn lookups_in_a_modern_session_carry_what_it_needs() {
        let mut play = Play::new(serving());
        play.host(json!({"id": 1, "method": "tools/call", "params": {
            "name": "find_user_id_by_email", "arguments": {"email": "c7@example.com"},
            "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "progressToken": 1}}}));
        let told = play.server(result(1, "user_7"));
        let lookup: Value =
            serde_json::from_str(told[0].strip_prefix("server (own) ").unwrap()).unwrap();
        assert_eq!(
            lookup["params"]["_meta"],
            json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}})
        );
    }

    #[test]
    fn a_long_addition_is_left_out_from_its_end() {
        let mut play = looking_up(serving());
        play.server(result("stretto-1", &details()));
        play.server(result("stretto-2", "A"));
        let told = play.server(result("stretto-3", &"B".repeat(9 * 1024 * 1024)));
        let text = own_answer(&told)["result"]["content"][1]["text"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(text.ends_with("\nA"), "{}", text.len());
        assert!(
            play.said
                .last()
                .unwrap()
                .starts_with("left out 1 of 3 lookups"),
            "{:?}",
            play.said
        );
    }

    #[test]
    fn the_host_may_use_ids_like_ours() {
        let mut play = Play::new(serving());
        play.host(find("stretto-1"));
        assert_eq!(
            play.server(result("stretto-1", "user_7")),
            [own_call(
                2,
                "get_user_details",
                json!({"user_id": "user_7"})
            )],
            "an id stands for one request in a session, though the host's was answered"
        );
        assert_eq!(play.host(request("stretto-2", "ping")), ["kept back"]);
        assert_eq!(
            play.host(request(3, "ping")),
            [to_server(&request(3, "ping"))],
            "later lines are not kept back"
        );
        let told = play.server(result("stretto-2", &details()));
        assert_eq!(
            told,
            [
                own_call(3, "get_order_details", json!({"order_id": "#W7a"})),
                to_server(&request("stretto-2", "ping"))
            ]
        );
    }

    #[test]
    fn ids_that_the_host_waits_for_are_skipped() {
        let mut play = Play::new(serving());
        play.host(request("stretto-1", "ping"));
        play.host(find(1));
        assert_eq!(
            play.server(result(1, "user_7")),
            [own_call(
                2,
                "get_user_details",
                json!({"user_id": "user_7"})
            )]
        );
    }

    #[test]
    fn the_server_s_input_stays_open_for_a_line_that_is_kept_back() {
        let mut play = looking_up(serving());
        play.host(request("stretto-1", "ping"));
        assert_eq!(play.host_closes(), [""; 0]);
        let told = play.server(result("stretto-1", &details()));
        assert!(
            told.contains(&to_server(&request("stretto-1", "ping"))),
            "{told:?}"
        );
        assert_eq!(told.last().unwrap(), "close server");
    }
}
