//! Scripted worlds: a server described by data, so that the test of a fault is a file.
//!
//! [`Script::read`] turns the text of a file into a [`Script`], or says what is wrong with it and
//! where. Nothing is guessed: a member that is not known is an error, and so is one that could
//! have no effect, for a slip would make a test that tests nothing.
//!
//! What each member means stands in the package's README.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

use crate::cli::{Hint, Settings, WorldName};
use crate::worlds;
use answers::{Answers, Rule};
use faults::On;
use timeline::{Deed, Entry};

pub(crate) mod answers;
pub(crate) mod faults;
mod fill;
pub(crate) mod manners;
pub(crate) mod timeline;

use manners::Manners;

/// What is wrong with a script.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("reading the script {}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The text is not JSON, or has a member that a script does not have, or one of another type.
    #[error("the script{}: line {}, column {}: {}", name(.path.as_ref()), .wrong.line(), .wrong.column(), without_place(.wrong))]
    Malformed {
        /// The file, if it is one.
        path: Option<PathBuf>,
        /// What is wrong, and where.
        wrong: serde_json::Error,
    },
    /// The script says something that cannot be meant.
    #[error("the script{}: {place}{}{what}", name(.path.as_ref()), if .place.is_empty() { "" } else { ": " })]
    Meaningless {
        /// The file, if it is one.
        path: Option<PathBuf>,
        /// The member, such as `answers[2].args.order_id`.
        place: String,
        /// What is wrong with it.
        what: String,
    },
}

impl ScriptError {
    fn at(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Meaningless {
            path: None,
            place: place.into(),
            what: what.into(),
        }
    }

    pub(crate) fn in_file(self, file: &Path) -> Self {
        let file = Some(file.to_owned());
        match self {
            Self::Unreadable { .. } => self,
            Self::Malformed { wrong, .. } => Self::Malformed { path: file, wrong },
            Self::Meaningless { place, what, .. } => Self::Meaningless {
                path: file,
                place,
                what,
            },
        }
    }
}

fn name(path: Option<&PathBuf>) -> String {
    path.map(|path| format!(" {}", path.display()))
        .unwrap_or_default()
}

/// What is wrong, without the place that the library adds at the end.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) => what.to_owned(),
        None => text,
    }
}

/// A script as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    script: Option<u64>,
    server: WrittenServer,
    world: Option<String>,
    tools: Vec<Value>,
    page_size: usize,
    concurrent: Option<bool>,
    answers: Vec<answers::Written>,
    timeline: Vec<timeline::Written>,
    listings: BTreeMap<String, WrittenListing>,
    http: Manners,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenServer {
    name: Option<String>,
    version: Option<String>,
    instructions: Option<String>,
    protocol: Option<String>,
    capabilities: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenListing {
    hide: Vec<String>,
    hint: BTreeMap<String, Option<bool>>,
    tools: Vec<Value>,
}

/// A server, described by data.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) server: ServerSays,
    /// The built-in world that answers what no rule does.
    pub(crate) world: Option<WorldName>,
    /// The tools it lists to begin with.
    pub(crate) listing: Listing,
    /// The listings that the timeline may take later.
    pub(crate) listings: BTreeMap<String, Change>,
    /// How many tools a page holds; 0 for all.
    pub(crate) page_size: usize,
    /// Whether a call that waits lets others pass.
    pub(crate) concurrent: bool,
    pub(crate) answers: Answers,
    pub(crate) timeline: Vec<Entry>,
    pub(crate) http: Manners,
    /// Whether it says what the server is, and not only what goes wrong.
    pub(crate) describes_a_server: bool,
}

/// What a server says about itself; what is absent is as in a built-in world.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServerSays {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) instructions: Option<String>,
    pub(crate) protocol: Option<String>,
    pub(crate) capabilities: Option<Value>,
}

/// The tools that are listed, and those whose calls are refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Listing {
    pub(crate) tools: Vec<Value>,
    pub(crate) hidden: Vec<String>,
}

