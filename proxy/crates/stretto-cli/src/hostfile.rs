//! A host's configuration file on the disk: read, changed with a copy kept, or only compared.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use jiff::Timestamp;
use similar::TextDiff;
use stretto_hosts::{EditError, Host, without_values};

use crate::files::{write_new, write_whole};
use crate::home::{expand, shown};
use crate::screen::{Screen, safe};

/// A host's file, as it was read.
#[derive(Debug)]
pub(crate) struct HostFile {
    host: Host,
    path: PathBuf,
    text: String,
}

impl HostFile {
    /// Where `host` keeps the user's own servers.
    ///
    /// # Errors
    ///
    /// That is not known on this system.
    pub(crate) fn own(host: Host) -> anyhow::Result<PathBuf> {
        let settings = std::env::var_os("APPDATA").map(PathBuf::from);
        host.own_file(
            std::env::consts::OS,
            crate::home::home().as_deref(),
            settings.as_deref(),
        )
        .with_context(|| {
            format!("where {host} keeps its servers is not known here; name the file with --file")
        })
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is not text.
    pub(crate) fn read(host: Host, path: &Path) -> anyhow::Result<Self> {
        let path = expand(path);
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", shown(&path)))?;
        Ok(Self { host, path, text })
    }

    /// Changes the file, after a copy of it was put beside it, and returns where that is. With
    /// `dry_run`, shows what would change and returns `None`.
    ///
    /// # Errors
    ///
    /// The change cannot be made, or not be written. The file is then as it was.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&str) -> Result<String, EditError>,
        dry_run: bool,
        screen: &mut Screen,
    ) -> anyhow::Result<Option<PathBuf>> {
        let name = shown(&self.path);
        let new = change(&self.text).with_context(|| format!("{name} stays as it is"))?;
        if dry_run {
            let [old, new] = [&self.text, &new].map(|text| without_values(text, self.host));
            show_difference(&name, &old?, &new?, screen)?;
            return Ok(None);
        }
        let copy = self.back_up()?;
        let now = fs::read(&self.path).with_context(|| format!("reading {name}"))?;
        anyhow::ensure!(
            now == self.text.as_bytes(),
            "{name} was changed by another program just now, and stays so; try again"
        );
        write_whole(&self.path, new.as_bytes())?;
        Ok(Some(copy))
    }

    /// Copies the file beside itself, under a name with the time in it.
    fn back_up(&self) -> anyhow::Result<PathBuf> {
        let time = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{time}"));
        for number in 1..100 {
            let mut name = name.clone();
            if number > 1 {
                name.push(format!("-{number}"));
            }
            name.push(".bak");
            let copy = self.path.with_file_name(name);
            match write_new(&copy, self.text.as_bytes(), Some(&self.path)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
                Ok(()) => return Ok(copy),
            }
        }
        anyhow::bail!(
            "there are a hundred copies of {} already",
            shown(&self.path)
        )
    }
}

/// Shows what changes from `old` to `new` in the file called `name`.
///
/// # Errors
///
/// The screen cannot be written to.
pub(crate) fn show_difference(
    name: &str,
    old: &str,
    new: &str,
    screen: &mut Screen,
) -> io::Result<()> {
    let difference = TextDiff::from_lines(old, new);
    let mut shown = difference.unified_diff();
    for line in shown.header(name, name).to_string().lines() {
        writeln!(screen, "{}", safe(line.trim_end_matches('\r')))?;
    }
    Ok(())
}
