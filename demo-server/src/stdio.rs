//! The server on stdin and stdout: a line in, a line out.
//!
//! Synchronous on purpose. The proxy is measured in front of it, so a line costs one read, one
//! pass of the server and one write.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::thread;

use crate::protocol::Message;
use crate::server::Server;

/// How much is read at once.
const READ_AT_ONCE: usize = 64 * 1024;

/// Serves stdin until its end.
///
/// # Errors
///
/// When stdin cannot be read. A host that no longer reads stdout is an end, and no error.
pub(crate) fn serve(server: &Server) -> io::Result<()> {
    lines(server, io::stdin().lock(), io::stdout().lock())
}

/// Answers each line of the input in order, one after another.
fn lines(server: &Server, input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut input = BufReader::with_capacity(READ_AT_ONCE, input);
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let reaction = server.react(&Message::read(&line));
        if !reaction.delay.is_zero() {
            thread::sleep(reaction.delay);
        }
        let Some(answer) = reaction.answer else {
            continue;
        };
        let mut answer = answer.into_bytes();
        answer.push(b'\n');
        match output.write_all(&answer).and_then(|()| output.flush()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::Settings;

    fn answers(input: &[u8]) -> Vec<Value> {
        let mut output = Vec::new();
        lines(&Server::new(&Settings::default()), input, &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn a_last_line_without_its_end_is_answered() {
        assert_eq!(
            answers(br#"{"id":1,"method":"ping"}"#),
            [json!({"jsonrpc": "2.0", "id": 1, "result": {}})]
        );
    }

    #[test]
    fn calls_are_answered_in_order_though_the_first_is_slow() {
        let input = br#"{"id":1,"method":"tools/call","params":{"name":"lookup","arguments":{"delay_ms":30}}}
{"id":2,"method":"tools/call","params":{"name":"lookup"}}
"#;
        let ids: Vec<Value> = answers(input)
            .into_iter()
            .map(|answer| answer["id"].clone())
            .collect();
        assert_eq!(ids, [1, 2]);
    }
}
