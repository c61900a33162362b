//! The command line.
//!
//! Parsed by hand: the program is started once for each measurement of the proxy in front of
//! it, and has few options.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use thiserror::Error;

use crate::era::Era;
use crate::replay::{Pace, ReplaySettings};
use crate::script::manners::Secret;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: stretto-mcp-demo [OPTIONS]

Small MCP servers to try and test the proxy with, over stdio or Streamable HTTP.

  --world echo|retail      which tools it has (default: echo)
  --hide TOOL              the shop neither lists the tool nor answers calls of it; repeatable
  --hint TOOL=false|none   the shop lists the tool as changing something, or without hints; repeatable

  --script FILE            in place of a world: a server described by data, or faults around another
  --transcript FILE        append what the server receives, and the faults it plays, as JSON lines
  --replay LOG...          answer as the servers of recorded sessions did (a folder is all its sessions);
                           requests are told apart by method and params, and equal ones are answered
                           in their recorded order
  --strict                 with --replay: requests come in the recorded order, and all of them, else 1
  --loop                   with --replay: begin anew when the recorded requests are used up
  --pace none|recorded|F   with --replay: take no time, the recorded time, or F times that (default: none)
  --over -- COMMAND...     pass everything on to the server that COMMAND starts; a script adds faults

  --era legacy|modern|dual which hosts it serves: those that begin with initialize, those that say who
                           they are on each request, or both (default: legacy)

  --http ADDR              serve Streamable HTTP on ADDR, such as 127.0.0.1:0, in place of stdio
  --require-auth VALUE     with --http: the exact Authorization that every request must carry
  --close                  with --http: one request per connection

  -h, --help               print this, alone
  -V, --version            print the version, alone

Exit status: 0 at the host's end, 1 when the server cannot be set up, 2 when the command line is wrong.
";

/// What a command line asks for.
#[derive(Debug)]
pub(crate) enum Asked {
    /// How the program is used.
    Usage,
    /// Which version it is.
    Version,
    /// A server.
    Serve(Box<Settings>),
}

/// The server that a command line asks for.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// Which built-in world answers.
    pub(crate) world: WorldName,
    /// Tools that the shop does not have.
    pub(crate) hide: Vec<String>,
    /// Tools whose hint the shop changes: to `readOnlyHint: false`, or to none.
    pub(crate) hint: BTreeMap<String, Hint>,
    /// The script to play.
    pub(crate) script: Option<PathBuf>,
    /// Where to write what is received.
    pub(crate) transcript: Option<PathBuf>,
    /// The recorded sessions to replay.
    pub(crate) replay: Option<ReplaySettings>,
    /// The command that starts the server to pass everything on to.
    pub(crate) over: Option<Vec<OsString>>,
    /// Which hosts to serve.
    pub(crate) era: Era,
    /// Where to listen, in place of stdio.
    pub(crate) http: Option<HttpSettings>,
}

/// A built-in world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WorldName {
    /// Two tools that answer with their arguments.
    #[default]
    Echo,
    /// A shop with four tools.
    Retail,
}

impl WorldName {
    /// The world of that name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "echo" => Some(Self::Echo),
            "retail" => Some(Self::Retail),
            _ => None,
        }
    }
}

/// What a tool says about changing things, when it is not what the world says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// `readOnlyHint: false`.
    False,
    /// `readOnlyHint: true`.
    True,
    /// Empty annotations.
    None,
}

/// How to serve over HTTP.
#[derive(Debug, Default)]
pub(crate) struct HttpSettings {
    /// Address and port, as written.
    pub(crate) address: String,
    /// The `Authorization` that every request must carry.
    pub(crate) require_auth: Option<Secret>,
    /// Whether a connection carries a single request.
    pub(crate) close: bool,
}

