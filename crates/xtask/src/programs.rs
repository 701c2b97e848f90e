//! `cargo xtask public-programs`: public programs that use Kyoto Cabinet's functions for C, or ndbm's, are
//! built as they are against the headers and the library of `crates/dropin`, and run with it.
//!
//! Their sources are those of the system's packages (Debian, Ubuntu). apt-get fetches them from where this
//! machine's packages come from (`programs/sources.rs`), checks them, and puts them below the build folder.
//! Nothing is installed. What cannot be had on a machine is left out with a line that begins with `skipped:`.

mod sources;

use crate::promises;
use crate::runner::{self, Failure};
use sources::Sources;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// A program's build, and its tests, are ended after this many seconds each.
const SECONDS_MAX: &str = "300";
/// So much of what a step has said is shown if it fails.
const LINES_SHOWN: usize = 40;

/// A public program.
struct Program {
    /// As printed.
    title: &'static str,
    /// The package whose source it is part of.
    package: &'static str,
    /// What is unpacked of the source, as tar's patterns. Nothing: all of it.
    parts: &'static [&'static str],
    /// Whether it takes a few seconds. If not it is no part of the test command.
    is_quick: bool,
    /// The programs that it takes, each with an argument with which it does nothing and succeeds.
    tools: &'static [(&'static str, &'static str)],
    /// Builds it and runs its tests. Returns what is to be said of it.
    run: fn(&Place) -> Result<String, Failure>,
}

static PROGRAMS: [Program; 3] = [
    Program {
        title: "kclangctest (of Kyoto Cabinet)",
        package: "kyotocabinet",
        parts: &["*/kclangctest.c"],
        is_quick: true,
        tools: &[("cc", "--version")],
        run: kclangctest,
    },
    Program {
        title: "bogofilter",
        package: "bogofilter",
        parts: &[],
        is_quick: false,
        tools: &[("cc", "--version"), ("make", "--version"), ("perl", "-v")],
        run: bogofilter,
    },
    Program {
        title: "NDBM_File (of Perl)",
        package: "perl",
        parts: &["*/ext/NDBM_File/*", "*/t/lib/dbmt_common.pl", "*/lib/dbm_filter_util.pl"],
        is_quick: true,
        tools: &[("cc", "--version"), ("make", "--version"), ("perl", "-MExtUtils::MakeMaker")],
        run: ndbm_file,
    },
];

/// The runs of `check-langc` in Kyoto Cabinet's Makefile. (Two of them also ask for a cipher, `#zcomp=arcz`,
/// which is refused here, and left out of them.)
const LANGC: [&str; 14] = [
    "order casket.kch#bnum=5000#msiz=50000 10000",
    "order -etc casket.kch#bnum=5000#msiz=50000#dfunit=2 10000",
    "order -rnd -etc casket.kch#bnum=5000#msiz=50000#dfunit=2 10000",
    "order -rnd -etc -oat -tran casket.kch#bnum=5000#msiz=50000#dfunit=2 10000",
    "index casket.kct#bnum=5000#msiz=50000 10000",
    "index -etc casket.kct#bnum=5000#msiz=50000#dfunit=2 10000",
    "index -rnd -etc casket.kct#bnum=5000#msiz=50000#dfunit=2 10000",
    "index -rnd -etc -oat casket.kct#bnum=5000#msiz=50000#dfunit=2 10000",
    "map 10000",
    "map -etc -bnum 1000 10000",
    "map -etc -rnd -bnum 1000 10000",
    "list 10000",
    "list -etc 10000",
    "list -etc -rnd 10000",
];
/// bogofilter has that many tests at least, not counting those that it skips.
const BOGOFILTER_MIN: u64 = 50;
/// Perl's module has that many.
const NDBM_FILE_MIN: u64 = 100;

/// Where a program is built.
struct Place {
    /// Its source.
    source: PathBuf,
    /// A folder with the library, under the name that programs look for.
    lib: PathBuf,
    /// A folder with the headers.
    include: PathBuf,
    /// What its steps have said.
    log: PathBuf,
}

