use super::*;

fn builtin(world: crate::cli::WorldName) -> Server {
    Server::new(&Settings {
        world,
        ..Settings::default()
    })
    .unwrap()
}

fn scripted(text: &str) -> Server {
    Server::of(
        Base::Script,
        Some(Script::read(text).unwrap()),
        Era::Legacy,
        Transcript::none(),
    )
}

fn ask(server: &Server, method: &str, params: Value) -> Value {
    let call = Call {
        method: method.into(),
        params,
    };
    let answer = server
        .react(&Message::Request(json!(1), call))
        .answer
        .unwrap();
    serde_json::from_str(&answer).unwrap()
}

#[test]
fn the_shop_as_a_script_answers_like_the_one_built_in() {
    let shop = builtin(crate::cli::WorldName::Retail);
    let script = scripted(include_str!("../../worlds/retail.json"));
    let values = [
        "c7@example.com",
        "c007@example.com",
        "c7@example.com\n",
        " c7@example.com",
        "c@example.com",
        "C7@example.com",
        "c٣@example.com",
        "user_7",
        "user_12",
        "user_",
        "user_7a",
        "#W7a",
        "#W7b",
        "#W007b",
        "#W7c",
        "#Wa",
        "W7a",
        "#W7a ",
        "",
        "no longer needed",
        "ordered by mistake",
        "No longer needed",
        "found it cheaper",
        "{1}",
        "{args.order_id}",
    ];
    let values: Vec<Value> = values
        .iter()
        .map(|text| json!(text))
        .chain([json!(7), json!(null), json!(true), json!(["#W7a"])])
        .collect();
    let mut calls = vec![
        ("initialize", json!({"protocolVersion": "2024-11-05"})),
        ("initialize", json!({})),
        ("ping", json!({})),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("tools/call", json!({})),
        ("tools/call", json!({"name": "nobody", "arguments": {}})),
    ];
    for tool in [
        "find_user_id_by_email",
        "get_user_details",
        "get_order_details",
        "cancel_pending_order",
    ] {
        for arguments in [json!(null), json!([]), json!({}), json!({"delay_ms": -1})] {
            calls.push(("tools/call", json!({"name": tool, "arguments": arguments})));
        }
        for value in &values {
            for other in &values {
                let arguments = json!({"email": value, "user_id": value, "order_id": value, "reason": other, "delay_ms": 0});
                calls.push(("tools/call", json!({"name": tool, "arguments": arguments})));
            }
        }
    }
    assert!(calls.len() > 2000);
    for (method, params) in calls {
        assert_eq!(
            ask(&script, method, params.clone()),
            ask(&shop, method, params.clone()),
            "{method} {params}"
        );
    }
}

#[test]
fn a_delay_is_the_same_in_the_script_and_the_world() {
    let script = scripted(include_str!("../../worlds/retail.json"));
    for delay in [
        json!(40),
        json!(-40),
        json!(4.5),
        json!("40"),
        json!(1_000_000),
    ] {
        let params = json!({"name": "get_user_details", "arguments": {"user_id": "user_7", "delay_ms": delay}});
        let message = Message::Request(
            json!(1),
            Call {
                method: "tools/call".into(),
                params,
            },
        );
        let shop = builtin(crate::cli::WorldName::Retail);
        assert_eq!(
            script.react(&message).delay,
            shop.react(&message).delay,
            "{delay}"
        );
    }
}

