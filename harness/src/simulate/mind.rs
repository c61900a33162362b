//! What goes on in the heads of a customer and an agent while they talk: what a model would have to
//! guess from their words, and what its answers are right and wrong about.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::agent::{Answer, Desk, Intent, Speaker, serve};
use super::customer::Customer;
use super::shop::{self, Shop};

/// The minds of one session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mind {
    /// What the agent does if nobody looks anything up for it.
    plan: Vec<Step>,
    /// How much of that is done, up to and with the call under way.
    done: usize,
    /// Reads whose results were given to the agent, so that it need not make them.
    given: BTreeSet<(String, String)>,
    intent: Intent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// A call, with its arguments as text.
    Call(String, String),
    /// Words of the agent's or the customer's.
    Words,
}

/// What a question may be about, as it is in truth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Truth {
    /// The agent's next step, if that is a read.
    pub(crate) next: Option<String>,
    /// About the write that the agent is about to make.
    pub(crate) intent: Intent,
}

impl Mind {
    /// The minds of the customer of a seed and of their agent.
    pub(crate) fn new(seed: u64) -> anyhow::Result<Self> {
        let (shop, _) = Shop::new(seed);
        let mut rehearsal = Rehearsal {
            shop: shop.clone(),
            plan: Vec::new(),
        };
        let mut followed = shop;
        serve(&Customer::new(seed), &mut followed, &mut rehearsal)?;
        Ok(Self {
            plan: rehearsal.plan,
            ..Self::default()
        })
    }

    /// The agent is about to make this call.
    pub(crate) fn calls(&mut self, tool: &str, arguments: &Value) {
        let call = Step::Call(tool.to_owned(), arguments.to_string());
        let ahead = self.plan.iter().skip(self.done);
        if let Some(place) = ahead.clone().position(|step| *step == call) {
            self.done += place + 1;
        }
        if shop::WRITES.contains(&tool) {
            // What was read of an order holds no longer.
            let order = json!({"order_id": arguments["order_id"]}).to_string();
            self.given.remove(&(shop::ORDER.to_owned(), order));
        }
    }

    pub(crate) fn intends(&mut self, intent: Intent) {
        self.intent = intent;
    }

    /// What is true when a question about this state is asked. The state tells what was looked up
    /// behind the call under way.
    pub(crate) fn truth(&mut self, state: &Value) -> Truth {
        let results = state["latest_results"].as_array();
        let newest_first = results.into_iter().flatten().rev();
        let is_read = |result: &&Value| {
            let tool = result["tool_call"].as_str().unwrap_or_default();
            !shop::WRITES.contains(&tool)
        };
        for result in newest_first.take_while(is_read) {
            let tool = result["tool_call"].as_str().unwrap_or_default();
            self.given
                .insert((tool.to_owned(), result["arguments"].to_string()));
        }
        let is_new = |step: &&Step| match step {
            Step::Call(tool, arguments) => !self.given.contains(&(tool.clone(), arguments.clone())),
            Step::Words => true,
        };
        let next = match self.plan.iter().skip(self.done).find(is_new) {
            Some(Step::Call(tool, _)) if !shop::WRITES.contains(&tool.as_str()) => {
                Some(tool.clone())
            }
            _ => None,
        };
        Truth {
            next,
            intent: self.intent,
        }
    }
}

/// A desk in a shop of its own, where nothing is looked up and everything is noted.
struct Rehearsal {
    shop: Shop,
    plan: Vec<Step>,
}

impl Desk for Rehearsal {
    fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Answer> {
        self.plan
            .push(Step::Call(tool.to_owned(), arguments.to_string()));
        let called = self.shop.call(tool, arguments);
        let failed = called.is_err();
        let (Ok(text) | Err(text)) = called;
        Ok(Answer {
            text,
            failed,
            given: Vec::new(),
        })
    }

    fn say(&mut self, _: Speaker, _: &str) -> anyhow::Result<()> {
        self.plan.push(Step::Words);
        Ok(())
    }

    fn intend(&mut self, _: Intent) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The state of a question after these calls.
    fn after(calls: &[(&str, Value)]) -> Value {
        let results: Vec<Value> = calls
            .iter()
            .map(|(tool, arguments)| json!({"tool_call": tool, "arguments": arguments}))
            .collect();
        json!({ "latest_results": results })
    }

    fn mind(plan: &[(&str, Value)]) -> Mind {
        let step = |(tool, arguments): &(&str, Value)| match *tool {
            "" => Step::Words,
            tool => Step::Call(tool.to_owned(), arguments.to_string()),
        };
        Mind {
            plan: plan.iter().map(step).collect(),
            ..Mind::default()
        }
    }

    #[test]
    fn the_next_step_is_the_first_of_the_plan_that_was_not_given_already() {
        let user = (shop::USER, json!({"user_id": "u"}));
        let order = |id: &str| (shop::ORDER, json!({ "order_id": id }));
        let mut mind = mind(&[user.clone(), order("#1"), order("#2"), ("", json!(null))]);
        mind.calls(user.0, &user.1);
        let mut next = |calls: &[(&str, Value)]| mind.truth(&after(calls)).next;
        assert_eq!(
            next(std::slice::from_ref(&user)).as_deref(),
            Some(shop::ORDER)
        );
        assert_eq!(
            next(&[user.clone(), order("#2")]).as_deref(),
            Some(shop::ORDER)
        );
        assert_eq!(next(&[user, order("#2"), order("#1")]), None);
    }

    #[test]
    fn an_order_that_was_changed_is_read_again() {
        let order = (shop::ORDER, json!({"order_id": "#1"}));
        let write = (
            shop::CANCEL,
            json!({"order_id": "#1", "reason": "no longer needed"}),
        );
        let mut mind = mind(&[order.clone(), write.clone(), order.clone()]);
        mind.calls(order.0, &order.1);
        let next = mind.truth(&after(std::slice::from_ref(&order))).next;
        assert_eq!(next, None, "a write");
        mind.calls(write.0, &write.1);
        let next = mind.truth(&after(&[order, write])).next;
        assert_eq!(next.as_deref(), Some(shop::ORDER));
    }

    #[test]
    fn agents_plan_reads_and_words() {
        for seed in 0..20 {
            let mind = Mind::new(seed).unwrap();
            assert!(mind.plan.contains(&Step::Words), "seed {seed}");
            assert!(
                mind.plan
                    .iter()
                    .any(|step| matches!(step, Step::Call(tool, _) if tool == shop::USER)),
                "seed {seed}"
            );
        }
    }
}
