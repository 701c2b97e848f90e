//! What a write transaction reads: its own writes over its snapshot.
//!
//! Reading takes a shared reference, so that values can be borrowed and callbacks can read too. The snapshot
//! and the set of what was read, which a commit needs, are in cells. No cell is borrowed while a callback
//! runs.

use super::ValueRef;
use super::begin::begin_snapshot;
use super::get::{FoundValue, is_gone};
use super::isolation::Isolation;
use super::local::{LocalWrite, lookup_local};
use super::read::ReadTxn;
use super::value::resolve;
use super::write::WriteTxn;
use crate::base::error::Result;
use crate::base::key::{KeyBuf, SortKey};
use crate::cursor::{Cursor, KeyRange, Limits, Records, Way};
use crate::engine::{Table, key_mark};
use crate::format::block::Tag;
use crate::format::expiry::{Content, Expiry};
use crate::format::operand::{ABSENT, Fold, FoldedBytes, value_of};
use crate::format::ranges::Range;
use crate::memtable::chunk::Chunk;
use std::sync::Arc;

impl WriteTxn {
    /// The snapshot, taken at the first read at the latest.
    pub(crate) fn snapshot(&self) -> &ReadTxn {
        self.read.get_or_init(|| {
            self.since.set(self.db.engine.life.now().unwrap_or_default());
            begin_snapshot(&self.db)
        })
    }

