//! Reading sets of shards.

use crate::arguments::azk_bytes;
use crate::call::{Caller, call};
use crate::get::{found, give};
use crate::handles::azk_shards;
use crate::many::gather;
use crate::memory::Block;
use crate::slots::{end_shared, share, shared};
use crate::status::azk_status;
use crate::status::azk_status::AZK_OK;
use azekura_shards::{ReadOptions, ShardedReader};
use std::ffi::{OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;

/// Opens the set of shards in the folder `path`: the version of this number, or the newest if it is 0. On
/// failure *out is NULL. Errors: AZK_OPEN, AZK_CORRUPT, AZK_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_shards_open(
    path: *const c_char,
    version: u32,
    out: *mut *mut azk_shards,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut out = c.handle_place(out)?;
        crate::files::none();
        let path = OsStr::from_bytes(c.c_str(path, "path")?.to_bytes());
        let options = ReadOptions { version: (version > 0).then_some(version), ..ReadOptions::default() };
        out.set(share(ShardedReader::open_with(path, options)?)?);
        Ok(())
    })
}

/// Frees the handle. NULL is allowed. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_shards_free(shards: *mut azk_shards) -> azk_status {
    call(move || {
        if !shards.is_null() {
            end_shared(shards)?;
        }
        Ok(AZK_OK)
    })
}

/// The number of the version that is read, and how many records it has. `records` may be NULL. Errors: none
/// of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_shards_version(
    shards: *const azk_shards,
    version: *mut u32,
    records: *mut u64,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let (mut version, records) = (c.place(version, "version")?, c.optional_place(records, "records")?);
        let held = shared(shards)?.version();
        version.set(held.number());
        if let Some(mut records) = records {
            records.set(held.manifest().records);
        }
        Ok(())
    })
}

/// Goes to the newest version, all at once: a call sees one version. *is_newer says whether there was a newer
/// one. A handle of a chosen version stays with that. Errors: AZK_OPEN, AZK_CORRUPT, AZK_IO; the handle stays
/// with its version then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_shards_refresh(shards: *const azk_shards, is_newer: *mut bool) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut is_newer = c.place(is_newer, "is_newer")?;
        is_newer.set(shared(shards)?.refresh()?);
        Ok(())
    })
}

/// Copies the value of a key into a buffer, as azk_table_get does. Errors: AZK_NOT_FOUND,
/// AZK_BUFFER_TOO_SMALL, AZK_OPEN, AZK_CORRUPT, AZK_IO, AZK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_shards_get(
    shards: *const azk_shards,
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
        found(shared(shards)?.version().get_with(key, |value| into.fill(value))?)
    })
}

/// A copy of the value of a key, as azk_table_get_alloc gives it. Free it with azk_free. Errors:
/// AZK_NOT_FOUND, AZK_NO_MEMORY, and as azk_shards_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_shards_get_alloc(
    shards: *const azk_shards,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut c_void,
    value_len: *mut usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let get = || Ok(shared(shards)?.version().get_with(key, Block::copy)?);
        give(c, value, value_len, get)
    })
}

/// The values of `count` keys, as azk_table_get_many gives them, all of one version. Free the array with
/// azk_free, once. Errors: AZK_NO_MEMORY, and as azk_shards_get, without AZK_NOT_FOUND.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_shards_get_many(
    shards: *const azk_shards,
    keys: *const azk_bytes,
    count: usize,
    values: *mut *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    gather(c, keys, count, values, |keys, all| {
        let version = shared(shards)?.version();
        Ok(version.get_many_with(keys, |i, value| all.add(i, value))?)
    })
}
