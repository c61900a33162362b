use proptest::prelude::*;

use super::*;

/// What a stream says when it comes in these pieces: its messages, and its last id.
fn read(pieces: impl IntoIterator<Item: AsRef<[u8]>>) -> (Vec<String>, Option<String>) {
    let mut parser = EventParser::default();
    let mut messages = Vec::new();
    for piece in pieces {
        parser.feed(Bytes::copy_from_slice(piece.as_ref()));
        while let Some(message) = parser.take() {
            messages.push(message);
        }
    }
    messages.extend(parser.take_rest());
    let messages = messages
        .into_iter()
        .map(|message| String::from_utf8(message).expect("UTF-8"))
        .collect();
    (messages, parser.last_id().map(str::to_owned))
}

fn messages(stream: &str) -> Vec<String> {
    read([stream.as_bytes()]).0
}

#[test]
fn data_lines_are_joined_and_one_blank_is_dropped() {
    assert_eq!(messages("data: a\ndata:b\ndata:  c\n\n"), ["a\nb\n c"]);
    assert_eq!(messages("data\ndata\n\n"), ["\n"]);
    assert_eq!(messages("data:\n\ndata\n\n"), [""; 0]);
}

#[test]
fn lines_end_in_three_ways() {
    for end in ["\n", "\r\n", "\r"] {
        let stream = ["data: a", "id: 1", "", "data: b", ""].join(end) + end;
        assert_eq!(messages(&stream), ["a", "b"], "{end:?}");
    }
}

#[test]
fn comments_and_unknown_fields_say_nothing() {
    assert_eq!(
        messages(": hi\n\n:\n\ncolour: red\nDATA: x\n data: y\n\ndata: a\n\n"),
        ["a"]
    );
}

#[test]
fn only_unnamed_events_and_messages_carry_messages() {
    let stream = "event: ping\ndata: {}\n\nevent: message\ndata: a\n\nevent\ndata: b\n\nevent: x\nevent:\ndata: c\n\ndata: d\n\n";
    assert_eq!(messages(stream), ["a", "b", "c", "d"]);
}

#[test]
fn a_byte_order_mark_counts_only_at_the_start() {
    assert_eq!(messages("\u{feff}data: a\n\n\u{feff}data: b\n\n"), ["a"]);
}

#[test]
fn bad_utf_8_is_replaced() {
    assert_eq!(read([&b"data: a\xffb\n\n"[..]]).0, ["a\u{fffd}b"]);
}

#[test]
fn the_last_id_is_that_of_the_last_event_that_ended() {
    let id = |stream: &str| read([stream.as_bytes()]).1;
    assert_eq!(id("id: 1\ndata: a\n\ndata: b\n\n").as_deref(), Some("1"));
    assert_eq!(
        id("id: 1\n\n").as_deref(),
        Some("1"),
        "an event without data"
    );
    assert_eq!(
        id("id: 1\n\nid: 2\ndata: {").as_deref(),
        Some("1"),
        "the second was cut off"
    );
    assert_eq!(
        id("id: 1\n\nid: 2\ndata: {}").as_deref(),
        Some("2"),
        "the second came whole"
    );
    assert_eq!(id("id: 1\n\nid: a\0b\n\n").as_deref(), Some("1"));
    assert_eq!(id("id: 1\n\nid\n\n"), None, "cleared");
    assert_eq!(id("data: a\n\n"), None);
}

#[test]
fn a_cut_off_event_counts_if_its_data_is_whole() {
    assert_eq!(messages("data: {\"a\":1}"), ["{\"a\":1}"]);
    assert_eq!(messages("data: {\"a\":\ndata: 1}\nid: 1"), ["{\"a\":\n1}"]);
    for cut in [
        "data: {\"a\":1",
        "data: 12",
        "data: {}{}",
        "dat",
        "data: {}\ndata: {}",
        "event: ping\ndata: {}",
    ] {
        assert_eq!(messages(cut), [""; 0], "{cut}");
    }
}

#[test]
fn a_wait_is_a_number_and_has_a_limit() {
    let retry = |stream: &str| {
        let mut parser = EventParser::default();
        parser.feed(Bytes::copy_from_slice(stream.as_bytes()));
        assert_eq!(parser.take(), None);
        parser.retry()
    };
    assert_eq!(retry("retry: 250\n"), Some(Duration::from_millis(250)));
    assert_eq!(retry("retry: 3600000\n"), Some(LONGEST_RETRY));
    assert_eq!(
        retry("retry: 99999999999999999999999\n"),
        Some(LONGEST_RETRY)
    );
    for odd in ["retry: 1.5\n", "retry: -1\n", "retry:\n", "retry: 2s\n"] {
        assert_eq!(retry(odd), None, "{odd}");
    }
}

#[test]
fn a_stream_that_continues_another_keeps_its_id() {
    let mut parser = EventParser::default();
    parser.feed(Bytes::from_static(b"retry: 20\nid: 7\n\n"));
    assert_eq!(parser.take(), None);
    assert!(parser.has_seen_event());
    let next = parser.continuing();
    assert_eq!(next.last_id(), Some("7"));
    assert_eq!(next.retry(), Some(Duration::from_millis(20)));
    assert!(!next.has_seen_event());
}

proptest! {
    /// Small alphabets make the odd cases likely.
    #[test]
    fn a_stream_says_the_same_however_it_is_cut_up(
        stream in "(\u{feff})?((data|id|event|retry|x)?(:|: )?([a{}1\u{e9}]{0,3})(\n|\r|\r\n)){0,12}[dat:{}]{0,6}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let bytes = stream.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]);
        let whole = read([bytes]);
        prop_assert_eq!(read(pieces), whole.clone());
        prop_assert_eq!(read(bytes.chunks(1)), whole);
    }

    #[test]
    fn no_bytes_upset_it(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read(bytes.chunks(7));
    }
}