    /// What the own writes say of a sort key.
    #[inline]
    fn own_write(&self, table: &Table, key: SortKey<'_>) -> OwnWrite<'_> {
        let written = lookup_local(self.place_of(table.id).map(|i| &self.buffers[i]), key.bytes);
        let (tag, stored) = match written {
            LocalWrite::Written(tag, stored) => (tag, stored),
            LocalWrite::Removed => return OwnWrite::Nothing,
            LocalWrite::Untouched => return OwnWrite::Untouched,
        };
        let content = Content::of(tag, stored);
        if content.tag == Tag::Tombstone || is_gone(content.expiry, || self.now()) {
            return OwnWrite::Nothing;
        }
        if content.tag == Tag::Operand {
            return OwnWrite::Operand;
        }
        OwnWrite::Content(content)
    }

    /// What an own operand and the snapshot make. The key counts as read.
    #[cold]
    fn read_folded(&self, table: &Table, sort: SortKey<'_>) -> Result<(FoldedBytes, Expiry)> {
        let mut fold = Fold::new(self.now_if_used());
        self.fold_own(table, sort, &mut fold)?;
        let base;
        if fold.goes_on() {
            self.track(table, sort);
            base = self.snapshot().base_of(table, sort)?;
            let read;
            fold.add(match &base {
                // Of another operator than the own one, perhaps.
                Some((Tag::Operand, parts, expiry)) => {
                    read = value_of(parts, |reference| self.snapshot().large(reference))?;
                    Content { tag: Tag::Put, value: &read, expiry: *expiry }
                }
                Some((tag, value, expiry)) => Content { tag: *tag, value, expiry: *expiry },
                None => ABSENT,
            })?;
        }
        match fold.end() {
            Ok(Some((Tag::Operand, parts, expiry))) => {
                let value = value_of(&parts, |reference| self.snapshot().large(reference))?;
                Ok((FoldedBytes::Long(value), expiry))
            }
            Ok(Some((_, value, expiry))) => Ok((value, expiry)),
            Ok(None) => unreachable!("it begins with an operand"),
            Err(clash) => Err(clash.clash_error(&table.name, table.kind, sort.bytes)),
        }
    }

    /// Folds the own writes to a key, of which the newest is an operand.
    fn fold_own(&self, table: &Table, sort: SortKey<'_>, fold: &mut Fold) -> Result<()> {
        let Some(buffer) = self.place_of(table.id).map(|i| &self.buffers[i]) else { return Ok(()) };
        for (tag, stored) in buffer.writes_of(sort.bytes) {
            fold.add(Content::of(tag, stored))?;
            // The newest write to a number says all that was written to it.
            if !fold.takes_versions() {
                return Ok(());
            }
        }
        if buffer.ranges.covers(sort.bytes) { fold.add(ABSENT) } else { Ok(()) }
    }

    /// The time by which records have expired or not. Until there is a snapshot it goes on.
    pub(crate) fn now(&self) -> u64 {
        self.read.get().map_or_else(|| self.db.engine.config.clock.now(), ReadTxn::now)
    }

    /// Calls `f` with the value of a key where it stands, as this transaction sees it, and gives what `f`
    /// made of it. It is the cheapest way to read. `f` may read from the transaction too.
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    pub fn get_with<T>(
        &self,
        table: &Table,
        key: impl AsRef<[u8]>,
        f: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.get_expiring(table, key.as_ref(), |value, _| f(value))
    }

    /// As `get_with`, with the time at which the record expires.
    #[inline(always)]
    pub(crate) fn get_expiring<T>(
        &self,
        table: &Table,
        key: &[u8],
        f: impl FnOnce(&[u8], Expiry) -> T,
    ) -> Result<Option<T>> {
        self.db.expect(table)?;
        let mut buf = KeyBuf::new();
        let sort = table.kind.sort_key(key, self.db.engine.store.hash_seed, &mut buf);
        match self.own_write(table, sort) {
            OwnWrite::Nothing => self.nothing_in(table),
            OwnWrite::Content(Content { tag, value, expiry }) => {
                let large = |reference: &[u8]| self.db.engine.values.read(reference);
                resolve(tag, value, large, |v| f(v, expiry)).map(Some)
            }
            OwnWrite::Operand => {
                let (value, expiry) = self.read_folded(table, sort)?;
                Ok(Some(f(&value, expiry)))
            }
            OwnWrite::Untouched => {
                self.track(table, sort);
                self.snapshot().get_expiring(table, key, f)
            }
        }
    }

    /// The value of a key without copying it. Until it is dropped the transaction can read on, and not write.
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-txnref-{}.azk", std::process::id()));
    /// # use azekura::{Db, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let born = db.table("born", TableKind::Ordered)?;
    /// born.put("ada", "1815")?;
    /// let mut txn = db.write();
    /// txn.put(&born, "grace", "1906")?;
    /// let (ada, grace) = (txn.get_ref(&born, "ada")?, txn.get_ref(&born, "grace")?);
    /// assert_eq!((ada.as_deref(), grace.as_deref()), (Some(&b"1815"[..]), Some(&b"1906"[..])));
    /// # drop((ada, grace)); drop(txn); drop(born); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    pub fn get_ref(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<ValueRef<'_>>> {
        self.borrow_at(table, key.as_ref())
    }

