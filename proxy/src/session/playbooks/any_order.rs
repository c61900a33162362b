//! Whatever comes in whatever order: no answer of the model's, and none that is missing, costs a
//! call or a result.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use stretto_guards::confirm::NOT_AGREED;

use super::*;

/// What may happen next. A number says which of those that are there.
#[derive(Clone, Debug)]
enum Happening {
    Finds,
    Reads,
    Writes,
    Commits,
    Cancels(usize),
    ServerAnswers(usize),
    ModelAnswers(usize, Said),
    TimePasses,
    HostCloses,
    ServerCloses,
}

/// What the model says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Yes,
    No,
    Error,
    /// Something that answers no question.
    Nonsense,
}

fn happening() -> impl Strategy<Value = Happening> {
    let said = prop_oneof![
        3 => Just(Said::Yes),
        2 => Just(Said::No),
        1 => Just(Said::Error),
        1 => Just(Said::Nonsense),
    ];
    prop_oneof![
        2 => Just(Happening::Finds),
        2 => Just(Happening::Reads),
        4 => Just(Happening::Writes),
        2 => Just(Happening::Commits),
        2 => (0..4_usize).prop_map(Happening::Cancels),
        8 => (0..4_usize).prop_map(Happening::ServerAnswers),
        8 => ((0..3_usize), said).prop_map(|(which, said)| Happening::ModelAnswers(which, said)),
        1 => Just(Happening::TimePasses),
        1 => Just(Happening::HostCloses),
        1 => Just(Happening::ServerCloses),
    ]
}

/// A session with everything switched on, and what came of each of its calls.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says whether one thing has happened, and all may have"
)]
struct Story {
    play: Play,
    last_id: u32,
    /// The host's calls that it did not take back.
    wanted: BTreeSet<u32>,
    /// How many answers each call has had.
    answers: BTreeMap<u32, usize>,
    /// How often the server was sent each call of the host's.
    sent: BTreeMap<u32, usize>,
    /// The calls of the host's that the server has answered.
    returned: BTreeSet<u32>,
    /// What the server has still to answer: the id and the tool.
    owed: Vec<(Value, String)>,
    has_said_no: bool,
    is_host_gone: bool,
    is_server_gone: bool,
    is_input_closed: bool,
}

impl Story {
    fn begun() -> Self {
        let name = "retail-5-sessions-shipped-arbiter";
        let play = Play::new(Options {
            serving: serving_flow(name, LIMITS, false, None).serving,
            commit: true,
            ..judging()
        });
        let mut story = Self {
            play,
            last_id: 0,
            wanted: BTreeSet::new(),
            answers: BTreeMap::new(),
            sent: BTreeMap::new(),
            returned: BTreeSet::new(),
            owed: Vec::new(),
            has_said_no: false,
            is_host_gone: false,
            is_server_gone: false,
            is_input_closed: false,
        };
        story.happens(&Happening::Finds);
        story.happens(&Happening::Reads);
        story.drain();
        story.play.says("assistant", "Shall I cancel #W7a?");
        story.play.says("user", "Yes.");
        story
    }

    fn happens(&mut self, happening: &Happening) {
        let order = json!({"order_id": "#W7a"});
        let write = json!({"order_id": "#W7a", "reason": "no longer needed"});
        match happening {
            Happening::Finds => {
                self.calls("find_user_id_by_email", json!({"email": "c7@example.com"}));
            }
            Happening::Reads => self.calls("get_order_details", order),
            Happening::Writes => self.calls("cancel_pending_order", write),
            Happening::Commits => {
                let calls = json!([{"name": "cancel_pending_order", "arguments": write},
                    {"name": "get_order_details", "arguments": order}]);
                self.calls("stretto_commit", json!({ "calls": calls }));
            }
            Happening::Cancels(which) if !self.is_host_gone => {
                let open = self
                    .wanted
                    .iter()
                    .filter(|id| !self.answers.contains_key(id));
                if let Some(id) = open.copied().nth(*which) {
                    self.wanted.remove(&id);
                    let told = self.play.host(cancel(id));
                    self.note(told);
                }
            }
            Happening::ServerAnswers(which) if !self.is_server_gone => self.server_answers(*which),
            Happening::ModelAnswers(which, said) => self.model_answers(*which, *said),
            Happening::TimePasses => {
                let told = self.play.later(1000);
                self.note(told);
            }
            Happening::HostCloses if !self.is_host_gone => {
                self.is_host_gone = true;
                let told = self.play.host_closes();
                self.note(told);
            }
            Happening::ServerCloses if !self.is_server_gone => {
                self.is_server_gone = true;
                let told = self.play.server_closes();
                self.note(told);
            }
            _ => {}
        }
    }

