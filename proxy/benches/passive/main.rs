//! What passing lines through the proxy costs, beside a relay that only copies bytes.
//!
//! ```text
//! cargo bench -p stretto-proxy --bench passive [-- ROUNDS]
//! ```
//!
//! A host of our own talks to an echo server of our own, through the relay, through the
//! proxy, and through the proxy while it records. All of it runs on one processor, so that
//! wake-ups between processors, which vary more than what is measured, play no part. The
//! three take turns, call by call, so that whatever else the machine does hits all alike. A
//! ratio is taken within a round; the median over the rounds is shown beside what we want.
//!
//! The same for `--upstream`, beside a client straight at the server. There the number of
//! connections is checked, too: one that is opened for each call fails the benchmark.
#![expect(clippy::print_stdout, reason = "a table is what a benchmark is for")]

mod host;
mod roles;
mod web;

use std::{
    env, io, thread,
    time::{Duration, Instant},
};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::{
    host::{Host, Way},
    web::{Client, Server},
};

/// A line of a usual call.
const SMALL: usize = 200;

/// A line of a call that carries a document.
const BIG: usize = 1_000_000;

/// Calls in flight, at most, for a host that does not wait.
const WINDOW: usize = 512;

fn main() -> io::Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some(roles::ECHO) => roles::echo(),
        Some(roles::FLOOD) => roles::flood(),
        Some(roles::RELAY) => roles::relay(&words[1..]),
        _ => {
            let rounds = words.iter().find_map(|word| word.parse().ok());
            measure(rounds.unwrap_or(5))
        }
    }
}

/// Calls that are timed together when many are in flight.
const BATCH: u32 = 2_000;

fn measure(rounds: u32) -> io::Result<()> {
    stay_on_one_processor()?;
    let mut taken = Vec::new();
    for nth in 1..=rounds {
        println!("round {nth} of {rounds}");
        taken.push(Round::take()?);
    }
    print_times(&taken);
    print_memory()?;
    measure_web(rounds)
}

/// This process and all that it starts: the last processor of those allowed, which has the least else to do.
fn stay_on_one_processor() -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let last = (0..CpuSet::MAX_CPU)
        .rev()
        .find(|&processor| allowed.is_set(processor));
    let mut one = CpuSet::new();
    one.set(last.unwrap_or_default());
    Ok(sched_setaffinity(None, &one)?)
}

/// The medians of one round, each in the order of [`Way::ALL`].
struct Round {
    /// From starting the command to the answer of `initialize`.
    start: Vec<Duration>,
    /// A call, when there is no other.
    small: Vec<Duration>,
    /// The same with a big one.
    big: Vec<Duration>,
    /// [`BATCH`] calls, when [`WINDOW`] may be in flight.
    batch: Vec<Duration>,
}

impl Round {
    fn take() -> io::Result<Self> {
        let start = in_turn(9, &mut Way::ALL.to_vec(), |way| {
            let began = Instant::now();
            let host = started(*way)?;
            let took = began.elapsed();
            host.end()?;
            Ok(took)
        })?;
        let hosts: io::Result<Vec<Host>> = Way::ALL.into_iter().map(started).collect();
        let mut hosts = hosts?;
        in_turn(300, &mut hosts, |host| timed(|| host.call(SMALL)))?;
        let small = in_turn(3_000, &mut hosts, |host| timed(|| host.call(SMALL)))?;
        let big = in_turn(40, &mut hosts, |host| timed(|| host.call(BIG)))?;
        let batch = in_turn(15, &mut hosts, |host| {
            timed(|| host.pipeline(BATCH, SMALL, WINDOW))
        })?;
        for host in hosts {
            host.end()?;
        }
        Ok(Self {
            start,
            small,
            big,
            batch,
        })
    }
}

/// A host whose session is open.
fn started(way: Way) -> io::Result<Host> {
    let mut host = Host::start(way, roles::ECHO)?;
    host.initialize()?;
    Ok(host)
}

