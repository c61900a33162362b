//! `stretto flow-show` and `stretto flow-diff`: flows as people read them.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use stretto_flow::{Flow, diff, show};

use crate::screen::{Screen, Voice, one_line};

/// What `flow-diff` returns when something needs a review.
const NEEDS_REVIEW: u8 = 1;

/// What `flow-diff` returns when it could not compare.
const NOT_COMPARED: u8 = 2;

/// Arguments of `stretto flow-show`.
#[derive(Debug, clap::Args)]
#[group(id = "flow-show", skip)]
pub struct ShowArgs {
    /// A flow
    flow: PathBuf,
    /// The threshold that it would be served with
    #[arg(long, value_name = "P", default_value_t = 0.3)]
    threshold: f64,
}

/// Arguments of `stretto flow-diff`.
#[derive(Debug, clap::Args)]
#[group(id = "flow-diff", skip)]
#[command(after_help = "\
Exit codes:
  0  nothing needs a review
  1  something does: the new flow may do what the old one did not
  2  the flows could not be compared")]
pub struct DiffArgs {
    /// The flow that is served now
    old: PathBuf,
    /// The flow that would be
    new: PathBuf,
    /// How far shares, chances and weights may move without being listed
    #[arg(long, value_name = "DIFFERENCE", default_value_t = 0.05)]
    tolerance: f64,
    /// The threshold that they would be served with
    #[arg(long, value_name = "P", default_value_t = 0.3)]
    threshold: f64,
}

/// Shows a flow in Markdown.
///
/// # Errors
///
/// The flow cannot be loaded, or the screen not be written to.
pub fn run_show(args: &ShowArgs, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let flow = Flow::load(&args.flow)?;
    write_page(screen, &show(&flow, args.threshold))?;
    Ok(ExitCode::SUCCESS)
}

/// Shows what changed from one flow to another, in Markdown.
///
/// # Errors
///
/// The screen cannot be written to. A flow that cannot be loaded is told on stderr, and in
/// the exit code: 1 has a meaning of its own here.
pub fn run_diff(args: &DiffArgs, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let (old, new) = match (Flow::load(&args.old), Flow::load(&args.new)) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(error), _) | (_, Err(error)) => {
            Voice::stderr().say(&one_line(&error.into()));
            return Ok(ExitCode::from(NOT_COMPARED));
        }
    };
    let changed = diff(&old, &new, args.tolerance, args.threshold);
    write_page(screen, &changed.markdown())?;
    let needs_review = changed.to_review().next().is_some();
    Ok(if needs_review {
        ExitCode::from(NEEDS_REVIEW)
    } else {
        ExitCode::SUCCESS
    })
}

/// Writes a page line by line, so that nothing a flow holds steers the terminal.
fn write_page(screen: &mut Screen, page: &str) -> std::io::Result<()> {
    for line in page.lines() {
        writeln!(screen, "{}", crate::screen::safe(line))?;
    }
    Ok(())
}
