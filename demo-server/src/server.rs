//! What a server does about a message, whatever carries the two.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use stretto_trace::mcp::LogError;

use crate::cli::Settings;
use crate::era::{self, Era};
use crate::protocol::{self, Call, DEFAULT_VERSION, Message, RpcError};
use crate::replay::Replay;
use crate::script::answers::{Answers, Verdict};
use crate::script::manners::Manners;
use crate::script::timeline::{Entry, Moment};
use crate::script::{Change, Listing, Script, ScriptError, ServerSays};
use crate::transcript::Transcript;
use crate::worlds::{self, World};
use crate::{VERSION, voice};
use reaction::{listen, progress, refusal};

pub(crate) use reaction::{Note, Reaction, Subscription};

mod reaction;

/// The name that a server gives as its own when no script names it.
const NAME: &str = "stretto-mcp-demo";

/// A server: who answers, behind the protocol, with what may go wrong.
pub(crate) struct Server {
    says: ServerSays,
    era: Era,
    base: Base,
    page_size: usize,
    /// Whether a call that waits lets others pass.
    pub(crate) concurrent: bool,
    /// What it lists to begin with: what a legacy host sees, and what a modern one sees.
    first: Listing,
    modern_first: Listing,
    listings: BTreeMap<String, Change>,
    timeline: Vec<Entry>,
    has_rules: bool,
    is_built_in: bool,
    pub(crate) manners: Manners,
    pub(crate) transcript: Transcript,
    state: Mutex<State>,
}

/// Who answers what no rule of a script answers.
enum Base {
    /// Nobody: the script is the server.
    Script,
    /// A built-in world.
    World(Box<dyn World>),
    /// Recorded sessions.
    Replay(Box<Replay>),
    /// A server that runs, behind this one.
    Live,
}

/// What changes while a server runs.
struct State {
    answers: Answers,
    /// What a legacy host sees, and a modern one.
    listing: Listing,
    modern_listing: Listing,
    has_come: Vec<bool>,
    fired: Vec<String>,
}

impl Server {
    /// The server that the command line asks for.
    ///
    /// # Errors
    ///
    /// When a file that it names cannot be used.
    pub(crate) fn new(settings: &Settings) -> Result<Self, SetUpError> {
        let transcript = match &settings.transcript {
            None => Transcript::none(),
            Some(path) => Transcript::append_to(path).map_err(|source| SetUpError::Transcript {
                path: path.clone(),
                source,
            })?,
        };
        let script = settings.script.as_deref().map(Script::load).transpose()?;
        let world = |world| {
            worlds::world(&Settings {
                world,
                ..Settings::default()
            })
        };
        let (base, another) = match (&settings.replay, &settings.over, &script) {
            (Some(replay), ..) => (
                Base::Replay(Box::new(Replay::load(replay.clone())?)),
                Some("--replay"),
            ),
            (None, Some(_), _) => (Base::Live, Some("--over")),
            (None, None, Some(script)) => (
                script
                    .world
                    .map_or(Base::Script, |name| Base::World(world(name))),
                None,
            ),
            (None, None, None) => (Base::World(worlds::world(settings)), None),
        };
        if let (Some(script), Some(path)) = (&script, &settings.script) {
            script
                .check_use(settings.http.is_some(), another)
                .map_err(|error| error.in_file(path))?;
        }
        Ok(Self::of(base, script, settings.era, transcript))
    }

    fn of(base: Base, script: Option<Script>, era: Era, transcript: Transcript) -> Self {
        let is_built_in = script.is_none();
        // A built-in world waits its calls out one after another.
        let concurrent = !matches!(base, Base::World(_));
        let script = script.unwrap_or_else(|| Script {
            concurrent,
            ..Script::default()
        });
        let (first, modern_first) = match &base {
            Base::Script => (script.listing.clone(), script.listing),
            Base::World(world) => (
                Listing::of(world.tools()),
                Listing::of(world.modern_tools()),
            ),
            Base::Replay(_) | Base::Live => (Listing::default(), Listing::default()),
        };
        Self {
            says: script.server,
            era,
            base,
            page_size: script.page_size,
            concurrent: script.concurrent,
            listings: script.listings,
            has_rules: !script.answers.rules.is_empty(),
            is_built_in,
            manners: script.http,
            transcript,
            state: Mutex::new(State {
                answers: script.answers,
                listing: first.clone(),
                modern_listing: modern_first.clone(),
                has_come: vec![false; script.timeline.len()],
                fired: Vec::new(),
            }),
            first,
            modern_first,
            timeline: script.timeline,
        }
    }

