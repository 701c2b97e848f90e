//! The feed of changes: which tables are fed, what is kept, readers and their cursors.

use crate::arguments::azk_bytes;
use crate::call::{Caller, call};
use crate::handles::{azk_db, azk_feed, azk_table, azk_write};
use crate::slots::{end, own, owned, shared};
use crate::status::azk_status::{AZK_NOT_FOUND, AZK_OK};
use crate::status::{Outcome, azk_status, invalid};
use azekura::{Change, ChangeKind, FeedContent};
use std::ffi::c_char;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the feed has of the changes of a table.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum azk_feed_content {
    /// Nothing.
    AZK_FEED_NOTHING = 0,
    /// The keys.
    AZK_FEED_KEYS = 1,
    /// Keys and new values.
    AZK_FEED_VALUES = 2,
    /// Keys, new values, and the values before.
    AZK_FEED_BOTH = 3,
}

/// What was done.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum azk_change_kind {
    /// A change for which this header has no number.
    AZK_CHANGE_OTHER = 0,
    /// `key` has a new value.
    AZK_CHANGE_PUT = 1,
    /// `key` was removed. It need not have been there.
    AZK_CHANGE_REMOVE = 2,
    /// The keys from `key` on and below `end` were removed, or all from `key` on if there is no `end`.
    AZK_CHANGE_REMOVE_RANGE = 3,
    /// All keys were removed.
    AZK_CHANGE_CLEAR = 4,
    /// The table is called `key` from then on.
    AZK_CHANGE_RENAME = 5,
    /// The table was dropped.
    AZK_CHANGE_DROP = 6,
    /// From this commit on the table is fed, with `content`. Who keeps a copy of it reads it anew.
    AZK_CHANGE_BEGIN = 7,
    /// The table is no longer fed.
    AZK_CHANGE_STOP = 8,
}

/// A change. Bytes that are not there have `data` NULL; bytes of length 0 that are there do not.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct azk_change {
    /// The number of the commit.
    pub commit: u64,
    /// When it was made, in milliseconds since 1970.
    pub time_ms: u64,
    /// The table's name, as it was before the commit.
    pub table: azk_bytes,
    /// An azk_change_kind.
    pub kind: i32,
    /// An azk_feed_content, of AZK_CHANGE_BEGIN.
    pub content: i32,
    /// The key, the first key of a range, or a new name.
    pub key: azk_bytes,
    /// The end of a range.
    pub end: azk_bytes,
    /// The new value.
    pub value: azk_bytes,
    /// The value before.
    pub old: azk_bytes,
    /// When the record that was put expires, in milliseconds since 1970; 0: it does not.
    pub expires_ms: u64,
}

/// What is kept of the feed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct azk_feed_info {
    /// The changes up to this commit are gone.
    pub oldest: u64,
    /// The newest durable commit.
    pub newest: u64,
    /// About so many bytes of changes are kept, at most.
    pub bytes_max: u64,
    /// Changes are kept for so many milliseconds; 0: however old they are.
    pub age_max_ms: u64,
    /// Bytes in the file and in memory.
    pub bytes: u64,
}

fn content_of(number: i32) -> Outcome<Option<FeedContent>> {
    match number {
        0 => Ok(None),
        1 => Ok(Some(FeedContent::Keys)),
        2 => Ok(Some(FeedContent::Values)),
        3 => Ok(Some(FeedContent::Both)),
        other => Err(invalid(format!("{other} is no azk_feed_content"))),
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl azk_change {
    fn of(change: &Change<'_>) -> azk_change {
        use azk_change_kind::*;
        let since_1970 = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, ms);
        let (table, none) = (azk_bytes::of(change.table.as_bytes()), azk_bytes::NONE);
        let some = |bytes: Option<&[u8]>| bytes.map_or(none, azk_bytes::of);
        let base = azk_change {
            commit: change.commit,
            time_ms: since_1970(change.time),
            table,
            kind: AZK_CHANGE_OTHER as i32,
            content: 0,
            key: none,
            end: none,
            value: none,
            old: none,
            expires_ms: change.expires.map_or(0, since_1970),
        };
        let (kind, rest) = match change.kind {
            ChangeKind::Put { key, value, old } => {
                let (key, value, old) = (azk_bytes::of(key), some(value), some(old));
                (AZK_CHANGE_PUT, azk_change { key, value, old, ..base })
            }
            ChangeKind::Remove { key, old } => {
                (AZK_CHANGE_REMOVE, azk_change { key: azk_bytes::of(key), old: some(old), ..base })
            }
            ChangeKind::RemoveRange { start, end } => {
                (AZK_CHANGE_REMOVE_RANGE, azk_change { key: azk_bytes::of(start), end: some(end), ..base })
            }
            ChangeKind::Clear => (AZK_CHANGE_CLEAR, base),
            ChangeKind::Rename { to } => {
                (AZK_CHANGE_RENAME, azk_change { key: azk_bytes::of(to.as_bytes()), ..base })
            }
            ChangeKind::Drop => (AZK_CHANGE_DROP, base),
            ChangeKind::Begin { content } => {
                let content = match content {
                    FeedContent::Keys => azk_feed_content::AZK_FEED_KEYS,
                    FeedContent::Values => azk_feed_content::AZK_FEED_VALUES,
                    FeedContent::Both => azk_feed_content::AZK_FEED_BOTH,
                };
                (AZK_CHANGE_BEGIN, azk_change { content: content as i32, ..base })
            }
            ChangeKind::Stop => (AZK_CHANGE_STOP, base),
            _ => (AZK_CHANGE_OTHER, base),
        };
        azk_change { kind: kind as i32, ..rest }
    }
}

/// Has the feed every change of the table from now on: so much of it as `content` says, an azk_feed_content.
/// When this returns, all later commits are in it. The file remembers it. Errors: AZK_INVALID, and as
/// azk_table_put.
#[unsafe(no_mangle)]
pub extern "C" fn azk_table_set_feed(table: *const azk_table, content: i32) -> azk_status {
    call(move || {
        let content = content_of(content)?;
        let table = shared(table)?;
        table.set_feed(content)?;
        Ok(AZK_OK)
    })
}

/// Says how much of the feed is kept: about so many bytes, and none that is older than age_max_ms
/// milliseconds; 0: however old. Errors: AZK_INVALID for less than 64 KiB, and as azk_table_put.
#[unsafe(no_mangle)]
pub extern "C" fn azk_db_set_feed_limits(db: *const azk_db, bytes_max: u64, age_max_ms: u64) -> azk_status {
    call(move || {
        let age = (age_max_ms > 0).then(|| Duration::from_millis(age_max_ms));
        shared(db)?.set_feed_limits(bytes_max, age)?;
        Ok(AZK_OK)
    })
}

/// What is kept of the feed. Errors: AZK_NOT_FOUND if nothing was ever fed, AZK_CORRUPT, AZK_IO, AZK_CLOSED,
/// AZK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_feed_info(db: *const azk_db, info: *mut azk_feed_info) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let mut place = c.place(info, "info")?;
        let Some(info) = shared(db)?.feed_info()? else { return Ok(AZK_NOT_FOUND) };
        place.set(azk_feed_info {
            oldest: info.oldest,
            newest: info.newest,
            bytes_max: info.bytes_max,
            age_max_ms: info.age_max.map_or(0, ms),
            bytes: info.bytes,
        });
        Ok(AZK_OK)
    })
}

