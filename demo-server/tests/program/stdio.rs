//! The built-in worlds over stdio.

use serde_json::{Value, json};

use crate::{answers, run};

pub(crate) fn each_kind_of_line_gets_the_answer_of_the_table() {
    let input = r#"
hello
[{"id":1,"method":"ping"}]
{"method":"notifications/initialized"}
{"id":null,"method":"ping"}
{"id":5,"result":{}}
{"id":6,"method":"initialize","params":{"protocolVersion":"2030-01-01"}}
{"id":7,"method":"initialize"}
{"id":"8","method":"ping"}
{"id":9,"method":"tools/list"}
{"id":10,"method":"tools/call","params":{"name":"lookup","arguments":{"text":"hello"}}}
{"id":11,"method":"tools/call","params":{"name":"update","arguments":{"fail":true}}}
{"id":12,"method":"tools/call","params":{"name":"nobody"}}
{"id":13,"method":"tools/call"}
{"id":14,"method":"prompts/list"}
"#;
    let answers = answers(&[], input);
    let brief: Vec<Value> = answers
        .iter()
        .map(|a| json!([a["id"], a["error"]["code"], a["error"]["message"]]))
        .collect();
    assert_eq!(brief[0][1], -32700);
    assert_eq!(brief[1][1], -32600);
    assert_eq!(answers[2]["id"], 6);
    assert_eq!(answers[2]["result"]["protocolVersion"], "2030-01-01");
    assert_eq!(
        answers[2]["result"]["capabilities"],
        json!({"tools": {"listChanged": false}})
    );
    assert_eq!(
        answers[2]["result"]["serverInfo"]["name"],
        "stretto-mcp-demo"
    );
    assert_eq!(answers[3]["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(
        answers[4],
        json!({"jsonrpc": "2.0", "id": "8", "result": {}})
    );
    assert_eq!(answers[5]["result"]["tools"][0]["name"], "lookup");
    assert_eq!(
        answers[6]["result"],
        json!({"content": [{"type": "text", "text": r#"{"text":"hello"}"#}], "isError": false})
    );
    assert_eq!(answers[7]["result"]["isError"], true);
    assert_eq!(brief[8], json!([12, -32602, "Unknown tool: nobody"]));
    assert_eq!(brief[9], json!([13, -32602, "Unknown tool: "]));
    assert_eq!(brief[10][1], -32601);
    assert!(brief[10][2].as_str().unwrap().contains("prompts/list"));
    assert_eq!(answers.len(), 11);
}

pub(crate) fn a_wrong_command_line_shows_the_usage_and_exits_2() {
    for options in [
        &["--wrld"][..],
        &["--world"],
        &["--hint", "a=yes"],
        &["--help", "--version"],
        &["--close"],
    ] {
        let output = run(options, "");
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(output.stdout.is_empty(), "{options:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("Usage: stretto-mcp-demo"),
            "{options:?}"
        );
    }
}

pub(crate) fn help_and_version_go_to_stdout() {
    let output = run(&["--help"], "");
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        stretto_demo_server::USAGE
    );
    let output = run(&["-V"], "");
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        format!("stretto-mcp-demo {}\n", env!("CARGO_PKG_VERSION"))
    );
}

pub(crate) fn hidden_tools_are_unknown() {
    let input = r#"{"id":1,"method":"tools/list"}
{"id":2,"method":"tools/call","params":{"name":"get_user_details","arguments":{"user_id":"user_7"}}}
"#;
    let answers = answers(&["--world", "retail", "--hide", "get_user_details"], input);
    assert_eq!(answers[0]["result"]["tools"].as_array().unwrap().len(), 3);
    assert_eq!(
        answers[1]["error"],
        json!({"code": -32602, "message": "Unknown tool: get_user_details"})
    );
}
