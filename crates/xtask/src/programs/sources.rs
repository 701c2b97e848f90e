//! Sources of the system's packages, fetched by apt-get.
//!
//! A machine's list of where packages come from often leaves out their sources. So apt-get gets lists of its
//! own below the build folder: those of the machine, with sources instead of packages. It checks what it
//! fetches as it does elsewhere.

use crate::runner::Failure;
use std::cell::OnceCell;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

/// Where a machine says where its packages come from.
const LIST: &str = "/etc/apt/sources.list";
const LISTS: &str = "/etc/apt/sources.list.d";
/// apt-get is ended after this many seconds.
const SECONDS_MAX: &str = "60";
/// The lists are fetched anew after this time.
const AGE_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Where sources are fetched to, and by which lists.
pub struct Sources {
    folder: PathBuf,
    /// Whether the lists could be fetched, once that was tried.
    updated: OnceCell<Result<(), Failure>>,
}

impl Sources {
    /// Makes the lists. An error says why there are no sources on this machine.
    pub fn new(folder: &Path) -> Result<Sources, Failure> {
        let sources = Sources { folder: folder.join("apt"), updated: OnceCell::new() };
        if sources.run("apt-get", &["--version"]).is_err() {
            return Err("there is no apt-get that fetches sources".to_owned());
        }
        for name in ["parts", "lists/partial", "cache/archives/partial"] {
            let made = sources.folder.join(name);
            fs::create_dir_all(&made).map_err(|error| format!("{}: {error}", made.display()))?;
        }
        sources.write_lists()?;
        Ok(sources)
    }

    /// The archive of a package's source as its authors have published it. It is fetched if it is not there.
    pub fn fetch(&self, package: &str) -> Result<PathBuf, Failure> {
        let folder = self.folder.join("sources").join(package);
        if let Some(there) = archive_in(&folder, package) {
            return Ok(there);
        }
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        self.updated.get_or_init(|| self.update()).clone()?;
        let known = self.run("apt-cache", &["showsrc", package])?;
        let mut reason = format!("no source of the package {package} is known");
        // The newest may be gone already from where they come from.
        for version in versions(&known) {
            let name = format!("{package}={version}");
            // Only what apt has checked gets its final name.
            let mut command = self.command("apt-get");
            command.args(["source", "--download-only", &name]).current_dir(&folder);
            match said(command) {
                Ok(_) => {
                    return archive_in(&folder, package).ok_or_else(|| format!("{name} has no archive"));
                }
                Err(failed) => reason = failed,
            }
        }
        Err(reason)
    }

    /// Fetches the lists, unless they are new.
    fn update(&self) -> Result<(), Failure> {
        let stamp = self.folder.join("updated");
        let age = fs::metadata(&stamp).and_then(|known| known.modified()).ok();
        if age.and_then(|time| SystemTime::now().duration_since(time).ok()).is_some_and(|age| age < AGE_MAX) {
            return Ok(());
        }
        self.run("apt-get", &["update"])?;
        fs::write(&stamp, "").map_err(|error| format!("{}: {error}", stamp.display()))
    }

    /// The machine's lists, of sources.
    fn write_lists(&self) -> Result<(), Failure> {
        let parts = fs::read_dir(LISTS).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        let mut any = false;
        for (number, list) in std::iter::once(PathBuf::from(LIST)).chain(parts).enumerate() {
            let Some(kind) = list.extension().and_then(OsStr::to_str) else { continue };
            let Ok(text) = fs::read_to_string(&list) else { continue };
            let text = match kind {
                "list" => of_lines(&text),
                "sources" => of_stanzas(&text),
                _ => continue,
            };
            let copy = self.folder.join("parts").join(format!("{number}.{kind}"));
            fs::write(&copy, text).map_err(|error| format!("{}: {error}", copy.display()))?;
            any = true;
        }
        if any { Ok(()) } else { Err("apt has no list of where packages come from".to_owned()) }
    }

