//! Runs the built binary: each test has its own folder, and sees what a command printed.

#![allow(dead_code, reason = "each subject uses its own part")]

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A folder with a database. It is removed afterwards.
pub struct Place {
    folder: TempDir,
}

impl Place {
    /// A new, empty folder.
    pub fn new() -> Place {
        Place { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// A folder with a database with an ordered table `main`.
    pub fn with_database() -> Place {
        let place = Place::new();
        place.run(["create", "db.azk"]).succeeds();
        place
    }

    /// A file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file in the folder.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), contents).expect("the file is written");
    }

    /// Reads a file in the folder.
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("the file is read")
    }

    /// The binary, in the folder, with arguments.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_azekura"));
        command.current_dir(self.folder.path()).args(arguments).env_remove("NO_COLOR");
        command
    }

    /// The same, with signals as on a terminal, even if whatever started the tests has changed them.
    pub fn interruptible<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new("env");
        command.arg("--default-signal=INT,HUP,TERM").arg(env!("CARGO_BIN_EXE_azekura"));
        command.current_dir(self.folder.path()).args(arguments).env_remove("NO_COLOR");
        command
    }

    /// Runs the binary without input.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Ran {
        let mut command = self.command(arguments);
        Ran(command.stdin(Stdio::null()).output().expect("the binary runs"))
    }

    /// Runs the binary with this input.
    pub fn run_with_input<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
        input: &[u8],
    ) -> Ran {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        // A command that fails early does not read everything.
        let _ = stdin.write_all(input);
        drop(stdin);
        Ran(child.wait_with_output().expect("the binary ends"))
    }
}

/// Sends a signal to a process, which may have ended.
pub fn signal(child: &std::process::Child, name: &str) {
    let kill = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(child.id().to_string())
        .stderr(Stdio::null())
        .status();
    kill.expect("kill runs");
}

/// The result of a command.
pub struct Ran(Output);

impl Ran {
    /// The exit status.
    pub fn status(&self) -> i32 {
        self.0.status.code().expect("the command ended by itself")
    }

    /// What it printed on standard output, as bytes.
    pub fn stdout_bytes(&self) -> &[u8] {
        &self.0.stdout
    }

    /// What it printed on standard output.
    pub fn stdout(&self) -> &str {
        std::str::from_utf8(&self.0.stdout).expect("UTF-8 output")
    }

    /// What it printed on standard error.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    /// Standard output as lines of JSON.
    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.stdout().lines().map(parse).collect()
    }

    /// Requires status 0 and a silent standard error.
    pub fn succeeds(self) -> Ran {
        assert_eq!(self.status(), 0, "{}", self.stderr());
        assert_eq!(self.stderr(), "");
        self
    }

    /// Requires status 0 and a warning in the house form that contains `part`.
    pub fn warns(self, part: &str) -> Ran {
        assert_eq!(self.status(), 0, "{}", self.stderr());
        assert!(self.stderr().starts_with("azekura: warning: "), "{}", self.stderr());
        assert!(self.stderr().contains(part), "{:?} is not in {}", part, self.stderr());
        self
    }

    /// Requires a status, no output, and an error in the house form that contains `part`.
    pub fn fails(self, status: i32, part: &str) -> Ran {
        assert_eq!(self.status(), status, "{}", self.stderr());
        assert!(self.stderr().starts_with("azekura: "), "{}", self.stderr());
        assert!(self.stderr().contains(part), "{:?} is not in {}", part, self.stderr());
        self
    }
}
