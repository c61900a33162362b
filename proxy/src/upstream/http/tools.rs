//! What the tools of a server want in headers of their own: `x-mcp-header`.
//!
//! A property of a tool's schema may ask that its argument stands in a header too. Only a listing
//! tells, so listings are read as they pass. A tool that asks in a way that the protocol forbids
//! must not reach the host.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::modern::{argument_text, header_value};
use crate::line::Line;

const ANNOTATION: &str = "x-mcp-header";

/// The arguments that have to stand in headers, as far as the server has listed its tools.
#[derive(Debug, Default)]
pub(super) struct KnownTools {
    mirrored: HashMap<String, Vec<Mirrored>>,
    /// The tools that were left out of a listing once.
    left_out: HashSet<String>,
}

/// An argument that has to stand in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mirrored {
    header: HeaderName,
    /// The members that lead to it.
    path: Vec<String>,
}

/// What a listing says that the host may not get as it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Unfit {
    /// The listing without the tools that break the rules; nothing when there are none.
    pub(super) instead: Option<Line>,
    /// Those that are left out for the first time, and what is wrong with each.
    pub(super) tools: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    result: Option<Listing<'a>>,
}

#[derive(Deserialize)]
struct Listing<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(rename = "nextCursor")]
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
    #[serde(rename = "inputSchema")]
    input_schema: Option<Value>,
}

/// Where the next page of the listing in `line` begins, if there is one.
pub(super) fn next_cursor(line: &[u8]) -> Option<String> {
    let answer: Answer<'_> = serde_json::from_slice(line).ok()?;
    answer.result?.next_cursor
}

impl KnownTools {
    /// Learns from a server's answer to `tools/list`.
    pub(super) fn learn(&mut self, line: &Line) -> Unfit {
        let text = line.bytes();
        let Ok(Answer {
            result: Some(listing),
        }) = serde_json::from_slice(line.content())
        else {
            return Unfit::default();
        };
        let mut unfit = Unfit::default();
        let mut keeps = Vec::with_capacity(listing.tools.len());
        for raw in &listing.tools {
            let is_fit = self.learn_tool(raw, &mut unfit.tools);
            keeps.push((place(text, raw.get()), is_fit));
        }
        if keeps.iter().any(|(_, is_kept)| !is_kept) {
            unfit.instead = Some(spliced(text, &keeps));
        }
        unfit
    }

    /// Whether the tool may be listed.
    fn learn_tool(&mut self, raw: &RawValue, faults: &mut Vec<(String, String)>) -> bool {
        let Ok(Tool { name, input_schema }) = serde_json::from_str(raw.get()) else {
            return true;
        };
        self.mirrored.remove(&name);
        match input_schema.map_or(Ok(Vec::new()), |schema| mirrored(&schema)) {
            Ok(mirrored) => {
                if !mirrored.is_empty() {
                    self.mirrored.insert(name, mirrored);
                }
                true
            }
            Err(fault) => {
                if self.left_out.insert(name.clone()) {
                    faults.push((name, fault));
                }
                false
            }
        }
    }

    /// Adds the headers that a call of `tool` needs; `body` is the whole call.
    pub(super) fn mirror(&self, tool: &str, body: &[u8], headers: &mut HeaderMap) {
        #[derive(Deserialize)]
        struct Call {
            params: Params,
        }
        #[derive(Deserialize)]
        struct Params {
            arguments: Option<Value>,
        }
        let Some(mirrored) = self.mirrored.get(tool) else {
            return;
        };
        let Ok(call) = serde_json::from_slice::<Call>(body) else {
            return;
        };
        let arguments = call.params.arguments.unwrap_or_default();
        for Mirrored { header, path } in mirrored {
            let argument = path
                .iter()
                .try_fold(&arguments, |value, member| value.get(member));
            if let Some(text) = argument.and_then(argument_text) {
                headers.insert(header.clone(), header_value(&text));
            }
        }
    }
}

/// Where `part`, which was read out of `whole` without a copy, stands in it.
fn place(whole: &Bytes, part: &str) -> (usize, usize) {
    let start = part.as_ptr().addr() - whole.as_ptr().addr();
    (start, start + part.len())
}

