//! Copies of a database, and repositories of backups.

use crate::arguments::ResultPlace;
use crate::call::Caller;
use crate::handles::azk_db;
use crate::memory::Block;
use crate::slots::shared;
use crate::stats::Growing;
use crate::status::azk_status::AZK_CORRUPT;
use crate::status::{Outcome, azk_status, failure, invalid};
use crate::upkeep::{azk_progress_fn, give_lines, teller};
use azekura::{BackupReport, CopyOptions, Keep, PointInfo, Repository, VerifyReport, Which};
use std::ffi::{OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// One point of a repository: the database after one commit.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct azk_point {
    /// Its number, from 1 on.
    pub number: u64,
    /// The number of the newest commit in it.
    pub commit: u64,
    /// When it was found what the point has, in milliseconds since 1970. It has nothing that came later.
    pub time_ms: u64,
    /// Its tables.
    pub tables: u64,
    /// Bytes of its chunks, which other points may share.
    pub bytes: u64,
    /// The database can be restored as it was after any commit from this one on, up to commit. That is the
    /// same one, unless the point has a log.
    pub first_commit: u64,
    /// When its log was last read on, in milliseconds since 1970. Of other points it is time_ms.
    pub last_time_ms: u64,
}

/// Which point of a repository.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum azk_which {
    /// The newest: that with the last commit.
    AZK_NEWEST = 0,
    /// The one of a number.
    AZK_POINT = 1,
    /// One with exactly the commits up to a number.
    AZK_COMMIT = 2,
    /// The newest that began at a time or before, in milliseconds since 1970. Of one whose log was kept, the
    /// last commit that was read from the log by then.
    AZK_TIME = 3,
}

/// What a backup has done. Set `size` to sizeof(azk_backup_report) before the call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct azk_backup_report {
    /// The size of this structure, as the caller knows it. Later versions may have more fields.
    pub size: usize,
    /// The number of the point.
    pub point: u64,
    /// The number of the newest commit in it.
    pub commit: u64,
    /// Chunks of the point.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Chunks that the repository did not have.
    pub new_chunks: u64,
    /// Their bytes.
    pub new_bytes: u64,
}

/// What looking through a repository has found. Set `size` to sizeof(azk_verify_report) before the call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct azk_verify_report {
    /// The size of this structure, as the caller knows it. Later versions may have more fields.
    pub size: usize,
    /// Points that can be read.
    pub points: u64,
    /// Different chunks that they name.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that no point names. azk_repository_prune removes them.
    pub unused: u64,
    /// How many problems there are; 0 if all is well.
    pub problems: u64,
}

fn path_of<'a>(c: Caller, path: *const c_char, what: &str) -> Outcome<&'a Path> {
    // A call about a database's handle uses it after this.
    crate::files::none();
    Ok(Path::new(OsStr::from_bytes(c.c_str(path, what)?.to_bytes())))
}

/// A number of things in memory.
fn count(things: usize) -> u64 {
    u64::try_from(things).unwrap_or(u64::MAX)
}

fn point_of(point: &PointInfo) -> azk_point {
    let ms = |time: SystemTime| {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    };
    azk_point {
        number: point.number,
        commit: point.commit,
        time_ms: ms(point.time),
        tables: point.tables,
        bytes: point.bytes,
        first_commit: point.first_commit,
        last_time_ms: ms(point.last_time),
    }
}

fn which_of(which: i32, number: u64) -> Outcome<Which> {
    Ok(match which {
        0 => Which::Newest,
        1 => Which::Point(number),
        2 => Which::Commit(number),
        3 => {
            let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(number));
            Which::Time(time.ok_or_else(|| invalid(format!("{number} is no time")))?)
        }
        other => return Err(invalid(format!("{other} is no azk_which"))),
    })
}

fn backup_of(report: &BackupReport) -> azk_backup_report {
    azk_backup_report {
        size: size_of::<azk_backup_report>(),
        point: report.point,
        commit: report.commit,
        chunks: report.chunks,
        bytes: report.bytes,
        new_chunks: report.new_chunks,
        new_bytes: report.new_bytes,
    }
}