    /// What the server does about a message.
    pub(crate) fn react(&self, message: &Message) -> Reaction {
        match message {
            Message::Blank => Reaction::default(),
            Message::Response(id) => match &self.base {
                Base::Replay(replay) => Reaction {
                    trailing: replay.hear_response(id),
                    ..Reaction::default()
                },
                Base::Script | Base::World(_) | Base::Live => Reaction::default(),
            },
            Message::Unreadable => refusal(&Value::Null, RpcError::unreadable()),
            Message::NotAnObject => refusal(&Value::Null, RpcError::not_an_object()),
            Message::Notification(call) => {
                let verdict = self.judge(call);
                let moment =
                    (call.method == "notifications/initialized").then_some(Moment::Initialized);
                let trailing = match &self.base {
                    Base::Replay(replay) => replay.hear(call),
                    Base::Script | Base::World(_) | Base::Live => Vec::new(),
                };
                Reaction {
                    faults: verdict.faults,
                    delay: verdict.delay,
                    trailing,
                    moment,
                    ..Reaction::default()
                }
            }
            Message::Request(id, call) => self.request(id, call),
        }
    }

    fn request(&self, id: &Value, call: &Call) -> Reaction {
        let is_modern = self.era.takes_as_modern(call);
        if let Err(error) = era::admit(self.era, call, is_modern) {
            return Reaction {
                status: 400,
                ..refusal(id, error)
            };
        }
        let verdict = self.judge(call);
        let mut reaction = match verdict.answer {
            Some(answer) => {
                let info = (is_modern && !answer.is_whole).then(|| self.server_info());
                Reaction::to(id, call, answer.outcome, is_modern, info.as_ref())
            }
            None => self.base_reaction(id, call, is_modern),
        };
        reaction.delay += verdict.delay;
        reaction.faults = verdict.faults;
        if verdict.progress > 0
            && let Some(token) = call.params.pointer("/_meta/progressToken")
        {
            // The call's time is shared among them and the answer.
            let shares = u32::try_from(verdict.progress + 1).unwrap_or(u32::MAX);
            let step = reaction.delay / shares;
            reaction
                .notes
                .extend(progress(token, verdict.progress, step));
            reaction.delay -= step * (shares - 1);
        }
        reaction.moment = reaction.moment.or_else(|| match call.method.as_str() {
            "tools/call" => Some(Moment::Call(call.tool().to_owned())),
            "initialize" => Some(Moment::Initialize),
            _ => None,
        });
        reaction
    }

    /// What is done about a request that no rule answers.
    fn base_reaction(&self, id: &Value, call: &Call, is_modern: bool) -> Reaction {
        match &self.base {
            Base::Live => Reaction {
                is_live: true,
                made: (call.method == "tools/call").then(|| call.tool().to_owned()),
                ..Reaction::default()
            },
            Base::Replay(replay) => {
                let served = replay.ask(id, call);
                let mut reaction = match served.outcome {
                    None => Reaction {
                        is_silent: true,
                        ..Reaction::default()
                    },
                    Some(outcome) => Reaction::to(id, call, outcome, is_modern, None),
                };
                if served.text.is_some() {
                    reaction.answer = served.text;
                }
                Reaction {
                    notes: served.notes,
                    delay: served.delay,
                    trailing: served.trailing,
                    ..reaction
                }
            }
            Base::Script | Base::World(_) if is_modern && call.method == "subscriptions/listen" => {
                listen(id, call)
            }
            Base::Script | Base::World(_) => {
                let outcome = self.answer(call, is_modern);
                let is_delayed = call.method == "tools/call" && outcome.is_ok();
                let delay = if is_delayed {
                    worlds::delay(&call.arguments())
                } else {
                    Duration::ZERO
                };
                let info = is_modern.then(|| self.server_info());
                Reaction {
                    delay,
                    ..Reaction::to(id, call, outcome, is_modern, info.as_ref())
                }
            }
        }
    }

