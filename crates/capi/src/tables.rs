//! Tables: making, opening, listing, renaming, dropping.

use crate::arguments::ResultPlace;
use crate::call::{Caller, call};
use crate::db::with_db;
use crate::handles::{azk_db, azk_table};
use crate::memory::Block;
use crate::slots::{end_shared, share, shared};
use crate::status::{Outcome, azk_status, invalid};
use azekura::{Table, TableKind};
use std::ffi::c_char;

/// How a table orders its records.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum azk_kind {
    /// In the byte order of the keys: allows ranges, prefixes, and cursors from any key.
    AZK_ORDERED = 1,
    /// In the order of the keys' hashes: the fastest gets, but iteration in no useful order.
    AZK_HASH = 2,
}

/// One table of a list.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct azk_table_info {
    /// Its name, which ends with a zero byte.
    pub name: *const c_char,
    /// The length of the name, without that byte.
    pub name_len: usize,
    /// Its kind.
    pub kind: azk_kind,
}

pub(crate) fn kind_of(number: i32) -> Outcome<TableKind> {
    match number {
        1 => Ok(TableKind::Ordered),
        2 => Ok(TableKind::Hash),
        other => Err(invalid(format!("{other} is no azk_kind"))),
    }
}

fn number_of(kind: TableKind) -> azk_kind {
    match kind {
        TableKind::Ordered => azk_kind::AZK_ORDERED,
        TableKind::Hash => azk_kind::AZK_HASH,
    }
}

/// A call that gives the table of a name.
pub(crate) fn named(
    c: Caller,
    name: *const c_char,
    out: *mut *mut azk_table,
    find: impl FnOnce(&str) -> Outcome<Table>,
) -> azk_status {
    c.run(move |c| {
        let mut out = c.handle_place(out)?;
        let table = find(c.text(name, "name")?)?;
        out.set(share(table)?);
        Ok(())
    })
}

/// The table of a name, which is made if there is none. `kind` is an azk_kind. Free it with azk_table_free:
/// until then it keeps the database's memory. On failure *out is NULL. Errors: AZK_WRONG_TYPE if the table is
/// of the other kind, AZK_INVALID, AZK_TOO_LARGE for a name over 255 bytes, AZK_READ_ONLY, AZK_NO_SPACE,
/// AZK_IO, AZK_POISONED, AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_table(
    db: *const azk_db,
    name: *const c_char,
    kind: i32,
    out: *mut *mut azk_table,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    named(c, name, out, |name| Ok(shared(db)?.table(name, kind_of(kind)?)?))
}

/// As azk_db_table, for a table that exists, of either kind. Errors: AZK_NO_SUCH_TABLE, AZK_INVALID,
/// AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_open_table(
    db: *const azk_db,
    name: *const c_char,
    out: *mut *mut azk_table,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    named(c, name, out, |name| Ok(shared(db)?.open_table(name)?))
}

/// As azk_db_table, for a table that does not exist yet. When this returns, the table is durable, and so are
/// all earlier commits. Errors: AZK_TABLE_EXISTS, and as azk_db_table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_create_table(
    db: *const azk_db,
    name: *const c_char,
    kind: i32,
    out: *mut *mut azk_table,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    named(c, name, out, |name| Ok(shared(db)?.create_table(name, kind_of(kind)?)?))
}

/// Frees a handle of a table. Transactions and cursors that use the table go on. NULL is allowed. Errors:
/// none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_table_free(table: *mut azk_table) -> azk_status {
    call(move || {
        if !table.is_null() {
            end_shared(table)?;
        }
        Ok(azk_status::AZK_OK)
    })
}

/// Renames a table. Its handles stay good. Errors: AZK_NO_SUCH_TABLE, AZK_TABLE_EXISTS, and as azk_db_table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_rename_table(
    db: *const azk_db,
    from: *const c_char,
    to: *const c_char,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    with_db(db, |db| Ok(db.rename_table(c.text(from, "from")?, c.text(to, "to")?)?))
}

/// Removes a table with all its records. Calls through its handles then give AZK_NO_SUCH_TABLE. Errors:
/// AZK_NO_SUCH_TABLE, and as azk_db_table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_drop_table(db: *const azk_db, name: *const c_char) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    with_db(db, |db| Ok(db.drop_table(c.text(name, "name")?)?))
}

/// All tables, by name, in an array of *count elements. Free the array with azk_free, once. On failure *out
/// is NULL. Errors: AZK_NO_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_tables(
    db: *const azk_db,
    out: *mut *mut azk_table_info,
    count: *mut usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let (mut out, mut count) = (c.handle_place(out)?, c.place(count, "count")?);
        count.set(0);
        let tables = shared(db)?.tables();
        let names: usize = tables.iter().map(|table| table.name.len() + 1).sum();
        let mut block = Block::new(names + tables.len() * size_of::<azk_table_info>())?;
        block.begin_with::<azk_table_info>(tables.len());
        for (i, table) in tables.iter().enumerate() {
            let name = block.add(table.name.as_bytes());
            block.add(b"\0");
            block.set(
                i,
                azk_table_info { name: name.data.cast(), name_len: name.len, kind: number_of(table.kind) },
            );
        }
        out.set(block.release());
        count.set(tables.len());
        Ok(())
    })
}

/// The kind of a table. Errors: none of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_kind(table: *const azk_table, kind: *mut azk_kind) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut kind: ResultPlace<azk_kind> = c.place(kind, "kind")?;
        kind.set(number_of(shared(table)?.kind()));
        Ok(())
    })
}

/// The name of a table, which ends with a zero byte. Free it with azk_free. "" if the table was dropped, or
/// if the transaction that makes it is not committed. On failure *name is NULL. Errors: AZK_NO_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_name(table: *const azk_table, name: *mut *mut c_char) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut name = c.handle_place(name)?;
        let mut bytes = shared(table)?.name().into_bytes();
        bytes.push(0);
        name.set(Block::copy(&bytes)?.release());
        Ok(())
    })
}
