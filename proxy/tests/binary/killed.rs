//! What a killed proxy leaves: a log that reads.

use std::{fs, io::Write, thread};

use rustix::process::Signal;

use crate::support::{Proxy, Recorded, patience};

#[test]
fn a_log_holds_what_crossed_some_time_before_the_proxy_is_killed() {
    let mut session = Proxy::recording().before_server(["cat"]);
    for n in 0..20 {
        session.send(format!("{{\"id\":{n}}}\n"));
        assert_eq!(session.text(), format!("{{\"id\":{n}}}"));
    }
    // The log is written by a thread of its own: wait for its last line, not for a time.
    let log = fs::read_dir(session.folder().join("logs"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let until = std::time::Instant::now() + patience();
    while fs::read_to_string(&log).unwrap().lines().count() < 41 {
        assert!(std::time::Instant::now() < until, "the log lacks lines");
        thread::yield_now();
    }
    session.signal(Signal::KILL);
    session.status();
    let log = session.recorded();
    assert!(!log.is_cut_off);
    assert_eq!(log.sides(), ["client", "server"].repeat(20));
}

#[test]
fn a_log_reads_whenever_the_proxy_was_killed() {
    for after in [1, 10, 100, 1_000, 3_000] {
        let mut session = Proxy::recording().before_server(["cat"]);
        let (mut input, mut output) = session.take_ends();
        let sent = thread::spawn(move || {
            let mut sent = 0_usize;
            while writeln!(
                input,
                "{{\"id\":{sent},\"pad\":\"{}\"}}",
                "p".repeat(sent % 300)
            )
            .is_ok()
            {
                sent += 1;
            }
            sent
        });
        for _ in 0..after {
            output.line().expect("cat says it again");
        }
        session.signal(Signal::KILL);
        session.status();
        drop(output);
        let sent = sent.join().unwrap();
        holds_a_beginning(&session.recorded(), sent);
    }
}

/// Nothing is missing before the end, and at most the last line is half there.
fn holds_a_beginning(log: &Recorded, sent: usize) {
    for side in ["client", "server"] {
        let lines = log.of(side);
        assert!(lines.len() <= sent);
        for (n, line) in lines.iter().enumerate() {
            assert!(
                line.starts_with(&format!("message:{{\"id\":{n},")),
                "{side}'s line {n}"
            );
        }
    }
    assert!(log.of("client").len() >= log.of("server").len());
    let whole = log.text.matches('\n').count();
    assert_eq!(log.sides().len() + 1, whole, "every whole line is an entry");
    assert_eq!(log.is_cut_off, !log.text.ends_with('\n'));
}
