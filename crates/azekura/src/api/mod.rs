//! The public face: databases, tables, options, figures.

mod check;
mod db;
mod options;
mod stats;
mod table;

pub use check::CheckReport;
pub use db::{CompactReport, Db, TableInfo};
pub use options::{Durability, Options};
pub use stats::{LevelStats, Stats};
pub use table::Table;

pub(crate) use options::Config;
