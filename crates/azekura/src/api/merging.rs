//! Merges of values, each a transaction of its own.

use super::Durability;
use crate::base::error::{Error, Result};
use crate::base::key::KeyBuf;
use crate::engine::{Batch, BatchPart, Table};
use crate::format::block::Tag;
use crate::format::operand::{Given, Merge, STORED_BYTES};
use crate::txn::{check_key, gather};

impl Table {
    /// Changes the value of a key, as `merge` says: a counter that everybody increments, a list to which all
    /// append, a set. Nothing is read, so it costs what a put costs, and never waits for others or conflicts
    /// with them. All such changes count, in the order of their commits. A key that is absent gets the
    /// operand as its value.
    ///
    /// A table has operands of one operator at a time. With another one, and in a table with indexes, with
    /// records that expire, or whose values are fed, the value is read and put, as
    /// [`increment`](Table::increment) does it; so it is with an operand of more than 1 MiB, and with one
    /// that has a length while the disk is nearly full. The result is the same, and the cost is not.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-merge-{}.azk", std::process::id()));
    /// use azekura::{Db, Merge, Options, TableKind};
    /// let db = Db::open(&path, Options::new())?;
    /// let visits = db.table("visits", TableKind::Hash)?;
    /// visits.merge("/", Merge::AddU64(1))?;
    /// visits.merge("/", Merge::AddU64(1))?;
    /// assert_eq!(visits.get("/")?.unwrap(), 2u64.to_le_bytes());
    ///
    /// let slowest = db.table("slowest", TableKind::Hash)?;
    /// slowest.merge("/", Merge::MaxF64(0.25))?;
    /// slowest.merge("/", Merge::MaxF64(0.17))?;
    /// assert_eq!(slowest.get("/")?.unwrap(), 0.25f64.to_le_bytes());
    /// # drop((visits, slowest)); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Table::put); `Invalid` for elements of which not all are whole. A value of another length
    /// than eight bytes is no number, and one that is no whole number of elements is no set. Whoever reads it
    /// after the merge gets `WrongType`, until the key is put or removed. (Where the value is read for the
    /// merge, that gets the error.) A value that got longer than [`VALUE_BYTES_MAX`](crate::VALUE_BYTES_MAX)
    /// is `TooLarge` so.
    pub fn merge(&self, key: impl AsRef<[u8]>, merge: Merge<'_>) -> Result<()> {
        self.merge_given(key.as_ref(), &Given::of(merge)?)
    }

    fn merge_given(&self, key: &[u8], given: &Given) -> Result<()> {
        check_key(key)?;
        let engine = &self.db.engine;
        let is_taken = given.operator().is_some_and(|operator| engine.takes_blind(self.id, operator));
        if !is_taken || given.is_too_long() || engine.catalog.puts_more(&engine.state, self.id) {
            return self.retry(|w| w.merge_given(self, key, given));
        }
        let mut buf = KeyBuf::new();
        let sort = self.kind.sort_key(key, engine.store.hash_seed, &mut buf);
        let mut bytes = [0; STORED_BYTES];
        let part = BatchPart::single(self.id, sort.bytes, Tag::Expiring, given.stored(&mut bytes));
        let durable = engine.config.durability == Durability::Sync;
        let user_bytes = key.len() as u64 + given.user_bytes();
        match gather::commit(&self.db, Batch { parts: vec![part], durable, user_bytes, ..Batch::default() }) {
            Ok(done) => done.wait(engine),
            // It has read nothing. So what the table takes has changed.
            Err(Error::Conflict { .. }) => self.retry(|w| w.merge_given(self, key, given)),
            Err(e) => Err(self.named(e)),
        }
    }

    /// Changes the values of many keys in one transaction, as [`merge`](Table::merge) changes one.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-merge-many-{}.azk", std::process::id()));
    /// # use azekura::{Db, Merge, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let words = db.table("words", TableKind::Hash)?;
    /// words.merge_many("the cat and the dog".split(' ').map(|word| (word, Merge::AddU64(1))))?;
    /// assert_eq!(words.get("the")?.unwrap(), 2u64.to_le_bytes());
    /// # drop(words); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`merge`](Table::merge). Nothing is written then, but for `MirrorBehind`: it is committed.
    pub fn merge_many<'a, K: AsRef<[u8]>>(
        &self,
        merges: impl IntoIterator<Item = (K, Merge<'a>)>,
    ) -> Result<()> {
        let merges: Vec<(K, Merge<'a>)> = merges.into_iter().collect();
        self.retry(|w| merges.iter().try_for_each(|(key, merge)| w.merge(self, key.as_ref(), *merge)))
    }
}
