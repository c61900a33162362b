//! The rules of turns, row by row.

#![expect(
    clippy::needless_pass_by_value,
    reason = "sessions read better without borrows in them"
)]

use std::fmt::Write as _;

use serde_json::json;

use super::*;
use crate::mcp::Body;

/// A session, written down as it goes.
struct Session {
    log: Log,
    now: u64,
}

impl Session {
    fn new() -> Self {
        let header = Header::new("s", 0, Vec::new());
        Self {
            log: Log {
                header,
                entries: Vec::new(),
                is_cut_off: false,
            },
            now: 1000,
        }
    }

    fn line(mut self, from: Who, message: Value) -> Self {
        self.log.entries.push(Entry {
            t_ms: self.now,
            from,
            body: Body::Message(message),
        });
        self
    }

    fn after(mut self, ms: u64) -> Self {
        self.now += ms;
        self
    }

    fn call(self, id: impl Into<Value>, arguments: Value) -> Self {
        self.line(Who::Client, call(id.into(), arguments))
    }

    fn lookup(self, id: &str) -> Self {
        self.line(Who::Proxy, call(id.into(), json!({})))
    }

    fn answer(self, id: impl Into<Value>, text: &str) -> Self {
        self.line(Who::Server, answer(id.into(), text))
    }

    fn cancel(self, id: impl Into<Value>) -> Self {
        let params = json!({"requestId": id.into()});
        self.line(
            Who::Client,
            json!({"method": "notifications/cancelled", "params": params}),
        )
    }

    fn says(self, role: &str, content: Value) -> Self {
        self.line(Who::Context, json!({"role": role, "content": content}))
    }

    /// The episode, told briefly: `[1 2]` is a turn of two calls, `1=` a result, `1!` an error.
    fn told(&self) -> String {
        let mut told = String::new();
        for event in &episode(&self.log).events {
            match event {
                Event::User { text } => write!(told, "user({text}) "),
                Event::Assistant {
                    text: Some(text), ..
                } => write!(told, "says({text}) "),
                Event::Assistant { calls, .. } => {
                    let ids: Vec<_> = calls.iter().map(|call| call.id.as_str()).collect();
                    write!(told, "[{}] ", ids.join(" "))
                }
                Event::ToolResult { call_id, error, .. } => {
                    write!(told, "{call_id}{} ", if *error { '!' } else { '=' })
                }
            }
            .unwrap();
        }
        told.trim_end().to_owned()
    }
}

fn call(id: Value, arguments: Value) -> Value {
    json!({"id": id, "method": "tools/call", "params": {"name": "look", "arguments": arguments}})
}

fn answer(id: Value, text: &str) -> Value {
    json!({"id": id, "result": {"content": [{"type": "text", "text": text}]}})
}

fn needs_input() -> Value {
    json!({"resultType": "input_required", "requestState": "s"})
}

#[test]
fn calls_sent_before_either_answer_are_one_turn_with_results_as_they_came() {
    let session = Session::new()
        .call(1, json!({}))
        .call(2, json!({}))
        .answer(2, "b")
        .answer(1, "a");
    assert_eq!(session.told(), "[1 2] 2= 1=");
}

#[test]
fn a_call_sent_while_another_is_open_joins() {
    let session = Session::new()
        .call(1, json!({}))
        .call(2, json!({}))
        .answer(1, "a")
        .after(90_000)
        .call(3, json!({"x": "a"}))
        .answer(2, "b")
        .answer(3, "c");
    assert_eq!(session.told(), "[1 2 3] 1= 2= 3=");
}

#[test]
fn a_call_joins_up_to_half_a_second_after_the_last_answer() {
    for (ms, told) in [
        (0, "[1 2] 1="),
        (500, "[1 2] 1="),
        (501, "[1] 1= [2]"),
        (600, "[1] 1= [2]"),
    ] {
        let session = Session::new()
            .call(1, json!({}))
            .answer(1, "a")
            .after(ms)
            .call(2, json!({}));
        // The joining call stands in its turn, which comes before the result.
        assert_eq!(session.told(), told, "{ms} ms");
    }
}

