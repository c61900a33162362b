//! Every order in which a session can end.

use std::{io::Read, os::unix::process::ExitStatusExt, process::Stdio, thread, time::Duration};

use rustix::process::Signal;

use crate::support::{Proxy, Session, fifo, release};

/// How a stubborn server begins: it ignores what asks it to end.
const STUBBORN: &str = "trap '' TERM INT HUP; echo ready; ";

fn ended_by(session: &mut Session, signal: Signal) {
    let status = session.status();
    assert_eq!(status.signal(), Some(signal.as_raw()), "{status}");
}

/// Waits until nobody holds our stderr, and finds nobody left.
fn nobody_is_left(session: &mut Session) -> String {
    let messages = session.messages();
    let left = session.left_running();
    assert!(left.is_empty(), "{left:?} run on");
    messages
}

#[test]
fn the_end_of_the_hosts_input_is_the_servers_and_its_status_is_ours() {
    let mut session = Proxy::recording().before_script("cat >/dev/null; echo last words; exit 3");
    session.send("hello\n");
    session.close_input();
    assert_eq!(session.text(), "last words");
    assert_eq!(session.line(), None);
    assert_eq!(session.code(), 3);
    assert_eq!(session.recorded().sides(), ["client", "server"]);
}

#[test]
fn a_server_that_is_killed_is_128_and_the_signal() {
    let mut session = Proxy::forwarding().before_script("kill -9 $$");
    assert_eq!(session.code(), 137);
    let mut session = Proxy::forwarding().before_script("kill -TERM $$");
    assert_eq!(session.code(), 143);
}

#[test]
fn a_server_that_exits_first_ends_the_session_while_the_hosts_input_is_open() {
    let mut session = Proxy::recording().before_script("echo one; printf two; exit 3");
    assert_eq!(session.rest(), b"one\ntwo");
    assert_eq!(session.code(), 3);
    assert_eq!(
        session.recorded().of("server"),
        ["raw:\"one\"", "raw:\"two\""]
    );
}

#[test]
fn a_server_that_dies_in_a_call_leaves_no_host_waiting() {
    let mut session = Proxy::recording().before_script("read call; kill -9 $$");
    session.send("{\"id\":1,\"method\":\"tools/call\"}\n");
    assert_eq!(session.rest(), b"");
    assert_eq!(session.code(), 137);
}

#[test]
fn all_that_a_server_wrote_before_its_end_is_delivered() {
    let mut session =
        Proxy::recording().before_script("yes \"$(printf '%099d' 0)\" | head -n 30000; exit 3");
    assert_eq!(
        session.rest(),
        format!("{:099}\n", 0).repeat(30_000).as_bytes()
    );
    assert_eq!(session.code(), 3);
    assert_eq!(session.recorded().of("server").len(), 30_000);
}

#[test]
fn a_host_that_reads_late_gets_all_that_a_dead_server_said() {
    let (mut host, output) = std::io::pipe().unwrap();
    let server = ["sh", "-c", "seq 1 100000; exit 6"];
    let mut session = Proxy::recording().start(server, Stdio::piped(), output.into());
    // Longer than a server that lives on would have: what waits for the host must not count as that.
    thread::sleep(Duration::from_secs(9));
    let mut told = String::new();
    host.read_to_string(&mut told).unwrap();
    assert_eq!(told.lines().count(), 100_000);
    assert_eq!(session.code(), 6);
    let messages = session.messages();
    assert!(!messages.contains("ran on"), "{messages}");
}

#[test]
fn a_server_that_closes_its_input_is_still_heard_and_its_host_still_recorded() {
    let proxy = Proxy::recording();
    let go = fifo(proxy.folder());
    let mut session =
        proxy.before_script("exec 0<&-; echo closed; read go <fifo; echo more; exit 3");
    assert_eq!(session.text(), "closed");
    session.send("one\n");
    session.message("forwarding to the server");
    session.send("two\nthree\n");
    release(&go);
    assert_eq!(session.text(), "more");
    assert_eq!(session.code(), 3);
    let log = session.recorded();
    assert!(log.of("client").starts_with(&["raw:\"one\"".into()]));
    assert_eq!(session.messages(), "", "it is said once");
}

