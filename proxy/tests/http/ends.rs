//! How sessions end.

use std::{os::unix::process::ExitStatusExt, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{
    bare::{Bare, result},
    host::Host,
};

#[test]
fn slow_requests_are_waited_for_before_the_session_ends() {
    let server = Bare::with_sessions(|request, out| {
        std::thread::sleep(Duration::from_millis(400));
        out.json(&result(request, &json!({})))
    });
    let mut host = Host::before(&server.url);
    host.open();
    for id in 1..=3 {
        host.ask(id, "slow", json!({}));
    }
    let left = host.finish();
    assert_eq!(left.status.code(), Some(0));
    assert_eq!(left.lines.len(), 3);
    assert_eq!(server.seen().last().expect("some").method, "DELETE");
    assert!(!left.stderr.contains("warning"), "{}", left.stderr);
}

#[test]
fn a_delete_that_fails_is_said_and_changes_nothing() {
    let server = Bare::start(|request, out| match request.what().as_str() {
        "initialize" => out.send(
            "200 OK",
            "Mcp-Session-Id: s\r\n",
            &crate::bare::initialized(&json!(0)).to_string(),
        ),
        "DELETE" => out.hang_up(),
        _ => out.send("405 Method Not Allowed", "", ""),
    });
    let mut host = Host::before(&server.url);
    host.open();
    let left = host.finish();
    assert_eq!(left.status.code(), Some(0));
    assert!(
        left.stderr.contains("ending the HTTP session: "),
        "{}",
        left.stderr
    );
}

#[test]
fn the_servers_own_stream_does_not_hold_the_end_up() {
    let server = Bare::start(|request, out| match request.what().as_str() {
        "initialize" => out.send(
            "200 OK",
            "Mcp-Session-Id: s\r\n",
            &crate::bare::initialized(&json!(0)).to_string(),
        ),
        "GET" => {
            out.stream()?;
            out.wait_for_hang_up();
            Ok(())
        }
        _ => out.send("200 OK", "", ""),
    });
    let mut host = Host::before(&server.url);
    host.open();
    server.wait_for(|request| request.method == "GET");
    let left = host.finish();
    assert_eq!(left.status.code(), Some(0));
    assert_eq!(server.seen().last().expect("some").method, "DELETE");
}

#[test]
fn a_signal_ends_the_session_at_the_server_and_then_the_proxy() {
    let server = Bare::with_sessions(|_, out| {
        out.stream()?;
        out.event(&json!({"method": "under way"}))?;
        out.wait_for_hang_up();
        Ok(())
    });
    let mut host = Host::before(&server.url);
    host.open();
    host.ask(1, "for ever", json!({}));
    assert_eq!(host.message()["method"], "under way");
    let process = Pid::from_raw(host.child.id().cast_signed()).expect("a process");
    kill_process(process, Signal::TERM).expect("it runs");
    let left = host.wait();
    assert_eq!(left.status.signal(), Some(15));
    assert_eq!(server.seen().last().expect("some").method, "DELETE");
    assert_eq!(left.count("server"), 2, "the log is whole");
}

#[test]
fn a_host_that_is_gone_ends_the_session() {
    let server = Bare::with_sessions(|_, out| {
        out.stream()?;
        out.wait_for_hang_up();
        Ok(())
    });
    let mut proxy = std::process::Command::new(env!("CARGO_BIN_EXE_stretto-proxy"))
        .args(["--upstream", &server.url])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the proxy starts");
    let mut stdin = proxy.stdin.take().expect("piped");
    let lines = [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"for ever"}"#,
    ];
    std::io::Write::write_all(&mut stdin, (lines.join("\n") + "\n").as_bytes()).expect("it reads");
    server.wait_for(|request| request.what() == "for ever");
    drop(stdin);
    drop(proxy.stdout.take());
    assert_eq!(proxy.wait().expect("it ends").code(), Some(0));
    server.wait_for(|request| request.method == "DELETE");
}
