//! Cursors.

use crate::access::Access;
use crate::call::Caller;
use crate::codes::*;
use crate::errors::{NO_DATABASE, Outcome, failure, keep, last};
use crate::memory::{Pair, give, give_pair};
use crate::place::Jump;
use crate::standing::CursorPlace;
use crate::store::Store;
use crate::visitor::Visitor;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a cursor's handle leads to.
struct Walker {
    db: *mut KCDB,
    store: Arc<Store>,
    place: Arc<Mutex<CursorPlace>>,
}

impl Walker {
    fn place(&self) -> MutexGuard<'_, CursorPlace> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Caller {
    /// Runs a call for a cursor, as `Caller::on`.
    fn at<T>(self, cursor: *const KCCUR, failed: T, f: impl FnOnce(&Walker) -> Outcome<T>) -> T {
        let Some(handle) = self.handle(cursor) else {
            keep(NO_DATABASE, failure(KCEINVALID, c"the cursor is NULL"));
            return failed;
        };
        // SAFETY: `kcdbcursor` has made the handle with this pointer, and the caller answers for it.
        let walker = unsafe { &*handle.cur.cast::<Walker>() };
        crate::call::guarded(walker.store.id, failed, || f(walker))
    }

    /// Reads at a cursor.
    fn read_at<T>(
        self,
        cursor: *const KCCUR,
        failed: T,
        f: impl FnOnce(&Store, &Access<'_>, &mut CursorPlace) -> Outcome<T>,
    ) -> T {
        self.at(cursor, failed, |walker| {
            walker.store.look(|access| f(&walker.store, access, &mut walker.place()))
        })
    }

    /// Writes at a cursor. Nobody else uses the database meanwhile, so that the record stays the same one.
    fn write_at<T>(
        self,
        cursor: *const KCCUR,
        failed: T,
        f: impl FnOnce(&Store, &mut Access<'_>, &mut CursorPlace) -> Outcome<T>,
    ) -> T {
        self.at(cursor, failed, |walker| {
            walker.store.all(false, |access| f(&walker.store, access, &mut walker.place()))
        })
    }
}

/// A cursor for a database, which stands at no record yet; NULL if `db` is. Free it with kccurdel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbcursor(db: *mut KCDB) -> *mut KCCUR {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.on(db, null_mut(), |store| {
        let walker = Walker { db, store: Arc::clone(store), place: store.place() };
        let walker = Box::into_raw(Box::new(walker));
        Ok(Box::into_raw(Box::new(KCCUR { cur: walker.cast() })))
    })
}

/// Frees a cursor. NULL is allowed. In a callback of its database this fails with KCELOGIC, and the cursor
/// stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kccurdel(cursor: *mut KCCUR) {
    if cursor.is_null() {
        return;
    }
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    // The call around a callback may be one of this cursor.
    if !c.at(cursor, false, |walker| walker.store.refuse_within().map(|()| true)) {
        return;
    }
    // SAFETY: `kcdbcursor` has made both boxes. The header demands of the caller that it is not freed twice.
    let walker = unsafe { Box::from_raw(Box::from_raw(cursor).cur.cast::<Walker>()) };
    crate::call::guarded(walker.store.id, (), || {
        drop(walker);
        Ok(())
    });
}

/// Calls `fullproc` for the record of a cursor, as kcdbaccept. With `step` the cursor goes to the next
/// record, and also if the record is removed. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kccuraccept(
    cursor: *mut KCCUR,
    fullproc: KCVISITFULL,
    opaque: *mut c_void,
    writable: i32,
    step: i32,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.write_at(cursor, 0, |store, access, place| {
        let visitor = Visitor::new(fullproc, None, opaque);
        place.visit(store, access, visitor, (writable != 0, step != 0)).map(|()| 1)
    })
}

/// Sets the value of the record of a cursor. With `step` the cursor goes to the next record. Returns 0 on
/// failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kccursetvalue(
    cursor: *mut KCCUR,
    value: *const c_char,
    value_len: usize,
    step: i32,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.write_at(cursor, 0, |store, access, place| {
        let value = c.bytes(value, value_len, "value")?;
        place.set(store, access, value, step != 0).map(|()| 1)
    })
}

/// Removes the record of a cursor, which goes to the next one. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kccurremove(cursor: *mut KCCUR) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }
        .write_at(cursor, 0, |store, access, place| place.remove(store, access, |_, _| Ok(1)))
}

/// The key of the record of a cursor, with a zero byte behind it, or NULL. Free it with kcfree. With `step`
/// the cursor goes to the next record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kccurgetkey(cursor: *mut KCCUR, key_len: *mut usize, step: i32) -> *mut c_char {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.read_at(cursor, null_mut(), |store, access, place| {
        c.set(key_len, 0)?;
        place.key(store, access, step != 0, |key| {
            c.set(key_len, key.len())?;
            give(key)
        })
    })
}

