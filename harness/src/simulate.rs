//! A lab for active mode: the same customers, served by the same agent, with each of its switches
//! in turn.
//!
//! ```text
//!   seed ──► customer, agent's habits ─┐
//!                                      ├──► agent ──► stretto-proxy ──► shop, which keeps state
//!   other seeds ──► logs ──► a flow ───┘                  │
//!                    minds ──► model, which errs ─────────┤
//!                                                         └── off, shadow, explore, habit, reach,
//!                                                             arbiter, guards, judge
//! ```
//!
//! Every arm plays the same sessions, so what differs between two arms is what the switch does. The
//! shop's own records, as they are at each write, are the truth that refusals are judged by.

mod agent;
mod customer;
mod draws;
mod interval;
mod lesson;
mod mind;
mod model;
mod plot;
mod report;
mod server;
mod session;
mod shop;

use std::ffi::OsString;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use anyhow::Context as _;
use clap::ValueEnum;

pub use agent::Counts;
pub use interval::Interval;
pub use report::{ArmReport, Report};
pub use server::{SHOP_SERVER, shop_server};

pub(crate) use draws::Draws;
use model::Model;
use session::{Bench, Job, Outcome};

/// How long the shop takes for each call, in milliseconds, so that lookups have their price.
const CALL_MS: u64 = 20;

/// The flow that the arms serve, and the same with an arbiter.
const FLOW: &str = "lab.flow.json";
const FLOW_WITH_ARBITER: &str = "lab-arbiter.flow.json";

/// How often the exploring flow takes another lookup than its rule's, where there is one.
const EXPLORES: &str = "0.2";

/// A way to run the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Arm {
    /// Only recording: what the other arms are held against.
    Off,
    /// The flow decides and looks nothing up.
    Shadow,
    /// The same, and now and then it decides for another lookup than its rule's, so that other rules
    /// can be judged by its log.
    Explore,
    /// The flow looks up what usually came next.
    Habit,
    /// The flow looks up what usually came before the next write.
    Reach,
    /// The flow looks up what its arbiter expects, which asks a model.
    Arbiter,
    /// Writes are held against the policy.
    Guards,
    /// A model is asked, too, whether the customer agreed to each write.
    Judge,
}

impl Arm {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 8] = [
        Self::Off,
        Self::Shadow,
        Self::Explore,
        Self::Habit,
        Self::Reach,
        Self::Arbiter,
        Self::Guards,
        Self::Judge,
    ];

    /// Those that are worth comparing: all but [`Self::Explore`], which to its customers is another
    /// [`Self::Shadow`].
    pub const USUAL: [Self; 7] = [
        Self::Off,
        Self::Shadow,
        Self::Habit,
        Self::Reach,
        Self::Arbiter,
        Self::Guards,
        Self::Judge,
    ];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Shadow => "shadow",
            Self::Explore => "explore",
            Self::Habit => "habit",
            Self::Reach => "reach",
            Self::Arbiter => "arbiter",
            Self::Guards => "guards",
            Self::Judge => "judge",
        }
    }

    /// Whether it serves a flow.
    fn has_flow(self) -> bool {
        matches!(
            self,
            Self::Shadow | Self::Explore | Self::Habit | Self::Reach | Self::Arbiter
        )
    }

    /// Whether its flow decides and looks nothing up.
    fn is_shadow(self) -> bool {
        matches!(self, Self::Shadow | Self::Explore)
    }

    /// Whether it asks a model.
    fn asks(self) -> bool {
        matches!(self, Self::Arbiter | Self::Judge)
    }

    /// The proxy's options in this arm, with the flows of `folder` and the session's own folder.
    fn options(self, flows: &Path, own: &Path) -> Vec<OsString> {
        let with_flow = |file: &str, words: &[&str]| {
            let mut options = vec!["--flow".into(), flows.join(file).into()];
            options.extend(words.iter().map(OsString::from));
            options
        };
        let flow = |words: &[&str]| with_flow(FLOW, words);
        let cache = ["--oracle-cache".into(), own.join("cache").into()];
        match self {
            Self::Off => Vec::new(),
            Self::Shadow => flow(&["--flow-decider", "reach", "--flow-shadow"]),
            Self::Explore => flow(&[
                "--flow-decider",
                "reach",
                "--flow-shadow",
                "--flow-explore",
                EXPLORES,
            ]),
            Self::Habit => flow(&["--flow-decider", "habit"]),
            Self::Reach => flow(&["--flow-decider", "reach"]),
            Self::Arbiter => {
                let mut options = with_flow(FLOW_WITH_ARBITER, &["--flow-decider", "arbiter"]);
                options.extend(cache);
                options
            }
            Self::Guards => vec!["--guards".into()],
            Self::Judge => {
                let recommended = [
                    "--guards",
                    "--confirm-judge",
                    "enforce",
                    "--confirm-second",
                    "proposed",
                    "--confirm-second-shadow",
                ];
                let mut options: Vec<OsString> = recommended.map(OsString::from).into();
                options.extend(cache);
                options
            }
        }
    }
}

