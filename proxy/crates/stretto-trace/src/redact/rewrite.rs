//! Hashes in the place of what is not kept.

use std::collections::{BTreeSet, HashSet};

use aho_corasick::AhoCorasick;
use serde_json::Value;

use super::phrases::Phrases;
use super::walk::{self, Sink};
use super::words::{Piece, pieces, words};
use super::{Options, hash, normal};
use crate::mcp::Log;

/// A forced value shorter than this is replaced as a word, but not inside of longer words:
/// it would be found in nearly all of them.
const SHORTEST_INSIDE: usize = 3;

/// Rewrites logs by what a census found.
#[derive(Debug)]
pub struct Redactor {
    options: Options,
    fields: HashSet<String>,
    kept: HashSet<String>,
    phrases: Phrases,
    forced: HashSet<String>,
    /// The forced values, to be found inside of words.
    inside: Option<AhoCorasick>,
}

/// The different hashes that were put into copies.
#[derive(Clone, Debug, Default)]
pub struct Hashes(HashSet<u64>);

impl Hashes {
    fn add(&mut self, hash: &str) {
        let digits = hash.trim_start_matches("h_");
        self.0.extend(u64::from_str_radix(digits, 16));
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Takes in those of other copies.
    pub fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

impl Redactor {
    pub(super) fn new(
        options: Options,
        fields: HashSet<String>,
        kept: HashSet<String>,
        forced: &HashSet<String>,
        phrases: HashSet<String>,
    ) -> Self {
        let mut by_words = Phrases::default();
        // In order, so that of two values with the same words it is always the same that counts.
        for phrase in BTreeSet::from_iter(phrases) {
            if !kept.contains(&phrase) {
                by_words.add(words(&phrase).map(normal), || hash(&options.salt, &phrase));
            }
        }
        let long: Vec<&String> = forced
            .iter()
            .filter(|value| value.chars().count() >= SHORTEST_INSIDE)
            .collect();
        // The longest of several forced values that begin at a place counts.
        let inside = AhoCorasick::builder()
            .match_kind(aho_corasick::MatchKind::LeftmostLongest)
            .build(&long);
        Self {
            options,
            fields,
            kept,
            phrases: by_words,
            forced: forced.clone(),
            inside: inside.ok().filter(|_| !long.is_empty()),
        }
    }

    /// The log, with hashes in the place of what is not kept, which `hashes` comes to hold. Its
    /// header stays.
    pub fn redact(&self, log: &Log, hashes: &mut Hashes) -> Log {
        let mut rewriter = Rewriter {
            redactor: self,
            hashes,
        };
        walk::log(log, &mut rewriter)
    }

    /// How many different values are kept.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    fn is_kept(&self, normal: &str) -> bool {
        normal.is_empty() || self.kept.contains(normal)
    }
}

/// Appends what stands between words, with each stretch of blanks as one.
fn push_gap(out: &mut String, gap: &str) {
    for character in gap.chars() {
        if !character.is_whitespace() {
            out.push(character);
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
}

struct Rewriter<'r> {
    redactor: &'r Redactor,
    hashes: &'r mut Hashes,
}

impl Rewriter<'_> {
    fn hash(&mut self, normal: &str) -> String {
        let hash = hash(&self.redactor.options.salt, normal);
        self.hashes.add(&hash);
        hash
    }

    fn running_text(&mut self, line: &str) -> String {
        let pieces = pieces(line.trim());
        let words = pieces.iter().filter_map(|piece| match piece {
            Piece::Word(word) => Some(normal(word)),
            Piece::Gap(_) => None,
        });
        let words: Vec<String> = words.collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut out = String::with_capacity(line.len());
        let mut word = 0;
        // Up to here, words belong to a phrase that has been replaced, and so do the gaps
        // between them.
        let mut replaced = 0;
        for piece in &pieces {
            match piece {
                Piece::Gap(_) if (1..replaced).contains(&word) => {}
                Piece::Gap(gap) => push_gap(&mut out, gap),
                Piece::Word(_) if word < replaced => word += 1,
                Piece::Word(text) => {
                    let ahead = words.get(word..).unwrap_or_default();
                    let normal = ahead.first().copied().unwrap_or_default();
                    if let Some((count, becomes)) = self.redactor.phrases.longest(ahead) {
                        out.push_str(becomes);
                        replaced = word + count;
                    } else if self.redactor.is_kept(normal) {
                        out.push_str(&self.without_forced(text, normal));
                    } else {
                        out.push_str(&self.hash(normal));
                    }
                    word += 1;
                }
            }
        }
        out
    }

    /// A word that is kept, but for the forced values inside of it.
    fn without_forced(&mut self, word: &str, normal: &str) -> String {
        let Some(inside) = &self.redactor.inside else {
            return word.to_owned();
        };
        let found: Vec<_> = inside
            .find_iter(normal)
            .map(|found| found.range())
            .collect();
        if found.is_empty() {
            return word.to_owned();
        }
        let mut out = String::new();
        let mut done = 0;
        for range in found {
            out.push_str(normal.get(done..range.start).unwrap_or_default());
            let forced = normal.get(range.clone()).unwrap_or_default().to_owned();
            out.push_str(&self.hash(&forced));
            done = range.end;
        }
        out.push_str(normal.get(done..).unwrap_or_default());
        out
    }

    /// A value that is kept, but for the words of it that are forced.
    fn without_forced_words(&mut self, text: &str) -> String {
        if self.redactor.forced.is_empty() {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        for piece in pieces(text) {
            match piece {
                Piece::Word(word) if self.redactor.forced.contains(&normal(word)) => {
                    out.push_str(&self.hash(&normal(word)));
                }
                Piece::Word(other) | Piece::Gap(other) => out.push_str(other),
            }
        }
        out
    }
}

impl Sink for Rewriter<'_> {
    fn value(&mut self, text: &str, is_forced: bool) -> String {
        let normal = normal(text);
        if is_forced && !normal.is_empty() || !self.redactor.is_kept(&normal) {
            return self.hash(&normal);
        }
        self.without_forced_words(text)
    }

    fn line(&mut self, text: &str) -> String {
        self.running_text(text)
    }

    fn raw_line(&mut self, text: &str) -> String {
        self.running_text(text)
    }

    fn blob(&mut self, data: &str) -> String {
        if data.is_empty() {
            String::new()
        } else {
            self.hash(&normal(data))
        }
    }

    fn is_field(&mut self, name: &str) -> bool {
        !self.redactor.fields.is_empty() && self.redactor.fields.contains(&normal(name))
    }

    fn listed(&mut self, _: &Value) {}
}
