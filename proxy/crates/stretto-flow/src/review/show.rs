//! A flow in Markdown.

use std::fmt::Write as _;

use stretto_trace::ToolKind;

use super::facts::{self, SiteFacts};
use crate::file::{Favors, Field, FlowFile, Promoted, SourceRef, Tally};
use crate::flow::Flow;
use crate::program;

/// How many of an agent's next steps are listed for a site.
const MOST_NEXT: usize = 4;

/// Everything that a flow holds, in Markdown; `threshold` is the one it would be served with.
pub fn show(flow: &Flow, threshold: f64) -> String {
    let mut page = Page::default();
    let file = flow.file();
    page.provenance(file);
    page.tools(file);
    page.program(file);
    page.sites(flow, threshold);
    page.promotion(file);
    page.bindings(file);
    page.contracts(file);
    page.features(file);
    page.arbiter(file);
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
}

/// A place in results, as it is written.
pub(super) fn place((tool, path): &SourceRef) -> String {
    format!("`{tool}` at `{path}`")
}

impl Page {
    fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    fn heading(&mut self, heading: &str) {
        writeln!(self.text, "\n## {heading}\n").expect("memory takes every write");
    }

    fn provenance(&mut self, file: &FlowFile) {
        self.line(format!("# Flow of {}", file.manifest.domain));
        self.line("");
        let of = &file.provenance;
        self.line(format!(
            "- learned from {} successful sessions of {}",
            of.habit_episodes,
            if of.sources.is_empty() {
                "unknown models".to_owned()
            } else {
                of.sources.join(", ")
            }
        ));
        self.line(format!(
            "- written by stretto {} in format {}",
            of.stretto, file.stretto_flow
        ));
        if let Some(conventions) = &of.conventions {
            self.line(format!("- traced by the conventions {conventions}"));
        }
        self.line(if file.folds.is_empty() {
            "- no arbiter".to_owned()
        } else {
            format!(
                "- an arbiter fitted on {} decisions, which asks {}",
                of.arbiter_cases, file.model
            )
        });
        self.line(if file.reach.is_some() {
            "- reach is counted"
        } else {
            "- reach is not counted: the flow cannot be served with it"
        });
        if let Some(gate) = &file.surprise {
            let quantile = gate
                .quantile
                .map(|quantile| format!(", as {quantile} of the training's sessions"))
                .unwrap_or_default();
            self.line(format!(
                "- a surprise gate: hands back for good above {} nats a step over {}{quantile}",
                gate.threshold, gate.window
            ));
        }
    }

    fn tools(&mut self, file: &FlowFile) {
        self.heading("Tools");
        for (kind, name) in [
            (ToolKind::Read, "lookups"),
            (ToolKind::Write, "writes"),
            (ToolKind::Generic, "of no known kind"),
        ] {
            let tools: Vec<String> = file
                .manifest
                .tools
                .iter()
                .filter(|(_, of)| **of == kind)
                .map(|(tool, _)| format!("`{tool}`"))
                .collect();
            if !tools.is_empty() {
                self.line(format!("- {name}: {}", tools.join(", ")));
            }
        }
    }

    fn program(&mut self, file: &FlowFile) {
        self.heading("Program");
        self.line(if program::is_standard(&file.program) {
            "The standard run."
        } else {
            "**Not the standard run**: read it before you serve it."
        });
        self.line(format!(
            "\n```text\n{}\n```",
            file.program.to_string().trim_end()
        ));
    }

    fn sites(&mut self, flow: &Flow, threshold: f64) {
        self.heading("Sites");
        if flow.file().sites.every_read {
            self.line("Every lookup is on offer after every call.\n");
        }
        let sites = facts::sites(flow, threshold);
        if sites.is_empty() {
            self.line("No lookup ever followed a call.");
            return;
        }
        self.line(format!("| after | lookups, how often next | the agent's next step | the habit alone, at {threshold} |"));
        self.line("|---|---|---|---|");
        for site in &sites {
            let lookups: Vec<String> = site
                .lookups
                .iter()
                .map(|(lookup, count)| format!("`{lookup}` {count}"))
                .collect();
            self.line(format!(
                "| `{}` | {} | {} | {} |",
                site.name,
                lookups.join(", "),
                shares(site),
                site.alone
            ));
        }
    }

