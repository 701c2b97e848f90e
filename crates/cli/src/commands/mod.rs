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
pub mod follow;
pub mod get;
pub mod import;
pub mod index;
pub mod info;
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
pub mod shrink;
pub mod stream;
pub mod tables;
pub mod verify;

use crate::failure::{Failure, Outcome};
use crate::store::FileArg;

/// The failure of a command that has found `count` problems in a file.
fn corrupt_unless_none(file: &FileArg, count: u64, [one, many]: [&str; 2]) -> Outcome {
    match count {
        0 => Ok(()),
        1 => Err(Failure::Corrupt(format!("{}: 1 {one}", file.path.display()))),
        _ => Err(Failure::Corrupt(format!("{}: {count} {many}", file.path.display()))),
    }
}
