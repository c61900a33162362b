//! A flow's run as a program: decide, look up, decide again.
//!
//! The program is data in the flow, in the format of the crate `fugue-ppl`. It can call
//! two distributions and nothing else: `Decide(prev, failed)`, over handing back and all
//! lookups, and `Outcome(d)`, whether the lookup succeeds.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use fugue::program::{
    Arity, CompiledProgram, Data, Expr, HostDist, Program, ProgramError, Registry, SiteType, Stmt,
};
use fugue::{Bernoulli, Categorical, WithMeta, beta_posterior, dirichlet_predictive};

use crate::file::FlowFile;
use crate::step::{Followed, Vocabulary};

/// The standard run, as text.
pub const STANDARD_RUN: &str = r#"let prev = call;
let failed = call_failed;
for i in 0..max_lookups {
    let d <- sample(addr!("decide", i), Decide(prev, failed));
    if d == 0 {
        break;
    }
    let ok <- sample(addr!("outcome", i), Outcome(d));
    prev = d;
    failed = !ok;
}
pure(prev)
"#;

static STANDARD: LazyLock<Program> =
    LazyLock::new(|| Program::parse(STANDARD_RUN).expect("the standard run is well-formed"));

/// The standard run, which every learned flow has.
pub fn standard() -> Program {
    STANDARD.clone()
}

/// Whether a program is the standard run.
pub fn is_standard(program: &Program) -> bool {
    *program == *STANDARD
}

/// Compiles a flow's program as every run will, to find what is wrong with it.
pub(crate) fn check(program: &Program) -> Result<(), String> {
    let mut registry = Registry::empty();
    for (name, site, arguments) in [DECIDE, OUTCOME] {
        // Compiling asks for names and arguments only.
        registry.register_distribution(name, site, arguments, |_| Err(String::new()));
    }
    program
        .compile(&registry, &data(0, false, 0))
        .map_err(|error| error.to_string())?;
    check_loops(&program.body)
}

/// How often a loop may go round that asks nothing.
const MOST_ROUNDS: i64 = 1000;

