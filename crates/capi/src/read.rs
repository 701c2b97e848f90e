//! Read transactions: snapshots of all tables, with values by reference.

use crate::arguments::azk_bytes;
use crate::call::{Caller, call};
use crate::get::{found, give};
use crate::handles::{azk_db, azk_read, azk_table};
use crate::memory::{Block, LentValues};
use crate::slots::{end, own_made, owned, shared};
use crate::status::azk_status::{AZK_NOT_FOUND, AZK_OK};
use crate::status::{Outcome, azk_status};
use azekura::{ReadTxn, Table};
use std::ffi::c_void;

self_cell::self_cell!(
    /// A transaction, and the values that were lent from it.
    pub(crate) struct Lending {
        owner: ReadTxn,
        #[not_covariant]
        dependent: LentValues,
    }
);

/// What a read transaction's handle holds. It stays in its slot, so its size costs nothing.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Reading {
    /// No values were lent.
    Plain(ReadTxn),
    /// The caller may have pointers to values.
    Lending(Lending),
    /// For a moment, while the value is moved.
    Moving,
}

impl Reading {
    /// The transaction.
    #[inline(always)]
    pub(crate) fn txn(&self) -> Outcome<&ReadTxn> {
        match self {
            Reading::Plain(txn) => Ok(txn),
            Reading::Lending(lending) => Ok(lending.borrow_owner()),
            Reading::Moving => Err(crate::slots::gone::<azk_read>()),
        }
    }

    /// Reads a value, whose bytes stay in place.
    fn lend(&mut self, table: &Table, key: &[u8]) -> Outcome<Option<azk_bytes>> {
        *self = match std::mem::replace(self, Reading::Moving) {
            Reading::Plain(txn) => Reading::Lending(Lending::new(txn, |_| LentValues::default())),
            other => other,
        };
        let Reading::Lending(lending) = self else { return Err(crate::slots::gone::<azk_read>()) };
        lending.with_dependent(|txn, values| {
            let Some(value) = txn.get_ref(table, key)? else { return Ok(None) };
            let bytes = azk_bytes::of(&value);
            values.borrow_mut().push(value);
            Ok(Some(bytes))
        })
    }

    /// Releases all values that were lent.
    fn release(&mut self) {
        if let Reading::Lending(lending) = self {
            lending.with_dependent(|_, values| values.borrow_mut().clear());
        }
    }
}

/// Begins to read a snapshot of all tables: later commits are not seen. A reader waits for nobody, and nobody
/// waits for it. The space of what it sees is kept while it is open, so keep it short. End it with
/// azk_read_end. On failure *out is NULL. Errors: none of its own (the first get reports a closed database).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_read_begin(db: *const azk_db, out: *mut *mut azk_read) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut out = c.handle_place(out)?;
        let db = shared(db)?;
        out.set(own_made(|| Some(Reading::Plain(db.read())))?);
        Ok(())
    })
}

/// Ends a read transaction. Pointers from azk_read_get_ref end with it. Cursors go on. NULL is allowed.
/// Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_read_end(read: *mut azk_read) -> azk_status {
    call(move || {
        if !read.is_null() {
            end(read)?;
        }
        Ok(AZK_OK)
    })
}

/// As azk_table_get, as the snapshot has the table. Gets in ascending order of keys are fastest. Errors:
/// AZK_INVALID if the table is of another database, AZK_NO_SUCH_TABLE if it was made later, and as
/// azk_table_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_read_get(
    read: *mut azk_read,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    buffer: *mut c_void,
    capacity: usize,
    len: *mut usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let mut into = c.buffer(buffer, capacity, len)?;
        let (read, table) = (owned(read)?, shared(table)?);
        found(read.txn()?.get_with(&table, key, |value| into.fill(value))?)
    })
}

/// As azk_table_get_alloc, as the snapshot has the table. Errors: as azk_read_get, and AZK_NO_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_read_get_alloc(
    read: *mut azk_read,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut c_void,
    value_len: *mut usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        give(c, value, value_len, || {
            let (read, table) = (owned(read)?, shared(table)?);
            Ok(read.txn()?.get_with(&table, key, Block::copy)?)
        })
    })
}

/// The value of a key, without a copy. The bytes stay unchanged in place until azk_read_release_values or
/// azk_read_end, even if the database is closed meanwhile. Any thread may read them. Until then each value
/// takes some 100 bytes of memory, and keeps the page or segment that holds it: with many values, release
/// them now and then. On failure *value is NULL and 0. Errors: as azk_read_get, without AZK_BUFFER_TOO_SMALL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_read_get_ref(
    read: *mut azk_read,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    value: *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let mut value = c.place(value, "value")?;
        value.set(azk_bytes::NONE);
        let (mut read, table) = (owned(read)?, shared(table)?);
        let Some(bytes) = read.lend(&table, key)? else { return Ok(AZK_NOT_FOUND) };
        value.set(bytes);
        Ok(AZK_OK)
    })
}

/// Releases all values that azk_read_get_ref has given in this transaction. The transaction goes on. Errors:
/// none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_read_release_values(read: *mut azk_read) -> azk_status {
    call(move || {
        owned(read)?.release();
        Ok(AZK_OK)
    })
}

/// Whether a key is present. Errors: as azk_read_get, without AZK_NOT_FOUND.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_read_contains(
    read: *mut azk_read,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    is_there: *mut bool,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let mut is_there = c.place(is_there, "is_there")?;
        let (read, table) = (owned(read)?, shared(table)?);
        is_there.set(read.txn()?.contains(&table, key)?);
        Ok(())
    })
}

/// How many records the table has. Errors: as azk_table_count, and AZK_INVALID if it is of another database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_read_count(
    read: *mut azk_read,
    table: *const azk_table,
    count: *mut u64,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut count = c.place(count, "count")?;
        let (read, table) = (owned(read)?, shared(table)?);
        count.set(read.txn()?.count(&table)?);
        Ok(())
    })
}