/// Where the cursor of a name stands: the last commit with which its reader has done. Errors: AZK_NOT_FOUND
/// if there is no such cursor, and as azk_db_feed_info.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_feed_cursor(
    db: *const azk_db,
    name: *const c_char,
    commit: *mut u64,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let (name, mut commit) = (c.text(name, "name")?, c.place(commit, "commit")?);
        let Some(found) = shared(db)?.feed_cursor(name)? else { return Ok(AZK_NOT_FOUND) };
        commit.set(found);
        Ok(AZK_OK)
    })
}

/// Sets the cursor of a name to *commit, or removes it if `commit` is NULL. Errors: AZK_INVALID if nothing
/// was ever fed or the name is empty, AZK_TOO_LARGE for a name over 255 bytes, and as azk_table_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_set_feed_cursor(
    db: *const azk_db,
    name: *const c_char,
    commit: *const u64,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let (name, commit) = (c.text(name, "name")?, commit_of(c, commit)?);
        Ok(shared(db)?.set_feed_cursor(name, commit)?)
    })
}

/// As azk_db_set_feed_cursor, together with all else that the transaction writes. Errors: as
/// azk_db_set_feed_cursor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_set_feed_cursor(
    write: *mut azk_write,
    name: *const c_char,
    commit: *const u64,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let (name, commit) = (c.text(name, "name")?, commit_of(c, commit)?);
        Ok(owned(write)?.changed()?.set_feed_cursor(name, commit)?)
    })
}

fn commit_of(c: Caller, commit: *const u64) -> Outcome<Option<u64>> {
    if commit.is_null() { Ok(None) } else { Ok(c.array(commit, 1, "commit")?.first().copied()) }
}

/// A reader of the changes after commit number `after`. Free it with azk_feed_free. On failure *out is NULL.
/// Errors: AZK_FEED_GAP if changes after that commit are gone, AZK_INVALID if nothing was ever fed or there
/// is no such commit, and as azk_db_feed_info.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_feed(db: *const azk_db, after: u64, out: *mut *mut azk_feed) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut out = c.handle_place(out)?;
        let feed = shared(db)?.feed(after)?;
        out.set(own(feed)?);
        Ok(())
    })
}

/// The next change. Its bytes stay until the next call with this reader. Errors: AZK_NOT_FOUND if there is
/// none at present: it may be called again. AZK_FEED_GAP if the feed was faster, AZK_CORRUPT, AZK_IO,
/// AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_feed_next(feed: *mut azk_feed, change: *mut azk_change) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let mut place = c.place(change, "change")?;
        let mut feed = owned(feed)?;
        let Some(change) = feed.next()? else { return Ok(AZK_NOT_FOUND) };
        place.set(azk_change::of(&change));
        Ok(AZK_OK)
    })
}

/// Waits until there is a change, or so many milliseconds are over. The reader is in use meanwhile. Errors:
/// AZK_NOT_FOUND if there is none, and as azk_feed_next.
#[unsafe(no_mangle)]
pub extern "C" fn azk_feed_wait(feed: *mut azk_feed, time_ms: u64) -> azk_status {
    call(move || {
        let has_change = owned(feed)?.wait(Duration::from_millis(time_ms))?;
        Ok(if has_change { AZK_OK } else { AZK_NOT_FOUND })
    })
}

/// The newest commit of which all changes were given. From there another reader goes on. Errors: none of its
/// own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_feed_position(feed: *mut azk_feed, commit: *mut u64) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut commit = c.place(commit, "commit")?;
        commit.set(owned(feed)?.position());
        Ok(())
    })
}

/// Frees a reader of the feed. NULL is allowed. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_feed_free(feed: *mut azk_feed) -> azk_status {
    call(move || {
        if !feed.is_null() {
            end(feed)?;
        }
        Ok(AZK_OK)
    })
}
