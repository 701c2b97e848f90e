//! Puts of many records at once. Where a table has indexes, the old values of a group of keys are looked up
//! together, so that the cache misses of one key overlap those of the others.

use super::many::GROUP;
use super::write::{WriteTxn, check_key};
use crate::base::error::Result;
use crate::engine::Table;
use crate::format::block::Tag;
use crate::format::expiry::{Content, Expiry};
use std::ops::Range;

/// Old values of records that are about to be put.
#[derive(Default)]
struct Olds {
    bytes: Vec<u8>,
    /// Where each stands, and when it expires. None: there is none.
    places: Vec<Option<(Range<usize>, Expiry)>>,
}

impl Olds {
    fn of(&self, i: usize) -> Option<(&[u8], Expiry)> {
        let (range, expiry) = self.places[i].as_ref()?;
        Some((&self.bytes[range.clone()], *expiry))
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
        let mut records = records.into_iter();
        if self.buffer(table)?.indexes.is_none() {
            return records.try_for_each(|(key, value)| self.put_here(table, key.as_ref(), value.as_ref()));
        }
        loop {
            let group: Vec<(K, V)> = records.by_ref().take(GROUP).collect();
            if group.is_empty() {
                return Ok(());
            }
            let keys: Vec<&[u8]> = group.iter().map(|(key, _)| key.as_ref()).collect();
            let olds = self.olds(table, &keys);
            for (i, (key, value)) in group.iter().enumerate() {
                match &olds {
                    Some(olds) => self.put_over(table, key.as_ref(), value.as_ref(), olds.of(i))?,
                    None => self.put_here(table, key.as_ref(), value.as_ref())?,
                }
            }
        }
    }

    /// What the snapshot has of some keys. None if it cannot be read: who puts the record meets the error.
    fn olds(&self, table: &Table, keys: &[&[u8]]) -> Option<Olds> {
        let mut olds = Olds { bytes: Vec::new(), places: vec![None; keys.len()] };
        if keys.iter().any(|key| check_key(key).is_err()) {
            return None;
        }
        let read = self.snapshot_of_many(table, keys, |i, found| {
            if let Some((value, expiry)) = found {
                let start = olds.bytes.len();
                olds.bytes.extend_from_slice(value);
                olds.places[i] = Some((start..olds.bytes.len(), expiry));
            }
        });
        read.ok().map(|()| olds)
    }

    /// Sets the value of a key of a table with indexes. `old` is what the snapshot has.
    fn put_over(
        &mut self,
        table: &Table,
        key: &[u8],
        value: &[u8],
        old: Option<(&[u8], Expiry)>,
    ) -> Result<()> {
        let is_small = value.len() < self.db.engine.config.large_value_bytes;
        if !is_small || !self.is_untouched(table, key) {
            return self.put_here(table, key, value);
        }
        let expiry = self.usual_expiry(table)?;
        self.reindex_from(table, key, old, Some((value, expiry)))?;
        self.write_content(table, key, Content { tag: Tag::Put, value, expiry })
    }
}
