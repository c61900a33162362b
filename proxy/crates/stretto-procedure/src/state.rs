//! What a run knows.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use crate::features::{features, parse};
use crate::ticket::{identifiers, is_named, words};

/// What is known of a ticket, and of what was done about it.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) ticket: String,
    pub(crate) identifiers: HashSet<String>,
    words: HashSet<String>,
    /// Where the run is: the tree that comes next.
    pub(crate) site: String,
    called: HashSet<String>,
    /// Writes, as the trees write them.
    made: HashSet<String>,
    /// The features of each tool's latest result, but for those that are set aside.
    latest: HashMap<String, HashSet<String>>,
    /// Per tool, the member names of the record that the ticket names.
    own_records: HashMap<String, BTreeSet<String>>,
    pub(crate) results: Vec<(String, Value)>,
    passed: HashMap<(String, String), HashSet<String>>,
    is_symbolic: bool,
}

impl State {
    pub(crate) fn new(ticket: &str, vocab: &HashSet<String>, is_symbolic: bool) -> Self {
        Self {
            ticket: ticket.to_owned(),
            identifiers: identifiers(ticket),
            words: words(ticket).intersection(vocab).cloned().collect(),
            site: "start".to_owned(),
            called: HashSet::new(),
            made: HashSet::new(),
            latest: HashMap::new(),
            own_records: HashMap::new(),
            results: Vec::new(),
            passed: HashMap::new(),
            is_symbolic,
        }
    }

    /// Whether a tree's question is answered by yes.
    pub(crate) fn has(&self, feature: &str) -> bool {
        let after = |start: &str| feature.strip_prefix(start);
        after("ticket: ").is_some_and(|word| self.words.contains(word))
            || after("called ").is_some_and(|tool| self.called.contains(tool))
            || after("made ").is_some_and(|action| self.made.contains(action))
            || self.latest.iter().any(|(tool, latest)| {
                let own = feature.strip_prefix(tool.as_str());
                own.and_then(|own| own.strip_prefix(':'))
                    .is_some_and(|own| latest.contains(own))
            })
    }

    /// What was passed before as this argument of a tool.
    pub(crate) fn passed(&self, tool: &str, argument: &str) -> Option<&HashSet<String>> {
        self.passed.get(&(tool.to_owned(), argument.to_owned()))
    }

    /// Takes in a call that was made, and what came back. `write` is the action that made it, if
    /// it was a write.
    pub(crate) fn take(
        &mut self,
        tool: &str,
        arguments: &Map<String, Value>,
        write: Option<&str>,
        returned: (bool, &str),
    ) {
        for (name, value) in arguments {
            if let Value::String(value) = value {
                let place = (tool.to_owned(), name.clone());
                self.passed.entry(place).or_default().insert(value.clone());
            }
        }
        self.called.insert(tool.to_owned());
        self.made.extend(write.map(str::to_owned));
        let (failed, text) = returned;
        if failed {
            self.site = format!("{tool}!");
            self.own_records.remove(tool);
            let error = HashSet::from(["error".to_owned()]);
            self.latest.insert(tool.to_owned(), error);
            return;
        }
        tool.clone_into(&mut self.site);
        let result = parse(text);
        if !self.keeps_the_latest(tool, &result) {
            let mut latest: HashSet<String> = features(&result).into_iter().collect();
            latest.insert("error=False".to_owned());
            self.latest.insert(tool.to_owned(), latest);
        }
        self.results.push((tool.to_owned(), result));
    }

    /// Whether trees go on seeing what they saw of a tool: this result is a record like the one
    /// that the ticket names, and another's.
    fn keeps_the_latest(&mut self, tool: &str, result: &Value) -> bool {
        if !self.is_symbolic {
            return false;
        }
        let names = result
            .as_object()
            .map(|members| members.keys().cloned().collect::<BTreeSet<_>>());
        if is_named(result, &self.identifiers) {
            if let Some(names) = names {
                self.own_records.insert(tool.to_owned(), names);
            }
            return false;
        }
        let is_alike = names.is_some() && self.own_records.get(tool) == names.as_ref();
        if !is_alike {
            self.own_records.remove(tool);
        }
        is_alike
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(is_symbolic: bool) -> State {
        let vocab = ["no", "no service"].map(str::to_owned).into();
        State::new("No service at 555-0107", &vocab, is_symbolic)
    }

    fn result(state: &mut State, failed: bool, text: &str) {
        state.take("line", &Map::new(), None, (failed, text));
    }

    const OWN: &str = r#"{"number": "555-0107", "on": true}"#;
    const OTHER: &str = r#"{"number": "555-0108", "on": false}"#;

    #[test]
    fn a_ticket_has_the_words_that_count() {
        let state = state(true);
        assert!(state.has("ticket: no service") && state.has("ticket: no"));
        assert!(!state.has("ticket: service"), "it is not in the vocabulary");
        assert_eq!(state.site, "start");
    }

    #[test]
    fn calls_and_writes_are_remembered() {
        let mut state = state(true);
        let arguments = serde_json::from_str(r#"{"id": "L7", "n": 3}"#).unwrap();
        state.take(
            "reset",
            &arguments,
            Some("reset{\"id\": \"@x\"}"),
            (true, "{}"),
        );
        assert!(state.has("called reset") && state.has("made reset{\"id\": \"@x\"}"));
        assert!(!state.has("called res") && !state.has("made reset"));
        assert_eq!(state.site, "reset!");
        assert!(state.has("reset:error") && !state.has("reset:error=False"));
        assert!(state.results.is_empty());
        assert!(
            state
                .passed("reset", "id")
                .is_some_and(|passed| passed.contains("L7"))
        );
        assert!(state.passed("reset", "n").is_none());
    }

    #[test]
    fn another_record_of_the_same_kind_does_not_hide_the_tickets_own() {
        let mut own_first = state(true);
        result(&mut own_first, false, OWN);
        result(&mut own_first, false, OTHER);
        assert!(own_first.has("line:on=true") && !own_first.has("line:on=false"));
        assert_eq!(own_first.results.len(), 2, "all else goes on");

        let mut plain = state(false);
        result(&mut plain, false, OWN);
        result(&mut plain, false, OTHER);
        assert!(plain.has("line:on=false"));
    }

    #[test]
    fn what_is_no_such_record_replaces_it_and_ends_the_remembering() {
        for (failed, between) in [
            (false, r#"{"on": false}"#),
            (false, "[]"),
            (false, "gone"),
            (true, ""),
        ] {
            let mut state = state(true);
            result(&mut state, false, OWN);
            result(&mut state, failed, between);
            assert!(!state.has("line:on=true"), "{between}");
            result(&mut state, false, OTHER);
            assert!(state.has("line:on=false"), "{between}");
        }
    }

    #[test]
    fn a_list_that_names_the_ticket_ends_no_remembering() {
        let mut state = state(true);
        result(&mut state, false, OWN);
        result(&mut state, false, r#"["555-0107"]"#);
        assert!(state.has("line:len($)=1"));
        result(&mut state, false, OTHER);
        assert!(state.has("line:len($)=1"), "the latest stays as it was");
    }

    #[test]
    fn a_tool_whose_name_begins_like_anothers_has_its_own_features() {
        let mut state = state(true);
        state.take("line:a", &Map::new(), None, (false, r#"{"on": true}"#));
        assert!(state.has("line:a:on=true") && !state.has("line:on=true"));
    }
}
