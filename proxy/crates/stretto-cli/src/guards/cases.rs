//! Written cases: what the rules must say about a call.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::Value;
use stretto_guards::cases::Case;

use crate::screen::{Screen, safe};

/// Where the records that cases name are found, seen from the folder of the file of cases.
const RECORDS: &str = "../tau2/retail-mini.json";

/// Runs the cases of a file and shows what differs.
pub(super) fn run(file: &Path, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let mut records = Records {
        path: file.with_file_name(RECORDS),
        read: None,
    };
    let (mut count, mut differing) = (0_usize, 0_usize);
    for (place, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let place = format!("{}:{}", file.display(), place + 1);
        let case: Case = serde_json::from_str(line).with_context(|| place.clone())?;
        let records = if case.needs_records() {
            records.get()?
        } else {
            &Value::Null
        };
        let differences = case.differences(records).with_context(|| place.clone())?;
        count += 1;
        differing += usize::from(!differences.is_empty());
        for difference in differences {
            writeln!(
                screen,
                "{place}: {}: {}",
                safe(&case.name),
                safe(&difference.to_string())
            )?;
        }
    }
    anyhow::ensure!(
        differing == 0,
        "cases not as expected: {differing} of {count}"
    );
    writeln!(screen, "cases as expected: {count}")?;
    Ok(ExitCode::SUCCESS)
}

/// The records that cases name, read when the first case names one.
struct Records {
    path: PathBuf,
    read: Option<Value>,
}

impl Records {
    fn get(&mut self) -> anyhow::Result<&Value> {
        if self.read.is_none() {
            let path = self.path.display();
            let text = fs::read(&self.path)
                .with_context(|| format!("reading the records that cases name from {path}"))?;
            let records =
                serde_json::from_slice(&text).with_context(|| format!("parsing {path}"))?;
            self.read = Some(records);
        }
        Ok(self.read.get_or_insert_default())
    }
}
