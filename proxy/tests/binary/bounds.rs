//! A side that takes nothing stops the other side, and not the memory.

use std::{
    fs,
    io::{self, Write},
    thread,
    time::{Duration, Instant},
};

use rustix::fs::{OFlags, fcntl_setfl};

use crate::support::{Proxy, Session, patience};

/// Far more than the proxy keeps for a side, and than all pipes on the way hold.
const FLOOD: usize = 64 * 1024 * 1024;

/// What may wait at once: a megabyte in the proxy, the line that went over it, and the pipes.
const KEPT: usize = 4 * 1024 * 1024;

const LINE: usize = 64 * 1024;

/// Whether all threads of the process wait for something. Whoever has anything to read, and wants to, does not.
fn is_asleep(process: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("the process runs");
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The name, in parentheses, may hold anything.
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('S'))
    })
}

/// Waits until `is_settled` has held for several looks in a row.
fn settle(mut is_settled: impl FnMut() -> bool) {
    let until = Instant::now() + patience();
    let mut in_a_row = 0;
    while in_a_row < 5 {
        in_a_row = if is_settled() { in_a_row + 1 } else { 0 };
        assert!(Instant::now() < until, "it does not come to rest");
        thread::sleep(Duration::from_millis(10));
    }
}

fn peak(session: &Session) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", session.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<usize>().unwrap() * 1024
}

#[test]
fn a_server_that_reads_nothing_stops_the_host_and_not_the_memory() {
    for proxy in [Proxy::forwarding(), Proxy::recording()] {
        let mut session = proxy.before_server(["sleep", "600"]);
        let (mut input, _output) = session.take_ends();
        fcntl_setfl(&input, OFlags::NONBLOCK).unwrap();
        let mut line = vec![b'x'; LINE];
        line.push(b'\n');
        let mut taken = 0;
        settle(|| {
            // Looked at before the write: the kernel wakes the proxy for one that fails, too.
            let (was_asleep, before) = (is_asleep(session.id()), taken);
            while taken < FLOOD {
                match input.write(&line[taken % line.len()..]) {
                    Ok(count) => taken += count,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => panic!("{error}"),
                }
            }
            taken >= FLOOD || (was_asleep && taken == before)
        });
        assert!(taken < KEPT, "it took {taken} bytes that nobody reads");
        let peak = peak(&session);
        assert!(peak < 10 * KEPT, "{peak} bytes of memory");
    }
}

#[test]
fn a_host_that_reads_nothing_stops_the_server_and_not_the_memory() {
    for proxy in [Proxy::forwarding(), Proxy::recording()] {
        let mut session = proxy.before_python(&format!(
            "import os, sys
print('process', os.getpid(), file=sys.stderr)
written = open('written', 'w')
for _ in range({FLOOD} // {LINE}):
    os.write(1, b'x' * ({LINE} - 1) + b'\\n')
    print({LINE}, file=written, flush=True)
sys.stdin.read()"
        ));
        let said = session.message("process ");
        let server: u32 = said.trim_start_matches("process ").trim().parse().unwrap();
        settle(|| is_asleep(session.id()) && is_asleep(server));
        let written = fs::read_to_string(session.folder().join("written")).unwrap();
        let written = written.lines().count() * LINE;
        assert!(
            written < KEPT,
            "the server wrote {written} bytes that nobody reads"
        );
        let peak = peak(&session);
        assert!(peak < 10 * KEPT, "{peak} bytes of memory");
    }
}
