//! What is hashed, what stays, and that the two can be told apart by nobody else.

use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::mcp::{Body, Entry, Header, Tools, Who, episode, read_logs};

fn log(session: &str, lines: &[(Who, Value)]) -> Log {
    let entry = |(from, message): &(Who, Value)| Entry {
        t_ms: 1,
        from: *from,
        body: Body::Message(message.clone()),
    };
    Log {
        header: Header::new(session, 0, vec!["server".to_owned()]),
        entries: lines.iter().map(entry).collect(),
        is_cut_off: false,
    }
}

fn options(fields: &[&str]) -> Options {
    let hash_fields = fields.iter().map(|&field| field.to_owned()).collect();
    Options {
        hash_fields,
        ..Options::new("salt")
    }
}

/// The messages of one session, redacted with `fields` forced.
///
/// `common` are words that two more sessions have, too, and so are kept.
fn redacted(lines: &[(Who, Value)], common: &str, fields: &[&str]) -> Vec<Value> {
    let chat = |name: &str| {
        log(
            name,
            &[(Who::Context, json!({"role": "user", "content": common}))],
        )
    };
    let logs = [log("s", lines), chat("s-2"), chat("s-3"), chat("s-4")];
    let redacted = redact(&logs, &options(fields)).swap_remove(0);
    redacted
        .entries
        .into_iter()
        .map(|entry| match entry.body {
            Body::Message(message) => message,
            Body::Raw(raw) => json!({"raw": raw}),
        })
        .collect()
}

fn h(value: &str) -> String {
    hash("salt", &normal(value))
}

fn call(id: u32, arguments: &Value) -> (Who, Value) {
    let params = json!({"name": "look", "arguments": arguments});
    (
        Who::Client,
        json!({"id": id, "method": "tools/call", "params": params}),
    )
}

