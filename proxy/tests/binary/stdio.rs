//! What the proxy's own stdin and stdout may be.

use std::{
    fs::{self, File},
    io::Write,
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::Stdio,
    thread,
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{OptionalActions, tcgetattr, tcsetattr},
};

use crate::support::{Proxy, Reader, sockets};

const COUNT: usize = 2_000;

fn lines() -> String {
    let line = |n: usize| format!("{{\"id\":{n},\"pad\":\"{}\"}}\n", "p".repeat(n));
    (0..COUNT).map(line).collect::<Vec<String>>().concat()
}

/// Two megabytes through `cat`: much more than a pipe or a socket holds.
fn carries_all(input: OwnedFd, output: OwnedFd, stdin: OwnedFd, stdout: OwnedFd) {
    let mut session = Proxy::recording().start(["cat"], stdin.into(), stdout.into());
    let text = lines();
    let mut input = File::from(input);
    let mut output = Reader::new(output);
    thread::scope(|scope| {
        let text = &text;
        scope.spawn(move || input.write_all(text.as_bytes()).expect("the proxy reads"));
        assert!(output.rest() == text.as_bytes(), "cat says it again");
    });
    assert_eq!(session.code(), 0);
    assert_eq!(session.recorded().of("client").len(), COUNT);
    assert_eq!(session.recorded().of("server").len(), COUNT);
}

#[test]
fn a_socket_for_each_direction_carries_all() {
    let (input, stdin) = sockets();
    let (output, stdout) = sockets();
    carries_all(input, output, stdin, stdout);
}

#[test]
fn one_socket_for_both_directions_carries_all_and_half_of_it_may_end() {
    let (host, proxy) = UnixStream::pair().unwrap();
    let mut session = Proxy::recording().start(
        ["cat"],
        OwnedFd::from(proxy.try_clone().unwrap()).into(),
        OwnedFd::from(proxy).into(),
    );
    let text = lines();
    let mut output = Reader::new(host.try_clone().unwrap());
    thread::scope(|scope| {
        let (mut host, text) = (&host, &text);
        scope.spawn(move || {
            host.write_all(text.as_bytes()).expect("the proxy reads");
            host.shutdown(std::net::Shutdown::Write).unwrap();
        });
        assert!(output.rest() == text.as_bytes(), "cat says it again");
    });
    assert_eq!(session.code(), 0);
    assert_eq!(session.recorded().of("server").len(), COUNT);
}

#[test]
fn a_socket_that_the_host_has_closed_is_its_end() {
    let (host, proxy) = UnixStream::pair().unwrap();
    let mut session = Proxy::recording().start(
        ["sh", "-c", "cat; echo last words; exit 3"],
        OwnedFd::from(proxy.try_clone().unwrap()).into(),
        OwnedFd::from(proxy).into(),
    );
    let mut end = &host;
    end.write_all(b"hello\n").unwrap();
    assert_eq!(
        Reader::new(host.try_clone().unwrap()).line().unwrap(),
        b"hello\n"
    );
    drop(host);
    assert_eq!(session.code(), 3);
    let messages = session.messages();
    assert_eq!(
        messages.matches("forwarding to the client").count(),
        1,
        "{messages}"
    );
    assert_eq!(
        session.recorded().of("server"),
        ["raw:\"hello\"", "raw:\"last words\""]
    );
}

#[test]
fn files_carry_all() {
    let proxy = Proxy::recording();
    let (input, output) = (proxy.folder().join("in"), proxy.folder().join("out"));
    fs::write(&input, lines()).unwrap();
    let mut session = proxy.start(
        ["cat"],
        File::open(&input).unwrap().into(),
        File::create(&output).unwrap().into(),
    );
    assert_eq!(session.code(), 0);
    assert!(fs::read_to_string(&output).unwrap() == lines());
    assert_eq!(session.recorded().of("client").len(), COUNT);
    assert_eq!(session.recorded().of("server").len(), COUNT);
}

#[test]
fn a_file_that_is_appended_to_keeps_what_it_holds() {
    let proxy = Proxy::forwarding();
    let output = proxy.folder().join("out");
    fs::write(&output, "before\n").unwrap();
    let stdout = File::options().append(true).open(&output).unwrap();
    let mut session = proxy.start(["echo", "after"], Stdio::null(), stdout.into());
    assert_eq!(session.code(), 0);
    assert_eq!(fs::read_to_string(&output).unwrap(), "before\nafter\n");
}

#[test]
fn nothing_at_all_on_both_sides_is_a_short_session() {
    let mut session = Proxy::recording().start(
        ["sh", "-c", "cat; echo unheard; exit 4"],
        Stdio::null(),
        Stdio::null(),
    );
    assert_eq!(session.code(), 4);
    assert_eq!(session.recorded().of("server"), ["raw:\"unheard\""]);
}

#[test]
fn a_full_device_as_stdout_is_a_host_that_does_not_read() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut session = Proxy::recording().start(
        ["sh", "-c", "echo one; echo two"],
        Stdio::null(),
        full.into(),
    );
    assert_eq!(session.code(), 0);
    let messages = session.messages();
    assert_eq!(
        messages.matches("forwarding to the client").count(),
        1,
        "{messages}"
    );
    assert_eq!(
        session.recorded().of("server"),
        ["raw:\"one\"", "raw:\"two\""]
    );
}

#[test]
fn a_folder_as_stdin_cannot_be_read_and_is_taken_as_the_end() {
    let proxy = Proxy::forwarding();
    let folder = File::open(proxy.folder()).unwrap();
    let mut session = proxy.start(["sh", "-c", "cat; exit 5"], folder.into(), Stdio::piped());
    assert_eq!(session.code(), 5);
    assert_eq!(
        session
            .messages()
            .matches("reading from the client")
            .count(),
        1
    );
}

#[test]
fn a_terminal_carries_lines_and_the_servers_end_is_ours_while_a_read_of_it_waits() {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let line = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let mut raw = tcgetattr(&line).unwrap();
    raw.make_raw();
    tcsetattr(&line, OptionalActions::Now, &raw).unwrap();
    let mut session = Proxy::recording().start(
        ["sh", "-c", "read line; echo $line; exit 6"],
        line.try_clone().unwrap().into(),
        line.into(),
    );
    let mut host = File::from(terminal.try_clone().unwrap());
    host.write_all(b"hello\n").unwrap();
    assert_eq!(Reader::new(terminal).line().unwrap(), b"hello\n");
    assert_eq!(session.code(), 6);
    assert_eq!(session.recorded().sides(), ["client", "server"]);
}
