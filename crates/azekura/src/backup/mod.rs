//! Backups: copies of a database that is written meanwhile, in a repository, in a stream or in a file.
//!
//! ```text
//! engine/capture ─► pieces ─┬─► chunks ─► points/N        a repository   make
//!   a state, pinned         ├─► stream ─────────────┐     through a pipe stream
//!                           └─► target (a file) ◄───┴──── restore        target
//! ```
//!
//! A repository is a directory:
//!
//! - `repository`: the file's id and lineage. Backups, restores and checks hold its lock shared, pruning
//!   alone.
//! - `chunks/…`: pieces of runs, value segments and logs, named by lineage, part and digest. One that has its
//!   name is whole and durable, for it was synced before.
//! - `points/N`: what one commit consists of. It is written when all its chunks are durable, and named last.
//!
//! So a backup that is cut off leaves chunks, which the next backup finds, and files with temporary names,
//! which pruning removes. A point is there with all that it names, or not at all. Runs never change, so a
//! backup reads only those that the newest point does not have (`make`). A restored file has a lineage of its
//! own (`target`).
//!
//! A backup beside a writing process is of its newest checkpoint and of the log beyond that. Such a point is
//! the database after the log's last commit, and that after each one before it can be restored, too (`log`).
//! Such a point may go on growing by what is committed later (`keep_log`).

mod aside;
mod chunks;
mod files;
mod growing;
mod keep;
mod keep_log;
mod limits;
mod log;
mod make;
mod pace;
mod pieces;
mod prune;
mod repository;
mod restore;
mod stream;
mod target;
#[cfg(all(test, not(loom)))]
mod tests;
mod verify;

pub(crate) use files::failed;
pub use keep::Keep;
pub use keep_log::{LogKeeper, LogKept};
pub use make::BackupReport;
pub(crate) use make::backup;
pub use pace::CopyOptions;
pub(crate) use pace::Pace;
pub use prune::PruneReport;
pub use repository::{PointInfo, PointList, Repository};
pub use restore::{RestoreReport, Which};
pub(crate) use stream::backup_to;
pub use stream::{restore_stream, restore_stream_on};
pub(crate) use target::copy;
pub use verify::VerifyReport;
