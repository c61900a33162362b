//! Procedures: whole workflows that were compiled from agents' traces, run without a model.
//!
//! A [`Procedure`] is a file of decision trees. A [`Run`] holds what is known of one ticket; it says
//! which tool to call next, is told what came back, and in the end whether what the ticket asks for
//! can be checked. Nothing here calls anybody: whoever holds a connection to a server does.
//!
//! ```text
//!   ticket ─► Run ─┬─ next ────► a Call ──► (a server) ──► returned ─┐
//!                  ▲                                                 │
//!                  └────────────── the state, by its features ◄──────┘
//!                  └─ outcome ─► transferred, nothing to check, or a Check
//! ```
//!
//! ```
//! use stretto_procedure::{Outcome, Procedure, Run};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let procedure: Procedure = r#"{
//!     "stretto_procedure": 1, "domain": "phones", "symbolic": true, "max_calls": 5,
//!     "stop": "stop", "handoff": "call_a_person", "reads": ["signal"], "vocab": ["no signal"],
//!     "trees": {"start": {"calls": [["reset{\"line\": \"@ticket\\\\d{4}\"}", 3]]}},
//!     "fallback": {"calls": [["stop", 1]]},
//!     "checks": [{"phrase": "signal", "probe": "signal", "contains": ["good"], "lacks": []}]
//! }"#
//! .parse()?;
//! let mut run = Run::new(&procedure, "Line 0107 has no signal.");
//! while let Some(call) = run.next()? {
//!     println!("{} {:?}", call.tool, call.arguments); // reset {"line": String("0107")}
//!     run.returned(call, false, "done");
//! }
//! let Outcome::Check(check) = run.outcome() else { panic!("the ticket speaks of a signal") };
//! assert_eq!(check.probe, "signal");
//! assert!(check.holds("Signal: GOOD"));
//! # Ok(())
//! # }
//! ```

mod action;
mod features;
mod file;
mod run;
mod state;
mod symbol;
mod ticket;

pub use action::ActionError;
pub use file::{Check, LoadError, Node, Procedure, VERSION};
pub use run::{Call, Made, Outcome, Run};
