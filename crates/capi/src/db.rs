//! Opening and closing.

use crate::call::{Caller, call};
use crate::handles::{azk_db, azk_options};
use crate::slots::{end_shared, owned, share, shared};
use crate::status::azk_status::{AZK_BUSY, AZK_OK};
use crate::status::{Outcome, azk_status};
use azekura::Options;
use std::ffi::{OsStr, c_char};
use std::os::unix::ffi::OsStrExt;

/// Opens the database in the file `path`, or makes it. `options` may be NULL for the defaults; they are
/// copied. On failure *out is NULL. Errors: AZK_OPEN, AZK_NOT_A_DATABASE, AZK_NEWER_VERSION, AZK_LOCKED,
/// AZK_CORRUPT, AZK_TRUNCATED, AZK_IO, AZK_NO_SPACE, AZK_INVALID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_open(
    path: *const c_char,
    options: *const azk_options,
    out: *mut *mut azk_db,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(|c| {
        let mut out = c.handle_place(out)?;
        let path = OsStr::from_bytes(c.c_str(path, "path")?.to_bytes());
        let options = if options.is_null() { Options::new() } else { owned(options)?.clone() };
        out.set(share(options.open(path)?)?);
        Ok(())
    })
}

/// Closes the database for all who have a handle of it: makes everything durable, ends the library's threads,
/// gives the file its final length and gives its lock up. Tables, transactions and cursors may outlive it:
/// their calls are AZK_CLOSED from then on, and each is still to be freed. Where the file is mapped, it is
/// the last transaction or cursor to be freed that gives the lock up.
///
/// If it returns AZK_OK the handle is gone. Else it is there as before: after AZK_NOT_DURABLE (the disk is
/// full) the database is open, and closing can be tried again when there is room. After any other error what
/// was durable is in the file, and reopening finds it. azk_db_free gives up.
///
/// Errors: AZK_NOT_DURABLE, AZK_NO_SPACE, AZK_IO, AZK_POISONED, AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub extern "C" fn azk_db_close(db: *mut azk_db) -> azk_status {
    call(|| {
        shared(db)?.try_close()?;
        // Calls that are under way end soon now. None can wait for this one, for callbacks are called with no
        // handle held.
        loop {
            match end_shared(db) {
                Err(failure) if failure.status() == AZK_BUSY => std::thread::yield_now(),
                ended => break ended?,
            }
        }
        Ok(AZK_OK)
    })
}

/// Frees the handle. A database that was not closed is closed when the last handle of it is freed, tables,
/// transactions and cursors included; what cannot be made durable then is lost, and nobody is told. In a
/// forked child nothing is closed. NULL is nothing to free. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_db_free(db: *mut azk_db) -> azk_status {
    call(|| {
        if !db.is_null() {
            end_shared(db)?;
        }
        Ok(AZK_OK)
    })
}

/// A call of the database alone.
pub(crate) fn with_db(db: *const azk_db, f: impl FnOnce(&azekura::Db) -> Outcome<()>) -> azk_status {
    call(|| f(&*shared(db)?).map(|()| AZK_OK))
}
