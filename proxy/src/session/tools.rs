//! What the server has listed.

use serde_json::Value;
use stretto_trace::mcp::{ListedTool, Tools};

use super::requests::Listing;

/// The tools that the server has, as far as the host has asked for them.
///
/// Each page adds what it lists. A complete listing, from the first page to the one without
/// a next one, replaces all that was known: what it does not list is gone.
#[derive(Debug, Default)]
pub(super) struct ServerTools {
    known: Tools,
    has_listed: bool,
    /// The listing that is being read, page by page.
    reading: Option<Reading>,
}

#[derive(Debug)]
struct Reading {
    tools: Tools,
    next: String,
}

impl ServerTools {
    /// Takes in the answer to a `tools/list`.
    pub(super) fn listed(&mut self, listing: &Listing, response: &Value) {
        let Some(result) = response
            .get("result")
            .filter(|result| result.get("tools").is_some_and(Value::is_array))
        else {
            return;
        };
        self.has_listed = true;
        self.known.listed(result);
        let mut tools = match (&listing.cursor, self.reading.take()) {
            (None, _) => Tools::default(),
            (Some(cursor), Some(reading)) if reading.next == *cursor => reading.tools,
            (Some(_), reading) => {
                // A page of another listing, or one out of order.
                self.reading = reading;
                return;
            }
        };
        tools.listed(result);
        if let Some(next) = next_cursor(result) {
            self.reading = Some(Reading {
                tools,
                next: next.to_owned(),
            });
        } else {
            self.known = tools;
        }
    }

    /// What is known, once the server has listed anything.
    pub(super) fn known(&self) -> Option<&Tools> {
        self.has_listed.then_some(&self.known)
    }
}

/// The cursor of the page after this one. The empty text is a cursor too.
pub(super) fn next_cursor(result: &Value) -> Option<&str> {
    result.get("nextCursor").and_then(Value::as_str)
}

/// Whether this page lists a tool of that name.
pub(super) fn lists(result: &Value, name: &str) -> bool {
    ListedTool::all_in(result).any(|tool| tool.name == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(tools: &mut ServerTools, cursor: Option<&str>, names: &[&str], next: Option<&str>) {
        let listed: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        let mut result = json!({"tools": listed});
        if let Some(next) = next {
            result["nextCursor"] = next.into();
        }
        tools.listed(
            &Listing {
                cursor: cursor.map(Into::into),
            },
            &json!({"id": 1, "result": result}),
        );
    }

    fn known(tools: &ServerTools) -> Option<Vec<String>> {
        Some(tools.known()?.manifest("").tools.into_keys().collect())
    }

    #[test]
    fn nothing_is_known_before_the_first_listing() {
        let mut tools = ServerTools::default();
        tools.listed(&Listing { cursor: None }, &json!({"id": 1, "error": {}}));
        assert_eq!(known(&tools), None);
        page(&mut tools, None, &[], None);
        assert_eq!(known(&tools), Some(vec![]));
    }

    #[test]
    fn a_complete_listing_replaces_what_was_known() {
        let mut tools = ServerTools::default();
        page(&mut tools, None, &["a", "b"], None);
        page(&mut tools, None, &["c"], Some(""));
        assert_eq!(known(&tools).unwrap(), ["a", "b", "c"]);
        page(&mut tools, Some(""), &["d"], Some("2"));
        page(&mut tools, Some("2"), &["e"], None);
        assert_eq!(known(&tools).unwrap(), ["c", "d", "e"]);
    }

    #[test]
    fn a_page_out_of_order_only_adds() {
        let mut tools = ServerTools::default();
        page(&mut tools, None, &["a"], None);
        page(&mut tools, Some("x"), &["z"], None);
        assert_eq!(known(&tools).unwrap(), ["a", "z"]);
    }
}
