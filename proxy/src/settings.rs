//! The command line and the files that it names, read and checked before anything starts.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use stretto_flow::{Decider, DeciderError, Explore, Flow, file::LoadError};
use stretto_guards::{Guards, UnknownDomain};
use stretto_trace::mcp::Header;
use tracing::info;

use crate::{
    cli::{Cli, FlowDecider},
    conversation::Conversation,
    drive::Beside,
    session::{Active, Guarding, Limits, Options, OwnIds, Serving, Session, SideLog},
    sidelogs::SideLogs,
};

/// What makes a configuration one that cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("--guards needs --domain, which names the policy: {}", domains())]
    NoDomain,
    #[error("--guards: {0}")]
    UnknownDomain(#[from] UnknownDomain),
    #[error("loading {}", .path.display())]
    Flow { path: PathBuf, source: LoadError },
    #[error("serving {}", .path.display())]
    Decider { path: PathBuf, source: DeciderError },
    #[error("{option} is a number from 0 to 1, and {given} is not")]
    OutOfRange { option: &'static str, given: f64 },
    #[error("{0} is not a number")]
    NotANumber(&'static str),
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
    flow: Option<FlowSettings>,
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
        Ok(Self {
            guards,
            explain: cli.explain.clone(),
            commit: cli.commit,
            context: cli.context.clone(),
            flow: cli
                .flow
                .as_ref()
                .map(|path| FlowSettings::of(cli, path))
                .transpose()?,
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
            commit: self.commit,
            listens: self.context.is_some(),
            serving: self.flow.map(|flow| flow.begin(header, log, &mut logs)),
        };
        let session = Session::active(Active::new(header, options, own_ids));
        (
            session,
            Beside {
                conversation: self.context.map(Conversation::new),
                logs,
            },
        )
    }
}

impl FlowSettings {
    fn of(cli: &Cli, path: &Path) -> Result<Self, SettingsError> {
        let load = |source| SettingsError::Flow {
            path: path.to_owned(),
            source,
        };
        let flow = Arc::new(Flow::load(path).map_err(load)?);
        let decider = match cli.flow_decider {
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
                questions: u64::MAX,
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