/// An experiment.
#[derive(Clone, Debug)]
pub struct Lab {
    /// The proxy to run.
    pub proxy: PathBuf,
    /// The program that serves the shop when its first word is [`SHOP_SERVER`].
    pub shop: PathBuf,
    /// The arms. `off` is played whether it is named or not, since all others are compared with it.
    pub arms: Vec<Arm>,
    /// How many sessions each arm plays.
    pub sessions: NonZeroUsize,
    /// How many sessions, of other seeds, the flow is learned from.
    pub lessons: NonZeroUsize,
    /// The seed of everything.
    pub seed: u64,
    /// How many sessions are played at a time. They mostly wait.
    pub jobs: NonZeroUsize,
}

impl Lab {
    /// Plays everything and reports. Logs and the flow are written to `folder`, which must be
    /// empty or not there; `tick` is told, after each session, how many of how many were played.
    ///
    /// # Errors
    ///
    /// A session could not be played to its end, the shop's state was not what its calls make of
    /// it, there was nothing to learn from, or a file cannot be written.
    pub fn run(
        &self,
        folder: &Path,
        tick: &(dyn Fn(usize, usize) + Sync),
    ) -> anyhow::Result<Report> {
        let arms: Vec<Arm> = Arm::ALL
            .into_iter()
            .filter(|arm| *arm == Arm::Off || self.arms.contains(arm))
            .collect();
        let teaches = arms.iter().any(|arm| arm.has_flow());
        let lessons = if teaches { self.lessons.get() } else { 0 };
        let total = lessons + arms.len() * self.sessions.get();
        let done = AtomicUsize::new(0);
        let tick = || tick(done.fetch_add(1, Ordering::Relaxed) + 1, total);
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;

        let model = Model::start().context("starting the lab's model")?;
        let lesson_jobs: Vec<Job> = (0..lessons)
            .map(|number| Job {
                seed: self.seed_of("lesson", number),
                task: format!("lesson-{number}"),
                options: Vec::new(),
                asks: false,
                folder: folder.join(format!("lessons/{number:04}")),
            })
            .collect();
        let taught = self.play_all(&lesson_jobs, &model, &tick)?;
        if teaches {
            lesson::write_outcomes(&taught, &folder.join("lessons"))?;
            let lessons = lesson::read(&taught)?;
            let flow = lessons.flow()?;
            lesson::write(&flow, &folder.join(FLOW))?;
            if arms.contains(&Arm::Arbiter) {
                let flow = lessons.with_arbiter(&flow)?;
                lesson::write(&flow, &folder.join(FLOW_WITH_ARBITER))?;
            }
        }

        // Session by session through the arms, so that whatever slows the machine slows all of them.
        let mut jobs = Vec::new();
        for number in 0..self.sessions.get() {
            jobs.extend(arms.iter().map(|arm| {
                let own = folder.join(format!("{}/{number:04}", arm.name()));
                Job {
                    seed: self.seed_of("session", number),
                    task: format!("session-{number}"),
                    options: arm.options(folder, &own),
                    asks: arm.asks(),
                    folder: own,
                }
            }));
        }
        let played = self.play_all(&jobs, &model, &tick)?;
        let mut by_arm: Vec<(Arm, Vec<Outcome>)> =
            arms.iter().map(|arm| (*arm, Vec::new())).collect();
        for (place, mut outcome) in played.into_iter().enumerate() {
            let arms = by_arm.len();
            let (arm, outcomes) = &mut by_arm[place % arms];
            if arm.is_shadow() {
                lesson::count_shadow(&mut outcome)?;
            }
            outcomes.push(outcome);
        }
        for (arm, outcomes) in &by_arm {
            lesson::write_outcomes(outcomes, &folder.join(arm.name()))?;
        }
        Ok(Report::new(self, lessons, &by_arm))
    }

    fn seed_of(&self, purpose: &str, number: usize) -> u64 {
        Draws::new(self.seed, purpose, number as u64).next()
    }

    /// Plays sessions side by side; what came of them is in their order.
    fn play_all(
        &self,
        jobs: &[Job],
        model: &Model,
        tick: &(dyn Fn() + Sync),
    ) -> anyhow::Result<Vec<Outcome>> {
        let bench = Bench {
            model,
            proxy: &self.proxy,
            shop: &self.shop,
            call_ms: CALL_MS,
        };
        let next = AtomicUsize::new(0);
        let is_over = AtomicBool::new(false);
        let outcomes = Mutex::new(Vec::with_capacity(jobs.len()));
        thread::scope(|scope| {
            for _ in 0..self.jobs.get().min(jobs.len()) {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        let Some(job) = jobs.get(place) else { return };
                        let outcome = bench.play(job);
                        if outcome.is_err() {
                            is_over.store(true, Ordering::Relaxed);
                        }
                        if let Ok(mut outcomes) = outcomes.lock() {
                            outcomes.push((place, outcome));
                        }
                        tick();
                    }
                });
            }
        });
        let mut outcomes = outcomes.into_inner().unwrap_or_default();
        outcomes.sort_by_key(|(place, _)| *place);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }
}