#[test]
fn a_list_is_paged_and_its_cursors_are_checked() {
    let server =
        scripted(r#"{"page_size": 2, "tools": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}"#);
    let names = |page: &Value| {
        page["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].clone())
            .collect::<Vec<_>>()
    };
    let first = ask(&server, "tools/list", json!({}));
    assert_eq!(names(&first), ["a", "b"]);
    let second = ask(
        &server,
        "tools/list",
        json!({"cursor": first["result"]["nextCursor"]}),
    );
    assert_eq!(names(&second), ["c"]);
    assert!(second["result"].get("nextCursor").is_none());
    for cursor in [
        json!(""),
        json!("from-3"),
        json!("from-x"),
        json!(2),
        json!(null),
    ] {
        assert_eq!(
            ask(&server, "tools/list", json!({"cursor": cursor}))["error"]["code"],
            -32602,
            "{cursor}"
        );
    }
}

#[test]
fn another_listing_hides_tools_and_refuses_their_calls() {
    let server = scripted(
        r#"{"tools": [{"name": "a"}, {"name": "b"}], "listings": {"v2": {"hide": ["b"]}}, "answers": [{"tool": "*", "text": "x"}]}"#,
    );
    assert_eq!(
        ask(&server, "tools/call", json!({"name": "b"}))["result"]["isError"],
        false
    );
    server.relist("v2");
    assert_eq!(
        ask(&server, "tools/list", json!({}))["result"]["tools"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        ask(&server, "tools/call", json!({"name": "b"}))["error"]["message"],
        "Unknown tool: b"
    );
}

#[test]
fn a_script_says_what_the_server_is() {
    let server = scripted(
        r#"{"server": {"name": "s", "version": "0", "protocol": "2024-11-05", "capabilities": {}}}"#,
    );
    assert_eq!(
        ask(
            &server,
            "initialize",
            json!({"protocolVersion": "2025-06-18"})
        )["result"],
        json!({"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "s", "version": "0"}})
    );
}

#[test]
fn progress_is_sent_for_a_call_with_a_token_and_shares_its_time() {
    let server =
        scripted(r#"{"answers": [{"tool": "a", "progress": 3, "delay_ms": 40, "text": "x"}]}"#);
    let call = |meta: Value| {
        Message::Request(
            json!(1),
            Call {
                method: "tools/call".into(),
                params: json!({"name": "a", "_meta": meta}),
            },
        )
    };
    assert!(server.react(&call(json!({}))).notes.is_empty());
    let reaction = server.react(&call(json!({"progressToken": 0})));
    assert_eq!(reaction.notes.len(), 3);
    let first: Value = serde_json::from_str(&reaction.notes[0].text).unwrap();
    assert_eq!(
        first["params"],
        json!({"progressToken": 0, "progress": 1, "total": 3})
    );
    assert_eq!(
        (reaction.notes[0].wait, reaction.delay),
        (Duration::from_millis(10), Duration::from_millis(10))
    );
}

#[test]
fn an_entry_of_the_timeline_comes_once() {
    let server = scripted(
        r#"{"timeline": [{"after": "call:a", "line": "x"}, {"after": "call:a", "ms": 5, "line": "y"}]}"#,
    );
    assert!(server.due(&Moment::Start).is_empty());
    assert_eq!(server.due(&Moment::Call("a".into())).len(), 2);
    assert!(server.due(&Moment::Call("a".into())).is_empty());
}

#[test]
fn a_world_under_a_script_answers_what_no_rule_does() {
    let script = Script::read(
        r#"{"world": "echo", "answers": [{"tool": "lookup", "nth": 1, "text": "mine"}]}"#,
    )
    .unwrap();
    let server = Server::of(
        Base::World(Box::new(worlds::Echo)),
        Some(script),
        Era::Legacy,
        Transcript::none(),
    );
    let call = json!({"name": "lookup", "arguments": {"a": 1}});
    assert_eq!(
        ask(&server, "tools/call", call.clone())["result"]["content"][0]["text"],
        "mine"
    );
    assert_eq!(
        ask(&server, "tools/call", call)["result"]["content"][0]["text"],
        r#"{"a":1}"#
    );
    assert_eq!(
        ask(&server, "tools/list", json!({}))["result"]["tools"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn a_listing_over_a_world_keeps_what_modern_hosts_see_and_gives_it_no_new_tools() {
    let script = Script::read(
        r#"{"world": "echo", "listings": {"v2": {"hide": ["update"], "tools": [{"name": "new"}]}}}"#,
    )
    .unwrap();
    let server = Server::of(
        Base::World(Box::new(worlds::Echo)),
        Some(script),
        Era::Dual,
        Transcript::none(),
    );
    server.relist("v2");
    let names: Vec<Value> = server
        .modern_tools()
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(names, ["lookup", "ask", "new"]);
    assert_eq!(
        ask(&server, "tools/call", json!({"name": "new"}))["error"]["message"],
        "Unknown tool: new"
    );
    assert_eq!(
        ask(&server, "tools/call", json!({"name": "lookup"}))["result"]["isError"],
        false
    );
}
