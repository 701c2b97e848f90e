//! Calls that keep a database durable, fast, small and sound.

use crate::arguments::ResultPlace;
use crate::call::{Caller, call};
use crate::db::with_db;
use crate::files;
use crate::handles::azk_db;
use crate::memory::Block;
use crate::slots::shared;
use crate::stats::Growing;
use crate::status::azk_status::{AZK_CORRUPT, AZK_OK};
use crate::status::{Outcome, azk_status, failure};
use azekura::{CheckReport, Progress};
use std::ffi::{c_char, c_void};

/// Called now and then during a long operation, with how many bytes are done and how many there are. `total`
/// may grow.
pub type azk_progress_fn = Option<unsafe extern "C" fn(user_data: *mut c_void, done: u64, total: u64)>;

/// Returns when everything committed so far is durable. Errors: AZK_NO_SPACE (what is not durable stays in
/// memory and is tried again), AZK_IO, AZK_POISONED, AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub extern "C" fn azk_db_sync(db: *mut azk_db) -> azk_status {
    with_db(db, |db| Ok(db.sync()?))
}

/// Writes what is in memory to the file as sorted runs, durably. This is never needed, but it limits what the
/// next opening has to read. Errors: as azk_db_sync, and AZK_READ_ONLY.
#[unsafe(no_mangle)]
pub extern "C" fn azk_db_flush(db: *mut azk_db) -> azk_status {
    with_db(db, |db| Ok(db.flush()?))
}

/// Flushes, and merges until every table is one sorted run, which makes reads fastest. After half a second
/// without commits the library does the same. On a full disk it goes as far as there is room. Errors: as
/// azk_db_sync, AZK_READ_ONLY, AZK_CORRUPT (what is not damaged is merged all the same).
#[unsafe(no_mangle)]
pub extern "C" fn azk_db_compact(db: *mut azk_db) -> azk_status {
    call(move || {
        // This may take long, and others may want to free the handle meanwhile.
        let db = shared(db)?.clone();
        db.compact()?;
        Ok(AZK_OK)
    })
}

/// Calls the caller's callback, if there is one.
pub(crate) fn teller(progress: azk_progress_fn, user_data: *mut c_void) -> impl FnMut(Progress) {
    move |come| {
        if let Some(progress) = progress {
            // SAFETY: the caller answers for what the callback does.
            files::within(|| unsafe { progress(user_data, come.done, come.total) })
        }
    }
}

/// Gives all free space back to the file system, while the database is in use: compacts, and moves the file's
/// tail into its holes. `progress` may be NULL. So may `before_bytes` and `after_bytes`, the places for the
/// file's length before and after. On a full disk it goes as far as there is room. Errors: as azk_db_compact.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_shrink(
    db: *mut azk_db,
    progress: azk_progress_fn,
    user_data: *mut c_void,
    before_bytes: *mut u64,
    after_bytes: *mut u64,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let before: Option<ResultPlace<u64>> = c.optional_place(before_bytes, "before_bytes")?;
        let after = c.optional_place(after_bytes, "after_bytes")?;
        let db = shared(db)?.clone();
        let report = db.shrink(teller(progress, user_data))?;
        before.into_iter().for_each(|mut place| place.set(report.before_bytes));
        after.into_iter().for_each(|mut place| place.set(report.after_bytes));
        Ok(())
    })
}

/// What a check has found. Set `size` to sizeof(azk_check_report) before the call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct azk_check_report {
    /// The size of this structure, as the caller knows it. Later versions may have more fields.
    pub size: usize,
    /// Tables that were checked.
    pub tables: u64,
    /// Records.
    pub records: u64,
    /// Deletes that are kept, since something older may have their keys.
    pub deletes: u64,
    /// Older versions of records that are still in the file.
    pub hidden: u64,
    /// Pages that were read.
    pub pages: u64,
    /// Large values that were read.
    pub values: u64,
    /// Commits in the file's log that are in no run yet.
    pub log_commits: u64,
    /// Records of these commits, with deletes.
    pub log_records: u64,
    /// Bytes of the log that were read.
    pub log_bytes: u64,
    /// Parts of the file in use.
    pub extents: u64,
    /// Bytes in use.
    pub live_bytes: u64,
    /// Bytes free.
    pub free_bytes: u64,
    /// How many problems there are; 0 if all is well.
    pub problems: u64,
}

fn report_of(found: &CheckReport) -> azk_check_report {
    azk_check_report {
        size: size_of::<azk_check_report>(),
        tables: found.tables,
        records: found.records,
        deletes: found.deletes,
        hidden: found.hidden,
        pages: found.pages,
        values: found.values,
        log_commits: found.log_commits,
        log_records: found.log_records,
        log_bytes: found.log_bytes,
        extents: found.extents,
        live_bytes: found.live_bytes,
        free_bytes: found.free_bytes,
        // A length is no more than 64 bits here.
        problems: u64::try_from(found.problems.len()).unwrap_or(u64::MAX),
    }
}

/// Reads everything and checks it: checksums, order, counts, large values, the log, and that each part of the
/// file is either in use once or free. If something is wrong, the call gives AZK_CORRUPT and still fills the
/// report. *problems is then a text with a line for each problem. Free it with azk_free. Otherwise *problems
/// is NULL. `progress`, `report` and `problems` may be NULL. Errors: AZK_CORRUPT, AZK_IO, AZK_CLOSED,
/// AZK_FORKED, AZK_NO_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_check(
    db: *mut azk_db,
    progress: azk_progress_fn,
    user_data: *mut c_void,
    report: *mut azk_check_report,
    problems: *mut *mut c_char,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut report = if report.is_null() { None } else { Some(Growing::new(c, report, "report")?) };
        let mut problems = c.optional_place(problems, "problems")?;
        problems.iter_mut().for_each(|place| place.set(std::ptr::null_mut()));
        let db = shared(db)?.clone();
        let found = db.check(teller(progress, user_data))?;
        report.iter_mut().for_each(|place| place.fill(report_of(&found)));
        give_lines(&found.problems, problems)
    })
}

/// The status of a call that has looked for problems. If there are some, their text goes to its place.
pub(crate) fn give_lines(found: &[String], place: Option<ResultPlace<*mut c_char>>) -> Outcome<()> {
    let Some(first) = found.first() else { return Ok(()) };
    let mut lines = found.join("\n").replace('\0', "?").into_bytes();
    lines.push(0);
    if let Some(mut place) = place {
        place.set(Block::copy(&lines)?.release());
    }
    Err(failure(AZK_CORRUPT, format!("{} problems, the first: {first}", found.len())))
}
