//! Write transactions: beginning, commit, rollback, savepoints.

use crate::call::{Caller, call};
use crate::handles::{azk_db, azk_write};
use crate::options::durability_of;
use crate::slots::{end, own, owned, shared, take};
use crate::status::azk_status::AZK_OK;
use crate::status::{Outcome, azk_status, invalid};
use azekura::{Isolation, Savepoint, WriteOptions, WriteTxn};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a transaction that reads and writes is protected from. A transaction without writes never conflicts.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum azk_isolation {
    /// As if transactions ran one after the other. The commit fails if anything that the transaction has read
    /// was changed since. Its snapshot begins with its first read. A transaction that only writes conflicts
    /// only if a table that it writes to has indexes (a write there reads the old value), or has got or lost
    /// one meanwhile.
    AZK_SERIALIZABLE = 0,
    /// The commit fails only in three cases. A key that the transaction has written was changed since it
    /// began. Others have written records with the same values in a unique index. A table that it has written
    /// to has got or lost an index. Its snapshot begins with the transaction.
    AZK_SNAPSHOT = 1,
}

/// What a write transaction's handle holds.
pub(crate) struct Writing {
    pub(crate) txn: WriteTxn,
    /// In the order in which they were set.
    savepoints: Vec<(u64, Savepoint)>,
}

fn isolation_of(number: i32) -> Outcome<Isolation> {
    match number {
        0 => Ok(Isolation::Serializable),
        1 => Ok(Isolation::Snapshot),
        other => Err(invalid(format!("{other} is no azk_isolation"))),
    }
}

/// Begins a write transaction. Others see nothing of it until it is committed, and then everything. Any
/// number may be open at once. `durability` is an azk_durability, `isolation` an azk_isolation; 0 and 0 are
/// the defaults. End it with azk_write_commit or azk_write_rollback. On failure *out is NULL. Errors:
/// AZK_INVALID (the first call reports a closed database).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_begin(
    db: *const azk_db,
    durability: i32,
    isolation: i32,
    out: *mut *mut azk_write,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut out = c.handle_place(out)?;
        let options =
            WriteOptions { durability: durability_of(durability)?, isolation: isolation_of(isolation)? };
        let txn = shared(db)?.write_with(options);
        out.set(own(Writing { txn, savepoints: Vec::new() })?);
        Ok(())
    })
}

/// Makes all writes visible at once, and durable as was chosen. The handle is freed, whatever this returns,
/// except AZK_BAD_HANDLE and AZK_BUSY. After an error nothing was written; to try again, begin a new
/// transaction.
///
/// Errors: AZK_CONFLICT if another transaction has changed what this one depends on: run it again.
/// So it is if a name that it has looked up (azk_write_open_table and others) stands for another table by
/// now. AZK_NOT_UNIQUE if two records would have the same values in a unique index. AZK_NO_SUCH_TABLE if a
/// table was dropped since it was written to. AZK_READ_ONLY, AZK_CORRUPT, AZK_NO_SPACE, AZK_IO, AZK_POISONED,
/// AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub extern "C" fn azk_write_commit(write: *mut azk_write) -> azk_status {
    call(move || {
        take(write)?.txn.commit()?;
        Ok(AZK_OK)
    })
}

/// Drops all writes and ends the transaction. Its cursors go on. NULL is allowed. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_write_rollback(write: *mut azk_write) -> azk_status {
    call(move || {
        if !write.is_null() {
            end(write)?;
        }
        Ok(AZK_OK)
    })
}

/// Marks the writes so far, and what was done with tables, for azk_write_rollback_to. *savepoint is a number
/// that no other savepoint of this process has. The savepoint ends with the transaction. Errors: none of its
/// own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_savepoint(write: *mut azk_write, savepoint: *mut u64) -> azk_status {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut out = c.place(savepoint, "savepoint")?;
        let mut write = owned(write)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let savepoint = write.txn.savepoint();
        write.savepoints.push((number, savepoint));
        out.set(number);
        Ok(())
    })
}

/// Undoes the writes since a savepoint, and what was done with tables. The savepoint can be used again. Later
/// ones end. Errors: AZK_INVALID if the savepoint is of another transaction or has ended (nothing is undone
/// then), AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub extern "C" fn azk_write_rollback_to(write: *mut azk_write, savepoint: u64) -> azk_status {
    call(move || {
        let Writing { txn, savepoints } = &mut *owned(write)?;
        let Ok(place) = savepoints.binary_search_by_key(&savepoint, |(number, _)| *number) else {
            return Err(invalid(format!(
                "savepoint {savepoint} is of another transaction, or was rolled past"
            )));
        };
        txn.rollback_to(&savepoints[place].1)?;
        savepoints.truncate(place + 1);
        Ok(AZK_OK)
    })
}
