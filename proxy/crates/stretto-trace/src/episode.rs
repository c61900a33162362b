//! A session as a person, a flow or a guard sees it: who said what, which calls
//! were one turn, what each returned.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One session of an agent with a server's tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// The session's name; for a recorded session, the one in its log's header.
    pub id: String,
    /// The task that was worked on, empty when unknown.
    pub task_id: String,
    /// Which try at the task this was, counted from 0.
    pub trial: u32,
    /// Whose tools these are, such as `retail`.
    pub domain: String,
    /// The model that drove the agent, or the host's name when that is all that is known.
    pub agent_model: String,
    /// How well the task was solved, from 0 to 1. A log does not know: 0 until it is set.
    pub reward: f64,
    /// What happened, in order.
    pub events: Vec<Event>,
}

/// A reward this close to 1 counts as 1.
const REWARD_SLACK: f64 = 1e-9;

impl Episode {
    /// Whether the task was solved.
    pub fn succeeded(&self) -> bool {
        self.reward >= 1.0 - REWARD_SLACK
    }

    /// How many turns the agent's model took.
    pub fn assistant_turns(&self) -> usize {
        let is_turn = |event: &&Event| matches!(event, Event::Assistant { .. });
        self.events.iter().filter(is_turn).count()
    }

    /// All calls of all turns, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.events.iter().flat_map(|event| match event {
            Event::Assistant { calls, .. } => calls.as_slice(),
            Event::User { .. } | Event::ToolResult { .. } => &[],
        })
    }
}

/// One thing that happened in an episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// The user said something.
    User {
        /// What they said.
        text: String,
    },
    /// One turn of the agent's model: calls, or a reply when there are none.
    Assistant {
        /// What the model said, if it said something and that is known.
        text: Option<String>,
        /// The calls it made in this turn.
        calls: Vec<ToolCall>,
        /// What the turn cost, where that is known.
        #[serde(default)]
        usage: Option<TurnUsage>,
    },
    /// A call returned.
    ToolResult {
        /// The call's id.
        call_id: String,
        /// The call's tool.
        name: String,
        /// Whether it failed.
        error: bool,
        /// What it returned, as text.
        content: String,
    },
}

/// A call that the agent made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The request's id: its text for a string, else its JSON.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What it was given; normally an object.
    pub arguments: Value,
}

/// What one turn cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnUsage {
    /// Tokens the model read.
    pub prompt_tokens: u64,
    /// Tokens the model wrote.
    pub completion_tokens: u64,
    /// Dollars.
    pub cost: f64,
}

/// What calling a tool may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// It only looks something up.
    Read,
    /// It changes something.
    Write,
    /// Not known to be either.
    Generic,
}

/// The tools of a domain: what each may do, and what its server says about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolManifest {
    /// Whose tools these are.
    pub domain: String,
    /// Each tool's kind, by name.
    pub tools: BTreeMap<String, ToolKind>,
    /// What is said about each tool, by name.
    #[serde(default)]
    pub docs: BTreeMap<String, ToolDoc>,
}

impl ToolManifest {
    /// What calling `tool` may do, or nothing when the manifest does not list it.
    pub fn kind(&self, tool: &str) -> Option<ToolKind> {
        self.tools.get(tool).copied()
    }

    /// Whether `tool` is known to change something.
    pub fn is_write(&self, tool: &str) -> bool {
        self.kind(tool) == Some(ToolKind::Write)
    }
}

/// What a server says about one of its tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDoc {
    /// What it does.
    pub summary: String,
    /// What each argument is.
    pub args: BTreeMap<String, String>,
}
