//! Values of several words, found in running text.

use std::collections::HashMap;

/// Phrases by their words, so that the longest one that begins at a word is found in one go.
#[derive(Debug, Default)]
pub(super) struct Phrases {
    /// A number for each word that is part of a phrase.
    words: HashMap<String, usize>,
    /// Where a word leads from a place; the first place is 0.
    next: HashMap<(usize, usize), usize>,
    /// What a phrase that ends at a place becomes.
    ends: HashMap<usize, String>,
    places: usize,
}

impl Phrases {
    /// Adds a phrase, given as the normal forms of its words, and what it becomes. Of two
    /// phrases with the same words the first one counts.
    pub(super) fn add(
        &mut self,
        phrase: impl IntoIterator<Item = String>,
        becomes: impl FnOnce() -> String,
    ) {
        let mut place = 0;
        for word in phrase {
            let count = self.words.len();
            let word = *self.words.entry(word).or_insert(count);
            let places = &mut self.places;
            place = *self.next.entry((place, word)).or_insert_with(|| {
                *places += 1;
                *places
            });
        }
        self.ends.entry(place).or_insert_with(becomes);
    }

    /// The longest phrase that `words`, in normal form, begin with: of how many words it is,
    /// and what it becomes.
    pub(super) fn longest(&self, words: &[&str]) -> Option<(usize, &str)> {
        let mut found = None;
        let mut place = 0;
        for (index, word) in words.iter().enumerate() {
            let Some(next) = self
                .words
                .get(*word)
                .and_then(|&word| self.next.get(&(place, word)))
            else {
                break;
            };
            place = *next;
            if let Some(becomes) = self.ends.get(&place) {
                found = Some((index + 1, becomes.as_str()));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_phrase_wins() {
        let mut phrases = Phrases::default();
        for phrase in ["desk lamp", "desk lamp shade black", "lamp shade"] {
            phrases.add(phrase.split(' ').map(str::to_owned), || {
                phrase.to_uppercase()
            });
        }
        let longest = |text: &str| phrases.longest(&text.split(' ').collect::<Vec<_>>());
        assert_eq!(longest("desk lamp shade blue"), Some((2, "DESK LAMP")));
        assert_eq!(
            longest("desk lamp shade black x"),
            Some((4, "DESK LAMP SHADE BLACK"))
        );
        assert_eq!(longest("lamp shade"), Some((2, "LAMP SHADE")));
        assert_eq!(longest("desk"), None);
        assert_eq!(longest("shade"), None);
    }
}
