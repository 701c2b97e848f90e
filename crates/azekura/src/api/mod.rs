//! The public face: databases, tables, options, figures.

mod backup;
mod check;
mod db;
mod expiry;
mod index;
mod indexes;
mod options;
mod ranges;
mod stats;
mod table;
mod transact;

pub use crate::engine::{Db, Durability, Freshness, Table};
pub use check::CheckReport;
pub use db::{ShrinkReport, TableInfo};
pub use index::{AnyTxn, Index, IndexKeys, IndexRead, IndexRecords};
pub use indexes::IndexInfo;
pub use options::Options;
pub use stats::{LevelStats, PinStats, Stats, TableStats};