#[test]
fn a_server_that_closed_its_input_leaves_no_host_blocked() {
    let proxy = Proxy::recording();
    let go = fifo(proxy.folder());
    let mut session = proxy.before_script("exec 0<&-; echo closed; read go <fifo");
    assert_eq!(session.text(), "closed");
    for _ in 0..300 {
        session.send("p".repeat(9_999) + "\n");
    }
    session.close_input();
    release(&go);
    assert_eq!(session.code(), 0);
    assert_eq!(session.recorded().of("client").len(), 300);
}

#[test]
fn a_host_that_closes_our_output_is_still_forwarded_and_its_server_recorded() {
    let mut session =
        Proxy::recording().before_script("while read line; do echo got $line; done; exit 3");
    session.close_output();
    session.send("one\n");
    session.message("forwarding to the client");
    session.send("two\nthree\n");
    session.close_input();
    assert_eq!(session.code(), 3);
    assert_eq!(
        session.recorded().of("server"),
        ["raw:\"got one\"", "raw:\"got two\"", "raw:\"got three\""]
    );
    assert_eq!(session.messages(), "", "it is said once");
}

#[test]
fn a_signal_ends_a_stubborn_server_and_the_proxy_dies_of_it() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let script = format!("{STUBBORN} while :; do sleep 600; done");
        let mut session = Proxy::recording().before_script(&script);
        session.send("hello\n");
        assert_eq!(session.text(), "ready");
        session.signal(signal);
        ended_by(&mut session, signal);
        nobody_is_left(&mut session);
        assert_eq!(session.recorded().sides().len(), 2, "the log is complete");
    }
}

#[test]
fn a_signal_lets_a_good_server_end_by_itself() {
    let mut session =
        Proxy::recording().before_script("echo ready; cat >/dev/null; echo last words");
    assert_eq!(session.text(), "ready");
    session.signal(Signal::TERM);
    assert_eq!(session.text(), "last words");
    ended_by(&mut session, Signal::TERM);
    let messages = nobody_is_left(&mut session);
    assert!(!messages.contains("ran on"), "{messages}");
    assert_eq!(
        session.recorded().of("server"),
        ["raw:\"ready\"", "raw:\"last words\""]
    );
}

#[test]
fn a_signal_ends_a_proxy_whose_host_does_not_read() {
    let mut session = Proxy::forwarding().before_script("echo started >&2; exec yes");
    session.message("started");
    session.signal(Signal::TERM);
    ended_by(&mut session, Signal::TERM);
    nobody_is_left(&mut session);
}

#[test]
fn a_signal_reaches_a_server_behind_its_wrapper() {
    let mut session = Proxy::forwarding()
        .before_script("sh -c 'echo ready; cat >/dev/null; sleep 600; :'; exit 0");
    assert_eq!(session.text(), "ready");
    session.signal(Signal::TERM);
    ended_by(&mut session, Signal::TERM);
    nobody_is_left(&mut session);
}

#[test]
fn a_hangup_that_was_to_be_ignored_is() {
    let mut session = Proxy::forwarding()
        .after("trap '' HUP")
        .before_server(["cat"]);
    session.send("one\n");
    assert_eq!(session.text(), "one");
    session.signal(Signal::HUP);
    session.send("two\n");
    assert_eq!(session.text(), "two");
    session.close_input();
    assert_eq!(session.code(), 0);
}

#[test]
fn a_proxy_that_is_killed_takes_its_server_along() {
    let script = format!("{STUBBORN} exec sleep 600");
    let mut session = Proxy::recording().before_script(&script);
    assert_eq!(session.text(), "ready");
    session.signal(Signal::KILL);
    ended_by(&mut session, Signal::KILL);
    nobody_is_left(&mut session);
}

