//! What a person gets to read who has made a slip, and what the reader makes of a file without one.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::step::{Act, Awaited};
use super::*;

/// A scenario with this in it before the steps, and these steps.
fn file(head: &str, steps: &str) -> String {
    format!("title = \"x\"\n{head}\nsteps = [\n{steps}\n]\n")
}

fn read_file(text: &str) -> Result<Vec<Scenario>, Slips> {
    read_text(Path::new("scenarios/x.toml"), "x", text)
}

fn slips(text: &str) -> Vec<String> {
    match read_file(text) {
        Ok(_) => Vec::new(),
        Err(Slips(slips)) => slips.iter().map(ToString::to_string).collect(),
    }
}

#[track_caller]
fn assert_slip(text: &str, line: usize, what: &str) {
    let slips = slips(text);
    let place = format!("scenarios/x.toml:{line}: ");
    let found = slips
        .iter()
        .any(|slip| slip.starts_with(&place) && slip.contains(what));
    assert!(found, "wanted {place}…{what}, got {slips:?}");
}

#[test]
fn a_slip_in_a_step_names_the_line_and_what_is_allowed() {
    let table: [(&str, &str); 25] = [
        (
            "{ call = \"a\", arg = {} }",
            "unknown field `arg`, expected one of `handshake`",
        ),
        (
            "{ call = \"a\", raw = \"b\" }",
            "a step does one thing, and this one says call and raw",
        ),
        (
            "{ args = {} }",
            "a step does one thing, and this one says nothing; it is one of handshake",
        ),
        (
            "{ request = \"a\", args = {} }",
            "`args` goes with call, and this step says request",
        ),
        (
            "{ notify = \"a\", contains = \"b\" }",
            "`contains` goes with handshake, request, call, expect",
        ),
        (
            "{ call = \"a\", wait = false, contains = \"b\" }",
            "with `wait = false` no answer is waited for",
        ),
        ("{ call = \"a\", id = 1.5, wait = \"no\" }", "invalid type"),
        ("{ call = \"a\", id = [1] }", "an id is a number or a text"),
        (
            "{ call = \"a\", is_error = true, fails = \"b\" }",
            "an answer is one of them",
        ),
        (
            "{ call = \"a\", only = false }",
            "`only` is true or left out",
        ),
        (
            "{ expect = 7 }",
            "no step before this one sends a request with the id 7",
        ),
        (
            "{ expect = true }",
            "`expect` is an id, a method, \"error\" or \"line\"",
        ),
        ("{ bytes = \"7b f\" }", "pairs of hexadecimal digits"),
        ("{ bytes = \"zz\" }", "pairs of hexadecimal digits"),
        (
            "{ say = \"system\", text = \"a\" }",
            "`say` is \"user\" or \"assistant\"",
        ),
        ("{ say = \"user\" }", "needs the words"),
        (
            "{ think = \"600\" }",
            "a time is a number and ms, s, m, h or d",
        ),
        (
            "{ close = \"stderr\" }",
            "`close` is \"stdin\" or \"stdout\"",
        ),
        (
            "{ signal = \"USR1\" }",
            "knows the signals TERM, INT, HUP, KILL",
        ),
        (
            "{ exit = \"STOP\" }",
            "knows the signals TERM, INT, HUP, KILL",
        ),
        ("{ exit = 256 }", "a code from 0 to 255"),
        ("{ stop_reading = false }", "is true or left out"),
        (
            "{ answer = 1, result = {}, error = {} }",
            "a result or an error, not both",
        ),
        (
            "{ call = \"a\", take = { x = \"no group\" } }",
            "has none; put it in brackets",
        ),
        ("{ call = \"a\", take = { x = \"(\" } }", "unclosed group"),
    ];
    for (step, what) in table {
        // The step stands on the fifth line, after another one.
        assert_slip(
            &file("", &format!("  {{ request = \"ping\" }},\n  {step},")),
            5,
            what,
        );
    }
}

