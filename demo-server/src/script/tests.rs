use super::*;

fn wrong(text: &str) -> String {
    Script::read(text).unwrap_err().to_string()
}

#[test]
fn an_empty_script_is_a_server_without_tools() {
    let script = Script::read("{}").unwrap();
    assert!(script.listing.tools.is_empty() && script.concurrent && !script.describes_a_server);
}

#[test]
fn a_typo_is_named_with_its_line_and_what_is_allowed() {
    let said = wrong("{\n  \"script\": 1,\n  \"anwsers\": []\n}");
    assert!(
        said.starts_with(
            "the script: line 3, column 11: unknown field `anwsers`, expected one of `script`"
        ),
        "{said}"
    );
    let said = wrong("{\"answers\": [\n{\"tool\": \"a\", \"fault\": {\"exitt\": 3}}]}");
    assert!(
        said.starts_with(
            "the script: line 2, column 31: unknown field `exitt`, expected one of `exit`"
        ),
        "{said}"
    );
    let said = wrong("{");
    assert!(
        said.starts_with("the script: line 1, column 1: EOF"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_meant_is_named_with_its_place() {
    for (text, said) in [
        ("[]", "a script is an object"),
        (
            r#"{"script": 2}"#,
            "script: this program reads scripts of version 1, and not 2",
        ),
        (
            r#"{"world": "shop"}"#,
            "world: it is `echo` or `retail`, and not `shop`",
        ),
        (
            r#"{"world": "echo", "tools": [{"name": "a"}]}"#,
            "tools: a built-in `world` has tools of its own; a listing may add others",
        ),
        (r#"{"tools": [1]}"#, "tools[0]: a tool is an object"),
        (
            r#"{"tools": [{"name": "a"}, {}]}"#,
            "tools[1]: a tool has a `name`, which is text",
        ),
        (
            r#"{"answers": [{"tool": "a", "text": "x"}, {"tool": "a"}]}"#,
            "answers[1]: a rule that does nothing: it needs an answer, a `fault`, a `delay_ms` or `progress`",
        ),
        (
            r#"{"timeline": [{"after": "start", "relist": "v2"}]}"#,
            "timeline[0]: relist: `listings` has none, and not `v2`",
        ),
        (
            r#"{"answers": [{"name": "a", "tool": "a", "text": "x"}], "timeline": [{"name": "a", "after": "start", "line": "x"}]}"#,
            "two of its rules and entries are called `a`",
        ),
    ] {
        assert_eq!(wrong(text), format!("the script: {said}"), "{text}");
    }
    assert!(
        wrong(r#"{"tools": [{"name": "a", "desc": "x"}]}"#)
            .starts_with("the script: tools[0]: unknown member `desc`; a tool has `name`")
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let said = Script::load(Path::new("nowhere.json"))
        .unwrap_err()
        .to_string();
    assert_eq!(said, "reading the script nowhere.json");
}

#[test]
fn a_listing_hides_changes_and_adds_tools() {
    let script = Script::read(
        r#"{"tools": [{"name": "a"}, {"name": "b", "annotations": {"readOnlyHint": true}}, {"name": "c"}],
            "listings": {"v2": {"hide": ["c"], "hint": {"b": null, "a": false}, "tools": [{"name": "d"}, {"name": "a", "title": "A"}]}}}"#,
    )
    .unwrap();
    let v2 = script.listings["v2"].apply(&script.listing.tools);
    let schema = json!({"type": "object"});
    assert_eq!(
        v2.tools,
        [
            json!({"name": "a", "title": "A", "inputSchema": schema, "annotations": {"readOnlyHint": false}}),
            json!({"name": "b", "inputSchema": schema, "annotations": {}}),
            json!({"name": "d", "inputSchema": schema}),
        ]
    );
    assert_eq!(v2.hidden, ["c"]);
}

#[test]
fn a_fault_that_could_not_fire_is_refused_where_the_script_is_used() {
    let cut = Script::read(r#"{"answers": [{"tool": "a", "fault": {"cut": 1}}]}"#).unwrap();
    assert!(cut.check_use(true, None).is_ok());
    let said = cut.check_use(false, None).unwrap_err().to_string();
    assert_eq!(
        said,
        "the script: answers[0]: fault: `cut` happens over HTTP only, and would never fire"
    );
    let eof = Script::read(r#"{"timeline": [{"after": "start", "fault": {"ignore_eof": true}}]}"#)
        .unwrap();
    assert!(eof.check_use(false, None).is_ok());
    assert!(eof.check_use(true, None).is_err());
}

#[test]
fn where_another_server_answers_a_script_brings_none() {
    let faults = Script::read(r#"{"answers": [{"tool": "a", "fault": {"twice": true}}]}"#).unwrap();
    assert!(faults.check_use(false, Some("--over")).is_ok());
    let server = Script::read(r#"{"tools": [{"name": "a"}]}"#).unwrap();
    assert!(
        server
            .check_use(false, Some("--over"))
            .unwrap_err()
            .to_string()
            .contains("with --over")
    );
}

#[test]
fn no_edit_of_a_script_is_more_than_the_reader_can_take() {
    // Bytes are taken out, doubled and exchanged at places that a small generator draws.
    let whole = include_bytes!("../../worlds/retail.json");
    let mut draw = 1_u64;
    let mut next = |below: usize| {
        draw = draw
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(draw >> 33).unwrap() % below
    };
    let mut read = 0;
    for _ in 0..500 {
        let mut bytes = whole.to_vec();
        for _ in 0..=next(3) {
            let at = next(bytes.len());
            let byte = bytes[next(bytes.len())];
            match next(3) {
                0 => drop(bytes.remove(at)),
                1 => bytes.insert(at, byte),
                _ => bytes[at] = byte,
            }
        }
        read += usize::from(String::from_utf8(bytes).is_ok_and(|text| Script::read(&text).is_ok()));
    }
    assert!(read > 0 && read < 500, "{read}");
}
