//! One record: setting, adding, replacing, appending, comparing and swapping, removing, getting.

use crate::call::Caller;
use crate::codes::*;
use crate::errors::{NO_RECORD, Outcome, failure};
use crate::memory::{give, kcfree};
use crate::store::Store;
use std::ffi::c_char;

/// Sets a record.
pub(crate) fn set(store: &Store, key: &[u8], value: &[u8]) -> Outcome<()> {
    store.write(key, |access| access.put(key, value))
}

/// Makes a record that must not be there.
pub(crate) fn add(store: &Store, key: &[u8], value: &[u8]) -> Outcome<()> {
    store.write(key, |access| match access.get_with(key, |_| ())? {
        Some(()) => Err(failure(KCEDUPREC, c"record duplication")),
        None => access.put(key, value),
    })
}

/// Sets a record that must be there.
pub(crate) fn replace(store: &Store, key: &[u8], value: &[u8]) -> Outcome<()> {
    store.write(key, |access| match access.get_with(key, |_| ())? {
        Some(()) => access.put(key, value),
        None => Err(NO_RECORD),
    })
}

/// Appends to a record, which is made if it is not there.
pub(crate) fn append(store: &Store, key: &[u8], value: &[u8]) -> Outcome<()> {
    store.write(key, |access| {
        let whole = access.get_with(key, |old| [old, value].concat())?;
        access.put(key, whole.as_deref().unwrap_or(value))
    })
}

/// Removes a record that must be there.
pub(crate) fn remove(store: &Store, key: &[u8]) -> Outcome<()> {
    store.write(key, |access| match access.get_with(key, |_| ())? {
        Some(()) => access.remove(key),
        None => Err(NO_RECORD),
    })
}

/// What `f` makes of the value of a record that must be there.
pub(crate) fn get<T>(store: &Store, key: &[u8], f: impl FnOnce(&[u8]) -> T) -> Outcome<T> {
    store.look(|access| access.get_with(key, f))?.ok_or(NO_RECORD)
}

/// A length as C has it here.
fn length(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

/// Sets a record. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbset(
    db: *mut KCDB,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.done(db, |store| set(store, c.bytes(key, key_len, "key")?, c.bytes(value, value_len, "value")?))
}

/// Makes a record. If there is one it stays, and this fails with KCEDUPREC. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbadd(
    db: *mut KCDB,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.done(db, |store| add(store, c.bytes(key, key_len, "key")?, c.bytes(value, value_len, "value")?))
}

/// Sets a record that is there. If there is none this fails with KCENOREC. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbreplace(
    db: *mut KCDB,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.done(db, |store| replace(store, c.bytes(key, key_len, "key")?, c.bytes(value, value_len, "value")?))
}

/// Appends to a record, or makes it. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbappend(
    db: *mut KCDB,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.done(db, |store| append(store, c.bytes(key, key_len, "key")?, c.bytes(value, value_len, "value")?))
}

/// Sets a record if its value is the old one. NULL as the old value means that there is no record, as the new
/// one that it is removed. If the value is another one this fails with KCELOGIC. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbcas(
    db: *mut KCDB,
    key: *const c_char,
    key_len: usize,
    old: *const c_char,
    old_len: usize,
    new: *const c_char,
    new_len: usize,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.done(db, |store| {
        let key = c.bytes(key, key_len, "key")?;
        let old = c.optional(old, old_len, "old value")?;
        let new = c.optional(new, new_len, "new value")?;
        store.write(key, |access| {
            if !access.get_with(key, |value| old == Some(value))?.unwrap_or(old.is_none()) {
                return Err(failure(KCELOGIC, c"status conflict"));
            }
            match new {
                Some(new) => access.put(key, new),
                None if old.is_some() => access.remove(key),
                None => Ok(()),
            }
        })
    })
}

/// Removes a record. If there is none this fails with KCENOREC. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbremove(db: *mut KCDB, key: *const c_char, key_len: usize) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.done(db, |store| remove(store, c.bytes(key, key_len, "key")?))
}

/// The value of a record with a zero byte behind it, or NULL. Free it with kcfree.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbget(
    db: *mut KCDB,
    key: *const c_char,
    key_len: usize,
    value_len: *mut usize,
) -> *mut c_char {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.on(db, std::ptr::null_mut(), |store| {
        c.set(value_len, 0)?;
        let (value, len) = get(store, c.bytes(key, key_len, "key")?, |value| (give(value), value.len()))?;
        c.set(value_len, len)?;
        value
    })
}

/// The length of the value of a record, or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbcheck(db: *mut KCDB, key: *const c_char, key_len: usize) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.on(db, -1, |store| get(store, c.bytes(key, key_len, "key")?, |value| length(value.len())))
}

/// Copies the value of a record to a buffer, as much as there is room for. Returns the length of the value,
/// or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbgetbuf(
    db: *mut KCDB,
    key: *const c_char,
    key_len: usize,
    buffer: *mut c_char,
    buffer_len: usize,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.on(db, -1, |store| {
        if buffer.is_null() && buffer_len > 0 {
            return Err(failure(KCEINVALID, c"the buffer is NULL"));
        }
        get(store, c.bytes(key, key_len, "key")?, |value| {
            let copied = value.len().min(buffer_len);
            if copied > 0 {
                // SAFETY: the buffer is not NULL. The caller answers for its room, which is not the engine's
                // memory.
                unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), buffer.cast(), copied) };
            }
            length(value.len())
        })
    })
}

/// Removes a record. Returns its value with a zero byte behind it, or NULL. Free it with kcfree.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbseize(
    db: *mut KCDB,
    key: *const c_char,
    key_len: usize,
    value_len: *mut usize,
) -> *mut c_char {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.on(db, std::ptr::null_mut(), |store| {
        c.set(value_len, 0)?;
        let key = c.bytes(key, key_len, "key")?;
        store.write(key, |access| {
            let (value, len) = access.get_with(key, |value| (give(value), value.len()))?.ok_or(NO_RECORD)?;
            let value = value?;
            if let Err(failure) = access.remove(key) {
                // SAFETY: it was just allocated, and nobody else has it.
                unsafe { kcfree(value.cast()) };
                return Err(failure);
            }
            c.set(value_len, len)?;
            Ok(value)
        })
    })
}
