//! Sort keys: the bytes by which the engine orders records.
//!
//! In an ordered table the sort key is the user's key. In a hash table it is `mix(key ^ seed)` for keys of
//! eight bytes, so these grow by nothing. For others it is `hash64(key) ‖ key`. The empty key becomes its
//! hash and eight zero bytes: no other key has a sort key of 16 bytes.
//!
//! A `head` is the first eight bytes of a key (or of the rest of one) as a big-endian number, padded with
//! zeros. If two heads differ, they order the keys as the bytes do.

use super::error::{Error, Result};
use super::hash::{filter_hash8, hash_bytes, mix, unmix};
use std::cmp::Ordering;

/// How a table orders its records.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-tablekind-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// let words = db.table("words", TableKind::Ordered)?;
/// words.put_many([("pear", ""), ("apple", ""), ("plum", "")])?;
/// assert_eq!(words.first()?.map(|(key, _)| key), Some(b"apple".to_vec()));
///
/// let sessions = db.table("sessions", TableKind::Hash)?;
/// sessions.put([7; 16], "ada")?;
/// assert!(sessions.contains([7; 16])?);
/// # drop((words, sessions)); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TableKind {
    /// In the byte order of the keys: allows ranges, prefixes and cursors from any key.
    Ordered,
    /// In the order of the keys' hashes: the fastest lookups, but iteration in no useful order.
    Hash,
}

/// The first eight bytes as a big-endian number, zero-padded.
#[inline(always)]
pub(crate) fn head_of(key: &[u8]) -> u64 {
    if let Some(b) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*b);
    }
    let mut b = [0; 8];
    b[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(b)
}

/// The head of what follows the first `skip` bytes. REQUIRES: `skip <= key.len()`.
#[inline(always)]
pub(crate) fn head_after(key: &[u8], skip: usize) -> u64 {
    head_of(&key[skip..])
}

/// The order of two keys. Most keys have eight bytes; these are compared as numbers.
#[inline(always)]
pub(crate) fn compare_keys(a: &[u8], b: &[u8]) -> Ordering {
    match (a.as_array::<8>(), b.as_array::<8>()) {
        (Some(a), Some(b)) => u64::from_be_bytes(*a).cmp(&u64::from_be_bytes(*b)),
        _ => a.cmp(b),
    }
}

/// How many leading bytes two keys share.
#[inline]
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let n = a.len().min(b.len());
    let mut i = 0;
    while i + 8 <= n {
        let x = head_of(&a[i..i + 8]) ^ head_of(&b[i..i + 8]);
        if x != 0 {
            return i + x.leading_zeros() as usize / 8;
        }
        i += 8;
    }
    while i < n && a[i] == b[i] {
        i += 1;
    }
    i
}

/// A sort key prepared for lookups.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SortKey<'a> {
    /// The key's first eight bytes.
    pub(crate) head: u64,
    /// The whole key.
    pub(crate) bytes: &'a [u8],
}

impl<'a> SortKey<'a> {
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8]) -> SortKey<'a> {
        SortKey { head: head_of(bytes), bytes }
    }
}

/// The longest sort key that `KeyBuf` holds without an allocation. Each lookup clears these bytes.
const INLINE_BYTES: usize = 72;

/// Room for the sort key of one lookup.
pub(crate) struct KeyBuf {
    inline: [u8; INLINE_BYTES],
    long: Vec<u8>,
}

impl KeyBuf {
    #[inline(always)]
    pub(crate) fn new() -> KeyBuf {
        KeyBuf { inline: [0; INLINE_BYTES], long: Vec::new() }
    }
}

impl TableKind {
    /// The sort key of a user's key. Hash keys over 64 bytes need an allocation.
    #[inline(always)]
    pub(crate) fn sort_key<'a>(self, key: &'a [u8], seed: u64, buf: &'a mut KeyBuf) -> SortKey<'a> {
        match self {
            TableKind::Ordered => SortKey::new(key),
            TableKind::Hash => hash_sort_key(key, seed, buf),
        }
    }

    /// Writes the user's key of a sort key to `out`.
    #[inline(always)]
    pub(crate) fn user_key(self, sort_key: &[u8], seed: u64, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        match (self, sort_key.len()) {
            (TableKind::Ordered, _) => out.extend_from_slice(sort_key),
            (TableKind::Hash, 8) => out.extend_from_slice(&(unmix(head_of(sort_key)) ^ seed).to_be_bytes()),
            (TableKind::Hash, 16) => {}
            (TableKind::Hash, 9..) => out.extend_from_slice(&sort_key[8..]),
            (TableKind::Hash, n) => {
                return Err(Error::corrupt("record", 0, format!("a hash table's sort key has {n} bytes")));
            }
        }
        Ok(())
    }

    /// Whether `sort_key` can make this sort key from some user's key.
    pub(crate) fn makes(self, sort_key: &[u8], seed: u64) -> bool {
        match (self, sort_key.len()) {
            // `mix` is a bijection, so each number is a possible sort key.
            (TableKind::Ordered, _) | (TableKind::Hash, 8) => true,
            (TableKind::Hash, 16) => sort_key[8..] == [0; 8] && head_of(sort_key) == hash_bytes(&[], seed),
            (TableKind::Hash, 9..) => head_of(sort_key) == hash_bytes(&sort_key[8..], seed),
            (TableKind::Hash, _) => false,
        }
    }

