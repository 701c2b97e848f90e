//! Numbers in texts, hashes, distances, the time.

use crate::call::Caller;
use crate::errors::NO_DATABASE;
use std::ffi::{c_char, c_void};
use std::time::{SystemTime, UNIX_EPOCH};

/// The distance of two texts in bytes.
pub(crate) fn distance(a: &[u8], b: &[u8]) -> usize {
    distance_of(a, b)
}

/// The distance of two texts in characters. Bytes that are no UTF-8 count as one character each sequence.
pub(crate) fn utf8_distance(a: &[u8], b: &[u8]) -> usize {
    let chars = |text: &[u8]| String::from_utf8_lossy(text).chars().collect::<Vec<_>>();
    distance_of(&chars(a), &chars(b))
}

/// Levenshtein's distance, a row at a time.
fn distance_of<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, one) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let changed = diagonal + usize::from(one != other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// Runs a call that needs no database.
fn plain<T>(failed: T, f: impl FnOnce() -> crate::errors::Outcome<T>) -> T {
    crate::call::guarded(NO_DATABASE, failed, f)
}

/// A text without the blanks at its beginning, and whether it is negative; the sign is passed over.
fn signed(text: &[u8]) -> (bool, &[u8]) {
    let text = text.trim_ascii_start();
    match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    }
}

/// Where the digits at the beginning end.
fn digits(text: &[u8]) -> usize {
    text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len())
}

/// The integer at the beginning of a text; 0 if there is none. What is too large wraps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcatoi(text: *const c_char) -> i64 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    plain(0, || {
        let (negative, text) = signed(c.text(text, "text")?.to_bytes());
        let add = |sum: i64, &digit: &u8| sum.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
        let number = text[..digits(text)].iter().fold(0, add);
        Ok(if negative { number.wrapping_neg() } else { number })
    })
}

/// The number at the beginning of a text, with a unit of K, M, G, T, P or E behind it, each 1,024 times the
/// one before. Returns an integer: the nearest towards zero, or the largest or the least there is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcatoix(text: *const c_char) -> i64 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    plain(0, || {
        let (negative, text) = signed(c.text(text, "text")?.to_bytes());
        let (number, rest) = decimal(text);
        let unit = rest.trim_ascii_start().first().map_or(b' ', u8::to_ascii_uppercase);
        let power =
            b"KMGTPE".iter().zip(1..).find(|(known, _)| **known == unit).map_or(0, |(_, power)| power);
        let number = number * 1024f64.powi(power);
        // The conversion takes the largest and the least where a number is beyond them.
        Ok((if negative { -number } else { number }) as i64)
    })
}

/// Digits with a fraction, and what is behind them.
fn decimal(text: &[u8]) -> (f64, &[u8]) {
    let mut end = digits(text);
    if text.get(end) == Some(&b'.') {
        end += 1 + digits(&text[end + 1..]);
    }
    let number = std::str::from_utf8(&text[..end]).ok().and_then(|text| text.parse().ok());
    (number.unwrap_or(0.0), &text[end..])
}

/// The number at the beginning of a text, also with an exponent, "inf" or "nan"; 0 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcatof(text: *const c_char) -> f64 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    plain(0.0, || {
        let (negative, text) = signed(c.text(text, "text")?.to_bytes());
        let begins = |word: &[u8]| text.len() >= word.len() && text[..word.len()].eq_ignore_ascii_case(word);
        let number = if begins(b"inf") {
            f64::INFINITY
        } else if begins(b"nan") {
            f64::NAN
        } else {
            scaled(text)
        };
        Ok(if negative { -number } else { number })
    })
}

/// The number at the beginning of a text, with its exponent. Both are read at once, for the power of ten
/// alone may be infinite, or not exact.
fn scaled(text: &[u8]) -> f64 {
    let (_, rest) = decimal(text);
    let digits = std::str::from_utf8(&text[..text.len() - rest.len()]).unwrap_or_default();
    format!("{digits}e{}", exponent(rest)).parse().unwrap_or(0.0)
}

/// The exponent at the beginning of a text; 0 if there is none.
fn exponent(text: &[u8]) -> i32 {
    let Some((b'e' | b'E', rest)) = text.split_first() else { return 0 };
    let (negative, rest) = signed(rest);
    let add = |sum: i32, &digit: &u8| sum.saturating_mul(10).saturating_add(i32::from(digit - b'0'));
    let number = rest[..digits(rest)].iter().fold(0, add);
    if negative { -number } else { number }
}

/// The time in seconds since 1970.
#[unsafe(no_mangle)]
pub extern "C" fn kctime() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// MurmurHash64A of bytes, with Kyoto Cabinet's seed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kchashmurmur(data: *const c_void, len: usize) -> u64 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    plain(0, || Ok(murmur(c.bytes(data.cast(), len, "data")?)))
}

fn murmur(bytes: &[u8]) -> u64 {
    const SEED: u64 = 19_780_211;
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let mut hash = SEED ^ length.wrapping_mul(FACTOR);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let mut word = word.try_into().map_or(0, u64::from_le_bytes).wrapping_mul(FACTOR);
        word ^= word >> SHIFT;
        hash = hash.wrapping_mul(FACTOR) ^ word.wrapping_mul(FACTOR);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let tail = rest.iter().rev().fold(0, |tail, &byte| tail << 8 | u64::from(byte));
        hash = (hash ^ tail).wrapping_mul(FACTOR);
    }
    hash = (hash ^ hash >> SHIFT).wrapping_mul(FACTOR);
    hash ^ hash >> SHIFT
}

/// The FNV-1a hash of bytes, with Kyoto Cabinet's factor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kchashfnv(data: *const c_void, len: usize) -> u64 {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    plain(0, || {
        let add = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(109_951_162_811);
        Ok(c.bytes(data.cast(), len, "data")?.iter().fold(14_695_981_039_346_656_037, add))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_that_programs_know() {
        assert_eq!(murmur(b""), 0x55b1_1e54_1519_8c8d);
        assert_eq!(murmur(b"abc"), 0xeb8f_6874_776f_dd26);
        assert_eq!(murmur(b"abcdefghijk"), 0xaeca_dc17_d477_b17a);
    }

    #[test]
    fn exponents_are_read_with_their_number() {
        let read = |text: &str| scaled(text.as_bytes());
        assert_eq!((read("0e309"), read("0.0e-400")), (0.0, 0.0));
        assert_eq!((read("1.1e1"), read("0.001e310"), read("4.35e2x")), (11.0, 1e307, 435.0));
        assert_eq!((read("2."), read(".5E1"), read("1e"), read("1e+")), (2.0, 5.0, 1.0, 1.0));
        assert_eq!((read(""), read("."), read("e5"), read("x")), (0.0, 0.0, 0.0, 0.0));
        assert_eq!((read("1e99999999999"), read("1e-99999999999")), (f64::INFINITY, 0.0));
    }

    #[test]
    fn distances_are_the_least() {
        assert_eq!(distance(b"kitten", b"sitting"), 3);
        assert_eq!((distance(b"", b"abc"), distance(b"abc", b"")), (3, 3));
        assert_eq!((distance("é".as_bytes(), b"e"), utf8_distance("é".as_bytes(), b"e")), (2, 1));
    }
}
