//! Lists of records in what tools returned.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::naming::Words;

/// A value shorter than this names no record: too many texts hold it by chance.
const NAMING_LENGTH: usize = 4;

/// The lists of records that a session's results have held, as far as a later check may need
/// them: of each value, the latest list with a record that has it.
#[derive(Clone, Debug, Default)]
pub struct Listings {
    latest: HashMap<String, Place>,
}

/// Where a list stands: in which result, and as which of its lists.
#[derive(Clone, Debug)]
struct Place {
    result: Arc<Value>,
    index: usize,
}

impl Listings {
    /// Takes in a call's result: whether it is an error, and its text. Errors and what is not
    /// JSON hold no records.
    pub fn returned(&mut self, error: bool, content: &str) {
        if error {
            return;
        }
        let Ok(result) = serde_json::from_str(content) else {
            return;
        };
        let result = Arc::new(result);
        for (index, records) in lists(&result).into_iter().enumerate() {
            let fields = records.into_iter().flat_map(fields);
            for field in fields.filter(|field| is_checked(field)) {
                // A later list takes an earlier one's place, which is dropped with its last value.
                self.latest.insert(
                    field,
                    Place {
                        result: Arc::clone(&result),
                        index,
                    },
                );
            }
        }
    }

    /// Asks `question` about the latest list with a record that has `value`; nothing when there
    /// is none, or when `value` is not one to check.
    pub(super) fn with_latest_list<T>(
        &self,
        value: &str,
        question: impl FnOnce(&List) -> T,
    ) -> Option<T> {
        let place = self.latest.get(value)?;
        let records = lists(&place.result).into_iter().nth(place.index)?;
        Some(question(&List::of(records)))
    }
}

/// A list of records.
#[derive(Debug)]
pub(super) struct List {
    pub(super) records: Vec<Record>,
}

/// One thing of several of its kind.
#[derive(Debug)]
pub(super) struct Record {
    /// Its own texts and numbers.
    pub(super) fields: Vec<String>,
    /// All its texts and numbers, those of what is inside it among them.
    values: Vec<String>,
}

impl List {
    fn of(records: Vec<&Value>) -> Self {
        let record = |value| Record {
            fields: fields(value),
            values: scalars(value),
        };
        Self {
            records: records.into_iter().map(record).collect(),
        }
    }

    /// The records that a text names, by their place: those of which it says a value that no
    /// other record of the list has.
    pub(super) fn named_in(&self, words: &Words) -> Vec<usize> {
        let mut owners: HashMap<&str, Option<usize>> = HashMap::new();
        for (place, record) in self.records.iter().enumerate() {
            for value in &record.values {
                let owner = owners.entry(value).or_insert(Some(place));
                *owner = owner.filter(|&owner| owner == place);
            }
        }
        let is_naming = |place: usize, value: &String| {
            value.chars().count() >= NAMING_LENGTH
                && owners.get(value.as_str()) == Some(&Some(place))
                && words.say(value)
        };
        let mut named = Vec::new();
        for (place, record) in self.records.iter().enumerate() {
            if record.values.iter().any(|value| is_naming(place, value)) {
                named.push(place);
            }
        }
        named
    }
}

/// Only values with a digit are checked: ids, numbers and dates, not a reason or a city.
fn is_checked(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_digit())
}

/// The lists of records in a value: each before those inside it.
fn lists(value: &Value) -> Vec<Vec<&Value>> {
    let mut found = Vec::new();
    collect_lists(value, &mut found);
    found
}

fn collect_lists<'a>(value: &'a Value, found: &mut Vec<Vec<&'a Value>>) {
    match value {
        Value::Array(elements) => {
            if elements.len() >= 2 {
                found.push(
                    elements
                        .iter()
                        .filter(|element| is_record(element))
                        .collect(),
                );
            }
            for element in elements {
                collect_lists(element, found);
            }
        }
        Value::Object(members) => {
            // Records that are kept by id.
            if members.len() >= 2 && members.values().all(Value::is_object) {
                found.push(members.values().collect());
            }
            for member in members.values() {
                collect_lists(member, found);
            }
        }
        _ => {}
    }
}

fn is_record(value: &Value) -> bool {
    matches!(
        value,
        Value::Object(_) | Value::String(_) | Value::Number(_)
    )
}

/// A record's own texts and numbers: those of its members, or itself when it is one.
fn fields(record: &Value) -> Vec<String> {
    match record {
        Value::Object(members) => members.values().filter_map(scalar).collect(),
        _ => scalar(record).into_iter().collect(),
    }
}

/// All texts and numbers in a value, depth first, an object's members by name.
pub(super) fn scalars(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_scalars(value, &mut found);
    found
}

fn collect_scalars(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(elements) => elements
            .iter()
            .for_each(|inner| collect_scalars(inner, found)),
        Value::Object(members) => members
            .values()
            .for_each(|inner| collect_scalars(inner, found)),
        _ => found.extend(scalar(value)),
    }
}

/// A text or number, as it is compared: trimmed, in lower case, a whole number without a
/// fraction.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_lowercase()),
        Value::Number(number) => {
            let text = number.to_string();
            Some(text.strip_suffix(".0").unwrap_or(&text).to_owned())
        }
        _ => None,
    }
}
