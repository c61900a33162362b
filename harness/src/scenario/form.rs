//! The scenario file as it is written: the keys, their types, and what each is for.
//!
//! The comments on the members become the descriptions in the editor schema, so they
//! are written for the person who writes a scenario.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

use super::oracle::OracleForm;

/// How the proxy reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// The server is a child of the proxy.
    Stdio,
    /// The server listens on a local port.
    Http,
}

impl Transport {
    /// The word that scenario files and the command line use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
        }
    }
}

/// A scenario: what a host does, what the server is, and what must come of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "A scenario for stretto-harness")]
pub(crate) struct FileForm {
    /// The promise, as a sentence that can be false.
    #[schemars(with = "String")]
    pub(crate) title: Spanned<Text>,
    /// The transports to run it over: `stdio`, `http` or both. Without it: `["stdio"]`.
    #[schemars(with = "Option<Vec<Transport>>")]
    pub(crate) over: Option<Spanned<Vec<Transport>>>,
    /// Options of `stretto-proxy`; the runner puts the server behind them.
    #[serde(default)]
    pub(crate) proxy: Vec<Text>,
    /// The demo server's options. Without it: `["--world", "echo"]`.
    #[schemars(with = "Option<Vec<String>>")]
    pub(crate) server: Option<Spanned<Vec<Text>>>,
    /// The demo server's script, as a table or as the path of a JSON file, in place of a world.
    #[schemars(schema_with = "script_schema")]
    pub(crate) script: Option<Spanned<Value>>,
    /// Another server, started as it is: the program and its arguments. `[]` starts none.
    #[schemars(with = "Option<Vec<String>>")]
    pub(crate) command: Option<Spanned<Vec<Text>>>,
    /// What the System-One model says: the first line that fits a question answers it. A question that
    /// no line fits fails the run.
    #[serde(default)]
    #[schemars(with = "Vec<OracleForm>")]
    pub(crate) oracle: Vec<Spanned<OracleForm>>,
    /// More environment for the proxy, and so for the server. An empty text takes the variable away.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, Text>,
    /// Files to write into `$DIR` first, by path. A path that ends in `/` is a folder.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub(crate) files: BTreeMap<Spanned<String>, Text>,
    /// How long ago some of `files` were last written, such as `"40d"` or `"3h"`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub(crate) ages: BTreeMap<String, Spanned<Text>>,
    /// Programs that must be there, such as `npx`; without one the scenario could not run, and says so.
    #[serde(default)]
    pub(crate) needs: Vec<Text>,
    /// Run only with `--slow`.
    #[serde(default)]
    #[schemars(schema_with = "flag_schema")]
    pub(crate) slow: bool,
    /// How long the agent takes before each call that follows an answer, such as `"600ms"`.
    #[schemars(with = "Option<String>")]
    pub(crate) think: Option<Spanned<Text>>,
    /// How long a step may wait. Without it: `"20s"`.
    #[schemars(with = "Option<String>")]
    pub(crate) patience: Option<Spanned<Text>>,
    /// How many letters `$FILL` stands for.
    #[schemars(schema_with = "count_schema")]
    pub(crate) fill: Option<u64>,
    /// What changes from run to run in this server's texts: a name and a regular expression.
    /// Each match is shown as `[NAME]`; the same value gets the same name, another the next number.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub(crate) changing: BTreeMap<Spanned<String>, Text>,
    /// Like cases in one file: the scenario runs once for each, with `$member` standing for its values.
    #[serde(default)]
    #[schemars(schema_with = "cases_schema")]
    #[expect(
        dead_code,
        reason = "taken out of the tree before the rest is read; here for the schema"
    )]
    pub(crate) cases: Option<Value>,
    /// What the host does, one step after the other.
    #[schemars(with = "Vec<StepForm>")]
    pub(crate) steps: Spanned<Vec<Spanned<StepForm>>>,
}

/// Text in which placeholders stand for what only the run knows.
pub(crate) type Text = String;

