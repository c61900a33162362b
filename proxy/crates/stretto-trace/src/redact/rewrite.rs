//! Hashes in the place of what is not kept.

use std::collections::{BTreeSet, HashMap, HashSet};

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
    /// The hashes that have been used, by normal form.
    hashed: HashMap<String, String>,
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
            hashed: HashMap::new(),
        }
    }

    /// The log, with hashes in the place of what is not kept. Its header stays.
    pub fn redact(&mut self, log: &Log) -> Log {
        walk::log(log, &mut Rewriter { redactor: self })
    }

    /// How many different values have been replaced so far.
    pub fn hashed(&self) -> usize {
        self.hashed.len()
    }

    /// How many different values are kept.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    fn is_kept(&self, normal: &str) -> bool {
        normal.is_empty() || self.kept.contains(normal)
    }

    fn hash(&mut self, normal: &str) -> String {
        if let Some(hash) = self.hashed.get(normal) {
            return hash.clone();
        }
        let hash = hash(&self.options.salt, normal);
        self.hashed.insert(normal.to_owned(), hash.clone());
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
                    if let Some((count, becomes)) = self.phrases.longest(ahead) {
                        out.push_str(becomes);
                        replaced = word + count;
                    } else if self.is_kept(normal) {
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
        let Some(inside) = &self.inside else {
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
        if self.forced.is_empty() {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        for piece in pieces(text) {
            match piece {
                Piece::Word(word) if self.forced.contains(&normal(word)) => {
                    out.push_str(&self.hash(&normal(word)));
                }
                Piece::Word(other) | Piece::Gap(other) => out.push_str(other),
            }
        }
        out
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
    redactor: &'r mut Redactor,
}

impl Sink for Rewriter<'_> {
    fn value(&mut self, text: &str, is_forced: bool) -> String {
        let normal = normal(text);
        if is_forced && !normal.is_empty() || !self.redactor.is_kept(&normal) {
            return self.redactor.hash(&normal);
        }
        self.redactor.without_forced_words(text)
    }

    fn line(&mut self, text: &str) -> String {
        self.redactor.running_text(text)
    }

    fn raw_line(&mut self, text: &str) -> String {
        self.redactor.running_text(text)
    }

    fn blob(&mut self, data: &str) -> String {
        if data.is_empty() {
            String::new()
        } else {
            self.redactor.hash(&normal(data))
        }
    }

    fn is_field(&self, name: &str) -> bool {
        !self.redactor.fields.is_empty() && self.redactor.fields.contains(&normal(name))
    }

    fn listed(&mut self, _: &Value) {}
}
