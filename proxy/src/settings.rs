//! The command line and the files that it names, read and checked before anything starts.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use stretto_flow::{Decider, DeciderError, Explore, Flow, file::LoadError};
use stretto_guards::{
    Guards, UnknownDomain,
    confirm::{Judge, Second},
};
use stretto_oracle::{Cache, Jev, Oracle, Patience};
use stretto_trace::mcp::Header;
use tracing::info;

use crate::{
    asker::Asker,
    cli::{Cli, FlowDecider, JudgeMode, OracleKind, SecondQuestion},
    conversation::Conversation,
    drive::Beside,
    session::{Active, Guarding, Judging, Limits, Options, OwnIds, Serving, Session, SideLog},
    sidelogs::SideLogs,
};

/// What makes a configuration one that cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("--guards needs --domain, which names the policy: {}", domains())]
    NoDomain,
    #[error("--guards")]
    UnknownDomain(#[from] UnknownDomain),
    #[error("loading {}", .path.display())]
    Flow {
        path: PathBuf,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("serving {}", .path.display())]
    Decider { path: PathBuf, source: DeciderError },
    #[error("{option} is a number from 0 to 1, and {given} is not")]
    OutOfRange { option: &'static str, given: f64 },
    #[error("{0} is not a number")]
    NotANumber(&'static str),
    #[error(
        "{}: its arbiter asks the System-One model, and there is no key: set TYPESAFE_API_KEY, or \
         TYPESAFE_API_KEY_FILE to a file that holds it, or use --flow-decider {}", .path.display(), .instead.name()
    )]
    NoKey { path: PathBuf, instead: Decider },
    #[error("setting up the System-One model")]
    Oracle(#[from] stretto_oracle::SettingsError),
    #[error("setting up the System-One model")]
    Client(#[from] stretto_oracle::ClientError),
    #[error("--explain {}: a name that ends in .jsonl would pass for a session log; take another", .0.display())]
    ExplainAmongLogs(PathBuf),
}

/// What the session will do, beside recording.
#[derive(Debug)]
pub(crate) struct Settings {
    guards: Option<Guards>,
    explain: Option<PathBuf>,
    commit: bool,
    context: Option<PathBuf>,
    judge: Option<JudgeSettings>,
    flow: Option<FlowSettings>,
    oracle: Option<Oracle>,
}

#[derive(Debug)]
struct JudgeSettings {
    judge: Judge,
    questions: u64,
    log: Option<PathBuf>,
    has_no_key: bool,
}

#[derive(Debug)]
struct FlowSettings {
    path: PathBuf,
    flow: Arc<Flow>,
    decider: Decider,
    threshold: f64,
    explore: Option<Explore>,
    limits: Limits,
    granted: Option<BTreeSet<String>>,
    is_shadow: bool,
    log: Option<PathBuf>,
    task_id: Option<String>,
}

impl Settings {
    /// Reads what the command line names.
    ///
    /// # Errors
    /// It cannot be read, or does not fit together.
    pub(crate) fn of(cli: &Cli) -> Result<Self, SettingsError> {
        let guards = match (&cli.domain, cli.guards) {
            (_, false) => None,
            (None, true) => return Err(SettingsError::NoDomain),
            (Some(domain), true) => Some(Guards::for_domain(domain)?),
        };
        if cli.flow_threshold.is_nan() {
            return Err(SettingsError::NotANumber("--flow-threshold"));
        }
        if let (Some(explain), Some(record)) = (&cli.explain, &cli.record)
            && explain.parent() == Some(record)
            && explain
                .extension()
                .is_some_and(|extension| extension == "jsonl")
        {
            return Err(SettingsError::ExplainAmongLogs(explain.clone()));
        }
        let flow = cli
            .flow
            .as_ref()
            .map(|path| FlowSettings::of(cli, path))
            .transpose()?;
        let asking_flow = flow
            .as_ref()
            .filter(|flow| flow.decider == Decider::Arbiter);
        let mut judge = None;
        let mut oracle = None;
        if asking_flow.is_some() || cli.confirm_judge.is_some() {
            let answering = Answering::of(cli)?;
            if let (Some(flow), true) = (asking_flow, answering.has_no_key) {
                let can_reach = flow.flow.check_decider(Decider::Reach).is_ok();
                return Err(SettingsError::NoKey {
                    path: flow.path.clone(),
                    instead: if can_reach {
                        Decider::Reach
                    } else {
                        Decider::Habit
                    },
                });
            }
            judge = JudgeSettings::of(cli, &answering)?;
            oracle = Some(answering.oracle);
        }
        Ok(Self {
            guards,
            explain: cli.explain.clone(),
            commit: cli.commit,
            context: cli.context.clone(),
            judge,
            flow,
            oracle,
        })
    }

    /// The session at its beginning. The log's place says where the other logs go.
    pub(crate) fn begin(
        self,
        header: &Header,
        log: Option<&Path>,
        own_ids: OwnIds,
    ) -> (Session, Beside) {
        let mut logs = SideLogs::default();
        let is_active =
            self.guards.is_some() || self.commit || self.context.is_some() || self.flow.is_some();
        if !is_active {
            return (Session::default(), Beside::default());
        }
        if let Some(path) = &self.explain {
            logs.open(SideLog::Explain, path);
        }
        let explains = self.explain.is_some();
        let options = Options {
            guarding: self.guards.map(|guards| Guarding::new(guards, explains)),
            judging: self.judge.map(|judge| judge.begin(log, &mut logs)),
            commit: self.commit,
            listens: self.context.is_some(),
            serving: self.flow.map(|flow| flow.begin(header, log, &mut logs)),
        };
        let session = Session::active(Active::new(header, options, own_ids));
        let beside = Beside {
            conversation: self.context.map(Conversation::new),
            asker: self.oracle.map(Asker::of).unwrap_or_default(),
            logs,
        };
        (session, beside)
    }
}

/// Who answers, and the model that is asked for.
struct Answering {
    oracle: Oracle,
    model: String,
    has_no_key: bool,
}

impl Answering {
    fn of(cli: &Cli) -> Result<Self, SettingsError> {
        let cache = Cache::new(&cli.oracle_cache);
        let (oracle, settings, has_no_key) = match cli.oracle {
            OracleKind::Mock => (
                Oracle::Mock,
                stretto_oracle::Settings::model_from_env()?,
                false,
            ),
            OracleKind::Replay => (
                Oracle::Replay(cache),
                stretto_oracle::Settings::model_from_env()?,
                false,
            ),
            OracleKind::Jev => {
                let settings = stretto_oracle::Settings::from_env()?;
                let jev = Jev::new(&settings, Patience::live())?;
                let has_no_key = !jev.has_key();
                (Oracle::jev(jev, cache), settings, has_no_key)
            }
        };
        Ok(Self {
            oracle,
            model: settings.model,
            has_no_key,
        })
    }
}

impl JudgeSettings {
    fn of(cli: &Cli, answering: &Answering) -> Result<Option<Self>, SettingsError> {
        let Some(mode) = cli.confirm_judge else {
            return Ok(None);
        };
        if cli.confirm_threshold.is_nan() {
            return Err(SettingsError::NotANumber("--confirm-threshold"));
        }
        let judge = Judge {
            second: cli.confirm_second.map(|second| match second {
                SecondQuestion::Proposed => Second::Proposed,
                SecondQuestion::Described => Second::Described,
            }),
            second_is_shadow: cli.confirm_second_shadow,
            threshold: cli.confirm_threshold,
            is_enforced: mode == JudgeMode::Enforce,
            ..Judge::new(&answering.model)
        };
        Ok(Some(Self {
            judge,
            questions: cli.confirm_questions,
            log: cli.confirm_log.clone(),
            has_no_key: answering.has_no_key,
        }))
    }

    fn begin(self, log: Option<&Path>, logs: &mut SideLogs) -> Judging {
        if self.has_no_key {
            info!(
                "the confirmation judge has no key, so it refuses nothing but what cached answers say: set \
                 TYPESAFE_API_KEY, or TYPESAFE_API_KEY_FILE to a file that holds it"
            );
        }
        if let Some(path) = self
            .log
            .or_else(|| log.map(|log| log.with_extension("confirm.jsonl")))
        {
            logs.open(SideLog::Confirm, &path);
        }
        Judging::new(self.judge, self.questions)
    }
}

impl FlowSettings {
    fn of(cli: &Cli, path: &Path) -> Result<Self, SettingsError> {
        let flow = Flow::load(path).map_err(|error| SettingsError::Flow {
            path: path.to_owned(),
            // Its own words name the file again.
            source: match error {
                LoadError::Read { source, .. } => source.into(),
                LoadError::Flow { source, .. } => source.into(),
                error => error.into(),
            },
        })?;
        let flow = Arc::new(flow);
        let decider = match cli.flow_decider {
            Some(FlowDecider::Arbiter) => Decider::Arbiter,
            Some(FlowDecider::Habit) => Decider::Habit,
            Some(FlowDecider::Reach) => Decider::Reach,
            None => flow.default_decider(),
        };
        let unserved = |source| SettingsError::Decider {
            path: path.to_owned(),
            source,
        };
        flow.check_decider(decider).map_err(unserved)?;
        let explore = match cli.flow_explore {
            None => None,
            Some(epsilon) if (0.0..=1.0).contains(&epsilon) => Some(Explore {
                epsilon,
                seed: cli.flow_explore_seed,
            }),
            Some(given) => {
                return Err(SettingsError::OutOfRange {
                    option: "--flow-explore",
                    given,
                });
            }
        };
        Ok(Self {
            path: path.to_owned(),
            flow,
            decider,
            threshold: cli.flow_threshold,
            explore,
            limits: Limits {
                per_call: cli.flow_per_call,
                per_session: cli.flow_per_session,
                questions: cli.flow_questions,
            },
            granted: cli
                .flow_tools
                .as_ref()
                .map(|tools| tools.iter().cloned().collect()),
            is_shadow: cli.flow_shadow,
            log: cli.flow_log.clone(),
            task_id: cli.task_id.clone(),
        })
    }

    fn begin(self, header: &Header, log: Option<&Path>, logs: &mut SideLogs) -> Serving {
        let shadow = if self.is_shadow { " in shadow" } else { "" };
        let domain = &self.flow.file().manifest.domain;
        info!(
            "serving the {domain} flow {} by {}{shadow}",
            self.path.display(),
            self.decider.name()
        );
        if let Some(path) = self
            .log
            .or_else(|| log.map(|log| log.with_extension("flow.jsonl")))
        {
            logs.open(SideLog::Flow, &path);
        }
        let task_id = self.task_id.unwrap_or_else(|| header.session.clone());
        let settings = stretto_flow::Settings {
            threshold: self.threshold,
            explore: self.explore,
            ..stretto_flow::Settings::new(self.decider, &task_id)
        };
        Serving::new(
            self.flow,
            settings,
            self.limits,
            self.granted,
            self.is_shadow,
        )
    }
}

fn domains() -> String {
    Guards::domains().collect::<Vec<_>>().join(" or ")
}
