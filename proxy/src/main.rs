//! The proxy.

fn main() {}