    fn command(&self, program: &str) -> Command {
        let place = |option: &str, name: &str| format!("{option}={}", self.folder.join(name).display());
        let mut command = Command::new("timeout");
        command.args(["--kill-after=10", SECONDS_MAX, program, "--quiet"]).env("LC_ALL", "C");
        let options = [
            "Dir::Etc::sourcelist=/dev/null".to_owned(),
            place("Dir::Etc::sourceparts", "parts"),
            place("Dir::State::lists", "lists"),
            place("Dir::Cache", "cache"),
            // The folder need not be one that apt's own user may enter.
            "APT::Sandbox::User=root".to_owned(),
            "Acquire::Languages=none".to_owned(),
            // A list that cannot be had is an error, and is tried again next time.
            "APT::Update::Error-Mode=any".to_owned(),
            "Acquire::Retries=2".to_owned(),
            "Acquire::http::Timeout=20".to_owned(),
            "Acquire::https::Timeout=20".to_owned(),
        ];
        for option in &options {
            command.args(["-o", option]);
        }
        command
    }

    fn run(&self, program: &str, words: &[&str]) -> Result<String, Failure> {
        let mut command = self.command(program);
        command.args(words);
        said(command)
    }
}

/// What a command says on its standard output. An error is its last words.
fn said(mut command: Command) -> Result<String, Failure> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first =
        said.lines().find(|line| line.starts_with("E: ")).unwrap_or("it was ended, as it took too long");
    Err(format!("apt-get failed: {first}"))
}

/// The archive of the authors' source in a folder, if there is one.
fn archive_in(folder: &Path, package: &str) -> Option<PathBuf> {
    let is_it = |name: &str| {
        let rest = name.strip_prefix(package).and_then(|rest| rest.strip_prefix('_'));
        rest.is_some_and(|rest| {
            rest.rsplit_once(".orig.tar.").is_some_and(|(_, kind)| kind != "asc" && !kind.contains('.'))
        })
    };
    fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.file_name().and_then(OsStr::to_str).is_some_and(is_it))
}

/// The versions in what `apt-cache showsrc` says, the newest first.
fn versions(known: &str) -> Vec<&str> {
    let mut versions: Vec<&str> = known.lines().filter_map(|line| line.strip_prefix("Version: ")).collect();
    versions.dedup();
    versions
}

/// A list in the old form, a line for each place.
fn of_lines(text: &str) -> String {
    let of_sources = |line: &str| line.strip_prefix("deb ").map(|rest| format!("deb-src {rest}\n"));
    text.lines().filter_map(of_sources).collect()
}

/// A list in the new form, a stanza for each place.
fn of_stanzas(text: &str) -> String {
    let line =
        |line: &str| if line.starts_with("Types:") { "Types: deb-src".to_owned() } else { line.to_owned() };
    text.lines().map(|one| line(one) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_packages_become_lists_of_sources() {
        let old = "# main\ndeb [signed-by=/k] http://a b main\ndeb-src http://a b main\n";
        assert_eq!(of_lines(old), "deb-src [signed-by=/k] http://a b main\n");
        let new = "Types: deb deb-src\nURIs: http://a\nSuites: b\n\nTypes: deb\nSuites: c\n";
        let due = "Types: deb-src\nURIs: http://a\nSuites: b\n\nTypes: deb-src\nSuites: c\n";
        assert_eq!(of_stanzas(new), due);
    }

    #[test]
    fn versions_are_read() {
        assert_eq!(versions("Package: p\nVersion: 2-1\n\nPackage: p\nVersion: 1-1\n"), ["2-1", "1-1"]);
    }

    #[test]
    fn the_archive_of_a_source_is_found() {
        let folder = std::env::temp_dir().join(format!("azekura-sources-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let others =
            ["p_1.debian.tar.xz", "p_1.orig.tar.xz.asc", "p_1.dsc", "p2_1.orig.tar.xz", "p_1.orig-x.tar.xz"];
        others.iter().for_each(|name| fs::write(folder.join(name), "").expect("a file"));
        assert_eq!(archive_in(&folder, "p"), None);
        fs::write(folder.join("p_1.orig.tar.xz"), "").expect("a file");
        assert_eq!(archive_in(&folder, "p"), Some(folder.join("p_1.orig.tar.xz")));
        fs::remove_dir_all(&folder).expect("it goes");
    }
}