/// What is wrong with a command line.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum Wrong {
    #[error("{0} is no option")]
    Unknown(String),
    #[error("{0} needs a value")]
    NoValue(&'static str),
    #[error("{0} is given twice")]
    Twice(&'static str),
    #[error("{option} takes {takes}, and not {value}")]
    Value {
        option: &'static str,
        takes: &'static str,
        value: String,
    },
    #[error("{option} goes with {with}")]
    Needs {
        option: &'static str,
        with: &'static str,
    },
    #[error("{one} does not go with {other}")]
    Together {
        one: &'static str,
        other: &'static str,
    },
    #[error("{0} stands alone")]
    Alone(String),
    #[error("an argument is not text: {0}")]
    NotText(String),
}

/// Reads the words after the program's name.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Asked, Wrong> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    // What comes after `--` is another program's, and need not be text.
    let command = words.iter().position(|word| word == "--").map(|at| {
        let command = words.split_off(at);
        command.into_iter().skip(1).collect::<Vec<_>>()
    });
    let mut words = Words::of(words)?;
    if let Some(alone) = words.first().and_then(alone) {
        let name = words.next().unwrap_or_default();
        return if words.is_empty() && command.is_none() {
            Ok(alone)
        } else {
            Err(Wrong::Alone(name))
        };
    }

    let mut settings = Settings::default();
    let mut world = None;
    let mut era = None;
    let mut logs = None;
    let (mut strict, mut loops, mut pace, mut over) = (None, None, None, None);
    let mut address = None;
    let mut require_auth = None;
    let mut close = None;
    while let Some(word) = words.next() {
        match word.as_str() {
            "--world" => {
                let value = words.value("--world")?;
                let name = WorldName::of(&value).ok_or(Wrong::Value {
                    option: "--world",
                    takes: "echo or retail",
                    value,
                })?;
                once("--world", &mut world, name)?;
            }
            "--hide" => settings.hide.push(words.value("--hide")?),
            "--hint" => {
                let value = words.value("--hint")?;
                let (tool, hint) = hint(&value).ok_or(Wrong::Value {
                    option: "--hint",
                    takes: "TOOL=false or TOOL=none",
                    value,
                })?;
                settings.hint.insert(tool, hint);
            }
            "--script" => once(
                "--script",
                &mut settings.script,
                words.value("--script")?.into(),
            )?,
            "--transcript" => once(
                "--transcript",
                &mut settings.transcript,
                words.value("--transcript")?.into(),
            )?,
            "--replay" => once("--replay", &mut logs, words.values("--replay")?)?,
            "--strict" => once("--strict", &mut strict, ())?,
            "--loop" => once("--loop", &mut loops, ())?,
            "--pace" => {
                let value = words.value("--pace")?;
                let given = Pace::of(&value).ok_or(Wrong::Value {
                    option: "--pace",
                    takes: "none, recorded or a factor",
                    value,
                })?;
                once("--pace", &mut pace, given)?;
            }
            "--over" => once("--over", &mut over, ())?,
            "--era" => {
                let value = words.value("--era")?;
                let name = Era::of(&value).ok_or(Wrong::Value {
                    option: "--era",
                    takes: "legacy, modern or dual",
                    value,
                })?;
                once("--era", &mut era, name)?;
            }
            "--http" => once("--http", &mut address, words.value("--http")?)?,
            "--require-auth" => once(
                "--require-auth",
                &mut require_auth,
                Secret(words.value("--require-auth")?),
            )?,
            "--close" => once("--close", &mut close, ())?,
            _ if alone(&word).is_some() => return Err(Wrong::Alone(word)),
            _ => return Err(Wrong::Unknown(word)),
        }
    }

    let has_world = world.is_some() || !settings.hide.is_empty() || !settings.hint.is_empty();
    for (one, is_given) in [
        ("--script", settings.script.is_some()),
        ("--replay", logs.is_some()),
        ("--over", over.is_some()),
    ] {
        if is_given && has_world {
            return Err(Wrong::Together {
                one,
                other: "--world, --hide and --hint",
            });
        }
    }
    if logs.is_some() && over.is_some() {
        return Err(Wrong::Together {
            one: "--replay",
            other: "--over",
        });
    }
    for (option, is_given) in [
        ("--strict", strict.is_some()),
        ("--loop", loops.is_some()),
        ("--pace", pace.is_some()),
    ] {
        if is_given && logs.is_none() {
            return Err(Wrong::Needs {
                option,
                with: "--replay",
            });
        }
    }
    settings.over = match (over, command) {
        (None, None) => None,
        (Some(()), Some(command)) if !command.is_empty() => Some(command),
        (Some(()), _) => {
            return Err(Wrong::Needs {
                option: "--over",
                with: "a command after --",
            });
        }
        (None, Some(_)) => {
            return Err(Wrong::Needs {
                option: "a command after --",
                with: "--over",
            });
        }
    };
    settings.replay = logs.map(|logs| ReplaySettings {
        logs: logs.into_iter().map(PathBuf::from).collect(),
        strict: strict.is_some(),
        loops: loops.is_some(),
        pace: pace.unwrap_or_default(),
    });
    settings.world = world.unwrap_or_default();
    settings.era = era.unwrap_or_default();
    settings.http = match address {
        Some(address) => Some(HttpSettings {
            address,
            require_auth,
            close: close.is_some(),
        }),
        None if require_auth.is_some() => {
            return Err(Wrong::Needs {
                option: "--require-auth",
                with: "--http",
            });
        }
        None if close.is_some() => {
            return Err(Wrong::Needs {
                option: "--close",
                with: "--http",
            });
        }
        None => None,
    };
    Ok(Asked::Serve(Box::new(settings)))
}

/// What a word asks for that must stand alone.
fn alone(word: impl AsRef<str>) -> Option<Asked> {
    match word.as_ref() {
        "-h" | "--help" => Some(Asked::Usage),
        "-V" | "--version" => Some(Asked::Version),
        _ => None,
    }
}

