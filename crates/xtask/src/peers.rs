//! `cargo xtask peers`: installs the missing Debian packages that the peers of `bench-compare` need. It asks
//! nothing, and its time is limited. Without apt, or without the right to install, it says which peers are
//! left out.

use std::process::{Command, ExitCode, Stdio};

#[path = "../../bench-compare/src/peers/libraries.rs"]
#[expect(dead_code, reason = "what the build and the peers need of it")]
mod libraries;

use libraries::{LIBRARIES, Library};

/// How `Need::get` begins if Debian packages are meant.
const APT: &str = "apt install ";
/// After this many seconds apt is ended.
const UPDATE_S: &str = "180";
const INSTALL_S: &str = "600";
/// The first version of Go that fetches the toolchain that a module asks for.
const GO_MIN: (u32, u32) = (1, 21);

/// What one peer or several peers need.
struct Need {
    /// The peers, as printed.
    title: &'static str,
    /// How to get it.
    get: &'static str,
    here: bool,
}

impl Need {
    /// Its Debian packages.
    fn packages(&self) -> Vec<&'static str> {
        self.get.strip_prefix(APT).map_or(Vec::new(), |packages| packages.split(' ').collect())
    }
}

/// What the peers need, and whether it is here.
fn needs() -> Vec<Need> {
    let of = |library: &Library| Need { title: library.title, get: library.get, here: is_here(library) };
    let mut needs =
        vec![Need { title: "C++ compiler", get: "apt install g++", here: answers("c++", &["--version"]) }];
    needs.extend(LIBRARIES.iter().map(of));
    let venv = answers("python3", &["-c", "import ensurepip, venv"]);
    needs.push(Need { title: "CodernityDB", get: "apt install python3-venv", here: venv });
    needs.push(Need { title: "bbolt, goleveldb", get: "install Go 1.25 or later", here: go_is_here() });
    needs
}

fn is_here(library: &Library) -> bool {
    let (variable, usual) = if library.is_cpp() { ("CXX", "c++") } else { ("CC", "cc") };
    let compiler = Command::new(std::env::var_os(variable).unwrap_or_else(|| usual.into()));
    let has_program = library.name != "mariadb" || libraries::mariadb_server().is_some();
    has_program && library.header_at(compiler).is_some()
}

fn go_is_here() -> bool {
    let output = Command::new("go").arg("version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    output.is_ok_and(|output| {
        go_version(&String::from_utf8_lossy(&output.stdout)).is_some_and(|found| found >= GO_MIN)
    })
}

