//! The order of the house: rooms import only from rooms before them (`rooms`), no files import each other in
//! a circle (`circles`), files and functions stay short (`sizes`), and so do the lines of comments
//! (`comments`) and documents (`documents`), and the files that these name are there (`paths`).

mod circles;
mod comments;
mod documents;
mod paths;
mod rooms;
mod sizes;
mod source;

use crate::runner::{self, Failure};
use std::process::ExitCode;

/// The document that has a table of the engine's rooms.
const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Checks every crate. The failure lists everything that is wrong.
pub fn check() -> Result<(), Failure> {
    let mut wrong = Vec::new();
    for crate_order in &rooms::ORDER {
        let files = source::files(&runner::root(), crate_order.folder)?;
        wrong.extend(rooms::upward(crate_order, &files));
        wrong.extend(circles::circles(crate_order.folder, &files));
        wrong.extend(sizes::long(&files));
        if crate_order.folder == rooms::ORDER[0].folder {
            let path = runner::root().join(ARCHITECTURE);
            let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            wrong.extend(rooms::untrue_table(crate_order, &files, &text));
        }
    }
    for folder in rooms::WITHOUT {
        let files = source::files(&runner::root(), folder)?;
        wrong.extend(circles::circles(folder, &files));
        wrong.extend(sizes::long(&files));
    }
    wrong.extend(sizes::long_beside(&runner::root())?);
    wrong.extend(comments::wide(&runner::root())?);
    wrong.extend(documents::long(&runner::root())?);
    wrong.extend(paths::missing(&runner::root())?);
    if wrong.is_empty() { Ok(()) } else { Err(format!("\n  {}", wrong.join("\n  "))) }
}

/// `cargo xtask house`.
pub fn run() -> ExitCode {
    match check() {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            println!("not in order:{wrong}");
            ExitCode::FAILURE
        }
    }
}
