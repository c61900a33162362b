//! A proxy under test, with everything that it starts.

mod processes;
mod reader;
mod recorded;

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::Write,
    os::{fd::OwnedFd, unix::process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub(crate) use self::{reader::Reader, recorded::Recorded};

/// How long anything is waited for.
pub(crate) fn patience() -> Duration {
    let stretched = std::env::var("STRETTO_TEST_PATIENCE").ok();
    Duration::from_secs(
        stretched
            .and_then(|seconds| seconds.parse().ok())
            .unwrap_or(30),
    )
}

/// A proxy that has not been started.
pub(crate) struct Proxy {
    folder: TempDir,
    options: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    before: String,
}

impl Proxy {
    /// One that only forwards.
    pub(crate) fn forwarding() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            options: Vec::new(),
            environment: Vec::new(),
            before: String::new(),
        }
    }

    /// One that records into the folder's `logs`.
    pub(crate) fn recording() -> Self {
        let proxy = Self::forwarding();
        let logs = proxy.logs();
        proxy.option("--record").option(logs)
    }

    /// One more word before the `--`.
    pub(crate) fn option(mut self, word: impl Into<OsString>) -> Self {
        self.options.push(word.into());
        self
    }

    /// A variable of its environment. `HOME` is the folder's `home` otherwise.
    pub(crate) fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Shell commands that run first, in the process that becomes the proxy.
    pub(crate) fn after(mut self, commands: &str) -> Self {
        self.before = commands.into();
        self
    }

    /// A folder for this test alone, which is also the working directory.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where [`Proxy::recording`] records.
    pub(crate) fn logs(&self) -> PathBuf {
        self.folder().join("logs")
    }

    /// Starts it with pipes on both sides, in front of a shell script as the server.
    pub(crate) fn before_script(self, script: &str) -> Session {
        self.before_server(["sh", "-c", script])
    }

    /// Starts it with pipes on both sides, in front of a Python program as the server.
    pub(crate) fn before_python(self, program: &str) -> Session {
        self.before_server(["python3", "-u", "-c", program])
    }

    /// Starts it with pipes on both sides, in front of this command as the server.
    pub(crate) fn before_server(
        self,
        command: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Session {
        self.start(command, Stdio::piped(), Stdio::piped())
    }

    /// Starts it on these ends of the host.
    pub(crate) fn start(
        self,
        server: impl IntoIterator<Item = impl AsRef<OsStr>>,
        stdin: Stdio,
        stdout: Stdio,
    ) -> Session {
        let words = [OsString::from("--")]
            .into_iter()
            .chain(server.into_iter().map(|word| word.as_ref().to_owned()));
        let mut options = self.options.clone();
        options.extend(words);
        self.run(&options, stdin, stdout)
    }

    /// Starts it with its options alone.
    pub(crate) fn without_server(self) -> Session {
        let options = self.options.clone();
        self.run(&options, Stdio::piped(), Stdio::piped())
    }

    fn run(self, words: &[OsString], stdin: Stdio, stdout: Stdio) -> Session {
        let program = env!("CARGO_BIN_EXE_stretto-proxy");
        let mut command = if self.before.is_empty() {
            Command::new(program)
        } else {
            let mut shell = Command::new("sh");
            let script = format!("{}\nexec \"$0\" \"$@\"", self.before);
            shell.args(["-c", &script, program]);
            shell
        };
        command
            .args(words)
            .env_remove("STRETTO_LOG")
            .env("HOME", self.folder().join("home"))
            .env(processes::MARK, self.folder())
            .envs(self.environment)
            .current_dir(self.folder.path())
            .stdin(stdin)
            .stdout(stdout)
            .stderr(Stdio::piped())
            // A signal to the tests is none to the proxy, and the other way round.
            .process_group(0);
        let mut proxy = command.spawn().expect("the proxy starts");
        let messages = proxy.stderr.take().expect("a pipe was asked for");
        Session {
            input: proxy.stdin.take(),
            output: proxy.stdout.take().map(Reader::new),
            messages: Reader::new(messages),
            proxy,
            folder: self.folder,
        }
    }
}

