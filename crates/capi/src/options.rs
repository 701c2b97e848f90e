//! Options for opening a database.

use crate::call::{Caller, call};
use crate::handles::azk_options;
use crate::slots::{end, own, owned};
use crate::status::{Outcome, azk_status, invalid};
use azekura::{Durability, Freshness, Options};
use std::time::Duration;

/// When a commit survives a crash.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum azk_durability {
    /// As the database was opened.
    AZK_DURABILITY_DEFAULT = 0,
    /// When the commit returns.
    AZK_DURABILITY_SYNC = 1,
    /// Within the eventual delay, or when azk_db_sync returns. A crash never tears such a commit, and never
    /// keeps a later commit without an earlier one.
    AZK_DURABILITY_EVENTUAL = 2,
}

/// The durability for a number. None for the default.
pub(crate) fn durability_of(number: i32) -> Outcome<Option<Durability>> {
    match number {
        0 => Ok(None),
        1 => Ok(Some(Durability::Sync)),
        2 => Ok(Some(Durability::Eventual)),
        other => Err(invalid(format!("{other} is no azk_durability"))),
    }
}

/// Up to what a handle follows a database that another process writes. See azk_options_set_follow.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum azk_follow {
    /// It does not follow: the file is locked.
    AZK_FOLLOW_NOTHING = 0,
    /// What the writer has flushed: the newest checkpoint.
    AZK_FOLLOW_CHECKPOINTS = 1,
    /// All commits that are durable: the log, too.
    AZK_FOLLOW_LOG = 2,
}

/// Makes options with the defaults: the file is made if there is none, 256 MiB of memory, durable commits.
/// Free them with azk_options_free. Errors: none of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_options_create(out: *mut *mut azk_options) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut out = c.handle_place(out)?;
        crate::files::none();
        out.set(own(Options::new())?);
        Ok(())
    })
}

/// Frees options. Databases that were opened with them do not change. NULL is allowed. Errors: none of its
/// own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_options_free(options: *mut azk_options) -> azk_status {
    call(move || {
        if !options.is_null() {
            end(options)?;
        }
        Ok(azk_status::AZK_OK)
    })
}

/// Changes options in place.
fn change(options: *mut azk_options, f: impl FnOnce(Options) -> Options) -> azk_status {
    call(move || {
        let mut options = owned(options)?;
        *options = f(options.clone());
        Ok(azk_status::AZK_OK)
    })
}

/// Whether to make a database if the file does not exist or is empty (0: no). Default: yes. Errors: none of
/// its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_options_set_create(options: *mut azk_options, yes: i32) -> azk_status {
    change(options, |o| o.create(yes != 0))
}

/// Whether to fail if the file exists (0: no). Default: no. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_options_set_exclusive(options: *mut azk_options, yes: i32) -> azk_status {
    change(options, |o| o.exclusive(yes != 0))
}

/// Whether to open for reading only (0: no). Several processes may do so, if none writes. Default: no.
/// Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_options_set_read_only(options: *mut azk_options, yes: i32) -> azk_status {
    change(options, |o| o.read_only(yes != 0))
}

/// How to follow a file that another process writes, an azk_follow. Neither waits for the other. Each call
/// that reads, and each snapshot, sees the newest commit that there is then. Such a handle is read-only. A
/// snapshot keeps space in the file; AZK_SNAPSHOT_TOO_OLD says that the writer has set limits for that
/// (azk_options_set_pinned_bytes_max) and that they were passed. Default: AZK_FOLLOW_NOTHING. Errors:
/// AZK_INVALID.
#[unsafe(no_mangle)]
pub extern "C" fn azk_options_set_follow(options: *mut azk_options, follow: i32) -> azk_status {
    call(|| {
        let mut options = owned(options)?;
        let before = options.clone();
        *options = match follow {
            0 => before.follow(false),
            1 => before.freshness(Freshness::Checkpoint),
            2 => before.freshness(Freshness::Log),
            other => return Err(invalid(format!("{other} is no azk_follow"))),
        };
        Ok(azk_status::AZK_OK)
    })
}

