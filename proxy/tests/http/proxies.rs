//! Proxies between the client and the server, as the environment names them.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    thread,
};

use serde_json::json;

use crate::{
    bare::{Bare, Out, Request, result},
    host::Host,
};

/// Answers whatever asks something.
fn answered(request: &Request, out: &mut Out) -> std::io::Result<()> {
    out.json(&result(request, &json!({})))
}

/// A SOCKS 5 proxy that takes every client to `target`, and tells for whom it was asked.
fn socks(target: &str) -> std::io::Result<(String, mpsc::Receiver<String>)> {
    let target = target.to_owned();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    let (tell, told) = mpsc::channel();
    let carry = move |mut client: TcpStream, tell: &mpsc::Sender<String>| -> std::io::Result<()> {
        let mut head = [0; 2];
        client.read_exact(&mut head)?;
        client.read_exact(&mut vec![0; head[1].into()])?;
        client.write_all(&[5, 0])?;
        let mut request = [0; 5];
        client.read_exact(&mut request)?;
        // A connection, to a name of that length, and a port.
        assert_eq!(request[..4], [5, 1, 0, 3]);
        let mut name = vec![0; usize::from(request[4]) + 2];
        client.read_exact(&mut name)?;
        name.truncate(name.len() - 2);
        tell.send(String::from_utf8_lossy(&name).into_owned()).ok();
        client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
        let mut server = TcpStream::connect(&target)?;
        let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
        thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
        std::io::copy(&mut server, &mut client).map(drop)
    };
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (carry, tell) = (carry.clone(), tell.clone());
            thread::spawn(move || carry(client, &tell));
        }
    });
    Ok((address, told))
}

#[test]
fn a_socks_proxy_that_the_environment_names_carries_the_requests() {
    let server = Bare::with_sessions(answered);
    let target = server.url.trim_start_matches("http://");
    let (address, told) = socks(target.trim_end_matches("/mcp")).expect("it listens");
    let proxy = format!("socks5h://{address}");
    let variables = [
        ("ALL_PROXY", proxy.as_str()),
        ("all_proxy", proxy.as_str()),
        ("NO_PROXY", ""),
        ("no_proxy", ""),
    ];
    let mut host = Host::start(&["--upstream", "http://mcp.test/mcp"], &variables);
    host.open();
    host.ask(1, "ping", json!({}));
    host.answer(1);
    host.finish();
    assert_eq!(told.recv().expect("it was asked"), "mcp.test");
    assert!(server.seen().iter().any(|request| request.what() == "ping"));
}

#[test]
fn a_proxy_that_the_environment_names_carries_the_requests_and_not_those_to_this_machine() {
    let proxy = Bare::start(|request, out| match request.what().as_str() {
        "initialize" => out.json(&crate::bare::initialized(&json!(0))),
        _ => answered(request, out),
    });
    let address = proxy.url.trim_end_matches("/mcp").to_owned();
    let variables = [
        ("HTTP_PROXY", address.as_str()),
        ("http_proxy", address.as_str()),
        ("NO_PROXY", ""),
        ("no_proxy", ""),
    ];
    let mut host = Host::start(&["--upstream", "http://mcp.test/mcp?x=1"], &variables);
    assert!(host.open()["result"].is_object());
    host.ask(1, "ping", json!({}));
    host.answer(1);
    host.finish();
    assert_eq!(proxy.seen()[0].target, "http://mcp.test/mcp?x=1");

    let seen = proxy.seen().len();
    let mut host = Host::start(&["--upstream", "http://127.0.0.1:9/mcp"], &variables);
    host.ask(0, "initialize", json!({}));
    assert!(host.error(0).contains("could not be reached"));
    assert_eq!(proxy.seen().len(), seen);
}
