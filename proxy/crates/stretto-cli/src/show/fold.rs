//! What a long story leaves out at first, so that it stays readable.

use std::collections::BTreeMap;
use std::ops::Range;

use super::story::{Call, Row, Turn};
use super::text::{count, duration, number};

/// A part of a list: shown, or folded away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Shown(usize),
    Folded(Range<usize>),
}

/// From how many on things that are alike are folded; of things that take turns, so many rounds.
const ALIKE: usize = 6;
const ROUNDS: usize = 4;
/// How many different things may take turns.
const LONGEST_ROUND: usize = 3;
/// How many of what is alike stay at the beginning, or one round, and as many at the end.
const ALIKE_FIRST: usize = 2;

/// How many rows a story may have, and how many then stay at the beginning and at the end.
const ROWS: usize = 80;
const ROWS_FIRST: usize = 40;
const ROWS_LAST: usize = 25;

/// Folds stretches of turns that are alike, and then the middle of what is still too long.
pub(super) fn rows(rows: &[Row<'_>]) -> Vec<Part> {
    let parts = alike(rows.len(), |index| match rows.get(index) {
        Some(Row::Turn(turn)) => Likeness::of_turn(turn),
        Some(Row::Others(_)) => Likeness::Silent,
        Some(Row::Said { .. }) | None => Likeness::Unlike,
    });
    middle(parts)
}

/// Folds stretches of calls that are alike.
pub(super) fn calls(calls: &[Call<'_>]) -> Vec<Part> {
    alike(calls.len(), |index| match calls.get(index) {
        Some(call) if call.is_smooth() => Likeness::As(call.tool),
        _ => Likeness::Unlike,
    })
}

/// What has to be the same for two things to be alike.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Likeness<'a> {
    As(&'a str),
    /// Goes with whatever it stands among.
    Silent,
    Unlike,
}

impl<'a> Likeness<'a> {
    fn of_turn(turn: &Turn<'a>) -> Self {
        match turn.calls.as_slice() {
            [first, rest @ ..]
                if first.is_smooth()
                    && rest
                        .iter()
                        .all(|call| call.is_smooth() && call.tool == first.tool) =>
            {
                Self::As(first.tool)
            }
            _ => Self::Unlike,
        }
    }
}

fn alike<'a>(length: usize, likeness: impl Fn(usize) -> Likeness<'a>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut at = 0;
    while at < length {
        if likeness(at) == Likeness::Silent || likeness(at) == Likeness::Unlike {
            parts.push(Part::Shown(at));
            at += 1;
            continue;
        }
        // Where the things stand that may be alike, from here to the next that cannot be.
        let end = (at..length).find(|&place| likeness(place) == Likeness::Unlike);
        let places: Vec<usize> = (at..end.unwrap_or(length))
            .filter(|&place| likeness(place) != Likeness::Silent)
            .collect();
        let things: Vec<Likeness<'a>> = places.iter().map(|&place| likeness(place)).collect();
        let mut done = 0;
        while let Some(rest) = things.get(done..).filter(|rest| !rest.is_empty()) {
            let (round, stretch) = stretch(rest);
            let first = round.max(ALIKE_FIRST);
            let place = |thing: usize| places.get(done + thing).copied();
            // What is silent behind the last thing belongs to what comes then.
            let next = place(stretch).or(end).unwrap_or(length);
            match (place(first), place(stretch.saturating_sub(round))) {
                (Some(from), Some(to)) if round > 0 => {
                    parts.extend((at..from).map(Part::Shown));
                    parts.push(Part::Folded(from..to));
                    parts.extend((to..next).map(Part::Shown));
                }
                _ => parts.extend((at..next).map(Part::Shown)),
            }
            at = next;
            done += stretch;
        }
    }
    parts
}

/// How many of `things`, from the first on, can be folded together, and how many of them make
/// a round; no round, and one thing, when they cannot.
fn stretch(things: &[Likeness<'_>]) -> (usize, usize) {
    for round in 1..=LONGEST_ROUND {
        let later = things.get(round..).unwrap_or_default();
        let same = later
            .iter()
            .zip(things)
            .take_while(|(later, earlier)| later == earlier)
            .count();
        let enough = if round == 1 { ALIKE } else { ROUNDS * round };
        if same + round >= enough {
            // Whole rounds only, so that the end looks like the beginning.
            return (round, (same + round) / round * round);
        }
    }
    (0, 1)
}

fn middle(mut parts: Vec<Part>) -> Vec<Part> {
    if parts.len() <= ROWS {
        return parts;
    }
    let last = parts.split_off(parts.len() - ROWS_LAST);
    let folded = parts.split_off(ROWS_FIRST);
    let start = match folded.first() {
        Some(Part::Shown(index)) => *index,
        Some(Part::Folded(range)) => range.start,
        None => 0,
    };
    let end = match folded.last() {
        Some(Part::Shown(index)) => index + 1,
        Some(Part::Folded(range)) => range.end,
        None => start,
    };
    parts.push(Part::Folded(start..end));
    parts.extend(last);
    parts
}

/// What a folded stretch of rows holds, in a line; and the option that shows it.
pub(super) fn rows_note(rows: &[Row<'_>]) -> (String, String) {
    let mut calls = Vec::new();
    let mut numbers = Vec::new();
    let mut said = 0;
    let mut others = 0;
    for row in rows {
        match row {
            Row::Said { .. } => said += 1,
            Row::Others(group) => others += group.len(),
            Row::Turn(turn) => {
                calls.extend(&turn.calls);
                others += turn.others.len();
                numbers.extend(turn.number);
            }
        }
    }
    let mut parts = vec![calls_note(&calls)];
    if said > 0 {
        parts.push(format!("{} of the conversation", count(said, "line")));
    }
    if others > 0 {
        parts.push(format!("{} beside them", count(others, "line")));
    }
    let note = parts.join("; ");
    match (numbers.first(), numbers.last()) {
        (Some(first), Some(last)) if first < last => (
            format!("turns {} to {}: {note}", number(*first), number(*last)),
            format!("--turns {first}-{last}"),
        ),
        (Some(only), _) => (
            format!("turn {}: {note}", number(*only)),
            format!("--turns {only}"),
        ),
        _ => (note, "--full".to_owned()),
    }
}

/// Which calls a folded stretch holds, in a line.
pub(super) fn calls_note(calls: &[&Call<'_>]) -> String {
    let mut tools: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut total, mut errors, mut open, mut took_ms) = (0, 0, 0, 0_u64);
    for call in calls {
        *tools.entry(call.tool).or_default() += 1;
        total += 1;
        errors += usize::from(call.is_error());
        open += usize::from(call.returned.is_none());
        took_ms = call.took_ms().unwrap_or(0).saturating_add(took_ms);
    }
    let mut note = tool_counts(&tools, 4);
    if errors > 0 {
        note.push_str(", ");
        note.push_str(&count(errors, "error"));
    }
    if open > 0 {
        note.push_str(", ");
        note.push_str(&number(open));
        note.push_str(" without a result");
    }
    if total > open && tools.len() == 1 {
        note.push_str(", ");
        note.push_str(&duration(
            took_ms / u64::try_from(total - open).unwrap_or(u64::MAX),
        ));
        note.push_str(" each");
    }
    note
}

/// Tools and how often each was called, the most called ones first.
pub(super) fn tool_counts(tools: &BTreeMap<&str, usize>, at_most: usize) -> String {
    let mut sorted: Vec<_> = tools.iter().map(|(tool, calls)| (*tool, *calls)).collect();
    sorted.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
    let shown = sorted.iter().take(at_most);
    let mut named: Vec<String> = shown
        .map(|(tool, calls)| match calls {
            1 => super::text::name(tool),
            calls => format!("{} ×{}", super::text::name(tool), number(*calls)),
        })
        .collect();
    let more: usize = sorted.iter().skip(at_most).map(|(_, calls)| calls).sum();
    if more > 0 {
        named.push(format!("{} of other tools", number(more)));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(kinds: &str) -> String {
        let kinds: Vec<char> = kinds.chars().collect();
        let parts = alike(kinds.len(), |index| match kinds[index] {
            'a' => Likeness::As("a"),
            'b' => Likeness::As("b"),
            '.' => Likeness::Silent,
            _ => Likeness::Unlike,
        });
        let shown = parts.into_iter().map(|part| match part {
            Part::Shown(index) => kinds[index].to_string(),
            Part::Folded(range) => format!("({})", range.len()),
        });
        shown.collect()
    }

    #[test]
    fn long_stretches_of_what_is_alike_are_folded() {
        assert_eq!(folded("aaaaa"), "aaaaa");
        assert_eq!(folded("aaaaaa"), "aa(3)a");
        assert_eq!(folded("xaaaaaaaaax"), "xaa(6)ax");
        assert_eq!(folded("aaaaaabbbbbb"), "aa(3)abb(3)b");
        assert_eq!(folded("babababab"), "ba(4)bab");
        assert_eq!(folded("xabbabbabbabbax"), "xabb(6)abbax");
        assert_eq!(folded("ababab"), "ababab");
        assert_eq!(folded("aaaxaaa"), "aaaxaaa");
        assert_eq!(folded("xxxxxxxx"), "xxxxxxxx");
    }

    #[test]
    fn silent_lines_go_with_the_stretch_around_them_and_not_with_its_ends() {
        assert_eq!(folded(".a.a.a.a.a.a.x"), ".a.a.(6)a.x");
        assert_eq!(folded("a.....a"), "a.....a");
        assert_eq!(folded("......."), ".......");
    }

    #[test]
    fn the_middle_of_a_long_story_is_folded() {
        let parts = middle((0..ROWS).map(Part::Shown).collect());
        assert_eq!(parts.len(), ROWS);
        let parts = middle((0..5000).map(Part::Shown).collect());
        assert_eq!(parts.len(), ROWS_FIRST + 1 + ROWS_LAST);
        assert_eq!(
            parts[ROWS_FIRST],
            Part::Folded(ROWS_FIRST..5000 - ROWS_LAST)
        );
    }
}
