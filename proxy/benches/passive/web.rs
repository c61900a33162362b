//! The same echo behind Streamable HTTP: a server that counts its connections, and a client that
//! talks to it without the proxy.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    thread,
};

use crate::{
    host::{call, is_to, read_answer},
    roles::answer,
};

/// A server that answers each call with the call's text, as one JSON body.
pub(crate) struct Server {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// Serves from a thread of its own for as long as this process runs.
    pub(crate) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let server = Self {
            address: listener.local_addr()?,
            connections: Arc::default(),
        };
        let connections = Arc::clone(&server.connections);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                connections.fetch_add(1, Ordering::Relaxed);
                // A client that hangs up is no news.
                thread::spawn(move || serve(&stream).ok());
            }
        });
        Ok(server)
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// How many connections have been opened to it so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// What stands before a body.
struct Head {
    first: String,
    length: usize,
}

impl Head {
    /// The next one, or none when the other side has hung up.
    fn read(input: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut head = Self {
            first: String::new(),
            length: 0,
        };
        if input.read_line(&mut head.first)? == 0 {
            return Ok(None);
        }
        let mut line = String::new();
        loop {
            line.clear();
            input.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else {
                return Ok(Some(head));
            };
            if name.eq_ignore_ascii_case("content-length") {
                head.length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
    }
}

fn serve(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::with_capacity(64 * 1024, stream);
    let mut output = stream;
    let mut body = Vec::new();
    let mut reply = Vec::new();
    while let Some(head) = Head::read(&mut input)? {
        body.resize(head.length, 0);
        input.read_exact(&mut body)?;
        body.push(b'\n');
        let mut said = Vec::new();
        let status = match head.first.split(' ').next() {
            Some("POST") if answer(&body, &mut said).is_ok() => "200 OK",
            Some("POST") => "202 Accepted",
            Some("DELETE") => "200 OK",
            _ => "405 Method Not Allowed",
        };
        reply.clear();
        write!(
            reply,
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            said.len()
        )?;
        reply.extend_from_slice(&said);
        output.write_all(&reply)?;
    }
    Ok(())
}

/// A client straight at the server, with one connection.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    id: u64,
    answer: Vec<u8>,
}

impl Client {
    /// Connects.
    pub(crate) fn connect(server: &Server) -> io::Result<Self> {
        let stream = TcpStream::connect(server.address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::with_capacity(64 * 1024, stream),
            id: 0,
            answer: Vec::new(),
        })
    }

    /// A call whose body has about `size` bytes, and its answer, which has as many.
    pub(crate) fn call(&mut self, size: usize) -> io::Result<()> {
        self.id += 1;
        let body = call(self.id, size);
        let mut request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(&body);
        self.stream.get_mut().write_all(&request)?;
        let head = Head::read(&mut self.stream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut body = (&mut self.stream).take(head.length as u64);
        is_to(self.id, read_answer(&mut body, &mut self.answer, size)?)
    }
}

/// `count` calls, shared by as many clients as there are.
pub(crate) fn share(clients: &mut [Client], count: u32, size: usize) -> io::Result<()> {
    let left = AtomicU32::new(count);
    let take = || {
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        })
    };
    thread::scope(|scope| {
        let workers: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                scope.spawn(move || {
                    while take().is_ok() {
                        client.call(size)?;
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a client panicked")))
        })
    })
}
