//! One argument's values: those that results have supplied, and those passed already.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::CallIndex;
use super::forms::{FormId, Forms};
use crate::plan::{Reading, Slot};
use crate::value::Found;

type ValueId = u32;

/// Where a value stands, in reading order within one reader: the newest result first.
type Place = (Reverse<usize>, usize, ValueId);

/// A value on offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Picked {
    reader: usize,
    place: Place,
}

/// What to tell a slot when a form is mentioned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    /// The slot.
    pub(super) slot: usize,
    reader: usize,
    place: Place,
}

#[derive(Clone, Debug)]
struct Known {
    text: String,
    /// The calls that passed it.
    passed: Vec<CallIndex>,
    /// Of a list: its texts.
    list: Vec<(String, FormId)>,
}

#[derive(Clone, Debug, Default)]
struct ReaderMemory {
    /// Each value's first place in reading order.
    first: HashMap<ValueId, Place>,
    /// The first places of values not passed so far.
    fresh: BTreeSet<Place>,
    /// Those of them that the customer mentioned there, by the value or by its siblings.
    mentioned: BTreeSet<Place>,
    /// All values at each place that was read: one per result.
    lists: HashMap<usize, List>,
}

/// All values that one reader found in one result.
#[derive(Clone, Debug)]
struct List {
    values: Vec<ValueId>,
    /// What is known of the records that were read, once it was asked for.
    read: Option<Records>,
}

/// The records of a list that have been read: which keys are in how many of them.
///
/// Values that were looked at are not looked at again, so that a long list whose records are
/// read one after the other costs no more for the last than for the first.
#[derive(Clone, Debug, Default)]
struct Records {
    listed: HashSet<ValueId>,
    /// How many of the values passed have been looked at.
    looked: usize,
    /// Those of them whose record may still come, or another one.
    waiting: Vec<ValueId>,
    /// The result that each value's call returned.
    of: HashMap<ValueId, usize>,
    counts: HashMap<FormId, usize>,
    /// Those of the keys that came from the customer.
    given: Vec<FormId>,
    /// How many of the customer's keys have been looked for.
    given_looked: usize,
}

/// One argument's values.
#[derive(Clone, Debug)]
pub(super) struct SlotMemory {
    is_list: bool,
    ids: HashMap<String, ValueId>,
    values: Vec<Known>,
    readers: Vec<ReaderMemory>,
    any_mentioned: bool,
    /// The values that were passed, in order.
    passed: Vec<ValueId>,
}

impl SlotMemory {
    pub(super) fn new(slot: &Slot) -> Self {
        Self {
            is_list: slot.is_list,
            ids: HashMap::new(),
            values: Vec::new(),
            readers: vec![ReaderMemory::default(); slot.readers.len()],
            any_mentioned: false,
            passed: Vec::new(),
        }
    }

    fn id(&mut self, text: String) -> ValueId {
        if let Some(id) = self.ids.get(&text) {
            return *id;
        }
        let id =
            ValueId::try_from(self.values.len()).expect("memory ends before four billion values");
        self.ids.insert(text.clone(), id);
        self.values.push(Known {
            text,
            passed: Vec::new(),
            list: Vec::new(),
        });
        id
    }

    fn is_fresh(&self, id: ValueId) -> bool {
        self.values[id as usize].passed.is_empty()
    }