/// Has each of `those` do its work so many times, one after the other, and returns the median times.
fn in_turn<T>(
    times: u32,
    those: &mut [T],
    mut work: impl FnMut(&mut T) -> io::Result<Duration>,
) -> io::Result<Vec<Duration>> {
    let mut taken = vec![Vec::new(); those.len()];
    for _ in 0..times {
        for (one, taken) in those.iter_mut().zip(&mut taken) {
            taken.push(work(one)?);
        }
    }
    Ok(taken.into_iter().map(median).collect())
}

fn timed(work: impl FnOnce() -> io::Result<()>) -> io::Result<Duration> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed())
}

fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_by(|one, other| one.partial_cmp(other).expect("times are comparable"));
    values[values.len() / 2]
}

fn print_times(rounds: &[Round]) {
    const RELAY: usize = 0;
    const FORWARDING: usize = 1;
    const RECORDING: usize = 2;
    type What = fn(&Round) -> &[Duration];
    let start: What = |round| &round.start;
    let small: What = |round| &round.small;
    let big: What = |round| &round.big;
    let batch: What = |round| &round.batch;

    println!("\n| what | relay | proxy | beside the relay | wanted |");
    println!("|---|--:|--:|--:|--:|");
    for (name, what, way, most) in [
        ("200-byte call, forwarding", small, FORWARDING, 1.15),
        ("200-byte call, recording", small, RECORDING, 1.7),
        ("1 MB call, forwarding", big, FORWARDING, 1.8),
        ("1 MB call, recording", big, RECORDING, 1.8),
        (
            "2,000 calls, 512 in flight, forwarding",
            batch,
            FORWARDING,
            2.0,
        ),
        (
            "2,000 calls, 512 in flight, recording",
            batch,
            RECORDING,
            2.0,
        ),
    ] {
        let times = |way: usize| over(rounds, |round| what(round)[way].as_secs_f64() * 1e6);
        let ratio = over(rounds, |round| {
            what(round)[way].as_secs_f64() / what(round)[RELAY].as_secs_f64()
        });
        println!(
            "| {name} | {:.1} µs | {:.1} µs | {ratio:.2} times | {}",
            times(RELAY),
            times(way),
            wanted(ratio, most)
        );
    }
    for (name, way) in [("forwarding", FORWARDING), ("recording", RECORDING)] {
        let times = |way: usize| over(rounds, |round| start(round)[way].as_secs_f64() * 1e3);
        let more = over(rounds, |round| {
            (start(round)[way].as_secs_f64() - start(round)[RELAY].as_secs_f64()) * 1e3
        });
        println!(
            "| start to the answer of initialize, {name} | {:.1} ms | {:.1} ms | {more:.1} ms more | {}",
            times(RELAY),
            times(way),
            wanted(more, 8.0)
        );
    }
}

/// The median over the rounds.
fn over(rounds: &[Round], value: impl Fn(&Round) -> f64) -> f64 {
    median(rounds.iter().map(value).collect())
}

fn wanted(value: f64, most: f64) -> String {
    let mark = if value <= most { "" } else { ", **missed**" };
    format!("≤ {most}{mark} |")
}

/// Peaks of memory that stayed in the proxy.
fn print_memory() -> io::Result<()> {
    println!("\n| memory of the proxy, recording, at its peak | MB | wanted |");
    println!("|---|--:|--:|");
    let say = |name: &str, peak: f64, most: f64| {
        println!("| {name} | {peak:.1} | {}", wanted(peak, most));
    };

    let mut host = started(Way::Recording)?;
    for _ in 0..50 {
        host.call(BIG)?;
    }
    say("50 calls of 1 MB", host.peak()?, 16.0);
    host.end()?;

    let mut host = started(Way::Recording)?;
    let before = host.peak()?;
    host.call(64_000_000)?;
    say(
        "a call of 64 MB, each way, more than before",
        host.peak()? - before,
        3.0 * 64.0,
    );
    host.end()?;

    let mut host = started(Way::Recording)?;
    host.pipeline(100_000, SMALL, WINDOW)?;
    let before = host.peak()?;
    host.pipeline(400_000, SMALL, WINDOW)?;
    say(
        "a million lines, more than the first 200,000",
        host.peak()? - before,
        1.0,
    );
    host.end()?;

    let host = Host::start(Way::Recording, roles::FLOOD)?;
    // By then the server has filled all that there is to fill.
    thread::sleep(Duration::from_secs(2));
    say(
        "a host that does not read what a server pours out",
        host.peak()?,
        16.0,
    );
    host.kill()
}

