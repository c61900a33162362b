//! Large answers, stalled hosts, and certificates.

use std::{io::Write as _, time::Duration};

use serde_json::json;

use crate::{
    bare::{Bare, result},
    host::Host,
};

/// The most memory that a process had at once, in bytes.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.expect("Linux tells").trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().expect("a number") * 1024
}

const LARGE: usize = 64 * 1024 * 1024;

#[test]
fn a_large_answer_costs_no_more_than_three_times_its_size() {
    for streams in [false, true] {
        let server = Bare::with_sessions(move |request, out| {
            let text = "x".repeat(LARGE);
            let answer = format!(
                r#"{{"id":{},"result":{{"text":"{text}"}}}}"#,
                request.json()["id"]
            );
            if streams {
                out.stream()?;
                out.raw("data: ")?;
                out.raw(answer)?;
                out.raw("\n\n")?;
                return out.hang_up();
            }
            out.send("200 OK", "", &answer)
        });
        let mut host = Host::before(&server.url);
        host.open();
        host.ask(1, "large", json!({}));
        assert!(host.line().len() > LARGE);
        let peak = peak(host.child.id());
        assert!(
            peak < 3 * LARGE as u64,
            "{} MB, streams: {streams}",
            peak / 1024 / 1024
        );
        host.finish();
    }
}

#[test]
fn calls_in_flight_share_the_connections_that_are_kept() {
    const CALLS: usize = 6_000;
    const IN_FLIGHT: usize = 512;
    let server =
        Bare::with_sessions(|request, out| out.json(&result(request, &json!({"content": []}))));
    let mut host = Host::before(&server.url);
    host.open();
    for id in 0..CALLS + IN_FLIGHT {
        if id < CALLS {
            host.call(id + 1, "look", json!({}));
        }
        if id >= IN_FLIGHT {
            assert!(host.message().get("result").is_some());
        }
    }
    // 64 of them are kept. A machine that stands still for a moment may have some more opened, but
    // none may serve a few calls only.
    let opened = server.connections();
    assert!(
        opened <= 8 * 64,
        "{CALLS} calls opened {opened} connections"
    );
    host.finish();
}

#[test]
fn calls_that_take_long_hold_no_other_up() {
    const SLOW: usize = 300;
    let server = Bare::with_sessions(|request, out| {
        if request.json()["params"]["name"] == "slow" {
            out.wait_for_hang_up();
            return Ok(());
        }
        out.json(&result(request, &json!({"content": []})))
    });
    let mut host = Host::before(&server.url);
    host.open();
    for id in 1..=SLOW {
        host.call(id, "slow", json!({}));
    }
    host.call("quick", "quick", json!({}));
    assert!(host.answer("quick").get("result").is_some());
    server.wait_for(|request| request.what() == "tools/call" && request.json()["id"] == SLOW);
}

#[test]
fn a_host_that_does_not_read_stops_the_server_and_not_the_memory() {
    // More than any pipe, queue or socket holds, on one stream.
    let server = Bare::with_sessions(|request, out| {
        out.stream()?;
        let event = format!("data: {{\"method\":\"{}\"}}\n\n", "x".repeat(100_000));
        for _ in 0..1_000 {
            out.raw(&event)?;
        }
        out.event(&result(request, &json!({})))?;
        out.hang_up()
    });
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_stretto-proxy"))
        .args(["--upstream", &server.url])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the proxy starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin
        .write_all(b"{\"id\":0,\"method\":\"initialize\"}\n{\"id\":1,\"method\":\"x\"}\n")
        .expect("it reads");
    let before = loop {
        // Until it has taken all that it takes.
        let seen = peak(child.id());
        std::thread::sleep(Duration::from_millis(300));
        if server.seen().len() == 2 && peak(child.id()) == seen {
            break seen;
        }
    };
    assert!(before < 60 * 1024 * 1024, "{} MB", before / 1024 / 1024);
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    let lines = output.stdout.split_inclusive(|&byte| byte == b'\n');
    assert_eq!(lines.count(), 1_002);
}

#[test]
fn hundreds_of_requests_wait_for_a_server_that_answers_none() {
    let server = Bare::with_sessions(|request, out| {
        if request.what() == "last" {
            return out.json(&result(request, &json!({})));
        }
        std::thread::sleep(Duration::from_secs(2));
        out.json(&result(request, &json!({})))
    });
    let mut host = Host::before(&server.url);
    host.open();
    for id in 1..=600 {
        host.ask(id, "slow", json!({}));
    }
    host.ask("last", "last", json!({}));
    assert_eq!(
        host.message()["id"],
        "last",
        "none is held up by the slow ones"
    );
    for _ in 1..=600 {
        assert!(host.message().get("result").is_some());
    }
}

#[test]
fn more_requests_than_files_may_be_open_at_first_are_answered() {
    const CALLS: usize = 150;
    // Each waits for all.
    let all_in = std::sync::Barrier::new(CALLS);
    let server = Bare::with_sessions(move |request, out| {
        all_in.wait();
        out.json(&result(request, &json!({})))
    });
    let mut child = std::process::Command::new("sh")
        .args([
            "-c",
            r#"ulimit -Sn 64 && exec "$@""#,
            "sh",
            env!("CARGO_BIN_EXE_stretto-proxy"),
        ])
        .args(["--upstream", &server.url])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the proxy starts");
    let mut lines = String::from("{\"id\":0,\"method\":\"initialize\"}\n");
    for id in 1..=CALLS {
        lines.push_str(&json!({"id": id, "method": "x"}).to_string());
        lines.push('\n');
    }
    child
        .stdin
        .take()
        .expect("piped")
        .write_all(lines.as_bytes())
        .expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(text.lines().count(), CALLS + 1);
    assert!(!text.contains("error"), "{text}");
}