/// `cargo xtask public-programs`.
pub fn run() -> ExitCode {
    match build_and_run(PROGRAMS.iter()) {
        Ok(_) => ExitCode::SUCCESS,
        Err(reason) => {
            println!("xtask public-programs: FAILED: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Builds and runs those that are quick. Returns the lines for the summary.
pub fn gate() -> Result<Vec<String>, Failure> {
    build_and_run(PROGRAMS.iter().filter(|program| program.is_quick))
}

/// Builds and runs programs. Prints a line for each, and returns them.
fn build_and_run(programs: impl Iterator<Item = &'static Program>) -> Result<Vec<String>, Failure> {
    let folder = folder();
    let shared = folder.join("shared");
    lay_out(&promises::library("azekura_dropin")?, &shared)?;
    let sources = Sources::new(&folder);
    let mut lines = Vec::new();
    for program in programs {
        let started = Instant::now();
        let line = match fetch(program, &sources) {
            Err(reason) => format!("skipped: {} with the drop-in: {reason}", program.title),
            Ok(archive) => {
                let said = unpack(program, &folder, &shared, &archive)
                    .and_then(|place| (program.run)(&place))
                    .map_err(|reason| format!("{}: {reason}", program.title))?;
                let seconds = started.elapsed().as_secs_f64();
                format!("{} with the drop-in: {said} ({seconds:.1} s)", program.title)
            }
        };
        println!("{line}");
        lines.push(line);
    }
    Ok(lines)
}

/// Where all of this is: below the build folder.
fn folder() -> PathBuf {
    // A relative target directory is relative to the root, where cargo runs.
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    runner::root().join(target).join("public-programs")
}

/// Makes the folders of the library and the headers, as an installation in Kyoto Cabinet's place has them.
fn lay_out(library: &Path, shared: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| format!("{}: {error}", shared.display());
    if shared.exists() {
        fs::remove_dir_all(shared).map_err(failed)?;
    }
    let (lib, include) = (shared.join("lib"), shared.join("include"));
    fs::create_dir_all(&lib).and_then(|()| fs::create_dir_all(&include)).map_err(failed)?;
    let link = |to: &Path, name: PathBuf| std::os::unix::fs::symlink(to, name).map_err(failed);
    for name in ["libkyotocabinet.so", "libazekura_dropin.so", "libazekura_dropin.so.0"] {
        link(library, lib.join(name))?;
    }
    let headers = runner::root().join("crates/dropin/include");
    // Debian has ndbm's header under this name too, and its perl asks for that.
    for (name, of) in [("kclangc.h", "kclangc.h"), ("ndbm.h", "ndbm.h"), ("gdbm-ndbm.h", "ndbm.h")] {
        link(&headers.join(of), include.join(name))?;
    }
    Ok(())
}

/// Fetches the source of a program. An error says why it is skipped.
fn fetch(program: &Program, sources: &Result<Sources, Failure>) -> Result<PathBuf, Failure> {
    for (tool, argument) in program.tools {
        if !answers(tool, argument) {
            return Err(format!("{tool} {argument} does not answer on this machine"));
        }
    }
    sources.as_ref().map_err(Clone::clone)?.fetch(program.package)
}

/// Unpacks the source of a program.
fn unpack(program: &Program, folder: &Path, shared: &Path, archive: &Path) -> Result<Place, Failure> {
    let source = folder.join("work").join(program.package);
    let failed = |error: std::io::Error| format!("{}: {error}", source.display());
    if source.exists() {
        fs::remove_dir_all(&source).map_err(failed)?;
    }
    fs::create_dir_all(&source).map_err(failed)?;
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--file").arg(archive).arg("--directory").arg(&source);
    tar.args(["--strip-components=1", "--wildcards"]).args(program.parts);
    let log = folder.join(format!("{}.log", program.package));
    fs::write(&log, "").map_err(|error| format!("{}: {error}", log.display()))?;
    let place = Place { source, lib: shared.join("lib"), include: shared.join("include"), log };
    place.run(tar).map(|_| place)
}

impl Place {
    /// A command in a folder of the source, whose programs find the library.
    fn command(&self, folder: &str, words: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=10", SECONDS_MAX]).args(words).current_dir(self.source.join(folder));
        command.env("LD_LIBRARY_PATH", &self.lib).env("LC_ALL", "C").env("AZEKURA_CANARY", "");
        command
    }

    /// `-I` and `-L` with where headers and library are.
    fn flags(&self) -> (String, String) {
        (format!("-I{}", self.include.display()), format!("-L{}", self.lib.display()))
    }

    /// Runs a command, and returns what it has said, which is also added to the log.
    fn run(&self, mut command: Command) -> Result<String, Failure> {
        let output =
            command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        let before = fs::read_to_string(&self.log).unwrap_or_default();
        fs::write(&self.log, format!("{before}{command:?}\n{said}"))
            .map_err(|error| format!("{}: {error}", self.log.display()))?;
        if output.status.success() {
            return Ok(said);
        }
        let lines: Vec<&str> = said.lines().collect();
        println!("{}", lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n"));
        Err(format!("{command:?} failed ({}); {} has all of it", output.status, self.log.display()))
    }
}

fn answers(tool: &str, argument: &str) -> bool {
    let mut command = Command::new(tool);
    if tool == "perl" && argument.starts_with("-M") {
        command.args(["-e", "1"]);
    }
    command.arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The test program for C that comes with Kyoto Cabinet, as its Makefile runs it.
fn kclangctest(place: &Place) -> Result<String, Failure> {
    let (include, lib) = place.flags();
    let words = ["cc", "-O1", &include, "kclangctest.c", "-o", "kclangctest", &lib, "-lkyotocabinet", "-lm"];
    place.run(place.command("", &[&words[..], &["-lpthread"]].concat()))?;
    for run in LANGC {
        let words: Vec<&str> = std::iter::once("./kclangctest").chain(run.split(' ')).collect();
        let said = place.run(place.command("", &words))?;
        if !said.lines().any(|line| line == "ok") {
            return Err(format!("kclangctest {run}: it does not say ok"));
        }
    }
    Ok(format!("{} runs passed", LANGC.len()))
}

/// A filter for mail that keeps its words in Kyoto Cabinet, with all of its own tests.
fn bogofilter(place: &Place) -> Result<String, Failure> {
    let (include, lib) = place.flags();
    let (include, lib) = (format!("CPPFLAGS={include}"), format!("LDFLAGS={lib}"));
    // Not optimised, since most of the time goes into building it.
    let words =
        ["./configure", "CFLAGS=-O0", "--with-database=kyotocabinet", "--disable-dependency-tracking"];
    place.run(place.command("", &[&words[..], &[&include, &lib]].concat()))?;
    // Its manual and what else is not the program is left out.
    for folder in ["trio", "gsl", "src"] {
        if place.source.join(folder).join("Makefile").exists() {
            place.run(place.command(folder, &["make", "-j2"]))?;
        }
    }
    let version = place.run(place.command("src", &["./bogofilter", "-V"]))?;
    if !version.contains("Kyoto Cabinet") {
        return Err("bogofilter does not say that its database is Kyoto Cabinet's".to_owned());
    }
    let said = place.run(place.command("src", &["make", "-j2", "check"]))?;
    let (passed, failed) = (total(&said, "# PASS:"), total(&said, "# FAIL:") + total(&said, "# ERROR:"));
    if passed < BOGOFILTER_MIN || failed > 0 {
        return Err(format!("{passed} of its tests passed, {failed} failed"));
    }
    Ok(format!("{passed} of its tests passed"))
}

/// Perl's module for ndbm, with its tests.
fn ndbm_file(place: &Place) -> Result<String, Failure> {
    let (include, lib) = place.flags();
    let (include, lib) = (format!("INC={include}"), format!("LIBS={lib} -lazekura_dropin"));
    place.run(place.command("ext/NDBM_File", &["perl", "Makefile.PL", &include, &lib]))?;
    place.run(place.command("ext/NDBM_File", &["make"]))?;
    let module = fs::read(place.source.join("ext/NDBM_File/blib/arch/auto/NDBM_File/NDBM_File.so"));
    let needed = b"libazekura_dropin.so.0\0";
    if !module.is_ok_and(|module| module.windows(needed.len()).any(|part| part == needed)) {
        return Err("the module was not linked with the drop-in".to_owned());
    }
    let said = place.run(place.command("ext/NDBM_File", &["make", "test"]))?;
    let tests = said.lines().find_map(|line| line.strip_prefix("Files=")?.split_once("Tests="));
    let passed = tests.map_or(0, |(_, rest)| number(rest));
    if passed < NDBM_FILE_MIN || !said.contains("Result: PASS") {
        return Err(format!("{passed} of its tests passed"));
    }
    Ok(format!("{passed} of its tests passed"))
}

/// The number at the beginning of a text. 0 if there is none.
fn number(text: &str) -> u64 {
    text.trim_start().split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// The sum of the numbers behind a word, over all lines that begin with it.
fn total(said: &str, word: &str) -> u64 {
    said.lines().filter_map(|line| line.strip_prefix(word)).map(number).sum()
}

#[cfg(test)]
mod tests {
    use super::{number, total};

    #[test]
    fn what_tests_say_is_counted() {
        let said = "PASS: t.one\n# TOTAL: 70\n# PASS:  66\n# FAIL:  0\nother\n# PASS: 2\n";
        assert_eq!((total(said, "# PASS:"), total(said, "# FAIL:"), total(said, "# ERROR:")), (68, 0, 0));
        assert_eq!((number("131,  1 wallclock"), number("none"), number("")), (131, 0, 0));
    }
}
