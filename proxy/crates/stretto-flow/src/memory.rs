//! What a session has shown so far, kept so that a lookup's arguments are found quickly.
//!
//! Everything is taken in once, when it happens. Picking an argument then looks at the
//! values that are left, not at the session: it costs about as much after a thousand
//! calls as after ten.

mod forms;
mod slot;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use self::forms::{FormId, Forms};
use self::slot::{SlotMemory, Watch};
use crate::plan::{Plan, Supply};
use crate::value;

/// Arguments for a lookup, and what is known about them.
#[derive(Clone, Debug, PartialEq)]
pub struct Pick {
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// How they were picked, which says how far they can be trusted.
    pub kind: PickKind,
}

/// How a lookup's arguments were picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickKind {
    /// The customer mentioned every value.
    Mentioned,
    /// They did not mention all, but another value that could have been picked.
    NamedOther,
    /// They named none, but the record they described has been read already.
    Described,
    /// None of that: some value was not mentioned.
    Unmentioned,
    /// Training never called the lookup; arguments were found by their names.
    ByName,
}

/// Why no arguments could be found for a lookup.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unbound {
    /// It takes no arguments, and was made in this session.
    #[error("already looked up")]
    Already,
    /// Nothing in results ever supplied the argument.
    #[error("no source for `{0}` (the LLM supplies it)")]
    NoSource(String),
    /// Every value that results supply was passed already.
    #[error("nothing left to pass as `{0}`")]
    NothingLeft(String),
    /// The argument took other values than text.
    #[error("`{0}` never took a string in training")]
    NeverText(String),
    /// Nothing in results ever supplied the list.
    #[error("no source for the list `{0}` (the LLM supplies it)")]
    NoListSource(String),
    /// Every list that results supply was passed already.
    #[error("no list left to pass as `{0}`")]
    NoListLeft(String),
    /// No result has anything of the argument's name.
    #[error("no `{0}` in earlier results to pass")]
    NoneByName(String),
    /// Training never called the lookup.
    #[error("never called in training")]
    NeverCalled,
    /// Training never called the lookup, and nothing says what it takes.
    #[error("never called in training, and its arguments are unknown")]
    Unknown,
}

/// A call that was made.
pub(crate) type CallIndex = usize;

/// A result that did not fail.
#[derive(Clone, Debug)]
struct Output {
    /// Its key-like forms, each once, in order.
    keys: Vec<FormId>,
}

#[derive(Clone, Debug)]
struct Call {
    output: Option<usize>,
    /// Key-like forms it passed that only results of its own turn had had by then.
    undecided: Vec<FormId>,
}

/// What one session has shown so far.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    plan: Arc<Plan>,
    forms: Forms,
    /// Forms that came from the customer, in the order in which that was noticed.
    from_customer: Vec<FormId>,
    watches: HashMap<FormId, Vec<Watch>>,
    slots: Vec<SlotMemory>,
    calls: Vec<Call>,
    called: HashMap<String, bool>,
    outputs: Vec<Output>,
    last_output_of: Option<String>,
}

impl Memory {
    /// A session in which nothing has happened.
    pub(crate) fn new(plan: Arc<Plan>) -> Self {
        let slots = plan.slots.iter().map(SlotMemory::new).collect();
        let called = plan
            .lookups
            .keys()
            .map(|lookup| (lookup.clone(), false))
            .collect();
        Self {
            plan,
            forms: Forms::default(),
            from_customer: Vec::new(),
            watches: HashMap::new(),
            slots,
            calls: Vec::new(),
            called,
            outputs: Vec::new(),
            last_output_of: None,
        }
    }

