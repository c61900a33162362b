//! The proxy in front of servers over Streamable HTTP: whole programs, real sockets.

mod bare;
mod bounds;
mod ends;
mod host;
mod modern;
mod proxies;
mod refusals;
mod secrets;
mod session;
mod streams;
mod tls;
