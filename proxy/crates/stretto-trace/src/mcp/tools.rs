//! What a server says about its tools.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value;

use super::entry::{Entry, Who};
use super::read::Log;
use super::result::{id_of, is_response, present};
use crate::episode::{ToolDoc, ToolKind, ToolManifest};

/// The tools that the server of `log` listed, under the name `domain`.
///
/// Kinds are the server's own claims: `readOnlyHint` true is a read, false a write, and without
/// it a tool's kind is not known.
pub fn manifest(log: &Log, domain: &str) -> ToolManifest {
    Tools::of(log).manifest(domain)
}

/// The tools of several logs, where what a later one says about a tool counts.
pub fn manifest_of(logs: &[Log], domain: &str) -> ToolManifest {
    Tools::of_all(logs).manifest(domain)
}

/// One tool, as `tools/list` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedTool {
    /// The name that calls use.
    pub name: String,
    /// What calling it may do, by its `readOnlyHint`.
    pub kind: ToolKind,
    /// What it and its arguments are for, if the server says anything.
    pub doc: Option<ToolDoc>,
    /// What it takes: each argument as `name:type`, with `!` when it is required, sorted and
    /// joined by `, `. Empty when it takes nothing; absent without an `inputSchema`.
    pub contract: Option<String>,
}

impl ListedTool {
    /// The tool that an element of `tools` describes; nothing when it has no name.
    ///
    /// ```
    /// use serde_json::json;
    /// use stretto_trace::mcp::ListedTool;
    ///
    /// let tool = ListedTool::of(&json!({"name": "look", "inputSchema": {
    ///     "properties": {"order_id": {"type": "string"}, "limit": {"type": ["integer", "null"]}},
    ///     "required": ["order_id"],
    /// }}));
    /// let contract = tool.and_then(|tool| tool.contract);
    /// assert_eq!(contract.as_deref(), Some("limit:integer|null, order_id:string!"));
    /// ```
    pub fn of(tool: &Value) -> Option<Self> {
        let name = tool.get("name")?.as_str()?.to_owned();
        let hint = tool
            .get("annotations")
            .and_then(|hints| hints.get("readOnlyHint"));
        let kind = match hint {
            Some(Value::Bool(true)) => ToolKind::Read,
            Some(Value::Bool(false)) => ToolKind::Write,
            _ => ToolKind::Generic,
        };
        let schema = present(tool.get("inputSchema"));
        let contract = schema.map(contract);
        Some(Self {
            name,
            kind,
            doc: doc(tool, schema),
            contract,
        })
    }

    /// The tools in the result of a `tools/list`. What is no tool is left out.
    pub fn all_in(result: &Value) -> impl Iterator<Item = Self> + '_ {
        let tools = result.get("tools").and_then(Value::as_array);
        tools.into_iter().flatten().filter_map(Self::of)
    }
}

/// All that a server has said about its tools, over one session or several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    kinds: BTreeMap<String, ToolKind>,
    docs: BTreeMap<String, ToolDoc>,
    contracts: BTreeMap<String, String>,
    /// The ids of listings that have not been answered, as JSON text.
    asked: HashSet<String>,
}

impl Tools {
    /// What the server of `log` said.
    pub fn of(log: &Log) -> Self {
        let mut tools = Self::default();
        for entry in &log.entries {
            tools.entry(entry);
        }
        tools
    }

    /// What the servers of `logs` said; the last one to mention a tool counts.
    pub fn of_all(logs: &[Log]) -> Self {
        let mut all = Self::default();
        for log in logs {
            let later = Self::of(log);
            all.kinds.extend(later.kinds);
            all.docs.extend(later.docs);
            all.contracts.extend(later.contracts);
        }
        all
    }

    /// Takes in a session's next line, of which only the host's listings and the server's
    /// answers to them matter.
    pub fn entry(&mut self, entry: &Entry) {
        for message in entry.messages() {
            self.message(entry.from, message);
        }
    }

    /// Takes in a session's next message.
    pub fn message(&mut self, from: Who, message: &Value) {
        let Some(id) = id_of(message) else { return };
        match from {
            Who::Client if message.get("method").and_then(Value::as_str) == Some("tools/list") => {
                self.asked.insert(id.to_string());
            }
            Who::Server if is_response(message) && self.asked.remove(&id.to_string()) => {
                if let Some(result) = message.get("result") {
                    self.listed(result);
                }
            }
            _ => {}
        }
    }

    /// Takes in the result of a `tools/list`.
    pub fn listed(&mut self, result: &Value) {
        for tool in ListedTool::all_in(result) {
            self.learn(tool);
        }
    }

