//! What a call costs at the beginning and at the end of a session of 20,000 calls with guards
//! on, beside the same session without them. A call may cost at most twice as much at the end.
//!
//! `cargo bench -p stretto-proxy --bench long_session`

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measurement that cannot go on has failed, and its table is its result"
)]

use std::{
    io::{BufRead, BufReader, Write},
    process::{ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;

const CALLS: usize = 20_000;

/// How many calls the medians are taken of.
const PART: usize = 1_000;

fn main() {
    println!("| options | first {PART} calls, µs | last {PART} calls, µs | ratio |");
    println!("|---|--:|--:|--:|");
    for options in [&[][..], &["--domain", "retail", "--guards"]] {
        let times = session(options);
        let (first, last) = (median(&times[..PART]), median(&times[CALLS - PART..]));
        println!(
            "| {} | {:.1} | {:.1} | {:.2} |",
            if options.is_empty() {
                "none".into()
            } else {
                options.join(" ")
            },
            first * 1e6,
            last * 1e6,
            last / first
        );
    }
}

/// How long each call of a session took, one after the other.
fn session(options: &[&str]) -> Vec<Duration> {
    let mut proxy = Command::new(env!("CARGO_BIN_EXE_stretto-proxy"))
        .args(options)
        .args([
            "--",
            env!("CARGO_BIN_EXE_stretto-mcp-demo"),
            "--world",
            "retail",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the proxy starts");
    let mut input = proxy.stdin.take().expect("a pipe was asked for");
    let mut output = BufReader::new(proxy.stdout.take().expect("a pipe was asked for"));
    let times = (0..CALLS)
        .map(|id| call(id, &mut input, &mut output))
        .collect();
    drop(input);
    proxy.wait().expect("the proxy ends");
    times
}

/// Every fourth call is a write, which the guards check against all that the session has shown.
fn call(id: usize, input: &mut ChildStdin, output: &mut BufReader<ChildStdout>) -> Duration {
    let order = format!("#W{}a", id % 50);
    let (name, arguments) = if id % 4 == 3 {
        (
            "cancel_pending_order",
            json!({"order_id": order, "reason": "no longer needed"}),
        )
    } else {
        ("get_order_details", json!({"order_id": order}))
    };
    let params = json!({"name": name, "arguments": arguments});
    let mut line =
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string();
    line.push('\n');
    let mut answer = String::new();
    let started = Instant::now();
    input.write_all(line.as_bytes()).expect("the proxy reads");
    output.read_line(&mut answer).expect("the proxy answers");
    let took = started.elapsed();
    assert!(answer.contains("\"result\""), "{answer}");
    took
}

fn median(times: &[Duration]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2].as_secs_f64()
}