impl Script {
    /// Reads a script from a file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is no script that can be meant.
    pub(crate) fn load(path: &Path) -> Result<Self, ScriptError> {
        let text = fs::read_to_string(path).map_err(|source| ScriptError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Self::read(&text).map_err(|error| error.in_file(path))
    }

    /// Reads a script from its text.
    ///
    /// # Errors
    ///
    /// When the text is no script that can be meant.
    pub(crate) fn read(text: &str) -> Result<Self, ScriptError> {
        // A list would be read as the script's members, one after another.
        if text.trim_start().starts_with('[') {
            return Err(ScriptError::at("", "a script is an object"));
        }
        let written: Written = serde_json::from_str(text)
            .map_err(|wrong| ScriptError::Malformed { path: None, wrong })?;
        if let Some(version) = written.script
            && version != 1
        {
            return Err(ScriptError::at(
                "script",
                format!("this program reads scripts of version 1, and not {version}"),
            ));
        }
        let world = match written.world.as_deref() {
            None => None,
            Some(name) => Some(WorldName::of(name).ok_or_else(|| {
                ScriptError::at(
                    "world",
                    format!("it is `echo` or `retail`, and not `{name}`"),
                )
            })?),
        };
        if world.is_some() && !written.tools.is_empty() {
            return Err(ScriptError::at(
                "tools",
                "a built-in `world` has tools of its own; a listing may add others",
            ));
        }

        let describes_a_server = world.is_some()
            || !written.tools.is_empty()
            || written.server != WrittenServer::default()
            || written.page_size > 0
            || !written.listings.is_empty();
        let tools = match world {
            Some(world) => worlds::world(&Settings {
                world,
                ..Settings::default()
            })
            .tools(),
            None => tools(&written.tools, "tools")?,
        };
        let mut listings = BTreeMap::new();
        for (name, listing) in written.listings {
            let change = Change::of(listing, &format!("listings.{name}"))?;
            listings.insert(name, change);
        }

        let mut rules = Vec::new();
        for (at, written) in written.answers.into_iter().enumerate() {
            let place = format!("answers[{at}]");
            rules.push(Rule::of(written, &place).map_err(|what| ScriptError::at(place, what))?);
        }
        let mut timeline = Vec::new();
        for (at, written) in written.timeline.into_iter().enumerate() {
            let place = format!("timeline[{at}]");
            let entry =
                Entry::of(written, &place).map_err(|what| ScriptError::at(place.clone(), what))?;
            if let Deed::Relist(name) = &entry.deed
                && !listings.contains_key(name)
            {
                let known: Vec<&str> = listings.keys().map(String::as_str).collect();
                return Err(ScriptError::at(
                    place,
                    format!("relist: `listings` has {}, and not `{name}`", list(&known)),
                ));
            }
            timeline.push(entry);
        }
        labels_differ(&rules, &timeline)?;

        let relists = timeline
            .iter()
            .any(|entry| matches!(entry.deed, Deed::Relist(_)));
        let server = written.server;
        Ok(Self {
            server: ServerSays {
                name: server.name,
                version: server.version,
                instructions: server.instructions,
                protocol: server.protocol,
                capabilities: server
                    .capabilities
                    .or_else(|| relists.then(|| json!({"tools": {"listChanged": true}}))),
            },
            world,
            listing: Listing::of(tools),
            listings,
            page_size: written.page_size,
            concurrent: written.concurrent.unwrap_or(true),
            answers: Answers::new(rules),
            timeline,
            http: written.http,
            describes_a_server,
        })
    }

    /// Whether all of it can happen where it is used.
    ///
    /// # Errors
    ///
    /// When a fault can never happen on the transport, or when the script describes a server and
    /// another server answers already.
    pub(crate) fn check_use(
        &self,
        over_http: bool,
        another_answers: Option<&str>,
    ) -> Result<(), ScriptError> {
        let (wrong, instead) = if over_http {
            (On::Stdio, "stdio")
        } else {
            (On::Http, "HTTP")
        };
        let rules = self
            .answers
            .rules
            .iter()
            .filter_map(|rule| Some((&rule.label, rule.fault.as_ref()?)));
        let entries = self.timeline.iter().filter_map(|entry| match &entry.deed {
            Deed::Fault(fault) => Some((&entry.label, fault.as_ref())),
            Deed::Send(_) | Deed::Line(_) | Deed::Relist(_) => None,
        });
        for (label, fault) in rules.chain(entries) {
            if let Some((name, _)) = fault.members().iter().find(|(_, on)| *on == wrong) {
                return Err(ScriptError::at(
                    label.clone(),
                    format!("fault: `{name}` happens over {instead} only, and would never fire"),
                ));
            }
        }
        let sends_bytes =
            |entry: &&Entry| matches!(&entry.deed, Deed::Fault(fault) if fault.bytes.is_some());
        if over_http && let Some(entry) = self.timeline.iter().find(sends_bytes) {
            let what = "fault: over HTTP, `bytes` needs an answer to stand before";
            return Err(ScriptError::at(entry.label.clone(), what));
        }
        if let Some(option) = another_answers
            && self.describes_a_server
        {
            let what = format!(
                "with {option}, which brings a server, a script has `answers`, `timeline`, `concurrent` and `http` only"
            );
            return Err(ScriptError::at("", what));
        }
        Ok(())
    }
}

/// Reads the text of a script, and says what is wrong with it.
///
/// # Errors
///
/// When the text is no script that can be meant.
pub fn check_script(text: &str) -> Result<(), ScriptError> {
    Script::read(text).map(drop)
}

impl Listing {
    /// A listing of these tools.
    pub(crate) fn of(tools: Vec<Value>) -> Self {
        Self {
            tools,
            hidden: Vec::new(),
        }
    }

