//! The offline program: what people do with recorded sessions.

use std::process::ExitCode;

/// Thousands of logs are millions of small pieces of memory, taken and given back on several
/// threads. The usual allocator spends four fifths of the time on looking for room among them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    stretto_cli::run(std::env::args_os())
}
