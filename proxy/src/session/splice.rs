//! Adds to a message without touching what is there: key order, the spelling of numbers and
//! members that we do not know survive.

use crate::skim::member;

/// `message` with `item`, which is JSON, at the end of the list `list` in its result.
///
/// Without such a list, the result gets one of that item. Nothing when the message has no
/// result, or one that is no object.
pub(crate) fn append(message: &[u8], list: &str, item: &str) -> Option<Vec<u8>> {
    let result = member(message, "result")?;
    if message[result.start] != b'{' {
        return None;
    }
    let found = member(&message[result.clone()], list);
    let (at, addition) =
        match found.map(|found| result.start + found.start..result.start + found.end) {
            Some(found) if message[found.start] == b'[' => {
                let end = found.end - 1;
                let is_empty = message[found.start + 1..end]
                    .iter()
                    .all(u8::is_ascii_whitespace);
                (
                    end..end,
                    if is_empty {
                        item.to_owned()
                    } else {
                        format!(",{item}")
                    },
                )
            }
            Some(found) => (found, format!("[{item}]")),
            None => {
                let end = result.end - 1;
                let is_empty = message[result.start + 1..end]
                    .iter()
                    .all(u8::is_ascii_whitespace);
                let comma = if is_empty { "" } else { "," };
                (end..end, format!("{comma}\"{list}\":[{item}]"))
            }
        };
    let mut spliced = Vec::with_capacity(message.len() + addition.len());
    spliced.extend_from_slice(&message[..at.start]);
    spliced.extend_from_slice(addition.as_bytes());
    spliced.extend_from_slice(&message[at.end..]);
    Some(spliced)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn appended(message: &str) -> Option<String> {
        append(message.as_bytes(), "content", "X")
            .map(|spliced| String::from_utf8(spliced).unwrap())
    }

    #[test]
    fn only_the_addition_differs() {
        for (message, expected) in [
            (
                "{ \"id\":9007199254740993 ,\"result\" : {\"content\": [ {\"n\":1.0} ] ,\"x\":1,\"x\":2}}\r\n",
                "{ \"id\":9007199254740993 ,\"result\" : {\"content\": [ {\"n\":1.0} ,X] ,\"x\":1,\"x\":2}}\r\n",
            ),
            (
                r#"{"result":{"content":[ ]}}"#,
                r#"{"result":{"content":[ X]}}"#,
            ),
            (r#"{"result":{ }}"#, r#"{"result":{ "content":[X]}}"#),
            (
                r#"{"result":{"isError":true}}"#,
                r#"{"result":{"isError":true,"content":[X]}}"#,
            ),
            (
                r#"{"result":{"content":null,"a":1}}"#,
                r#"{"result":{"content":[X],"a":1}}"#,
            ),
            (
                r#"{"result":{"content":["]"],"content":[1]},"a":{"content":[]}}"#,
                r#"{"result":{"content":["]"],"content":[1,X]},"a":{"content":[]}}"#,
            ),
            (
                r#"{"result":{},"r\u0065sult":{"content":[]}}"#,
                r#"{"result":{},"r\u0065sult":{"content":[X]}}"#,
            ),
        ] {
            assert_eq!(appended(message).as_deref(), Some(expected), "{message}");
        }
    }

    #[test]
    fn a_message_without_a_result_that_is_an_object_is_left_alone() {
        for message in [
            r#"{"error":{}}"#,
            r#"{"result":[]}"#,
            r#"{"result":"x"}"#,
            "[]",
            "",
            "hello",
        ] {
            assert_eq!(appended(message), None, "{message}");
        }
    }
}