#[test]
fn a_value_that_the_last_result_showed_for_the_first_time_begins_a_turn() {
    let session = |arguments: Value| {
        Session::new()
            .call(1, json!({}))
            .answer(1, "the order #W7 of 2 things")
            .call(2, arguments)
    };
    for arguments in [
        json!({"id": "#W7"}),
        json!({"deep": [{"er": ["#W7"]}]}),
        json!({"part": "ord"}),
        json!(["the order #W7 of 2 things"]),
    ] {
        assert_eq!(
            session(arguments.clone()).told(),
            "[1] 1= [2]",
            "{arguments}"
        );
    }
    // One character, another case, a member's name, what was not returned: nothing was passed.
    for arguments in [
        json!({"n": 2}),
        json!({"n": "#w7"}),
        json!({"#W7": true}),
        json!({"x": "#W8"}),
        json!(null),
    ] {
        assert_eq!(session(arguments.clone()).told(), "[1 2] 1=", "{arguments}");
    }
    let number = Session::new()
        .call(1, json!({}))
        .answer(1, "n: 12.5")
        .call(2, json!({"n": 12.5}));
    assert_eq!(number.told(), "[1] 1= [2]");
}

#[test]
fn a_value_that_was_known_before_does_not_begin_a_turn() {
    let again = |session: Session| {
        session
            .call(2, json!({}))
            .answer(2, "#W7")
            .call(3, json!({"id": "#W7"}))
    };
    let known_from_a_result = Session::new()
        .call(1, json!({}))
        .answer(1, "#W7")
        .after(600);
    assert_eq!(again(known_from_a_result).told(), "[1] 1= [2 3] 2=");
    let known_from_the_user = Session::new().says("user", "my order #W7".into());
    assert_eq!(
        again(known_from_the_user).told(),
        "user(my order #W7) [2 3] 2="
    );
    let known_from_a_system_line = Session::new().says("system", "#W7".into());
    assert_eq!(again(known_from_a_system_line).told(), "[2 3] 2=");
    let known_from_arguments = Session::new()
        .call(1, json!({"id": "#W7"}))
        .answer(1, "")
        .after(600);
    assert_eq!(again(known_from_arguments).told(), "[1] 1= [2 3] 2=");
    // Found once, it stays known.
    let twice = again(Session::new().says("user", "#W7".into()))
        .answer(3, "")
        .call(4, json!(["#W7"]));
    assert_eq!(twice.told(), "user(#W7) [2 3 4] 2= 3=");
}

#[test]
fn a_value_is_not_found_across_two_pieces_of_text() {
    let session = Session::new()
        .says("user", "#W".into())
        .says("system", "7".into())
        .call(1, json!({}))
        .answer(1, "#W7")
        .call(2, json!({"id": "#W7"}));
    assert_eq!(session.told(), "user(#W) [1] 1= [2]");
}