/// The value of the record of a cursor, with a zero byte behind it, or NULL. Free it with kcfree. With `step`
/// the cursor goes to the next record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kccurgetvalue(cursor: *mut KCCUR, value_len: *mut usize, step: i32) -> *mut c_char {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.read_at(cursor, null_mut(), |store, access, place| {
        c.set(value_len, 0)?;
        place.get(store, access, step != 0, |_, value| {
            c.set(value_len, value.len())?;
            give(value)
        })
    })
}

/// Where the caller wants to have the length of a key, a value, and its length.
type Places = (*mut usize, *mut *const c_char, *mut usize);

/// Refuses bad places before anything is done. If the call fails after that, they lead nowhere.
fn clear(c: Caller, (key_len, value, value_len): Places) -> Outcome<()> {
    c.set(key_len, 0)?;
    c.set(value, std::ptr::null())?;
    c.set(value_len, 0)
}

/// Gives both to the caller, in one block that begins with the key.
fn hand_out(c: Caller, pair: Pair, (key_len, value, value_len): Places) -> Outcome<*mut c_char> {
    c.set(key_len, pair.key_len)?;
    c.set(value, pair.value)?;
    c.set(value_len, pair.value_len)?;
    Ok(pair.hand_out())
}

/// The key and the value of the record of a cursor, each with a zero byte behind it, or NULL. They are one
/// block: free the key with kcfree. With `step` the cursor goes to the next record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kccurget(
    cursor: *mut KCCUR,
    key_len: *mut usize,
    value: *mut *const c_char,
    value_len: *mut usize,
    step: i32,
) -> *mut c_char {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    let places = (key_len, value, value_len);
    c.read_at(cursor, null_mut(), |store, access, place| {
        clear(c, places)?;
        hand_out(c, place.get(store, access, step != 0, give_pair)?, places)
    })
}

/// As kccurget, and removes the record. The cursor goes to the next one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kccurseize(
    cursor: *mut KCCUR,
    key_len: *mut usize,
    value: *mut *const c_char,
    value_len: *mut usize,
) -> *mut c_char {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    let places = (key_len, value, value_len);
    c.write_at(cursor, null_mut(), |store, access, place| {
        clear(c, places)?;
        hand_out(c, place.remove(store, access, give_pair)?, places)
    })
}

/// Goes to the first record. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kccurjump(cursor: *mut KCCUR) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }
        .read_at(cursor, 0, |store, access, place| place.jump(store, access, Jump::First).map(|()| 1))
}

/// Goes to the record of a key. In an ordered table, if there is none, to the first one above. Returns 0 on
/// failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kccurjumpkey(cursor: *mut KCCUR, key: *const c_char, key_len: usize) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.read_at(cursor, 0, |store, access, place| {
        place.jump(store, access, Jump::Key(c.bytes(key, key_len, "key")?)).map(|()| 1)
    })
}

/// Goes to the last record. KCENOIMPL for the kinds kch, kcd, "*" and ":". Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kccurjumpback(cursor: *mut KCCUR) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }
        .read_at(cursor, 0, |store, access, place| place.jump(store, access, Jump::Last).map(|()| 1))
}

/// Goes to the record of a key. In an ordered table, if there is none, to the last one below. Else as
/// kccurjumpback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kccurjumpbackkey(cursor: *mut KCCUR, key: *const c_char, key_len: usize) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.read_at(cursor, 0, |store, access, place| {
        place.jump(store, access, Jump::BackKey(c.bytes(key, key_len, "key")?)).map(|()| 1)
    })
}

/// Goes to the next record. If there is none, the cursor stands at none. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kccurstep(cursor: *mut KCCUR) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }
        .read_at(cursor, 0, |store, access, place| place.step(store, access, true).map(|()| 1))
}

/// Goes to the record before, as kccurstep. KCENOIMPL for the kinds kch, kcd, "*" and ":".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kccurstepback(cursor: *mut KCCUR) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }
        .read_at(cursor, 0, |store, access, place| place.step(store, access, false).map(|()| 1))
}

/// The database object of a cursor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kccurdb(cursor: *mut KCCUR) -> *mut KCDB {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.at(cursor, null_mut(), |walker| Ok(walker.db))
}

/// As kcdbecode, for the database of a cursor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kccurecode(cursor: *mut KCCUR) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    if cursor.is_null() {
        return last(NO_DATABASE).0;
    }
    c.at(cursor, KCEINVALID, |walker| Ok(last(walker.store.id).0))
}

/// As kcdbemsg, for the database of a cursor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kccuremsg(cursor: *mut KCCUR) -> *const c_char {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    if cursor.is_null() {
        return last(NO_DATABASE).1;
    }
    c.at(cursor, c"".as_ptr(), |walker| Ok(last(walker.store.id).1))
}
