//! The functions of `ndbm.h`, over a hash table.
//!
//! A database NAME is the file NAME.pag. NAME.dir is empty: programs lock it, by the descriptor that
//! dbm_dirfno gives them.

use crate::call::{Caller, guarded};
use crate::codes::*;
use crate::errors::{Failure, NO_DATABASE, Outcome, failure, told};
use crate::files::open_path;
use crate::name;
use crate::place::Jump;
use crate::records::{add, get, remove, set};
use crate::standing::CursorPlace;
use crate::store::Store;
use std::ffi::{OsStr, c_char, c_int, c_void};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::ptr::null_mut;

/// Bytes of a key or a value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct datum {
    /// The first, or NULL if there is no such record.
    pub dptr: *mut c_void,
    /// How many there are.
    pub dsize: usize,
}

/// dbm_store: a record that is there stays.
pub const DBM_INSERT: c_int = 0;
/// dbm_store: a record that is there is replaced.
pub const DBM_REPLACE: c_int = 1;

/// A database.
pub struct DBM {
    store: Store,
    place: CursorPlace,
    /// Lent to the caller: a key of the walk, a value that was fetched.
    key: Vec<u8>,
    value: Vec<u8>,
    lock_file: File,
    has_failed: bool,
}

impl datum {
    const NONE: datum = datum { dptr: null_mut(), dsize: 0 };

    /// Bytes that stay where they are until the next call.
    fn lent(bytes: &mut Vec<u8>) -> datum {
        // An empty value has an address too.
        bytes.reserve(1);
        datum { dptr: bytes.as_mut_ptr().cast(), dsize: bytes.len() }
    }

    fn bytes<'a>(self, c: Caller) -> Outcome<&'a [u8]> {
        c.bytes(self.dptr.cast_const().cast(), self.dsize, "datum")
    }
}

#[cfg(target_os = "linux")]
use libc::__errno_location as errno_place;
#[cfg(any(target_os = "macos", target_os = "freebsd"))]
use libc::__error as errno_place;

fn set_errno(failure: &Failure) {
    let errno = match failure.code {
        KCENOREPOS | KCENOREC => libc::ENOENT,
        KCENOPERM => libc::EACCES,
        KCELOGIC => libc::EAGAIN,
        KCESYSTEM => libc::EIO,
        _ => libc::EINVAL,
    };
    // SAFETY: it is this thread's own.
    unsafe { *errno_place() = errno };
}

/// Runs a call for a database. If it fails, other than for want of a record, the database keeps that.
fn on<T: Copy>(c: Caller, db: *mut DBM, failed: T, f: impl FnOnce(&mut DBM) -> Outcome<T>) -> T {
    guarded(NO_DATABASE, failed, || {
        let db = c.handle_mut(db).ok_or(failure(KCEINVALID, c"the database is NULL"));
        let done = db.and_then(|db| f(db).inspect_err(|failure| db.has_failed |= failure.code != KCENOREC));
        done.inspect_err(set_errno)
    })
}

/// Opens a database. `flags` and `mode` are as with open(2); O_WRONLY is as O_RDWR. Returns NULL and sets
/// errno on failure: EAGAIN if it is open in this process, EACCES if in another one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dbm_open(file: *const c_char, flags: c_int, mode: libc::mode_t) -> *mut DBM {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    guarded(NO_DATABASE, null_mut(), || {
        let opened = c.text(file, "name").and_then(|file| open(file.to_bytes(), flags, mode));
        Ok(Box::into_raw(Box::new(opened.inspect_err(set_errno)?)))
    })
}

