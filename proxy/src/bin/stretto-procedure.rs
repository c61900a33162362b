//! The program that runs procedures.

use std::process::ExitCode;

fn main() -> ExitCode {
    stretto_proxy::procedure::main()
}
