//! What a server answers to a message, whatever carries the two.

use std::time::Duration;

use serde_json::{Value, json};

use crate::VERSION;
use crate::cli::Settings;
use crate::protocol::{self, Call, DEFAULT_VERSION, Message, RpcError};
use crate::worlds::{self, World};

/// The name that a built-in world gives as its own.
const NAME: &str = "stretto-mcp-demo";

/// A server: a world, behind the protocol.
pub(crate) struct Server {
    world: Box<dyn World>,
    tools: Vec<Value>,
}

/// What the server does about a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reaction {
    /// How long it takes.
    pub(crate) delay: Duration,
    /// The answer, without a line's end; none when there is nothing to answer.
    pub(crate) answer: Option<String>,
}

impl Server {
    /// The server that the command line asks for.
    pub(crate) fn new(settings: &Settings) -> Self {
        let world = worlds::world(settings);
        let tools = world.tools();
        Self { world, tools }
    }

    /// What the server does about a message.
    pub(crate) fn react(&self, message: &Message) -> Reaction {
        let (id, outcome) = match message {
            Message::Blank | Message::Notification(_) | Message::Response(_) => {
                return Reaction::default();
            }
            Message::Unreadable => (&Value::Null, Err(RpcError::unreadable())),
            Message::NotAnObject => (&Value::Null, Err(RpcError::not_an_object())),
            Message::Request(id, call) => (id, self.answer(call)),
        };
        let delay = match message {
            Message::Request(_, call) if call.method == "tools/call" && outcome.is_ok() => call
                .params
                .get("arguments")
                .map(worlds::delay)
                .unwrap_or_default(),
            _ => Duration::ZERO,
        };
        Reaction {
            delay,
            answer: Some(protocol::answer(id, &outcome)),
        }
    }

    fn answer(&self, call: &Call) -> Result<Value, RpcError> {
        match call.method.as_str() {
            "initialize" => Ok(self.initialize(call)),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({"tools": self.tools})),
            "tools/call" => self.call(call),
            other => Err(RpcError::no_method(other)),
        }
    }

    fn initialize(&self, call: &Call) -> Value {
        json!({
            "protocolVersion": call.params.get("protocolVersion").cloned().unwrap_or_else(|| json!(DEFAULT_VERSION)),
            "capabilities": {"tools": {"listChanged": false}},
            "serverInfo": {"name": NAME, "version": VERSION},
            "instructions": self.world.instructions(),
        })
    }

    fn call(&self, call: &Call) -> Result<Value, RpcError> {
        let name = call.tool();
        if !self.tools.iter().any(|tool| tool["name"] == name) {
            return Err(RpcError::no_tool(name));
        }
        Ok(match self.world.call(name, &call.arguments()) {
            Ok(text) => protocol::text_result(&text, false),
            Err(text) => protocol::text_result(&text, true),
        })
    }
}
