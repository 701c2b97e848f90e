//! The feed of changes: choosing what is fed, and reading it.

mod read;
mod settings;

pub use read::{Change, ChangeKind, Feed};
pub(super) use settings::FeedRecords;
pub use settings::{FedTableInfo, FeedCursor, FeedInfo};