    /// Whether a tool of this name is listed.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool["name"] == name)
    }
}

/// How a later listing differs from the first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    hide: Vec<String>,
    hint: BTreeMap<String, Hint>,
    tools: Vec<Value>,
}

impl Change {
    fn of(written: WrittenListing, place: &str) -> Result<Self, ScriptError> {
        let hint = written.hint.into_iter().map(|(name, hint)| {
            let hint = match hint {
                None => Hint::None,
                Some(false) => Hint::False,
                Some(true) => Hint::True,
            };
            (name, hint)
        });
        Ok(Self {
            hide: written.hide,
            hint: hint.collect(),
            tools: tools(&written.tools, &format!("{place}.tools"))?,
        })
    }

    /// The listing that the first one becomes.
    pub(crate) fn apply(&self, first: &[Value]) -> Listing {
        let mut listed = first.to_vec();
        for tool in &self.tools {
            match listed
                .iter_mut()
                .find(|listed| listed["name"] == tool["name"])
            {
                Some(listed) => *listed = tool.clone(),
                None => listed.push(tool.clone()),
            }
        }
        listed.retain(|tool| !self.hide.iter().any(|hidden| tool["name"] == **hidden));
        for (name, hint) in &self.hint {
            for tool in listed.iter_mut().filter(|tool| tool["name"] == **name) {
                tool["annotations"] = worlds::annotations(*hint);
            }
        }
        Listing {
            tools: listed,
            hidden: self.hide.clone(),
        }
    }
}

/// The tools of a list, each with the schema that the protocol demands.
fn tools(written: &[Value], place: &str) -> Result<Vec<Value>, ScriptError> {
    const MEMBERS: [&str; 9] = [
        "name",
        "title",
        "description",
        "inputSchema",
        "outputSchema",
        "annotations",
        "icons",
        "execution",
        "_meta",
    ];
    let mut all = Vec::new();
    for (at, tool) in written.iter().enumerate() {
        let place = format!("{place}[{at}]");
        let Some(members) = tool.as_object() else {
            return Err(ScriptError::at(place, "a tool is an object"));
        };
        if !tool["name"].is_string() {
            return Err(ScriptError::at(place, "a tool has a `name`, which is text"));
        }
        if let Some(unknown) = members
            .keys()
            .find(|name| !MEMBERS.contains(&name.as_str()) && !name.starts_with("x-"))
        {
            let known = list(&MEMBERS);
            return Err(ScriptError::at(
                place,
                format!(
                    "unknown member `{unknown}`; a tool has {known}, and what begins with `x-`"
                ),
            ));
        }
        let mut tool = tool.clone();
        if tool.get("inputSchema").is_none() {
            tool["inputSchema"] = json!({"type": "object"});
        }
        all.push(tool);
    }
    Ok(all)
}

/// What fires is known by its label, so no two may share one.
fn labels_differ(rules: &[Rule], timeline: &[Entry]) -> Result<(), ScriptError> {
    let mut seen = std::collections::BTreeSet::new();
    let labels = rules
        .iter()
        .map(|rule| &rule.label)
        .chain(timeline.iter().map(|entry| &entry.label));
    for label in labels {
        if !seen.insert(label) {
            return Err(ScriptError::at(
                "",
                format!("two of its rules and entries are called `{label}`"),
            ));
        }
    }
    Ok(())
}

fn list(names: &[&str]) -> String {
    if names.is_empty() {
        return "none".into();
    }
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests;
