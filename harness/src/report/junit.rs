//! A `JUnit` file: a suite for each topic, a case for each scenario and transport.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::event::{Event, Finished, Told};

/// Collects what happens and writes it whole at the end.
#[derive(Debug, Default)]
pub struct JUnit {
    finished: Vec<Finished>,
}

impl JUnit {
    /// Takes an event in.
    pub fn event(&mut self, event: &Event) {
        if let Event::ScenarioFinished(finished) = event {
            self.finished.push(finished.as_ref().clone());
        }
    }

    /// The report as text.
    ///
    /// # Errors
    ///
    /// When the report cannot be put into XML.
    pub fn text(&self) -> io::Result<String> {
        let mut suites: BTreeMap<&str, TestSuite> = BTreeMap::new();
        for finished in &self.finished {
            let topic = finished
                .about
                .name
                .split_once('/')
                .map_or("scenarios", |(topic, _)| topic);
            let suite = suites.entry(topic).or_insert_with(|| TestSuite::new(topic));
            suite.add_test_case(case(finished));
        }
        let mut report = Report::new("stretto-harness");
        report.add_test_suites(suites.into_values());
        report.to_string().map_err(io::Error::other)
    }

    /// Writes the report, whole or not at all.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let folder = file
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let mut whole = tempfile::NamedTempFile::new_in(folder)?;
        whole.write_all(self.text()?.as_bytes())?;
        whole.persist(file)?;
        Ok(())
    }
}

fn case(finished: &Finished) -> TestCase {
    let status = match finished.failures.first() {
        None => TestCaseStatus::success(),
        Some(first) => {
            let kind = if first.kind == "start" {
                NonSuccessKind::Error
            } else {
                NonSuccessKind::Failure
            };
            let mut status = TestCaseStatus::non_success(kind);
            let whole: Vec<String> = finished.failures.iter().map(told).collect();
            status
                .set_type(first.kind)
                .set_message(message(first))
                .set_description(whole.join("\n\n"));
            status
        }
    };
    let mut case = TestCase::new(finished.about.shown(), status);
    case.set_classname(finished.about.file.display().to_string());
    case.set_time(finished.took);
    case.set_system_out(&finished.transcript);
    case.set_system_err(&finished.stderr);
    case
}

/// The failed line, or what differs, in one line.
fn message(told: &Told) -> String {
    let place = told.line.map(|line| format!(":{line}")).unwrap_or_default();
    let what = told.expected.as_deref().map_or_else(
        || told.came.lines().next().unwrap_or_default().to_owned(),
        |expected| format!("expected {expected}"),
    );
    format!("{}{place}: {what}", told.file.display())
}

fn told(told: &Told) -> String {
    let source = told
        .source
        .as_deref()
        .map(|source| format!("\n{source}"))
        .unwrap_or_default();
    format!("{}{source}\n{}", message(told), told.came)
}
