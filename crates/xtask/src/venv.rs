//! Virtual environments of Python, which pip fills from the package index that it knows.

use crate::runner::{self, Failure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A virtual environment.
pub struct Environment(PathBuf);

impl Environment {
    /// The one in a folder.
    pub fn at(folder: &Path) -> Environment {
        Environment(folder.to_owned())
    }

    /// Makes one, and installs packages.
    pub fn new(python: &str, folder: &Path, packages: &[&str]) -> Result<Environment, Failure> {
        let mut made = Command::new(python);
        made.args(["-m", "venv"]).arg(folder).stdin(Stdio::null());
        runner::run(made)?;
        let environment = Environment(folder.to_owned());
        environment.install(packages)?;
        Ok(environment)
    }

    /// Where its programs are.
    pub fn programs(&self) -> PathBuf {
        self.0.join(if cfg!(windows) { "Scripts" } else { "bin" })
    }

    /// One of its programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs().join(name)
    }

    /// pip, with a word of its own.
    pub fn pip(&self, word: &str) -> Command {
        let mut command = Command::new(self.program("python"));
        command.args(["-m", "pip", word, "--quiet", "--disable-pip-version-check"]).stdin(Stdio::null());
        command.args(["--retries=2", "--timeout=20"]);
        command
    }

    /// Installs more packages.
    pub fn install(&self, packages: &[&str]) -> Result<(), Failure> {
        let mut command = self.pip("install");
        command.args(packages);
        runner::run(command)
    }
}
