//! Read transactions: snapshots of all tables, with values by reference.

use crate::arguments::azk_bytes;
use crate::call::{Caller, call};
use crate::get::{found, give};
use crate::handles::{azk_db, azk_read, azk_table};
use crate::memory::Block;
use crate::slots::{end, own, owned, shared};
use crate::status::azk_status::{AZK_NOT_FOUND, AZK_OK};
use crate::status::{Outcome, azk_status};
use azekura::{ReadTxn, Table, ValueRef};
use std::cell::RefCell;
use std::ffi::c_void;

type Values<'a> = RefCell<Vec<ValueRef<'a>>>;

self_cell::self_cell!(
    /// A transaction, and what was read from it and is still to stand where it is.
    pub(crate) struct Lending {
        owner: ReadTxn,
        #[not_covariant]
        dependent: Values,
    }
);

/// What a read transaction's handle holds. It stays in its slot, so that its size costs nobody anything.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Reading {
    /// Nothing by reference yet.
    Plain(ReadTxn),
    /// Values that the caller has pointers to.
    Lending(Lending),
    /// In between, for the time of a move.
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

    /// Reads a value that stays where it is.
    fn lend(&mut self, table: &Table, key: &[u8]) -> Outcome<Option<azk_bytes>> {
        *self = match std::mem::replace(self, Reading::Moving) {
            Reading::Plain(txn) => Reading::Lending(Lending::new(txn, |_| Values::default())),
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

    /// Lets go of all values that were lent.
    fn release(&mut self) {
        if let Reading::Lending(lending) = self {
            lending.with_dependent(|_, values| values.borrow_mut().clear());
        }
    }
}

/// Begins to read a snapshot of all tables: commits made later are not seen. It waits for nobody and nobody
/// waits for it. While it is open the space of what it sees is kept, so it should not be open for long. To be
/// ended with azk_read_end. On failure *out is NULL. Errors: none of its own (a closed database is noticed by
/// the first get).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_read_begin(db: *const azk_db, out: *mut *mut azk_read) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(|c| {
        let mut out = c.handle_place(out)?;
        out.set(own(Reading::Plain(shared(db)?.read()))?);
        Ok(())
    })
}

/// Ends a read transaction. Pointers from azk_read_get_ref end with it; cursors go on. NULL is nothing to
/// end. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_read_end(read: *mut azk_read) -> azk_status {
    call(|| {
        if !read.is_null() {
            end(read)?;
        }
        Ok(AZK_OK)
    })
}

/// As azk_table_get, as of the snapshot. Keys in ascending order are found fastest. Errors: AZK_INVALID if
/// the table is of another database, AZK_NO_SUCH_TABLE if it was made later, and as azk_table_get.
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
    unsafe { Caller::trusted() }.call(|c| {
        let key = c.bytes(key, key_len, "key")?;
        let mut into = c.buffer(buffer, capacity, len)?;
        let (read, table) = (owned(read)?, shared(table)?);
        found(read.txn()?.get_with(&table, key, |value| into.fill(value))?)
    })
}

/// As azk_table_get_alloc, as of the snapshot. Errors: as azk_read_get, and AZK_NO_MEMORY.
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
    unsafe { Caller::trusted() }.call(|c| {
        let key = c.bytes(key, key_len, "key")?;
        give(c, value, value_len, || {
            let (read, table) = (owned(read)?, shared(table)?);
            Ok(read.txn()?.get_with(&table, key, Block::copy)?)
        })
    })
}

/// The value of a key without a copy. The bytes stay where they are and as they are until
/// azk_read_release_values or azk_read_end, whatever is done to the database meanwhile, its closing included;
/// any thread may read them. Each value takes some 100 bytes of memory until then, and keeps what it stands
/// in: of many, let go now and then. On failure *value is NULL and 0. Errors: as azk_read_get, but for
/// AZK_BUFFER_TOO_SMALL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_read_get_ref(
    read: *mut azk_read,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    value: *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(|c| {
        let key = c.bytes(key, key_len, "key")?;
        let mut value = c.place(value, "value")?;
        value.set(azk_bytes::NONE);
        let (mut read, table) = (owned(read)?, shared(table)?);
        let Some(bytes) = read.lend(&table, key)? else { return Ok(AZK_NOT_FOUND) };
        value.set(bytes);
        Ok(AZK_OK)
    })
}

/// Lets go of all values that azk_read_get_ref has given in this transaction, which goes on.
/// Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_read_release_values(read: *mut azk_read) -> azk_status {
    call(|| {
        owned(read)?.release();
        Ok(AZK_OK)
    })
}

/// Whether a key is there. Errors: as azk_read_get, but for AZK_NOT_FOUND.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_read_contains(
    read: *mut azk_read,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    is_there: *mut bool,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(|c| {
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
    unsafe { Caller::trusted() }.run(|c| {
        let mut count = c.place(count, "count")?;
        let (read, table) = (owned(read)?, shared(table)?);
        count.set(read.txn()?.count(&table)?);
        Ok(())
    })
}