/// One thing the host does. Exactly one verb, and what goes with it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepForm {
    /// Verb: sends `initialize` with this protocol version, waits, sends `notifications/initialized`.
    pub(crate) handshake: Option<Text>,
    /// Verb: sends a request with this method and waits for its answer.
    pub(crate) request: Option<Text>,
    /// Verb: calls this tool and waits for the answer.
    pub(crate) call: Option<Text>,
    /// Verb: sends a notification with this method.
    pub(crate) notify: Option<Text>,
    /// Verb: answers the server's request with this id.
    #[schemars(schema_with = "id_schema")]
    pub(crate) answer: Option<Value>,
    /// Verb: sends this text as a line.
    pub(crate) raw: Option<Text>,
    /// Verb: sends these bytes, in hexadecimal with blanks anywhere, as a line.
    pub(crate) bytes: Option<Text>,
    /// Verb: waits for the answer with this id, the server's message of this method, `"error"` (an error
    /// without an id) or `"line"` (a line that is no single message).
    #[schemars(schema_with = "id_schema")]
    pub(crate) expect: Option<Value>,
    /// Verb: appends to the conversation file, as `"user"` or `"assistant"`.
    #[schemars(schema_with = "say_schema")]
    pub(crate) say: Option<Text>,
    /// Verb: pauses like a model between turns, such as `"600ms"`; the call after it begins another turn.
    pub(crate) think: Option<Text>,
    /// Verb: checks how often a call of this tool, or a message of this method, has reached the server.
    pub(crate) reached_server: Option<Text>,
    /// Verb: waits until a question with this id has reached the model.
    pub(crate) reached_model: Option<Text>,
    /// Verb: has the model give its answers to this question that are held back, now and from now on.
    pub(crate) release: Option<Text>,
    /// Verb: waits until this file is in `$DIR`.
    pub(crate) written: Option<Text>,
    /// Verb: waits until what the proxy and the server wrote to stderr holds this.
    pub(crate) stderr: Option<Text>,
    /// Verb: waits until a log in `$DIR` holds this text.
    pub(crate) logged: Option<Text>,
    /// Verb: stops reading what the proxy writes.
    #[schemars(schema_with = "true_schema")]
    pub(crate) stop_reading: Option<bool>,
    /// Verb: goes on reading.
    #[schemars(schema_with = "true_schema")]
    pub(crate) read_on: Option<bool>,
    /// Verb: closes the host's end of the proxy's `"stdin"` or `"stdout"`.
    #[schemars(schema_with = "close_schema")]
    pub(crate) close: Option<Text>,
    /// Verb: sends the proxy this signal: `"TERM"`, `"INT"`, `"HUP"` or `"KILL"`.
    pub(crate) signal: Option<Text>,
    /// Verb: waits for the proxy's end, by this code or by the signal of this name.
    #[schemars(schema_with = "id_schema")]
    pub(crate) exit: Option<Value>,

    /// With `handshake`: the client's name. Without it: `harness`.
    pub(crate) client: Option<Text>,
    /// With `handshake`: what the client says it can do. Without it: nothing.
    #[schemars(schema_with = "table_schema")]
    pub(crate) capabilities: Option<Value>,
    /// With `request` and `notify`: the parameters.
    #[schemars(schema_with = "any_schema")]
    pub(crate) params: Option<Value>,
    /// With `call`: the arguments. Without it: `{}`.
    #[schemars(schema_with = "any_schema")]
    pub(crate) args: Option<Value>,
    /// With `request`, `call` and `notify`: the `_meta` member of the parameters.
    #[schemars(schema_with = "table_schema")]
    pub(crate) meta: Option<Value>,
    /// With `handshake`, `request` and `call`: the request's id. Without it: the next number, from 1.
    #[schemars(schema_with = "id_schema")]
    pub(crate) id: Option<Value>,
    /// `false`: the line goes out together with the next step's, in one write, and its answer is not waited for.
    #[schemars(schema_with = "flag_schema")]
    pub(crate) wait: Option<bool>,
    /// With `answer`: the result.
    #[schemars(schema_with = "any_schema")]
    pub(crate) result: Option<Value>,
    /// With `answer`: the error.
    #[schemars(schema_with = "table_schema")]
    pub(crate) error: Option<Value>,
    /// With `raw` and `bytes`: the line end. Without it: LF; `""` for none.
    pub(crate) end: Option<Text>,
    /// With `say`: the words.
    pub(crate) text: Option<Text>,
    /// With `release`: only the answers of lines with this `about`.
    pub(crate) about: Option<Text>,
    /// With `reached_server` and `reached_model`: exactly so often. Without it: at least once.
    #[schemars(schema_with = "count_schema")]
    pub(crate) times: Option<u64>,

    /// Expects: the result's text, the error or the message holds this.
    pub(crate) contains: Option<Text>,
    /// Expects: the result's text, the error or the message does not hold this.
    pub(crate) lacks: Option<Text>,
    /// Expects: the line, less its line end, is exactly this.
    pub(crate) exactly: Option<Text>,
    /// Expects: the result is marked as an error, or is not.
    #[schemars(schema_with = "flag_schema")]
    pub(crate) is_error: Option<bool>,
    /// Expects: a JSON-RPC error whose message holds this.
    pub(crate) fails: Option<Text>,
    /// Expects: nothing else has arrived since the last line that a step waited for.
    #[schemars(schema_with = "true_schema")]
    pub(crate) only: Option<bool>,
    /// Keeps what the first group of a regular expression finds in the text, for later steps: `$name`.
    pub(crate) take: Option<BTreeMap<String, Text>>,
}

/// A value that a case may stand in for: `schema`, or a placeholder.
fn or_placeholder(schema: &Schema) -> Schema {
    json_schema!({ "anyOf": [schema, { "type": "string", "pattern": "^\\$[a-z]" }] })
}

fn flag_schema(_: &mut SchemaGenerator) -> Schema {
    or_placeholder(&json_schema!({ "type": "boolean" }))
}

fn true_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "const": true })
}

fn count_schema(_: &mut SchemaGenerator) -> Schema {
    or_placeholder(&json_schema!({ "type": "integer", "minimum": 0 }))
}

fn id_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["integer", "string"] })
}

fn table_schema(_: &mut SchemaGenerator) -> Schema {
    or_placeholder(&json_schema!({ "type": "object" }))
}

fn any_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!(true)
}

fn say_schema(_: &mut SchemaGenerator) -> Schema {
    or_placeholder(&json_schema!({ "enum": ["user", "assistant"] }))
}

fn close_schema(_: &mut SchemaGenerator) -> Schema {
    or_placeholder(&json_schema!({ "enum": ["stdin", "stdout"] }))
}

fn script_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["object", "string"] })
}

fn cases_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "minItems": 1,
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": { "name": { "type": "string", "pattern": "^[a-z0-9][a-z0-9-]*$" } },
            "propertyNames": { "pattern": "^[a-z][a-z0-9_]*$" }
        }
    })
}

/// The editor schema for scenario files, as JSON text.
pub fn schema_text() -> String {
    let schema = schemars::schema_for!(FileForm);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
