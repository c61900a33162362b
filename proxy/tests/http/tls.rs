//! Servers behind TLS.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    path::PathBuf,
    sync::Arc,
    thread,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::json;

use crate::{bare::initialized, host::Host};

fn data(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/http/data", name]
        .iter()
        .collect()
}

/// A server with a certificate of its own making, which answers `initialize`. Returns its URL.
fn start() -> String {
    let certificate = CertificateDer::from_pem_file(data("cert.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(data("key.pem")).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("they fit");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let tls = ServerConnection::new(Arc::clone(&config)).expect("a connection");
            let mut stream = BufReader::new(StreamOwned::new(tls, stream));
            // A client that does not trust us ends the connection.
            answer(&mut stream);
        }
    });
    format!("https://127.0.0.1:{port}/mcp")
}

fn answer(stream: &mut BufReader<impl Read + Write>) -> Option<()> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream
            .read_line(&mut line)
            .ok()
            .filter(|&count| count > 0)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    let body = initialized(&json!(0)).to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.get_mut().write_all((head + &body).as_bytes()).ok()?;
    stream.get_mut().flush().ok()
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused() {
    let mut host = Host::before(&start());
    host.ask(0, "initialize", json!({}));
    let error = host.error(0);
    assert!(
        error.contains("could not be reached") && error.contains("certificate"),
        "{error}"
    );
}

#[test]
fn a_certificate_in_the_named_file_is_trusted() {
    let file = data("cert.pem");
    let variables = [("SSL_CERT_FILE", file.to_str().expect("text"))];
    let mut host = Host::start(&["--upstream", &start()], &variables);
    host.ask(0, "initialize", json!({}));
    assert!(host.answer(0).get("result").is_some());
}

#[test]
fn a_named_file_that_is_not_there_is_said_before_anything_starts() {
    let variables = [("SSL_CERT_FILE", "/nowhere/to/be/found.pem")];
    let host = Host::start(&["--upstream", "https://127.0.0.1:9/mcp"], &variables);
    let left = host.finish();
    assert_eq!(left.status.code(), Some(125));
    assert!(left.stderr.contains("SSL_CERT_FILE"), "{}", left.stderr);
}
