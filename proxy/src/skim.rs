//! Skims JSON: finds where values begin and end, and believes the rest.
//!
//! It runs over every line, so it goes at the speed of a search for quotes. What it takes
//! for a value need not be one; whoever needs that reads it properly.

use std::ops::Range;

use memchr::memchr2;

/// A place in a text that is JSON, as far as anybody knows.
#[derive(Debug)]
pub(crate) struct Skim<'a> {
    text: &'a [u8],
    at: usize,
}

/// Each step is `None` where the text ends, or stops looking like JSON.
impl<'a> Skim<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Whether `byte` comes next, blanks aside; it is taken then.
    pub(crate) fn takes(&mut self, byte: u8) -> bool {
        let takes = self.peek() == Some(byte);
        if takes {
            self.at += 1;
        }
        takes
    }

    /// Whether only blanks are left.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// In a list that was opened already: whether another item comes before `end`, which is taken otherwise.
    pub(crate) fn next_item(&mut self, end: u8) -> Option<bool> {
        if self.takes(end) {
            return Some(false);
        }
        // Missing and doubled commas are somebody else's business.
        self.takes(b',');
        self.peek().map(|_| true)
    }

    /// Takes the next value, and returns its text.
    pub(crate) fn value(&mut self) -> Option<&'a [u8]> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => self.string()?,
            b'{' | b'[' => self.container()?,
            _ => self.word()?,
        }
        self.text.get(start..self.at)
    }

    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.get(self.at)?;
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            self.at += memchr2(b'"', b'\\', self.text.get(self.at..)?)?;
            if self.text[self.at] == b'"' {
                self.at += 1;
                return Some(());
            }
            self.at += 2;
        }
    }

    fn container(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match *self.text.get(self.at)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn word(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let ends = |byte: &u8| {
            matches!(
                byte,
                b',' | b':' | b'}' | b']' | b'"' | b' ' | b'\t' | b'\r' | b'\n'
            )
        };
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        self.at += length;
        (length > 0).then_some(())
    }
}

/// The texts of a member's name, quotes and all, and of its value.
pub(crate) type Member<'a> = (&'a [u8], &'a [u8]);

/// The members of an object, one after the other.
#[derive(Debug)]
pub(crate) struct Members<'s, 'a> {
    skim: &'s mut Skim<'a>,
}

impl<'s, 'a> Members<'s, 'a> {
    /// The object that comes next.
    pub(crate) fn of(skim: &'s mut Skim<'a>) -> Option<Self> {
        skim.takes(b'{').then_some(Self { skim })
    }

    /// The next member; nothing after the last one.
    ///
    /// # Errors
    /// The text ends, or stops looking like an object.
    pub(crate) fn next(&mut self) -> Result<Option<Member<'a>>, NotJson> {
        if self.skim.next_item(b'}').ok_or(NotJson)? {
            self.member().ok_or(NotJson).map(Some)
        } else {
            Ok(None)
        }
    }

    fn member(&mut self) -> Option<Member<'a>> {
        let name = self.skim.value()?;
        if !name.starts_with(b"\"") || !self.skim.takes(b':') {
            return None;
        }
        Some((name, self.skim.value()?))
    }
}

/// Where the value of an object's member `name` stands in its text; the last one, if it is repeated.
pub(crate) fn member(object: &[u8], name: &str) -> Option<Range<usize>> {
    let mut skim = Skim::new(object);
    let mut members = Members::of(&mut skim)?;
    let mut found = None;
    while let Some((this, value)) = members.next().ok()? {
        if serde_json::from_slice::<String>(this).is_ok_and(|this| this == name) {
            let end = members.skim.at;
            found = Some(end - value.len()..end);
        }
    }
    found
}

/// A text that is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotJson;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn members(text: &str) -> Option<Vec<(String, String)>> {
        let mut skim = Skim::new(text.as_bytes());
        let mut members = Members::of(&mut skim)?;
        let mut found = Vec::new();
        while let Some((name, value)) = members.next().ok()? {
            found.push((
                serde_json::from_slice(name).unwrap(),
                String::from_utf8(value.into()).unwrap(),
            ));
        }
        skim.is_at_end().then_some(found)
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z\"\\\\{}\\[\\]:, \n]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z\"\\\\}]{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn each_value_of_an_object_is_found_whole(value in any_json(), pretty: bool) {
            let object = serde_json::json!({"a": value.clone(), "b": [value.clone()], "c": value});
            let text = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) }.unwrap();
            let found: Vec<(String, Value)> = members(&text)
                .unwrap()
                .into_iter()
                .map(|(name, value)| (name, serde_json::from_str(&value).unwrap()))
                .collect();
            let expected: Vec<(String, Value)> =
                object.as_object().unwrap().iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn any_text_is_skimmed_without_a_panic(text in prop::collection::vec(
            prop::sample::select(b"{}[]\":,\\ a1\xff".as_slice()), 0..40))
        {
            let mut skim = Skim::new(&text);
            while let Some(value) = skim.value() {
                prop_assert!(!value.is_empty());
            }
            if let Some(mut members) = Members::of(&mut Skim::new(&text)) {
                while let Ok(Some(_)) = members.next() {}
            }
        }
    }
}
