//! What is in the database after each commit, known without asking anybody. So a reader can judge each
//! snapshot by the number of its newest commit alone.
//!
//! Commit `n` writes the keys of one window, each anew or as a delete, and `n` itself to both tables. The
//! windows take turns. So the last commit that wrote a key follows from `n`.

use crate::rng::Rng;
use azekura::TableKind;

/// The tables. Keys take turns between them, and each has the newest commit's number under `COUNTER`.
pub const TABLES: [(&str, TableKind); 2] = [("ordered", TableKind::Ordered), ("hash", TableKind::Hash)];
/// The key of the newest commit's number.
pub const COUNTER: &[u8] = b"newest";
/// How many keys there are, and how many of them a commit writes.
pub const KEYS: u64 = 400;
const WINDOW: u64 = 10;
const TURNS: u64 = KEYS / WINDOW;

/// Whether the writers of a database have limits for what its followers keep.
pub fn is_limited(seed: u64) -> bool {
    Rng::of(seed, u64::MAX).one_in(2)
}

/// The table of a key.
pub fn table_of(key: u64) -> usize {
    usize::from(!key.is_multiple_of(2))
}

/// The bytes of a key.
pub fn key_bytes(key: u64) -> [u8; 8] {
    key.to_be_bytes()
}

/// The keys that commit `n` writes.
pub fn window(n: u64) -> impl Iterator<Item = u64> {
    let first = n % TURNS * WINDOW;
    first..first + WINDOW
}

/// The commit that wrote a key last, as of commit `n`.
fn last_write(key: u64, n: u64) -> Option<u64> {
    let since = (n + TURNS - key / WINDOW) % TURNS;
    n.checked_sub(since).filter(|&m| m > 0)
}

/// What commit `m` stores under a key. None: it removes it.
pub fn written(seed: u64, key: u64, m: u64) -> Option<Vec<u8>> {
    let mut rng = Rng::of(seed ^ key << 40, m);
    if rng.one_in(9) {
        return None;
    }
    let len = if rng.one_in(12) { 1000 + rng.below(20_000) } else { 16 + rng.below(300) };
    let mut bytes = m.to_le_bytes().to_vec();
    bytes.extend(rng.bytes(usize::try_from(len).unwrap_or(16)));
    Some(bytes)
}

/// What a key has after commit `n`.
pub fn value(seed: u64, key: u64, n: u64) -> Option<Vec<u8>> {
    written(seed, key, last_write(key, n)?)
}

/// Checks a value that was read alone, when commit `n` or a later one was the newest.
///
/// # Errors
/// If no commit from then on has it.
pub fn check_alone(seed: u64, key: u64, n: u64, found: Option<&[u8]>) -> Result<(), String> {
    let Some(bytes) = found else { return Ok(()) };
    let number = bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let m = number.ok_or_else(|| format!("key {key}: a value of {} bytes", bytes.len()))?;
    if window(m).all(|written| written != key) || last_write(key, n).is_some_and(|before| m < before) {
        return Err(format!("key {key}: the value of commit {m}, after commit {n} was seen"));
    }
    if written(seed, key, m).as_deref() == Some(bytes) {
        Ok(())
    } else {
        Err(format!("key {key}: not the bytes that commit {m} wrote"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_write_is_that_of_the_window() {
        for n in 0..3 * TURNS {
            for key in 0..KEYS {
                let expected = (1..=n).rev().find(|&m| window(m).any(|written| written == key));
                assert_eq!(last_write(key, n), expected, "key {key} after commit {n}");
            }
        }
    }

    #[test]
    fn a_value_of_another_commit_is_no_good() {
        let n = (1..).find(|&n| written(7, 0, n * TURNS).is_some()).unwrap() * TURNS;
        let bytes = value(7, 0, n).unwrap();
        assert_eq!(check_alone(7, 0, n, Some(&bytes)), Ok(()));
        assert!(check_alone(7, 0, n + TURNS, Some(&bytes)).is_err(), "it is too old");
        assert!(check_alone(7, 1, n, Some(&bytes)).is_err(), "it is another key's");
        assert!(check_alone(7, 0, n, Some(&bytes[..bytes.len() - 1])).is_err());
    }
}
