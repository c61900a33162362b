//! Running text as words and what stands between them.

/// A piece of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Word(&'a str),
    /// What bounds words: blanks, marks, and everything else that no word is made of.
    Gap(&'a str),
}

/// The pieces of `line`, in order.
///
/// A word is made of letters, digits, `_`, `@`, `.` and `-`; dots and hyphens around it are
/// not part of it.
pub(super) fn pieces(line: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let run = rest
            .find(|character| !is_inside(character))
            .unwrap_or(rest.len());
        let (run, after) = rest.split_at(run);
        let word = run.trim_matches(is_edge);
        if word.is_empty() {
            let gap = run.len() + after.find(is_inside).unwrap_or(after.len());
            let (gap, after) = rest.split_at(gap);
            pieces.push(Piece::Gap(gap));
            rest = after;
            continue;
        }
        let lead = run.len() - run.trim_start_matches(is_edge).len();
        let (lead, from_word) = rest.split_at(lead);
        if !lead.is_empty() {
            pieces.push(Piece::Gap(lead));
        }
        let (word, after) = from_word.split_at(word.len());
        pieces.push(Piece::Word(word));
        rest = after;
    }
    pieces
}

/// The words of `text`.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).into_iter().filter_map(|piece| match piece {
        Piece::Word(word) => Some(word),
        Piece::Gap(_) => None,
    })
}

fn is_inside(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '@') || is_edge(character)
}

fn is_edge(character: char) -> bool {
    matches!(character, '.' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn marks_around_a_word_are_no_part_of_it() {
        for (text, expected) in [
            ("Hi, I'm c41@example.com.", "Hi|I|m|c41@example.com"),
            ("**IFOYYZ** (#W7a)", "IFOYYZ|W7a"),
            ("2024-05-15: -3.5%...", "2024-05-15|3.5"),
            ("- a_b\u{a0}é漢", "a_b|é漢"),
            ("--- ... - ", ""),
        ] {
            assert_eq!(words(text).collect::<Vec<_>>().join("|"), expected);
        }
    }

    proptest! {
        #[test]
        fn pieces_make_up_the_line(line in "[a-c .,#'é@-]{0,40}") {
            let pieces = pieces(&line);
            let joined: String = pieces.iter().map(|piece| match piece {
                Piece::Word(text) | Piece::Gap(text) => *text,
            }).collect();
            prop_assert_eq!(&joined, &line);
            let is_empty = |piece: &Piece<'_>| matches!(piece, Piece::Word("") | Piece::Gap(""));
            prop_assert!(!pieces.iter().any(is_empty));
        }
    }
}