/// A proxy that was started. Dropping it ends it, and all that it has started.
pub(crate) struct Session {
    proxy: Child,
    input: Option<ChildStdin>,
    output: Option<Reader>,
    messages: Reader,
    folder: TempDir,
}

impl Session {
    /// Sends bytes as the host. A line needs its line feed.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(bytes.as_ref()).expect("the proxy reads");
    }

    /// What it has for the host, once: for tests that write and read at the same time.
    pub(crate) fn take_ends(&mut self) -> (ChildStdin, Reader) {
        let input = self.input.take().expect("the input is open");
        (input, self.take_output())
    }

    /// The proxy's output, which is closed when the reader is dropped.
    pub(crate) fn take_output(&mut self) -> Reader {
        self.output.take().expect("the output is open")
    }

    /// Ends the host's side of the session.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Goes on without reading what is for the host.
    pub(crate) fn close_output(&mut self) {
        self.output = None;
    }

    /// The next line for the host, with its line feed. None at the end.
    pub(crate) fn line(&mut self) -> Option<Vec<u8>> {
        self.output.as_mut().expect("the output is open").line()
    }

    /// The next line for the host, as text without its line feed.
    pub(crate) fn text(&mut self) -> String {
        let line = self.line().expect("the output has not ended");
        String::from_utf8(line).unwrap().trim_end().to_owned()
    }

    /// All that is still for the host.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        self.output.as_mut().expect("the output is open").rest()
    }

    /// Reads the messages on stderr up to one that holds `words`.
    pub(crate) fn message(&mut self, words: &str) -> String {
        loop {
            let line = self
                .messages
                .line()
                .unwrap_or_else(|| panic!("stderr ended without {words:?}"));
            let line = String::from_utf8(line).unwrap();
            if line.contains(words) {
                return line;
            }
        }
    }

    /// The proxy's process.
    pub(crate) fn id(&self) -> u32 {
        self.proxy.id()
    }

    /// Sends the proxy, and nobody else, a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let proxy = Pid::from_raw(self.id().cast_signed()).expect("a process id");
        kill_process(proxy, signal).expect("the proxy runs");
    }

    /// Waits for the proxy's end.
    pub(crate) fn status(&mut self) -> ExitStatus {
        processes::wait(&mut self.proxy)
    }

    /// Waits for the proxy's end, which is an exit.
    pub(crate) fn code(&mut self) -> i32 {
        let status = self.status();
        status
            .code()
            .unwrap_or_else(|| panic!("the proxy ended with {status}"))
    }

    /// All messages on stderr that were not read yet. Waits until everybody who can write there is gone.
    pub(crate) fn messages(&mut self) -> String {
        String::from_utf8(self.messages.rest()).expect("messages are text")
    }

    /// Processes of this session that still run.
    pub(crate) fn left_running(&self) -> Vec<String> {
        processes::marked(self.folder.path())
            .into_iter()
            .map(|(_, command)| command)
            .collect()
    }

    /// A folder for this test alone.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The only log, once it is complete or at least readable.
    pub(crate) fn recorded(&self) -> Recorded {
        let logs = self.folder().join("logs");
        let files: Vec<PathBuf> = fs::read_dir(&logs)
            .expect("a folder of logs")
            .map(|file| file.unwrap().path())
            .collect();
        assert_eq!(files.len(), 1, "one log and nothing else: {files:?}");
        Recorded::read(&files[0])
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        processes::end_all(self.folder.path());
        self.proxy.wait().ok();
    }
}

/// The name of a pipe in the file system, made in `folder`.
pub(crate) fn fifo(folder: &Path) -> PathBuf {
    let path = folder.join("fifo");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &path,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
    )
    .expect("a fifo can be made");
    path
}

/// Lets whoever reads the fifo go on.
pub(crate) fn release(fifo: &Path) {
    fs::write(fifo, "go\n").expect("somebody reads the fifo");
}

/// Two ends of a socket, as Node's hosts give their servers.
pub(crate) fn sockets() -> (OwnedFd, OwnedFd) {
    let (one, other) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets");
    (one.into(), other.into())
}
