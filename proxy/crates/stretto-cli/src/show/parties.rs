//! Who took part in a session, and which revision of the protocol they spoke.

use serde_json::Value;
use stretto_trace::mcp::{Log, Who};

/// Host, server and protocol, as far as the session says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parties {
    /// The host's name and version.
    pub(super) host: Option<String>,
    /// The server's name and version.
    pub(super) server: Option<String>,
    pub(super) protocol: Option<Protocol>,
    /// Whether the host did nothing but ask which revisions the server speaks.
    pub(super) is_probe: bool,
}

/// The revision that was spoken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Agreed in the answer to `initialize`.
    Agreed {
        revision: String,
        asked: Option<String>,
    },
    /// Asked for in `initialize`, which was not answered with one.
    Asked(String),
    /// Named by each request.
    PerRequest(String),
}

impl Parties {
    /// What `log` says.
    ///
    /// Sessions without `initialize` name both sides in the `_meta` of requests and results.
    pub(super) fn of(log: &Log) -> Self {
        let mut seen = Seen::default();
        for (entry, message) in log.messages() {
            match entry.from {
                Who::Client => seen.host_said(message),
                Who::Server => seen.server_said(message),
                Who::Proxy | Who::Context => {}
            }
        }
        let protocol = match (seen.agreed, seen.asked, seen.per_request) {
            (Some(revision), asked, _) => {
                let asked = asked.filter(|asked| *asked != revision);
                Some(Protocol::Agreed { revision, asked })
            }
            (None, _, Some(revision)) => Some(Protocol::PerRequest(revision)),
            (None, Some(asked), None) => Some(Protocol::Asked(asked)),
            (None, None, None) => None,
        };
        Self {
            host: seen.host.or(seen.host_meta),
            server: seen.server.or(seen.server_meta),
            protocol,
            is_probe: seen.discovers && !seen.does_more,
        }
    }
}

const PREFIX: &str = "io.modelcontextprotocol/";

#[derive(Default)]
struct Seen {
    host: Option<String>,
    host_meta: Option<String>,
    server: Option<String>,
    server_meta: Option<String>,
    asked: Option<String>,
    agreed: Option<String>,
    per_request: Option<String>,
    initialize: Option<Value>,
    discovers: bool,
    does_more: bool,
}

impl Seen {
    fn host_said(&mut self, message: &Value) {
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            return;
        };
        let params = message.get("params");
        let meta = |name: &str| params?.get("_meta")?.get(format!("{PREFIX}{name}"));
        if self.host_meta.is_none() {
            self.host_meta = named(meta("clientInfo"));
        }
        if let Some(revision) = meta("protocolVersion").and_then(Value::as_str) {
            self.per_request = Some(revision.to_owned());
        }
        if method == "server/discover" {
            self.discovers = true;
            return;
        }
        self.does_more = true;
        if method == "initialize" {
            let param = |name: &str| params.and_then(|params| params.get(name));
            self.host = self.host.take().or_else(|| named(param("clientInfo")));
            self.asked = param("protocolVersion")
                .and_then(Value::as_str)
                .map(str::to_owned);
            self.initialize = message.get("id").cloned();
        }
    }

    fn server_said(&mut self, message: &Value) {
        let Some(result) = message.get("result") else {
            return;
        };
        if self.server_meta.is_none() {
            let meta = result
                .get("_meta")
                .and_then(|meta| meta.get(format!("{PREFIX}serverInfo")));
            self.server_meta = named(meta);
        }
        if self.initialize.is_some() && message.get("id") == self.initialize.as_ref() {
            self.initialize = None;
            self.server = self
                .server
                .take()
                .or_else(|| named(result.get("serverInfo")));
            self.agreed = result
                .get("protocolVersion")
                .and_then(Value::as_str)
                .map(str::to_owned);
        } else if self.discovers && self.server_meta.is_none() {
            self.server_meta = named(result.get("serverInfo"));
        }
    }
}

/// An implementation's name and version.
fn named(info: Option<&Value>) -> Option<String> {
    let info = info?;
    let name = info.get("name")?.as_str()?;
    Some(match info.get("version").and_then(Value::as_str) {
        Some(version) => format!("{name} {version}"),
        None => name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use stretto_trace::mcp::{Body, Entry, Header};

    fn parties(lines: &[(Who, Value)]) -> Parties {
        let entry = |(from, message): &(Who, Value)| Entry {
            t_ms: 0,
            from: *from,
            body: Body::Message(message.clone()),
        };
        Parties::of(&Log {
            header: Header::new("s", 0, Vec::new()),
            entries: lines.iter().map(entry).collect(),
            is_cut_off: false,
        })
    }

    #[test]
    fn initialize_names_both_sides_and_the_revision() {
        let hello = json!({"id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "clientInfo": {"name": "desk", "version": "2"}}});
        let welcome = json!({"id": 0, "result": {
            "protocolVersion": "2025-06-18", "serverInfo": {"name": "shop"}}});
        let asked = Some("2025-11-25".to_owned());
        assert_eq!(
            parties(&[(Who::Client, hello.clone()), (Who::Server, welcome)]),
            Parties {
                host: Some("desk 2".into()),
                server: Some("shop".into()),
                protocol: Some(Protocol::Agreed {
                    revision: "2025-06-18".into(),
                    asked
                }),
                is_probe: false,
            }
        );
        let refused = json!({"id": 0, "error": {"code": -32022}});
        let asked = parties(&[(Who::Client, hello), (Who::Server, refused)]);
        assert_eq!(asked.protocol, Some(Protocol::Asked("2025-11-25".into())));
    }

    #[test]
    fn without_initialize_requests_and_results_name_the_sides() {
        let request = |id: u32, method: &str| {
            json!({"id": id, "method": method, "params": {"_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "py", "version": "2.3"}}}})
        };
        let result = |id: u32| {
            json!({"id": id, "result": {"_meta": {
                "io.modelcontextprotocol/serverInfo": {"name": "git", "version": "1"}}}})
        };
        let discover = (Who::Client, request(1, "server/discover"));
        let probe = parties(std::slice::from_ref(&discover));
        assert!(probe.is_probe);
        let session = parties(&[
            discover,
            (Who::Server, json!({"id": 1, "result": {}})),
            (Who::Client, request(2, "tools/list")),
            (Who::Server, result(2)),
        ]);
        assert_eq!(
            session,
            Parties {
                host: Some("py 2.3".into()),
                server: Some("git 1".into()),
                protocol: Some(Protocol::PerRequest("2026-07-28".into())),
                is_probe: false,
            }
        );
    }
}
