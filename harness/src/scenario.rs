//! A scenario file, read: what a host does, what the server is, and what must come of it.
//!
//! `FORMAT.md` beside this package describes every key. Reading is strict: a key, a
//! placeholder or a step that could not mean anything is a [`Slip`] with its line.

pub(crate) mod cases;
pub(crate) mod duration;
pub(crate) mod form;
pub(crate) mod oracle;
pub(crate) mod placeholders;
pub(crate) mod reach;
pub(crate) mod script;
pub(crate) mod slip;
pub(crate) mod step;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

pub use self::form::{Transport, schema_text};
pub use self::slip::{Slip, Slips};

use self::form::FileForm;
use self::oracle::Says;
use self::slip::Source;
use self::step::{Ids, Step};

/// How long a step may wait when its scenario does not say.
const PATIENCE: Duration = Duration::from_secs(20);

/// One scenario, or one case of it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Where it stands below the folder of scenarios, such as `passive/records-each-line`;
    /// a case adds its own name.
    pub name: String,
    /// The promise, as a sentence.
    pub title: String,
    /// The file.
    pub file: PathBuf,
    /// The transports it runs over; never empty.
    pub over: Vec<Transport>,
    /// Programs that must be there.
    pub needs: Vec<String>,
    /// Whether it runs only when slow ones are asked for.
    pub slow: bool,
    pub(crate) text: Arc<str>,
    pub(crate) proxy: Vec<String>,
    pub(crate) server: Server,
    /// What the model says; a question asked without any fails the run.
    pub(crate) oracle: Vec<Says>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) ages: BTreeMap<String, Duration>,
    pub(crate) think: Option<Duration>,
    pub(crate) patience: Duration,
    pub(crate) fill: u64,
    pub(crate) changing: Vec<Changing>,
    pub(crate) steps: Vec<Step>,
}

/// The server that the proxy is put in front of.
#[derive(Clone, Debug)]
pub(crate) enum Server {
    /// The demo server, with these options and perhaps a script.
    Demo {
        options: Vec<String>,
        script: Option<Script>,
    },
    /// Another program, started as it is.
    Command(Vec<String>),
    /// None: the proxy is started without one.
    Absent,
}

/// What a scripted demo server does.
#[derive(Clone, Debug)]
pub(crate) enum Script {
    Table(Value),
    Path(String),
}

/// Something that changes from run to run in a server's texts.
#[derive(Clone, Debug)]
pub(crate) struct Changing {
    pub(crate) name: String,
    pub(crate) pattern: Regex,
}

impl Scenario {
    /// The file's line with this number, without the blanks around it.
    pub(crate) fn line(&self, number: usize) -> &str {
        self.text
            .lines()
            .nth(number.saturating_sub(1))
            .unwrap_or_default()
            .trim()
    }

    /// The topic: the first folder of its name, or `scenarios` when it stands in none.
    pub fn topic(&self) -> &str {
        self.name
            .split_once('/')
            .map_or("scenarios", |(topic, _)| topic)
    }
}

/// Reads a scenario file: one scenario, or one for each of its cases.
///
/// `name` is where the file stands below the folder of scenarios, without its extension.
///
/// # Errors
///
/// Every mistake that was found, each with its line.
pub fn read(path: &Path, name: &str) -> Result<Vec<Scenario>, Slips> {
    let text = std::fs::read_to_string(path).map_err(|error| Slip {
        file: path.to_owned(),
        line: 1,
        what: format!("cannot be read: {error}"),
    })?;
    read_text(path, name, &text)
}

/// Reads a scenario from its text; `path` is only named.
///
/// # Errors
///
/// As [`read`].
pub fn read_text(path: &Path, name: &str, text: &str) -> Result<Vec<Scenario>, Slips> {
    let source = Source { path, text };
    let shared: Arc<str> = Arc::from(text);
    let mut scenarios = Vec::new();
    for case in cases::read(source)? {
        let full_name = case
            .name
            .map_or_else(|| name.to_owned(), |case| format!("{name}/{case}"));
        let tree = toml::de::Deserializer::from(case.tree);
        let form = FileForm::deserialize(tree).map_err(|error| source.toml_slip(&error))?;
        scenarios.push(build(source, full_name, Arc::clone(&shared), form)?);
    }
    Ok(scenarios)
}

