//! What keeps the house in order: rooms import only from those before them (`rooms`), and files stay short
//! (`sizes`). Functions are clippy's to measure (`clippy.toml`).

mod rooms;
mod sizes;
mod source;

use crate::runner::{self, Failure};
use std::process::ExitCode;

/// Looks at every crate; all that is wrong is in the failure.
pub fn check() -> Result<(), Failure> {
    let mut wrong = Vec::new();
    for crate_order in &rooms::ORDER {
        let files = source::files(&runner::root(), crate_order.folder)?;
        wrong.extend(rooms::upward(crate_order, &files));
        wrong.extend(sizes::long(&files));
    }
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
