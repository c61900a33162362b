//! The offline program: what people do with recorded sessions.

fn main() {}
