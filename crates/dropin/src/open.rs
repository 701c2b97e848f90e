//! An open database.

use crate::claim::Claim;
use crate::name::Kind;
use azekura::{Db, Durability, Isolation, Table, WriteOptions, WriteTxn};
use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An open database.
pub(crate) struct Open {
    /// The transaction under way. Before `db`, so that it is dropped first.
    pub(crate) txn: Option<Mutex<WriteTxn>>,
    pub(crate) table: Table,
    pub(crate) db: Db,
    pub(crate) path: CString,
    pub(crate) kind: Kind,
    pub(crate) writer: bool,
    /// The durability of commits, if the caller does not say.
    pub(crate) durability: Durability,
    /// The number of this opening, by which cursors know theirs.
    pub(crate) opening: u64,
    /// The file, which nobody else in this process opens meanwhile.
    pub(crate) _claim: Option<Claim>,
}

impl Open {
    /// A database that was just opened.
    pub(crate) fn new(db: Db, table: Table, path: CString, kind: Kind, writer: bool) -> Open {
        static OPENINGS: AtomicU64 = AtomicU64::new(1);
        let opening = OPENINGS.fetch_add(1, Ordering::Relaxed);
        let durability = Durability::Eventual;
        Open { txn: None, table, db, path, kind, writer, durability, opening, _claim: None }
    }

    /// A transaction of the engine. Nobody else writes, so it need not watch what it reads.
    pub(crate) fn begin(&self, durability: Option<Durability>) -> WriteTxn {
        let durability = Some(durability.unwrap_or(self.durability));
        self.db.write_with(WriteOptions { durability, isolation: Isolation::Snapshot })
    }

    /// The length of the file.
    pub(crate) fn size(&self) -> i64 {
        i64::try_from(self.db.stats().file_bytes).unwrap_or(i64::MAX)
    }

    pub(crate) fn outer(&self) -> Option<MutexGuard<'_, WriteTxn>> {
        self.txn.as_ref().map(|txn| txn.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
