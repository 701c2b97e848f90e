//! Operands: writes that change a value without knowing it.

use super::local::{LocalWrite, lookup_local};
use super::write::{WriteTxn, check_key, push};
use crate::base::error::{Error, Result};
use crate::base::key::{KeyBuf, SortKey};
use crate::engine::Table;
use crate::format::block::Tag;
use crate::format::expiry::{Content, Expiry};
use crate::format::operand::{ABSENT, Fold, Folded, Given, Merge, Operand, Operator, STORED_BYTES, is_long};

/// A transaction holds no more of one table where it merges what has a length.
const BUFFERED_BYTES_MAX: u64 = 1 << 30;

impl WriteTxn {
    /// Changes the value of a key, as `merge` says. Nothing is read, so it does not conflict with what others
    /// write to the key: all such changes count, in the order of the commits.
    ///
    /// In a table with indexes, with records that expire, or whose values are fed, and with another operator
    /// than the one whose operands wait there to be folded, it reads the value and puts what becomes of it,
    /// as [`increment`](WriteTxn::increment) does. ([`Table::merge`] says where it must read, too.) Then it
    /// may conflict, also in [`commit_blind`](WriteTxn::commit_blind).
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
    /// As [`put`](WriteTxn::put); `TooLarge` beyond 1 GiB that a transaction appends or unites in one table;
    /// as [`get`](WriteTxn::get) where it reads; `Invalid` for elements of which
    /// not all are whole. `WrongType` if it is known now that the value is no number, or no whole number of
    /// elements. If not, whoever reads it gets that error, until the key is put or removed.
    pub fn merge(&mut self, table: &Table, key: impl AsRef<[u8]>, merge: Merge<'_>) -> Result<()> {
        self.merge_given(table, key.as_ref(), &Given::of(merge)?)
    }

    /// As `merge`, of an operand as it is stored behind its word.
    pub(crate) fn merge_stored(&mut self, table: &Table, key: &[u8], stored: &[u8]) -> Result<()> {
        self.merge_given(table, key, &Given::decode(stored)?)
    }

    pub(crate) fn merge_given(&mut self, table: &Table, key: &[u8], given: &Given) -> Result<()> {
        check_key(key)?;
        if given.is_too_long() || !self.takes_blind(table, given.operator())? {
            return self.merge_reading(table, key, given);
        }
        match given {
            Given::Number(operand) => self.merge_number(table, key, *operand),
            Given::Long(stored, operator) => self.merge_long(table, key, given, stored, *operator),
        }
    }

    fn merge_number(&mut self, table: &Table, key: &[u8], operand: Operand) -> Result<()> {
        let mut buf = KeyBuf::new();
        let sort = table.kind.sort_key(key, self.db.engine.store.hash_seed, &mut buf);
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
        let seed = self.db.engine.store.hash_seed;
        let buffer = self.buffer(table)?;
        buffer.operator = operand.operator();
        push(buffer, table.kind, seed, key, tag, stored);
        Ok(())
    }

    /// Adds an operand that has a length to what the transaction has written to the key. They are folded when
    /// it is committed, unless that would need what stands apart, or when it expires.
    fn merge_long(
        &mut self,
        table: &Table,
        key: &[u8],
        given: &Given,
        stored: &[u8],
        operator: Operator,
    ) -> Result<()> {
        let mut buf = KeyBuf::new();
        let sort = table.kind.sort_key(key, self.db.engine.store.hash_seed, &mut buf);
        let own = self.place_of(table.id).map(|i| &self.buffers[i]);
        let onto = match lookup_local(own, sort.bytes) {
            LocalWrite::Untouched => None,
            LocalWrite::Removed => Some(ABSENT),
            LocalWrite::Written(tag, stored) => Some(Content::of(tag, stored)),
        };
        match onto {
            None => {}
            Some(Content { tag: Tag::Operand, value, .. }) if is_long(value) => {}
            Some(Content { tag: Tag::Put, value, expiry: Expiry::NEVER })
                if operator.suits(value.len() as u64) => {}
            Some(_) => return self.merge_reading(table, key, given),
        }
        let seed = self.db.engine.store.hash_seed;
        let buffer = self.buffer(table)?;
        let found = (buffer.heap_bytes() + stored.len()) as u64;
        if found > BUFFERED_BYTES_MAX {
            let what = "what a transaction merges into one table";
            return Err(Error::TooLarge { what, found, limit: BUFFERED_BYTES_MAX });
        }
        buffer.operator = Some(operator);
        push(buffer, table.kind, seed, key, Tag::Expiring, stored);
        Ok(())
    }

    fn takes_blind(&mut self, table: &Table, operator: Option<Operator>) -> Result<bool> {
        let Some(operator) = operator else { return Ok(false) };
        let buffer = self.buffer(table)?;
        if !buffer.is_plain() {
            return Ok(false);
        }
        match buffer.operator {
            Some(known) => Ok(known == operator),
            None => Ok(self.db.engine.takes_blind(table.id, operator)),
        }
    }

    /// The time by which own writes have expired or not; 0 where nothing expires.
    pub(super) fn now_if_used(&self) -> u64 {
        if self.db.engine.config.clock.is_used() { self.now() } else { 0 }
    }

    fn merge_reading(&mut self, table: &Table, key: &[u8], given: &Given) -> Result<()> {
        self.has_merged_reading = true;
        let old = self.get_expiring(table, key, |value, expiry| (value.to_vec(), expiry))?;
        let mut bytes = [0; STORED_BYTES];
        let mut fold = Fold::new(0);
        fold.add(Content::of(Tag::Expiring, given.stored(&mut bytes)))?;
        if fold.goes_on() {
            fold.add(match &old {
                Some((value, expiry)) => Content { tag: Tag::Put, value, expiry: *expiry },
                None => ABSENT,
            })?;
        }
        match fold.end() {
            Ok(Some((_, value, _))) => self.put_changed(table, key, &value, old.map(|(_, expiry)| expiry)),
            Ok(None) => unreachable!("it begins with an operand"),
            Err(clash) => {
                let mut buf = KeyBuf::new();
                let sort = table.kind.sort_key(key, self.db.engine.store.hash_seed, &mut buf);
                Err(clash.clash_error(&table.name, table.kind, sort.bytes))
            }
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
