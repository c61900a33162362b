//! Results of τ²-bench: simulated customers' sessions with an agent, as one file of JSON.
//!
//! The benchmark's checkout also says which tasks are for training, and what its tools may do.
//! All of it is read as far as an [`Episode`] and a [`ToolManifest`](crate::ToolManifest) need it.

mod manifest;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

pub use self::manifest::manifest;
use crate::episode::{Episode, Event, ToolCall, TurnUsage};

/// The sessions of a results file.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// What they are about, such as `retail`.
    pub domain: String,
    /// The sessions, in the file's order.
    pub episodes: Vec<Episode>,
}

/// Which tasks are for what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Split {
    /// The tasks to learn from.
    #[serde(deserialize_with = "ids")]
    pub train: Vec<String>,
    /// The tasks that nothing is learned from.
    #[serde(deserialize_with = "ids")]
    pub test: Vec<String>,
}

/// Why a file of the benchmark cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Tau2Error {
    /// It cannot be read.
    #[error("reading {}", path.display())]
    Reading {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is something else, half of it, or of another version.
    #[error("{} is no {what} of τ²-bench", path.display())]
    Parsing {
        /// Which one.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
        /// Why it is not.
        source: serde_json::Error,
    },
}

/// Reads a results file.
///
/// # Errors
///
/// The file cannot be read, or is no results file.
pub fn read_results(path: &Path) -> Result<Results, Tau2Error> {
    let file: File = read(path, "results file")?;
    let domain = file.info.environment_info.domain_name;
    let agent_model = file
        .info
        .agent_info
        .llm
        .unwrap_or_else(|| "unknown".to_owned());
    let episodes = file
        .simulations
        .into_iter()
        .map(|simulation| simulation.episode(&domain, &agent_model))
        .collect();
    Ok(Results { domain, episodes })
}

/// Reads a split of tasks.
///
/// # Errors
///
/// The file cannot be read, or is no split.
pub fn read_split(path: &Path) -> Result<Split, Tau2Error> {
    read(path, "split of tasks")
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path, what: &'static str) -> Result<T, Tau2Error> {
    let text = fs::read(path).map_err(|source| Tau2Error::Reading {
        path: path.to_owned(),
        source,
    })?;
    serde_json::from_slice(&text).map_err(|source| Tau2Error::Parsing {
        path: path.to_owned(),
        what,
        source,
    })
}

#[derive(Deserialize)]
struct File {
    info: Info,
    simulations: Vec<Simulation>,
}

#[derive(Deserialize)]
struct Info {
    environment_info: Environment,
    #[serde(default)]
    agent_info: Agent,
}

#[derive(Deserialize)]
struct Environment {
    domain_name: String,
}

#[derive(Default, Deserialize)]
struct Agent {
    llm: Option<String>,
}

#[derive(Deserialize)]
struct Simulation {
    #[serde(deserialize_with = "id")]
    id: String,
    #[serde(deserialize_with = "id")]
    task_id: String,
    trial: Option<u32>,
    reward_info: Option<Reward>,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Reward {
    reward: Option<f64>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: Option<String>,
    tool_calls: Option<Vec<Called>>,
    usage: Option<Usage>,
    cost: Option<f64>,
    id: Option<String>,
    #[serde(default)]
    error: bool,
}

#[derive(Deserialize)]
struct Called {
    #[serde(default)]
    id: String,
    name: String,
    #[serde(default)]
    arguments: Value,
    requestor: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

impl Simulation {
    fn episode(self, domain: &str, agent_model: &str) -> Episode {
        let mut tools = HashMap::new();
        let mut events = Vec::new();
        for (at, message) in self.messages.into_iter().enumerate() {
            let event = match message.role.as_str() {
                "user" => Some(Event::User {
                    text: message.content.unwrap_or_default(),
                }),
                "assistant" => message.turn(at == 0),
                "tool" => message.result(&tools),
                _ => None,
            };
            if let Some(Event::Assistant { calls, .. }) = &event {
                tools.extend(
                    calls
                        .iter()
                        .map(|call| (call.id.clone(), call.name.clone())),
                );
            }
            events.extend(event);
        }
        Episode {
            id: self.id,
            task_id: self.task_id,
            trial: self.trial.unwrap_or_default(),
            domain: domain.to_owned(),
            agent_model: agent_model.to_owned(),
            reward: self
                .reward_info
                .and_then(|info| info.reward)
                .unwrap_or_default(),
            events,
        }
    }
}

impl Message {
    /// A turn of the agent's. A greeting that nobody's model wrote is none.
    fn turn(self, is_first: bool) -> Option<Event> {
        let calls: Vec<ToolCall> = self
            .tool_calls
            .unwrap_or_default()
            .into_iter()
            .filter(|call| {
                call.requestor
                    .as_deref()
                    .is_none_or(|who| who == "assistant")
            })
            .map(|call| ToolCall {
                id: call.id,
                name: call.name,
                arguments: call.arguments,
            })
            .collect();
        let cost = self.cost.unwrap_or_default();
        if is_first && calls.is_empty() && cost <= 0.0 {
            return None;
        }
        Some(Event::Assistant {
            text: self.content.filter(|text| !text.is_empty()),
            calls,
            usage: self.usage.map(|usage| TurnUsage {
                prompt_tokens: usage.prompt_tokens.unwrap_or_default(),
                completion_tokens: usage.completion_tokens.unwrap_or_default(),
                cost,
            }),
        })
    }

