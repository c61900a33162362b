//! One drawn session, as the text of a scenario.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::simulate::Draws;

/// A flow for the shop, whose lookups come between everything else.
const FLOW: &str = include_str!("../../../scenarios/flows/shop.flow.json");

/// What a server may do to its answers without leaving the host without one.
const FAULTS: [&str; 8] = [
    "delay_ms = 60",
    "fault = { split = [30, 2] }",
    "fault = { crlf = true }",
    "fault = { pad = 200000 }",
    "fault = { stderr = \"the server is worried\" }",
    "error = \"the shop is closed\"",
    "rpc_error = { code = -32000, message = \"out of order\" }",
    "fault = { twice = true }",
];

/// How many of the faults happen over HTTP, too: an answer that comes twice does not.
const OVER_HTTP: usize = FAULTS.len() - 1;

/// The session with this number under a seed.
///
/// It plays over one transport, drawn as well: there, several calls at once, calls that are
/// cancelled, writes, words of the customer and odd lines come in any order, under any of the
/// proxy's switches that ask no model, and the server answers in any of several odd ways.
pub fn text(seed: u64, session: usize) -> String {
    let mut drawing = Drawing {
        draws: Draws::new(seed, "soak", session as u64),
        is_http: false,
        commits: false,
        guards: false,
        next_id: 100,
        called: Vec::new(),
        steps: String::new(),
    };
    drawing.is_http = drawing.draws.happens(40);
    drawing.text(&format!(
        "session {session} of seed {seed} keeps every promise"
    ))
}

struct Drawing {
    draws: Draws,
    is_http: bool,
    commits: bool,
    guards: bool,
    next_id: u64,
    /// Tools that the host is certain to have called at the server, so that their faults come to pass.
    called: Vec<&'static str>,
    steps: String,
}

impl Drawing {
    fn text(mut self, title: &str) -> String {
        let mut proxy = vec!["--record", "$LOGS", "--domain", "retail"];
        let has_flow = self.draws.happens(70);
        if has_flow {
            proxy.extend(["--flow", "$DIR/shop.flow.json"]);
            if self.draws.happens(20) {
                proxy.push("--flow-shadow");
            } else if self.draws.happens(30) {
                proxy.extend(["--flow-per-call", "1"]);
            }
        }
        self.guards = self.draws.happens(30);
        if self.guards {
            proxy.push("--guards");
        }
        self.commits = self.draws.happens(30);
        if self.commits {
            proxy.push("--commit");
        }
        let listens = self.draws.happens(50);
        if listens {
            proxy.extend(["--context", "$CONTEXT"]);
        }

        self.step("{ handshake = \"2025-06-18\" }");
        if self.draws.happens(60) {
            self.step("{ request = \"tools/list\" }");
        }
        for _ in 0..3 + self.draws.below(6) {
            self.happening(listens);
        }
        let exits = self.ending();

        let over = if self.is_http { "http" } else { "stdio" };
        let mut text = format!(
            "title = {}\nover = [\"{over}\"]\nproxy = {}\n",
            Value::from(title),
            Value::from(proxy)
        );
        if has_flow {
            let flow = Value::from(FLOW.replace('$', "$$"));
            writeln!(text, "files = {{ \"shop.flow.json\" = {flow} }}").expect("memory takes it");
        }
        text.push_str("\nscript.world = \"retail\"\n");
        let answers = self.answers(exits);
        writeln!(text, "script.answers = [\n{answers}]\n").expect("memory takes it");
        writeln!(text, "steps = [\n{}]", self.steps).expect("memory takes it");
        text
    }

