//! Flows: which lookups follow a call, learned from recorded sessions.
//!
//! A flow is a file of what agents did in recorded sessions: after which result they went on to
//! which lookup, and where its arguments came from. Whoever holds a fresh result can ask it for
//! the likely lookup, make it at once, and hand over both answers together.
//!
//! ```text
//!   session logs ──► learn ──► FlowFile ──► Flow ─┬─ run ──► Run ──► RunRecord
//!                                                 │   ▲ │
//!                                                 │   │ ▼ decide, look up, hand back
//!   messages ──► EpisodeBuilder ──► Live::follow ─┴─ Live::decide ──► Decision
//! ```
//!
//! Nothing here reads a clock, draws at random or waits: the same session gives the same
//! decisions.
//!
//! # Serving a flow
//!
//! [`Flow::load`] reads and checks the file; one flow serves any number of sessions. A
//! session holds an [`EpisodeBuilder`] and a [`Live`]: every message goes into the builder,
//! and [`Live::follow`] takes in what is new, at a cost that depends on the message alone.
//!
//! When one of the agent's calls returns with a `result`, no other run is under way, the
//! session's limits are not reached and [`Live::ends_in_call`] holds, [`Flow::run`] starts a
//! [`Run`]. It says what it waits for ([`Next`]) and is given that with [`Run::resume`]:
//!
//! | It waits for | Do | Answer |
//! |---|---|---|
//! | [`Next::Decide`] | at a limit nothing, else [`Live::decide`] after the run's last call, and log [`Decision::line`] | [`Answer::LookUp`], if the decision is a lookup, the site [offers](DecisionSite::offers) it, it is not [withheld](Flow::withheld), and this is not shadow mode; else [`Answer::HandBack`] |
//! | [`Next::LookUp`] | send the call that was decided on, wait for its response, read it with [`lookup_result`] | [`Answer::Returned`] |
//! | [`Next::HandBack`] | log [`RunRecord::line`], append [`appended_text`] to the held result | – |
//!
//! The call that a decision is *after* is named by its id in the episode, which is the id of
//! the agent's request, or of the last lookup. The builder tells it: a message that returned
//! a call is [`Effect::Returned`], which names the call's place in the events. (A call that
//! was retried after a question of the server's keeps the id of its first request.)
//!
//! A run that has to be given up is dropped; it leaves no line.
//!
//! ```
//! use std::sync::Arc;
//! use serde_json::{Value, json};
//! use stretto_flow::{
//!     Answer, Flow, Grants, Live, LookedUp, Next, Settings, Taken, Verdict, appended_text,
//!     lookup_result,
//! };
//! use stretto_trace::mcp::{EpisodeBuilder, Header, Who};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/flows/shop.flow.json");
//! # let call = |id: Value, name: &str, arguments: Value| {
//! #     json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
//! #            "params": {"name": name, "arguments": arguments}})
//! # };
//! # let answer = |id: Value, text: &str| {
//! #     json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})
//! # };
//! let flow = Arc::new(Flow::load(file.as_ref())?);
//! let settings = Settings::new(flow.default_decider(), "task-1");
//! flow.check_decider(settings.decider)?;
//!
//! // What the session holds.
//! let mut builder = EpisodeBuilder::new(&Header::new("session-1", 0, Vec::new()));
//! let mut live = Live::new(Arc::clone(&flow)).exploring(&settings);
//!
//! // The agent calls, and the server answers: each message is taken in as it passes.
//! builder.message(10, Who::Client, &call(json!(3), "find_user_id_by_email", json!({})));
//! builder.message(20, Who::Server, &answer(json!(3), "user_7"));
//! live.follow(builder.events());
//!
//! let (held, mut after) = (json!(3), "3".to_owned());
//! assert!(live.ends_in_call(&after));
//! let (mut run, mut next) = flow.run("find_user_id_by_email", false, 8);
//! let mut found = Vec::new();
//! let mut decided = None;
//! let record = loop {
//!     next = match next {
//!         Next::Decide(site) => {
//!             let decision = live.decide(&after, &settings)?;
//!             let withheld = decision.tool().and_then(|tool| flow.withheld(tool, Grants::default()));
//!             let taken = Taken {
//!                 after: &held,
//!                 address: &site.address,
//!                 ms: 0,
//!                 shadow: false,
//!                 withheld: withheld.as_deref(),
//!             };
//!             println!("{}", decision.line(&taken)); // to the flow log
//!             match decision.verdict {
//!                 Verdict::LookUp { tool, arguments } if site.offers(&tool) && withheld.is_none() => {
//!                     decided = Some((tool.clone(), arguments));
//!                     run.resume(Answer::LookUp(tool))
//!                 }
//!                 _ => run.resume(Answer::HandBack),
//!             }
//!         }
//!         Next::LookUp { .. } => {
//!             let (tool, arguments) = decided.take().expect("a lookup was decided on");
//!             // A request of our own; its response comes later, as an event of the session.
//!             after = format!("stretto-{}", found.len() + 1);
//!             let request = call(json!(after), &tool, Value::Object(arguments.clone()));
//!             let response = answer(json!(after), r##"{"user_id":"user_7","orders":["#W7a"]}"##);
//!             builder.message(30, Who::Proxy, &request);
//!             builder.message(40, Who::Server, &response);
//!             live.follow(builder.events());
//!             let (text, failed) = lookup_result(&response);
//!             found.push(LookedUp { tool, arguments, failed, text });
//!             run.resume(Answer::Returned(!failed))
//!         }
//!         Next::HandBack(record) => break record,
//!     };
//! };
//! if let Some(record) = record {
//!     println!("{}", record.line(&held)); // to the flow log
//! }
//! let text = appended_text(&found).expect("it looked something up");
//! assert!(text.contains("get_user_details {\"user_id\":\"user_7\"}:"));
//! # Ok(())
//! # }
//! ```
//!
//! # The arbiter
//!
//! Its probabilities come from a model's answers, which take time. [`Live::open`] in place of
//! [`Live::decide`] returns the decision while it is still [`Open`], with what a question
//! needs, and [`Open::decide`] settles it once there are probabilities, by the same rule.
//!
//! [`Flow::question`] makes the request to ask, and [`Flow::settle`] turns what came of it into
//! the decision. Nothing here asks anyone: the request may be on its way while the session goes
//! on. An [`ArbiterFile`] is an arbiter by itself, which any flow can be
//! [given](FlowFile::set_arbiter).
//!
//! [`EpisodeBuilder`]: stretto_trace::mcp::EpisodeBuilder
//! [`Effect::Returned`]: stretto_trace::mcp::Effect::Returned

