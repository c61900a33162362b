//! Rules of a domain's written policy, as checks of an agent's calls before they reach the
//! server.
//!
//! [`Facts`] is what a session has shown so far: who was identified, which records were read,
//! what was changed and what the customer last said. [`Guards`] are the rules of a domain; they
//! check a [`ToolCall`] against the facts and give a [`Verdict`] each. A call is refused when a
//! rule that is *enforced* fails it. A rule that lacks the facts to decide says so, and refuses
//! nothing.
//!
//! ```
//! use serde_json::json;
//! use stretto_guards::{Facts, Guards, refusal_text};
//! use stretto_trace::ToolCall;
//!
//! let guards = Guards::for_domain("retail")?;
//! let mut facts = Facts::default();
//!
//! // Whatever happens is fed in order, each call and its result among it.
//! let call = |id: &str, name: &str, arguments| {
//!     ToolCall { id: id.to_owned(), name: name.to_owned(), arguments }
//! };
//! facts.user_said("Please cancel #W7, I found it cheaper. I am ann@example.com.");
//! facts.called(&call("1", "find_user_id_by_email", json!({"email": "ann@example.com"})));
//! facts.returned("1", "find_user_id_by_email", false, "ann_1");
//! facts.called(&call("2", "get_order_details", json!({"order_id": "#W7"})));
//! let order = r##"{"order_id": "#W7", "user_id": "ann_1", "status": "pending"}"##;
//! facts.returned("2", "get_order_details", false, order);
//!
//! // A call is checked before it is fed.
//! let arguments = json!({"order_id": "#W7", "reason": "found it cheaper"});
//! let cancel = call("3", "cancel_pending_order", arguments);
//! let checked = guards.check(&facts, &cancel);
//!
//! assert_eq!(checked.refused_by().collect::<Vec<_>>(), ["retail.cancel_reason"]);
//! assert_eq!(checked.word_list(), Some(true));
//! assert_eq!(
//!     refusal_text(&cancel.name, &checked.refusal().unwrap()),
//!     "Refused by the policy check, so cancel_pending_order was not run and nothing changed: \
//!      'found it cheaper' is not an accepted reason (policy check retail.cancel_reason)."
//! );
//! # Ok::<(), stretto_guards::UnknownDomain>(())
//! ```
//!
//! The same code checks recorded sessions, see [`replay()`]. Nothing here reads a file, a clock or the network.

mod airline;
pub mod cases;
mod checked;
mod clock;
pub mod confirm;
mod exchange;
mod facts;
mod json;
mod proposal;
mod replay;
mod retail;
mod rule;
#[cfg(test)]
mod testing;
pub mod word_list;

use stretto_trace::ToolCall;

pub use checked::{Checked, Explained, ExplainedVerdict, Finding, REFUSAL_START, refusal_text};
pub use exchange::Exchange;
pub use facts::Facts;
pub use proposal::{Flag, Listings};
pub use replay::{Step, replay, replay_episode};
pub use rule::{Rule, Verdict};

use rule::{Objection, Ruling, require};

/// The domains that have guards, by name.
const DOMAINS: [(&str, &[Rule]); 2] = [("airline", airline::RULES), ("retail", retail::RULES)];

/// The rules of one domain.
#[derive(Clone, Copy, Debug)]
pub struct Guards {
    domain: &'static str,
    rules: &'static [Rule],
}

impl Guards {
    /// The guards of `domain`. Names are compared exactly.
    ///
    /// # Errors
    ///
    /// When the domain has none.
    pub fn for_domain(domain: &str) -> Result<Self, UnknownDomain> {
        let mut domains = DOMAINS.into_iter();
        let found = domains.find(|(name, _)| *name == domain);
        let (domain, rules) = found.ok_or_else(|| UnknownDomain {
            domain: domain.to_owned(),
        })?;
        Ok(Self { domain, rules })
    }

    /// The names of the domains that have guards, sorted.
    pub fn domains() -> impl Iterator<Item = &'static str> {
        DOMAINS.into_iter().map(|(name, _)| name)
    }

    /// The domain's name.
    pub fn domain(&self) -> &'static str {
        self.domain
    }

    /// The rules, in the order in which they check and a refusal names them.
    pub fn rules(&self) -> &'static [Rule] {
        self.rules
    }

    /// What the rules say about a call, given what the session had shown before it.
    ///
    /// The time it takes depends on the call and on the records it names, not on how long the
    /// session is.
    pub fn check(&self, facts: &Facts, call: &ToolCall) -> Checked {
        let applying = self.rules.iter().filter(|rule| rule.applies_to(&call.name));
        let findings = applying.map(|rule| {
            let verdict = Verdict::from((rule.check)(facts, call));
            Finding { rule, verdict }
        });
        Checked {
            findings: findings.collect(),
        }
    }
}

/// Asked for the guards of a domain that has none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the domain {domain:?} has no policy guards; airline and retail have")]
pub struct UnknownDomain {
    /// The domain that was asked for.
    pub domain: String,
}

/// The rule that both domains share: the customer's last message confirms, by the word list.
fn confirmed(facts: &Facts, _: &ToolCall) -> Ruling {
    let Some(reply) = facts.exchange().reply() else {
        return Err(Objection::fails("the customer has said nothing yet"));
    };
    require(word_list::confirms(reply), || {
        "the last message holds no confirming word".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domains_with_guards_are_found_by_their_exact_names() {
        for domain in Guards::domains() {
            let guards = Guards::for_domain(domain).unwrap();
            assert_eq!(guards.domain(), domain);
            for rule in guards.rules() {
                assert!(rule.id.starts_with(&format!("{domain}.")), "{}", rule.id);
                assert!(!rule.policy.is_empty());
            }
        }
        assert_eq!(Guards::domains().collect::<Vec<_>>(), ["airline", "retail"]);
    }

    #[test]
    fn other_domains_have_none() {
        for domain in ["Retail", "retail ", "telecom", ""] {
            let error = Guards::for_domain(domain).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("the domain {domain:?} has no policy guards; airline and retail have")
            );
        }
    }
}
