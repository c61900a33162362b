//! Reads lines with patience.

use std::os::fd::OwnedFd;

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};

use super::patience;

/// The reading end of a pipe, a socket or a terminal.
pub(crate) struct Reader {
    end: OwnedFd,
    read: Vec<u8>,
    /// How much of `read` was given out.
    given: usize,
}

impl Reader {
    pub(crate) fn new(end: impl Into<OwnedFd>) -> Self {
        Self {
            end: end.into(),
            read: Vec::new(),
            given: 0,
        }
    }

    /// The next line with its line feed, or what stands after the last one. None at the end.
    pub(crate) fn line(&mut self) -> Option<Vec<u8>> {
        let mut searched = self.given;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.read[searched..]) {
                return Some(self.give(searched + at + 1));
            }
            searched = self.read.len();
            if !self.more() {
                let rest = self.give(self.read.len());
                return (!rest.is_empty()).then_some(rest);
            }
        }
    }

    /// All that comes until the end.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.more() {}
        self.give(self.read.len())
    }

    fn give(&mut self, until: usize) -> Vec<u8> {
        let given = self.read[self.given..until].to_vec();
        self.given = until;
        if self.given == self.read.len() {
            self.read.clear();
            self.given = 0;
        }
        given
    }

    /// Reads some more. False at the end.
    fn more(&mut self) -> bool {
        let mut ends = [PollFd::new(&self.end, PollFlags::IN)];
        let limit = patience().try_into().expect("a time");
        let ready = poll(&mut ends, Some(&limit)).expect("an end can be waited for");
        assert_ne!(
            ready,
            0,
            "nothing came; so far: {:?}",
            String::from_utf8_lossy(&self.read[self.given..])
        );
        let before = self.read.len();
        self.read.resize(before + 64 * 1024, 0);
        let count = match rustix::io::read(&self.end, &mut self.read[before..]) {
            Ok(count) => count,
            // A terminal or a socket whose other end is gone.
            Err(Errno::IO | Errno::CONNRESET) => 0,
            Err(error) => panic!("reading from the proxy: {error}"),
        };
        self.read.truncate(before + count);
        count > 0
    }
}
