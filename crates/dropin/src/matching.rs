//! Keys that match a prefix, a regular expression, or are similar to a text.

use crate::call::Caller;
use crate::codes::*;
use crate::errors::{Failure, Outcome, failure};
use crate::memory::{give, kcfree};
use crate::store::Store;
use crate::text::{distance, utf8_distance};
use azekura::TableKind;
use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// Keys that begin with a prefix, `max` of them at most, to the elements of `keys`. Free each with kcfree.
/// Returns how many there are, or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbmatchprefix(
    db: *mut KCDB,
    prefix: *const c_char,
    keys: *mut *mut c_char,
    max: usize,
) -> i64 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.on(db, -1, |store| {
        let prefix = c.text(prefix, "prefix")?.to_bytes();
        let found = store.look(|access| {
            let mut cursor = access.cursor()?;
            let ordered = access.open.kind.table == TableKind::Ordered;
            if ordered {
                cursor.seek(prefix)?;
            }
            let mut found = Vec::new();
            while found.len() < max
                && let Some((key, _)) = cursor.next()?
            {
                if key.starts_with(prefix) {
                    found.push(key.to_vec());
                } else if ordered {
                    break;
                }
            }
            Ok(found)
        })?;
        hand_out(c, &found, keys)
    })
}

/// Keys that match a regular expression: an extended one of POSIX. Else as kcdbmatchprefix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbmatchregex(
    db: *mut KCDB,
    regex: *const c_char,
    keys: *mut *mut c_char,
    max: usize,
) -> i64 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.on(db, -1, |store| {
        let regex = Regex::new(c.text(regex, "regular expression")?)?;
        let found = collect(store, max, |key| Ok(regex.matches(key)))?;
        hand_out(c, &found, keys)
    })
}

/// Keys whose distance to a text is `range` at most: how many bytes, or characters if `utf` is set, must be
/// changed, added or removed. The nearest come first. Else as kcdbmatchprefix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbmatchsimilar(
    db: *mut KCDB,
    origin: *const c_char,
    range: u32,
    utf: i32,
    keys: *mut *mut c_char,
    max: usize,
) -> i64 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.on(db, -1, |store| {
        let origin = c.text(origin, "text")?.to_bytes();
        let range = usize::try_from(range).unwrap_or(usize::MAX);
        let far = |key: &[u8]| if utf != 0 { utf8_distance(origin, key) } else { distance(origin, key) };
        let mut found: Vec<(usize, Vec<u8>)> = collect(store, usize::MAX, |key| Ok(far(key) <= range))?
            .into_iter()
            .map(|key| (far(&key), key))
            .collect();
        found.sort_unstable();
        found.truncate(max);
        let found: Vec<Vec<u8>> = found.into_iter().map(|(_, key)| key).collect();
        hand_out(c, &found, keys)
    })
}

/// The keys that a test takes, `max` at most.
fn collect(
    store: &Store,
    max: usize,
    mut takes: impl FnMut(&[u8]) -> Outcome<bool>,
) -> Outcome<Vec<Vec<u8>>> {
    let mut cursor = store.look(|access| access.cursor())?;
    let mut found = Vec::new();
    while found.len() < max
        && let Some((key, _)) = cursor.next()?
    {
        if takes(key)? {
            found.push(key.to_vec());
        }
    }
    Ok(found)
}

/// Gives keys to the caller, all or none.
fn hand_out(c: Caller, found: &[Vec<u8>], keys: *mut *mut c_char) -> Outcome<i64> {
    let mut given: Vec<*mut c_char> = Vec::new();
    let done = found.iter().enumerate().try_for_each(|(index, key)| {
        given.push(give(key)?);
        c.set_at(keys, index, given[index])
    });
    if done.is_err() {
        for key in given {
            // SAFETY: it was just allocated, and the caller is told of none.
            unsafe { kcfree(key.cast()) };
        }
    }
    done.map(|()| i64::try_from(found.len()).unwrap_or(i64::MAX))
}

/// A regular expression of the C library.
struct Regex(libc::regex_t);

const NO_REGEX: Failure = failure(KCELOGIC, c"the regular expression cannot be compiled");

impl Regex {
    fn new(text: &CStr) -> Outcome<Regex> {
        let mut regex = MaybeUninit::<libc::regex_t>::uninit();
        let flags = libc::REG_EXTENDED | libc::REG_NOSUB;
        // SAFETY: there is room for the result, and the text ends with a zero byte.
        if unsafe { libc::regcomp(regex.as_mut_ptr(), text.as_ptr(), flags) } != 0 {
            return Err(NO_REGEX);
        }
        // SAFETY: success means that it was set.
        Ok(Regex(unsafe { regex.assume_init() }))
    }

    /// Whether a key matches, as far as its first zero byte.
    fn matches(&self, key: &[u8]) -> bool {
        let end = key.iter().position(|&byte| byte == 0).unwrap_or(key.len());
        let Ok(key) = CString::new(&key[..end]) else { return false };
        // SAFETY: the expression was compiled, the key ends with a zero byte, and no places are asked for.
        unsafe { libc::regexec(&raw const self.0, key.as_ptr(), 0, null_mut(), 0) == 0 }
    }
}

impl Drop for Regex {
    fn drop(&mut self) {
        // SAFETY: the expression was compiled, and is not used again.
        unsafe { libc::regfree(&raw mut self.0) }
    }
}

/// The distance of two texts: how many bytes, or characters if `utf` is set, must be changed, added or
/// removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kclevdist(
    a: *const std::ffi::c_void,
    a_len: usize,
    b: *const std::ffi::c_void,
    b_len: usize,
    utf: i32,
) -> usize {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    crate::call::guarded(crate::errors::NO_DATABASE, usize::MAX, || {
        let (a, b) = (c.bytes(a.cast(), a_len, "text")?, c.bytes(b.cast(), b_len, "text")?);
        Ok(if utf != 0 { utf8_distance(a, b) } else { distance(a, b) })
    })
}
