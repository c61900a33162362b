//! The text that a session held so far, and whether a value is in it.
//!
//! The text only grows, and may grow to many megabytes, while most values that are looked for
//! are not in it. Two things keep that from costing a search through everything each time:
//!
//! - Pieces of the text are noted in a filter. A value with a piece that was never noted is not
//!   in the text. The filter is filled when it is first asked, and so costs nothing in the many
//!   sessions in which it never is.
//! - A value that was found stays found.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use memchr::memmem;

/// Text that can be asked for values.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    text: String,
    found: HashSet<String>,
    filter: Option<Box<Filter>>,
}

impl Known {
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Whether `value` is in the text.
    pub(super) fn contains(&mut self, value: &str) -> bool {
        if self.found.contains(value) {
            return true;
        }
        if !self.may_contain(value) || !search(self.text.as_bytes(), value.as_bytes()) {
            return false;
        }
        self.found.insert(value.to_owned());
        true
    }

    /// All of it.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn may_contain(&mut self, value: &str) -> bool {
        if self.text.len() < LITTLE {
            return true;
        }
        let filter = self.filter.get_or_insert_default();
        filter.note(self.text.as_bytes());
        filter.may_contain(value.as_bytes())
    }
}

/// Less text than this is searched before a filter would be filled.
const LITTLE: usize = 16 * 1024;

/// Searches both ends first: most values that come again were seen just now, or at the start.
fn search(text: &[u8], value: &[u8]) -> bool {
    const END: usize = 64 * 1024;
    let finder = memmem::Finder::new(value);
    let first = text.get(..END).unwrap_or(text);
    let last = text.get(text.len().saturating_sub(END)..).unwrap_or(text);
    finder.find(first).is_some()
        || (text.len() > END && (finder.find(last).is_some() || finder.find(text).is_some()))
}

/// Which pieces a text has: all of two bytes exactly, and of four and of eight bytes as a Bloom
/// filter (Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970).
#[derive(Clone, Debug)]
struct Filter {
    /// How much of the text has been noted.
    noted: usize,
    pairs: Vec<u64>,
    fours: Bits,
    eights: Bits,
    hasher: Hasher,
}

/// Spreads pieces over the bits, differently in each session, so that no server can prepare
/// pieces that all look noted. It runs for every byte, and the usual hashes are too slow for that.
#[derive(Clone, Copy, Debug)]
struct Hasher {
    key: u64,
    factor: u64,
}

impl Hasher {
    fn random() -> Self {
        let random = RandomState::new();
        Self {
            key: random.hash_one(0),
            factor: random.hash_one(1) | 1,
        }
    }

    /// Two rounds of a multiplication and a fold, as the finalisers of common hashes have them.
    fn hash_one(self, piece: u64) -> u64 {
        let first = (piece ^ self.key).wrapping_mul(self.factor);
        let second = (first ^ (first >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        second ^ (second >> 29)
    }
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            noted: 0,
            pairs: vec![0; (1 << 16) / 64],
            fours: Bits::default(),
            eights: Bits::default(),
            hasher: Hasher::random(),
        }
    }
}

impl Filter {
    fn note(&mut self, text: &[u8]) {
        if self.fours.are_too_few_for(text.len()) {
            // All over again, with more room; as often as a doubling text asks for it.
            self.fours = Bits::for_pieces(text.len());
            self.eights = Bits::for_pieces(text.len());
            self.noted = 0;
        }
        // A piece may begin before what was noted ended.
        let start = self.noted.saturating_sub(7);
        let new = text.get(start..).unwrap_or_default();
        for pair in new.windows(2).filter_map(<[u8]>::first_chunk) {
            let pair = usize::from(u16::from_le_bytes(*pair));
            if let Some(bits) = self.pairs.get_mut(pair / 64) {
                *bits |= 1 << (pair % 64);
            }
        }
        for piece in new.windows(4).filter_map(<[u8]>::first_chunk) {
            self.fours
                .set(self.hasher.hash_one(u64::from(u32::from_le_bytes(*piece))));
        }
        for piece in new.windows(8).filter_map(<[u8]>::first_chunk) {
            self.eights
                .set(self.hasher.hash_one(u64::from_le_bytes(*piece)));
        }
        self.noted = text.len();
    }