fn build(
    source: Source<'_>,
    name: String,
    text: Arc<str>,
    form: FileForm,
) -> Result<Scenario, Slips> {
    let mut slips = Vec::new();
    if form.title.get_ref().trim().is_empty() {
        slips.push(source.slip(
            &form.title.span(),
            "the title is the promise, as a sentence; it is empty",
        ));
    }
    let time = |value: &Spanned<String>, slips: &mut Vec<Slip>| {
        duration::read(value.get_ref())
            .map_err(|what| slips.push(source.slip(&value.span(), what)))
            .ok()
    };
    let think = form
        .think
        .as_ref()
        .and_then(|value| time(value, &mut slips));
    let patience = form
        .patience
        .as_ref()
        .and_then(|value| time(value, &mut slips));
    let mut ages = BTreeMap::new();
    for (file, age) in &form.ages {
        if !form.files.keys().any(|name| name.get_ref() == file) {
            slips.push(source.slip(
                &age.span(),
                format!("`ages` names {file:?}, which `files` does not"),
            ));
        }
        ages.extend(time(age, &mut slips).map(|age| (file.clone(), age)));
    }
    for file in form.files.keys() {
        let inside = Path::new(file.get_ref())
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !inside || file.get_ref().is_empty() {
            slips.push(source.slip(
                &file.span(),
                "a file's path is relative to $DIR and stays inside it",
            ));
        }
    }
    let over = over_of(source, &form, &mut slips);
    let changing = changing_of(source, &form.changing, &mut slips);
    let mut says = Vec::new();
    for line in form.oracle {
        let span = line.span();
        match oracle::read(line.into_inner()) {
            Ok(line) => says.push(line),
            Err(what) => slips.push(source.slip(&span, what)),
        }
    }
    let steps_span = form.steps.span();
    let server = server_of(
        source,
        form.server,
        form.script,
        form.command,
        &over,
        &mut slips,
    );

    let mut ids = Ids::default();
    let mut steps = Vec::new();
    for step in form.steps.into_inner() {
        let span = step.span();
        let line = source.line_of(span.start);
        match step::read(step.into_inner(), line, &mut ids) {
            Ok(step) => steps.push((span, step)),
            Err(what) => slips.push(source.slip_on(line, what)),
        }
    }
    if steps.is_empty() && slips.is_empty() {
        slips.push(source.slip(&steps_span, "a scenario without steps does nothing"));
    }
    if slips.is_empty() {
        slips.extend(reach::check(&steps, &server).map(|(line, what)| source.slip_on(line, what)));
    }

    let scenario = Scenario {
        name,
        title: form.title.into_inner(),
        file: source.path.to_owned(),
        over,
        needs: form.needs,
        slow: form.slow,
        text,
        proxy: form.proxy,
        server,
        oracle: says,
        env: form.env,
        files: form
            .files
            .into_iter()
            .map(|(name, text)| (name.into_inner(), text))
            .collect(),
        ages,
        think,
        patience: patience.unwrap_or(PATIENCE),
        fill: form.fill.unwrap_or_default(),
        changing,
        steps: steps.into_iter().map(|(_, step)| step).collect(),
    };
    if slips.is_empty() {
        slips.extend(reach::unknown_placeholders(source, &scenario));
    }
    if slips.is_empty() {
        Ok(scenario)
    } else {
        Err(Slips(slips))
    }
}

fn over_of(source: Source<'_>, form: &FileForm, slips: &mut Vec<Slip>) -> Vec<Transport> {
    let Some(over) = &form.over else {
        return vec![Transport::Stdio];
    };
    let mut transports = over.get_ref().clone();
    transports.sort_unstable();
    transports.dedup();
    if transports.len() != over.get_ref().len() || transports.is_empty() {
        slips.push(source.slip(&over.span(), "`over` names stdio, http or both, each once"));
    }
    transports
}

fn changing_of(
    source: Source<'_>,
    forms: &BTreeMap<Spanned<String>, String>,
    slips: &mut Vec<Slip>,
) -> Vec<Changing> {
    let mut changing = Vec::new();
    for (name, pattern) in forms {
        if !name
            .get_ref()
            .chars()
            .all(|c| c.is_ascii_uppercase() || c == '_')
            || name.get_ref().is_empty()
        {
            slips.push(source.slip(
                &name.span(),
                "what changes has a name in capitals, such as TIME",
            ));
        }
        match Regex::new(pattern) {
            Ok(pattern) => changing.push(Changing {
                name: name.get_ref().clone(),
                pattern,
            }),
            Err(error) => slips.push(source.slip(&name.span(), step::one_line(&error.to_string()))),
        }
    }
    changing
}

fn server_of(
    source: Source<'_>,
    server: Option<Spanned<Vec<String>>>,
    script: Option<Spanned<Value>>,
    command: Option<Spanned<Vec<String>>>,
    over: &[Transport],
    slips: &mut Vec<Slip>,
) -> Server {
    if let Some(command) = command {
        if server.is_some() || script.is_some() {
            let what = "`command` is another server: `server` and `script` are the demo server's, and do not go with it";
            slips.push(source.slip(&command.span(), what));
        }
        if over.contains(&Transport::Http) {
            let what = "`command` is started on stdio; over http only the demo server can be run, with `server` or `script`";
            slips.push(source.slip(&command.span(), what));
        }
        let words = command.into_inner();
        return if words.is_empty() {
            Server::Absent
        } else {
            Server::Command(words)
        };
    }
    let script = script.and_then(|script| {
        let span = script.span();
        match script.into_inner() {
            table @ Value::Object(_) => Some(Script::Table(table)),
            Value::String(path) => Some(Script::Path(path)),
            _ => {
                slips.push(source.slip(&span, "`script` is a table, or the path of a JSON file"));
                None
            }
        }
    });
    let named_world = server.as_ref().and_then(|server| {
        let says_world =
            |word: &String| ["--world", "--script", "--replay"].contains(&word.as_str());
        server
            .get_ref()
            .iter()
            .any(says_world)
            .then(|| server.span())
    });
    if let (Some(_), Some(span)) = (&script, named_world) {
        slips.push(source.slip(
            &span,
            "`script` stands in place of a world or a replay; leave one of them out",
        ));
    }
    let options = match (server, &script) {
        (Some(options), _) => options.into_inner(),
        (None, Some(_)) => Vec::new(),
        (None, None) => vec!["--world".to_owned(), "echo".to_owned()],
    };
    Server::Demo { options, script }
}
