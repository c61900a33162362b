//! A log that the proxy has written.

use std::{
    fs,
    path::{Path, PathBuf},
};

use stretto_trace::mcp::{Header, Log};

/// A log, as the reader of logs sees it, and as it is spelled.
pub(crate) struct Recorded {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) header: Header,
    /// Each entry as it stands, from its side on: `client","message":{…}`.
    spelled: Vec<String>,
    pub(crate) is_cut_off: bool,
}

impl Recorded {
    /// Reads a log, and finds that its times never fall.
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a log is text");
        let log = Log::parse(text.as_bytes()).expect("a log that reads");
        let times: Vec<u64> = log.entries.iter().map(|entry| entry.t_ms).collect();
        assert!(times.is_sorted(), "times fall in {}", path.display());
        let spelled = text
            .lines()
            .skip(1)
            .take(log.entries.len())
            .map(|line| {
                let (_, from) = line
                    .split_once(r#","from":""#)
                    .expect("an entry begins with its time");
                from.strip_suffix('}').expect("an entry ends so").to_owned()
            })
            .collect();
        Self {
            path: path.into(),
            text,
            header: log.header,
            spelled,
            is_cut_off: log.is_cut_off,
        }
    }

    /// What this side's entries hold, spelled as they are: `message:{…}` or `raw:"…"`.
    pub(crate) fn of(&self, side: &str) -> Vec<String> {
        let start = format!("{side}\",\"");
        self.spelled
            .iter()
            .filter_map(|entry| entry.strip_prefix(&start))
            .map(|body| body.replacen("\":", ":", 1))
            .collect()
    }

    /// The sides of the entries, in order.
    pub(crate) fn sides(&self) -> Vec<&str> {
        self.spelled
            .iter()
            .filter_map(|entry| entry.split('"').next())
            .collect()
    }
}