#[allow(clippy::useless_conversion, reason = "the rights have another type on macOS")]
fn open(name: &[u8], flags: c_int, mode: libc::mode_t) -> Outcome<DBM> {
    let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
    let creates = writes && flags & libc::O_CREAT != 0;
    let mut open_mode = KCOTRYLOCK | if writes { KCOWRITER } else { KCOREADER };
    for (flag, meant) in [(libc::O_CREAT, KCOCREATE), (libc::O_TRUNC, KCOTRUNCATE)] {
        open_mode |= if flags & flag != 0 { meant } else { 0 };
    }
    let with = |ending: &[u8]| [name, ending].concat();
    let system = |error: std::io::Error| {
        let code = if error.kind() == std::io::ErrorKind::NotFound { KCENOREPOS } else { KCENOPERM };
        told(code, error.to_string())
    };
    let made = |path: &[u8], exclusive: bool| {
        let mut options = OpenOptions::new();
        options.read(true).write(creates).create(creates).create_new(exclusive).mode(mode.into());
        options.open(OsStr::from_bytes(path)).map_err(system)
    };
    // An empty file, which gets its rights here, becomes a database.
    let page = with(b".pag");
    drop(made(&page, creates && flags & libc::O_EXCL != 0)?);
    let lock_file = made(&with(b".dir"), false)?;
    let store = Store::new();
    let kind = name::parse(b"ndbm#type=kch")?.kind;
    store.open(|| open_path(&page, kind, open_mode))?;
    Ok(DBM {
        store,
        place: CursorPlace::default(),
        key: Vec::new(),
        value: Vec::new(),
        lock_file,
        has_failed: false,
    })
}

/// Closes a database. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dbm_close(db: *mut DBM) {
    if !db.is_null() {
        // SAFETY: `dbm_open` has made the box. The header demands of the caller that it is not freed twice.
        let db = unsafe { Box::from_raw(db) };
        guarded(NO_DATABASE, (), || db.store.close());
    }
}

/// Writes a record; `how` is DBM_INSERT or DBM_REPLACE. Returns 0, or 1 if DBM_INSERT has met a record, or a
/// negative number on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dbm_store(db: *mut DBM, key: datum, content: datum, how: c_int) -> c_int {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    on(c, db, -1, |db| {
        let (key, value) = (key.bytes(c)?, content.bytes(c)?);
        match how {
            DBM_REPLACE => set(&db.store, key, value).map(|()| 0),
            DBM_INSERT => match add(&db.store, key, value) {
                Err(failure) if failure.code == KCEDUPREC => Ok(1),
                added => added.map(|()| 0),
            },
            _ => Err(told(KCEINVALID, format!("{how} is no way to store"))),
        }
    })
}

/// The value of a record. It is lent until the next call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dbm_fetch(db: *mut DBM, key: datum) -> datum {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    on(c, db, datum::NONE, |db| {
        let (store, value) = (&db.store, &mut db.value);
        get(store, key.bytes(c)?, |found| {
            value.clear();
            value.extend_from_slice(found);
        })?;
        Ok(datum::lent(&mut db.value))
    })
}

/// Removes a record. Returns 0, or a negative number if there is none, or on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dbm_delete(db: *mut DBM, key: datum) -> c_int {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    on(c, db, -1, |db| remove(&db.store, key.bytes(c)?).map(|()| 0))
}

/// The key at which the walk stands, which then goes on.
fn walk(db: &mut DBM, first: bool) -> Outcome<datum> {
    let DBM { store, place, key, .. } = db;
    store.look(|access| {
        if first {
            place.jump(store, access, Jump::First)?;
        }
        place.key(store, access, true, |found| {
            key.clear();
            key.extend_from_slice(found);
            Ok(())
        })
    })?;
    Ok(datum::lent(key))
}

/// The first key, in no order. It is lent until the next call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dbm_firstkey(db: *mut DBM) -> datum {
    // SAFETY: as the header demands of the caller.
    on(unsafe { Caller::trusted() }, db, datum::NONE, |db| walk(db, true))
}

/// The next key. It is lent until the next call. Records may be changed and removed meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dbm_nextkey(db: *mut DBM) -> datum {
    // SAFETY: as the header demands of the caller.
    on(unsafe { Caller::trusted() }, db, datum::NONE, |db| walk(db, false))
}

/// Whether a call has failed since dbm_clearerr, other than for want of a record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dbm_error(db: *mut DBM) -> c_int {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.handle(db.cast_const()).map_or(1, |db| c_int::from(db.has_failed))
}

/// Forgets a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dbm_clearerr(db: *mut DBM) -> c_int {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.handle_mut(db).map_or(-1, |db| {
        db.has_failed = false;
        0
    })
}

/// A descriptor for locking the database among programs that agree on it: of NAME.dir.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dbm_dirfno(db: *mut DBM) -> c_int {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.handle(db.cast_const()).map_or(-1, |db| db.lock_file.as_raw_fd())
}

/// As dbm_dirfno, for the library has locked NAME.pag itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dbm_pagfno(db: *mut DBM) -> c_int {
    // SAFETY: as above.
    unsafe { dbm_dirfno(db) }
}