    /// What the rules make of a call or notification.
    fn judge(&self, call: &Call) -> Verdict {
        if !self.has_rules {
            return Verdict::default();
        }
        let mut state = self.state();
        if call.method == "tools/call"
            && state
                .listing
                .hidden
                .iter()
                .any(|hidden| hidden == call.tool())
        {
            return Verdict::default();
        }
        state.answers.judge(call)
    }

    fn answer(&self, call: &Call, is_modern: bool) -> Result<Value, RpcError> {
        match call.method.as_str() {
            "initialize" if !is_modern => Ok(self.initialize(call)),
            "ping" if !is_modern => Ok(json!({})),
            "server/discover" if is_modern => Ok(self.discover()),
            "tools/list" => self.list(call, is_modern),
            "tools/call" => self.call(call, is_modern),
            other => Err(RpcError::no_method(other)),
        }
    }

    fn initialize(&self, call: &Call) -> Value {
        let version = match &self.says.protocol {
            Some(version) => json!(version),
            None => call
                .params
                .get("protocolVersion")
                .cloned()
                .unwrap_or_else(|| json!(DEFAULT_VERSION)),
        };
        let mut result = json!({"protocolVersion": version, "capabilities": self.capabilities(), "serverInfo": self.server_info()});
        if let Some(instructions) = self.instructions() {
            result["instructions"] = json!(instructions);
        }
        result
    }

    fn discover(&self) -> Value {
        let mut result =
            json!({"supportedVersions": era::VERSIONS, "capabilities": self.capabilities()});
        if let Some(instructions) = self.instructions() {
            result["instructions"] = json!(instructions);
        }
        era::cache(&mut result);
        result
    }

    fn capabilities(&self) -> Value {
        self.says
            .capabilities
            .clone()
            .unwrap_or_else(|| json!({"tools": {"listChanged": false}}))
    }

    fn server_info(&self) -> Value {
        let name = self.says.name.as_deref().unwrap_or(NAME);
        let version = self.says.version.as_deref().unwrap_or(VERSION);
        json!({"name": name, "version": version})
    }

    fn instructions(&self) -> Option<&str> {
        match &self.base {
            Base::World(world) => self
                .says
                .instructions
                .as_deref()
                .or_else(|| Some(world.instructions())),
            Base::Script | Base::Replay(_) | Base::Live => self.says.instructions.as_deref(),
        }
    }

    fn list(&self, call: &Call, is_modern: bool) -> Result<Value, RpcError> {
        let state = self.state();
        let tools = state.listing(is_modern).tools.as_slice();
        let mut result = if self.page_size == 0 {
            json!({"tools": tools})
        } else {
            let from = match call.params.get("cursor") {
                None => Some(0),
                Some(cursor) => cursor
                    .as_str()
                    .and_then(|text| text.strip_prefix("from-")?.parse().ok()),
            };
            let rest = from.and_then(|from| {
                tools
                    .get(from..)
                    .filter(|rest| from == 0 || !rest.is_empty())
            });
            let (Some(from), Some(rest)) = (from, rest) else {
                return Err(RpcError::new(-32602, "Invalid cursor"));
            };
            let page = rest.get(..self.page_size).unwrap_or(rest);
            let mut result = json!({"tools": page});
            if page.len() < rest.len() {
                result["nextCursor"] = json!(format!("from-{}", from + page.len()));
            }
            result
        };
        if is_modern {
            era::cache(&mut result);
        }
        Ok(result)
    }

    fn call(&self, call: &Call, is_modern: bool) -> Result<Value, RpcError> {
        let name = call.tool();
        let Base::World(world) = &self.base else {
            return Err(RpcError::no_tool(name));
        };
        // A listing of a script may name tools that the world does not have.
        let is_listed = self.state().listing(is_modern).has(name);
        if !(is_listed && self.modern_first.has(name)) {
            return Err(RpcError::no_tool(name));
        }
        if is_modern && let Some(outcome) = world.call_back(name, call) {
            return outcome;
        }
        Ok(match world.call(name, &call.arguments()) {
            Ok(text) => protocol::text_result(&text, false),
            Err(text) => protocol::text_result(&text, true),
        })
    }

