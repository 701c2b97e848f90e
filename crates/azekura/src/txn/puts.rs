//! Puts of many records at once. Where a table has indexes, the old values of a group of keys are looked up
//! together, so that the cache misses of one key overlap those of the others.

use super::many::GROUP;
use super::write::WriteTxn;
use crate::base::error::Result;
use crate::base::limits::KEY_BYTES_MAX;
use crate::engine::Table;
use crate::format::block::Tag;
use crate::format::expiry::{Content, Expiry};
use std::ops::Range;

/// So many bytes of records are in hand at a time, or one record.
const GROUP_BYTES: usize = 64 << 10;
/// And so many of old values.
const OLD_BYTES: usize = 1 << 20;

/// Old values of records that are about to be put.
struct Olds {
    bytes: Vec<u8>,
    /// What is known of each.
    known: Vec<Known>,
}

#[derive(Clone)]
enum Known {
    /// Whoever puts the record looks.
    Nothing,
    Absent,
    /// Where the value stands, and when it expires.
    Value(Range<usize>, Expiry),
}

impl Olds {
    /// What the snapshot has of a record. The outer none: it is not known.
    fn of(&self, i: usize) -> Option<Option<(&[u8], Expiry)>> {
        match &self.known[i] {
            Known::Nothing => None,
            Known::Absent => Some(None),
            Known::Value(range, expiry) => Some(Some((&self.bytes[range.clone()], *expiry))),
        }
    }
}

impl WriteTxn {
    /// Sets the values of many keys, as one [`put`](WriteTxn::put) after the other does. Faster in a table
    /// with indexes.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-puts-{}.azk", std::process::id()));
    /// # use azekura::{Db, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let born = db.table("born", TableKind::Ordered)?;
    /// let mut txn = db.write();
    /// txn.put_many(&born, [("ada", "1815"), ("alan", "1912")])?;
    /// txn.commit()?;
    /// assert_eq!(born.get("alan")?.as_deref(), Some(&b"1912"[..]));
    /// # drop(born); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](WriteTxn::put). The records before the failed one are in the transaction then.
    pub fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        table: &Table,
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<()> {
        let mut records = records.into_iter().fuse();
        if self.buffer(table)?.indexes.is_none() {
            return records.try_for_each(|(key, value)| self.put_here(table, key.as_ref(), value.as_ref()));
        }
        let mut group: Vec<(K, V)> = Vec::with_capacity(GROUP);
        loop {
            let mut bytes = 0;
            while group.len() < GROUP && bytes < GROUP_BYTES {
                let Some((key, value)) = records.next() else { break };
                bytes += key.as_ref().len() + value.as_ref().len();
                group.push((key, value));
            }
            if group.is_empty() {
                return Ok(());
            }
            let olds = self.olds(table, &group);
            for (i, (key, value)) in group.drain(..).enumerate() {
                self.put_over(table, key.as_ref(), value.as_ref(), olds.of(i))?;
            }
        }
    }

    /// What the snapshot has of the keys that are not written yet, as far as it is small and can be read: who
    /// puts a record meets the error.
    fn olds<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, table: &Table, group: &[(K, V)]) -> Olds {
        let mut olds = Olds { bytes: Vec::new(), known: vec![Known::Nothing; group.len()] };
        let (mut keys, mut places) = (Vec::with_capacity(group.len()), Vec::with_capacity(group.len()));
        for (i, (key, value)) in group.iter().enumerate() {
            let (key, value) = (key.as_ref(), value.as_ref());
            let is_small =
                key.len() <= KEY_BYTES_MAX && value.len() < self.db.engine.config.large_value_bytes;
            if is_small && self.is_untouched(table, key) {
                keys.push(key);
                places.push(i);
            }
        }
        let read = self.snapshot_of_many(table, &keys, |i, found| {
            olds.known[places[i]] = match found {
                None => Known::Absent,
                Some((value, _)) if olds.bytes.len() + value.len() > OLD_BYTES => Known::Nothing,
                Some((value, expiry)) => {
                    let start = olds.bytes.len();
                    olds.bytes.extend_from_slice(value);
                    Known::Value(start..olds.bytes.len(), expiry)
                }
            };
        });
        if read.is_err() {
            olds.known.fill(Known::Nothing);
        }
        olds
    }

    /// Sets the value of a key of a table with indexes. `old` is what the snapshot has, if that is known.
    fn put_over(
        &mut self,
        table: &Table,
        key: &[u8],
        value: &[u8],
        old: Option<Option<(&[u8], Expiry)>>,
    ) -> Result<()> {
        // (A key may come again in a group.)
        let Some(old) = old.filter(|_| self.is_untouched(table, key)) else {
            return self.put_here(table, key, value);
        };
        self.track_key(table, key);
        let expiry = self.usual_expiry(table)?;
        self.reindex_from(table, key, old, Some((value, expiry)))?;
        self.write_content(table, key, Content { tag: Tag::Put, value, expiry })
    }
}
