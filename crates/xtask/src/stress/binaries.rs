//! The test binaries of the workspace, and the tests in them. (Tests in documentation have no binary.)

use crate::promises;
use crate::runner::{self, Failure};
use serde_json::Value;
use std::path::{Path, PathBuf};
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

/// A test binary.
#[derive(Debug, PartialEq)]
struct Binary {
    target: String,
    program: PathBuf,
    folder: PathBuf,
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
    for binary in messages.lines().filter_map(binary) {
        let mut command = Command::new(&binary.program);
        command.args(["--list", "--format", "terse"]).current_dir(&binary.folder);
        let all = runner::capture(command)?;
        let mut command = Command::new(&binary.program);
        command.args(["--list", "--format", "terse", "--ignored"]).current_dir(&binary.folder);
        let ignored = runner::capture(command)?;
        let ignored: Vec<&str> = ignored.lines().filter_map(name).collect();
        let named = |name: &str| Test {
            target: binary.target.clone(),
            name: name.to_owned(),
            program: binary.program.clone(),
            folder: binary.folder.clone(),
        };
        tests.extend(all.lines().filter_map(name).filter(|name| !ignored.contains(name)).map(named));
    }
    Ok(tests)
}

/// The test binary in a message of cargo, if there is one.
fn binary(message: &str) -> Option<Binary> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let program = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    let target = message["target"]["name"].as_str()?;
    let package = folder.file_name()?.to_string_lossy();
    let target = if target == package { target.to_owned() } else { format!("{package}/{target}") };
    Some(Binary { target, program, folder })
}

/// The name of a test, from a line of a list.
fn name(line: &str) -> Option<&str> {
    line.strip_suffix(": test")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_binaries_are_found_among_messages() {
        let message = r#"{"reason":"compiler-artifact","manifest_path":"/p/crates/sim/Cargo.toml",
            "target":{"name":"cuts"},"profile":{"test":true},"executable":"/p/target/debug/deps/cuts-1"}"#
            .replace('\n', " ");
        let found = binary(&message).expect("a binary");
        assert_eq!((found.target.as_str(), found.folder), ("sim/cuts", PathBuf::from("/p/crates/sim")));
        assert_eq!(binary(&message.replace("\"test\":true", "\"test\":false")), None);
        assert_eq!(binary(&message.replace("\"/p/target/debug/deps/cuts-1\"", "null")), None);
        assert_eq!(binary(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(binary("not JSON"), None);
    }

    #[test]
    fn lists_name_their_tests() {
        assert_eq!(name("commands::crash::a_cut: test"), Some("commands::crash::a_cut"));
        assert_eq!(name("what: benchmark"), None);
        assert_eq!(name(""), None);
    }
}
