//! The order of the house: rooms import only from rooms before them (`rooms`), no files import each other in
//! a circle (`circles`), files stay short (`sizes`), and so do the lines of documents (`documents`). The length
//! of functions is left to clippy (`clippy.toml`).

mod circles;
mod documents;
mod rooms;
mod sizes;
mod source;

use crate::runner::{self, Failure};
use std::process::ExitCode;

/// Checks every crate. The failure lists everything that is wrong.
pub fn check() -> Result<(), Failure> {
    let mut wrong = Vec::new();
    for crate_order in &rooms::ORDER {
        let files = source::files(&runner::root(), crate_order.folder)?;
        wrong.extend(rooms::upward(crate_order, &files));
        wrong.extend(circles::circles(crate_order.folder, &files, circles::KNOWN));
        wrong.extend(sizes::long(&files));
    }
    for folder in rooms::WITHOUT {
        wrong.extend(circles::circles(folder, &source::files(&runner::root(), folder)?, circles::KNOWN));
    }
    wrong.extend(documents::long(&runner::root())?);
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
