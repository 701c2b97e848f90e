//! Database objects, and what concerns a database as a whole.

use crate::call::Caller;
use crate::codes::*;
use crate::errors::{self, NO_DATABASE, Outcome, failure, told};
use crate::files::refuse_open;
use crate::memory::give;
use crate::open::Open;
use crate::store::Store;
use crate::visitor::FileProc;
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Makes a database object. Free it with kcdbdel.
#[unsafe(no_mangle)]
pub extern "C" fn kcdbnew() -> *mut KCDB {
    let store = Box::into_raw(Box::new(Arc::new(Store::new())));
    Box::into_raw(Box::new(KCDB { db: store.cast() }))
}

/// Frees a database object, and closes its database if that is open. NULL is allowed. In a callback of the
/// database this fails with KCELOGIC, and the object stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbdel(db: *mut KCDB) {
    // SAFETY: as the header demands of the caller.
    unsafe { delete(db) };
}

/// As kcdbdel. Returns whether the object is gone.
///
/// # Safety
/// As the header demands of the caller.
pub(crate) unsafe fn delete(db: *mut KCDB) -> bool {
    if db.is_null() {
        return true;
    }
    // SAFETY: the caller says so.
    let c = unsafe { Caller::trusted() };
    // The calls around a callback are not done with the object.
    if c.done(db, |store| store.refuse_within()) == 0 {
        return false;
    }
    // SAFETY: `kcdbnew` has made both boxes. The header demands of the caller that it is not freed twice.
    let store = unsafe { Box::from_raw(Box::from_raw(db).db.cast::<Arc<Store>>()) };
    crate::call::guarded(store.id, (), || {
        let _not_open = store.close();
        errors::forget(store.id);
        Ok(())
    });
    true
}

/// The code of this thread's last error with a database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbecode(db: *mut KCDB) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    if db.is_null() {
        return errors::last(NO_DATABASE).0;
    }
    c.on(db, KCEINVALID, |store| Ok(errors::last(store.id).0))
}

/// The text of this thread's last error with a database. It stays until the next one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbemsg(db: *mut KCDB) -> *const c_char {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    if db.is_null() {
        return errors::last(NO_DATABASE).1;
    }
    c.on(db, c"".as_ptr(), |store| Ok(errors::last(store.id).1))
}

/// What an error code means.
#[unsafe(no_mangle)]
pub extern "C" fn kcecodename(code: i32) -> *const c_char {
    errors::name_of(code).as_ptr()
}

/// How many records there are, or -1. This is a scan unless the table is settled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbcount(db: *mut KCDB) -> i64 {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.on(db, -1, |store| store.look(|access| access.count()))
}

/// The length of the file, or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbsize(db: *mut KCDB) -> i64 {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.on(db, -1, |store| store.look(|access| Ok(access.open.size())))
}

/// The path of the database, without parameters, or "" if it is not open. Free it with kcfree.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbpath(db: *mut KCDB) -> *mut c_char {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    let path = c.on(db, std::ptr::null_mut(), |store| store.look(|access| give(access.open.path.to_bytes())));
    if path.is_null() { give(b"").unwrap_or(path) } else { path }
}

/// Lines of a name, a tab and a value, or NULL. Free it with kcfree.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbstatus(db: *mut KCDB) -> *mut c_char {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.on(db, std::ptr::null_mut(), |store| {
        store.look(|access| {
            let count = access.count()?;
            give(status_of(access.open, count).as_bytes())
        })
    })
}

fn status_of(open: &Open, count: i64) -> String {
    let (size, kind) = (open.size(), open.kind.number);
    let stats = open.db.stats();
    let path = open.path.to_string_lossy();
    let version = env!("CARGO_PKG_VERSION");
    let lines = [
        ("azekura", version.to_owned()),
        ("count", count.to_string()),
        ("free", stats.free_bytes.to_string()),
        ("path", path.into_owned()),
        ("realsize", size.to_string()),
        ("realtype", kind.to_string()),
        ("runs", stats.runs.to_string()),
        ("size", size.to_string()),
        ("type", kind.to_string()),
    ];
    lines.iter().map(|(name, value)| format!("{name}\t{value}\n")).collect()
}

/// Makes everything durable, whether `hard` is set or not. Then calls `proc`, if there is one, while all
/// others wait. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbsync(db: *mut KCDB, hard: i32, proc: KCFILEPROC, opaque: *mut c_void) -> i32 {
    let _soft_too = hard;
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.done(db, |store| {
        store.all(false, |access| {
            if access.open.writer {
                access.open.db.sync()?;
            }
            let proc = FileProc::new(proc, opaque);
            if store.within(|| proc.call(access))? {
                return Ok(());
            }
            Err(failure(KCELOGIC, c"postprocessing failed"))
        })
    })
}

/// Calls `proc`, if there is one, while all others wait. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdboccupy(
    db: *mut KCDB,
    writable: i32,
    proc: KCFILEPROC,
    opaque: *mut c_void,
) -> i32 {
    let _for_readers_too = writable;
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.done(db, |store| {
        store.all(false, |access| {
            let proc = FileProc::new(proc, opaque);
            if store.within(|| proc.call(access))? {
                return Ok(());
            }
            Err(failure(KCELOGIC, c"processing failed"))
        })
    })
}

/// Copies what is committed to a file of its own, over one that is there. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbcopy(db: *mut KCDB, dest: *const c_char) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.done(db, |store| {
        let dest = path_of(c.text(dest, "destination")?);
        store.look(|access| copy(access.open, dest))
    })
}

fn copy(open: &Open, dest: &Path) -> Outcome<()> {
    if open.kind.in_memory {
        return Err(failure(KCENOIMPL, c"a database in memory has no file; kcdbdumpsnap writes one"));
    }
    refuse_open(dest)?;
    // What a link leads to is replaced, and not the link; a device or a directory never is.
    let dest = &std::fs::canonicalize(dest).unwrap_or_else(|_| dest.to_owned());
    if std::fs::metadata(dest).is_ok_and(|there| !there.is_file()) {
        return Err(told(KCESYSTEM, format!("{}: not a regular file", dest.display())));
    }
    // The copy gets its name when it is whole, so that a failure leaves what is there.
    let mut aside = PathBuf::from(dest).into_os_string();
    aside.push(format!(".{}-{}.copy", std::process::id(), open.opening));
    let done = open.db.copy_to(&aside, |_| {});
    done?;
    std::fs::rename(&aside, dest).map_err(|error| {
        let _not_there = std::fs::remove_file(&aside);
        told(KCESYSTEM, format!("{}: {error}", dest.display()))
    })
}

/// A path that the caller has passed.
pub(crate) fn path_of(text: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(text.to_bytes()))
}

/// Removes all records. Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbclear(db: *mut KCDB) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.done(db, |store| store.all(true, |access| access.clear()))
}