    /// Takes in one tool. What was known of it before counts no more.
    pub fn learn(&mut self, tool: ListedTool) {
        let ListedTool {
            name,
            kind,
            doc,
            contract,
        } = tool;
        match doc {
            Some(doc) => drop(self.docs.insert(name.clone(), doc)),
            None => drop(self.docs.remove(&name)),
        }
        match contract {
            Some(contract) => drop(self.contracts.insert(name.clone(), contract)),
            None => drop(self.contracts.remove(&name)),
        }
        self.kinds.insert(name, kind);
    }

    /// What calling `tool` may do, or nothing when it was not listed.
    pub fn kind(&self, tool: &str) -> Option<ToolKind> {
        self.kinds.get(tool).copied()
    }

    /// What `tool` takes, or nothing when that was not listed.
    pub fn contract(&self, tool: &str) -> Option<&str> {
        self.contracts.get(tool).map(String::as_str)
    }

    /// What each tool takes, by name; see [`ListedTool::contract`].
    pub fn contracts(&self) -> &BTreeMap<String, String> {
        &self.contracts
    }

    /// Kinds and docs, as the tools of `domain`.
    pub fn manifest(&self, domain: &str) -> ToolManifest {
        ToolManifest {
            domain: domain.to_owned(),
            tools: self.kinds.clone(),
            docs: self.docs.clone(),
        }
    }
}

fn doc(tool: &Value, schema: Option<&Value>) -> Option<ToolDoc> {
    let described = |value: &Value| {
        let text = value.get("description")?.as_str()?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty()).then_some(text)
    };
    let summary = described(tool).unwrap_or_default();
    let args: BTreeMap<String, String> = schema
        .and_then(properties)
        .into_iter()
        .flatten()
        .filter_map(|(name, property)| Some((name.clone(), described(property)?)))
        .collect();
    (!summary.is_empty() || !args.is_empty()).then_some(ToolDoc { summary, args })
}

fn contract(schema: &Value) -> String {
    let required: BTreeSet<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut parts: Vec<String> = properties(schema)
        .into_iter()
        .flatten()
        .map(|(name, property)| {
            let mark = if required.contains(name.as_str()) {
                "!"
            } else {
                ""
            };
            format!("{name}:{}{mark}", type_of(property))
        })
        .collect();
    parts.sort();
    parts.join(", ")
}

fn properties(schema: &Value) -> Option<&serde_json::Map<String, Value>> {
    schema.get("properties")?.as_object()
}