    fn may_contain(&self, value: &[u8]) -> bool {
        let has_pair = |pair: &[u8; 2]| {
            let pair = usize::from(u16::from_le_bytes(*pair));
            self.pairs
                .get(pair / 64)
                .is_some_and(|bits| bits >> (pair % 64) & 1 == 1)
        };
        // Longer values are asked by longer pieces, which are rarer.
        match value.len() {
            0..4 => value
                .windows(2)
                .filter_map(<[u8]>::first_chunk)
                .all(has_pair),
            4..8 => value
                .windows(4)
                .filter_map(<[u8]>::first_chunk)
                .all(|piece| {
                    self.fours
                        .has(self.hasher.hash_one(u64::from(u32::from_le_bytes(*piece))))
                }),
            _ => value
                .windows(8)
                .filter_map(<[u8]>::first_chunk)
                .all(|piece| {
                    self.eights
                        .has(self.hasher.hash_one(u64::from_le_bytes(*piece)))
                }),
        }
    }
}

/// Bits, of which each piece sets two.
#[derive(Clone, Debug, Default)]
struct Bits(Vec<u64>);

/// With so many bits for each piece, one in sixty pieces that are not there looks as if it were.
const BITS_PER_PIECE: usize = 16;

impl Bits {
    /// Room for twice as many.
    fn for_pieces(count: usize) -> Self {
        let words = (count.saturating_mul(2 * BITS_PER_PIECE) / 64).next_power_of_two();
        Self(vec![0; words.max(1024)])
    }

    fn are_too_few_for(&self, pieces: usize) -> bool {
        self.0.len().saturating_mul(64) < pieces.saturating_mul(BITS_PER_PIECE).max(1)
    }

    fn set(&mut self, hash: u64) {
        for (word, bit) in self.places(hash) {
            if let Some(bits) = self.0.get_mut(word) {
                *bits |= bit;
            }
        }
    }

    fn has(&self, hash: u64) -> bool {
        self.places(hash)
            .iter()
            .all(|(word, bit)| self.0.get(*word).is_some_and(|bits| bits & bit != 0))
    }

    fn places(&self, hash: u64) -> [(usize, u64); 2] {
        let mask = self.0.len().wrapping_sub(1);
        [hash, hash.rotate_left(32)].map(|hash| {
            let index = usize::try_from(hash >> 6 & 0x3ff_ffff).unwrap_or_default();
            (index & mask, 1 << (hash & 63))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_long_text_is_searched_at_both_ends_and_between() {
        let mut known = Known::default();
        known.push("first-value ");
        for number in 0..40_000 {
            known.push(&format!("item {number}, "));
        }
        known.push("last-value");
        for value in [
            "first-value",
            "last-value",
            "item 20000, item",
            "t-",
            "te",
            "999, item 10000,",
        ] {
            assert_eq!(known.contains(value), known.text.contains(value), "{value}");
            assert_eq!(known.contains(value), known.text.contains(value), "{value}");
        }
        for value in [
            "item 40000",
            "no-value",
            "lastvalue",
            "zz",
            "e-i",
            "item  1",
        ] {
            assert!(!known.contains(value), "{value}");
        }
    }

    proptest! {
        #[test]
        fn what_is_contained_is_contained(
            pieces in prop::collection::vec("[ab\u{e9}]{0,20}", 1..20),
            values in prop::collection::vec("[ab\u{e9}]{0,12}", 1..10),
            places in prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 1..10),
        ) {
            let mut known = Known::default();
            for piece in pieces {
                known.push(&piece);
                for value in &values {
                    prop_assert_eq!(known.contains(value), known.text.contains(value.as_str()));
                }
                let text: Vec<char> = known.text.chars().collect();
                for (start, length) in &places {
                    let start = start.index(text.len() + 1);
                    let length = length.index(text.len() - start + 1);
                    let value: String = text[start..start + length].iter().collect();
                    prop_assert!(known.contains(&value));
                }
            }
        }
    }
}
