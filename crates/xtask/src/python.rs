//! `cargo xtask python`: builds the extension module with the flags of the tests, and runs the tests of the
//! Python package.

use crate::promises;
use crate::runner::{self, Failure};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Whether the interpreter is new enough: the module uses the stable ABI of 3.11.
const NEW_ENOUGH: &str = "import sys; sys.exit(sys.version_info < (3, 11))";
const LEFT_OUT: &str = "no python3 of version 3.11 or later: the tests of the Python package are left out";

/// `cargo xtask python`.
pub fn run() -> ExitCode {
    match gate() {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            println!("xtask python: FAILED: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the tests. Returns the line for the summary.
pub fn gate() -> Result<String, Failure> {
    let mut asked = Command::new("python3");
    asked.args(["-c", NEW_ENOUGH]).stdout(Stdio::null()).stderr(Stdio::null());
    if !asked.status().is_ok_and(|status| status.success()) {
        return Ok(LEFT_OUT.to_owned());
    }
    let library = build()?;
    let folder = std::env::temp_dir().join(format!("azekura-python-{}", std::process::id()));
    let outcome = lay_out(&library, &folder).and_then(|()| test(&folder));
    // A folder that stays behind is no failure.
    let _ = fs::remove_dir_all(&folder);
    outcome.map(|()| "python: the tests of the package passed".to_owned())
}

/// Builds the module. Returns its file, as cargo names it.
fn build() -> Result<PathBuf, Failure> {
    let mut command = promises::built(&["build"]);
    // All libraries, as the tests build them. For the module alone the engine's dependencies would have other
    // features, and the engine would be built again.
    command.args(["--workspace", "--lib", "--message-format", "json-render-diagnostics"]);
    let messages = runner::capture(command)?;
    messages.lines().find_map(library_in).ok_or_else(|| "cargo has named no extension module".to_owned())
}

/// The shared library in a message of cargo, if it is the module.
fn library_in(message: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    if message.pointer("/target/name")? != "_azekura" {
        return None;
    }
    let files = message.get("filenames")?.as_array()?.iter().filter_map(|file| file.as_str());
    let shared = [OsStr::new("so"), OsStr::new("dylib")];
    files.map(PathBuf::from).find(|file| file.extension().is_some_and(|kind| shared.contains(&kind)))
}

/// Copies the package, its tests and the module into one folder.
fn lay_out(library: &Path, folder: &Path) -> Result<(), Failure> {
    for part in ["azekura", "tests"] {
        let (from, to) = (runner::root().join("python").join(part), folder.join(part));
        copy_files(&from, &to).map_err(|error| format!("{}: {error}", from.display()))?;
    }
    let module = folder.join("azekura").join("_azekura.abi3.so");
    fs::copy(library, &module).map_err(|error| format!("{}: {error}", module.display()))?;
    Ok(())
}

/// Copies the files of a folder, without modules that were built there.
fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let file = entry?.path();
        let is_module = file.extension().is_some_and(|kind| kind == "so");
        if let (true, false, Some(name)) = (file.is_file(), is_module, file.file_name()) {
            fs::copy(&file, to.join(name))?;
        }
    }
    Ok(())
}

fn test(folder: &Path) -> Result<(), Failure> {
    let mut command = Command::new("python3");
    // The tests find documents from the root. No canary is active.
    command.args(["-B", "-W", "error", "-m", "unittest"]).current_dir(folder);
    command.env("AZEKURA_ROOT", runner::root()).env("AZEKURA_CANARY", "");
    runner::run(command)
}

#[cfg(test)]
mod tests {
    use super::library_in;

    #[test]
    fn the_module_is_found_in_what_cargo_says() {
        let ours = r#"{"target":{"name":"_azekura"},"filenames":["/t/lib_azekura.d","/t/lib_azekura.so"]}"#;
        assert_eq!(library_in(ours).as_deref(), Some(std::path::Path::new("/t/lib_azekura.so")));
        assert_eq!(library_in(r#"{"target":{"name":"azekura"},"filenames":["/t/a.so"]}"#), None);
        assert_eq!(library_in("Compiling"), None);
    }
}
