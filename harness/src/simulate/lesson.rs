//! Learning the flow that the arms serve, from sessions that the lab itself recorded.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};
use stretto_flow::{Fitting, FlowFile, LearnOptions, Session, Surroundings, learn};
use stretto_oracle::Response;
use stretto_trace::mcp::{Tools, episode_with_answered, read_log};

use crate::text::append;

use super::agent::Counts;
use super::mind::Truth;
use super::model;
use super::session::Outcome;

/// What the sessions have to teach.
pub(crate) struct Lessons {
    sessions: Vec<Session>,
    surroundings: Surroundings,
}

/// Reads recorded sessions. Only those in which no harm was done teach.
pub(crate) fn read(sessions: &[Outcome]) -> anyhow::Result<Lessons> {
    let mut tools = Tools::default();
    let mut recorded = Vec::with_capacity(sessions.len());
    for (place, outcome) in sessions.iter().enumerate() {
        let log = read_log(&outcome.log)?;
        for entry in &log.entries {
            tools.entry(entry);
        }
        let (mut episode, answered_before) = episode_with_answered(&log);
        // Names of recorded sessions hold the time, and the same seed is to learn the same flow.
        episode.id = format!("lesson-{place:04}");
        episode.reward = reward(outcome);
        recorded.push(Session {
            episode,
            answered_before,
            contents_in: None,
        });
    }
    let surroundings = Surroundings {
        manifest: tools.manifest("retail"),
        contracts: tools.contracts().clone(),
    };
    Ok(Lessons {
        sessions: recorded,
        surroundings,
    })
}

/// A session in which harm was done is no success, whatever its customer says.
fn reward(outcome: &Outcome) -> f64 {
    if outcome.counts.harm == 0 { 1.0 } else { 0.0 }
}

/// Writes how the sessions of a folder ended, as the offline program reads it, to a file in it.
pub(crate) fn write_outcomes(sessions: &[Outcome], folder: &Path) -> anyhow::Result<()> {
    let file = folder.join("outcomes.tsv");
    let mut text = "session\ttask\treward\n".to_owned();
    for outcome in sessions {
        let session = outcome.log.file_stem().unwrap_or_default();
        append(
            &mut text,
            format_args!(
                "{}\t{}\t{}\n",
                session.display(),
                outcome.task,
                reward(outcome)
            ),
        );
    }
    fs::write(&file, text).with_context(|| format!("writing {}", file.display()))
}

impl Lessons {
    fn all(&self) -> Vec<&Session> {
        self.sessions.iter().collect()
    }

    /// A flow without an arbiter.
    pub(crate) fn flow(&self) -> anyhow::Result<FlowFile> {
        let options = LearnOptions::default();
        learn(&self.all(), &self.surroundings, &options, &mut |_, _, _| {})
            .context("learning a flow from the recorded sessions")
    }

    /// The same flow with an arbiter, fitted to what the lab's model says about sessions that are
    /// held out for it: it knows what the agent did next there, and is wrong about some of it.
    pub(crate) fn with_arbiter(&self, flow: &FlowFile) -> anyhow::Result<FlowFile> {
        let options = LearnOptions::default();
        let fitting = Fitting::prepare(
            &self.all(),
            &self.surroundings,
            &options,
            model::NAME,
            &mut |_, _, _| {},
        )
        .context("learning what to ask about the recorded sessions")?;
        let mut answers = BTreeMap::new();
        for (key, request, agent) in fitting.asked() {
            let truth = Truth {
                next: agent.map(str::to_owned),
                ..Truth::default()
            };
            let answer =
                json!({"model": model::NAME, "answers": model::answers(&json!(request), &truth)});
            let response = Response::parse(answer.to_string().as_bytes());
            answers.insert(*key, response.context("reading the lab's own model")?);
        }
        let fitted = fitting
            .finish(&answers)
            .context("fitting an arbiter to the recorded sessions")?;
        let mut flow = flow.clone();
        flow.take_arbiter(&fitted);
        Ok(flow)
    }
}

/// Writes a flow to a file.
pub(crate) fn write(flow: &FlowFile, file: &Path) -> anyhow::Result<()> {
    fs::write(file, flow.to_text()).with_context(|| format!("writing {}", file.display()))
}

/// What a flow in shadow would have looked up, told from its log: how much, and how much of it the
/// agent went on to call itself.
pub(crate) fn count_shadow(outcome: &mut Outcome) -> anyhow::Result<()> {
    let log = read_log(&outcome.log)?;
    let calls: Vec<(u64, &Value)> = log
        .messages()
        .filter(|(_, message)| message["method"] == "tools/call")
        .filter_map(|(_, message)| Some((message["id"].as_u64()?, message.get("params")?)))
        .collect();
    let file = outcome.log.with_extension("flow.jsonl");
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let Counts {
        lookups,
        used,
        detours,
        ..
    } = &mut outcome.counts;
    for line in text.lines() {
        let line: Value =
            serde_json::from_str(line).with_context(|| format!("reading {}", file.display()))?;
        if line["action"] != "lookup" {
            continue;
        }
        let after = line["after"].as_u64().unwrap_or_default();
        let is_made = |(id, call): &(u64, &Value)| {
            *id > after && call["name"] == line["tool"] && call["arguments"] == line["arguments"]
        };
        *lookups += 1;
        *used += usize::from(calls.iter().any(is_made));
    }
    *detours = *lookups - *used;
    Ok(())
}
