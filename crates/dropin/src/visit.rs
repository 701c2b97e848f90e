//! Visiting records.

use crate::access::Access;
use crate::call::Caller;
use crate::codes::*;
use crate::errors::{Outcome, failure};
use crate::store::Store;
use crate::visitor::Visitor;
use azekura::Cursor;
use std::ffi::{c_char, c_void};
use std::sync::{Mutex, PoisonError};

/// Threads of a parallel scan, at most.
const THREADS_MAX: usize = 64;
/// So many records are taken from the cursor at once, if they have no more bytes than this.
const TAKEN_RECORDS: usize = 128;
const TAKEN_BYTES: usize = 1 << 20;

/// Visits the record of a key.
fn accept(store: &Store, access: &mut Access<'_>, key: &[u8], visitor: Visitor, writes: bool) -> Outcome<()> {
    let value = access.get(key)?;
    store.within(|| visitor.apply(access, key, value.as_deref(), writes))?;
    Ok(())
}

/// Calls `fullproc` for the record of a key, or `emptyproc` if there is none. No other thread changes the
/// record meanwhile. If `writable` is 0 what they return has no effect. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbaccept(
    db: *mut KCDB,
    key: *const c_char,
    key_len: usize,
    fullproc: KCVISITFULL,
    emptyproc: KCVISITEMPTY,
    opaque: *mut c_void,
    writable: i32,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.done(db, |store| {
        let key = c.bytes(key, key_len, "key")?;
        let visitor = Visitor::new(fullproc, emptyproc, opaque);
        if writable == 0 {
            return store.hold(key, |access| accept(store, access, key, visitor, false));
        }
        store.write(key, |access| accept(store, access, key, visitor, true))
    })
}

/// As kcdbaccept, for several keys. No other thread uses the database meanwhile, and all changes are made or
/// none. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbacceptbulk(
    db: *mut KCDB,
    keys: *const KCSTR,
    count: usize,
    fullproc: KCVISITFULL,
    emptyproc: KCVISITEMPTY,
    opaque: *mut c_void,
    writable: i32,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.done(db, |store| {
        let keys: Vec<&[u8]> = c
            .array(keys, count)?
            .iter()
            .map(|key| c.bytes(key.buf, key.size, "key"))
            .collect::<Outcome<_>>()?;
        let visitor = Visitor::new(fullproc, emptyproc, opaque);
        let all = |access: &mut Access<'_>| {
            keys.iter().try_for_each(|key| accept(store, access, key, visitor, writable != 0))
        };
        if writable == 0 { store.all(false, all) } else { store.many(true, all) }
    })
}

/// Calls `fullproc` for every record. No other thread uses the database meanwhile. If `writable` is 0 what it
/// returns has no effect. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbiterate(
    db: *mut KCDB,
    fullproc: KCVISITFULL,
    opaque: *mut c_void,
    writable: i32,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.done(db, |store| {
        let visitor = Visitor::new(fullproc, None, opaque);
        let all = |access: &mut Access<'_>| {
            let mut cursor = access.cursor()?;
            while let Some((key, value)) = cursor.next()? {
                let value = value.bytes()?;
                store.within(|| visitor.apply(access, key, Some(value), writable != 0))?;
            }
            Ok(())
        };
        if writable == 0 { store.all(false, all) } else { store.many(false, all) }
    })
}

/// Calls `fullproc` for every record, in several threads at once, which must be a callback for that. What it
/// returns has no effect. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbscanpara(
    db: *mut KCDB,
    fullproc: KCVISITFULL,
    opaque: *mut c_void,
    threads: usize,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.done(db, |store| {
        let visitor = Visitor::new(fullproc, None, opaque);
        let threads = threads.clamp(1, THREADS_MAX);
        store.all(false, |access| {
            let cursor = Mutex::new(access.cursor()?);
            let scan = || store.within(|| scan_part(&cursor, &visitor));
            std::thread::scope(|scope| {
                let parts: Vec<_> = (0..threads).map(|_| scope.spawn(scan)).collect();
                parts.into_iter().try_for_each(|part| {
                    part.join().unwrap_or(Err(failure(KCEMISC, c"a thread of the scan has panicked")))
                })
            })
        })
    })
}

/// Visits what others have left, some records at a time.
fn scan_part(cursor: &Mutex<Cursor>, visitor: &Visitor) -> Outcome<()> {
    let mut taken: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    loop {
        let mut bytes = 0;
        {
            let mut cursor = cursor.lock().unwrap_or_else(PoisonError::into_inner);
            while taken.len() < TAKEN_RECORDS && bytes < TAKEN_BYTES {
                let Some((key, value)) = cursor.next()? else { break };
                taken.push((key.to_vec(), value.bytes()?.to_vec()));
                bytes += taken.last().map_or(0, |(key, value)| key.len() + value.len());
            }
        }
        if taken.is_empty() {
            return Ok(());
        }
        for (key, value) in taken.drain(..) {
            visitor.visit(&key, Some(&value));
        }
    }
}
