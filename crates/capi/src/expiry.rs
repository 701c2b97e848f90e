//! Records that are gone by themselves after some time.

use crate::arguments::ResultPlace;
use crate::call::Caller;
use crate::handles::{azk_db, azk_read, azk_table, azk_write};
use crate::slots::{owned, shared};
use crate::status::azk_status::{AZK_NOT_FOUND, AZK_OK};
use crate::status::{Outcome, azk_status};
use crate::tables::{kind_of, named};
use azekura::Lifetime;
use std::ffi::{c_char, c_void};
use std::time::Duration;

/// A time to live that does not end: the record stays until it is removed.
pub const AZK_FOREVER: u64 = u64::MAX;

fn time(ttl_ms: u64) -> Duration {
    if ttl_ms == AZK_FOREVER { Duration::MAX } else { Duration::from_millis(ttl_ms) }
}

/// How long the records of a table are to live.
fn usual(ttl_ms: u64) -> Option<Duration> {
    (ttl_ms != AZK_FOREVER).then(|| Duration::from_millis(ttl_ms))
}

/// Says how long a record will still be there.
fn say(mut out: ResultPlace<u64>, ttl: impl FnOnce() -> Outcome<Option<Lifetime>>) -> Outcome<azk_status> {
    out.set(0);
    let Some(lifetime) = ttl()? else { return Ok(AZK_NOT_FOUND) };
    out.set(match lifetime {
        Lifetime::Unlimited => AZK_FOREVER,
        Lifetime::Left(left) => u64::try_from(left.as_millis()).unwrap_or(AZK_FOREVER),
    });
    Ok(AZK_OK)
}

/// The table of a name, which is made if there is none, and whose records are gone `ttl_ms` milliseconds
/// after they were put, if the put does not say otherwise. Free it with azk_table_free. Errors:
/// AZK_WRONG_TYPE if the table is of the other kind, or its records live longer or shorter; AZK_INVALID for a
/// time of 0 or AZK_FOREVER; as azk_db_table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_expiring_table(
    db: *const azk_db,
    name: *const c_char,
    kind: i32,
    ttl_ms: u64,
    out: *mut *mut azk_table,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    named(c, name, out, |name| Ok(shared(db)?.expiring_table(name, kind_of(kind)?, time(ttl_ms))?))
}

/// How many milliseconds the records of a table live if the put does not say otherwise; AZK_FOREVER if until
/// they are removed. Errors: AZK_INVALID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_usual_ttl(table: *const azk_table, ttl_ms: *mut u64) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut out = c.place(ttl_ms, "ttl_ms")?;
        out.set(0);
        let millis = |ttl: Duration| u64::try_from(ttl.as_millis()).unwrap_or(AZK_FOREVER);
        out.set(shared(table)?.usual_ttl().map_or(AZK_FOREVER, millis));
        Ok(())
    })
}

/// Says how many milliseconds the records of a table live that are put from now on, if the put does not say
/// otherwise; with AZK_FOREVER until they are removed. Records that are there keep their time. It is durable.
/// Errors: AZK_INVALID for a time of 0, or of more than 1,100 years; as azk_table_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_set_usual_ttl(table: *const azk_table, ttl_ms: u64) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |_| Ok(shared(table)?.set_usual_ttl(usual(ttl_ms))?))
}

/// As azk_table_set_usual_ttl, within a transaction: for what it puts after this call, and for others from
/// the commit on, which is durable. Errors: as that; AZK_NO_SUCH_TABLE at the commit if the table was dropped
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_set_usual_ttl(
    write: *mut azk_write,
    table: *const azk_table,
    ttl_ms: u64,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |_| {
        let table = shared(table)?;
        Ok(owned(write)?.changed()?.set_usual_ttl(&table, usual(ttl_ms))?)
    })
}

/// Sets the value of a key for `ttl_ms` milliseconds. After that the record is gone by itself: no call finds
/// it, and it does not count. With AZK_FOREVER it stays. Errors: as azk_table_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_put_for(
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    ttl_ms: u64,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let value = c.bytes(value, value_len, "value")?;
        Ok(shared(table)?.put_for(key, value, time(ttl_ms))?)
    })
}

/// How many milliseconds a record will still be there; AZK_FOREVER if until it is removed. Errors:
/// AZK_NOT_FOUND, and as azk_table_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_ttl(
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    ttl_ms: *mut u64,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let out = c.place(ttl_ms, "ttl_ms")?;
        say(out, || Ok(shared(table)?.ttl(key)?))
    })
}

/// Gives a record another time to live, of `ttl_ms` milliseconds from now on; with AZK_FOREVER it stays.
/// *done says whether the record was there. Errors: as azk_table_put and azk_table_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_expire(
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    ttl_ms: u64,
    done: *mut bool,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let mut done = c.place(done, "done")?;
        done.set(shared(table)?.expire(key, time(ttl_ms))?);
        Ok(())
    })
}

/// As azk_table_put_for, within a transaction. Errors: as azk_write_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_put_for(
    write: *mut azk_write,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    ttl_ms: u64,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let value = c.bytes(value, value_len, "value")?;
        let (mut write, table) = (owned(write)?, shared(table)?);
        Ok(write.changed()?.put_for(&table, key, value, time(ttl_ms))?)
    })
}

/// As azk_table_expire, within a transaction. Errors: as azk_write_put and azk_write_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_expire(
    write: *mut azk_write,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    ttl_ms: u64,
    done: *mut bool,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let mut done = c.place(done, "done")?;
        let (mut write, table) = (owned(write)?, shared(table)?);
        done.set(write.changed()?.expire(&table, key, time(ttl_ms))?);
        Ok(())
    })
}

/// As azk_table_ttl, as this transaction sees the table: no time passes in it. Errors: as azk_table_ttl and
/// azk_write_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_ttl(
    write: *mut azk_write,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    ttl_ms: *mut u64,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let out = c.place(ttl_ms, "ttl_ms")?;
        let (write, table) = (owned(write)?, shared(table)?);
        say(out, || Ok(write.txn()?.ttl(&table, key)?))
    })
}

/// As azk_table_ttl, as this transaction sees the table: no time passes in it. Errors: as azk_table_ttl and
/// azk_read_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_read_ttl(
    read: *mut azk_read,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    ttl_ms: *mut u64,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let out = c.place(ttl_ms, "ttl_ms")?;
        let (read, table) = (owned(read)?, shared(table)?);
        say(out, || Ok(read.txn()?.ttl(&table, key)?))
    })
}