    fn borrow_at(&self, table: &Table, key: &[u8]) -> Result<Option<ValueRef<'_>>> {
        self.db.expect(table)?;
        let mut buf = KeyBuf::new();
        let sort = table.kind.sort_key(key, self.db.engine.store.hash_seed, &mut buf);
        match self.own_write(table, sort) {
            OwnWrite::Nothing => self.nothing_in(table),
            OwnWrite::Content(Content { tag, value, .. }) => {
                let large = |reference: &[u8]| self.db.engine.values.read(reference);
                // SAFETY: the bytes are in a buffer of `self`, from which the result borrows: no write can
                // change or move them as long as it lives.
                unsafe { ValueRef::resolve(tag, FoundValue::Memory(value), None, large) }.map(Some)
            }
            OwnWrite::Operand => {
                let (value, _) = self.read_folded(table, sort)?;
                Ok(Some(ValueRef::folded(value)))
            }
            OwnWrite::Untouched => {
                self.track(table, sort);
                self.snapshot().get_ref(table, key)
            }
        }
    }

    pub(super) fn track(&self, table: &Table, key: SortKey<'_>) {
        if self.options.isolation == Isolation::Serializable {
            self.reads.borrow_mut().keys.push((table.id, key_mark(table.id, key.bytes)));
        }
    }

    fn track_range(&self, table: &Table, range: Range) {
        // Nobody else can change what this transaction has made.
        let is_own = || self.tables.as_ref().is_some_and(|own| own.has_made(table.id));
        if self.options.isolation == Isolation::Serializable && !is_own() {
            self.reads.borrow_mut().ranges.push((table.id, range));
        }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    pub fn get(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.copy_of(table, key.as_ref())
    }

    fn copy_of(&self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(table, key, <[u8]>::to_vec)
    }

    /// Replaces the contents of `out` by the value of a key. False if there is none.
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    pub fn get_into(&self, table: &Table, key: impl AsRef<[u8]>, out: &mut Vec<u8>) -> Result<bool> {
        self.copy_into(table, key.as_ref(), out)
    }

    fn copy_into(&self, table: &Table, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        Ok(self.get_with(table, key, |v| out.extend_from_slice(v))?.is_some())
    }

    /// The values of several keys, in their order.
    ///
    /// # Errors
    /// As [`ReadTxn::get_many`].
    pub fn get_many<K: AsRef<[u8]>>(&self, table: &Table, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        self.db.expect(table)?;
        let (mut out, mut places, mut asked) = (vec![None; keys.len()], Vec::new(), Vec::new());
        for (i, key) in keys.iter().map(K::as_ref).enumerate() {
            if self.is_untouched(table, key) {
                self.track_key(table, key);
                places.push(i);
                asked.push(key);
            } else {
                out[i] = self.get(table, key)?;
            }
        }
        self.snapshot_of_many(table, &asked, |i, found| out[places[i]] = found.map(|(v, _)| v.to_vec()))?;
        Ok(out)
    }

    /// Calls `f` with what the snapshot has of each key, and when it expires. They do not count as read.
    pub(super) fn snapshot_of_many(
        &self,
        table: &Table,
        keys: &[&[u8]],
        f: impl FnMut(usize, Option<(&[u8], Expiry)>),
    ) -> Result<()> {
        if keys.is_empty() { Ok(()) } else { self.snapshot().get_many_expiring(table, keys, f) }
    }

    /// From now on a key counts as read.
    pub(super) fn track_key(&self, table: &Table, key: &[u8]) {
        let mut buf = KeyBuf::new();
        self.track(table, table.kind.sort_key(key, self.db.engine.store.hash_seed, &mut buf));
    }

    /// Whether the snapshot says what a key has.
    pub(super) fn is_untouched(&self, table: &Table, key: &[u8]) -> bool {
        let mut buf = KeyBuf::new();
        let sort = table.kind.sort_key(key, self.db.engine.store.hash_seed, &mut buf);
        matches!(self.own_write(table, sort), OwnWrite::Untouched)
    }

    /// Whether a key is there.
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    pub fn contains(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<bool> {
        self.has(table, key.as_ref())
    }

    fn has(&self, table: &Table, key: &[u8]) -> Result<bool> {
        Ok(self.get_with(table, key, |_| ())?.is_some())
    }

    /// A cursor over the table as this transaction sees it now. Later writes are not in it.
    ///
    /// # Errors
    /// As [`ReadTxn::cursor`].
    pub fn cursor(&self, table: &Table) -> Result<Cursor> {
        self.limited(table, Limits::none())
    }

    /// An iterator over copies of the records, as this transaction sees them now. Later writes are not in it.
    ///
    /// # Errors
    /// As [`ReadTxn::cursor`].
    pub fn iter(&self, table: &Table) -> Result<Records> {
        self.cursor(table).map(Cursor::owned)
    }

    /// A cursor over the keys of a range. Ordered tables only.
    ///
    /// # Errors
    /// As [`ReadTxn::range`].
    pub fn range(&self, table: &Table, range: impl KeyRange) -> Result<Cursor> {
        table.expect_ordered("a range")?;
        self.limited(table, Limits::range(range.start(), range.end()))
    }

    /// A cursor over the keys that begin with `prefix`. Ordered tables only.
    ///
    /// # Errors
    /// As [`ReadTxn::range`].
    pub fn prefix(&self, table: &Table, prefix: impl AsRef<[u8]>) -> Result<Cursor> {
        table.expect_ordered("a prefix")?;
        self.limited(table, Limits::prefix(prefix.as_ref()))
    }

    /// The first record of the table. For conflicts only the keys up to it count as read.
    ///
    /// # Errors
    /// As [`ReadTxn::first`].
    pub fn first(&self, table: &Table) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.edge(table, Way::Forward, |key, value| Ok((key.to_vec(), value.to_vec())))
    }

    /// The last record of the table. For conflicts only the keys from it on count as read.
    ///
    /// # Errors
    /// As [`ReadTxn::first`].
    pub fn last(&self, table: &Table) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.edge(table, Way::Backward, |key, value| Ok((key.to_vec(), value.to_vec())))
    }

    /// What `f` makes of the first record in this direction.
    pub(crate) fn edge<T>(
        &self,
        table: &Table,
        way: Way,
        f: impl FnOnce(&[u8], &[u8]) -> Result<T>,
    ) -> Result<Option<T>> {
        self.look(table, way, f).map(|seen| seen.found)
    }

    /// As `edge`, and what was seen on the way.
    pub(super) fn look<T>(
        &self,
        table: &Table,
        way: Way,
        f: impl FnOnce(&[u8], &[u8]) -> Result<T>,
    ) -> Result<Seen<T>> {
        let mut cursor = self.untracked(table, Limits::none())?;
        let found = cursor.edge(way, f);
        let range = match (cursor.sort_key(), way) {
            (None, _) => Range { start: Vec::new(), end: None },
            (Some(key), Way::Forward) => Range { start: Vec::new(), end: Some([key, &[0][..]].concat()) },
            (Some(key), Way::Backward) => Range { start: key.to_vec(), end: None },
        };
        self.track_range(table, range.clone());
        Ok(Seen { found: found?, range, passed: cursor.passed() })
    }

    /// How many records the table has as this transaction sees it.
    ///
    /// # Errors
    /// As [`ReadTxn::count`].
    pub fn count(&self, table: &Table) -> Result<u64> {
        self.cursor(table)?.count_rest()
    }

    pub(crate) fn limited(&self, table: &Table, limits: Limits) -> Result<Cursor> {
        let range = limits.as_range();
        let cursor = self.untracked(table, limits)?;
        self.track_range(table, range);
        Ok(cursor)
    }

    /// A cursor; the caller notes what it shows.
    pub(super) fn untracked(&self, table: &Table, limits: Limits) -> Result<Cursor> {
        self.db.expect(table)?;
        let read = self.snapshot();
        let (db, state, seq) = (read.db.clone(), read.snapshot.state().clone(), read.snapshot.seq());
        let t = self.table_below(table, &state)?;
        Cursor::new(db, state, t, seq, read.now_if_used(), self.own_chunks(table.id), limits)
    }

    /// The own writes to a table, for a cursor.
    pub(super) fn own_chunks(&self, table: u32) -> Vec<Arc<Chunk>> {
        self.place_of(table).map(|i| self.buffers[i].chunks()).unwrap_or_default()
    }
}

/// What the own writes say of a key at the transaction's time.
enum OwnWrite<'a> {
    /// A value, or the reference to it.
    Content(Content<'a>),
    /// An operand, on what the snapshot has, or on older own writes.
    Operand,
    Nothing,
    /// The snapshot decides.
    Untouched,
}

/// What a look at an end of a table has shown.
pub(super) struct Seen<T> {
    pub(super) found: Option<T>,
    /// In which sort keys there is nothing but what was found.
    pub(super) range: Range,
    /// How many records were passed over: tombstones, and what is hidden.
    pub(super) passed: usize,
}
