//! Numbers as values of records.

use crate::call::Caller;
use crate::codes::*;
use crate::errors::{Failure, failure};
use crate::number::Fixed;
use std::ffi::c_char;

const NO_NUMBER: Failure = failure(KCELOGIC, c"logical inconsistency: the value is no number");
const NO_ORIGIN: Failure = failure(KCELOGIC, c"logical inconsistency: there is no record to add to");
const NO_PLACE: Failure = failure(KCELOGIC, c"logical inconsistency: the number is out of range");

/// Adds to a number of eight bytes in big-endian order. `origin` is what is added to if there is no record;
/// the least number means that this fails then. The largest one means that the record is set to `number`
/// whatever it was. Returns the sum, or the least number on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbincrint(
    db: *mut KCDB,
    key: *const c_char,
    key_len: usize,
    number: i64,
    origin: i64,
) -> i64 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.on(db, i64::MIN, |store| {
        let key = c.bytes(key, key_len, "key")?;
        store.write(key, |access| {
            let old = access.get_with(key, |value| value.try_into().map(i64::from_be_bytes).ok())?;
            let sum = match old {
                _ if origin == i64::MAX => number,
                None if origin == i64::MIN => return Err(NO_ORIGIN),
                None => origin.wrapping_add(number),
                Some(old) => old.ok_or(NO_NUMBER)?.wrapping_add(number),
            };
            access.put(key, &sum.to_be_bytes())?;
            Ok(sum)
        })
    })
}

/// Adds to a number of sixteen bytes: the whole part, and the rest in parts of 10^15, each in big-endian
/// order. `origin` is as with kcdbincrint, with negative and positive infinity. Returns the sum, or
/// not-a-number on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcdbincrdouble(
    db: *mut KCDB,
    key: *const c_char,
    key_len: usize,
    number: f64,
    origin: f64,
) -> f64 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    c.on(db, f64::NAN, |store| {
        let key = c.bytes(key, key_len, "key")?;
        store.write(key, |access| {
            let old = access.get_with(key, Fixed::read)?;
            let added = Fixed::of(number);
            let sum = match old {
                _ if origin == f64::INFINITY => added,
                None if origin == f64::NEG_INFINITY => return Err(NO_ORIGIN),
                None => added.zip(Fixed::of(origin)).and_then(|(added, origin)| origin.plus(added)),
                Some(old) => {
                    let old = old.ok_or(NO_NUMBER)?;
                    added.and_then(|added| old.plus(added))
                }
            };
            let sum = sum.ok_or(NO_PLACE)?;
            access.put(key, &sum.bytes().ok_or(NO_PLACE)?)?;
            Ok(sum.number())
        })
    })
}

/// Not a number.
#[unsafe(no_mangle)]
pub extern "C" fn kcnan() -> f64 {
    f64::NAN
}

/// Infinity.
#[unsafe(no_mangle)]
pub extern "C" fn kcinf() -> f64 {
    f64::INFINITY
}

/// Whether this is not a number.
#[unsafe(no_mangle)]
pub extern "C" fn kcchknan(number: f64) -> i32 {
    i32::from(number.is_nan())
}

/// Whether this is infinity, of either sign.
#[unsafe(no_mangle)]
pub extern "C" fn kcchkinf(number: f64) -> i32 {
    i32::from(number.is_infinite())
}
