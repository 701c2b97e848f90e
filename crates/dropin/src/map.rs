//! A hash map in memory, which has nothing to do with databases. One thread at a time uses one.

use crate::call::Caller;
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::rc::Rc;

/// A map.
#[repr(C)]
pub struct KCMAP {
    /// Of the library.
    map: *mut c_void,
}

/// A walk over a map.
#[repr(C)]
pub struct KCMAPITER {
    /// Of the library.
    iter: *mut c_void,
}

/// A walk over a map in the order of its keys.
#[repr(C)]
pub struct KCMAPSORT {
    /// Of the library.
    iter: *mut c_void,
}

/// A record. Key and value have a zero byte behind them, so that they are texts of C. It never changes, so
/// walks may have it too.
struct Record {
    key: Vec<u8>,
    value: Vec<u8>,
}

/// Bytes with a zero byte behind them.
fn ended(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len()).sum::<usize>() + 1);
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes.push(0);
    bytes
}

/// Without that byte.
fn plain(bytes: &[u8]) -> &[u8] {
    bytes.split_last().map_or(&[], |(_, plain)| plain)
}

type Map = HashMap<Box<[u8]>, Rc<Record>>;

/// The records that a walk will give, from the last to the first.
type Walk = Vec<Rc<Record>>;

impl Caller {
    /// Runs a call for a map. If a pointer is bad, or the call panics, it gives `failed`.
    fn map<T>(self, map: *mut KCMAP, failed: T, f: impl FnOnce(&mut Map) -> Option<T>) -> T
    where
        T: Copy,
    {
        let Some(handle) = self.handle(map.cast_const()) else { return failed };
        // SAFETY: `kcmapnew` has made the handle with this pointer, and the caller answers for it.
        let map = unsafe { &mut *handle.map.cast::<Map>() };
        crate::call::guarded(crate::errors::NO_DATABASE, failed, || Ok(f(map).unwrap_or(failed)))
    }

    /// What a walk stands at.
    fn record<'a>(self, iter: *mut c_void) -> Option<&'a Record> {
        // SAFETY: the handle's maker has set this pointer, and the caller answers for it.
        unsafe { &*iter.cast::<Walk>() }.last().map(|record| &**record)
    }

    /// A pointer to bytes that end with a zero byte, and their length to its place.
    fn lend(self, bytes: &[u8], len: *mut usize) -> *const c_char {
        match self.set(len, plain(bytes).len()) {
            Ok(()) => bytes.as_ptr().cast(),
            Err(_) => null(),
        }
    }
}

/// Sets a record to what `f` makes of its value. Returns whether it was there.
fn change(map: &mut Map, key: &[u8], f: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>) -> bool {
    let old = map.get(key).map(Rc::clone);
    if let Some(value) = f(old.as_ref().map(|old| plain(&old.value))) {
        map.insert(key.into(), Rc::new(Record { key: ended(&[key]), value }));
    }
    old.is_some()
}

/// Makes a map. `buckets` has no effect. Free it with kcmapdel.
#[unsafe(no_mangle)]
pub extern "C" fn kcmapnew(buckets: usize) -> *mut KCMAP {
    let _not_needed = buckets;
    let map = Box::into_raw(Box::<Map>::default());
    Box::into_raw(Box::new(KCMAP { map: map.cast() }))
}

/// Frees a map. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapdel(map: *mut KCMAP) {
    if !map.is_null() {
        // SAFETY: `kcmapnew` has made both boxes. The header demands of the caller that it is not freed
        // twice.
        unsafe { drop(Box::from_raw(Box::from_raw(map).map.cast::<Map>())) }
    }
}

/// Sets a record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapset(
    map: *mut KCMAP,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
) {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.map(map, (), |map| {
        let (key, value) = (c.bytes(key, key_len, "key").ok()?, c.bytes(value, value_len, "value").ok()?);
        change(map, key, |_| Some(ended(&[value])));
        Some(())
    });
}

/// Makes a record. Returns 0 if there is one, which stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapadd(
    map: *mut KCMAP,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.map(map, 0, |map| {
        let (key, value) = (c.bytes(key, key_len, "key").ok()?, c.bytes(value, value_len, "value").ok()?);
        let was_there = change(map, key, |old| old.is_none().then(|| ended(&[value])));
        Some(i32::from(!was_there))
    })
}

/// Sets a record that is there. Returns 0 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapreplace(
    map: *mut KCMAP,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.map(map, 0, |map| {
        let (key, value) = (c.bytes(key, key_len, "key").ok()?, c.bytes(value, value_len, "value").ok()?);
        Some(i32::from(change(map, key, |old| old.map(|_| ended(&[value])))))
    })
}

/// Appends to a record, or makes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapappend(
    map: *mut KCMAP,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
) {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.map(map, (), |map| {
        let (key, value) = (c.bytes(key, key_len, "key").ok()?, c.bytes(value, value_len, "value").ok()?);
        change(map, key, |old| Some(ended(&[old.unwrap_or_default(), value])));
        Some(())
    });
}