fn returns(id: u32, result: &Value) -> (Who, Value) {
    (Who::Server, json!({"id": id, "result": result}))
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

#[test]
fn a_hash_is_the_salted_digest_of_the_normal_form() {
    // `printf 'salt\0w7a' | sha256sum`
    assert_eq!(hash("salt", "w7a"), "h_dc8bc9471146");
    assert_eq!(h(" #W7A "), hash("salt", "w7a"));
    assert_ne!(hash("pepper", "w7a"), hash("salt", "w7a"));
    assert!(!format!("{:?}", options(&["name"])).contains("salt\""));
}

#[test]
fn rare_values_become_hashes_wherever_they_appear() {
    let lines = [
        (
            Who::Context,
            json!({"role": "user", "content": "My order is #W7a,  and I'm  c1@x.com!\nThanks"}),
        ),
        call(
            1,
            &json!({"order_id": "#W7a", "email": "c1@x.com", "n": 42, "is": true, "no": null}),
        ),
        returns(
            1,
            &text(r##"{"order": "w7a", "total": 42.5, "items": ["#W7a"]}"##),
        ),
        call(2, &json!({"order_id": ""})),
        returns(2, &text("W7a\npending")),
    ];
    let common = "my order is and i m thanks order_id email n is no total items pending";
    let out = redacted(&lines, common, &[]);
    let (w7a, mail) = (h("w7a"), h("c1@x.com"));
    assert_eq!(
        out[0]["content"],
        format!("My order is #{w7a}, and I'm {mail}!\nThanks")
    );
    assert_eq!(
        out[1]["params"],
        json!({"name": "look", "arguments": {
            "order_id": w7a, "email": mail, "n": h("42"), "is": true, "no": null}})
    );
    assert_eq!(
        out[2]["result"]["content"][0]["text"],
        format!(
            r#"{{"items":["{w7a}"],"order":"{w7a}","total":"{}"}}"#,
            h("42.5")
        )
    );
    assert_eq!(out[3]["params"]["arguments"], json!({"order_id": ""}));
    assert_eq!(
        out[4]["result"]["content"][0]["text"],
        format!("{w7a}\npending")
    );
}

#[test]
fn a_value_counts_once_in_each_session() {
    let said = |session: &str, text: &str| {
        log(
            session,
            &[(Who::Context, json!({"role": "user", "content": text}))],
        )
    };
    let logs = [
        said("a", "x x x y"),
        said("a", "y"),
        said("b", "y"),
        said("c", "y x"),
    ];
    let redacted = redact(&logs, &options(&[]));
    let Body::Message(first) = &redacted[0].entries[0].body else {
        panic!()
    };
    assert_eq!(first["content"], format!("{0} {0} {0} y", h("x")));
}

#[test]
fn what_servers_declare_is_kept_and_what_is_forced_is_not() {
    let tools = json!({"tools": [{"name": "look", "inputSchema": {
        "properties": {"deep": {"items": {"properties": {"inner": {"enum": ["red", "blue"]}}}}}}}]});
    let lines = [
        (Who::Client, json!({"id": 1, "method": "tools/list"})),
        returns(1, &tools),
        call(
            2,
            &json!({"deep": {"inner": "red", "other": "blue"}, "tool": "look"}),
        ),
        returns(2, &text("blue")),
        (
            Who::Context,
            json!({"role": "user", "content": "Look at the red one, not the reddish one"}),
        ),
    ];
    let out = redacted(&lines, "at the one not reddish other tool", &[]);
    assert_eq!(out[1]["result"], tools);
    assert_eq!(
        out[2]["params"]["arguments"],
        json!({"deep": {"inner": "red", "other": "blue"}, "tool": "look"})
    );
    assert_eq!(
        out[4]["content"],
        "Look at the red one, not the reddish one"
    );
    let out = redacted(&lines, "at the one not reddish other tool", &["INNER"]);
    let red = h("red");
    assert_eq!(
        out[2]["params"]["arguments"]["deep"],
        json!({"inner": red, "other": "blue"})
    );
    assert_eq!(
        out[4]["content"],
        format!("Look at the {red} one, not the {red}dish one")
    );
}

#[test]
fn each_word_of_a_forced_value_is_forced_and_names_under_it_are_not() {
    let lines = [
        call(
            1,
            &json!({"name": {"first": "Ann", "last": "Smith Lee"}, "note": "ann called"}),
        ),
        (
            Who::Context,
            json!({"role": "user", "content": "Ann Lee, first of all"}),
        ),
    ];
    let out = redacted(
        &lines,
        "ann lee smith first last of all note called name",
        &["name"],
    );
    assert_eq!(out[0]["params"]["name"], "look");
    assert_eq!(
        out[0]["params"]["arguments"],
        json!({"name": {"first": h("ann"), "last": h("smith lee")}, "note": h("ann called")})
    );
    assert_eq!(
        out[1]["content"],
        format!("{} {}, first of all", h("ann"), h("lee"))
    );
}

#[test]
fn a_value_of_several_words_is_found_in_the_conversation() {
    let lines = [
        call(1, &json!({"x": 1})),
        returns(
            1,
            &text(r#"{"x": "Desk Lamp", "y": "desk lamp, black (big)"}"#),
        ),
        (
            Who::Context,
            json!({"role": "user", "content":
            "The **desk  lamp** is nice; the Desk lamp: black, big one too.\nA desk\nlamp"}),
        ),
    ];
    let out = redacted(
        &lines,
        "the is nice one too a desk lamp black big x y 1",
        &[],
    );
    let (lamp, black) = (h("desk lamp"), h("desk lamp, black (big)"));
    assert_eq!(
        out[2]["content"],
        format!("The **{lamp}** is nice; the {black} one too.\nA desk\nlamp")
    );
}

#[test]
fn the_proxys_own_answers_are_read_part_by_part() {
    let looked_up = "--- Also looked up automatically (current results; no need to repeat these calls) ---\n\n\
        look {\"id\":\"#W7\"}:\n{\"id\": \"#W7\",\n \"n\": 1}\n\nlook {\"id\":\"#W8\"}:\nnothing\n#W8";
    let commit = "look {\"id\":\"#W7\"} (error):\nno such #W7\n\n\
        look {\"id\":\"#W8\"} was refused by the policy check: '#W8' is not yours\n\nlook {\"id\":\"#W9\"} was not run";
    let own = |id: u32, text: &str| (Who::Proxy, json!({"id": id, "result": self::text(text)}));
    let lines = [
        call(1, &json!({})),
        own(1, looked_up),
        call(2, &json!({})),
        own(2, commit),
    ];
    let out = redacted(&lines, "id n 1 nothing is not yours no such", &[]);
    let (w7, w8, w9) = (h("w7"), h("w8"), h("w9"));
    let header = looked_up.split_once('\n').unwrap().0;
    assert_eq!(
        out[1]["result"]["content"][0]["text"],
        format!(
            "{header}\n\nlook {{\"id\":\"{w7}\"}}:\n{{\"id\":\"{w7}\",\"n\":1}}\n\n\
             look {{\"id\":\"{w8}\"}}:\nnothing\n{w8}"
        )
    );
    assert_eq!(
        out[3]["result"]["content"][0]["text"],
        format!(
            "look {{\"id\":\"{w7}\"}} (error):\n{}\n\n\
             look {{\"id\":\"{w8}\"}} was refused by the policy check: '#{w8}' is not yours\n\n\
             look {{\"id\":\"{w9}\"}} was not run",
            h("no such #W7")
        )
    );
}

#[test]
fn errors_are_read_word_by_word_and_their_data_as_arguments() {
    let error = json!({"code": -32000, "message": "no user Ann\nat all", "data": {"user": "Ann", "email": "a@b.c"}});
    let lines = [
        call(1, &json!({})),
        (Who::Server, json!({"id": 1, "error": error})),
    ];
    let out = redacted(&lines, "no user at all email", &["email"]);
    let ann = h("ann");
    assert_eq!(
        out[1]["error"],
        json!({"code": -32000, "message": format!("no user {ann}\nat all"),
            "data": {"user": ann, "email": h("a@b.c")}})
    );
}

#[test]
fn batches_other_methods_and_the_servers_own_requests_are_read_too() {
    let secret = h("secret");
    let content = |text: &str| json!({"type": "text", "text": text});
    let resource = |text: &str, blob: &str| json!([{"uri": text, "mimeType": "a/b", "text": text}, {"uri": text, "blob": blob}]);
    let lines = [
        (
            Who::Client,
            json!([call(1, &json!({"x": "secret"})).1, {"id": 2, "method": "resources/read",
            "params": {"uri": "secret"}}]),
        ),
        (
            Who::Server,
            json!([{"id": 2, "result": {"contents": resource("secret", "QUJD")}}]),
        ),
        (
            Who::Server,
            json!({"id": 1, "method": "elicitation/create", "params": {"message": "secret",
            "requestedSchema": {"secret": {"type": "string"}}}}),
        ),
        (
            Who::Client,
            json!({"id": 1, "result": {"action": "accept", "content": {"type": "secret", "x": "secret"}}}),
        ),
        (
            Who::Server,
            json!({"id": 2, "method": "sampling/createMessage", "params": {
            "messages": [{"role": "user", "content": content("secret")}], "maxTokens": 7}}),
        ),
        (
            Who::Client,
            json!({"id": 2, "result": {"role": "assistant", "model": "secret", "content": content("secret")}}),
        ),
        (
            Who::Server,
            json!({"method": "notifications/message", "params": {"level": "info", "data": "secret"}}),
        ),
        (
            Who::Client,
            json!({"method": "notifications/cancelled", "params": {"requestId": 1, "reason": "secret"}}),
        ),
        (
            Who::Server,
            json!({"id": 1, "result": {"content": [
            {"type": "image", "mimeType": "image/png", "data": "QUJD"},
            {"type": "resource_link", "uri": "secret", "name": "secret"},
            {"type": "resource", "resource": {"uri": "secret", "text": "{\"x\": \"secret\"}"}}],
            "structuredContent": {"type": "secret"}, "_meta": {"secret": 1, "progressToken": "t",
            "io.modelcontextprotocol/serverInfo": {"name": "srv"}}}}),
        ),
        (Who::Server, json!("secret")),
        (
            Who::Context,
            json!({"role": "user", "content": [content("secret x")], "name": "secret"}),
        ),
    ];
    let out = redacted(&lines, "x string type 1 7", &[]);
    let expected =
        serde_json::to_string(&lines.iter().map(|(_, line)| line).collect::<Vec<_>>()).unwrap();
    let expected = expected
        .replace("secret", &secret)
        .replace("QUJD", &h("QUJD"))
        .replace(": \\\"", ":\\\"");
    assert_eq!(
        Value::from(out),
        serde_json::from_str::<Value>(&expected).unwrap()
    );
}

#[test]
fn introductions_stay_and_raw_lines_are_rewritten_without_counting() {
    let hello =
        json!({"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "desk"}}});
    let welcome =
        json!({"id": 0, "result": {"serverInfo": {"name": "shop"}, "instructions": "rare words"}});
    let lines = [(Who::Client, hello.clone()), (Who::Server, welcome.clone())];
    assert_eq!(redacted(&lines, "", &[]), [hello, welcome]);

    let raw = |session: &str| {
        let mut log = log(session, &[]);
        log.entries.push(Entry {
            t_ms: 0,
            from: Who::Server,
            body: Body::Raw("user  ann\nlogged in".into()),
        });
        log
    };
    let redacted = redact(&["a", "b", "c", "d"].map(raw), &options(&[]));
    let expected = ["user", "ann", "logged", "in"].map(h);
    let [user, ann, logged, inn] = expected;
    assert_eq!(
        redacted[0].entries[0].body,
        Body::Raw(format!("{user} {ann}\n{logged} {inn}"))
    );
}

#[test]
fn names_that_become_the_same_are_both_kept() {
    let lines = [call(1, &json!({"#W1": 1, "W1": 2, "w1": 3}))];
    let out = redacted(&lines, "1 2 3", &[]);
    let w1 = h("w1");
    let expected = json!({w1.clone(): 1, format!("{w1}_2"): 2, format!("{w1}_3"): 3});
    assert_eq!(out[0]["params"]["arguments"], expected);
}

fn recorded(part: &str) -> Vec<Log> {
    read_logs(
        &Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data")
            .join(part),
    )
    .unwrap()
}

#[test]
fn recorded_sessions_keep_their_shape_and_lose_their_customers() {
    let logs = recorded("demo-shop");
    let copies = redact(&logs, &options(&[]));
    for (log, copy) in logs.iter().zip(&copies) {
        let mut written = Vec::new();
        copy.write(&mut written).unwrap();
        assert_eq!(&Log::parse(&written).unwrap(), copy);
        assert_eq!(copy.header, log.header);
        assert_eq!(Tools::of(copy), Tools::of(log));
        let (before, after) = (episode(log), episode(copy));
        assert_eq!(before.events.len(), after.events.len());
        for (before, after) in before.tool_calls().zip(after.tool_calls()) {
            assert_eq!((&before.id, &before.name), (&after.id, &after.name));
        }
        let written = String::from_utf8(written).unwrap();
        for private in [
            "c1@example.com",
            "c41@example",
            "c61@",
            "user_41",
            "#W61a",
            "W41b",
            "credit_card_61",
        ] {
            assert!(!written.contains(private), "{private}");
        }
    }
    assert_eq!(copies, redact(&logs, &options(&[])));
    let other = Options {
        salt: "other".to_owned(),
        ..options(&[])
    };
    assert_ne!(copies, redact(&logs, &other));
}

#[test]
fn each_argument_is_still_found_where_it_came_from() {
    for part in ["demo-shop", "airline"] {
        let logs = recorded(part);
        for (log, copy) in logs.iter().zip(redact(&logs, &options(&[]))) {
            let (before, after) = (episode(log), episode(&copy));
            let arguments = before.tool_calls().zip(after.tool_calls());
            for (before_call, after_call) in arguments {
                let (Value::Object(old), Value::Object(new)) =
                    (&before_call.arguments, &after_call.arguments)
                else {
                    continue;
                };
                for (old, new) in old.values().zip(new.values()) {
                    let (Value::String(old), Value::String(new)) = (old, new) else {
                        continue;
                    };
                    let was_said = |episode: &crate::Episode, value: &str| {
                        serde_json::to_string(&episode.events)
                            .unwrap()
                            .matches(value)
                            .count()
                            > 1
                    };
                    if old
                        .trim_start_matches('#')
                        .chars()
                        .all(|c| c.is_alphanumeric() || c == '_')
                    {
                        assert_eq!(was_said(&before, old), was_said(&after, new), "{old} {new}");
                    }
                }
            }
        }
    }
}

#[test]
fn logs_that_are_counted_apart_are_redacted_as_if_counted_together() {
    for part in ["demo-shop", "airline"] {
        let logs = recorded(part);
        for keep_shared in 1..=4 {
            let options = Options {
                keep_shared,
                ..options(&["user_id"])
            };
            let [mut one, mut other] = [(); 2].map(|()| Census::new(&options));
            for (at, log) in logs.iter().enumerate() {
                // One is met by both.
                if at % 2 == 0 {
                    one.count(log);
                }
                if at % 2 == 1 || at == 0 {
                    other.count(log);
                }
            }
            one.join(other);
            let redactor = one.finish();
            let mut hashes = Hashes::default();
            let copies: Vec<Log> = logs
                .iter()
                .map(|log| redactor.redact(log, &mut hashes))
                .collect();
            assert_eq!(copies, redact(&logs, &options), "{part}, {keep_shared}");
        }
    }
}