    /// Counts a call of a tool as made with success.
    pub(crate) fn made(&self, tool: &str) {
        if self.has_rules {
            self.state().answers.made(tool);
        }
    }

    /// What the timeline has for a moment. Each entry comes once.
    pub(crate) fn due(&self, moment: &Moment) -> Vec<Entry> {
        if self.timeline.is_empty() {
            return Vec::new();
        }
        let mut state = self.state();
        let mut due = Vec::new();
        for (entry, has_come) in self.timeline.iter().zip(&mut state.has_come) {
            if !*has_come && entry.waits_for(moment) {
                *has_come = true;
                due.push(entry.clone());
            }
        }
        due
    }

    /// Takes another listing.
    pub(crate) fn relist(&self, name: &str) {
        if let Some(change) = self.listings.get(name) {
            let mut state = self.state();
            state.listing = change.apply(&self.first.tools);
            state.modern_listing = change.apply(&self.modern_first.tools);
        }
    }

    /// Notes that a fault, or an entry of the timeline, happens now.
    pub(crate) fn fire(&self, label: &str) {
        self.transcript.fired(label);
        let mut state = self.state();
        if !state.fired.iter().any(|fired| fired == label) {
            state.fired.push(label.to_owned());
        }
    }

    /// What a recorded server said before it was asked anything.
    pub(crate) fn at_first(&self) -> Vec<Note> {
        match &self.base {
            Base::Replay(replay) => replay.at_first(),
            Base::Script | Base::World(_) | Base::Live => Vec::new(),
        }
    }

    /// Whether the session was all that it had to be: in words, what a strict replay misses.
    pub(crate) fn missing(&self) -> Option<String> {
        match &self.base {
            Base::Replay(replay) => replay.missing(),
            Base::Script | Base::World(_) | Base::Live => None,
        }
    }

    /// The server's last words: which faults and entries of the timeline never happened.
    pub(crate) fn finish(&self) {
        let state = self.state();
        let rules = state
            .answers
            .rules
            .iter()
            .filter(|rule| rule.fault.is_some())
            .map(|rule| &rule.label);
        let entries = self.timeline.iter().map(|entry| &entry.label);
        let unfired: Vec<String> = rules
            .chain(entries)
            .filter(|label| !state.fired.contains(label))
            .cloned()
            .collect();
        if unfired.is_empty() {
            return;
        }
        self.transcript.unfired(&unfired);
        voice::say(&format!("never fired: {}", unfired.join(", ")));
    }

    /// Whether a fault may close stdin while it is waited for.
    pub(crate) fn may_close_stdin(&self) -> bool {
        use crate::script::timeline::Deed;

        let in_rules = self
            .state()
            .answers
            .rules
            .iter()
            .any(|rule| rule.fault.as_ref().is_some_and(|fault| fault.close_stdin));
        in_rules
            || self
                .timeline
                .iter()
                .any(|entry| matches!(&entry.deed, Deed::Fault(fault) if fault.close_stdin))
    }

    /// Whether no script has a part in it.
    pub(crate) fn is_built_in(&self) -> bool {
        self.is_built_in
    }

    /// Whether it adds log messages of its own to a call, and is not bound to what another server says.
    pub(crate) fn speaks_for_itself(&self) -> bool {
        match self.base {
            Base::Script | Base::World(_) => true,
            Base::Replay(_) | Base::Live => false,
        }
    }

    /// The tools that a modern host sees now.
    pub(crate) fn modern_tools(&self) -> Vec<Value> {
        self.state().modern_listing.tools.clone()
    }

    /// Which hosts it serves.
    pub(crate) fn era(&self) -> Era {
        self.era
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each statement leaves it whole, so a panic elsewhere does not matter.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn listing(&self, is_modern: bool) -> &Listing {
        if is_modern {
            &self.modern_listing
        } else {
            &self.listing
        }
    }
}

/// Why a server cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetUpError {
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("opening the transcript {}", .path.display())]
    Transcript {
        path: std::path::PathBuf,
        source: std::io::Error,
    },
}

#[cfg(test)]
mod tests;
