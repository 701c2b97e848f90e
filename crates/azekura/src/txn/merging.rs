//! Operands: writes that change a value without knowing it.

use super::local::{LocalWrite, lookup_local};
use super::write::{WriteTxn, check_key, push};
use crate::base::error::Result;
use crate::base::key::{KeyBuf, SortKey};
use crate::engine::Table;
use crate::format::block::Tag;
use crate::format::expiry::Content;
use crate::format::operand::{ABSENT, Folded, Merge, Operand, STORED_BYTES};

impl WriteTxn {
    /// Changes the number that is the value of a key, as `merge` says. Nothing is read, so it does not
    /// conflict with what others write to the key: all such changes count, in the order of the commits.
    ///
    /// In a table with indexes, with records that expire, or whose values are fed, and with another operator
    /// than the one whose operands wait there to be folded, it reads the value and puts what becomes of it, as
    /// [`increment`](WriteTxn::increment) does. Then it may conflict, also in
    /// [`commit_blind`](WriteTxn::commit_blind).
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-txnmerge-{}.azk", std::process::id()));
    /// # use azekura::{Db, Merge, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let visits = db.table("visits", TableKind::Hash)?;
    /// let mut txn = db.write();
    /// txn.merge(&visits, "/", Merge::AddU64(1))?;
    /// txn.merge(&visits, "/", Merge::AddU64(1))?;
    /// assert_eq!(txn.get(&visits, "/")?.unwrap(), 2u64.to_le_bytes());
    /// txn.commit()?;
    /// # drop(visits); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](WriteTxn::put); as [`get`](WriteTxn::get) where it reads. `WrongType` if it is known now
    /// that the value has not eight bytes. If not, whoever reads it gets that error, until the key is put or
    /// removed.
    pub fn merge(&mut self, table: &Table, key: impl AsRef<[u8]>, merge: Merge) -> Result<()> {
        self.merge_operand(table, key.as_ref(), Operand::of(merge))
    }

    /// As `merge`, of an operand as it is stored behind its word.
    pub(crate) fn merge_stored(&mut self, table: &Table, key: &[u8], stored: &[u8]) -> Result<()> {
        self.merge_operand(table, key, Operand::decode(stored)?)
    }

    fn merge_operand(&mut self, table: &Table, key: &[u8], operand: Operand) -> Result<()> {
        check_key(key)?;
        if !self.takes_blind(table, operand)? {
            return self.merge_reading(table, key, operand);
        }
        let mut buf = KeyBuf::new();
        let sort = table.kind.sort_key(key, self.db.engine.hash_seed, &mut buf);
        let own = self.place_of(table.id).map(|i| &self.buffers[i]);
        // What is written is all that the transaction says of the key.
        let folded = match lookup_local(own, sort.bytes) {
            LocalWrite::Untouched => Folded::Operand(operand),
            LocalWrite::Removed => operand.onto(ABSENT)?,
            LocalWrite::Written(tag, stored) => {
                operand.onto(Content::of(tag, stored).at(self.now_if_used()))?
            }
        };
        let folded = known(folded, table, sort)?;
        let mut bytes = [0; STORED_BYTES];
        let (tag, stored) = folded.stored(&mut bytes);
        let seed = self.db.engine.hash_seed;
        let buffer = self.buffer(table)?;
        buffer.operator = operand.operator();
        push(buffer, table.kind, seed, key, tag, stored);
        Ok(())
    }

    fn takes_blind(&mut self, table: &Table, operand: Operand) -> Result<bool> {
        let Some(operator) = operand.operator() else { return Ok(false) };
        let buffer = self.buffer(table)?;
        match buffer.operator {
            Some(known) => Ok(known == operator),
            None if !buffer.is_plain() => Ok(false),
            None => Ok(self.db.engine.takes_blind(table.id, operator)),
        }
    }

    /// The time by which own writes have expired or not; 0 where nothing expires.
    fn now_if_used(&self) -> u64 {
        if self.db.engine.config.clock.is_used() { self.now() } else { 0 }
    }

    fn merge_reading(&mut self, table: &Table, key: &[u8], operand: Operand) -> Result<()> {
        self.has_merged_reading = true;
        let old = self.get_expiring(table, key, |value, expiry| (value.to_vec(), expiry))?;
        let folded = match &old {
            Some((value, expiry)) => operand.onto(Content { tag: Tag::Put, value, expiry: *expiry })?,
            None => operand.onto(ABSENT)?,
        };
        let mut buf = KeyBuf::new();
        let sort = table.kind.sort_key(key, self.db.engine.hash_seed, &mut buf);
        match known(folded, table, sort)? {
            Folded::Value(number, expiry) => self.put_changed(table, key, &number, old.map(|_| expiry)),
            Folded::Operand(_) => unreachable!("what is folded with a value is a value, or an error"),
        }
    }
}

/// An error if it is known that the value is no number.
fn known(folded: Folded, table: &Table, sort: SortKey<'_>) -> Result<Folded> {
    match folded {
        Folded::Operand(clash) if clash.is_clash() => {
            Err(clash.clash_error(&table.name, table.kind, sort.bytes))
        }
        folded => Ok(folded),
    }
}
