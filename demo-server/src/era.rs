//! The two eras of the protocol: sessions that begin with `initialize`, and requests that each
//! say who asks.

use serde_json::{Value, json};

use crate::protocol::{Call, RpcError};

/// The revisions of the modern era that the server speaks.
pub(crate) const VERSIONS: [&str; 1] = ["2026-07-28"];

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";
const LOG_KEY: &str = "io.modelcontextprotocol/logLevel";

/// How long a host may keep a list.
const TTL_MS: u64 = 300_000;

/// Which hosts a server serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Era {
    /// Those that begin with `initialize`.
    #[default]
    Legacy,
    /// Those that say on each request who they are.
    Modern,
    /// Both, each request as what it is.
    Dual,
}

impl Era {
    /// The era of that name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "legacy" => Some(Self::Legacy),
            "modern" => Some(Self::Modern),
            "dual" => Some(Self::Dual),
            _ => None,
        }
    }

    /// Whether a request is taken as one of the modern era.
    pub(crate) fn takes_as_modern(self, call: &Call) -> bool {
        match self {
            Self::Legacy => false,
            Self::Modern => true,
            Self::Dual => meta(call, VERSION_KEY).is_some(),
        }
    }
}

/// The version that a request says it speaks.
pub(crate) fn version(call: &Call) -> Option<&str> {
    meta(call, VERSION_KEY)?.as_str()
}

/// The capabilities that a request says its host has.
pub(crate) fn capabilities(call: &Call) -> Option<&Value> {
    meta(call, CAPABILITIES_KEY)
}

/// Whether a request asks for log messages.
pub(crate) fn wants_log(call: &Call) -> bool {
    meta(call, LOG_KEY).is_some()
}

fn meta<'a>(call: &'a Call, key: &str) -> Option<&'a Value> {
    call.params.get("_meta")?.get(key)
}

/// Refuses what a modern request must not be without.
pub(crate) fn admit(era: Era, call: &Call, is_modern: bool) -> Result<(), RpcError> {
    if !is_modern {
        return Ok(());
    }
    // A host of the other era is told so at its first word.
    if era == Era::Modern && call.method == "initialize" {
        return Err(unsupported(&call.params["protocolVersion"]));
    }
    let Some(version) = meta(call, VERSION_KEY) else {
        return Err(missing(VERSION_KEY));
    };
    if !VERSIONS.iter().any(|known| version == known) {
        return Err(unsupported(version));
    }
    if !meta(call, CAPABILITIES_KEY).is_some_and(Value::is_object) {
        return Err(missing(CAPABILITIES_KEY));
    }
    Ok(())
}

fn missing(key: &str) -> RpcError {
    RpcError::new(-32602, format!("Missing in _meta: {key}"))
}

fn unsupported(requested: &Value) -> RpcError {
    let data = json!({"supported": VERSIONS, "requested": requested});
    RpcError {
        code: -32022,
        message: "Unsupported protocol version".into(),
        data: Some(data),
    }
}

/// The status over HTTP of what a modern request gets.
pub(crate) fn status(outcome: &Result<Value, RpcError>) -> u16 {
    match outcome {
        Err(RpcError { code: -32601, .. }) => 404,
        Err(RpcError {
            code: -32022..=-32020,
            ..
        }) => 400,
        _ => 200,
    }
}

/// Makes a result one of the modern era.
pub(crate) fn complete(result: &mut Value, server_info: &Value) {
    let Some(members) = result.as_object_mut() else {
        return;
    };
    members
        .entry("resultType")
        .or_insert_with(|| json!("complete"));
    let meta = members.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        meta.insert(SERVER_KEY.into(), server_info.clone());
    }
}

/// Says how long a list may be kept, and by whom.
pub(crate) fn cache(result: &mut Value) {
    result["ttlMs"] = json!(TTL_MS);
    result["cacheScope"] = json!("public");
}

/// Marks a notification's params as a subscription's.
pub(crate) fn subscribe(params: &mut Value, id: &Value) {
    params["_meta"] = json!({SUBSCRIPTION_KEY: id});
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: &str, meta: Value) -> Call {
        Call {
            method: method.into(),
            params: json!({"_meta": meta}),
        }
    }

    fn code(era: Era, call: &Call) -> Option<i64> {
        admit(era, call, era.takes_as_modern(call))
            .err()
            .map(|error| error.code)
    }

    #[test]
    fn a_modern_server_insists_on_version_and_capabilities() {
        let whole = json!({VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}});
        assert_eq!(code(Era::Modern, &call("tools/list", whole.clone())), None);
        assert_eq!(
            code(Era::Modern, &call("tools/list", json!({}))),
            Some(-32602)
        );
        assert_eq!(
            code(
                Era::Modern,
                &call("tools/list", json!({VERSION_KEY: "2026-07-28"}))
            ),
            Some(-32602)
        );
        assert_eq!(
            code(
                Era::Modern,
                &call(
                    "tools/list",
                    json!({VERSION_KEY: "2099-01-01", CAPABILITIES_KEY: {}})
                )
            ),
            Some(-32022)
        );
        assert_eq!(code(Era::Modern, &call("initialize", whole)), Some(-32022));
    }

    #[test]
    fn a_dual_server_tells_the_eras_by_the_request() {
        assert_eq!(code(Era::Dual, &call("initialize", json!({}))), None);
        assert_eq!(
            code(
                Era::Dual,
                &call("tools/list", json!({VERSION_KEY: "2099-01-01"}))
            ),
            Some(-32022)
        );
    }

    #[test]
    fn a_legacy_server_does_not_look() {
        assert_eq!(
            code(
                Era::Legacy,
                &call("tools/list", json!({VERSION_KEY: "2099-01-01"}))
            ),
            None
        );
    }

    #[test]
    fn a_refused_version_comes_with_the_ones_that_are_spoken() {
        let error = admit(
            Era::Modern,
            &call("x", json!({VERSION_KEY: "2099-01-01"})),
            true,
        )
        .unwrap_err();
        assert_eq!(
            error.data,
            Some(json!({"supported": ["2026-07-28"], "requested": "2099-01-01"}))
        );
    }
}
