//! What others wait for while the proxy acts: messages beside a judge that thinks, and results
//! that wait for a flow's lookups.
//!
//! ```text
//! cargo bench -p stretto-proxy --bench active [-- judge|lookups]
//! ```
//!
//! Whatever is compared takes turns, call by call, so that what else the machine does hits both.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measurement that cannot go on has failed, and its table is its result"
)]

mod judge;
mod lookups;
mod session;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |part: &str| {
        let named = |word: &String| word == "judge" || word == "lookups";
        !words.iter().any(named) || words.iter().any(|word| word == part)
    };
    if is_wanted("judge") {
        judge::measure();
    }
    if is_wanted("lookups") {
        lookups::measure();
    }
}
