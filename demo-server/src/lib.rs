//! The demo server: small MCP servers for trying and testing the proxy.
