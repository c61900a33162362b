//! Flows: which lookups follow a call, learned from recorded sessions.

mod appended;
mod decide;
mod explore;
pub mod file;
mod flow;
mod gate;
mod grant;
mod live;
mod log;
mod memory;
mod plan;
mod program;
mod run;
mod step;
mod value;

pub use appended::{HEADING, LookedUp, appended_text, lookup_result};
pub use decide::{
    Choice, Decider, DeciderError, Decision, Heard, Open, Opening, Policy, Settings, Verdict,
};
pub use explore::{Explore, fold, task_hash};
pub use file::{FlowError, FlowFile, LoadError};
pub use flow::{Flow, RESPOND, site_name};
pub use grant::{Grants, Listed};
pub use live::{Live, OWN_ID};
pub use log::Taken;
pub use memory::{Pick, PickKind, Unbound};
pub use program::{STANDARD_RUN, is_standard, standard as standard_run};
pub use run::{
    Answer, DecisionSite, Next, Run, RunRecord, ScoreError, Scored, SiteValue, TracedSite,
};