    fn calls(&mut self, tool: &str, arguments: Value) {
        if self.is_host_gone {
            return;
        }
        self.last_id += 1;
        self.wanted.insert(self.last_id);
        let told = self.play.host(call(self.last_id, tool, arguments));
        self.note(told);
    }

    fn server_answers(&mut self, which: usize) {
        if which >= self.owed.len() {
            return;
        }
        let (id, tool) = self.owed.remove(which);
        if let Some(id) = id.as_u64().and_then(|id| u32::try_from(id).ok()) {
            self.returned.insert(id);
        }
        let text = match tool.as_str() {
            "find_user_id_by_email" => "user_7".to_owned(),
            "get_user_details" => details(),
            _ => json!({"order_id": "#W7a", "user_id": "user_7", "status": "pending"}).to_string(),
        };
        let told = self.play.server(result(id, &text));
        self.note(told);
    }

    fn model_answers(&mut self, which: usize, said: Said) {
        if which >= self.play.asked.len() {
            return;
        }
        // `is_told` answers the first one.
        let ticket = self.play.asked.remove(which);
        self.play.asked.insert(0, ticket);
        let noul = |p: f64| json!({"type": "noul", "noul": p});
        let lookups = json!({"get_user_details": 0.5, "get_order_details": 0.4, "respond": 0.1});
        let choice = json!({"type": "choice", "choice": "get_user_details", "probabilities": lookups,
            "confidence": 0.5});
        let answers = match said {
            Said::Yes | Said::No => {
                let p = if said == Said::Yes { 0.9 } else { 0.1 };
                json!({"confirmed": noul(p), "next": choice, "go_on": noul(p), "tool": choice})
            }
            Said::Error | Said::Nonsense => json!({"other": noul(0.0)}),
        };
        self.has_said_no |= said == Said::No;
        let text = json!({"model": "m", "answers": answers}).to_string();
        let answer = match said {
            Said::Error => Err("the service is down".to_owned()),
            _ => Ok(Response::parse(text.as_bytes()).unwrap()),
        };
        let told = self.play.is_told(answer);
        self.note(told);
    }

    /// Answers everything that is still open.
    fn drain(&mut self) {
        loop {
            if !self.play.asked.is_empty() {
                self.model_answers(0, Said::Yes);
            } else if !self.owed.is_empty() && !self.is_server_gone {
                self.server_answers(0);
            } else {
                return;
            }
        }
    }

    /// Takes in what the session did.
    fn note(&mut self, told: Vec<String>) {
        for told in told {
            if told == "close server" {
                self.is_input_closed = true;
            }
            let Some((to, line)) = told.split_once(' ') else {
                continue;
            };
            let line = line.trim_start_matches("(own) ");
            let Ok(message) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let id = message["id"].as_u64().and_then(|id| u32::try_from(id).ok());
            match (to, id) {
                ("server", id) if message["method"] == "tools/call" => {
                    assert!(
                        !self.is_input_closed,
                        "sent after its input was closed: {told}"
                    );
                    if let Some(id) = id {
                        *self.sent.entry(id).or_default() += 1;
                    }
                    let tool = message["params"]["name"].as_str().unwrap_or_default();
                    self.owed.push((message["id"].clone(), tool.to_owned()));
                }
                ("host", Some(id)) => {
                    *self.answers.entry(id).or_default() += 1;
                    assert!(
                        self.has_said_no || !told.contains(NOT_AGREED),
                        "refused, and nobody said no: {told}"
                    );
                }
                _ => {}
            }
        }
    }

    /// What must be true once everything is over.
    fn check(&self) {
        assert!(
            self.sent.values().all(|times| *times == 1),
            "{:?}",
            self.sent
        );
        assert!(
            self.answers.values().all(|times| *times == 1),
            "{:?}",
            self.answers
        );
        for id in &self.wanted {
            // A server that is gone answers nothing; but what it had answered before is the host's.
            if !self.is_server_gone || self.returned.contains(id) {
                assert!(self.answers.contains_key(id), "call {id} was lost");
            }
        }
        assert!(!self.play.session.is_waiting(), "something is waited for");
        assert!(self.is_input_closed, "the server's input stays open");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_call_and_no_result_is_lost_and_only_a_no_refuses(
        happenings in prop::collection::vec(happening(), 1..60),
    ) {
        let mut story = Story::begun();
        for happening in &happenings {
            story.happens(happening);
        }
        story.drain();
        story.happens(&Happening::HostCloses);
        story.drain();
        story.check();
    }
}
