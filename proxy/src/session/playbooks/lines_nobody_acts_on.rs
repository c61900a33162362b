//! With everything switched on, what nobody acts on passes as it came.

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
