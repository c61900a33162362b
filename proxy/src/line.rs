//! The unit of everything here: a line, with its ending, exactly as it was read.

use bytes::{Bytes, BytesMut};
use memchr::memchr;

/// A line with its line ending. The last line of a stream may have none.
///
/// A clone shares the bytes, so recording a line copies nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line(Bytes);

impl Line {
    /// A line that the proxy wrote itself: `text` holds no line break, and gets one at its end.
    pub(crate) fn own(mut text: String) -> Self {
        debug_assert!(!text.contains('\n'), "a line of ours holds a line break");
        text.push('\n');
        Self(text.into())
    }

    /// All of it: what is forwarded.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// What is logged and looked at: all of it but a line feed, or a carriage return and a line feed, at its end.
    pub(crate) fn content(&self) -> &[u8] {
        let bytes = self.0.strip_suffix(b"\n").unwrap_or(&self.0);
        bytes.strip_suffix(b"\r").unwrap_or(bytes)
    }
}

impl From<Bytes> for Line {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

/// How much is asked of a stream at once: what a pipe holds.
const CHUNK: usize = 64 * 1024;

/// With less space than this the buffer grows before it is read into.
const LEAST_SPACE: usize = 16 * 1024;

/// Cuts what was read into lines.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    bytes: BytesMut,
    /// How much of `bytes` holds no line feed for certain.
    searched: usize,
}

impl LineBuffer {
    /// Where to read more into.
    pub(crate) fn space(&mut self) -> &mut BytesMut {
        if self.bytes.capacity() - self.bytes.len() < LEAST_SPACE {
            self.bytes.reserve(CHUNK);
        }
        &mut self.bytes
    }

    /// The next whole line, if it is here.
    pub(crate) fn take(&mut self) -> Option<Line> {
        let Some(at) = memchr(b'\n', &self.bytes[self.searched..]) else {
            self.searched = self.bytes.len();
            return None;
        };
        let line = self.bytes.split_to(self.searched + at + 1).freeze();
        self.searched = 0;
        Some(Line(line))
    }

    /// What stands after the last line feed, once the stream has ended.
    pub(crate) fn take_rest(&mut self) -> Option<Line> {
        self.searched = 0;
        let rest = self.bytes.split().freeze();
        (!rest.is_empty()).then_some(Line(rest))
    }

    /// Forgets what stands after the last line feed: the stream broke in the middle of it.
    pub(crate) fn clear(&mut self) {
        self.searched = 0;
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut buffer = LineBuffer::default();
        let mut lines = Vec::new();
        for piece in pieces {
            buffer.space().extend_from_slice(piece);
            while let Some(line) = buffer.take() {
                lines.push(line.bytes().to_vec());
            }
        }
        lines.extend(buffer.take_rest().map(|line| line.bytes().to_vec()));
        lines
    }

    #[test]
    fn lines_are_the_same_however_they_are_cut_up() {
        let text = b"one\r\n\n\x00\xff two \nno line feed at the end";
        let whole: Vec<Vec<u8>> = text
            .split_inclusive(|&byte| byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        for at in 0..=text.len() {
            let (head, tail) = text.split_at(at);
            assert_eq!(lines_of(&[head, tail]), whole, "cut at {at}");
        }
    }

    #[test]
    fn content_is_less_one_line_ending_and_nothing_more() {
        let content = |text: &'static [u8]| Line::from(Bytes::from_static(text)).content().to_vec();
        assert_eq!(content(b" {} \r\n"), b" {} ");
        assert_eq!(content(b"{}\n"), b"{}");
        assert_eq!(content(b"a\r\r\n"), b"a\r");
        assert_eq!(content(b"cut off\r"), b"cut off");
        assert_eq!(content(b"\n"), b"");
    }

    #[test]
    fn a_broken_stream_leaves_no_rest() {
        let mut buffer = LineBuffer::default();
        buffer.space().extend_from_slice(b"whole\nhalf");
        assert!(buffer.take().is_some());
        buffer.clear();
        assert_eq!(buffer.take_rest(), None);
    }
}