    fn step(&mut self, step: &str) {
        writeln!(self.steps, "  {step},").expect("memory takes it");
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// A call of one of the shop's tools; whether the server is certain to be asked.
    fn call(&mut self) -> (&'static str, Value, bool) {
        let customer = 1 + self.draws.below(9);
        let order = format!(
            "#W{customer}{}",
            if self.draws.happens(50) { 'a' } else { 'b' }
        );
        match self.draws.below(10) {
            0..=2 => {
                let email = format!("c{customer}@example.com");
                ("find_user_id_by_email", json!({ "email": email }), true)
            }
            3..=5 => {
                let user = format!("user_{customer}");
                ("get_user_details", json!({ "user_id": user }), true)
            }
            6..=8 => ("get_order_details", json!({ "order_id": order }), true),
            _ => {
                let arguments = json!({ "order_id": order, "reason": "no longer needed" });
                ("cancel_pending_order", arguments, !self.guards)
            }
        }
    }

    fn call_step(&mut self, more: &str) -> u64 {
        let id = self.id();
        let (tool, arguments, is_certain) = self.call();
        if is_certain {
            self.called.push(tool);
        }
        let arguments = table(&arguments);
        self.step(&format!(
            "{{ call = \"{tool}\", id = {id}, args = {arguments}{more} }}"
        ));
        id
    }

    fn happening(&mut self, listens: bool) {
        match self.draws.below(12) {
            // Several at once, answered in whatever order.
            0..=3 => {
                let ids: Vec<u64> = (0..=self.draws.below(3))
                    .map(|_| self.call_step(", wait = false"))
                    .collect();
                self.call_step("");
                for id in ids {
                    self.step(&format!("{{ expect = {id} }}"));
                }
            }
            // Cancelled on its way: it may be answered, or not even have reached the server.
            4 => {
                let called = self.called.len();
                let id = self.call_step(", wait = false");
                self.called.truncate(called);
                self.step(&format!(
                    "{{ notify = \"notifications/cancelled\", params = {{ requestId = {id} }} }}"
                ));
                self.ping();
            }
            5 => self.ping(),
            6 if self.commits => {
                let id = self.id();
                let calls: Vec<String> = (0..=self.draws.below(3))
                    .map(|_| {
                        let (tool, arguments, _) = self.call();
                        format!("{{ name = \"{tool}\", arguments = {} }}", table(&arguments))
                    })
                    .collect();
                let calls = calls.join(", ");
                self.step(&format!(
                    "{{ call = \"stretto_commit\", id = {id}, args = {{ calls = [{calls}] }} }}"
                ));
            }
            7 if listens => {
                let says = self.draws.pick(&[
                    "{ say = \"user\", text = \"I am c7@example.com. Yes, please.\" }",
                    "{ say = \"user\", text = \"No, wait: the other one, #W7b.\" }",
                    "{ say = \"assistant\", text = \"Shall I cancel it?\" }",
                ]);
                self.step(says.copied().unwrap_or_default());
            }
            8 => {
                let id = self.id();
                self.step(&format!("{{ request = \"tools/list\", id = {id} }}"));
            }
            // Sent with the next one, in one write.
            9 => self.step("{ notify = \"notifications/roots/list_changed\", wait = false }"),
            _ => drop(self.call_step("")),
        }
    }

    fn ping(&mut self) {
        let id = self.id();
        self.step(&format!("{{ request = \"ping\", id = {id} }}"));
    }

    /// How the session ends; whether by the server's own end.
    fn ending(&mut self) -> bool {
        match self.draws.below(4) {
            // The host leaves with calls on their way, whose answers it still gets.
            0 => {
                let (one, other) = (
                    self.call_step(", wait = false"),
                    self.call_step(", wait = false"),
                );
                self.step("{ close = \"stdin\" }");
                self.step(&format!("{{ expect = {one} }}"));
                self.step(&format!("{{ expect = {other} }}"));
                self.step("{ exit = 0 }");
                false
            }
            1 if !self.is_http => {
                let id = self.id();
                self.step(&format!(
                    "{{ call = \"find_user_id_by_email\", id = {id}, args = {{ email = \"the end\" }}, wait = false }}"
                ));
                self.step("{ exit = 3 }");
                true
            }
            _ => {
                self.ping();
                false
            }
        }
    }

    /// What the server does to the calls that are certain to reach it.
    fn answers(&mut self, exits: bool) -> String {
        let mut answers = String::new();
        if exits {
            answers.push_str(
                "  { tool = \"find_user_id_by_email\", args = { email = \"the end\" }, fault = { exit = 3 } },\n",
            );
        }
        let mut tools = self.called.clone();
        tools.sort_unstable();
        tools.dedup();
        for tool in tools {
            if !self.draws.happens(40) {
                continue;
            }
            let some = if self.is_http {
                OVER_HTTP
            } else {
                FAULTS.len()
            };
            let fault = self
                .draws
                .pick(&FAULTS[..some])
                .copied()
                .unwrap_or_default();
            writeln!(answers, "  {{ tool = \"{tool}\", {fault} }},").expect("memory takes it");
        }
        answers
    }
}

/// A flat object as an inline table of TOML, with dollar signs kept from meaning a placeholder.
fn table(object: &Value) -> String {
    let members = object.as_object().into_iter().flatten();
    let members: Vec<String> = members
        .map(|(name, value)| format!("{name} = {value}").replace('$', "$$"))
        .collect();
    format!("{{ {} }}", members.join(", "))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scenario::read_text;

    #[test]
    fn every_drawn_session_is_a_scenario_and_the_same_under_its_seed() {
        for session in 0..400 {
            let drawn = text(3, session);
            assert_eq!(drawn, text(3, session));
            let read = read_text(Path::new("drawn.toml"), "drawn", &drawn);
            assert!(read.is_ok(), "{read:?}\n{drawn}");
        }
        assert_ne!(text(3, 0), text(4, 0));
    }

    #[test]
    fn all_that_may_happen_is_drawn_sooner_or_later() {
        let all: String = (0..400).map(|session| text(5, session)).collect();
        let happenings = [
            "stretto_commit",
            "notifications/cancelled",
            "wait = false",
            "exit = 3",
            "close = \"stdin\"",
            "--guards",
            "--flow-shadow",
            "\"http\"",
        ];
        for what in happenings.into_iter().chain(FAULTS) {
            assert!(all.contains(what), "{what}");
        }
    }
}
