//! Which lines of the wire can stand in a log as the JSON that they are.
//!
//! A log's reader holds messages as [`serde_json::Value`]. This scanner accepts exactly what
//! becomes such a value inside of an entry and means the same there, without building it:
//! it runs for every line of a session.

/// How many arrays and objects may be open at once inside of an entry's `message`.
///
/// The reader stops when 128 are open, and the entry around the message is one of them.
const MAX_DEPTH: u32 = 126;

/// A key that the reader takes for its own when it is an object's first: the object would
/// come back as something else than was sent.
const READERS_OWN_KEY: &str = "$serde_json::private::RawValue";

/// A line that can be embedded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Embeds {
    /// As it is.
    Verbatim,
    /// Once each line feed between its tokens is a blank: an entry is one line.
    WithoutLineFeeds,
}

/// Whether `json`, without blanks around it, is one JSON value that an entry can hold.
pub(super) fn embeds(json: &[u8]) -> Option<Embeds> {
    // The scanner below looks at ASCII only, which is sound in valid UTF-8 alone.
    std::str::from_utf8(json).ok()?;
    let mut scan = Scan {
        json,
        at: 0,
        breaks: false,
    };
    scan.value(0)?;
    if scan.at != json.len() {
        return None;
    }
    Some(if scan.breaks {
        Embeds::WithoutLineFeeds
    } else {
        Embeds::Verbatim
    })
}

struct Scan<'a> {
    json: &'a [u8],
    at: usize,
    /// Whether a line feed was seen between tokens.
    breaks: bool,
}

/// Each step consumes one part of the grammar, or is `None` at the first byte that does not fit.
impl Scan<'_> {
    fn value(&mut self, depth: u32) -> Option<()> {
        match self.peek()? {
            b'"' => self.string(),
            b'{' => self.object(depth + 1),
            b'[' => self.array(depth + 1),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: u32) -> Option<()> {
        self.open(depth)?;
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(());
        }
        let first_key = self.at;
        self.string()?;
        if is_readers_own(self.json.get(first_key..self.at)?) {
            return None;
        }
        loop {
            self.blanks();
            self.word(b":")?;
            self.blanks();
            self.value(depth)?;
            self.blanks();
            match self.next()? {
                b',' => self.blanks(),
                b'}' => return Some(()),
                _ => return None,
            }
            self.string()?;
        }
    }

    fn array(&mut self, depth: u32) -> Option<()> {
        self.open(depth)?;
        if self.peek()? == b']' {
            self.at += 1;
            return Some(());
        }
        loop {
            self.value(depth)?;
            self.blanks();
            match self.next()? {
                b',' => self.blanks(),
                b']' => return Some(()),
                _ => return None,
            }
        }
    }

    fn open(&mut self, depth: u32) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.at += 1;
        self.blanks();
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        self.word(b"\"")?;
        loop {
            self.at += plain_prefix(self.json.get(self.at..)?);
            match self.next()? {
                b'"' => return Some(()),
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        match self.next()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => match self.hex4()? {
                // The two halves of one character stand together; a half alone is no text.
                0xD800..=0xDBFF => {
                    self.word(b"\\u")?;
                    matches!(self.hex4()?, 0xDC00..=0xDFFF).then_some(())
                }
                0xDC00..=0xDFFF => None,
                _ => Some(()),
            },
            _ => None,
        }
    }

    fn hex4(&mut self) -> Option<u32> {
        let digits = self.json.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.iter().try_fold(0, |sum, &digit| {
            Some(sum * 16 + char::from(digit).to_digit(16)?)
        })
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        if self.peek()? == b'-' {
            self.at += 1;
        }
        match self.next()? {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            _ => return None,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        let mut is_safe = self.at - start < SAFE_DIGITS;
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            let exponent = self.at;
            self.some_digits()?;
            is_safe &= self.at - exponent <= SAFE_EXPONENT_DIGITS;
        }
        if is_safe {
            return Some(());
        }
        // Only the reader knows where the range of numbers ends.
        serde_json::from_slice::<serde_json::Number>(self.json.get(start..self.at)?)
            .ok()
            .map(|_| ())
    }

    fn some_digits(&mut self) -> Option<()> {
        self.next()?.is_ascii_digit().then(|| self.digits())
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn blanks(&mut self) {
        while let Some(byte @ (b' ' | b'\t' | b'\r' | b'\n')) = self.peek() {
            self.breaks |= byte == b'\n';
            self.at += 1;
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        let found = self.json.get(self.at..)?.starts_with(word);
        self.at += word.len();
        found.then_some(())
    }

    fn peek(&self) -> Option<u8> {
        self.json.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }
}

/// With fewer characters than this before the exponent, and an exponent as short as below,
/// a number is far below 1e308, the largest that can be held.
const SAFE_DIGITS: usize = 200;
const SAFE_EXPONENT_DIGITS: usize = 2;

/// How many bytes of `text` come before the first that ends a string or is special in it.
fn plain_prefix(text: &[u8]) -> usize {
    let mut at = 0;
    // Most strings are short, and text that holds JSON has a quote every few bytes: only what
    // has been plain for a while is worth large steps.
    for _ in 0..4 {
        let Some(word) = first_chunk(text, at) else {
            break;
        };
        let special = specials(u64::from_le_bytes(*word));
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while let Some(block) = first_chunk::<64>(text, at)
        && !block
            .iter()
            .fold(false, |special, &byte| special | is_special(byte))
    {
        at += 64;
    }
    let rest = text.get(at..).unwrap_or_default();
    at + rest
        .iter()
        .position(|&byte| is_special(byte))
        .unwrap_or(rest.len())
}

fn first_chunk<const N: usize>(text: &[u8], at: usize) -> Option<&[u8; N]> {
    text.get(at..)?.first_chunk()
}

// Branches would keep the compiler from looking at all bytes of a block at once.
#[expect(clippy::needless_bitwise_bool, reason = "see above")]
fn is_special(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// Eight bytes at once: the lowest bit that is set stands in the first special byte. (Bits
/// above it may be wrong, by borrows.)
///
/// The test for a zero byte is from "Bit Twiddling Hacks" (Sean Eron Anderson, 2005).
fn specials(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let below = |limit: u8, word: u64| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let equal = |byte: u8| below(1, word ^ (ONES * u64::from(byte)));
    (below(0x20, word) | equal(b'"') | equal(b'\\')) & (ONES << 7)
}

/// Whether `key`, a JSON string with its quotes, is the reader's own.
fn is_readers_own(key: &[u8]) -> bool {
    let is_candidate = key.starts_with(b"\"$") || key.contains(&b'\\');
    is_candidate && serde_json::from_slice::<String>(key).is_ok_and(|key| key == READERS_OWN_KEY)
}
