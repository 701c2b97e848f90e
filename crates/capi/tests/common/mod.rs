//! Compilers of this machine, and what they have built.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// What every compiler is told: a warning is an error.
const FLAGS: [&str; 6] = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-g", "-O1"];
/// What the archive needs of the system.
const SYSTEM: [&str; 4] = ["-lpthread", "-ldl", "-lm", "-lgcc_s"];

/// How a program gets at the library.
#[derive(Clone, Copy)]
pub enum Linking {
    /// By its name, when it starts.
    Shared,
    /// It has all of it.
    Archive,
    /// Not at all: at one of the system by this name, with the headers of this package.
    #[allow(dead_code, reason = "only the drop-in takes the place of another library")]
    System(&'static str),
}

/// The library of the package whose tests these are: its name for linkers. Its file has the package's name.
const LIBRARY: &str = if is_capi() { "azekura" } else { "azekura_dropin" };

const fn is_capi() -> bool {
    // The drop-in's tests share this file.
    matches!(env!("CARGO_PKG_NAME").as_bytes(), b"azekura-capi")
}

/// What runs a program.
pub enum Runner {
    /// The system.
    Plain,
    /// Valgrind, which fails for whatever it finds.
    Valgrind,
}

/// A compiler for one language.
pub struct Compiler {
    command: OsString,
    standard: &'static str,
    language: &'static str,
}

/// A program that was built, and a directory for it and for what it writes.
pub struct Program {
    dir: TempDir,
    path: PathBuf,
}

/// A line for whoever reads what the tests say: what they print themselves is only shown of those that fail.
pub fn skipped(what: &str) {
    let _nobody_reads = writeln!(std::io::stderr(), "skipped: {what}");
}

fn answers(command: &OsString) -> bool {
    Command::new(command).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// How cargo names this package's libraries.
fn file_name() -> String {
    format!("lib{}", env!("CARGO_PKG_NAME").replace('-', "_"))
}

/// A file that was built for these tests: it stands beside them, whatever the target directory is.
fn built(name: &str) -> PathBuf {
    let tests = std::env::current_exe().expect("the test knows where it is");
    let file = tests.with_file_name(name);
    assert!(file.exists(), "{} was not built", file.display());
    file
}

/// The blocks of a language in the documents that are of this package.
pub fn blocks(language: &str) -> Vec<String> {
    let begins = format!("```{language}\n");
    let mut blocks = Vec::new();
    for document in ["../../README.md", "../../docs/c.md"] {
        let text = std::fs::read_to_string(package().join(document)).expect("the document is there");
        let found = text.split(&begins).skip(1).filter_map(|rest| rest.split("```").next());
        blocks.extend(found.map(str::to_owned));
    }
    blocks
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    output
}

impl Compiler {
    /// The compiler for C, if there is one.
    pub fn c() -> Option<Compiler> {
        Compiler::find("CC", "cc", "c99", "c")
    }

    /// The compiler for C++, if there is one.
    pub fn cpp() -> Option<Compiler> {
        Compiler::find("CXX", "c++", "c++17", "c++")
    }

    fn find(variable: &str, usual: &str, standard: &'static str, language: &'static str) -> Option<Compiler> {
        let command = std::env::var_os(variable).unwrap_or_else(|| usual.into());
        if !answers(&command) {
            skipped(&format!("what is in {language}: there is no compiler ({usual})"));
            return None;
        }
        Some(Compiler { command, standard, language })
    }

    fn command(&self, standard: &str) -> Command {
        let mut command = Command::new(&self.command);
        command.args(FLAGS).arg(format!("-std={standard}")).arg("-I").arg(package().join("include"));
        command
    }

    /// Whether programs can be built with a flag.
    pub fn has(&self, flag: &str) -> bool {
        let dir = TempDir::new().expect("a directory");
        let source = dir.path().join("empty.c");
        std::fs::write(&source, "int main(void) { return 0; }\n").expect("a file");
        let mut command = self.command(self.standard);
        command.arg(flag).arg(&source).arg("-o").arg(dir.path().join("empty"));
        let has = command.output().is_ok_and(|output| output.status.success());
        if !has {
            skipped(&format!("{flag}: the compiler has it not"));
        }
        has
    }

    /// A header can be the only one of a program, under a standard.
    pub fn accepts(&self, header: &str, standard: &str) {
        let dir = TempDir::new().expect("a directory");
        let source = dir.path().join("only");
        std::fs::write(&source, format!("#include \"{header}\"\nint main(void) {{ return 0; }}\n"))
            .expect("a file");
        succeed(self.command(standard).args(["-fsyntax-only", "-x", self.language]).arg(source));
    }

    /// Builds the program of a source file of this package.
    pub fn build(&self, source: &str, linking: Linking, flags: &[&str]) -> Program {
        self.build_at(&package().join(source), linking, flags)
    }

    /// Builds the program of a text.
    pub fn build_text(&self, text: &str) -> Program {
        let dir = TempDir::new().expect("a directory");
        let source = dir.path().join(if self.language == "c" { "block.c" } else { "block.cpp" });
        std::fs::write(&source, text).expect("a file");
        self.build_at(&source, Linking::Shared, &[])
    }

    /// Builds the program of a source file.
    fn build_at(&self, source: &Path, linking: Linking, flags: &[&str]) -> Program {
        let dir = TempDir::new().expect("a directory");
        let path = dir.path().join("program");
        let mut command = self.command(self.standard);
        command.args(flags).arg(source).arg("-o").arg(&path);
        match linking {
            Linking::Shared => {
                let library = built(&format!("{}.so", file_name()));
                for ending in ["so", "so.0"] {
                    let link = dir.path().join(format!("lib{LIBRARY}.{ending}"));
                    std::os::unix::fs::symlink(&library, link).expect("a link");
                }
                let rpath = format!("-Wl,-rpath,{}", dir.path().display());
                let name = format!("-l{LIBRARY}");
                command.arg("-L").arg(dir.path()).args([&name, "-lpthread", &rpath]);
            }
            Linking::Archive => {
                command.arg(built(&format!("{}.a", file_name()))).args(SYSTEM);
            }
            Linking::System(name) => {
                command.args([&format!("-l{name}"), "-lpthread"]);
            }
        }
        succeed(&mut command);
        Program { dir, path }
    }
}

impl Runner {
    /// Valgrind, if it is there.
    pub fn valgrind() -> Option<Runner> {
        let is_there = answers(&"valgrind".into());
        if !is_there {
            skipped("the tests under valgrind: it is not installed");
        }
        is_there.then_some(Runner::Valgrind)
    }

    fn command(&self, program: &Path) -> Command {
        match self {
            Runner::Plain => Command::new(program),
            Runner::Valgrind => {
                let mut command = Command::new("valgrind");
                command.args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--fair-sched=yes"]);
                command.args(["--errors-for-leak-kinds=definite", "--show-leak-kinds=definite"]).arg(program);
                command
            }
        }
    }
}

impl Program {
    /// Whether these bytes are in its file.
    pub fn contains(&self, bytes: &[u8]) -> bool {
        let file = std::fs::read(&self.path).expect("the program is there");
        file.windows(bytes.len()).any(|window| window == bytes)
    }

    /// Runs it in its directory, of which it also gets the name; it must succeed. What it has printed.
    pub fn run(&self, runner: &Runner) -> String {
        self.run_with("", runner)
    }

    /// As `run`, with something to read.
    pub fn run_with(&self, input: &str, runner: &Runner) -> String {
        let data = self.dir.path().join("data");
        std::fs::create_dir_all(&data).expect("a directory");
        let file = self.dir.path().join("input");
        std::fs::write(&file, input).expect("a file");
        let input = std::fs::File::open(&file).expect("the file");
        let output = succeed(runner.command(&self.path).arg(&data).current_dir(&data).stdin(input));
        if let Runner::Valgrind = runner {
            // What it finds in a forked child does not change how the program ends.
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!said.lines().any(|line| line.starts_with("==")), "{}: {said}", self.path.display());
        }
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
