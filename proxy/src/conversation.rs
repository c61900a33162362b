//! The conversation between the user and the agent, which the host writes into a file.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use bytes::BytesMut;
use rustix::fs::OFlags;
use tracing::warn;

use crate::line::{Line, LineBuffer};

/// The file, and how far it was read.
#[derive(Debug)]
pub(crate) struct Conversation {
    path: PathBuf,
    offset: u64,
    has_said_shorter: bool,
}

impl Conversation {
    /// The conversation in the file at `path`, from its start. The file may come later.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            offset: 0,
            has_said_shorter: false,
        }
    }

    /// The whole lines that were not there the last time, less the blank ones.
    ///
    /// A file that is not there, or cannot be read, says nothing yet. One that has become
    /// shorter was emptied or replaced: it is read from its start.
    pub(crate) fn new_lines(&mut self) -> Vec<Line> {
        let Ok(mut lines) = self.read() else {
            return Vec::new();
        };
        let mut new = Vec::new();
        while let Some(line) = lines.take() {
            self.offset += line.bytes().len() as u64;
            if !line.bytes().iter().all(u8::is_ascii_whitespace) {
                new.push(line);
            }
        }
        new
    }

    fn read(&mut self) -> io::Result<LineBuffer> {
        let mut file = open(&self.path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let length = metadata.len();
        if length < self.offset {
            self.offset = 0;
            if !self.has_said_shorter {
                self.has_said_shorter = true;
                warn!(
                    "the conversation in {} has become shorter: it is read from its start again",
                    self.path.display()
                );
            }
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut new = Vec::new();
        file.read_to_end(&mut new)?;
        let mut lines = LineBuffer::default();
        *lines.space() = BytesMut::from(new.as_slice());
        Ok(lines)
    }
}

/// Opens the file without waiting: nobody may ever write into a pipe of that name.
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;

    File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn append(path: &Path, text: &[u8]) {
        use std::io::Write;

        File::options()
            .create(true)
            .append(true)
            .open(path)
            .unwrap()
            .write_all(text)
            .unwrap();
    }

    fn heard(conversation: &mut Conversation) -> Vec<String> {
        let lines = conversation.new_lines();
        lines
            .iter()
            .map(|line| String::from_utf8_lossy(line.content()).into_owned())
            .collect()
    }

    #[test]
    fn each_whole_line_is_heard_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("talk.jsonl");
        let mut conversation = Conversation::new(path.clone());
        assert!(heard(&mut conversation).is_empty(), "no file yet");
        append(&path, b"one\n \t\r\n\ntwo\r\nthr");
        assert_eq!(heard(&mut conversation), ["one", "two"]);
        assert!(heard(&mut conversation).is_empty());
        append(&path, b"ee\n\xff\n");
        assert_eq!(heard(&mut conversation), ["three", "\u{fffd}"]);
    }

    #[test]
    fn a_file_that_became_shorter_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("talk.jsonl");
        let mut conversation = Conversation::new(path.clone());
        append(&path, b"a long line\nanother\n");
        assert_eq!(heard(&mut conversation).len(), 2);
        fs::write(&path, "new\n").unwrap();
        assert_eq!(heard(&mut conversation), ["new"]);
        fs::write(&path, "").unwrap();
        assert!(heard(&mut conversation).is_empty());
        append(&path, b"x\n");
        assert_eq!(heard(&mut conversation), ["x"]);
    }

    #[test]
    fn what_is_no_file_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert!(heard(&mut Conversation::new(folder.path().into())).is_empty());
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        assert!(heard(&mut Conversation::new(pipe)).is_empty());
        assert!(heard(&mut Conversation::new("/dev/zero".into())).is_empty());
    }
}
