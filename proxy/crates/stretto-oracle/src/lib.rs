//! Typed questions about a state, answered with probabilities.
//!
//! A System-One model answers questions such as "did the customer agree to this very change?"
//! with the probability of a yes. [`Oracle`] is whoever answers: the service ([`Jev`], with the
//! feature `jev`), the answers that are on disk ([`Cache`]), or a stand-in that always says the
//! same.
//!
//! ```text
//!   Request ──► Key ──► Cache ──hit──► Response
//!                         │ miss           ▲
//!                         └──► Jev ────────┘ (and into the cache)
//! ```
//!
//! A [`Request`] has a [`Key`], the hash of its canonical JSON, and an answer is kept under it.
//! Two programs that ask the same question share the answer; one more blank in an instruction
//! is another question. The cache holds answers alone: neither the state nor the questions'
//! texts are in it, and nothing here logs them.
//!
//! ```
//! use serde_json::json;
//! use stretto_oracle::{Oracle, Question, Request};
//!
//! let request = Request {
//!     model: "jev-latest".to_owned(),
//!     state: json!("Payouts have failed since Monday!"),
//!     questions: [("urgent".to_owned(), Question::noul("Is the sender in a hurry?"))].into(),
//! };
//! assert_eq!(
//!     request.key().to_string(),
//!     "4fe20bad87100d73c29ade7d769acc51e57157ba1be4c1f652c8f2f67230d5c3"
//! );
//!
//! let answered = Oracle::Mock.answer_now(&request, &request.key())?.expect("a mock always answers");
//! assert_eq!(answered.response.noul("urgent"), Some(0.5));
//! # Ok::<(), stretto_oracle::AskError>(())
//! ```
//!
//! In a program that goes on while it waits, `Oracle::ask` is awaited on a task of its own. A
//! program that has nothing else to do uses [`offline`], which asks many questions at once.

mod answer;
mod budget;
mod cache;
#[cfg(feature = "jev")]
mod jev;
mod key;
mod mock;
pub mod offline;
mod oracle;
mod question;
mod settings;

pub use answer::{Answer, Response, Usage};
pub use budget::{Budget, Estimate};
pub use cache::{Cache, CacheError, Kept};
#[cfg(feature = "jev")]
pub use jev::{ClientError, Jev, Patience};
pub use key::{Key, NotAKey};
pub use oracle::{Answered, AskError, Oracle, Origin};
pub use question::{Criteria, Question, QuestionError, Request};
pub use settings::{ApiKey, Settings, SettingsError};
