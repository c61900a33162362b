//! How recorded sessions ended, which their logs cannot tell.
//!
//! A file of outcomes is a table of tab-separated columns. Its first line names them: `session`,
//! and any of `task`, `trial` and `reward`, in any order; other columns are ignored.
//!
//! ```text
//! session                    task  trial  reward
//! 20261101T000100.000Z-1001  0     0      1.0
//! ```

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::{io, str};

/// How each of some sessions ended, by the session's name.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    sessions: HashMap<String, Outcome>,
}

/// What is known of how a session ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The task that was worked on.
    pub task: Option<String>,
    /// Which try at the task it was, from 0.
    pub trial: Option<u32>,
    /// How well the task was solved, from 0 to 1.
    pub reward: Option<f64>,
}

/// A file of outcomes that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutcomesError {
    /// It cannot be read.
    #[error("reading {}", path.display())]
    Reading {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is not as it should be.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        /// What is the matter.
        what: String,
    },
}

impl Outcomes {
    /// Reads a file of outcomes.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or a line of it is not as it should be.
    pub fn read(path: &Path) -> Result<Self, OutcomesError> {
        let text = fs::read_to_string(path).map_err(|source| OutcomesError::Reading {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text).map_err(|(line, what)| OutcomesError::Line {
            path: path.to_owned(),
            line,
            what,
        })
    }

    /// What is known of a session, if the file names it.
    pub fn of(&self, session: &str) -> Option<&Outcome> {
        self.sessions.get(session)
    }

    /// The names of the sessions, in no order.
    pub fn sessions(&self) -> impl Iterator<Item = &str> {
        self.sessions.keys().map(String::as_str)
    }

    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let lines = text
            .lines()
            .enumerate()
            .map(|(place, line)| (place + 1, line));
        let mut lines = lines.filter(|(_, line)| !line.trim().is_empty());
        let columns: Vec<&str> = match lines.next() {
            Some((_, header)) => header.split('\t').map(str::trim).collect(),
            None => return Err((1, "a line that names the columns is missing".to_owned())),
        };
        if !columns.contains(&"session") {
            let what = "no column is named `session`; the first line names the columns, with a tab between two";
            return Err((1, what.to_owned()));
        }
        let mut sessions = HashMap::new();
        for (number, line) in lines {
            let (session, outcome) = row(&columns, line).map_err(|what| (number, what))?;
            if sessions.insert(session.clone(), outcome).is_some() {
                return Err((number, format!("session {session:?} was named before")));
            }
        }
        Ok(Self { sessions })
    }
}

fn row(columns: &[&str], line: &str) -> Result<(String, Outcome), String> {
    let cells: Vec<&str> = line.split('\t').map(str::trim).collect();
    if cells.len() != columns.len() {
        return Err(format!(
            "{} columns, where the first line has {}",
            cells.len(),
            columns.len()
        ));
    }
    let mut session = String::new();
    let mut outcome = Outcome::default();
    for (column, cell) in columns.iter().zip(cells) {
        match *column {
            "session" => cell.clone_into(&mut session),
            _ if cell.is_empty() => {}
            "task" => outcome.task = Some(cell.to_owned()),
            "trial" => {
                let trial = cell.parse();
                outcome.trial = Some(
                    trial.map_err(|_| format!("{cell:?} is no trial, a whole number from 0"))?,
                );
            }
            "reward" => {
                let reward = cell
                    .parse()
                    .ok()
                    .filter(|reward| (0.0..=1.0).contains(reward));
                let reward = reward.ok_or_else(|| format!("{cell:?} is no reward from 0 to 1"))?;
                outcome.reward = Some(reward);
            }
            _ => {}
        }
    }
    if session.is_empty() {
        return Err("the session is missing".to_owned());
    }
    Ok((session, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_may_come_in_any_order_and_others_are_ignored() {
        let text =
            "reward\tnote\tsession\ttask\ttrial\r\n1.0\tx\ta\tbook a trip\t2\r\n\n0\t\tb\t\t\n";
        let outcomes = Outcomes::parse(text).unwrap();
        let a = Outcome {
            task: Some("book a trip".to_owned()),
            trial: Some(2),
            reward: Some(1.0),
        };
        assert_eq!(outcomes.of("a"), Some(&a));
        let b = Outcome {
            task: None,
            trial: None,
            reward: Some(0.0),
        };
        assert_eq!(outcomes.of("b"), Some(&b));
        assert_eq!(outcomes.of("c"), None);
        let mut sessions: Vec<&str> = outcomes.sessions().collect();
        sessions.sort_unstable();
        assert_eq!(sessions, ["a", "b"]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, line, what) in [
            ("", 1, "a line that names the columns is missing"),
            (
                "task\treward\n",
                1,
                "no column is named `session`; the first line names the columns, with a tab between two",
            ),
            (
                "session\treward\na\n",
                2,
                "1 columns, where the first line has 2",
            ),
            (
                "session\treward\n\na\t1.5\n",
                3,
                "\"1.5\" is no reward from 0 to 1",
            ),
            (
                "session\treward\na\tNaN\n",
                2,
                "\"NaN\" is no reward from 0 to 1",
            ),
            (
                "session\ttrial\na\t-1\n",
                2,
                "\"-1\" is no trial, a whole number from 0",
            ),
            ("session\ttask\n\tx\n", 2, "the session is missing"),
            ("session\na\na\n", 3, "session \"a\" was named before"),
        ] {
            assert_eq!(
                Outcomes::parse(text).unwrap_err(),
                (line, what.to_owned()),
                "{text:?}"
            );
        }
    }

    #[test]
    fn an_error_names_the_file() {
        let error = Outcomes::read(Path::new("/nowhere/index.tsv")).unwrap_err();
        assert_eq!(error.to_string(), "reading /nowhere/index.tsv");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.tsv");
        fs::write(&path, "task\n").unwrap();
        let error = Outcomes::read(&path).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "{}:1: no column is named `session`; the first line names the columns, with a tab between two",
                path.display()
            )
        );
    }
}