fn verified(report: &VerifyReport) -> azk_verify_report {
    azk_verify_report {
        size: size_of::<azk_verify_report>(),
        points: report.points,
        chunks: report.chunks,
        bytes: report.bytes,
        unused: report.unused,
        problems: count(report.problems.len()),
    }
}

/// Copies what is committed to the new file `path`, while others read and write. The copy has its name when
/// it is whole and durable. It is a database of its own: its backups go to another repository. `progress` may
/// be NULL. Errors: AZK_OPEN if there is such a file, AZK_NO_SPACE, AZK_IO, AZK_CORRUPT, AZK_READ_ONLY if the
/// database is open to read only and was not closed, AZK_POISONED, AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_copy(
    db: *mut azk_db,
    path: *const c_char,
    progress: azk_progress_fn,
    user_data: *mut c_void,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { azk_db_copy_paced(db, path, 0, progress, user_data) }
}

/// As azk_db_copy, but at most `bytes_per_second` are copied, so that others have their share of the disks. 0
/// means no limit. A slow copy keeps the space of replaced records for longer. Errors: AZK_INVALID below
/// 4,096 bytes a second, and as azk_db_copy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_copy_paced(
    db: *mut azk_db,
    path: *const c_char,
    bytes_per_second: u64,
    progress: azk_progress_fn,
    user_data: *mut c_void,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let path = path_of(c, path, "path")?;
        // This may take long, and others may want to free the handle meanwhile.
        let db = shared(db)?.clone();
        Ok(db.copy_to_with(path, paced(bytes_per_second), teller(progress, user_data))?)
    })
}

/// Adds a point, the database after its newest commit, to the repository in the directory `repository`. The
/// repository is made if there is none. Others read and write meanwhile. It costs what has changed since the
/// point before. The point is durable when this returns. `progress` and `report` may be NULL. Errors:
/// AZK_INVALID if the repository is another database's, AZK_LOCKED while it is pruned, and as azk_db_copy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_backup(
    db: *mut azk_db,
    repository: *const c_char,
    progress: azk_progress_fn,
    user_data: *mut c_void,
    report: *mut azk_backup_report,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { azk_db_backup_paced(db, repository, 0, progress, user_data, report) }
}

/// As azk_db_backup, but at most `bytes_per_second` are copied, as by azk_db_copy_paced. What the repository
/// has already does not count. Errors: AZK_INVALID below 4,096 bytes a second, and as azk_db_backup.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_backup_paced(
    db: *mut azk_db,
    repository: *const c_char,
    bytes_per_second: u64,
    progress: azk_progress_fn,
    user_data: *mut c_void,
    report: *mut azk_backup_report,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let repository = path_of(c, repository, "repository")?;
        let mut report = if report.is_null() { None } else { Some(Growing::new(c, report, "report")?) };
        let db = shared(db)?.clone();
        let done = db.backup_with(repository, paced(bytes_per_second), teller(progress, user_data))?;
        report.iter_mut().for_each(|place| place.fill(backup_of(&done)));
        Ok(())
    })
}

/// Options with a rate. 0 is none.
fn paced(bytes_per_second: u64) -> CopyOptions {
    let bytes_per_second = Some(bytes_per_second).filter(|&rate| rate > 0);
    CopyOptions { bytes_per_second }
}

/// The points of a repository, by their numbers, in an array of *count elements. Free the array with
/// azk_free. If a point cannot be read, the call gives AZK_CORRUPT and still gives the others. On any other
/// failure *out is NULL. Errors: AZK_OPEN if there is no repository, AZK_CORRUPT, AZK_NEWER_VERSION, AZK_IO,
/// AZK_NO_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_repository_points(
    repository: *const c_char,
    out: *mut *mut azk_point,
    count: *mut usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let (mut out, mut count) = (c.handle_place(out)?, c.place(count, "count")?);
        count.set(0);
        let list = Repository::open(path_of(c, repository, "repository")?)?.points()?;
        let mut block = Block::new(list.points.len().saturating_mul(size_of::<azk_point>()))?;
        block.begin_with::<azk_point>(list.points.len());
        list.points.iter().enumerate().for_each(|(i, point)| block.set(i, point_of(point)));
        out.set(block.release());
        count.set(list.points.len());
        match list.damaged.first() {
            None => Ok(()),
            Some((number, error)) => Err(failure(AZK_CORRUPT, format!("point {number}: {error}"))),
        }
    })
}

