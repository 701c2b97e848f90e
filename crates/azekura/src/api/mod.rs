//! The public face: databases, tables, options, figures.

mod any_txn;
mod backup;
mod check;
mod db;
mod expiry;
mod feed;
mod index;
mod indexes;
mod merging;
mod options;
mod ranges;
mod stats;
mod table;
mod transact;

pub use crate::engine::{Db, Durability, Freshness, Table};
pub use crate::format::feed::FeedContent;
pub use crate::format::operand::Merge;
pub use any_txn::AnyTxn;
pub use check::CheckReport;
pub use db::{ShrinkReport, TableInfo};
pub use feed::{Change, ChangeKind, FedTableInfo, Feed, FeedCursor, FeedInfo};
pub use index::{Index, IndexKeys, IndexRead, IndexRecords};
pub use indexes::IndexInfo;
pub use options::Options;
pub use stats::{LevelStats, PinStats, Stats, TableStats};
