//! Write transactions: beginning, commit, rollback, savepoints.

use crate::arguments::azk_bytes;
use crate::call::{Caller, call};
use crate::handles::{azk_db, azk_write};
use crate::memory::LentValues;
use crate::options::durability_of;
use crate::slots::{end, gone, own, owned, shared, take};
use crate::status::azk_status::AZK_OK;
use crate::status::{Outcome, azk_status, invalid};
use azekura::{Isolation, Savepoint, Table, WriteOptions, WriteTxn};
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

self_cell::self_cell!(
    /// A transaction, and the values that were lent from it since its last write.
    struct LendingWrite {
        owner: WriteTxn,
        #[not_covariant]
        dependent: LentValues,
    }
);

/// A transaction, which changes nothing while values of it are lent.
#[allow(clippy::large_enum_variant, reason = "it stays in its slot, so its size costs nothing")]
enum WriteState {
    /// No values were lent.
    Plain(WriteTxn),
    /// The caller may have pointers to values.
    Lending(LendingWrite),
    /// For a moment, while the value is moved.
    Moving,
}

/// What a write transaction's handle holds.
pub(crate) struct Writing {
    state: WriteState,
    /// In the order in which they were set.
    savepoints: Vec<(u64, Savepoint)>,
}

impl Writing {
    /// The transaction, to read in it.
    #[inline(always)]
    pub(crate) fn txn(&self) -> Outcome<&WriteTxn> {
        match &self.state {
            WriteState::Plain(txn) => Ok(txn),
            WriteState::Lending(lending) => Ok(lending.borrow_owner()),
            WriteState::Moving => Err(gone::<azk_write>()),
        }
    }

    /// The transaction, to change it. What was lent is over.
    #[inline(always)]
    pub(crate) fn changed(&mut self) -> Outcome<&mut WriteTxn> {
        self.release();
        match &mut self.state {
            WriteState::Plain(txn) => Ok(txn),
            WriteState::Lending(_) | WriteState::Moving => Err(gone::<azk_write>()),
        }
    }

    /// Releases all values that were lent.
    #[inline(always)]
    fn release(&mut self) {
        if let WriteState::Lending(_) = self.state {
            self.take_back();
        }
    }

    #[cold]
    fn take_back(&mut self) {
        self.state = match std::mem::replace(&mut self.state, WriteState::Moving) {
            WriteState::Lending(lending) => WriteState::Plain(lending.into_owner()),
            other => other,
        };
    }

    /// Reads a value, whose bytes stay in place until the transaction is changed.
    pub(crate) fn lend(&mut self, table: &Table, key: &[u8]) -> Outcome<Option<azk_bytes>> {
        self.state = match std::mem::replace(&mut self.state, WriteState::Moving) {
            WriteState::Plain(txn) => WriteState::Lending(LendingWrite::new(txn, |_| LentValues::default())),
            other => other,
        };
        let WriteState::Lending(lending) = &self.state else { return Err(gone::<azk_write>()) };
        lending.with_dependent(|txn, values| {
            let Some(value) = txn.get_ref(table, key)? else { return Ok(None) };
            let bytes = azk_bytes::of(&value);
            values.borrow_mut().push(value);
            Ok(Some(bytes))
        })
    }

    /// The transaction, to end it.
    fn into_txn(mut self) -> Outcome<WriteTxn> {
        self.release();
        match self.state {
            WriteState::Plain(txn) => Ok(txn),
            WriteState::Lending(_) | WriteState::Moving => Err(gone::<azk_write>()),
        }
    }
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
        out.set(own(Writing { state: WriteState::Plain(txn), savepoints: Vec::new() })?);
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
        take(write)?.into_txn()?.commit()?;
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
        let savepoint = write.changed()?.savepoint();
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
        let write = &mut *owned(write)?;
        let Ok(place) = write.savepoints.binary_search_by_key(&savepoint, |(number, _)| *number) else {
            return Err(invalid(format!(
                "savepoint {savepoint} is of another transaction, or was rolled past"
            )));
        };
        write.release();
        let WriteState::Plain(txn) = &mut write.state else { return Err(gone::<azk_write>()) };
        txn.rollback_to(&write.savepoints[place].1)?;
        write.savepoints.truncate(place + 1);
        Ok(AZK_OK)
    })
}