/// The version in the output of `go version`.
fn go_version(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.strip_prefix("go version go")?.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn answers(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A line that names the peers that are left out on this machine, and how to get them. None if all are here.
pub fn left_out() -> Option<String> {
    line(&needs())
}

fn line(needs: &[Need]) -> Option<String> {
    let missing = |need: &&Need| !need.here;
    let (apt, other): (Vec<_>, Vec<_>) =
        needs.iter().filter(missing).partition(|need| need.get.starts_with(APT));
    let mut parts = Vec::new();
    if !apt.is_empty() {
        let titles: Vec<_> = apt.iter().map(|need| need.title).collect();
        parts.push(format!("{} (cargo xtask peers installs them)", titles.join(", ")));
    }
    parts.extend(other.iter().map(|need| format!("{} ({})", need.title, need.get)));
    (!parts.is_empty()).then(|| format!("peers left out, not here: {}", parts.join("; ")))
}

/// Installs what is missing, and prints what there is.
pub fn run() -> ExitCode {
    let before = needs();
    let missing: Vec<&Need> =
        before.iter().filter(|need| !need.here && !need.packages().is_empty()).collect();
    if missing.is_empty() {
        report(&before, &before);
        return ExitCode::SUCCESS;
    }
    let outcome = match Apt::find() {
        Ok(apt) => apt.get_all(&missing),
        Err(reason) => {
            println!("nothing is installed: {reason}");
            Ok(())
        }
    };
    report(&before, &needs());
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            println!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a line for each need: its peers and the outcome.
fn report(before: &[Need], after: &[Need]) {
    for (before, after) in before.iter().zip(after) {
        let outcome = match (before.here, after.here) {
            (true, true) => "here".to_owned(),
            (_, false) => format!("left out: {}", after.get),
            (false, true) => format!("installed: {}", after.packages().join(" ")),
        };
        println!("{:<18}{outcome}", after.title);
    }
}

/// apt, with the right to install.
struct Apt {
    /// Words before the command. None for root.
    as_root: &'static [&'static str],
}

impl Apt {
    fn find() -> Result<Apt, &'static str> {
        if !answers("apt-get", &["--version"]) {
            return Err("there is no apt-get on this machine");
        }
        let id = Command::new("id").arg("-u").output();
        if id.is_ok_and(|output| output.stdout.trim_ascii() == b"0") {
            return Ok(Apt { as_root: &[] });
        }
        match answers("sudo", &["-n", "true"]) {
            true => Ok(Apt { as_root: &["sudo", "-n"] }),
            false => Err("that takes root, or sudo without a password"),
        }
    }

    fn get_all(&self, needs: &[&Need]) -> Result<(), String> {
        println!("apt-get update");
        if let Err(reason) = self.run(UPDATE_S, &["update"]) {
            // Packages that were known before may be enough.
            println!("{reason}");
        }
        let known = |package: &&str| answers("apt-cache", &["show", package]);
        let wanted: Vec<Vec<&str>> =
            needs.iter().map(|need| need.packages()).filter(|packages| packages.iter().all(known)).collect();
        let all = wanted.concat();
        if all.is_empty() {
            return Ok(());
        }
        println!("apt-get install {}", all.join(" "));
        match self.install(&all) {
            Err(_) if wanted.len() > 1 => {
                // One peer's packages may fail without keeping the others away.
                let failures: Vec<String> = wanted.iter().filter_map(|one| self.install(one).err()).collect();
                if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
            }
            outcome => outcome,
        }
    }

    /// Installs packages, without questions. Removes no package that the new ones would replace.
    fn install(&self, packages: &[&str]) -> Result<(), String> {
        let mut words = vec!["--yes", "--no-install-recommends", "--no-remove", "install"];
        words.extend(packages);
        self.run(INSTALL_S, &words)
    }

    fn run(&self, seconds: &str, words: &[&str]) -> Result<(), String> {
        let mut line = self.as_root.to_vec();
        line.extend([
            "env",
            "DEBIAN_FRONTEND=noninteractive",
            "LC_ALL=C",
            "timeout",
            "--kill-after=30",
            seconds,
        ]);
        line.extend(["apt-get", "-q", "-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=2"]);
        line.extend(["-o", "Acquire::http::Timeout=30", "-o", "Acquire::https::Timeout=30"]);
        line.extend(words);
        let output = Command::new(line[0]).args(&line[1..]).stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{}: {error}", line[0]))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.trim().lines().last().unwrap_or("it was ended, as it took too long").to_owned();
        Err(format!("apt-get {} failed ({}): {last}", words.join(" "), output.status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_go_are_read() {
        assert_eq!(go_version("go version go1.25.3 linux/amd64\n"), Some((1, 25)));
        assert_eq!(go_version("go version go1.26rc1 linux/amd64"), Some((1, 26)));
        assert_eq!(go_version("go: command not found"), None);
    }

    #[test]
    fn peers_that_are_not_here_are_named_with_how_to_get_them() {
        let need = |title, get, here| Need { title, get, here };
        let mut needs = [
            need("LMDB", "apt install liblmdb-dev", false),
            need("SQLite", "apt install libsqlite3-dev", true),
            need("MariaDB", "apt install mariadb-server-core libmariadb-dev", false),
            need("bbolt", "install Go", false),
        ];
        let told =
            "peers left out, not here: LMDB, MariaDB (cargo xtask peers installs them); bbolt (install Go)";
        assert_eq!(line(&needs).as_deref(), Some(told));
        assert_eq!(needs[2].packages(), ["mariadb-server-core", "libmariadb-dev"]);
        assert!(needs[3].packages().is_empty());
        needs.iter_mut().for_each(|need| need.here = true);
        assert_eq!(line(&needs), None);
    }

    #[test]
    fn every_library_has_packages() {
        for library in &LIBRARIES {
            assert!(library.get.starts_with(APT), "{}", library.title);
            assert_eq!(libraries::get(library.name), library.get);
        }
    }
}