fn type_of(property: &Value) -> String {
    let types = match property.get("type") {
        Some(Value::String(one)) => one.clone(),
        Some(Value::Array(several)) => several
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join("|"),
        _ => String::new(),
    };
    if types.is_empty() {
        "any".to_owned()
    } else {
        types
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Body, Header};
    use serde_json::json;

    fn log(lines: &[(Who, Value)]) -> Log {
        let entry = |(from, message): &(Who, Value)| Entry {
            t_ms: 0,
            from: *from,
            body: Body::Message(message.clone()),
        };
        Log {
            header: Header::new("s", 0, Vec::new()),
            entries: lines.iter().map(entry).collect(),
            is_cut_off: false,
        }
    }

    fn asks(id: u32) -> (Who, Value) {
        (Who::Client, json!({"id": id, "method": "tools/list"}))
    }

    fn lists(id: u32, tools: &Value) -> (Who, Value) {
        (Who::Server, json!({"id": id, "result": {"tools": tools}}))
    }

    #[test]
    fn kinds_are_the_servers_hints() {
        let tools = json!([
            {"name": "r", "annotations": {"readOnlyHint": true}},
            {"name": "w", "annotations": {"readOnlyHint": false}},
            {"name": "odd", "annotations": {"readOnlyHint": "true"}},
            {"name": "bare"},
            {"name": 7}, {}, null,
        ]);
        let manifest = manifest(&log(&[asks(1), lists(1, &tools)]), "shop");
        let kinds: Vec<_> = manifest
            .tools
            .iter()
            .map(|(name, kind)| (name.as_str(), *kind))
            .collect();
        assert_eq!(
            kinds,
            [
                ("bare", ToolKind::Generic),
                ("odd", ToolKind::Generic),
                ("r", ToolKind::Read),
                ("w", ToolKind::Write)
            ]
        );
        assert_eq!(manifest.domain, "shop");
        assert!(manifest.docs.is_empty());
    }

    #[test]
    fn only_the_first_answer_of_the_server_to_a_listing_of_the_host_counts() {
        let tool = |name: &str| json!([{"name": name}]);
        let named = |lines: &[(Who, Value)]| {
            manifest(&log(lines), "d")
                .tools
                .into_keys()
                .collect::<Vec<_>>()
                .join(" ")
        };
        let (_, by_proxy) = lists(1, &tool("commit"));
        assert_eq!(
            named(&[
                asks(1),
                lists(1, &tool("a")),
                (Who::Proxy, by_proxy),
                lists(1, &tool("b"))
            ]),
            "a"
        );
        assert_eq!(named(&[lists(1, &tool("a")), asks(1)]), "");
        let (_, own) = asks(2);
        assert_eq!(named(&[(Who::Proxy, own), lists(2, &tool("a"))]), "");
        let id_as_text = (
            Who::Server,
            json!({"id": "1", "result": {"tools": tool("a")}}),
        );
        assert_eq!(named(&[asks(1), id_as_text]), "");
        let refused = (Who::Server, json!({"id": 1, "error": {"code": 1}}));
        assert_eq!(named(&[asks(1), refused, lists(1, &tool("a"))]), "");
        assert_eq!(
            named(&[asks(1), asks(2), lists(2, &tool("b")), lists(1, &tool("a"))]),
            "a b"
        );
    }

    #[test]
    fn a_later_listing_of_a_tool_replaces_all_of_an_earlier_one() {
        let first = json!([{"name": "a", "description": "x", "inputSchema": {}}, {"name": "b", "description": "y"}]);
        let second = json!([{"name": "a", "annotations": {"readOnlyHint": true}}]);
        let tools = Tools::of(&log(&[
            asks(1),
            lists(1, &first),
            asks(1),
            lists(1, &second),
        ]));
        assert_eq!(tools.kind("a"), Some(ToolKind::Read));
        assert_eq!(tools.contract("a"), None);
        assert_eq!(
            tools.manifest("d").docs.into_keys().collect::<Vec<_>>(),
            ["b"]
        );
    }

    #[test]
    fn over_several_logs_what_a_later_one_says_counts_and_the_rest_stays() {
        let first = json!([{"name": "a", "description": "x", "inputSchema": {}}, {"name": "b"}]);
        let second = json!([{"name": "a", "annotations": {"readOnlyHint": true}}, {"name": "c"}]);
        let logs = [
            log(&[asks(1), lists(1, &first)]),
            log(&[asks(1), lists(1, &second)]),
        ];
        let tools = Tools::of_all(&logs);
        assert_eq!(tools.contract("a"), Some(""));
        let manifest = manifest_of(&logs, "d");
        assert_eq!(manifest, tools.manifest("d"));
        assert_eq!(manifest.kind("a"), Some(ToolKind::Read));
        assert_eq!(manifest.docs["a"].summary, "x");
        assert_eq!(
            manifest.tools.into_keys().collect::<Vec<_>>(),
            ["a", "b", "c"]
        );
    }

    #[test]
    fn docs_are_descriptions_with_their_blanks_collapsed() {
        let tool = json!({"name": "a", "description": " Finds\n  a thing. ", "inputSchema": {"properties": {
            "x": {"description": "how\tmany"}, "y": {"description": 7}, "z": true, "w": {"description": "  "},
        }}});
        let doc = ListedTool::of(&tool).unwrap().doc.unwrap();
        assert_eq!(doc.summary, "Finds a thing.");
        assert_eq!(
            doc.args,
            BTreeMap::from([("x".to_owned(), "how many".to_owned())])
        );
        assert_eq!(
            ListedTool::of(&json!({"name": "a", "description": " "}))
                .unwrap()
                .doc,
            None
        );
    }

    #[test]
    fn a_contract_is_the_sorted_list_of_arguments() {
        let contract = |schema: Value| {
            ListedTool::of(&json!({"name": "a", "inputSchema": schema}))
                .unwrap()
                .contract
        };
        assert_eq!(
            contract(json!({
                "properties": {"order_id": {"type": "string"}, "limit": {"type": ["integer", "null"]},
                    "x": {"enum": [1]}, "y": true, "z": {"type": []}},
                "required": ["order_id", "gone", 7],
            }))
            .unwrap(),
            "limit:integer|null, order_id:string!, x:any, y:any, z:any"
        );
        assert_eq!(contract(json!({"type": "object"})).unwrap(), "");
        assert_eq!(contract(Value::Null), None);
        assert_eq!(
            ListedTool::of(&json!({"name": "a"})).unwrap().contract,
            None
        );
        // As text: `a b` sorts before `a:`.
        assert_eq!(
            contract(json!({"properties": {"a": {"type": "string"}, "a b": {"type": "string"}}}))
                .unwrap(),
            "a b:string, a:string"
        );
    }
}