    fn promotion(&mut self, file: &FlowFile) {
        if !file.thresholds.is_empty() {
            self.heading("Thresholds of their own");
            for (site, threshold) in &file.thresholds {
                let off = if *threshold > 1.0 {
                    ": switched off"
                } else {
                    ""
                };
                self.line(format!("- after `{site}` {threshold}{off}"));
            }
        }
        self.heading("Promotion");
        let Some(Promoted { bar, sites }) = &file.promoted else {
            self.line("None: every site may act.");
            return;
        };
        self.line(format!(
            "A site acts if at {} a share of {} of its lookups was used, {} at the least, over {} tasks or more.\n",
            bar.threshold, bar.min_used, bar.min_lower, bar.min_tasks
        ));
        self.line("| site | decisions | lookups | used | lower bound | tasks | promoted |");
        self.line("|---|---:|---:|---:|---:|---:|---|");
        for (name, site) in sites {
            self.line(format!(
                "| `{name}` | {} | {} | {} | {:.2} | {} | {} |",
                site.decisions,
                site.lookups,
                site.used,
                site.lower,
                site.tasks,
                if site.promoted { "yes" } else { "no" }
            ));
        }
    }

    fn bindings(&mut self, file: &FlowFile) {
        self.heading("Bindings");
        let bindings = &file.bindings;
        if bindings.args.is_empty() {
            self.line("No lookup was ever called.");
            return;
        }
        self.line("| lookup | argument | comes from |");
        self.line("|---|---|---|");
        let mut orders = Vec::new();
        for lookup in bindings.args.keys() {
            let required: Vec<&str> = bindings.required(lookup).collect();
            if required.is_empty() {
                self.line(format!(
                    "| `{lookup}` | – | nothing: made once in a session |"
                ));
            }
            for arg in required {
                let supplies = facts::supplies(file, lookup, arg);
                let from = if let Some(constant) = &supplies.constant {
                    format!("always `{constant}`")
                } else if supplies.is_nothing() {
                    "no result: the flow never makes this lookup".to_owned()
                } else {
                    let of = supplies.values;
                    let lists = if supplies.is_list { " as a list" } else { "" };
                    let from = supplies.sources.iter();
                    let from: Vec<String> = from
                        .map(|(source, n)| format!("{} {n} of {of}{lists}", place(source)))
                        .collect();
                    from.join(", ")
                };
                self.line(format!("| `{lookup}` | `{arg}` | {from} |"));
                for (site, order) in facts::orders(file, lookup, arg) {
                    let order: Vec<String> = order.iter().map(place).collect();
                    orders.push(format!(
                        "- `{arg}` of `{lookup}` after `{site}`: {}",
                        order.join(", then ")
                    ));
                }
            }
        }
        self.chances(file);
        if !orders.is_empty() {
            self.line("\nWhere to look first:\n");
            for order in orders {
                self.line(order);
            }
        }
        let optional: Vec<String> = bindings
            .constants
            .iter()
            .filter(|((lookup, arg), _)| bindings.required(lookup).all(|required| required != arg))
            .map(|((lookup, arg), value)| format!("- `{arg}` of `{lookup}`: always `{value}`"))
            .collect();
        if !optional.is_empty() {
            self.line("\nFurther arguments that are passed:\n");
            for constant in optional {
                self.line(constant);
            }
        }
    }

    /// How far picks can be trusted.
    fn chances(&mut self, file: &FlowFile) {
        let bindings = &file.bindings;
        let mut columns = vec![("not mentioned", None), ("mentioned", None)];
        if !bindings.named_other.is_empty() {
            columns.push(("another named", Some(&bindings.named_other)));
        }
        if !bindings.described_read.is_empty() {
            columns.push(("described, and read", Some(&bindings.described_read)));
        }
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        self.line("\nThe chance that arguments are the agent's own, by what the customer had said of the values:\n");
        self.line(format!("| lookup | {} |", names.join(" | ")));
        self.line(format!("|---|{}", "---:|".repeat(names.len())));
        for lookup in bindings.args.keys() {
            let [unmentioned, mentioned] = bindings.agreed.get(lookup).copied().unwrap_or_default();
            let mut cells = vec![
                chance(unmentioned.smooth(), unmentioned),
                chance(mentioned.smooth(), mentioned),
            ];
            for counted in columns.iter().filter_map(|(_, counted)| *counted) {
                cells.push(counted.get(lookup).map_or_else(
                    || "–".to_owned(),
                    |tally| chance(tally.against(unmentioned.smooth()), *tally),
                ));
            }
            self.line(format!("| `{lookup}` | {} |", cells.join(" | ")));
        }
        for (lookup, bare) in &bindings.bare {
            let calls = bindings.args.get(lookup).map_or(0, |(calls, _)| *calls);
            let tally = Tally(*bare, calls);
            self.line(format!(
                "\n`{lookup}` without arguments: {}",
                chance(tally.smooth(), tally)
            ));
        }
    }

