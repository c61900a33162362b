//! The audits as Markdown.

use std::fmt::Write as _;

use stretto_guards::confirm::{Judge, Second};

use super::audit::{Audit, Counts, Example};
use crate::screen::safe;

/// A section per domain: the counts, and examples of where the word list and the judge differ.
pub(super) fn markdown(audits: &[Audit], judge: &Judge) -> String {
    let mut text = String::from("# Confirmation judge on recorded sessions\n");
    introduce(&mut text, judge).expect("memory takes every write");
    if audits.is_empty() {
        text.push_str("\nNo session has a write that a confirmation is asked of.\n");
    }
    for audit in audits {
        section(&mut text, audit, judge.second).expect("memory takes every write");
    }
    text
}

fn introduce(text: &mut String, judge: &Judge) -> std::fmt::Result {
    write!(
        text,
        "\nA write fails when the probability that the customer agreed to it is below {}",
        judge.threshold
    )?;
    match judge.second {
        Some(Second::Proposed) => text.push_str(", or that the agent had proposed it"),
        Some(Second::Described) => text.push_str(", or that the agent had described it"),
        None => {}
    }
    text.push_str(". Writes that an enforced rule refuses are not judged.\n");
    Ok(())
}

fn section(text: &mut String, audit: &Audit, second: Option<Second>) -> std::fmt::Result {
    writeln!(text, "\n## {}\n", audit.domain)?;
    text.push_str(
        "| Writes | Count | Word list fails | Judge fails | Either question fails | Word list and \
         judge fail | Unanswered |\n|---|---|---|---|---|---|---|\n",
    );
    for (name, counts) in [
        ("accepted, successful sessions", audit.successful),
        ("accepted, failed sessions", audit.failed),
        ("refused", audit.refused),
    ] {
        let Counts {
            writes,
            word_list,
            judge,
            two_questions,
            both,
            unanswered,
        } = counts;
        let two_questions = if_asked(second, two_questions.to_string());
        writeln!(
            text,
            "| {name} | {writes} | {word_list} | {judge} | {two_questions} | {both} | {unanswered} |"
        )?;
    }
    let pair = |[successful, failed]: [usize; 2]| format!("{successful} / {failed}");
    let episodes = &audit.episodes;
    writeln!(
        text,
        "| sessions with such an accepted write, successful / failed | | {} | {} | {} | {} | |",
        pair(episodes.word_list),
        pair(episodes.judge),
        if_asked(second, pair(episodes.two_questions)),
        pair(episodes.both),
    )?;
    for (heading, examples) in [
        (
            "The judge fails what the word list passes",
            &audit.examples.judge,
        ),
        (
            "The word list fails what the judge passes",
            &audit.examples.word_list,
        ),
        ("Only the second question fails", &audit.examples.second),
    ] {
        if !examples.is_empty() {
            writeln!(text, "\n{heading}:\n")?;
            for example in examples {
                writeln!(text, "{}", safe(&line(example)))?;
            }
        }
    }
    Ok(())
}

fn line(example: &Example) -> String {
    let p =
        |field: &str, p: Option<f64>| p.map(|p| format!(", {field} {p:.2}")).unwrap_or_default();
    format!(
        "- task {}, `{}`{}{}, {}: {}",
        example.task,
        example.tool,
        p("p_yes", example.p_yes),
        p("p_second", example.p_second),
        if example.success {
            "successful"
        } else {
            "failed"
        },
        example.reply
    )
}

fn if_asked(second: Option<Second>, count: String) -> String {
    if second.is_some() {
        count
    } else {
        "–".to_owned()
    }
}
