//! What crosses the proxy is what came in, and the log says what crossed.

use std::{fs, io::Write, thread};

use crate::support::{Proxy, Session, fifo, release};

/// A line, and what the log has to hold of it. Rust's spelling, so `\\` is one backslash.
const ROWS: &[(&[u8], &str)] = &[
    (
        br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        r#"message:{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
    ),
    (
        b"{\"id\":2,\"method\":\"ping\"}\r",
        r#"message:{"id":2,"method":"ping"}"#,
    ),
    (
        b" \t { \"b\" : 1 ,\t\"a\" : [ ] } \t",
        "message:{ \"b\" : 1 ,\t\"a\" : [ ] }",
    ),
    (
        br#"[{"id":3,"method":"a"},{"id":4,"method":"b"}]"#,
        r#"message:[{"id":3,"method":"a"},{"id":4,"method":"b"}]"#,
    ),
    (b"", r#"raw:"""#),
    (b"\r", r#"raw:"""#),
    (b"null", "message:null"),
    (b"-12", "message:-12"),
    (br#""text""#, r#"message:"text""#),
    (b"Listening on stdio", r#"raw:"Listening on stdio""#),
    (br#"{"id":5} {"id":6}"#, r#"raw:"{\"id\":5} {\"id\":6}""#),
    (br#"{"id":7} and more"#, r#"raw:"{\"id\":7} and more""#),
    (br#"1,"raw":"forged""#, r#"raw:"1,\"raw\":\"forged\"""#),
    (
        br#"1},{"t_ms":0,"from":"proxy","message":2"#,
        r#"raw:"1},{\"t_ms\":0,\"from\":\"proxy\",\"message\":2""#,
    ),
    (
        b"{\"t\":\"\xff\xfe\"}",
        "raw:\"{\\\"t\\\":\\\"\u{fffd}\u{fffd}\\\"}\"",
    ),
    (
        b"{\"t\":\"\xe2\x82\"}",
        "raw:\"{\\\"t\\\":\\\"\u{fffd}\\\"}\"",
    ),
    (br#"{"lone":"\ud800"}"#, r#"raw:"{\"lone\":\"\\ud800\"}""#),
    (
        br#"{"pair":"\ud83d\ude00 \u00e9"}"#,
        r#"message:{"pair":"\ud83d\ude00 \u00e9"}"#,
    ),
    (br#"{"n":1e999}"#, r#"raw:"{\"n\":1e999}""#),
    (
        br#"{"n":12345678901234567890123,"f":1.0,"e":1E2,"z":-0.0}"#,
        r#"message:{"n":12345678901234567890123,"f":1.0,"e":1E2,"z":-0.0}"#,
    ),
    (br#"{"k":1,"k":2}"#, r#"message:{"k":1,"k":2}"#),
    (
        "{\"t\":\"caf\u{e9} \u{1f600}\"}".as_bytes(),
        "message:{\"t\":\"caf\u{e9} \u{1f600}\"}",
    ),
    (
        b"\xef\xbb\xbf{\"bom\":1}",
        "raw:\"\u{feff}{\\\"bom\\\":1}\"",
    ),
    (b"a\0b", r#"raw:"a\u0000b""#),
    (b"{\"a\":1,\r\"b\":2}", "message:{\"a\":1,\r\"b\":2}"),
    (b"{\"half\":", r#"raw:"{\"half\":""#),
];

#[test]
fn every_odd_line_crosses_unchanged_and_is_logged_for_what_it_is() {
    let mut session = Proxy::recording().before_server(["cat"]);
    for (line, _) in ROWS {
        let line = [line, &b"\n"[..]].concat();
        session.send(&line);
        assert_eq!(
            session.line().as_deref(),
            Some(&line[..]),
            "cat says it again"
        );
    }
    session.close_input();
    assert_eq!(session.rest(), b"");
    assert_eq!(session.code(), 0);
    let log = session.recorded();
    let expected: Vec<&str> = ROWS.iter().map(|(_, logged)| *logged).collect();
    assert_eq!(log.of("client"), expected);
    assert_eq!(log.of("server"), expected);
    assert_eq!(
        log.sides(),
        ["client", "server"].repeat(ROWS.len()),
        "a line is logged before its answer"
    );
}

#[test]
fn json_that_no_reader_of_logs_could_hold_is_logged_as_text() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let mut session = Proxy::recording().before_server(["cat"]);
    session.send(format!("{}\n{}\n", nested(100), nested(400)));
    assert_eq!(session.text(), nested(100));
    assert_eq!(session.text(), nested(400));
    session.close_input();
    assert_eq!(session.code(), 0);
    assert_eq!(
        session.recorded().of("client"),
        [
            format!("message:{}", nested(100)),
            format!("raw:\"{}\"", nested(400))
        ]
    );
}

#[test]
fn a_last_line_without_a_line_feed_gets_none() {
    for line in ["{\"id\":1}", "half a l", "\r"] {
        let mut session = Proxy::recording().before_server(["cat"]);
        session.send(format!("whole\n{line}"));
        session.close_input();
        assert_eq!(session.rest(), format!("whole\n{line}").as_bytes());
        assert_eq!(session.code(), 0);
        let log = session.recorded();
        assert_eq!(log.of("client").len(), 2);
        assert_eq!(log.of("client"), log.of("server"));
    }
}

#[test]
fn a_line_that_comes_in_pieces_crosses_whole() {
    let mut session = Proxy::recording().before_server(["cat"]);
    for byte in b"{\"id\":1}\nx" {
        session.send([*byte]);
    }
    assert_eq!(session.text(), "{\"id\":1}");
    session.send("y\n");
    assert_eq!(session.text(), "xy");
    session.close_input();
    assert_eq!(session.code(), 0);
    assert_eq!(
        session.recorded().of("client"),
        ["message:{\"id\":1}", "raw:\"xy\""]
    );
}

#[test]
fn nothing_is_said_in_a_session_that_is_only_forwarded() {
    let mut session = Proxy::forwarding().before_server(["cat"]);
    session.send("{\"id\":1}\nnot json\n");
    session.close_input();
    assert_eq!(session.rest(), b"{\"id\":1}\nnot json\n");
    assert_eq!(session.code(), 0);
    assert_eq!(session.messages(), "");
    assert_eq!(fs::read_dir(session.folder()).unwrap().count(), 0);
}

/// A server that sends numbered lines all the time, and reads its own input only up to a
/// point until it has sent them all. It says at its end how many lines it has got in order.
const MOODY_SERVER: &str = r#"
import os, sys, threading
count, stops_at = int(os.environ["COUNT"]), int(os.environ["STOPS_AT"])
sent = threading.Event()
def speak():
    for n in range(count):
        sys.stdout.write('{"n":%d,"pad":"%s"}\n' % (n, "s" * 40))
    sys.stdout.flush()
    sent.set()
speaker = threading.Thread(target=speak)
speaker.start()
got = 0
for line in sys.stdin:
    if got == stops_at:
        sent.wait()
    if not line.startswith('{"id":%d,' % got):
        break
    got += 1
speaker.join()
print("got", got, flush=True)
"#;

#[test]
fn a_hundred_thousand_lines_each_way_cross_in_order_while_the_server_stops_reading() {
    const COUNT: usize = 100_000;
    let mut session = Proxy::recording()
        .env("COUNT", COUNT.to_string())
        .env("STOPS_AT", "10000")
        .before_server(["python3", "-c", MOODY_SERVER]);
    let (mut input, mut output) = session.take_ends();
    thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..COUNT {
                writeln!(input, "{{\"id\":{n},\"method\":\"tools/call\"}}")
                    .expect("the proxy reads");
            }
        });
        for n in 0..COUNT {
            let line = output.line().expect("a line for each");
            assert!(
                line.starts_with(format!("{{\"n\":{n},").as_bytes()),
                "line {n}"
            );
        }
        assert_eq!(output.rest(), format!("got {COUNT}\n").as_bytes());
    });
    assert_eq!(session.code(), 0);
    let log = session.recorded();
    let ids: Vec<String> = (0..COUNT)
        .map(|n| format!("message:{{\"id\":{n},\"method\":\"tools/call\"}}"))
        .collect();
    assert!(
        log.of("client") == ids,
        "the log holds each line of the host, in order"
    );
    assert_eq!(log.of("server").len(), COUNT + 1);
}

#[test]
fn a_host_that_does_not_read_stops_only_the_server() {
    const COUNT: usize = 20_000;
    let mut session = Proxy::forwarding().before_python(
        r#"
import sys, threading
speaker = threading.Thread(target=lambda: [sys.stdout.write("s" * 999 + "\n") for _ in range(20000)])
speaker.start()
got = sum(1 for _ in sys.stdin)
print("got", got, file=sys.stderr, flush=True)
speaker.join()
"#,
    );
    for n in 0..COUNT {
        session.send(format!("{{\"id\":{n}}}\n"));
    }
    session.close_input();
    session.message(&format!("got {COUNT}"));
    assert_eq!(session.rest().len(), 1000 * COUNT);
    assert_eq!(session.code(), 0);
}

#[test]
fn a_line_of_64_megabytes_crosses_both_ways() {
    let line = format!(
        "{{\"id\":1,\"pad\":\"{}\"}}\n",
        "é".repeat(32 * 1024 * 1024)
    );
    let mut session = Proxy::recording().before_server(["cat"]);
    let (mut input, mut output) = session.take_ends();
    thread::scope(|scope| {
        let line = &line;
        scope.spawn(move || input.write_all(line.as_bytes()).expect("the proxy reads"));
        assert!(output.rest() == line.as_bytes(), "cat says it again");
    });
    assert_eq!(session.code(), 0);
    let log = session.recorded();
    let expected = format!("message:{}", line.trim_end());
    assert!(log.of("client") == [expected.as_str()]);
    assert!(log.of("server") == [expected.as_str()]);
}

/// Sends lines of a hundred bytes and reads each again.
fn talk(session: &mut Session, count: usize) {
    for n in 0..count {
        let line = format!("{{\"id\":{n},\"pad\":\"{}\"}}\n", "p".repeat(80));
        session.send(&line);
        assert_eq!(session.line().as_deref(), Some(line.as_bytes()), "line {n}");
    }
}

#[test]
fn a_log_that_may_not_grow_stops_with_one_message_and_the_session_goes_on() {
    let mut session = Proxy::recording()
        .after("ulimit -f 16")
        .before_server(["cat"]);
    talk(&mut session, 500);
    session.close_input();
    assert_eq!(session.code(), 0);
    let messages = session.messages();
    let stopped: Vec<&str> = messages
        .lines()
        .filter(|line| line.contains("recording stopped"))
        .collect();
    let log = session.recorded();
    assert_eq!(stopped.len(), 1, "{messages}");
    assert!(
        stopped[0].contains(log.path.to_str().unwrap()),
        "{messages}"
    );
    assert_eq!(
        messages.lines().count(),
        2,
        "where the log is, and that it stopped: {messages}"
    );
    let kept = log.of("client").len();
    assert!(kept > 10 && kept < 500, "{kept} lines fit");
}

#[test]
fn a_server_is_at_home_where_the_proxy_is() {
    let proxy = Proxy::forwarding().env("A_SETTING", "its value");
    let folder = proxy.folder().canonicalize().unwrap();
    let mut session = proxy.before_server([
        "sh",
        "-c",
        "pwd -P; echo $A_SETTING; echo \"$@\"; echo on stderr >&2",
        "sh",
        "--help",
        "--record",
        "-x",
    ]);
    assert_eq!(session.text(), folder.to_str().unwrap());
    assert_eq!(session.text(), "its value");
    assert_eq!(session.text(), "--help --record -x");
    assert_eq!(session.code(), 0);
    assert_eq!(session.messages(), "on stderr\n");
}

#[test]
fn an_answer_that_comes_after_the_end_of_the_input_is_delivered() {
    let proxy = Proxy::recording();
    let go = fifo(proxy.folder());
    let mut session = proxy.before_script(
        "cat >/dev/null; echo input ended; read go <fifo; echo '{\"id\":1,\"result\":{}}'",
    );
    session.send("{\"id\":1,\"method\":\"tools/call\"}\n");
    session.close_input();
    assert_eq!(session.text(), "input ended");
    release(&go);
    assert_eq!(session.text(), "{\"id\":1,\"result\":{}}");
    assert_eq!(session.line(), None);
    assert_eq!(session.code(), 0);
    assert_eq!(session.recorded().sides(), ["client", "server", "server"]);
}