/// How many bytes of the file the followers of this writer may keep at most. When they keep more, the oldest
/// of their snapshots are given up: reading there gives AZK_SNAPSHOT_TOO_OLD, never a wrong value. Followers
/// copy what they read as long as there is a limit. Default: none. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_options_set_pinned_bytes_max(options: *mut azk_options, bytes: u64) -> azk_status {
    change(options, |o| o.pinned_bytes_max(bytes))
}

/// For how many milliseconds a follower may read what is not the newest checkpoint any more. All else is as
/// azk_options_set_pinned_bytes_max says. Default: for any time. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_options_set_pinned_age_max_ms(options: *mut azk_options, age_ms: u64) -> azk_status {
    change(options, |o| o.pinned_age_max(Duration::from_millis(age_ms)))
}

/// For how many milliseconds a durable commit, or azk_db_sync, waits at most for a mirror that is kept
/// synchronously (azekura mirror --sync). It waits only while there is one. If the time is over it returns
/// AZK_OK all the same, for it is durable in this file, and nobody waits until the mirror has caught up.
/// Default: 10000. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_options_set_mirror_timeout_ms(options: *mut azk_options, time_ms: u64) -> azk_status {
    change(options, |o| o.mirror_timeout(Duration::from_millis(time_ms)))
}

/// Whether a durable commit that succeeds is surely in a mirror that is kept synchronously. Then it also
/// waits if there is none, and gives AZK_MIRROR_BEHIND when the time is over: it is durable in this file all
/// the same. Default: false. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_options_set_require_mirror(options: *mut azk_options, yes: bool) -> azk_status {
    change(options, |o| o.require_mirror(yes))
}

/// The memory for everything, in bytes. Default: 256 MiB. At least 8 MiB; azk_db_open refuses other values
/// with AZK_INVALID. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_options_set_memory_bytes(options: *mut azk_options, bytes: u64) -> azk_status {
    change(options, |o| o.memory_bytes(bytes))
}

/// The memory that commits fill before they are flushed to the file, in bytes: from 64 KiB to 1 GiB. 0 is the
/// default: an eighth of all memory, and at most 64 MiB. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_options_set_memtable_bytes(options: *mut azk_options, bytes: u64) -> azk_status {
    change(options, |o| o.memtable_bytes(bytes))
}

/// The durability of commits that do not say otherwise, an azk_durability. Default: AZK_DURABILITY_SYNC.
/// Errors: AZK_INVALID.
#[unsafe(no_mangle)]
pub extern "C" fn azk_options_set_durability(options: *mut azk_options, durability: i32) -> azk_status {
    call(move || {
        let durability = durability_of(durability)?.unwrap_or_default();
        let mut options = owned(options)?;
        *options = options.clone().durability(durability);
        Ok(azk_status::AZK_OK)
    })
}

/// The time within which eventual commits become durable, in milliseconds. Default: 1000. Errors: none of its
/// own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_options_set_eventual_delay_ms(options: *mut azk_options, delay_ms: u64) -> azk_status {
    change(options, |o| o.eventual_delay(Duration::from_millis(delay_ms)))
}

/// Values of this many bytes or more are stored apart from their keys. Default: 1024; from 64 to 8192.
/// Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_options_set_large_value_bytes(options: *mut azk_options, bytes: u32) -> azk_status {
    change(options, |o| o.large_value_bytes(bytes))
}

/// Whether threads of the library merge in the background (0: no). Without them the file grows and reads slow
/// down until azk_db_compact or azk_db_shrink is called. Default: yes. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_options_set_background_merges(options: *mut azk_options, yes: i32) -> azk_status {
    change(options, |o| o.background_merges(yes != 0))
}

/// Whether the file is read through mappings (0: no). Then nothing is copied. But if the disk fails while the
/// system reads a page again, SIGBUS ends the process. Default: yes. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_options_set_mapped(options: *mut azk_options, yes: i32) -> azk_status {
    change(options, |o| o.mapped(yes != 0))
}

/// Whether the library starts threads (0: no). Without threads, the call that finds work due does the work.
/// Eventual commits then become durable by azk_db_sync, a later durable commit or azk_db_close, but not by
/// time. Default: yes. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_options_set_threads(options: *mut azk_options, yes: i32) -> azk_status {
    change(options, |o| o.threads(yes != 0))
}
