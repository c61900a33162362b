//! Programs: where a shell, or a host, would find them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Where a program that is started by its bare name is found.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(file_name(name)))
        .find(|file| can_run(file))
}

/// The program of that name beside the one that is running.
pub(crate) fn beside_this(name: &str) -> Option<PathBuf> {
    let file = env::current_exe().ok()?.with_file_name(file_name(name));
    can_run(&file).then_some(file)
}

/// Whether a host with a minimal `PATH` finds it by its bare name.
pub(crate) fn is_everywhere(file: &Path) -> bool {
    let everywhere = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];
    file.parent()
        .is_some_and(|folder| everywhere.iter().any(|known| folder == Path::new(known)))
}

/// The program that runs a script, when its first line has `env` look for it by name.
pub(crate) fn interpreter(file: &Path) -> Option<String> {
    use std::io::Read as _;
    let mut start = Vec::new();
    let script = fs::File::open(file).ok()?;
    script.take(256).read_to_end(&mut start).ok()?;
    let line = start.split(|byte| *byte == b'\n').next()?;
    let words = std::str::from_utf8(line).ok()?.strip_prefix("#!")?;
    let mut words = words.split_whitespace();
    let is_env = Path::new(words.next()?).file_name()? == "env";
    words
        .find(|word| !word.starts_with('-'))
        .filter(|_| is_env)
        .map(str::to_owned)
}

fn file_name(name: &str) -> String {
    format!("{name}{}", env::consts::EXE_SUFFIX)
}

#[cfg(unix)]
fn can_run(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn can_run(file: &Path) -> bool {
    file.is_file()
}
