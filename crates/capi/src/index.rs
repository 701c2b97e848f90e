//! Indexes of tables: making, opening, listing, dropping.

use crate::call::{Caller, call};
use crate::handles::{azk_index, azk_table};
use crate::memory::Block;
use crate::slots::{end_shared, share, shared};
use crate::status::{Outcome, azk_status};
use crate::upkeep::{azk_progress_fn, teller};
use azekura::Index;
use std::ffi::{c_char, c_void};

/// One index of a list.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct azk_index_info {
    /// Its name, which ends with a zero byte.
    pub name: *const c_char,
    /// What it is of, which ends with a zero byte.
    pub spec: *const c_char,
    /// Whether it is complete. azk_table_create_index goes on with one that is not.
    pub is_ready: bool,
    /// About how many entries it has.
    pub entries: u64,
    /// Their bytes, in the file and in memory.
    pub bytes: u64,
}

/// A call that gives an index.
fn made(c: Caller, out: *mut *mut azk_index, make: impl FnOnce() -> Outcome<Index>) -> azk_status {
    c.run(move |c| {
        let mut out = c.handle_place(out)?;
        out.set(share(make()?)?);
        Ok(())
    })
}

/// Makes an index of the table, and returns when it is complete and durable. From now on every write to the
/// table keeps it, by whatever program. If there is an index of this name and specification, it is opened. If
/// it is not complete, it is built to its end first.
///
/// `spec` names fields between commas, each a source (k or v, the key or the value), a piece and a type, and
/// then options: "v./email:lower unique where present", "v[0..8]:u64le, k". docs/indexes.md has all forms.
/// `progress` may be NULL; it is told of records. Free the index with azk_index_free. On failure *out is
/// NULL. Errors: AZK_INVALID if the specification has no meaning or there is another index of this name,
/// AZK_NOT_UNIQUE if two records have the same values in a unique index, AZK_TOO_LARGE if an entry would be
/// too large or the table has 64 indexes, and as azk_table_put: after AZK_NO_SPACE, AZK_IO and the like what
/// is built may stay. Writes keep it and nobody reads it. This function goes on with it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_create_index(
    table: *const azk_table,
    name: *const c_char,
    spec: *const c_char,
    progress: azk_progress_fn,
    user_data: *mut c_void,
    out: *mut *mut azk_index,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    made(c, out, || {
        let (name, spec) = (c.text(name, "name")?, c.text(spec, "spec")?);
        // No handle is held while the callback is called.
        let table = shared(table)?.clone();
        Ok(table.create_index_with(name, spec, teller(progress, user_data))?)
    })
}

/// The index of a name. Free it with azk_index_free. On failure *out is NULL. Errors: AZK_NO_SUCH_INDEX,
/// AZK_INVALID if it is not complete, AZK_NO_SUCH_TABLE, AZK_CORRUPT, AZK_IO, AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_index(
    table: *const azk_table,
    name: *const c_char,
    out: *mut *mut azk_index,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    made(c, out, || {
        let name = c.text(name, "name")?;
        let table = shared(table)?;
        Ok(table.index(name)?)
    })
}

/// Removes an index; the records stay. Calls through its handles then give AZK_NO_SUCH_INDEX. Errors:
/// AZK_NO_SUCH_INDEX, and as azk_table_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_drop_index(table: *const azk_table, name: *const c_char) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let name = c.text(name, "name")?;
        Ok(shared(table)?.drop_index(name)?)
    })
}

/// The table's indexes, by name, in an array of *count elements. Free the array with azk_free, once. On
/// failure *out is NULL. Errors: AZK_NO_MEMORY, and as azk_table_index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_indexes(
    table: *const azk_table,
    out: *mut *mut azk_index_info,
    count: *mut usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let (mut out, mut count) = (c.handle_place(out)?, c.place(count, "count")?);
        count.set(0);
        let all = shared(table)?.indexes()?;
        let text: usize = all.iter().map(|info| info.name.len() + info.spec.len() + 2).sum();
        let mut block = Block::new(text + all.len() * size_of::<azk_index_info>())?;
        block.begin_with::<azk_index_info>(all.len());
        for (i, info) in all.iter().enumerate() {
            let mut text = |text: &str| {
                let at = block.add(text.as_bytes());
                block.add(b"\0");
                at.data.cast()
            };
            let (name, spec) = (text(&info.name), text(&info.spec));
            let (entries, bytes) =
                (info.stats.records_estimate, info.stats.run_bytes + info.stats.memory_bytes);
            block.set(i, azk_index_info { name, spec, is_ready: info.is_ready, entries, bytes });
        }
        out.set(block.release());
        count.set(all.len());
        Ok(())
    })
}

/// Frees a handle of an index. Lookups that use it go on. NULL is allowed. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_index_free(index: *mut azk_index) -> azk_status {
    call(move || {
        if !index.is_null() {
            end_shared(index)?;
        }
        Ok(azk_status::AZK_OK)
    })
}
