//! Checkers of types for Python. They are installed into a virtual environment below the build folder, from
//! the package index that pip knows, and stay there. Where that cannot be done they are left out.

use crate::runner::{self, Failure};
use crate::venv::Environment;
use std::fs;
use std::path::PathBuf;

/// Exact versions, so that a new one cannot fail the tests of what has not changed. `cargo xtask python
/// --full` takes the newest.
const PACKAGES: [&str; 2] = ["mypy==2.4.1", "pyright[nodejs]==1.1.414"];

/// The folder with the checkers' programs. An error says why there are none.
pub fn programs() -> Result<PathBuf, Failure> {
    // A relative target directory is relative to the root, where cargo runs.
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let folder = runner::root().join(target).join("python-checkers");
    let (stamp, wanted) = (folder.join("installed"), PACKAGES.join("\n"));
    let environment = Environment::at(&folder);
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(environment.programs());
    }
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    println!("installing {} below the build folder", PACKAGES.join(", "));
    let made = Environment::new("python3", &folder, &PACKAGES)?;
    fs::write(&stamp, wanted).map_err(failed)?;
    Ok(made.programs())
}