/// The line without the elements of its array that are not kept.
fn spliced(text: &Bytes, elements: &[((usize, usize), bool)]) -> Line {
    let (Some(((first, _), _)), Some(((_, last), _))) = (elements.first(), elements.last()) else {
        return Line::from(text.clone());
    };
    let mut line = text[..*first].to_vec();
    let mut is_first = true;
    let mut before = *first;
    for ((start, end), is_kept) in elements {
        if *is_kept {
            // The separator that stands before it, unless nothing does.
            let from = if is_first { *start } else { before };
            line.extend_from_slice(&text[from..*end]);
            is_first = false;
        }
        before = *end;
    }
    line.extend_from_slice(&text[*last..]);
    Line::from(Bytes::from(line))
}

/// The arguments that a schema wants in headers, or what is wrong with that.
fn mirrored(schema: &Value) -> Result<Vec<Mirrored>, String> {
    let mut found = Vec::new();
    walk(schema, &mut Vec::new(), true, &mut found)?;
    Ok(found)
}

/// Keywords whose value is a schema.
const ONE: [&str; 12] = [
    "items",
    "contains",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "propertyNames",
    "contentSchema",
    "not",
    "if",
    "then",
    "else",
    "additionalItems",
];
/// Keywords whose value is a list of schemas; `items` was one once.
const SEVERAL: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
/// Keywords whose value has schemas as members.
const NAMED: [&str; 4] = [
    "patternProperties",
    "dependentSchemas",
    "$defs",
    "definitions",
];

/// `is_reached`: only through `properties`, so that a call's arguments say which value is meant.
fn walk(
    schema: &Value,
    path: &mut Vec<String>,
    is_reached: bool,
    found: &mut Vec<Mirrored>,
) -> Result<(), String> {
    let Value::Object(schema) = schema else {
        return Ok(());
    };
    if let Some(name) = schema.get(ANNOTATION) {
        if !is_reached || path.is_empty() {
            return Err(format!("{ANNOTATION} stands where it is not allowed"));
        }
        let header = annotated(name, schema, path)?;
        if found.iter().any(|other| other.header == header) {
            return Err(format!("two properties want the header {header}"));
        }
        found.push(Mirrored {
            header,
            path: path.clone(),
        });
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        for (name, property) in properties {
            path.push(name.clone());
            walk(property, path, is_reached, found)?;
            path.pop();
        }
    }
    let one = ONE.iter().filter_map(|keyword| schema.get(*keyword));
    let several = SEVERAL
        .iter()
        .filter_map(|keyword| schema.get(*keyword)?.as_array());
    let named = NAMED
        .iter()
        .filter_map(|keyword| schema.get(*keyword)?.as_object());
    one.chain(several.flatten())
        .chain(named.flat_map(Map::values))
        .try_for_each(|schema| walk(schema, path, false, found))
}