mod appended;
mod arbiter;
mod decide;
pub mod evaluate;
mod explore;
pub mod file;
mod flow;
mod gate;
mod grant;
mod learn;
mod live;
mod log;
mod memory;
mod plan;
mod program;
mod questions;
mod review;
mod run;
mod score;
mod step;
mod value;

pub use appended::{HEADING, LookedUp, appended_text, lookup_result};
pub use arbiter::{ArbiterError, ArbiterFile, ArbiterLoadError, FitError, Fitting, NoArbiter};
pub use decide::{
    Choice, Decider, DeciderError, Decision, Heard, Open, Opening, Policy, Settings, Verdict,
};
pub use explore::{Explore, fold, task_hash};
pub use file::{FlowError, FlowFile, LoadError};
pub use flow::{Flow, RESPOND, site_name};
pub use grant::Grants;
pub use learn::{
    LearnError, LearnOptions, Progress, Session, SiteThresholds, Stage, Surroundings, learn,
};
pub use live::{Live, OWN_ID};
pub use log::Taken;
pub use memory::{Pick, PickKind, Unbound};
pub use program::{STANDARD_RUN, is_standard, standard as standard_run};
pub use review::{Change, Diff, Topic, diff, show};
pub use run::{
    Answer, DecisionSite, Next, Run, RunRecord, ScoreError, Scored, SiteValue, TracedSite,
};
pub use score::{
    Ask, Audit, CrossValidation, PER_CALL, Score, Scores, SessionAudit, SiteAudit, SiteScore,
    audit, cross_validate, lower_bound, promote, score,
};
