use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use super::*;

/// A server that answers everything, and the HTTP methods that it was asked with so far.
fn server() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let noted = Arc::clone(&noted);
            thread::spawn(move || while answered(&stream, &noted).is_some() {});
        }
    });
    (url, seen)
}

fn answered(mut stream: &TcpStream, noted: &Mutex<Vec<String>>) -> Option<()> {
    let mut head = BufReader::with_capacity(1, stream).lines();
    let method = head.next()?.ok()?.split(' ').next()?.to_owned();
    let mut length = 0;
    for line in head
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
    {
        let line = line.to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    noted.lock().ok()?.push(method);
    let body = String::from_utf8_lossy(&body);
    let answer = if body.contains("initialize\"") {
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}"#
    } else if body.contains("ping") {
        // A GET that should not be has this long to come.
        thread::sleep(Duration::from_millis(200));
        r#"{"jsonrpc":"2.0","id":2,"result":{}}"#
    } else {
        ""
    };
    let length = answer.len();
    stream
        .write_all(
            format!(
                "HTTP/1.1 200 OK\r\nMcp-Session-Id: s\r\nContent-Length: {length}\r\n\r\n{answer}"
            )
            .as_bytes(),
        )
        .ok()
}

#[test]
fn a_host_that_has_closed_its_end_hears_no_stream_of_the_servers_own() {
    let (url, seen) = server();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let lines = runtime.block_on(async {
        let endpoint = Endpoint::new(&url, &[]).expect("an endpoint");
        let mut http = Http::new(endpoint, OwnIds::default());
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
        ] {
            http.push(&Line::own(line.to_owned()));
        }
        http.close();
        let mut lines = 0;
        loop {
            match http.turn(true).await {
                ServerTurn::Spoke => {}
                ServerTurn::Gone(_) => return lines,
                _ => lines += std::iter::from_fn(|| http.take_line()).count(),
            }
        }
    });
    assert_eq!(lines, 2, "the answers");
    assert_eq!(
        *seen.lock().expect("no panics"),
        ["POST", "POST", "POST", "DELETE"],
        "everything that the host said, the end, and no GET"
    );
}