#[test]
fn a_slip_outside_the_steps_names_its_line() {
    let ping = "  { request = \"ping\" },";
    let table = [
        ("colour = \"red\"", 2, "unknown field `colour`"),
        ("over = []", 2, "`over` names stdio, http or both"),
        ("over = [\"stdio\", \"stdio\"]", 2, "each once"),
        (
            "over = [\"tcp\"]",
            2,
            "unknown variant `tcp`, expected `stdio` or `http`",
        ),
        ("patience = \"long\"", 2, "a time is a number and"),
        ("\nages = { \"a\" = \"3d\" }", 3, "which `files` does not"),
        ("files = { \"../a\" = \"\" }", 2, "stays inside it"),
        ("files = { \"/a\" = \"\" }", 2, "stays inside it"),
        (
            "command = [\"cat\"]\nserver = [\"--world\", \"retail\"]",
            2,
            "`command` is another server",
        ),
        (
            "command = [\"cat\"]\nover = [\"http\"]",
            2,
            "over http only the demo server",
        ),
        ("script = 5", 2, "a table, or the path of a JSON file"),
        (
            "script = {}\nserver = [\"--world\", \"echo\"]",
            3,
            "in place of a world",
        ),
        ("changing = { time = \"a\" }", 2, "a name in capitals"),
        ("changing = { TIME = \"(\" }", 2, "unclosed group"),
        ("env = { A = 2026-01-01 }", 2, "JSON has no dates"),
        ("script = { a = nan }", 2, "JSON has no nan"),
        ("cases = []", 2, "`cases` is empty"),
        ("cases = [{ a = 1 }]", 2, "a case needs a `name`"),
        (
            "cases = [{ name = \"A b\" }]",
            2,
            "small letters, digits and hyphens",
        ),
        (
            "cases = [{ name = \"a\" }, { name = \"a\" }]",
            2,
            "two cases are called `a`",
        ),
        (
            "cases = [{ name = \"a\", B = 1 }]",
            2,
            "small letters, digits and `_`",
        ),
        (
            "cases = [{ name = \"a\", unused = 1 }]",
            2,
            "nothing in this file says $unused",
        ),
    ];
    for (head, line, what) in table {
        assert_slip(&file(head, ping), line, what);
    }
    assert_slip(
        "title = \" \"\nsteps = [{ request = \"ping\" }]",
        1,
        "it is empty",
    );
    assert_slip("title = \"x\"\nsteps = []", 2, "does nothing");
    assert_slip("title = \"x\"", 1, "missing field `steps`");
    assert_slip("title = \"x\"\nsteps = [", 2, "");
}

#[test]
fn a_placeholder_that_nothing_sets_is_a_slip_on_its_line() {
    assert_slip(
        &file("proxy = [\"$LOG\"]", "{ request = \"ping\" }"),
        2,
        "there is no placeholder $LOG; there are $DIR",
    );
    assert_slip(
        &file("", "{ call = \"a\", args = { b = [\"$order\"] } }"),
        4,
        "there is no placeholder $order",
    );
    assert_slip(
        &file(
            "",
            "{ call = \"a\", contains = \"$x\", take = { x = \"(a)\" } }",
        ),
        4,
        "no placeholder $x",
    );
    assert_slip(
        &file("", "{ call = \"a\", take = { X = \"(a)\" } }"),
        4,
        "a name in small letters",
    );
    assert_slip(
        &file(
            "script.tools = [{ ref = \"#/$defs/a\" }]",
            "{ request = \"ping\" }",
        ),
        2,
        "written $$",
    );
}

#[test]
fn what_was_taken_can_be_used_in_later_steps() {
    let text = file(
        "",
        "{ call = \"a\", take = { x = \"(a)\" } },\n{ call = \"b\", args = { x = \"$x\" } }",
    );
    assert_eq!(slips(&text), Vec::<String>::new());
}

#[test]
fn a_step_that_can_never_be_done_is_a_slip() {
    let table = [
        (
            "{ exit = 0 },\n{ request = \"ping\" }",
            "never reached: the proxy has ended at line 4",
        ),
        (
            "{ close = \"stdin\" },\n{ request = \"ping\" }",
            "closed the proxy's stdin at line 4",
        ),
        (
            "{ close = \"stdin\" },\n{ close = \"stdin\" }",
            "closed the proxy's stdin at line 4",
        ),
        (
            "{ close = \"stdout\" },\n{ request = \"ping\" }",
            "closed the proxy's stdout at line 4",
        ),
        (
            "{ close = \"stdout\" },\n{ expect = \"error\" }",
            "so it hears nothing",
        ),
        (
            "{ stop_reading = true },\n{ request = \"ping\" }",
            "`read_on` comes first",
        ),
        (
            "{ request = \"ping\" },\n{ read_on = true }",
            "has not stopped reading",
        ),
    ];
    for (steps, what) in table {
        assert_slip(&file("", steps), 5, what);
    }
    assert_slip(
        &file("command = [\"cat\"]", "{ reached_server = \"a\" }"),
        4,
        "only the demo server tells",
    );
}