    /// How many results that did not fail there have been.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs.len()
    }

    /// The customer says something.
    pub(crate) fn hear(&mut self, text: &str) {
        for form in self.forms.hear(text) {
            if self.forms.is_key_like(form) {
                self.from_customer.push(form);
            }
            for watch in self.watches.remove(&form).unwrap_or_default() {
                self.slots[watch.slot].mention(watch);
            }
        }
    }

    /// A call is made, in a turn that began after `turn_start` results.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value, turn_start: usize) -> CallIndex {
        let index = self.calls.len();
        if let Some(called) = self.called.get_mut(tool) {
            *called = true;
        }
        if let Value::Object(arguments) = arguments {
            let slots = self.plan.slots.iter().zip(&mut self.slots);
            for (slot, memory) in slots.filter(|(slot, _)| slot.lookup == tool) {
                if let Some(value) = arguments.get(&slot.arg) {
                    memory.pass(value::text(value), index);
                }
            }
        }
        let mut undecided = Vec::new();
        value::forms(arguments, &mut |form| {
            if !value::is_key_like(&form) {
                return;
            }
            let form = self.forms.keep_form(form);
            match self.forms.first_output(form) {
                None => {
                    if self.forms.give(form) {
                        self.from_customer.push(form);
                    }
                }
                Some(output) if output >= turn_start => undecided.push(form),
                Some(_) => {}
            }
        });
        self.calls.push(Call {
            output: None,
            undecided,
        });
        index
    }

    /// A call returns without failing.
    pub(crate) fn output(&mut self, call: Option<CallIndex>, tool: &str, value: &Value) {
        let output = self.outputs.len();
        let mut keys = Vec::new();
        value::forms(value, &mut |form| {
            if value::is_key_like(&form) {
                keys.push(self.forms.keep_form(form));
            }
        });
        keys.sort_unstable();
        keys.dedup();
        for form in &keys {
            self.forms.see(*form, output);
        }
        self.outputs.push(Output { keys });
        self.last_output_of = Some(tool.to_owned());
        if let Some(call) = call {
            self.calls[call].output.get_or_insert(output);
        }
        let plan = Arc::clone(&self.plan);
        for reading in plan.readings(tool) {
            let found = plan.slots[reading.slot].readers[reading.reader].read(value);
            let watches = &mut self.watches;
            self.slots[reading.slot].read(
                reading,
                output,
                &found,
                &mut self.forms,
                |form, watch| {
                    watches.entry(form).or_default().push(watch);
                },
            );
        }
    }

    /// A call has returned, failed or not: what it passed now stands at its turn, not at
    /// the end of what happened.
    pub(crate) fn returned(&mut self, call: CallIndex) {
        for form in std::mem::take(&mut self.calls[call].undecided) {
            if self.forms.give(form) {
                self.from_customer.push(form);
            }
        }
    }

    /// Picks the arguments of `lookup`.
    pub(crate) fn pick(&mut self, lookup: &str) -> Result<Pick, Unbound> {
        let plan = Arc::clone(&self.plan);
        let Some(planned) = plan.lookups.get(lookup) else {
            return Err(Unbound::NeverCalled);
        };
        let mut arguments = Map::new();
        let mut seen = Seen {
            all_mentioned: true,
            named_other: false,
            described: false,
        };
        if planned.required.is_empty() && self.called.get(lookup).copied().unwrap_or(false) {
            return Err(Unbound::Already);
        }
        for (arg, supply) in &planned.required {
            let value = match supply {
                Supply::Constant(value) => value.clone(),
                Supply::Nowhere => return Err(Unbound::NeverText(arg.clone())),
                Supply::Slot(slot) if plan.slots[*slot].is_list => {
                    self.pick_list(*slot, &mut seen)?
                }
                Supply::Slot(slot) => self.pick_text(*slot, planned.is_by_name, &mut seen)?,
            };
            arguments.insert(arg.clone(), value);
        }
        for (arg, value) in &planned.constants {
            arguments.insert(arg.clone(), value.clone());
        }
        let kind = match seen {
            _ if planned.is_by_name => PickKind::ByName,
            Seen {
                all_mentioned: true,
                ..
            } => PickKind::Mentioned,
            Seen {
                named_other: true, ..
            } => PickKind::NamedOther,
            Seen {
                described: true, ..
            } => PickKind::Described,
            _ => PickKind::Unmentioned,
        };
        Ok(Pick { arguments, kind })
    }

    fn pick_list(&mut self, slot: usize, seen: &mut Seen) -> Result<Value, Unbound> {
        let arg = &self.plan.slots[slot].arg;
        if self.plan.slots[slot].readers.is_empty() {
            return Err(Unbound::NoListSource(arg.clone()));
        }
        let memory = &self.slots[slot];
        let Some(first) = memory.first(None) else {
            return Err(Unbound::NoListLeft(arg.clone()));
        };
        let list = memory.list(first);
        if !list.iter().all(|(_, form)| self.forms.is_mentioned(*form)) {
            seen.all_mentioned = false;
        }
        Ok(list
            .iter()
            .map(|(text, _)| Value::from(text.as_str()))
            .collect())
    }

    fn pick_text(
        &mut self,
        slot: usize,
        is_by_name: bool,
        seen: &mut Seen,
    ) -> Result<Value, Unbound> {
        let planned = &self.plan.slots[slot];
        let ranks = planned.ranks(self.last_output_of.as_deref());
        let memory = &mut self.slots[slot];
        let named = memory.first_mentioned(ranks);
        let Some(picked) = named.or_else(|| memory.first(ranks)) else {
            let arg = planned.arg.clone();
            return Err(match (is_by_name, planned.readers.is_empty()) {
                (true, _) => Unbound::NoneByName(arg),
                (false, true) => Unbound::NoSource(arg),
                (false, false) => Unbound::NothingLeft(arg),
            });
        };
        if named.is_none() {
            seen.all_mentioned = false;
            seen.named_other |= memory.any_mentioned();
            let calls = &self.calls;
            let outputs = &self.outputs;
            let returned = |call: CallIndex| {
                let output = calls[call].output?;
                Some((output, outputs[output].keys.as_slice()))
            };
            seen.described |=
                memory.is_described(picked, returned, &self.forms, &self.from_customer);
        }
        Ok(Value::from(memory.text(picked)))
    }
}

/// What a pick has shown about itself so far.
struct Seen {
    all_mentioned: bool,
    named_other: bool,
    described: bool,
}

#[cfg(test)]
mod tests;