    /// Takes in what one reader found in a result. `watch` is told which forms to wait for.
    pub(super) fn read(
        &mut self,
        reading: Reading,
        output: usize,
        found: &[Found<'_>],
        forms: &mut Forms,
        mut watch: impl FnMut(FormId, Watch),
    ) {
        let Reading { slot, reader } = reading;
        if self.is_list {
            if found.is_empty() {
                return;
            }
            let list: Value = found.iter().map(|found| Value::from(found.text)).collect();
            let id = self.id(list.to_string());
            let known = &mut self.values[id as usize];
            if known.list.is_empty() {
                known.list = found
                    .iter()
                    .map(|found| (found.text.to_owned(), forms.keep(found.text)))
                    .collect();
            }
            self.put(reader, (Reverse(output), 0, id));
            return;
        }
        let mut values = Vec::with_capacity(found.len());
        for (at, found) in found.iter().enumerate() {
            let id = self.id(found.text.to_owned());
            values.push(id);
            let place = (Reverse(output), at, id);
            self.put(reader, place);
            let siblings = found
                .siblings
                .iter()
                .filter(|text| text.chars().nth(3).is_some());
            let forms_there: Vec<FormId> = std::iter::once(&found.text)
                .chain(siblings)
                .map(|text| forms.keep(text))
                .collect();
            let here = Watch {
                slot,
                reader,
                place,
            };
            if forms_there.iter().any(|form| forms.is_mentioned(*form)) {
                self.mention(here);
            } else {
                for form in forms_there {
                    watch(form, here);
                }
            }
        }
        if !values.is_empty() {
            self.readers[reader]
                .lists
                .insert(output, List { values, read: None });
        }
    }

    /// Puts a value at a place, which is before all places where it stood in older results.
    fn put(&mut self, reader: usize, place: Place) {
        let is_fresh = self.is_fresh(place.2);
        let memory = &mut self.readers[reader];
        match memory.first.get(&place.2) {
            // Again in one result: the first time counts.
            Some(known) if known.0 == place.0 => return,
            Some(known) => {
                memory.fresh.remove(known);
                memory.mentioned.remove(known);
            }
            None => {}
        }
        memory.first.insert(place.2, place);
        if is_fresh {
            memory.fresh.insert(place);
        }
    }

    /// The customer mentioned what stands at a place.
    pub(super) fn mention(&mut self, Watch { reader, place, .. }: Watch) {
        self.any_mentioned = true;
        let is_fresh = self.is_fresh(place.2);
        let memory = &mut self.readers[reader];
        if is_fresh && memory.first.get(&place.2) == Some(&place) {
            memory.mentioned.insert(place);
        }
    }

    /// A call passes a value.
    pub(super) fn pass(&mut self, text: String, call: CallIndex) {
        let id = self.id(text);
        self.values[id as usize].passed.push(call);
        self.passed.push(id);
        for memory in &mut self.readers {
            if let Some(place) = memory.first.get(&id) {
                memory.fresh.remove(place);
                memory.mentioned.remove(place);
            }
        }
    }

    /// Whether the customer mentioned anything that could have been picked, then or now.
    pub(super) fn any_mentioned(&self) -> bool {
        self.any_mentioned
    }

    /// The first value in reading order that was not passed.
    pub(super) fn first(&self, ranks: Option<&[usize]>) -> Option<Picked> {
        let firsts = self
            .readers
            .iter()
            .enumerate()
            .filter_map(|(reader, memory)| {
                memory.fresh.first().map(|place| Picked {
                    reader,
                    place: *place,
                })
            });
        firsts.min_by_key(|picked| reading_order(*picked, ranks))
    }

    /// The first in reading order of the values not passed that was mentioned at its first
    /// place.
    pub(super) fn first_mentioned(&self, ranks: Option<&[usize]>) -> Option<Picked> {
        let mut ahead: Vec<_> = self
            .readers
            .iter()
            .map(|memory| memory.mentioned.iter().peekable())
            .collect();
        loop {
            let (reader, picked) = ahead
                .iter_mut()
                .enumerate()
                .filter_map(|(reader, places)| {
                    let place = **places.peek()?;
                    Some((reader, Picked { reader, place }))
                })
                .min_by_key(|(_, picked)| reading_order(*picked, ranks))?;
            if self.is_first_place(picked, ranks) {
                return Some(picked);
            }
            ahead[reader].next();
        }
    }

    /// Whether no other reader comes upon the value earlier.
    fn is_first_place(&self, picked: Picked, ranks: Option<&[usize]>) -> bool {
        let mine = reading_order(picked, ranks);
        self.readers.iter().enumerate().all(|(reader, memory)| {
            memory.first.get(&picked.place.2).is_none_or(|place| {
                reading_order(
                    Picked {
                        reader,
                        place: *place,
                    },
                    ranks,
                ) >= mine
            })
        })
    }

    /// The text of a value.
    pub(super) fn text(&self, picked: Picked) -> &str {
        &self.values[picked.place.2 as usize].text
    }

    /// The texts of a list.
    pub(super) fn list(&self, picked: Picked) -> &[(String, FormId)] {
        &self.values[picked.place.2 as usize].list
    }

    /// Whether the record that the customer described is among those already read of the
    /// list that `picked` stands in: a key of theirs is in some of those records and not
    /// in others.
    pub(super) fn is_described<'a>(
        &mut self,
        picked: Picked,
        returned: impl Fn(CallIndex) -> Option<(usize, &'a [FormId])>,
        forms: &Forms,
        from_customer: &[FormId],
    ) -> bool {
        let Reverse(output) = picked.place.0;
        let (values, passed) = (&self.values, &self.passed);
        let Some(list) = self.readers[picked.reader].lists.get_mut(&output) else {
            return false;
        };
        let List {
            values: listed,
            read,
        } = list;
        let mut to_look = Vec::new();
        let read = read.get_or_insert_with(|| {
            to_look.clone_from(listed);
            let listed = listed.iter().copied().collect();
            Records {
                listed,
                looked: passed.len(),
                ..Records::default()
            }
        });
        to_look.append(&mut read.waiting);
        let since = passed[read.looked..]
            .iter()
            .filter(|id| read.listed.contains(id));
        to_look.extend(since);
        read.looked = passed.len();
        to_look.sort_unstable();
        to_look.dedup();
        for id in to_look {
            let calls = &values[id as usize].passed;
            let first = calls.iter().position(|call| returned(*call).is_some());
            if first != Some(0) && !calls.is_empty() {
                read.waiting.push(id);
            }
            let record = first.and_then(|first| returned(calls[first]));
            let Some((output, keys)) = record else {
                continue;
            };
            match read.of.insert(id, output) {
                Some(same) if same == output => continue,
                Some(_) => {
                    // An earlier call of the value returned after a later one: count anew.
                    list.read = None;
                    return self.is_described(picked, returned, forms, from_customer);
                }
                None => {}
            }
            for key in keys {
                let count = read.counts.entry(*key).or_default();
                *count += 1;
                if *count == 1 && forms.is_from_customer(*key) {
                    read.given.push(*key);
                }
            }
        }
        for key in &from_customer[read.given_looked..] {
            if read.counts.contains_key(key) && !read.given.contains(key) {
                read.given.push(*key);
            }
        }
        read.given_looked = from_customer.len();
        read.given
            .iter()
            .any(|key| read.counts[key] < read.of.len())
    }
}

/// The order in which values are come upon: by rank of their readers if the site has ranks,
/// otherwise the newest result first.
fn reading_order(picked: Picked, ranks: Option<&[usize]>) -> (usize, Reverse<usize>, usize, usize) {
    let Picked {
        reader,
        place: (output, at, _),
    } = picked;
    match ranks {
        Some(ranks) => (ranks[reader], output, reader, at),
        None => (0, output, reader, at),
    }
}