/// Makes the database `path`, which must not be there, of a point of a repository. `which` is an azk_which,
/// and `number` what it needs. Every byte is verified on the way, and the file has its name when it is whole
/// and durable. `progress` and `point`, the place for the point that it was, may be NULL. Errors: AZK_INVALID
/// if there is no such point, AZK_OPEN if there is such a file or no repository, AZK_CORRUPT, AZK_LOCKED
/// while it is pruned, AZK_NO_SPACE, AZK_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_repository_restore(
    repository: *const c_char,
    which: i32,
    number: u64,
    path: *const c_char,
    progress: azk_progress_fn,
    user_data: *mut c_void,
    point: *mut azk_point,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let point: Option<ResultPlace<azk_point>> = c.optional_place(point, "point")?;
        let (which, path) = (which_of(which, number)?, path_of(c, path, "path")?);
        let repository = Repository::open(path_of(c, repository, "repository")?)?;
        let report = repository.restore(which, path, teller(progress, user_data))?;
        point.into_iter().for_each(|mut place| place.set(point_of(&report.point)));
        Ok(())
    })
}

/// Reads and verifies every byte of a repository. If something is wrong, the call gives AZK_CORRUPT and still
/// fills the report. *problems is then a text with a line for each problem. Free it with azk_free. Otherwise
/// *problems is NULL. `progress`, `report` and `problems` may be NULL. Errors: AZK_CORRUPT, AZK_OPEN if there
/// is no repository, AZK_LOCKED while it is pruned, AZK_IO, AZK_NO_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_repository_verify(
    repository: *const c_char,
    progress: azk_progress_fn,
    user_data: *mut c_void,
    report: *mut azk_verify_report,
    problems: *mut *mut c_char,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut report = if report.is_null() { None } else { Some(Growing::new(c, report, "report")?) };
        let mut problems = c.optional_place(problems, "problems")?;
        problems.iter_mut().for_each(|place| place.set(std::ptr::null_mut()));
        let repository = Repository::open(path_of(c, repository, "repository")?)?;
        let found = repository.verify(teller(progress, user_data))?;
        report.iter_mut().for_each(|place| place.fill(verified(&found)));
        give_lines(&found.problems, problems)
    })
}

/// Removes the points that are not to be kept, and what only they have named. `keep` says which are to be
/// kept, as in "7d,4w,12m": the newest of each of the last 7 days, 4 weeks and 12 months that have some. h
/// and y are hours and years. A number alone is so many points. The newest is kept in any case. `progress`,
/// and the places for how many are kept and removed, may be NULL. Errors: AZK_INVALID for another `keep`,
/// AZK_CORRUPT if a point is damaged (nothing is removed then), AZK_LOCKED while a backup or a restore is at
/// work, AZK_OPEN if there is no repository, AZK_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_repository_prune(
    repository: *const c_char,
    keep: *const c_char,
    progress: azk_progress_fn,
    user_data: *mut c_void,
    kept: *mut u64,
    removed: *mut u64,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let (kept, removed) = (c.optional_place(kept, "kept")?, c.optional_place(removed, "removed")?);
        let keep: Keep = c.text(keep, "keep")?.parse()?;
        let repository = Repository::open(path_of(c, repository, "repository")?)?;
        let report = repository.prune(&keep, teller(progress, user_data))?;
        kept.into_iter().for_each(|mut place| place.set(count(report.kept.len())));
        removed.into_iter().for_each(|mut place| place.set(count(report.removed.len())));
        Ok(())
    })
}