    /// The kind's number in the file.
    pub(crate) fn code(self) -> u8 {
        match self {
            TableKind::Ordered => 0,
            TableKind::Hash => 1,
        }
    }

    /// The kind for a number in the file.
    pub(crate) fn from_code(code: u8) -> Option<TableKind> {
        match code {
            0 => Some(TableKind::Ordered),
            1 => Some(TableKind::Hash),
            _ => None,
        }
    }

    /// The hash of a sort key for filters. The head of a hash table's key is a hash already, but the keys of
    /// one run may share its high bits, so it is mixed once more.
    #[inline(always)]
    pub(crate) fn filter_hash(self, key: SortKey<'_>) -> u64 {
        if key.bytes.len() == 8 || self == TableKind::Hash {
            filter_hash8(key.head)
        } else {
            hash_bytes(key.bytes, 0)
        }
    }
}

/// The hash by which a hash table orders a key: `mix(key ^ seed)` for keys of eight bytes, a hash of 64 bits
/// for others. A hash table's records stand in the order of this number, in cursors too.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-hash-{}.azk", std::process::id()));
/// use azekura::{Db, Options, TableKind, hash_of};
/// let db = Options::new().hash_seed(7).open(&path)?;
/// let table = db.table("t", TableKind::Hash)?;
/// table.put_many([("ada", "1"), ("alan", "2"), ("grace", "3")])?;
/// let keys: Vec<_> = table.iter()?.map(|record| record.map(|(key, _)| key)).collect::<Result<_, _>>()?;
/// assert_eq!(db.hash_seed(), 7);
/// assert!(keys.is_sorted_by_key(|key| hash_of(key, 7)));
/// # drop(table); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[inline]
pub fn hash_of(key: &[u8], seed: u64) -> u64 {
    match key.try_into() {
        Ok(eight) => mix(u64::from_be_bytes(eight) ^ seed),
        Err(_) => hash_bytes(key, seed),
    }
}

#[inline(always)]
fn hash_sort_key<'a>(key: &'a [u8], seed: u64, buf: &'a mut KeyBuf) -> SortKey<'a> {
    if let Ok(b) = <[u8; 8]>::try_from(key) {
        let head = mix(u64::from_be_bytes(b) ^ seed);
        buf.inline[..8].copy_from_slice(&head.to_be_bytes());
        return SortKey { head, bytes: &buf.inline[..8] };
    }
    let head = hash_bytes(key, seed);
    let len = if key.is_empty() { 16 } else { 8 + key.len() };
    let out = if len <= INLINE_BYTES {
        &mut buf.inline[..len]
    } else {
        buf.long.resize(len, 0);
        &mut buf.long[..]
    };
    out[..8].copy_from_slice(&head.to_be_bytes());
    if key.is_empty() {
        out[8..].fill(0)
    } else {
        out[8..].copy_from_slice(key)
    }
    SortKey { head, bytes: out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sort_keys_give_their_keys_back() {
        let mut out = Vec::new();
        for kind in [TableKind::Ordered, TableKind::Hash] {
            for n in [0usize, 1, 7, 8, 9, 15, 16, 17, 255, 256, 257, 5000, 65_536] {
                let key: Vec<u8> = (0..n).map(|i| (i * 7) as u8).collect();
                let mut buf = KeyBuf::new();
                let sort = kind.sort_key(&key, 99, &mut buf);
                assert_eq!(sort.head, head_of(sort.bytes));
                assert!(kind == TableKind::Ordered || sort.head == hash_of(&key, 99));
                kind.user_key(sort.bytes, 99, &mut out).unwrap();
                assert!(kind.makes(sort.bytes, 99));
                assert_eq!(out, key, "{kind:?} {n}");
            }
        }
    }

    #[test]
    fn what_is_no_sort_key_is_known() {
        for n in [0usize, 1, 9, 16, 17, 72] {
            let key: Vec<u8> = (0..n).map(|i| (i * 7) as u8).collect();
            let mut buf = KeyBuf::new();
            let sort = TableKind::Hash.sort_key(&key, 99, &mut buf).bytes.to_vec();
            assert!(!TableKind::Hash.makes(&sort, 98) && TableKind::Ordered.makes(&sort, 98));
            for i in 0..sort.len() {
                let mut other = sort.clone();
                other[i] ^= 1;
                assert!(!TableKind::Hash.makes(&other, 99), "{n} bytes, byte {i} is another");
            }
            assert!(!TableKind::Hash.makes(&key, 99) || n == 8, "a key as it is");
        }
    }

    #[test]
    fn common_prefix_counts_bytes() {
        assert_eq!(common_prefix(b"", b"a"), 0);
        assert_eq!(common_prefix(b"abcdefgh1", b"abcdefgh2"), 8);
        assert_eq!(common_prefix(b"abcdefghij", b"abcdefgxij"), 7);
        assert_eq!(common_prefix(b"same", b"same"), 4);
    }
}
