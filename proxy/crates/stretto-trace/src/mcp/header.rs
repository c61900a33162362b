//! A log's first line: which session this is.

use serde::{Deserialize, Serialize};

/// The log format's version that is written.
pub const LOG_VERSION: u64 = 2;

/// What a log says about its session, in its first line.
///
/// The fields stand in the order in which they are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The format's version: 2, or 1 for a log without entries of the proxy's own.
    pub stretto_mcp_log: u64,
    /// The session's name, which is also the stem of its file's.
    pub session: String,
    /// When recording began, in milliseconds since 1970 UTC. The entries' times count from here.
    pub started_unix_ms: u64,
    /// The command that started the server, or its URL as the only word, without secrets.
    #[serde(default)]
    pub server_command: Vec<String>,
    /// Whose tools these are, if the user said so.
    #[serde(default)]
    pub domain: Option<String>,
    /// The model that drives the agent, if the user said so: it cannot be seen on the wire.
    #[serde(default)]
    pub agent_model: Option<String>,
}

impl Header {
    /// A header of the version that is written, with nothing known about domain and model.
    pub fn new(
        session: impl Into<String>,
        started_unix_ms: u64,
        server_command: Vec<String>,
    ) -> Self {
        Self {
            stretto_mcp_log: LOG_VERSION,
            session: session.into(),
            started_unix_ms,
            server_command,
            domain: None,
            agent_model: None,
        }
    }

    /// The same header, naming the domain.
    #[must_use]
    pub fn with_domain(mut self, domain: Option<String>) -> Self {
        self.domain = domain;
        self
    }

    /// The same header, naming the agent's model.
    #[must_use]
    pub fn with_agent_model(mut self, agent_model: Option<String>) -> Self {
        self.agent_model = agent_model;
        self
    }

    /// Appends the header as a log's first line, line feed included. Every member is written.
    pub fn encode(&self, out: &mut Vec<u8>) {
        serde_json::to_writer(&mut *out, self)
            .expect("a header is text, numbers and lists, and memory takes every write");
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_is_written_in_order_and_null_when_unknown() {
        let header = Header::new(
            "s-1",
            1_790_198_400_123,
            vec!["npx".into(), "a \"b\"".into()],
        )
        .with_domain(Some("orders".into()));
        let mut line = Vec::new();
        header.encode(&mut line);
        assert_eq!(
            String::from_utf8(line).unwrap(),
            "{\"stretto_mcp_log\":2,\"session\":\"s-1\",\"started_unix_ms\":1790198400123,\
             \"server_command\":[\"npx\",\"a \\\"b\\\"\"],\"domain\":\"orders\",\"agent_model\":null}\n"
        );
    }

    #[test]
    fn the_last_three_members_may_be_absent_and_unknown_ones_present() {
        let line =
            r#"{"host_session":"h","stretto_mcp_log":1,"session":"s-1","started_unix_ms":7}"#;
        let header: Header = serde_json::from_str(line).unwrap();
        let mut expected = Header::new("s-1", 7, Vec::new());
        expected.stretto_mcp_log = 1;
        assert_eq!(header, expected);
    }
}
