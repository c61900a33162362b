//! A client that makes one call at a time.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::{
    line::Line,
    upstream::{Pressure, Said, ServerTurn, Upstream},
};

/// The revision of the protocol that it speaks.
const REVISION: &str = "2025-06-18";

/// How long an answer may take.
const TO_ANSWER: Duration = Duration::from_mins(1);

/// How long a server may go on after the end of its input.
const TO_END: Duration = Duration::from_secs(5);

/// A connection to a server.
#[derive(Debug)]
pub(super) struct Client {
    server: Upstream,
    requests: u64,
    is_over: bool,
}

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    #[error("the server closed its output before it answered {what}")]
    Closed { what: String },
    #[error("the server has not answered {what} within {} s", TO_ANSWER.as_secs())]
    TooSlow { what: String },
    #[error("the server answered {what} with the error {code}: {message}")]
    Refused {
        what: String,
        code: i64,
        message: String,
    },
}

/// What a call returned.
#[derive(Debug)]
pub(super) struct Returned {
    pub(super) failed: bool,
    pub(super) text: String,
}

/// An answer to a request. Whatever else a message has is not looked at.
#[derive(Deserialize)]
struct Answer {
    id: u64,
    result: Option<Value>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

impl Client {
    pub(super) fn new(server: Upstream) -> Self {
        Self {
            server,
            requests: 0,
            is_over: false,
        }
    }

    /// Opens the session.
    pub(super) async fn open(&mut self) -> Result<(), ClientError> {
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "stretto-procedure", "version": env!("CARGO_PKG_VERSION")},
        });
        self.request("initialize", "initialize", &params).await?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        Ok(())
    }

    /// Calls a tool.
    pub(super) async fn call(
        &mut self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Returned, ClientError> {
        let what = format!("tools/call of {tool}");
        let params = json!({"name": tool, "arguments": arguments});
        let result = self.request("tools/call", &what, &params).await?;
        let content = result["content"].as_array();
        let texts = content
            .into_iter()
            .flatten()
            .filter_map(|item| item["text"].as_str());
        Ok(Returned {
            failed: result["isError"] == true,
            text: texts.collect::<Vec<_>>().join("\n"),
        })
    }

    async fn request(
        &mut self,
        method: &str,
        what: &str,
        params: &Value,
    ) -> Result<Value, ClientError> {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let what = || what.to_owned();
        let answer = timeout(TO_ANSWER, self.answer(id))
            .await
            .map_err(|_| ClientError::TooSlow { what: what() })?
            .ok_or_else(|| ClientError::Closed { what: what() })?;
        match answer.error {
            Some(Refusal { code, message }) => Err(ClientError::Refused {
                what: what(),
                code,
                message,
            }),
            None => Ok(answer.result.unwrap_or_default()),
        }
    }

    fn send(&mut self, message: &Value) {
        self.server.push(&Line::own(message.to_string()));
        // A server that does not read any more closes its output, too, or does not answer.
        self.server.flush_now().ok();
    }

    /// Waits for the answer to a request. Whatever else the server says is nobody's.
    async fn answer(&mut self, id: u64) -> Option<Answer> {
        loop {
            while let Some(said) = self.server.take_line() {
                let (Said::Line(line) | Said::Amended { instead: line, .. }) = said else {
                    continue;
                };
                // A request of the server's has an id of its own kind, and no result.
                if let Ok(answer) = serde_json::from_slice::<Answer>(line.content())
                    && answer.id == id
                    && (answer.result.is_some() || answer.error.is_some())
                {
                    return Some(answer);
                }
            }
            if self.is_over {
                return None;
            }
            match self.server.turn(true).await {
                ServerTurn::Spoke | ServerTurn::Took | ServerTurn::Left(_) => {}
                ServerTurn::Ended | ServerTurn::Broke(_) | ServerTurn::Gone(_) => {
                    self.is_over = true;
                }
            }
        }
    }

    /// Ends the session, and a server that does not end by itself.
    pub(super) async fn close(mut self) {
        self.server.close();
        let gone = async |server: &mut Upstream| loop {
            if let ServerTurn::Gone(_) = server.turn(true).await {
                return;
            }
            while server.take_line().is_some() {}
        };
        if timeout(TO_END, gone(&mut self.server)).await.is_err() {
            self.server.press(Pressure::Force);
        }
    }
}