/// `TOOL=false` or `TOOL=none`.
fn hint(text: &str) -> Option<(String, Hint)> {
    let (tool, hint) = text.rsplit_once('=')?;
    let hint = match hint {
        "false" => Hint::False,
        "none" => Hint::None,
        _ => return None,
    };
    Some((tool.to_owned(), hint))
}

fn once<T>(option: &'static str, slot: &mut Option<T>, value: T) -> Result<(), Wrong> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Wrong::Twice(option)),
    }
}

/// The words of a command line, one after another.
struct Words(std::vec::IntoIter<String>);

impl Words {
    fn of(words: impl IntoIterator<Item = OsString>) -> Result<Self, Wrong> {
        let text = |word: OsString| {
            word.into_string()
                .map_err(|word| Wrong::NotText(word.to_string_lossy().into_owned()))
        };
        let words: Vec<String> = words.into_iter().map(text).collect::<Result<_, _>>()?;
        Ok(Self(words.into_iter()))
    }

    fn first(&self) -> Option<&str> {
        self.0.as_slice().first().map(String::as_str)
    }

    fn is_empty(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    fn next(&mut self) -> Option<String> {
        self.0.next()
    }

    /// The words up to the next option.
    fn values(&mut self, option: &'static str) -> Result<Vec<String>, Wrong> {
        let mut values = vec![self.value(option)?];
        while self.first().is_some_and(|word| !word.starts_with("--")) {
            values.extend(self.next());
        }
        Ok(values)
    }

    fn value(&mut self, option: &'static str) -> Result<String, Wrong> {
        self.next().ok_or(Wrong::NoValue(option))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<Asked, Wrong> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn settings(line: &str) -> Settings {
        match asked(line) {
            Ok(Asked::Serve(settings)) => *settings,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn nothing_asks_for_the_echo_world_on_stdio() {
        let settings = settings("");
        assert_eq!(settings.world, WorldName::Echo);
        assert!(settings.http.is_none());
    }

    #[test]
    fn options_repeat_where_they_may() {
        let settings = settings("--world retail --hide a --hide b --hint c=false --hint d=none");
        assert_eq!(settings.world, WorldName::Retail);
        assert_eq!(settings.hide, ["a", "b"]);
        assert_eq!(settings.hint["c"], Hint::False);
        assert_eq!(settings.hint["d"], Hint::None);
    }

    #[test]
    fn http_takes_its_options_in_any_order() {
        let http = settings("--close --require-auth x --http 127.0.0.1:0")
            .http
            .unwrap();
        assert_eq!(
            (
                http.address.as_str(),
                http.require_auth.as_ref().map(|secret| secret.0.as_str()),
                http.close
            ),
            ("127.0.0.1:0", Some("x"), true)
        );
    }

    #[test]
    fn a_replay_takes_several_logs() {
        let replay = settings("--replay a b --strict --loop --pace 0.5 --script s")
            .replay
            .unwrap();
        assert_eq!(replay.logs, [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!(
            (replay.strict, replay.loops, replay.pace),
            (true, true, Pace::Times(0.5))
        );
    }

    #[test]
    fn a_command_is_passed_on_as_it_is() {
        let over = settings("--over --script s -- server --help -- x")
            .over
            .unwrap();
        assert_eq!(over, ["server", "--help", "--", "x"]);
    }

    #[test]
    fn help_and_version_stand_alone() {
        assert!(matches!(asked("-h"), Ok(Asked::Usage)));
        assert!(matches!(asked("--help"), Ok(Asked::Usage)));
        assert!(matches!(asked("-V"), Ok(Asked::Version)));
        assert!(matches!(asked("--version"), Ok(Asked::Version)));
        for line in [
            "--help --world echo",
            "--world echo --help",
            "--version -V",
            "-h x",
        ] {
            assert!(matches!(asked(line), Err(Wrong::Alone(_))), "{line}");
        }
    }

    #[test]
    fn anything_else_is_a_usage_error() {
        for line in [
            "--wold",
            "echo",
            "--world",
            "--world shop",
            "--world=echo",
            "--world echo --world echo",
            "--hide",
            "--hint",
            "--hint a",
            "--hint a=true",
            "--http",
            "--require-auth x",
            "--require-auth",
            "--close",
            "--http 127.0.0.1:0 --close --close",
            "--",
            "--script",
            "--script a --script b",
            "--script a --world echo",
            "--script a --hide b",
            "--transcript",
            "--era",
            "--era old",
            "--replay",
            "--replay a --world echo",
            "--replay a --over -- b",
            "--strict",
            "--loop",
            "--pace none",
            "--replay a --pace fast",
            "--over",
            "--over --",
            "--over b",
            "-- b",
            "--over --hide x -- b",
            "--help -- b",
        ] {
            assert!(asked(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_required_authorization_is_not_in_debug_output() {
        let settings = settings("--http 127.0.0.1:0 --require-auth hunter2");
        assert!(!format!("{settings:?}").contains("hunter2"));
    }
}