    /// What one of the agent's calls returned; the customer has tools, too, which are not the agent's.
    fn result(self, tools: &HashMap<String, String>) -> Option<Event> {
        let call_id = self.id?;
        let name = tools.get(&call_id)?.clone();
        Some(Event::ToolResult {
            call_id,
            name,
            error: self.error,
            content: self.content.unwrap_or_default(),
        })
    }
}

/// An id, which older files write as a number.
fn id<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    match Value::deserialize(from)? {
        Value::String(id) => Ok(id),
        Value::Number(id) => Ok(id.to_string()),
        _ => Err(serde::de::Error::custom("an id is a text or a number")),
    }
}

fn ids<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    struct Id(#[serde(deserialize_with = "id")] String);
    let ids = Vec::<Id>::deserialize(from)?;
    Ok(ids.into_iter().map(|Id(id)| id).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn results(simulation: &Value) -> Episode {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.json");
        let file = json!({
            "info": {"environment_info": {"domain_name": "retail", "policy": "…"}, "agent_info": {"llm": "a-model"}},
            "tasks": [{"id": "t"}],
            "simulations": [simulation],
        });
        fs::write(&path, file.to_string()).unwrap();
        let Results {
            domain,
            mut episodes,
        } = read_results(&path).unwrap();
        assert_eq!(domain, "retail");
        episodes.swap_remove(0)
    }

    fn call(id: &str) -> ToolCall {
        ToolCall {
            id: id.into(),
            name: "look".into(),
            arguments: json!({"x": 1}),
        }
    }

    #[test]
    fn a_simulation_is_an_episode() {
        let called = |id: &str, who: Value| json!({"id": id, "name": "look", "arguments": {"x": 1}, "requestor": who});
        let episode = results(&json!({
            "id": "s1", "task_id": 7, "trial": 2, "reward_info": {"reward": 1.0},
            "messages": [
                {"role": "assistant", "content": "Hi! How can I help?", "cost": 0.0},
                {"role": "user", "content": "Look.", "tool_calls": [called("u1", json!("user"))]},
                {"role": "tool", "id": "u1", "content": "the customer's own"},
                {"role": "assistant", "content": "", "cost": 0.25, "usage": {"prompt_tokens": 10, "completion_tokens": 3},
                 "tool_calls": [called("a1", json!("assistant")), called("a2", json!(null)), called("u2", json!("user"))]},
                {"role": "tool", "id": "a1", "content": "found", "error": false},
                {"role": "tool", "id": "a2", "content": "gone", "error": true},
                {"role": "system", "content": "…"},
                {"role": "assistant", "content": "Done."},
            ],
        }));
        assert_eq!(
            (episode.id.as_str(), episode.task_id.as_str(), episode.trial),
            ("s1", "7", 2)
        );
        assert!((episode.reward - 1.0).abs() < 1e-12);
        let result = |id: &str, error, content: &str| Event::ToolResult {
            call_id: id.into(),
            name: "look".into(),
            error,
            content: content.into(),
        };
        assert_eq!(
            episode.events,
            [
                Event::User {
                    text: "Look.".into()
                },
                Event::Assistant {
                    text: None,
                    calls: vec![call("a1"), call("a2")],
                    usage: Some(TurnUsage {
                        prompt_tokens: 10,
                        completion_tokens: 3,
                        cost: 0.25
                    }),
                },
                result("a1", false, "found"),
                result("a2", true, "gone"),
                Event::Assistant {
                    text: Some("Done.".into()),
                    calls: vec![],
                    usage: None
                },
            ]
        );
    }

    #[test]
    fn a_first_message_that_cost_something_or_calls_is_a_turn() {
        for message in [
            json!({"role": "assistant", "content": "Hi", "cost": 0.1}),
            json!({"role": "assistant", "tool_calls": [{"id": "a", "name": "look"}]}),
        ] {
            let episode = results(&json!({"id": "s", "task_id": "t", "messages": [message]}));
            assert_eq!(episode.events.len(), 1);
            assert!(episode.reward.abs() < 1e-12 && episode.trial == 0);
        }
    }

    #[test]
    fn what_is_no_results_file_says_which_member_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        for (text, wanted) in [
            ("{", "EOF"),
            ("[]", "invalid length"),
            (r#"{"simulations": []}"#, "`info`"),
            (
                r#"{"info": {"environment_info": {}}, "simulations": []}"#,
                "`domain_name`",
            ),
            (
                r#"{"info": {"environment_info": {"domain_name": "d"}}, "simulations": [{"id": "s"}]}"#,
                "`task_id`",
            ),
        ] {
            fs::write(&path, text).unwrap();
            let error = read_results(&path).unwrap_err();
            assert!(
                error
                    .to_string()
                    .ends_with("x.json is no results file of τ²-bench"),
                "{error}"
            );
            let source = std::error::Error::source(&error).unwrap().to_string();
            assert!(source.contains(wanted), "{source}");
        }
    }

    #[test]
    fn a_split_names_tasks_by_text_or_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("split.json");
        fs::write(&path, r#"{"train": ["1", 2], "test": [], "base": ["1"]}"#).unwrap();
        let split = read_split(&path).unwrap();
        assert_eq!(split.train, ["1", "2"]);
        fs::write(&path, r#"{"train": [true], "test": []}"#).unwrap();
        assert!(read_split(&path).is_err());
    }
}