fn annotated(
    name: &Value,
    schema: &Map<String, Value>,
    path: &[String],
) -> Result<HeaderName, String> {
    let property = path.join(".");
    let header = name
        .as_str()
        .filter(|name| !name.is_empty())
        .and_then(|name| HeaderName::try_from(format!("mcp-param-{name}")).ok());
    let Some(header) = header else {
        return Err(format!("{ANNOTATION} of {property} is no name of a header"));
    };
    match schema.get("type").and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => Ok(header),
        _ => Err(format!(
            "{ANNOTATION} of {property}, which is no string, integer or boolean"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fault(schema: &Value) -> Option<String> {
        mirrored(schema).err()
    }

    fn property(annotation: &Value, kind: &str) -> Value {
        json!({"type": "object", "properties": {"p": {"type": kind, ANNOTATION: annotation}}})
    }

    #[test]
    fn an_annotation_has_rules() {
        for kind in ["string", "integer", "boolean"] {
            assert_eq!(fault(&property(&json!("Region"), kind)), None);
        }
        for kind in ["number", "object", "array", "null", ""] {
            assert!(fault(&property(&json!("Region"), kind)).is_some(), "{kind}");
        }
        for name in [
            json!(""),
            json!("a b"),
            json!("a:"),
            json!("é"),
            json!(7),
            json!(null),
        ] {
            assert!(fault(&property(&name, "string")).is_some(), "{name}");
        }
        let annotated = json!({"type": "string", ANNOTATION: "A"});
        let wanted = mirrored(&json!({"properties": {"a": {"properties": {"b": annotated}}}}));
        let wanted = wanted.expect("nested is allowed");
        assert_eq!(wanted[0].path, ["a", "b"]);
        assert_eq!(wanted[0].header, "mcp-param-a");
        for elsewhere in [
            json!({ANNOTATION: "A", "type": "string"}),
            json!({"items": annotated}),
            json!({"properties": {"a": {"items": {"properties": {"b": annotated}}}}}),
            json!({"anyOf": [{"properties": {"a": annotated}}]}),
            json!({"$defs": {"d": annotated}}),
            json!({"properties": {"a": annotated, "b": {"type": "string", ANNOTATION: "a"}}}),
        ] {
            assert!(fault(&elsewhere).is_some(), "{elsewhere}");
        }
        for innocent in [
            json!({"properties": {ANNOTATION: {"type": "string"}}}),
            json!({"default": {ANNOTATION: 1}, "examples": [{ANNOTATION: 1}]}),
            json!(true),
        ] {
            assert_eq!(fault(&innocent), None, "{innocent}");
        }
    }

    fn listing(tools: &str) -> Line {
        Line::own(format!(
            r#"{{"id":1, "result":{{"ttlMs":5,"tools":{tools}, "x":1.0}}}}"#
        ))
    }

    const BAD: &str = r#"{"name":"bad","inputSchema":{"x-mcp-header":"A"}}"#;

    #[test]
    fn a_tool_that_breaks_the_rules_is_cut_out_and_nothing_else_changes() {
        for (tools, left) in [
            (format!("[{BAD}]"), "[]".to_owned()),
            (
                format!(r#"[ {BAD} , {{"name":"a"}} ]"#),
                r#"[ {"name":"a"} ]"#.to_owned(),
            ),
            (
                format!(r#"[{{"name":"a"}} ,{BAD}, 7]"#),
                r#"[{"name":"a"}, 7]"#.to_owned(),
            ),
            (
                format!(r#"[{{"name":"a"}},{BAD}]"#),
                r#"[{"name":"a"}]"#.to_owned(),
            ),
        ] {
            let unfit = KnownTools::default().learn(&listing(&tools));
            assert_eq!(unfit.instead, Some(listing(&left)), "{tools}");
            assert_eq!(unfit.tools.len(), 1);
        }
    }

    #[test]
    fn a_fit_listing_stays_as_it_is() {
        for tools in ["[]", r#"[{"name":"a"},{},null]"#, "7"] {
            assert_eq!(
                KnownTools::default().learn(&listing(tools)),
                Unfit::default(),
                "{tools}"
            );
        }
        let refusal = Line::own(r#"{"id":1,"error":{"code":1,"message":"x"}}"#.into());
        assert_eq!(KnownTools::default().learn(&refusal), Unfit::default());
    }

    #[test]
    fn a_tool_is_named_as_unfit_once() {
        let mut tools = KnownTools::default();
        let unfit = listing(&format!("[{BAD}]"));
        assert_eq!(tools.learn(&unfit).tools.len(), 1);
        let again = tools.learn(&unfit);
        assert_eq!(again.tools, []);
        assert!(again.instead.is_some());
    }

    #[test]
    fn a_call_repeats_the_arguments_that_its_tool_asks_for() {
        let mut tools = KnownTools::default();
        let schema = json!({"properties": {
            "text": {"type": "string", ANNOTATION: "Text"},
            "deep": {"properties": {"n": {"type": "integer", ANNOTATION: "N"}}},
            "gone": {"type": "string", ANNOTATION: "Gone"},
        }});
        tools.learn(&listing(
            &json!([{"name": "t", "inputSchema": schema}]).to_string(),
        ));
        let mirror = |arguments: Value| {
            let body = json!({"params": {"name": "t", "arguments": arguments}}).to_string();
            let mut headers = HeaderMap::new();
            tools.mirror("t", body.as_bytes(), &mut headers);
            let mut headers: Vec<_> = headers
                .iter()
                .map(|(name, value)| format!("{name}={}", value.to_str().expect("text")))
                .collect();
            headers.sort();
            headers
        };
        assert_eq!(
            mirror(json!({"text": "hé", "deep": {"n": 7}, "gone": null})),
            ["mcp-param-n=7", "mcp-param-text==?base64?aMOp?="]
        );
        assert_eq!(mirror(json!({"deep": 1, "text": {"a": 1}})), [""; 0]);
        assert_eq!(mirror(Value::Null), [""; 0]);
    }

    #[test]
    fn a_cursor_is_there_or_not() {
        assert_eq!(
            next_cursor(br#"{"result":{"tools":[],"nextCursor":""}}"#).as_deref(),
            Some("")
        );
        assert_eq!(next_cursor(br#"{"result":{"tools":[]}}"#), None);
    }
}