    fn contracts(&mut self, file: &FlowFile) {
        if file.contracts.is_empty() {
            return;
        }
        self.heading("Pinned contracts");
        for (tool, contract) in &file.contracts {
            let contract = if contract.is_empty() {
                "no arguments"
            } else {
                contract
            };
            self.line(format!("- `{tool}`: {contract}"));
        }
    }

    fn features(&mut self, file: &FlowFile) {
        if file.map.fields.is_empty() {
            return;
        }
        self.heading("Features");
        for (tool, fields) in &file.map.fields {
            let fields: Vec<String> = fields.iter().map(field).collect();
            let ids = file.map.ids.keys().filter(|(of, _)| of == tool).count();
            self.line(format!(
                "- `{tool}`: {}; {ids} combinations",
                fields.join(", ")
            ));
        }
    }

    fn arbiter(&mut self, file: &FlowFile) {
        if file.folds.is_empty() {
            return;
        }
        self.heading("Arbiter");
        self.line("| weight of | mean over folds |");
        self.line("|---|---:|");
        for (name, weight) in mean_weights(file) {
            self.line(format!("| {name} | {weight:.3} |"));
        }
        self.line("\nIts record, in the first fold's fit:\n");
        self.line("| site | decisions | model agreed | agent's step on offer |");
        self.line("|---|---:|---:|---:|");
        let rates = &file.folds[0].rates;
        for (site, record) in &rates.sites {
            self.line(format!(
                "| `{site}` | {} | {} | {} |",
                record.0, record.1, record.2
            ));
        }
        self.line(format!(
            "| all | | {:.2} | {:.2} |",
            rates.agree, rates.cover
        ));
        for predicate in &file.predicates {
            let weighed = if file.weighed.contains(predicate) {
                ""
            } else {
                ", not weighed"
            };
            self.line(format!(
                "\n**{}**, for {}{weighed}: {}\n",
                predicate.id,
                favors(&predicate.favors),
                predicate.question
            ));
            self.line(format!("- yes: {}", predicate.yes));
            self.line(format!("- no: {}", predicate.no));
        }
    }
}

/// What the agent did next: the most frequent steps, of how many.
pub(super) fn shares(site: &SiteFacts) -> String {
    if site.total <= 0.0 {
        return "never seen".to_owned();
    }
    let shares = site.next.iter().take(MOST_NEXT);
    let shares: Vec<String> = shares
        .map(|(next, count)| format!("`{next}` {:.0}%", 100.0 * count / site.total))
        .collect();
    format!("{} of {}", shares.join(", "), site.total)
}

fn chance(chance: f64, Tally(agreed, tried): Tally) -> String {
    format!("{chance:.2} ({agreed}/{tried})")
}

fn field(field: &Field) -> String {
    match field {
        Field::Scalar(path) => format!("the value of `{path}`"),
        Field::Len(path) if path.is_empty() => "the number of elements".to_owned(),
        Field::Len(path) => format!("the number of elements of `{path}`"),
    }
}

fn favors(favors: &Favors) -> String {
    match favors {
        Favors::SameLookup => "the same lookup".to_owned(),
        Favors::AnyLookup => "any lookup".to_owned(),
        Favors::HandBack => "handing back".to_owned(),
        Favors::Lookup(tool) => format!("`{tool}`"),
    }
}

/// Each weight's name, with its mean over the folds.
#[expect(clippy::cast_precision_loss, reason = "there are five folds")]
pub(super) fn mean_weights(file: &FlowFile) -> Vec<(String, f64)> {
    let mut names: Vec<String> = [
        "the habit",
        "the model's next step",
        "the model's split answers",
        "handing back",
    ]
    .map(str::to_owned)
    .into();
    names.extend(
        file.weighed
            .iter()
            .map(|predicate| format!("`{}`", predicate.id)),
    );
    names.push("the model's pick, by its record".to_owned());
    let folds = file.folds.len() as f64;
    let mean = |index: usize| file.folds.iter().map(|fit| fit.weights[index]).sum::<f64>() / folds;
    if file.folds.is_empty() {
        return Vec::new();
    }
    names
        .into_iter()
        .enumerate()
        .map(|(index, name)| (name, mean(index)))
        .collect()
}