/// The medians of one round over HTTP: straight at the server, and through the proxy.
struct WebRound {
    small: [Duration; 2],
    big: [Duration; 2],
    batch: [Duration; 2],
}

/// Clients that share the calls of a batch when there is no proxy.
const CLIENTS: usize = 16;

fn measure_web(rounds: u32) -> io::Result<()> {
    let server = Server::start()?;
    let clients: io::Result<Vec<Client>> = (0..CLIENTS).map(|_| Client::connect(&server)).collect();
    let mut clients = clients?;
    let mut host = Host::start(Way::Upstream, &server.url())?;
    host.initialize()?;

    let mut taken = Vec::new();
    let mut connections = [0; 2];
    for nth in 1..=rounds {
        println!("round {nth} of {rounds}, over HTTP");
        let before = server.connections();
        let both = |times, client: &mut Client, host: &mut Host, size| {
            let mut each = [Vec::new(), Vec::new()];
            for _ in 0..times {
                each[0].push(timed(|| client.call(size))?);
                each[1].push(timed(|| host.call(size))?);
            }
            io::Result::Ok(each.map(median))
        };
        both(300, &mut clients[0], &mut host, SMALL)?;
        let small = both(3_000, &mut clients[0], &mut host, SMALL)?;
        let big = both(40, &mut clients[0], &mut host, BIG)?;
        connections[0] += server.connections() - before;
        let before = server.connections();
        let mut batch = [Vec::new(), Vec::new()];
        for _ in 0..15 {
            batch[0].push(timed(|| web::share(&mut clients, BATCH, SMALL))?);
            batch[1].push(timed(|| host.pipeline(BATCH, SMALL, WINDOW))?);
        }
        connections[1] += server.connections() - before;
        taken.push(WebRound {
            small,
            big,
            batch: batch.map(median),
        });
    }
    print_web(&taken);
    let peak = host.peak()?;
    host.end()?;
    println!("\n| what else | got | wanted |\n|---|--:|--:|");
    println!(
        "| memory of the proxy at its peak, MB | {peak:.1} | {}",
        wanted(peak, 20.0)
    );
    let [one_by_one, at_once] = connections;
    println!("| connections opened for calls one by one, all rounds | {one_by_one} | ≤ 2 |");
    println!(
        "| connections opened for {WINDOW} calls at once, all rounds | {at_once} | ≤ {WINDOW} |"
    );
    assert!(one_by_one <= 2, "a connection serves more than one call");
    assert!(at_once <= WINDOW, "connections serve batch after batch");
    Ok(())
}

fn print_web(rounds: &[WebRound]) {
    type What = fn(&WebRound) -> [Duration; 2];
    let small: What = |round| round.small;
    let big: What = |round| round.big;
    let batch: What = |round| round.batch;
    println!("\n| over HTTP | straight | proxy | beside the client | wanted |");
    println!("|---|--:|--:|--:|--:|");
    for (name, what, most) in [
        ("200-byte call", small, 4.0),
        ("1 MB call", big, 2.0),
        ("2,000 calls, many in flight", batch, 2.5),
    ] {
        let time = |way: usize| {
            median(
                rounds
                    .iter()
                    .map(|round| what(round)[way].as_secs_f64() * 1e6)
                    .collect(),
            )
        };
        let ratio = median(
            rounds
                .iter()
                .map(|round| what(round)[1].as_secs_f64() / what(round)[0].as_secs_f64())
                .collect(),
        );
        println!(
            "| {name} | {:.1} µs | {:.1} µs | {ratio:.2} times | {}",
            time(0),
            time(1),
            wanted(ratio, most)
        );
    }
}