/// The ends that take seconds, which they do at the same time.
#[test]
fn no_server_outlives_its_time() {
    let ends: [(&str, fn()); 7] = [
        (
            "a_server_that_ignores_the_end_of_its_input_is_asked_to_end",
            a_server_that_ignores_the_end_of_its_input_is_asked_to_end,
        ),
        (
            "a_server_that_does_not_end_when_asked_is_ended",
            a_server_that_does_not_end_when_asked_is_ended,
        ),
        (
            "a_host_that_dies_in_a_call_that_never_returns_leaves_no_server",
            a_host_that_dies_in_a_call_that_never_returns_leaves_no_server,
        ),
        (
            "a_host_that_dies_before_a_server_that_reads_nothing_leaves_no_server",
            a_host_that_dies_before_a_server_that_reads_nothing_leaves_no_server,
        ),
        (
            "a_server_that_closes_its_output_and_lives_on_is_ended",
            a_server_that_closes_its_output_and_lives_on_is_ended,
        ),
        (
            "a_grandchild_that_holds_the_pipe_does_not_hold_the_session",
            a_grandchild_that_holds_the_pipe_does_not_hold_the_session,
        ),
        (
            "a_runaway_that_holds_the_pipe_does_not_hold_the_session",
            a_runaway_that_holds_the_pipe_does_not_hold_the_session,
        ),
    ];
    thread::scope(|scope| {
        for (name, end) in ends {
            let named = thread::Builder::new().name(name.into());
            named.spawn_scoped(scope, end).expect("a thread");
        }
    });
}

fn a_server_that_ignores_the_end_of_its_input_is_asked_to_end() {
    let mut session = Proxy::recording().before_script("cat >/dev/null; sleep 600");
    session.send("{\"method\":\"notifications/initialized\"}\n");
    session.close_input();
    assert_eq!(session.code(), 143);
    let messages = nobody_is_left(&mut session);
    assert_eq!(
        messages
            .matches("ran on after the end of its input")
            .count(),
        1,
        "{messages}"
    );
    assert!(messages.contains("SIGTERM"), "{messages}");
}

fn a_server_that_does_not_end_when_asked_is_ended() {
    let script = format!("{STUBBORN} exec sleep 600");
    let mut session = Proxy::recording().before_script(&script);
    session.close_input();
    assert_eq!(session.code(), 137);
    let messages = nobody_is_left(&mut session);
    assert!(messages.contains("SIGKILL"), "{messages}");
}

fn a_host_that_dies_in_a_call_that_never_returns_leaves_no_server() {
    let mut session = Proxy::recording().before_script("cat >/dev/null; sleep 600");
    session.send("{\"id\":1,\"method\":\"tools/call\"}\n");
    session.close_input();
    session.close_output();
    assert_eq!(session.code(), 143);
    nobody_is_left(&mut session);
}

fn a_host_that_dies_before_a_server_that_reads_nothing_leaves_no_server() {
    let mut session = Proxy::recording().before_script("exec sleep 600");
    let (mut input, output) = session.take_ends();
    // More than what waits for a server, and the pipes on both sides, hold.
    fill(&mut input);
    drop((input, output));
    assert_eq!(session.code(), 143);
    nobody_is_left(&mut session);
}

/// Writes until nobody takes any more.
fn fill(pipe: &mut std::process::ChildStdin) {
    use rustix::{
        event::{PollFd, PollFlags, Timespec, poll},
        fs::{OFlags, fcntl_getfl, fcntl_setfl},
    };

    let flags = fcntl_getfl(&*pipe).unwrap();
    fcntl_setfl(&*pipe, flags | OFlags::NONBLOCK).unwrap();
    let line = [b'p'; 4095].into_iter().chain(*b"\n").collect::<Vec<u8>>();
    // A second without room is long for a proxy that still takes lines.
    let second = Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    while poll(&mut [PollFd::new(&*pipe, PollFlags::OUT)], Some(&second)).unwrap() > 0 {
        while rustix::io::write(&*pipe, &line).is_ok() {}
    }
}

fn a_server_that_closes_its_output_and_lives_on_is_ended() {
    let mut session = Proxy::recording().before_script("echo ready; exec >&-; sleep 600");
    assert_eq!(session.rest(), b"ready\n");
    assert_eq!(session.code(), 143);
    nobody_is_left(&mut session);
}

fn a_grandchild_that_holds_the_pipe_does_not_hold_the_session() {
    let mut session = Proxy::recording().before_script("sleep 600 & exit 3");
    session.close_input();
    assert_eq!(session.code(), 3, "the server's own status");
    nobody_is_left(&mut session);
}

fn a_runaway_that_holds_the_pipe_does_not_hold_the_session() {
    let mut session = Proxy::recording().before_script("setsid sleep 600 2>/dev/null & exit 3");
    session.close_input();
    assert_eq!(session.code(), 3, "the server's own status");
}
