//! The shop as an MCP server over stdio, for the lab alone.

use std::ffi::OsString;
use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::shop::Shop;

/// The word that asks a program for the shop: `shop-server SEED MS FILE`.
pub const SHOP_SERVER: &str = "shop-server";

/// Serves the shop of a seed on stdin and stdout until stdin ends, and then writes its state to
/// the file. Each call takes so many milliseconds, as a shop that asks its database does.
///
/// # Errors
///
/// The words are no seed, time and file, or something cannot be read or written.
pub fn shop_server(words: &[OsString]) -> anyhow::Result<()> {
    let [seed, ms, file] = words else {
        anyhow::bail!(
            "the shop takes a seed, the milliseconds of a call and the file for its state"
        );
    };
    let number = |word: &OsString| word.to_str().and_then(|word| word.parse::<u64>().ok());
    let seed = number(seed).context("the shop's seed is no number")?;
    let takes = Duration::from_millis(number(ms).context("the time of a call is no number")?);
    let (mut shop, _) = Shop::new(seed);
    let mut stdout = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line.context("reading stdin")?;
        let Some(answer) = answer(&mut shop, &line, takes) else {
            continue;
        };
        if writeln!(stdout, "{answer}")
            .and_then(|()| stdout.flush())
            .is_err()
        {
            // Nobody listens any more.
            break;
        }
    }
    let file = PathBuf::from(file);
    std::fs::write(&file, json!(shop).to_string())
        .with_context(|| format!("writing {}", file.display()))
}

/// What a line is answered with; nothing for a notification.
fn answer(shop: &mut Shop, line: &str, takes: Duration) -> Option<Value> {
    let Ok(message) = serde_json::from_str::<Value>(line) else {
        let error = json!({"code": -32700, "message": "this line is no JSON"});
        return Some(json!({"jsonrpc": "2.0", "id": null, "error": error}));
    };
    let id = message.get("id")?;
    let method = message.get("method").and_then(Value::as_str)?;
    let result = match method {
        "initialize" => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "stretto-lab-shop", "version": env!("CARGO_PKG_VERSION")},
        }),
        "ping" => json!({}),
        "tools/list" => json!({"tools": Shop::tools()}),
        "tools/call" => {
            std::thread::sleep(takes);
            let name = message.pointer("/params/name").and_then(Value::as_str);
            let arguments = message
                .pointer("/params/arguments")
                .cloned()
                .unwrap_or_default();
            let (text, failed) = match shop.call(name.unwrap_or_default(), &arguments) {
                Ok(text) => (text, false),
                Err(text) => (text, true),
            };
            json!({"content": [{"type": "text", "text": text}], "isError": failed})
        }
        _ => {
            let error = json!({"code": -32601, "message": format!("there is no method {method}")});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(message: &Value) -> Option<Value> {
        let (mut shop, _) = Shop::new(1);
        answer(&mut shop, &message.to_string(), Duration::ZERO)
    }

    #[test]
    fn reads_and_writes_are_told_apart_by_their_hints() {
        let answer = said(&json!({"id": 1, "method": "tools/list"})).unwrap();
        let tools = answer["result"]["tools"].as_array().unwrap();
        let reads = tools
            .iter()
            .filter(|tool| tool["annotations"]["readOnlyHint"] == true);
        assert_eq!((reads.count(), tools.len()), (5, 9));
    }

    #[test]
    fn notifications_have_no_answer_and_unknown_methods_an_error() {
        assert_eq!(said(&json!({"method": "notifications/initialized"})), None);
        let answer = said(&json!({"id": "x", "method": "resources/list"})).unwrap();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!("x"), &json!(-32601))
        );
    }

    #[test]
    fn a_call_that_fails_says_so_in_its_result() {
        let call = json!({"id": 2, "method": "tools/call",
            "params": {"name": "get_order_details", "arguments": {"order_id": "#W0"}}});
        assert_eq!(said(&call).unwrap()["result"]["isError"], true);
    }
}
