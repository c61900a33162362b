//! What differs between a request and the recorded one that is most like it.

use serde_json::{Value, json};

use super::recording::{Asked, Key};

/// The most of a value that a message shows.
const SHOWN: usize = 200;

/// A request that is most like another, and the places where they differ.
#[derive(Debug)]
pub(super) struct Nearest<'a> {
    pub(super) asked: &'a Asked,
    pub(super) differs: Vec<Difference>,
}

/// A place where two requests differ.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    /// The member, such as `arguments.order_id`.
    pub(super) at: String,
    pub(super) recorded: Option<Value>,
    pub(super) asked: Option<Value>,
}

/// The recorded request of the same method that differs in the fewest places; of a call's, those
/// of the same tool come first.
pub(super) fn nearest<'a>(
    recorded: impl Iterator<Item = &'a Asked>,
    key: &Key,
) -> Option<Nearest<'a>> {
    let params = key.params();
    let candidates = recorded
        .filter(|asked| asked.key.method == key.method)
        .map(|asked| {
            let theirs = asked.key.params();
            let mut differs = Vec::new();
            compare("", Some(&theirs), Some(&params), &mut differs);
            (theirs["name"] != params["name"], Nearest { asked, differs })
        });
    candidates
        .min_by_key(|(is_another_tool, nearest)| (*is_another_tool, nearest.differs.len()))
        .map(|(_, nearest)| nearest)
}

fn compare(
    at: &str,
    recorded: Option<&Value>,
    asked: Option<&Value>,
    differs: &mut Vec<Difference>,
) {
    match (recorded, asked) {
        (Some(Value::Object(recorded)), Some(Value::Object(asked))) => {
            let names = recorded
                .keys()
                .chain(asked.keys().filter(|name| !recorded.contains_key(*name)));
            for name in names {
                let at = if at.is_empty() {
                    name.clone()
                } else {
                    format!("{at}.{name}")
                };
                compare(&at, recorded.get(name), asked.get(name), differs);
            }
        }
        (recorded, asked) if recorded == asked => {}
        (recorded, asked) => {
            differs.push(Difference {
                at: at.to_owned(),
                recorded: recorded.cloned(),
                asked: asked.cloned(),
            });
        }
    }
}

impl Difference {
    /// The difference in words.
    pub(super) fn words(&self) -> String {
        let show = |value: &Option<Value>| {
            value
                .as_ref()
                .map_or_else(|| "nothing".into(), |value| shorten(&value.to_string()))
        };
        format!(
            "{} (recorded {}, asked {})",
            self.at,
            show(&self.recorded),
            show(&self.asked)
        )
    }

    /// The difference as data.
    pub(super) fn data(&self) -> Value {
        json!({"at": self.at, "recorded": self.recorded, "asked": self.asked})
    }
}

/// A request in words: its method, a call's tool, what it is given.
pub(super) fn words(key: &Key) -> String {
    let params = key.params();
    let text = match (key.method.as_str(), params["name"].as_str()) {
        ("tools/call", Some(name)) => format!("{} {name} {}", key.method, params["arguments"]),
        _ => format!("{} {params}", key.method),
    };
    shorten(&text)
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    let start: String = text.chars().take(SHOWN).collect();
    format!("{start}…")
}
