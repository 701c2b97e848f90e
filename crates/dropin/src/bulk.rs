//! Several records by one call, and those of other databases.

use crate::access::Access;
use crate::call::Caller;
use crate::codes::*;
use crate::errors::{Outcome, failure, told};
use crate::memory::{give_str, kcfree};
use crate::store::Store;
use std::sync::Arc;

/// A number of elements as C has it here.
fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn bytes_of<'a>(c: Caller, string: &KCSTR, what: &str) -> Outcome<&'a [u8]> {
    c.bytes(string.buf, string.size, what)
}

/// Sets records. If `atomic`, all are set or none. Returns how many are set, or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbsetbulk(db: *mut KCDB, recs: *const KCREC, count: usize, atomic: i32) -> i64 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.on(db, -1, |store| {
        let pair = |rec: &KCREC| Ok((bytes_of(c, &rec.key, "key")?, bytes_of(c, &rec.value, "value")?));
        let pairs: Vec<(&[u8], &[u8])> = c.array(recs, count)?.iter().map(pair).collect::<Outcome<_>>()?;
        store.many(atomic != 0, |access| pairs.iter().try_for_each(|(key, value)| access.put(key, value)))?;
        let mut keys: Vec<&[u8]> = pairs.iter().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys.dedup();
        Ok(number(keys.len()))
    })
}

/// Removes records. If `atomic`, all are removed or none. Returns how many were there, or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbremovebulk(db: *mut KCDB, keys: *const KCSTR, count: usize, atomic: i32) -> i64 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.on(db, -1, |store| {
        let keys: Vec<&[u8]> =
            c.array(keys, count)?.iter().map(|key| bytes_of(c, key, "key")).collect::<Outcome<_>>()?;
        store.many(atomic != 0, |access| {
            let mut removed = 0;
            for key in &keys {
                if access.get_with(key, |_| ())?.is_some() {
                    access.remove(key)?;
                    removed += 1;
                }
            }
            Ok(removed)
        })
    })
}

/// Gets records, and sets the elements of `recs` to those that are there. Free each key and each value with
/// kcfree. If `atomic`, no other thread uses the database meanwhile. Returns how many there are, or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbgetbulk(
    db: *mut KCDB,
    keys: *const KCSTR,
    count: usize,
    recs: *mut KCREC,
    atomic: i32,
) -> i64 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.on(db, -1, |store| {
        let keys: Vec<&[u8]> =
            c.array(keys, count)?.iter().map(|key| bytes_of(c, key, "key")).collect::<Outcome<_>>()?;
        let mut found = Found::default();
        let get = |access: &mut Access<'_>| {
            keys.iter().try_for_each(|key| match access.get_with(key, give_str)? {
                Some(value) => found.add(key, value?),
                None => Ok(()),
            })
        };
        if atomic == 0 { store.look(get) } else { store.all(false, get) }?;
        found.hand_out(c, recs)
    })
}

/// Records for the caller, freed if they do not come to it.
#[derive(Default)]
struct Found(Vec<KCREC>);

impl Found {
    fn add(&mut self, key: &[u8], value: KCSTR) -> Outcome<()> {
        self.0.push(KCREC { key: KCSTR { buf: std::ptr::null_mut(), size: 0 }, value });
        let key = give_str(key)?;
        if let Some(last) = self.0.last_mut() {
            last.key = key;
        }
        Ok(())
    }

    fn hand_out(mut self, c: Caller, recs: *mut KCREC) -> Outcome<i64> {
        for (index, rec) in self.0.iter().enumerate() {
            c.set_at(recs, index, *rec)?;
        }
        Ok(number(std::mem::take(&mut self.0).len()))
    }
}

impl Drop for Found {
    fn drop(&mut self) {
        for rec in &self.0 {
            // SAFETY: both are NULL or from `malloc`, and the caller has not got them.
            unsafe {
                kcfree(rec.key.buf.cast());
                kcfree(rec.value.buf.cast());
            }
        }
    }
}

/// Writes the records of other databases to this one, in their order. `mode` is one of KCMSET and so on.
/// Returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbmerge(db: *mut KCDB, sources: *mut *mut KCDB, count: usize, mode: u32) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.done(db, |store| {
        if mode > KCMAPPEND {
            return Err(told(KCEINVALID, format!("{mode} is no mode of kcdbmerge")));
        }
        for source in c.array(sources.cast_const(), count)? {
            let found = c.on(*source, None, |source| Ok(Some(Arc::clone(source))));
            let source = found.ok_or(failure(KCEINVALID, c"a source of kcdbmerge is NULL"))?;
            merge(store, &source, mode)?;
        }
        Ok(())
    })
}

/// Writes the records of a database to another one. The source is not locked meanwhile. It is read as it was
/// when this began.
fn merge(store: &Store, source: &Store, mode: u32) -> Outcome<()> {
    let mut cursor = source.look(|access| access.cursor())?;
    store.many(false, |access| {
        while let Some((key, value)) = cursor.next()? {
            let new = value.bytes()?;
            let is_there = mode != KCMSET && access.get_with(key, |_| ())?.is_some();
            match (mode, is_there) {
                (KCMADD, true) | (KCMREPLACE, false) => {}
                (KCMAPPEND, true) => {
                    let whole = access.get_with(key, |old| [old, new].concat())?;
                    access.put(key, whole.as_deref().unwrap_or(new))?;
                }
                _ => access.put(key, new)?,
            }
        }
        Ok(())
    })
}
