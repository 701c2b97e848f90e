//! The test binaries of the workspace, and the tests in them. (Tests in documentation have no binary.)

use crate::programs;
use crate::promises;
use crate::runner::{self, Failure};
use std::path::PathBuf;
use std::process::Command;

/// One test.
#[derive(Debug, PartialEq)]
pub struct Test {
    /// The package, and the target in the package.
    target: String,
    pub name: String,
    pub program: PathBuf,
    /// The folder in which it runs: the package's.
    pub folder: PathBuf,
}

impl Test {
    /// The name as printed.
    pub fn label(&self) -> String {
        format!("{} {}", self.target, self.name)
    }

    /// The name as a part of a file's name.
    pub fn file_name(&self) -> String {
        self.label().replace(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-', "-")
    }
}

/// Builds as the test command does, and lists the tests of each binary.
pub fn tests(package: Option<&str>) -> Result<Vec<Test>, Failure> {
    let mut command = promises::built(&["test"]);
    command.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    match package {
        Some(package) => command.args(["--package", package]),
        None => command.arg("--workspace"),
    };
    let messages = runner::capture(command)?;
    let mut tests = Vec::new();
    for binary in programs::among(&messages) {
        let mut command = Command::new(&binary.file);
        command.args(["--list", "--format", "terse"]).current_dir(&binary.folder);
        let all = runner::capture(command)?;
        let mut command = Command::new(&binary.file);
        command.args(["--list", "--format", "terse", "--ignored"]).current_dir(&binary.folder);
        let ignored = runner::capture(command)?;
        let ignored: Vec<&str> = ignored.lines().filter_map(name).collect();
        let named = |name: &str| Test {
            target: binary.target.clone(),
            name: name.to_owned(),
            program: binary.file.clone(),
            folder: binary.folder.clone(),
        };
        tests.extend(all.lines().filter_map(name).filter(|name| !ignored.contains(name)).map(named));
    }
    Ok(tests)
}

/// The name of a test, from a line of a list.
fn name(line: &str) -> Option<&str> {
    line.strip_suffix(": test")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_their_tests() {
        assert_eq!(name("commands::crash::a_cut: test"), Some("commands::crash::a_cut"));
        assert_eq!(name("what: benchmark"), None);
        assert_eq!(name(""), None);
    }
}
