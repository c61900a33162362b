//! What this program is when it is started again: the server, and the relay before it.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    os::fd::AsFd,
    process::{Command, Stdio},
    thread,
};

use memchr::{memchr, memmem};

/// A server that answers each call with the call's text.
pub(crate) const ECHO: &str = "echo";

/// A server that speaks without being asked, as fast as it is heard.
pub(crate) const FLOOD: &str = "flood";

/// Starts the server named by the words after it, and copies bytes both ways.
pub(crate) const RELAY: &str = "relay";

pub(crate) fn echo() -> io::Result<()> {
    let mut input = BufReader::with_capacity(64 * 1024, io::stdin().lock());
    let mut output = unbuffered(&io::stdout())?;
    let mut line = Vec::new();
    let mut answers = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        answer(&line, &mut answers)?;
        line.clear();
        // Answers go out together only while more calls are here already.
        if answers.len() > 64 * 1024 || memchr(b'\n', input.buffer()).is_none() {
            output.write_all(&answers)?;
            answers.clear();
        }
    }
    Ok(())
}

/// Appends the answer to a call. Only our own host asks, whose lines have one shape.
pub(crate) fn answer(line: &[u8], answers: &mut Vec<u8>) -> io::Result<()> {
    let between = |start: &[u8], end: u8| {
        let from = memmem::find(line, start)? + start.len();
        let length = memchr(end, &line[from..])?;
        line.get(from..from + length)
    };
    let (Some(id), Some(text)) = (between(b"\"id\":", b','), between(b"\"text\":\"", b'"')) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    for part in [
        br#"{"jsonrpc":"2.0","id":"#.as_slice(),
        id,
        br#","result":{"content":[{"type":"text","text":""#,
        text,
        b"\"}]}}\n",
    ] {
        answers.extend_from_slice(part);
    }
    Ok(())
}

pub(crate) fn flood() -> io::Result<()> {
    let mut line = vec![b'f'; 999];
    line.push(b'\n');
    let mut output = unbuffered(&io::stdout())?;
    loop {
        output.write_all(&line)?;
    }
}

/// Two threads, each with a buffer as large as a pipe: the least that can stand between.
pub(crate) fn relay(words: &[String]) -> io::Result<()> {
    let [_, program, arguments @ ..] = words else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut server = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(to_server), Some(from_server)) = (server.stdin.take(), server.stdout.take()) else {
        return Err(io::Error::other("pipes were asked for"));
    };
    let (stdin, stdout) = (unbuffered(&io::stdin())?, unbuffered(&io::stdout())?);
    let up = thread::spawn(move || copy(stdin, to_server));
    copy(from_server, stdout)?;
    server.wait()?;
    // The other way has ended with the host's input, or goes with this process.
    drop(up);
    Ok(())
}

fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        match from.read(&mut bytes)? {
            0 => return Ok(()),
            count => to.write_all(&bytes[..count])?,
        }
    }
}

fn unbuffered(end: &impl AsFd) -> io::Result<File> {
    Ok(end.as_fd().try_clone_to_owned()?.into())
}
