//! The proxy.

use std::process::ExitCode;

fn main() -> ExitCode {
    stretto_proxy::main()
}
