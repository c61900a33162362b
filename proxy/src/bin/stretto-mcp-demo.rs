//! The demo server.

fn main() {}
