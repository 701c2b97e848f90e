//! Opening and closing.

use crate::call::{Caller, call};
use crate::files;
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
    unsafe { Caller::trusted() }.run(move |c| {
        let mut out = c.handle_place(out)?;
        files::none();
        let path = OsStr::from_bytes(c.c_str(path, "path")?.to_bytes());
        let options = if options.is_null() { Options::new() } else { owned(options)?.clone() };
        let db = options.open(path)?;
        files::opened(db.path());
        out.set(share(db)?);
        Ok(())
    })
}

/// Closes the database for everybody who has a handle of it. It makes everything durable, ends the library's
/// threads, gives the file its final length and releases its lock. Tables, transactions and cursors may
/// outlive it. Their calls then give AZK_CLOSED, and each must still be freed. If the file is mapped, the
/// lock is released when the last transaction and cursor is freed.
///
/// On AZK_OK the handle is freed. Otherwise it stays. After AZK_NOT_DURABLE (the disk is full) the database
/// is open as before, and closing can be tried again when there is room. After any other error the file has
/// all that was durable, and reopening finds it. azk_db_free gives the database up.
///
/// Errors: AZK_NOT_DURABLE, AZK_NO_SPACE, AZK_IO, AZK_POISONED, AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub extern "C" fn azk_db_close(db: *mut azk_db) -> azk_status {
    call(move || {
        shared(db)?.try_close()?;
        // Calls in progress end soon. None of them can wait for this one, since callbacks are called with no
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

/// Frees the handle. A database that was not closed is closed when its last handle is freed, including those
/// of tables, transactions and cursors. What cannot be made durable then is lost, without a report. In a
/// forked child nothing is closed. NULL is allowed. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_db_free(db: *mut azk_db) -> azk_status {
    call(move || {
        if !db.is_null() {
            end_shared(db)?;
        }
        Ok(AZK_OK)
    })
}

/// A call that uses only the database.
pub(crate) fn with_db(db: *const azk_db, f: impl FnOnce(&azekura::Db) -> Outcome<()>) -> azk_status {
    call(move || f(&*shared(db)?).map(|()| AZK_OK))
}
