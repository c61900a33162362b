//! The keys of written requests.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something unexpected happens"
)]

use serde::Deserialize;
use serde_json::{Value, json};
use stretto_oracle::Request;

const VECTORS: &str = include_str!("data/key-vectors.json");

#[derive(Deserialize)]
struct Vectors {
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    name: String,
    request: Request,
    canonical: String,
    key: String,
}

#[test]
fn every_request_has_its_canonical_text_and_key() {
    let Vectors { vectors } = serde_json::from_str(VECTORS).unwrap();
    assert_eq!(vectors.len(), 6);
    for vector in vectors {
        let canonical = String::from_utf8(vector.request.canonical()).unwrap();
        assert_eq!(canonical, vector.canonical, "{}", vector.name);
        assert_eq!(
            vector.request.key().to_string(),
            vector.key,
            "{}",
            vector.name
        );
    }
}

#[test]
fn the_order_of_members_and_the_blanks_between_them_change_no_key() {
    let one = r#"{"model":"m","state":{"a":1,"b":[{"x":1,"y":2}]},"questions":
        {"p":{"type":"noul","instructions":"?","criteria":{"true":"t","false":"f"}},
         "q":{"type":"choice","instructions":"?","criteria":{"a":"A","b":"B"}}}}"#;
    let other = r#"{ "questions" : {"q":{"criteria":{"b":"B","a":"A"},"instructions":"?","type":"choice"},
         "p":{"criteria":{"false":"f","true":"t"},"type":"noul","instructions":"?"}},
         "state":{"b":[{"y":2,"x":1}],"a":1},  "model":"m"}"#;
    let key = |text: &str| serde_json::from_str::<Request>(text).unwrap().key();
    assert_eq!(key(one), key(other));
    assert_ne!(
        key(one),
        key(&one.replace("\"instructions\":\"?\"", "\"instructions\":\"? \""))
    );
    assert_ne!(
        key(one),
        key(&one.replace("\"model\":\"m\"", "\"model\":\"m2\""))
    );
    assert_ne!(
        key(one),
        key(&one.replace("{\"x\":1,\"y\":2}", "{\"x\":1,\"y\":3}"))
    );
}

/// The state's text in the canonical form.
fn canonical_state(state: &str) -> String {
    let state: Value = serde_json::from_str(state).unwrap();
    let request: Request =
        serde_json::from_value(json!({"model": "", "state": state, "questions": {}})).unwrap();
    let text = String::from_utf8(request.canonical()).unwrap();
    let text = text.strip_prefix(r#"{"model":"","state":"#).unwrap();
    text.strip_suffix(r#","questions":{}}"#).unwrap().to_owned()
}

#[test]
fn integers_of_64_bits_stand_in_decimal() {
    for number in [
        "0",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
    ] {
        assert_eq!(canonical_state(number), number);
    }
}

#[test]
fn other_numbers_are_as_short_as_they_can_be() {
    for (number, expected) in [
        ("2.0", "2.0"),
        ("0.1", "0.1"),
        ("0.10", "0.1"),
        ("-0", "-0.0"),
        ("-0.0", "-0.0"),
        ("1e2", "100.0"),
        ("0.00001", "0.00001"),
        ("0.000001", "1e-6"),
        ("0.00000015", "1.5e-7"),
        ("1e15", "1000000000000000.0"),
        ("1e16", "1e16"),
        ("1.5E+20", "1.5e20"),
        ("18446744073709551616", "1.8446744073709552e19"),
        ("123456789.123456789", "123456789.12345679"),
        ("5e-324", "5e-324"),
        ("1.7976931348623157e308", "1.7976931348623157e308"),
    ] {
        assert_eq!(canonical_state(number), expected, "{number}");
    }
}

#[test]
fn strings_escape_nothing_but_quotes_backslashes_and_controls() {
    let text = "\"\\/\u{8}\t\n\u{c}\r\u{0}\u{1f}\u{7f}\u{2028}é🙂";
    let canonical = canonical_state(&serde_json::to_string(text).unwrap());
    assert_eq!(
        canonical,
        "\"\\\"\\\\/\\b\\t\\n\\f\\r\\u0000\\u001f\u{7f}\u{2028}é🙂\""
    );
}

#[test]
fn objects_are_sorted_at_every_depth_by_the_bytes_of_their_names() {
    assert_eq!(
        canonical_state(r#"{"é":1,"b":{"z":1,"Z":[{"b":1,"a":2}]},"a":{},"B":[3,1,2]}"#),
        r#"{"B":[3,1,2],"a":{},"b":{"Z":[{"a":2,"b":1}],"z":1},"é":1}"#
    );
}

proptest::proptest! {
    #[test]
    fn every_number_reads_back_as_itself(bits: u64) {
        let number = f64::from_bits(bits);
        proptest::prop_assume!(number.is_finite());
        let text = canonical_state(&format!("{number:e}"));
        proptest::prop_assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(bits), "{}", &text);
        proptest::prop_assert!(!text.contains('+') && text.contains(['.', 'e']), "{}", &text);
    }
}
