//! Tables in a write transaction: making, opening, renaming, dropping.

use crate::call::Caller;
use crate::handles::{azk_table, azk_write};
use crate::slots::owned;
use crate::status::azk_status;
use crate::tables::{kind_of, named};
use std::ffi::c_char;

/// Makes a table in a transaction. It can be used there at once. For everybody else, and for calls without a
/// transaction, the handle gives AZK_NO_SUCH_TABLE until the commit, and for good if the transaction comes to
/// nothing. `kind` is an azk_kind. Free the handle with azk_table_free. A commit that makes, renames or drops
/// tables is durable, whatever durability was chosen. On failure *out is NULL.
///
/// Errors: AZK_TABLE_EXISTS if this transaction sees a table of the name. AZK_CONFLICT, here or at the
/// commit, if another transaction makes one meanwhile: run it again. AZK_INVALID, AZK_TOO_LARGE for a name
/// over 255 bytes, AZK_READ_ONLY, AZK_POISONED, AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_create_table(
    write: *mut azk_write,
    name: *const c_char,
    kind: i32,
    out: *mut *mut azk_table,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    named(c, name, out, |name| Ok(owned(write)?.changed()?.create_table(name, kind_of(kind)?)?))
}

/// The table of a name as a transaction sees it, which it makes if there is none. `kind` is an azk_kind. On
/// failure *out is NULL. Errors: AZK_WRONG_TYPE if the table is of the other kind, and as
/// azk_write_create_table and azk_write_open_table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_table(
    write: *mut azk_write,
    name: *const c_char,
    kind: i32,
    out: *mut *mut azk_table,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    named(c, name, out, |name| Ok(owned(write)?.changed()?.table(name, kind_of(kind)?)?))
}

/// The table of a name as a transaction sees it, with what it has made, renamed and dropped itself. That the
/// name is this table's counts as read. On failure *out is NULL. Errors: AZK_NO_SUCH_TABLE. AZK_CONFLICT if
/// the table was made after the transaction's snapshot. AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_open_table(
    write: *mut azk_write,
    name: *const c_char,
    out: *mut *mut azk_table,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    named(c, name, out, |name| Ok(owned(write)?.changed()?.open_table(name)?))
}

/// Renames a table in a transaction. Its handles stay good. Errors: AZK_NO_SUCH_TABLE, AZK_TABLE_EXISTS, as
/// this transaction sees them. AZK_CONFLICT, here or at the commit, if another transaction gives one of the
/// names to another table meanwhile. As azk_write_create_table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_rename_table(
    write: *mut azk_write,
    from: *const c_char,
    to: *const c_char,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(|c| {
        let (from, to) = (c.text(from, "from")?, c.text(to, "to")?);
        Ok(owned(write)?.changed()?.rename_table(from, to)?)
    })
}

/// Removes a table with all its records and its indexes in a transaction. From then on its handles give
/// AZK_NO_SUCH_TABLE in the transaction, and everywhere from the commit on. What others write to it meanwhile
/// goes with it, unless the transaction has read it or is one of AZK_SNAPSHOT: then the commit conflicts.
/// Errors: AZK_NO_SUCH_TABLE. AZK_CONFLICT, here or at the commit, if another transaction renames or drops it
/// meanwhile. AZK_READ_ONLY, AZK_POISONED, AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_drop_table(write: *mut azk_write, name: *const c_char) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(|c| {
        let name = c.text(name, "name")?;
        Ok(owned(write)?.changed()?.drop_table(name)?)
    })
}