#[test]
fn what_looks_back_may_stand_after_the_exit() {
    let text = file(
        "",
        "{ call = \"a\", wait = false },\n{ exit = 3 },\n{ reached_server = \"a\", times = 1 },\n{ stderr = \"x\" }",
    );
    assert_eq!(slips(&text), Vec::<String>::new());
}

#[test]
fn several_slips_are_told_at_once() {
    let text = file("", "{ think = \"1\" },\n{ bytes = \"z\" }");
    assert_eq!(slips(&text).len(), 2);
}

fn ids(steps: &str) -> Vec<Value> {
    let scenario = read_file(&file("", steps)).unwrap().remove(0);
    let id = |step: &Step| match &step.act {
        Act::Request { id, .. } | Act::Handshake { id, .. } => Some(id.clone()),
        _ => None,
    };
    scenario.steps.iter().filter_map(id).collect()
}

#[test]
fn ids_count_from_one_and_never_meet_one_that_was_given() {
    let given = ids(
        "{ handshake = \"v\" },\n{ request = \"a\" },\n{ request = \"b\", id = 7 },\n{ request = \"c\" },\n\
         { request = \"d\", id = \"x\" },\n{ raw = '{\"id\":20,\"method\":\"e\"}' },\n{ request = \"f\" }",
    );
    assert_eq!(
        given,
        [
            json!(1),
            json!(2),
            json!(7),
            json!(8),
            json!("x"),
            json!(21)
        ]
    );
}

#[test]
fn a_text_is_an_id_when_a_request_has_it_and_a_method_when_none_has() {
    let text = file(
        "",
        "{ request = \"ping\", id = \"a/b\" },\n{ expect = \"a/b\" },\n{ expect = \"roots/list\" },\n{ expect = \"line\" }",
    );
    let scenario = read_file(&text).unwrap().remove(0);
    let awaited: Vec<&Awaited> = scenario
        .steps
        .iter()
        .filter_map(|step| match &step.act {
            Act::Expect(awaited) => Some(awaited),
            _ => None,
        })
        .collect();
    assert_eq!(
        awaited,
        [
            &Awaited::Response(json!("a/b")),
            &Awaited::Message("roots/list".into()),
            &Awaited::Line
        ]
    );
}

#[test]
fn each_case_is_a_scenario_with_its_own_values() {
    let text = file(
        "proxy = \"$words\"\ncases = [\n{ name = \"one\", words = [\"a\", \"b\"], code = 3, text = \"x$$DIR\" },\n{ name = \"two\", words = [], code = \"TERM\", text = \"\" },\n]",
        "{ raw = \"<$text:$code>\" },\n{ exit = \"$code\" }",
    );
    let scenarios = read_file(&text).unwrap();
    let names: Vec<&str> = scenarios
        .iter()
        .map(|scenario| scenario.name.as_str())
        .collect();
    assert_eq!(names, ["x/one", "x/two"]);
    assert_eq!(scenarios[0].proxy, ["a", "b"]);
    assert!(scenarios[1].proxy.is_empty());
    assert!(matches!(
        scenarios[0].steps[1].act,
        Act::Exit(step::ExitAs::Code(3))
    ));
    assert!(matches!(
        scenarios[1].steps[1].act,
        Act::Exit(step::ExitAs::Signal(step::SignalName::Term))
    ));
    let Act::Raw {
        bytes: step::RawBytes::Text(raw),
        ..
    } = &scenarios[0].steps[0].act
    else {
        panic!()
    };
    assert_eq!(raw, "<x$$DIR:3>");
}

#[test]
fn a_file_that_says_little_has_the_usual_values() {
    let scenario = read_file(&file("", "{ request = \"ping\" }"))
        .unwrap()
        .remove(0);
    assert_eq!(scenario.over, [Transport::Stdio]);
    assert_eq!(scenario.patience, Duration::from_secs(20));
    assert!(
        matches!(&scenario.server, Server::Demo { options, script: None } if *options == ["--world", "echo"])
    );
    let empty = read_file(&file("command = []", "{ exit = 2 }"))
        .unwrap()
        .remove(0);
    assert!(matches!(empty.server, Server::Absent));
}

#[test]
fn the_schema_in_the_package_is_the_one_that_the_reader_has() {
    let written = include_str!("../../scenario.schema.json");
    assert_eq!(
        written,
        schema_text(),
        "write it anew: stretto-harness schema > harness/scenario.schema.json"
    );
}
