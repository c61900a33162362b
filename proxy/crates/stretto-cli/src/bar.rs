//! A bar that shows how far long work has come, on a terminal; elsewhere it is silent.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on stderr.
pub(crate) fn new() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    bar
}

/// Shows that `done` of `all` is done of what `phrase` says.
pub(crate) fn show(bar: &ProgressBar, phrase: &'static str, done: usize, all: usize) {
    if bar.is_hidden() {
        return;
    }
    if bar.message() != phrase {
        bar.set_message(phrase);
        bar.reset_eta();
    }
    bar.set_length(all as u64);
    bar.set_position(done as u64);
}
