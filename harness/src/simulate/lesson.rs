//! Learning the flow that the arms serve, from sessions that the lab itself recorded.

use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;
use stretto_flow::{LearnOptions, Session, Surroundings, learn};
use stretto_trace::mcp::{Tools, episode_with_answered, read_log};

use super::agent::Counts;
use super::session::Outcome;

/// Learns a flow and writes it to `file`. Only sessions in which no harm was done teach.
pub(crate) fn teach(sessions: &[Outcome], file: &Path) -> anyhow::Result<()> {
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
        episode.reward = if outcome.counts.harm == 0 { 1.0 } else { 0.0 };
        recorded.push(Session {
            episode,
            answered_before,
        });
    }
    let surroundings = Surroundings {
        manifest: tools.manifest("retail"),
        contracts: tools.contracts().clone(),
    };
    let sessions: Vec<&Session> = recorded.iter().collect();
    let flow = learn(
        &sessions,
        &surroundings,
        &LearnOptions::default(),
        &mut |_, _, _| {},
    )
    .context("learning a flow from the recorded sessions")?;
    std::fs::write(file, flow.to_text()).with_context(|| format!("writing {}", file.display()))
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
    let text =
        std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
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
