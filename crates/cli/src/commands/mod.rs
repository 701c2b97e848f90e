//! The commands, one file for each.

pub mod backup;
pub mod check;
pub mod clear;
pub mod copy;
pub mod copy_table;
pub mod count;
pub mod create;
pub mod drop;
pub mod export;
pub mod feed;
pub mod follow;
pub mod get;
pub mod import;
pub mod index;
pub mod info;
pub mod merge;
pub mod mirror;
pub mod points;
pub mod promote;
pub mod prune;
pub mod remove;
pub mod remove_range;
pub mod rename;
pub mod restore;
pub mod salvage;
pub mod scan;
pub mod set;
pub mod shards;
pub mod shrink;
pub mod stream;
pub mod tables;
pub mod ttl;
pub mod verify;
pub mod watch;

use std::path::Path;

use crate::bytes;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::style::Paint;

/// Prints what is wrong, a line each.
fn print_problems(problems: &[String], output: &mut Output) -> Outcome {
    let paint = Paint::stdout();
    problems.iter().try_for_each(|problem| {
        output.line(&format!("{} {}", paint.red("problem:"), bytes::harmless(problem)))
    })
}

/// The failure of a command that has found `count` problems in a file or folder.
fn corrupt_unless_none(path: &Path, count: u64, [one, many]: [&str; 2]) -> Outcome {
    match count {
        0 => Ok(()),
        1 => Err(Failure::Corrupt(format!("{}: 1 {one}", path.display()))),
        _ => Err(Failure::Corrupt(format!("{}: {count} {many}", path.display()))),
    }
}

/// The failure of a command that looks for problems, if it has found some.
fn sound_unless(problems: &[String], path: &Path) -> Outcome {
    let count = u64::try_from(problems.len()).unwrap_or(u64::MAX);
    corrupt_unless_none(path, count, ["problem", "problems"])
}
