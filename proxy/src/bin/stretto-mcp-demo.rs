//! The demo server: small MCP servers for trying and testing the proxy.

use std::process::ExitCode;

fn main() -> ExitCode {
    stretto_demo_server::main()
}
