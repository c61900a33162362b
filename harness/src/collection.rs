//! A folder of scenarios, and which of them to run.

use std::path::{Path, PathBuf};

use thiserror::Error;
use walkdir::WalkDir;

use crate::run::Job;
use crate::scenario::{self, Scenario, Slips, Transport};

/// Scenarios of one folder, with the folder of their snapshots.
#[derive(Clone, Debug)]
pub struct Collection {
    /// The folder of the scenarios.
    pub root: PathBuf,
    /// The folder of the snapshots.
    pub snapshots: PathBuf,
    /// All scenarios, by name.
    pub scenarios: Vec<Scenario>,
}

/// Why scenarios could not be collected.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CollectError {
    /// The folder is not there.
    #[error("{} is no folder; name the folder that holds your scenarios", .0.display())]
    NoFolder(PathBuf),
    /// The folder could not be walked through.
    #[error("looking through the scenarios")]
    Walk(#[from] walkdir::Error),
    /// Files with mistakes in them.
    #[error(transparent)]
    Slips(#[from] Slips),
    /// Two files, or a case and a file, with one name.
    #[error("two scenarios are called {name}: {} and {}", .first.display(), .second.display())]
    Twice {
        /// The name.
        name: String,
        /// A file that has it.
        first: PathBuf,
        /// The other one.
        second: PathBuf,
    },
}

impl Collection {
    /// Reads all scenarios in `root` and the folders in it.
    ///
    /// # Errors
    ///
    /// When the folder cannot be read; all mistakes in all its files together.
    pub fn read(root: &Path, snapshots: Option<&Path>) -> Result<Self, CollectError> {
        if !root.is_dir() {
            return Err(CollectError::NoFolder(root.to_owned()));
        }
        let mut scenarios: Vec<Scenario> = Vec::new();
        let mut slips = Vec::new();
        for entry in WalkDir::new(root).sort_by_file_name() {
            let entry = entry?;
            let path = entry.path();
            if !entry.file_type().is_file()
                || path.extension().is_none_or(|extension| extension != "toml")
            {
                continue;
            }
            match scenario::read(path, &name_of(root, path)) {
                Ok(read) => scenarios.extend(read),
                Err(Slips(wrong)) => slips.extend(wrong),
            }
        }
        if !slips.is_empty() {
            return Err(Slips(slips).into());
        }
        scenarios.sort_by(|one, other| one.name.cmp(&other.name));
        if let Some([first, second]) = scenarios
            .array_windows()
            .find(|[first, second]| first.name == second.name)
        {
            return Err(CollectError::Twice {
                name: first.name.clone(),
                first: first.file.clone(),
                second: second.file.clone(),
            });
        }
        let snapshots = snapshots.map_or_else(|| snapshots_of(root), Path::to_owned);
        Ok(Self {
            root: root.to_owned(),
            snapshots,
            scenarios,
        })
    }

    /// What to run: each scenario that fits, over each of its transports.
    pub fn jobs(&self, choice: &Choice) -> Vec<Job<'_>> {
        let mut jobs = Vec::new();
        for scenario in self
            .scenarios
            .iter()
            .filter(|scenario| choice.takes(scenario))
        {
            let over = scenario
                .over
                .iter()
                .filter(|over| choice.over.is_none_or(|only| only == **over));
            jobs.extend(over.map(|over| Job {
                scenario,
                over: *over,
            }));
        }
        jobs
    }

    /// Where a run's snapshot is.
    pub fn snapshot(&self, job: Job<'_>) -> PathBuf {
        let suffix = match job.over {
            Transport::Stdio => "",
            Transport::Http => "@http",
        };
        self.snapshots
            .join(format!("{}{suffix}.snap", job.scenario.name))
    }

    /// How a snapshot names the scenario's file: from the folder that holds both, with `/` between its parts.
    pub fn input_file(&self, scenario: &Scenario) -> String {
        let base = self.root.parent().unwrap_or(Path::new(""));
        let relative = scenario.file.strip_prefix(base).unwrap_or(&scenario.file);
        relative
            .components()
            .map(|part| part.as_os_str().to_string_lossy())
            .collect::<Vec<_>>()
            .join("/")
    }

    /// Snapshots that no scenario asks for.
    pub fn unreferenced(&self) -> Vec<PathBuf> {
        let all = self.jobs(&Choice::default());
        let asked: Vec<PathBuf> = all.into_iter().map(|job| self.snapshot(job)).collect();
        WalkDir::new(&self.snapshots)
            .sort_by_file_name()
            .into_iter()
            .flatten()
            .map(walkdir::DirEntry::into_path)
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "snap")
                    && !asked.contains(path)
            })
            .collect()
    }
}

/// Which scenarios are meant.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Parts of names, any of which will do; everything when empty.
    pub filters: Vec<String>,
    /// Files and folders, any of which will do.
    pub paths: Vec<PathBuf>,
    /// Only this transport.
    pub over: Option<Transport>,
}

impl Choice {
    /// Whether a scenario is among those meant. A name given in full takes that one and its cases alone.
    fn takes(&self, scenario: &Scenario) -> bool {
        if self.filters.is_empty() && self.paths.is_empty() {
            return true;
        }
        self.filters
            .iter()
            .any(|filter| scenario.name.contains(filter.as_str()))
            || self
                .paths
                .iter()
                .any(|path| is_within(&scenario.file, path))
    }
}

fn is_within(file: &Path, path: &Path) -> bool {
    let full = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    full(file).starts_with(full(path))
}

/// The folder of all scenarios to which a path belongs: the nearest one called `scenarios`, or the path's own.
pub fn root_of(path: &Path) -> PathBuf {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let named = full
        .ancestors()
        .find(|folder| folder.file_name().is_some_and(|name| name == "scenarios"));
    match named {
        Some(root) => root.to_owned(),
        None if full.is_dir() => full,
        None => full.parent().unwrap_or(&full).to_owned(),
    }
}

/// Beside a folder called `scenarios`, else inside the folder.
fn snapshots_of(root: &Path) -> PathBuf {
    let is_named = root.file_name().is_some_and(|name| name == "scenarios");
    match root.parent() {
        Some(parent) if is_named => parent.join("snapshots"),
        _ => root.join("snapshots"),
    }
}

fn name_of(root: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(root).unwrap_or(path).with_extension("");
    relative
        .components()
        .map(|part| part.as_os_str().to_string_lossy())
        .collect::<Vec<_>>()
        .join("/")
}