/// Removes a record. Returns 0 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapremove(map: *mut KCMAP, key: *const c_char, key_len: usize) -> i32 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.map(map, 0, |map| Some(i32::from(map.remove(c.bytes(key, key_len, "key").ok()?).is_some())))
}

/// The value of a record with a zero byte behind it, or NULL. It is lent until the record changes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapget(
    map: *mut KCMAP,
    key: *const c_char,
    key_len: usize,
    value_len: *mut usize,
) -> *const c_char {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.map(map, null(), |map| {
        let record = map.get(c.bytes(key, key_len, "key").ok()?)?;
        Some(c.lend(&record.value, value_len))
    })
}

/// Removes all records.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapclear(map: *mut KCMAP) {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.map(map, (), |map| {
        map.clear();
        Some(())
    });
}

/// How many records there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapcount(map: *mut KCMAP) -> usize {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.map(map, 0, |map| Some(map.len()))
}

fn walk_of(map: &Map, sorted: bool) -> *mut c_void {
    let mut walk: Walk = map.values().map(Rc::clone).collect();
    if sorted {
        walk.sort_unstable_by(|a, b| plain(&b.key).cmp(plain(&a.key)));
    }
    Box::into_raw(Box::new(walk)).cast()
}

/// A walk over the records that the map has now, in any order. It must be freed with kcmapiterdel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapiterator(map: *mut KCMAP) -> *mut KCMAPITER {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.map(map, null_mut(), |map| Some(Box::into_raw(Box::new(KCMAPITER { iter: walk_of(map, false) }))))
}

/// Frees a walk. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapiterdel(walk: *mut KCMAPITER) {
    if !walk.is_null() {
        // SAFETY: `kcmapiterator` has made both boxes. The header demands that it is not freed twice.
        unsafe { drop(Box::from_raw(Box::from_raw(walk).iter.cast::<Walk>())) }
    }
}

/// The key of the record, or NULL at the end. It is lent until the walk goes on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapitergetkey(walk: *mut KCMAPITER, key_len: *mut usize) -> *const c_char {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    let record = c.handle(walk.cast_const()).and_then(|walk| c.record(walk.iter));
    record.map_or(null(), |record| c.lend(&record.key, key_len))
}

/// The value of the record, or NULL at the end. It is lent until the walk goes on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapitergetvalue(walk: *mut KCMAPITER, value_len: *mut usize) -> *const c_char {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    let record = c.handle(walk.cast_const()).and_then(|walk| c.record(walk.iter));
    record.map_or(null(), |record| c.lend(&record.value, value_len))
}

/// The key and the value of the record, or NULL at the end. They are lent until the walk goes on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapiterget(
    walk: *mut KCMAPITER,
    key_len: *mut usize,
    value: *mut *const c_char,
    value_len: *mut usize,
) -> *const c_char {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    let record = c.handle(walk.cast_const()).and_then(|walk| c.record(walk.iter));
    record.map_or(null(), |record| match c.set(value, c.lend(&record.value, value_len)) {
        Ok(()) => c.lend(&record.key, key_len),
        Err(_) => null(),
    })
}

/// Goes to the next record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapiterstep(walk: *mut KCMAPITER) {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    if let Some(walk) = c.handle(walk.cast_const()) {
        // SAFETY: `kcmapiterator` has made it, and one thread at a time uses it.
        unsafe { &mut *walk.iter.cast::<Walk>() }.pop();
    }
}

/// A walk over the records that the map has now, in the order of their keys. It must be freed with
/// kcmapsortdel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapsorter(map: *mut KCMAP) -> *mut KCMAPSORT {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.map(map, null_mut(), |map| Some(Box::into_raw(Box::new(KCMAPSORT { iter: walk_of(map, true) }))))
}

/// As kcmapiterdel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapsortdel(walk: *mut KCMAPSORT) {
    // SAFETY: both handles have the same form, and are made in the same way.
    unsafe { kcmapiterdel(walk.cast()) }
}

/// As kcmapitergetkey.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapsortgetkey(walk: *mut KCMAPSORT, key_len: *mut usize) -> *const c_char {
    // SAFETY: both handles have the same form, and are made in the same way.
    unsafe { kcmapitergetkey(walk.cast(), key_len) }
}

/// As kcmapitergetvalue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapsortgetvalue(walk: *mut KCMAPSORT, value_len: *mut usize) -> *const c_char {
    // SAFETY: both handles have the same form, and are made in the same way.
    unsafe { kcmapitergetvalue(walk.cast(), value_len) }
}

/// As kcmapiterget.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapsortget(
    walk: *mut KCMAPSORT,
    key_len: *mut usize,
    value: *mut *const c_char,
    value_len: *mut usize,
) -> *const c_char {
    // SAFETY: both handles have the same form, and are made in the same way.
    unsafe { kcmapiterget(walk.cast(), key_len, value, value_len) }
}

/// As kcmapiterstep.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcmapsortstep(walk: *mut KCMAPSORT) {
    // SAFETY: both handles have the same form, and are made in the same way.
    unsafe { kcmapiterstep(walk.cast()) }
}
