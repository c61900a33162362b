//! Messages that cross while the judge's model thinks.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Map, Value, json};
use stretto_harness::service::{Call, Reply, Service};

use crate::session::{DEMO, PROXY, Session, median};

/// How long the model thinks.
const THINKS: Duration = Duration::from_secs(5);

/// How many messages cross meanwhile.
const MESSAGES: usize = 1_000;

const ROUNDS: usize = 3;

/// The model's service, whose every answer takes its time.
struct Model {
    service: Service,
    asked: Arc<AtomicUsize>,
    answered: Arc<AtomicUsize>,
}

impl Model {
    fn start() -> Self {
        let asked = Arc::<AtomicUsize>::default();
        let answered = Arc::<AtomicUsize>::default();
        let (begun, ended) = (Arc::clone(&asked), Arc::clone(&answered));
        let service = Service::start(move |call| {
            begun.fetch_add(1, Ordering::SeqCst);
            thread::sleep(THINKS);
            ended.fetch_add(1, Ordering::SeqCst);
            Some(yes(call))
        })
        .expect("a port is free");
        Self {
            service,
            asked,
            answered,
        }
    }

    fn wait_until_asked(&self, times: usize) {
        while self.asked.load(Ordering::SeqCst) < times {
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn answered(&self) -> usize {
        self.answered.load(Ordering::SeqCst)
    }
}

/// A likely yes to everything that is asked.
fn yes(call: &Call) -> Reply {
    let request: Value = serde_json::from_slice(&call.body).unwrap_or_default();
    let asked = request["questions"].as_object().into_iter().flatten();
    let answers: Map<String, Value> = asked
        .map(|(id, _)| (id.clone(), json!({"type": "noul", "noul": 0.95})))
        .collect();
    Reply::answers("stand-in", &answers)
}

/// Prints how long messages take beside an open question, and without a judge.
pub(crate) fn measure() {
    println!(
        "| {MESSAGES} messages while the model takes {} s | without a judge, µs | with one, µs | ratio | wanted |",
        THINKS.as_secs()
    );
    println!("|---|--:|--:|--:|--:|");
    let model = Model::start();
    for round in 1..=ROUNDS {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let mut without = shop(folder.path(), "without", None);
        let mut with = shop(folder.path(), "with", Some(&model));
        let cancel = json!({"order_id": "#W7a", "reason": "no longer needed"});
        without.call("cancel_pending_order", &cancel);
        let held = with.send("cancel_pending_order", &cancel);
        model.wait_until_asked(round);

        let mut times = [Vec::new(), Vec::new()];
        let read = json!({"order_id": "#W7b"});
        for _ in 0..MESSAGES {
            times[0].push(without.call("get_order_details", &read));
            times[1].push(with.call("get_order_details", &read));
        }
        assert_eq!(
            model.answered(),
            round - 1,
            "the question is open until the last message has crossed"
        );
        with.read();
        assert!(
            with.answer().contains(&format!("\"id\":{held},"))
                && with.answer().contains("cancelled"),
            "{}",
            with.answer()
        );
        without.end();
        with.end();
        let [without, with] = times.map(|times| median(&times));
        println!(
            "| round {round} | {without:.1} | {with:.1} | {:.2} | 1 |",
            with / without
        );
    }
}

/// A session whose customer has just agreed to a change, with `model` as its judge.
fn shop(folder: &Path, name: &str, model: Option<&Model>) -> Session {
    let conversation = folder.join(name);
    let said = ["Shall I cancel #W7a as no longer needed?", "Yes, please."];
    let said = ["assistant", "user"].into_iter().zip(said);
    let said: String = said
        .map(|(role, content)| json!({"role": role, "content": content}).to_string() + "\n")
        .collect();

    let mut command = Command::new(PROXY);
    command
        .args(["--domain", "retail", "--guards", "--context"])
        .arg(&conversation);
    if let Some(model) = model {
        command
            .args(["--confirm-judge", "enforce", "--oracle-cache"])
            .arg(folder.join("cache"))
            .env("TYPESAFE_API_KEY", "a key of this run's")
            .env(
                "TYPESAFE_BASE_URL",
                format!("http://{}", model.service.address()),
            );
    }
    command.arg("--").arg(DEMO).args(["--world", "retail"]);
    let mut session = Session::start(&mut command);
    session.call("find_user_id_by_email", &json!({"email": "c7@example.com"}));
    session.call("get_user_details", &json!({"user_id": "user_7"}));
    session.call("get_order_details", &json!({"order_id": "#W7a"}));
    fs::write(&conversation, said).expect("the folder is there");
    session
}