/// Checks that every loop asks something each time round, so that a run can be ended there,
/// or goes round a few times only.
fn check_loops(body: &[Stmt]) -> Result<(), String> {
    for statement in body {
        match statement {
            Stmt::For {
                var,
                start,
                end,
                body,
            } => {
                let rounds = match (start, end) {
                    (Expr::Int { value: start }, Expr::Int { value: end }) => {
                        end.saturating_sub(*start)
                    }
                    _ => i64::MAX,
                };
                if !(asks(body) || rounds <= MOST_ROUNDS && !has_loops(body)) {
                    return Err(format!(
                        "the loop over `{var}` may go round for ever, asking nothing"
                    ));
                }
                check_loops(body)?;
            }
            Stmt::If {
                then_branch,
                else_branch,
                ..
            } => {
                check_loops(then_branch)?;
                check_loops(else_branch)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether some site or factor is come to each time, unless a loop is left before.
fn asks(body: &[Stmt]) -> bool {
    body.iter().any(|statement| match statement {
        Stmt::Sample { .. } | Stmt::Observe { .. } | Stmt::Factor { .. } => true,
        Stmt::If {
            then_branch,
            else_branch,
            ..
        } => asks(then_branch) && asks(else_branch),
        _ => false,
    })
}

fn has_loops(body: &[Stmt]) -> bool {
    body.iter().any(|statement| match statement {
        Stmt::For { .. } => true,
        Stmt::If {
            then_branch,
            else_branch,
            ..
        } => has_loops(then_branch) || has_loops(else_branch),
        _ => false,
    })
}

/// The decision's distribution: after which call, and whether that failed.
const DECIDE: (&str, SiteType, Arity) = ("Decide", SiteType::Usize, Arity::Exact(2));

/// The outcome's distribution: of which lookup.
const OUTCOME: (&str, SiteType, Arity) = ("Outcome", SiteType::Bool, Arity::Exact(1));

fn data(call: usize, failed: bool, max_lookups: u32) -> Data {
    Data::new()
        .with("call", call)
        .with("call_failed", failed)
        .with("max_lookups", i64::from(max_lookups))
}

/// What a program's distributions are made of.
#[derive(Debug)]
pub(crate) struct Statistics {
    file: Arc<FlowFile>,
    vocabulary: Vocabulary,
    /// Each tool by its number; 0 is handing back and has no name.
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    /// How many numbers, from 1 on, are of lookups.
    reads: usize,
    pub(crate) followed: Followed,
}

/// What a decision of a program is about.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// The numbers of the lookups on offer.
    pub(crate) offered: Arc<[usize]>,
}

/// What an outcome of a program is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lookup;

/// A decision's distribution, as handlers find it.
pub(crate) type Decide = WithMeta<Categorical, Site>;

/// An outcome's distribution, as handlers find it.
pub(crate) type Outcome = WithMeta<Bernoulli, Lookup>;

impl Statistics {
    pub(crate) fn new(file: Arc<FlowFile>, vocabulary: Vocabulary) -> Self {
        let mut names = vec![String::new()];
        let mut numbers = HashMap::new();
        let mut reads = 0;
        for (index, tool) in file
            .sites
            .reads
            .iter()
            .chain(file.manifest.tools.keys())
            .enumerate()
        {
            if !numbers.contains_key(tool) {
                numbers.insert(tool.clone(), names.len());
                names.push(tool.clone());
            }
            if index < file.sites.reads.len() {
                reads = names.len() - 1;
            }
        }
        let followed = Followed::new(&file.habit.base);
        Self {
            file,
            vocabulary,
            names,
            numbers,
            reads,
            followed,
        }
    }

    /// The number of a tool; one that is not known gets the next.
    fn number(&self, tool: &str) -> usize {
        self.numbers.get(tool).copied().unwrap_or(self.names.len())
    }

    /// The name of a lookup, by its number.
    pub(crate) fn lookup(&self, number: usize) -> Option<&str> {
        if number == 0 || number > self.reads {
            return None;
        }
        self.names.get(number).map(String::as_str)
    }

    fn name<'a>(&'a self, number: usize, stranger: Option<&'a str>) -> Result<&'a str, String> {
        match (self.names.get(number), stranger) {
            (Some(name), _) if number > 0 => Ok(name),
            (None, Some(name)) if number == self.names.len() => Ok(name),
            _ => Err(format!("{number} is the number of no tool")),
        }
    }

    /// The distribution over what follows a call.
    fn decide(
        &self,
        number: usize,
        failed: bool,
        stranger: Option<&str>,
    ) -> Result<Decide, String> {
        let tool = self.name(number, stranger)?;
        let action = self.vocabulary.tool(tool);
        let lookups = self.file.sites.lookups(tool, failed);
        let offered: Arc<[usize]> = lookups
            .into_iter()
            .filter_map(|lookup| self.numbers.get(lookup).copied())
            .filter(|number| *number <= self.reads)
            .collect();
        let count = |number: &usize| {
            self.followed
                .count(action, failed, self.vocabulary.tool(&self.names[*number]))
        };
        let counts: Vec<f64> = offered.iter().map(count).collect();
        let others = self.followed.total(action, failed) - counts.iter().sum::<f64>();
        let mut probabilities = vec![0.0; self.reads + 1];
        if offered.is_empty() {
            probabilities[0] = 1.0;
        } else {
            let whole: Vec<u64> = std::iter::once(others)
                .chain(counts)
                .map(whole_count)
                .collect();
            let predicted = dirichlet_predictive(&vec![1.0; whole.len()], &whole)
                .map_err(|error| error.to_string())?;
            for (number, chance) in std::iter::once(&0).chain(&*offered).zip(predicted) {
                probabilities[*number] = chance;
            }
        }
        let chances = Categorical::new(probabilities).map_err(|error| error.to_string())?;
        Ok(WithMeta::new(chances, Site { offered }))
    }

    /// The distribution of whether a call succeeds.
    fn outcome(&self, number: usize) -> Result<Outcome, String> {
        let action = self.vocabulary.tool(self.name(number, None)?);
        let succeeded = whole_count(self.followed.total(action, false));
        let failed = whole_count(self.followed.total(action, true));
        let (for_it, against) =
            beta_posterior(1.0, 1.0, succeeded, failed).map_err(|error| error.to_string())?;
        let chance =
            Bernoulli::new(for_it / (for_it + against)).map_err(|error| error.to_string())?;
        Ok(WithMeta::new(chance, Lookup))
    }
}

/// A count as a whole number; counts may be weighted.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast of a float saturates, and below zero counts as none"
)]
fn whole_count(count: f64) -> u64 {
    count.max(0.0).round() as u64
}

/// The two distributions. `stranger` is a tool that the flow does not know, when the run
/// follows a call of one.
fn registry(statistics: &Arc<Statistics>, stranger: Option<&str>) -> Registry {
    let mut registry = Registry::empty();
    let (to_decide, stranger) = (Arc::clone(statistics), stranger.map(str::to_owned));
    let (name, site, arguments) = DECIDE;
    registry.register_distribution(name, site, arguments, move |args| {
        let number = args[0].as_usize().ok_or("Decide: the tool is a number")?;
        let failed = args[1]
            .as_bool()
            .ok_or("Decide: `failed` is true or false")?;
        let decide = to_decide.decide(number, failed, stranger.as_deref())?;
        Ok(HostDist::Usize(Box::new(decide)))
    });
    let to_look_up = Arc::clone(statistics);
    let (name, site, arguments) = OUTCOME;
    registry.register_distribution(name, site, arguments, move |args| {
        let number = args[0].as_usize().ok_or("Outcome: the tool is a number")?;
        Ok(HostDist::Bool(Box::new(to_look_up.outcome(number)?)))
    });
    registry
}

/// Compiles a program for the run after one call.
pub(crate) fn compile(
    program: &Program,
    statistics: &Arc<Statistics>,
    call: &str,
    failed: bool,
    max_lookups: u32,
) -> Result<CompiledProgram, ProgramError> {
    let number = statistics.number(call);
    let stranger = (number == statistics.names.len()).then_some(call);
    let data = data(number, failed, max_lookups);
    program.compile(&registry(statistics, stranger), &data)
}