#[test]
fn a_message_in_between_begins_a_turn_and_a_silent_line_does_not() {
    let session = |role: &str, content: Value| {
        Session::new()
            .call(1, json!({}))
            .answer(1, "a")
            .says(role, content)
            .call(2, json!({}))
            .told()
    };
    assert_eq!(session("user", "and?".into()), "[1] 1= user(and?) [2]");
    assert_eq!(session("user", json!(7)), "[1] 1= user() [2]");
    assert_eq!(session("assistant", "so".into()), "[1] 1= says(so) [2]");
    assert_eq!(session("assistant", "".into()), "[1 2] 1=");
    assert_eq!(session("system", "x".into()), "[1 2] 1=");
    assert_eq!(
        session(
            "user",
            json!([{"text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}])
        ),
        "[1] 1= user(a\nb) [2]"
    );
}

#[test]
fn a_call_that_is_never_answered_keeps_its_turn_open() {
    let session = Session::new()
        .call(1, json!({}))
        .after(60_000)
        .call(2, json!({}))
        .answer(2, "b")
        .says("user", "well?".into())
        .after(60_000)
        .call(3, json!({}))
        .answer(3, "c");
    assert_eq!(session.told(), "[1 2 3] 2= user(well?) 3=");
}

#[test]
fn a_cancelled_call_releases_its_turn_and_a_late_answer_is_its_result() {
    let session = Session::new()
        .call(1, json!({}))
        .cancel(1)
        .after(60_000)
        .call(2, json!({}))
        .answer(1, "late")
        .answer(2, "b");
    assert_eq!(session.told(), "[1] [2] 1= 2=");
}

#[test]
fn a_turn_that_ended_with_a_cancellation_is_not_continued() {
    let session = Session::new()
        .call(1, json!({}))
        .call(2, json!({}))
        .answer(1, "a")
        .cancel(2)
        .call(3, json!({}));
    assert_eq!(session.told(), "[1 2] 1= [3]");
}

#[test]
fn cancelling_what_is_not_pending_has_no_effect() {
    let session = Session::new()
        .cancel(1)
        .call(1, json!({}))
        .cancel("1")
        .call(2, json!({}))
        .answer(1, "a")
        .answer(2, "b")
        .cancel(2)
        .cancel(2)
        .call(3, json!({}));
    assert_eq!(session.told(), "[1 2 3] 1= 2=");
}

#[test]
fn lookups_after_the_agents_call_are_turns_of_their_own() {
    let session = Session::new()
        .call(1, json!({}))
        .answer(1, "user_7")
        .lookup("stretto-1")
        .answer("stretto-1", "x")
        .lookup("stretto-2")
        .answer("stretto-2", "y")
        .line(Who::Proxy, answer(1.into(), "user_7 and more"))
        .call(2, json!({}))
        .answer(2, "z");
    assert_eq!(
        session.told(),
        "[1] 1= [stretto-1] stretto-1= [stretto-2] stretto-2= [2] 2="
    );
}

#[test]
fn the_calls_of_a_commit_join_its_turn() {
    let session = Session::new()
        .call(1, json!({}))
        .lookup("stretto-1")
        .answer("stretto-1", "x")
        .after(700)
        .lookup("stretto-2")
        .answer("stretto-2", "y")
        .line(Who::Proxy, answer(1.into(), "report"));
    assert_eq!(
        session.told(),
        "[1 stretto-1 stretto-2] stretto-1= stretto-2= 1="
    );
}

#[test]
fn a_refusal_that_only_the_proxy_sent_is_the_result() {
    let refusal = json!({"id": 1, "result": {"content": [{"type": "text", "text": "Refused"}], "isError": true}});
    let session = Session::new().call(1, json!({})).line(Who::Proxy, refusal);
    assert_eq!(session.told(), "[1] 1!");
}

#[test]
fn the_servers_own_requests_and_their_answers_have_no_effect() {
    let session = Session::new()
        .call(1, json!({}))
        .line(Who::Server, json!({"id": 1, "method": "roots/list"}))
        .line(Who::Client, json!({"id": 1, "result": {"roots": []}}))
        .line(
            Who::Server,
            json!({"id": 9, "method": "tools/call", "params": {"name": "x"}}),
        )
        .line(
            Who::Server,
            json!({"method": "notifications/cancelled", "params": {"requestId": 1}}),
        )
        .answer(1, "a");
    assert_eq!(session.told(), "[1] 1=");
}

#[test]
fn a_batch_of_two_calls_is_one_turn() {
    let batch = json!([call(1.into(), json!({})), call(2.into(), json!({}))]);
    let answers = json!([answer(2.into(), "b"), answer(1.into(), "a")]);
    let session = Session::new()
        .line(Who::Client, batch)
        .line(Who::Server, answers);
    assert_eq!(session.told(), "[1 2] 2= 1=");
}

#[test]
fn raw_lines_and_odd_messages_have_no_effect() {
    let mut session = Session::new().call(1, json!({})).answer(1, "a");
    let raw = Body::Raw("Listening".into());
    session.log.entries.push(Entry {
        t_ms: 1000,
        from: Who::Server,
        body: raw,
    });
    let session = session
        .line(Who::Server, json!(null))
        .line(Who::Server, json!(7))
        .line(Who::Server, answer(8.into(), "nobody asked"))
        .line(
            Who::Client,
            json!({"method": "tools/call", "params": {"name": "no id"}}),
        )
        .line(
            Who::Client,
            json!({"id": null, "method": "tools/call", "params": {"name": "null id"}}),
        )
        .line(
            Who::Client,
            json!({"id": 8, "method": "tools/call", "params": {"name": 7}}),
        )
        .line(Who::Client, json!({"id": 8, "method": "tools/call"}))
        .line(Who::Client, json!({"id": 8, "method": 7}))
        .call(2, json!({}));
    assert_eq!(session.told(), "[1 2] 1=");
}

#[test]
fn a_number_and_its_text_are_two_requests_that_become_one_call_id() {
    let session = Session::new()
        .call(1, json!({}))
        .call("1", json!({}))
        .answer("1", "b")
        .answer(1, "a");
    assert_eq!(session.told(), "[1 1] 1= 1=");
    let contents = episode(&session.log)
        .events
        .into_iter()
        .skip(1)
        .map(|event| match event {
            Event::ToolResult { content, .. } => content,
            _ => String::new(),
        });
    assert_eq!(contents.collect::<Vec<_>>(), ["b", "a"]);
}

#[test]
fn an_id_used_again_before_its_answer_belongs_to_the_new_call() {
    let session = Session::new()
        .line(
            Who::Client,
            json!({"id": 1, "method": "tools/call", "params": {"name": "old"}}),
        )
        .line(
            Who::Client,
            json!({"id": 1, "method": "tools/call", "params": {"name": "new"}}),
        )
        .answer(1, "a");
    // The old call had stopped holding its turn, so the new one begins another.
    assert_eq!(session.told(), "[1] [1] 1=");
    let Some(Event::ToolResult { name, .. }) = episode(&session.log).events.pop() else {
        panic!()
    };
    assert_eq!(name, "new");
}

#[test]
fn arguments_are_an_empty_object_when_absent_and_stay_null_when_null() {
    let call = |params: Value| json!({"id": 1, "method": "tools/call", "params": params});
    for (params, arguments) in [
        (json!({"name": "x"}), json!({})),
        (json!({"name": "x", "arguments": null}), json!(null)),
        (json!({"name": "x", "arguments": [1]}), json!([1])),
    ] {
        let session = Session::new().line(Who::Client, call(params));
        assert_eq!(
            episode(&session.log).tool_calls().next().unwrap().arguments,
            arguments
        );
    }
}

#[test]
fn a_call_that_needs_input_is_one_call_with_its_retry() {
    let retry = |id: u32| {
        let params = json!({"name": "look", "arguments": {"x": 1}, "requestState": "s"});
        json!({"id": id, "method": "tools/call", "params": params})
    };
    let session = Session::new()
        .call(1, json!({"x": 1}))
        .line(Who::Server, json!({"id": 1, "result": needs_input()}))
        .after(20_000)
        .line(Who::Client, retry(2))
        .line(Who::Server, json!({"id": 2, "result": needs_input()}))
        .after(20_000)
        .line(Who::Client, retry(2))
        .answer(2, "done")
        .after(300)
        .call(3, json!({}));
    assert_eq!(session.told(), "[1 3] 1=");
    let builder = built(&session.log);
    for id in ["1", "2"] {
        let after = builder.after_call(id);
        assert_eq!(after.asked_for().len(), 1);
        assert_eq!(after.asked_for()[0].id, "3");
        assert_eq!(builder.answered_before(id), Some(0));
    }
}

#[test]
fn a_retry_takes_over_the_newest_call_that_is_the_same() {
    let interim = |id: u32| json!({"id": id, "result": needs_input()});
    let retry = |id: u32, x: u32| {
        let params = json!({"name": "look", "arguments": {"x": x}, "inputResponses": {}});
        json!({"id": id, "method": "tools/call", "params": params})
    };
    let session = Session::new()
        .call(1, json!({"x": 1}))
        .call(2, json!({"x": 1}))
        .call(3, json!({"x": 3}))
        .line(Who::Server, interim(1))
        .line(Who::Server, interim(2))
        .line(Who::Server, interim(3))
        .line(Who::Client, retry(4, 1))
        .answer(4, "of 2")
        .line(Who::Client, retry(5, 1))
        .answer(5, "of 1")
        .line(Who::Client, retry(6, 9))
        .answer(6, "a call that was never asked before");
    assert_eq!(session.told(), "[1 2 3 6] 2= 1= 6=");
}

#[test]
fn an_interim_answer_releases_the_turn() {
    let session = Session::new()
        .call(1, json!({"x": 1}))
        .line(Who::Server, json!({"id": 1, "result": needs_input()}))
        .call(2, json!({}))
        .answer(2, "b")
        .answer(1, "late");
    assert_eq!(session.told(), "[1] [2] 2= 1=");
}

#[test]
fn a_task_is_no_result_and_a_result_with_a_task_in_it_is() {
    let handle = json!({"task": {"taskId": "t"}});
    let as_task =
        json!({"id": 1, "method": "tools/call", "params": {"name": "look", "task": {"ttl": 1}}});
    let asked = Session::new()
        .line(Who::Client, as_task)
        .line(Who::Server, json!({"id": 1, "result": handle}));
    assert_eq!(asked.told(), "[1]");
    let decided = Session::new().call(1, json!({})).line(
        Who::Server,
        json!({"id": 1, "result": {"resultType": "task", "taskId": "t"}}),
    );
    assert_eq!(decided.told(), "[1]");
    let plain = Session::new()
        .call(1, json!({}))
        .line(Who::Server, json!({"id": 1, "result": handle}));
    assert_eq!(plain.told(), "[1] 1=");
}

#[test]
fn the_head_is_what_the_header_and_the_host_say() {
    let hello = |name: Value| json!({"id": 0, "method": "initialize", "params": {"clientInfo": {"name": name}}});
    let meta = |name: &str| {
        let meta = json!({"io.modelcontextprotocol/clientInfo": {"name": name}});
        json!({"id": 0, "method": "server/discover", "params": {"_meta": meta}})
    };
    let model = |lines: &[Value]| {
        let mut session = Session::new();
        for line in lines {
            session = session.line(Who::Client, line.clone());
        }
        episode(&session.log).agent_model
    };
    assert_eq!(model(&[]), "unknown");
    assert_eq!(
        model(&[hello("desk".into()), hello("other".into())]),
        "desk"
    );
    assert_eq!(model(&[hello(Value::Null), hello("other".into())]), "other");
    assert_eq!(model(&[meta("modern"), meta("later")]), "modern");
    assert_eq!(model(&[meta("modern"), hello("legacy".into())]), "legacy");

    let mut session = Session::new().line(Who::Client, hello("desk".into()));
    let plain = episode(&session.log);
    assert_eq!(
        (
            plain.id.as_str(),
            plain.task_id.as_str(),
            plain.trial,
            plain.domain.as_str()
        ),
        ("s", "", 0, "mcp")
    );
    assert!(plain.reward.abs() < f64::EPSILON);
    session.log.header.domain = Some("shop".into());
    session.log.header.agent_model = Some("glm-5".into());
    let named = episode(&session.log);
    assert_eq!(
        (named.domain.as_str(), named.agent_model.as_str()),
        ("shop", "glm-5")
    );
}

#[test]
fn how_many_were_answered_is_counted_within_the_turn() {
    let session = Session::new()
        .call(1, json!({}))
        .call(2, json!({}))
        .answer(1, "a")
        .call(3, json!({}))
        .cancel(2)
        .answer(3, "c")
        .call(4, json!({}))
        .answer(2, "late")
        .answer(4, "d")
        .after(600)
        .call(5, json!({}));
    let (episode, answered) = episode_with_answered(&session.log);
    assert_eq!(episode.assistant_turns(), 2);
    let counts: Vec<_> = ["1", "2", "3", "4", "5"].map(|id| answered[id]).into();
    assert_eq!(counts, [0, 0, 1, 2, 0]);
}

#[test]
fn a_builder_that_is_fed_live_agrees_with_the_log() {
    let session = Session::new()
        .says("user", "hi".into())
        .call(1, json!({}))
        .call(2, json!({}))
        .answer(1, "#W7")
        .line(Who::Server, json!([answer(2.into(), "b")]))
        .call(3, json!({"id": "#W7"}))
        .answer(3, "c");
    let mut builder = EpisodeBuilder::new(&session.log.header);
    for entry in &session.log.entries {
        let Body::Message(message) = &entry.body else {
            continue;
        };
        builder.message(entry.t_ms, entry.from, message);
        assert!(builder.episode().events == builder.events());
    }
    assert_eq!(builder.clone().finish(), episode(&session.log));
    for id in ["1", "2", "3", "4"] {
        assert_eq!(builder.after_call(id), episode(&session.log).after_call(id));
    }
}

#[test]
fn each_step_says_what_it_meant() {
    let first = CallAt { turn: 1, place: 0 };
    let second = CallAt { turn: 1, place: 1 };
    let interim = json!({"id": 2, "result": needs_input()});
    let params = json!({"name": "look", "arguments": {"x": 1}, "requestState": "s"});
    let retry = json!({"id": 3, "method": "tools/call", "params": params});
    let cancel = json!({"method": "notifications/cancelled", "params": {"requestId": 3}});
    let steps = [
        (
            Who::Client,
            json!({"id": 0, "method": "ping"}),
            Effect::None,
        ),
        (
            Who::Context,
            json!({"role": "user", "content": "hi"}),
            Effect::Said(0),
        ),
        (
            Who::Client,
            call(1.into(), json!({})),
            Effect::Called(first),
        ),
        (
            Who::Client,
            call(2.into(), json!({"x": 1})),
            Effect::Called(second),
        ),
        (
            Who::Server,
            answer(1.into(), "a"),
            Effect::Returned {
                call: first,
                event: 2,
            },
        ),
        (Who::Proxy, answer(1.into(), "a and more"), Effect::None),
        (Who::Server, interim, Effect::Interim(second)),
        (Who::Client, retry, Effect::Retried(second)),
        (Who::Client, cancel, Effect::Cancelled(second)),
        (
            Who::Server,
            answer(3.into(), "b"),
            Effect::Returned {
                call: second,
                event: 3,
            },
        ),
        (Who::Server, answer(3.into(), "b"), Effect::None),
    ];
    let mut builder = EpisodeBuilder::new(&Header::new("s", 0, Vec::new()));
    for (from, message, effect) in steps {
        assert_eq!(builder.step(0, from, &message), effect, "{message}");
    }
    assert_eq!(builder.call(second).unwrap().id, "2");
}
