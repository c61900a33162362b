use proptest::prelude::*;

use super::*;

fn entry(line: &[u8]) -> String {
    let mut out = Vec::new();
    encode_entry(&mut out, 7, Who::Server, line);
    let entry = String::from_utf8(out).unwrap();
    let start = "{\"t_ms\":7,\"from\":\"server\",";
    entry
        .strip_prefix(start)
        .unwrap()
        .strip_suffix("}\n")
        .unwrap()
        .to_owned()
}

#[test]
fn one_json_value_is_embedded_as_it_was_spelled() {
    for json in [
        r#"{"b":1.0,"a":[ 1e2 , "A\/\ud83d\ude00" ],"a":-0}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
        "\"text\"",
        "null",
        "18446744073709551616",
        "1e308",
        "\"\u{7f}\u{2028}\u{feff}\"",
    ] {
        for line in [
            json.to_owned(),
            format!("{json}\r"),
            format!(" \t{json} \r\n"),
        ] {
            assert_eq!(entry(line.as_bytes()), format!("\"message\":{json}"));
        }
    }
}

#[test]
fn what_is_not_one_json_value_becomes_text() {
    for (line, raw) in [
        ("", r#""""#),
        ("\r", r#""""#),
        ("  ", r#""  ""#),
        ("\u{b}1", r#""\u000b1""#),
        ("Listening on stdio\r", r#""Listening on stdio""#),
        ("1 2", r#""1 2""#),
        (r#"1,"raw":"forged""#, r#""1,\"raw\":\"forged\"""#),
        ("1}", r#""1}""#),
        ("{} x", r#""{} x""#),
        ("\u{feff}{}", "\"\u{feff}{}\""),
        ("\0", r#""\u0000""#),
        (r#""\ud800""#, r#""\"\\ud800\"""#),
        (r#""\udc00\ud800""#, r#""\"\\udc00\\ud800\"""#),
        ("1e309", r#""1e309""#),
        ("[1,]", r#""[1,]""#),
        ("01", r#""01""#),
        ("NaN", r#""NaN""#),
    ] {
        assert_eq!(entry(line.as_bytes()), format!("\"raw\":{raw}"), "{line:?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_marked() {
    assert_eq!(
        entry(b"\"a\xff\xfeb\xe2\x82\""),
        "\"raw\":\"\\\"a\u{fffd}\u{fffd}b\u{fffd}\\\"\""
    );
}

#[test]
fn a_value_over_several_lines_becomes_one_line() {
    assert_eq!(entry(b"{\n\"a\":\r\n1}"), "\"message\":{ \"a\":\r 1}");
}

#[test]
fn the_deepest_message_leaves_room_for_the_entry_around_it() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let message = |depth| entry(nested(depth).as_bytes()).starts_with("\"message\"");
    assert!(message(126));
    assert!(!message(127));
    assert!(!message(100_000));
}

#[test]
fn an_entry_has_exactly_one_of_message_and_raw() {
    let read = |members: &str| {
        serde_json::from_str::<Entry>(&format!(r#"{{"t_ms":1,"from":"client"{members}}}"#))
    };
    assert_eq!(
        read(r#","message":null"#).unwrap().body,
        Body::Message(Value::Null)
    );
    assert_eq!(
        read(r#","raw":"x","later":1"#).unwrap().body,
        Body::Raw("x".into())
    );
    for members in [
        "",
        r#","message":1,"raw":"x""#,
        r#","message":null,"raw":"x""#,
        r#","raw":null"#,
        r#","raw":7"#,
    ] {
        assert!(read(members).is_err(), "{members}");
    }
}

#[test]
fn a_time_is_a_whole_number_from_0_up() {
    let read = |t_ms: &str| {
        serde_json::from_str::<Entry>(&format!(r#"{{"t_ms":{t_ms},"from":"client","raw":""}}"#))
    };
    assert_eq!(read("0").unwrap().t_ms, 0);
    for t_ms in ["-1", "1.0", "1.5", "\"1\"", "null", "1e3"] {
        assert!(read(t_ms).is_err(), "{t_ms}");
    }
}

/// What a reader makes of `line` embedded in an entry, if the line is one JSON value at all.
fn embedded(line: &[u8]) -> Option<Entry> {
    let line = std::str::from_utf8(line).ok()?;
    serde_json::from_str::<&serde_json::value::RawValue>(line).ok()?;
    serde_json::from_str(&format!(r#"{{"t_ms":7,"from":"server","message":{line}}}"#)).ok()
}

fn check_against_the_reader(line: &[u8]) {
    let mut encoded = Vec::new();
    encode_entry(&mut encoded, 7, Who::Server, line);
    assert_eq!(memchr::memchr(b'\n', &encoded), Some(encoded.len() - 1));
    let read: Entry = serde_json::from_slice(&encoded).expect("every entry reads back");
    let raw = String::from_utf8_lossy(without_line_end(line)).into_owned();
    let expected = embedded(line).unwrap_or(Entry {
        t_ms: 7,
        from: Who::Server,
        body: Body::Raw(raw),
    });
    assert_eq!(read, expected, "{:?}", String::from_utf8_lossy(line));
}

/// Pieces that make JSON, nearly make JSON, or break it.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: &[&[u8]] = &[
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b",",
        b"\"",
        b"\"a\"",
        b"\"k\":",
        b"\"\":",
        b" ",
        b"\t",
        b"\r",
        b"\n",
        b"true",
        b"false",
        b"null",
        b"tru",
        b"-",
        b"0",
        b"1",
        b"01",
        b".",
        b".5",
        b"e",
        b"E+",
        b"e-2",
        b"e99",
        b"e308",
        b"e309",
        b"1e400",
        b"0e999",
        b"-0.0",
        b"99999999999999999999",
        b"\\",
        b"\\\"",
        b"\\u",
        b"\\n",
        b"\\x",
        b"\\/",
        b"\\u0041",
        b"\\ud83d",
        b"\\ude00",
        b"\\uD83D\\uDE00",
        b"\\u12g4",
        b"\x00",
        b"\x1f",
        b"\x7f",
        b"\x0b",
        b"\xff",
        b"\xe2\x82",
        b"\xe2\x82\xac",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"raw",
        b"$serde_json::private::Number",
        b"abcdefghijklmnopqrstuvwxyz0123456789",
    ];
    prop::sample::select(PIECES).prop_map(<[u8]>::to_vec)
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,90}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(".{0,12}", inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_read_back(line in prop::collection::vec(any::<u8>(), 0..80)) {
        check_against_the_reader(&line);
    }

    #[test]
    fn pieces_of_json_read_back(pieces in prop::collection::vec(piece(), 0..12)) {
        check_against_the_reader(&pieces.concat());
    }

    #[test]
    fn strings_of_pieces_read_back(pieces in prop::collection::vec(piece(), 0..6)) {
        check_against_the_reader(&[b"[\"", pieces.concat().as_slice(), b"\"]"].concat());
    }

    #[test]
    fn numbers_of_any_length_read_back(
        number in "-?(0|[1-9][0-9]{0,320})(\\.[0-9]{1,320})?([eE][+-]?[0-9]{1,4})?",
    ) {
        check_against_the_reader(number.as_bytes());
    }

    #[test]
    fn json_reads_back_and_so_it_does_with_a_byte_changed(
        value in json(),
        pretty in any::<bool>(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut line =
            if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) }.unwrap();
        check_against_the_reader(&line);
        let place = place.index(line.len());
        line[place] = byte;
        check_against_the_reader(&line);
    }
}

#[test]
fn an_object_that_the_reader_would_take_for_its_own_becomes_text() {
    for key in [
        "$serde_json::private::RawValue",
        "\\u0024serde_json::private\\u003a:RawValue",
    ] {
        for value in ["\"[1]\"", "1", "\"[\""] {
            let line = format!(r#"[{{ "{key}":{value}}}]"#);
            assert!(entry(line.as_bytes()).starts_with("\"raw\":"), "{line}");
            let line = format!(r#"{{"first":0,"{key}":{value}}}"#);
            assert!(entry(line.as_bytes()).starts_with("\"message\":"), "{line}");
        }
    }
}
