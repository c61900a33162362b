//! What people see: stdout for what was asked for, stderr for what went wrong.
//!
//! Recorded sessions hold whatever a server chose to send. [`safe`] keeps that from steering
//! the terminal; everything that comes from a file or a command line passes through it.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, BufWriter, StdoutLock, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};

/// How things look. Written around a text as `{BOLD}text{BOLD:#}`; without colour, nothing.
pub mod style {
    use super::{AnsiColor, Style};

    /// What the eye should find first.
    pub const BOLD: Style = Style::new().bold();
    /// What is there for those who look for it.
    pub const DIM: Style = Style::new().dimmed();
    /// What failed.
    pub const BAD: Style = AnsiColor::Red.on_default().bold();
    /// What should be looked at.
    pub const WARN: Style = AnsiColor::Yellow.on_default();
    /// What the user said.
    pub const USER: Style = AnsiColor::Cyan.on_default().bold();
    /// What the agent said.
    pub const AGENT: Style = AnsiColor::Green.on_default().bold();
    /// What the proxy did on its own account.
    pub const PROXY: Style = AnsiColor::Magenta.on_default().bold();
}

/// Standard output: buffered, and in colour only where colour belongs.
pub struct Screen {
    out: BufWriter<AutoStream<StdoutLock<'static>>>,
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Screen").finish_non_exhaustive()
    }
}

impl Screen {
    /// The program's own stdout.
    pub fn stdout() -> Self {
        Self {
            out: BufWriter::with_capacity(64 * 1024, AutoStream::auto(io::stdout().lock())),
        }
    }

    /// How many columns there are: the terminal's, within reason, or 100 without one.
    pub fn width(&self) -> usize {
        let terminal = terminal_size::terminal_size_of(io::stdout());
        terminal.map_or(100, |(terminal_size::Width(columns), _)| {
            usize::from(columns).clamp(60, 160)
        })
    }

    /// Writes out what is still held back.
    ///
    /// # Errors
    ///
    /// What the last write said, such as that nobody reads any more.
    pub fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Standard error, with the program's name before each line.
#[derive(Debug)]
pub struct Voice(());

impl Voice {
    /// The program's own stderr.
    pub fn stderr() -> Self {
        Self(())
    }

    /// Repeats several lines that have their own form, safe to show.
    pub fn quote(&mut self, lines: &str) {
        let lines: Vec<_> = lines.lines().map(safe).collect();
        drop(
            io::stderr()
                .lock()
                .write_all(format!("{}\n", lines.join("\n")).as_bytes()),
        );
    }

    /// Says one line.
    pub fn say(&mut self, line: &str) {
        let line = format!("stretto: {}\n", safe(line));
        // With stderr gone there is nobody left to tell.
        drop(io::stderr().lock().write_all(line.as_bytes()));
    }
}

/// An error and its causes on one line.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        // Some libraries repeat their cause in their own text.
        if line.ends_with(&cause) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(&cause);
    }
    line
}

/// Whether `error` only says that whoever read our stdout has gone, as `head` does.
pub(crate) fn is_reader_gone(error: &anyhow::Error) -> bool {
    fn is_broken_pipe(cause: &(dyn Error + 'static)) -> bool {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }
    error.chain().any(is_broken_pipe)
}

/// `text` with everything spelled out that would steer a terminal instead of showing.
///
/// C0 and C1 controls (line breaks and tabs included), DEL, and the invisible characters that
/// reorder a line or hide in it become `\n`, `\t`, or `\u{1b}`.
///
/// ```
/// assert_eq!(stretto_cli::screen::safe("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
/// ```
pub fn safe(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            _ if is_unsafe(character) => {
                write!(shown, "\\u{{{:x}}}", u32::from(character))
                    .expect("memory takes every write");
            }
            _ => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

/// A line of JSON that means the same, with nothing in it that would steer a terminal.
pub(crate) fn safe_json(line: &str) -> Cow<'_, str> {
    if !line.contains(is_unsafe) {
        return Cow::Borrowed(line);
    }
    let mut shown = String::with_capacity(line.len() + 16);
    for character in line.chars() {
        if is_unsafe(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(shown, "\\u{unit:04x}").expect("memory takes every write");
            }
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Whether a terminal would act on `character`, or a reader not see it.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // Marks, embeddings, overrides and isolates that change the direction of text.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
            // Line and paragraph separators, which some terminals break lines at.
            | '\u{2028}' | '\u{2029}'
            // Of no width: joiners aside, which scripts and pictographs need.
            | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            // Tags, an alphabet that is never shown.
            | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_spelled_out() {
        let nasty = "\u{1b}]0;title\u{7}\u{9b}31m\u{7f}\u{202e}abc\r\nx\ty\0";
        assert_eq!(
            safe(nasty),
            "\\u{1b}]0;title\\u{7}\\u{9b}31m\\u{7f}\\u{202e}abc\\r\\nx\\ty\\u{0}"
        );
    }

    #[test]
    fn plain_text_of_any_script_stays_as_it_is() {
        for text in ["héllo – 漢字 🙂 👩‍💻", "עברית", ""] {
            assert!(matches!(safe(text), Cow::Borrowed(same) if same == text));
        }
    }
}
