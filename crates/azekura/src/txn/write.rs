//! The write transaction.

use super::begin::begin_snapshot;
use super::buffer::TableBuffer;
use super::entries::Indexed;
use super::gather;
use super::isolation::{Isolation, WriteOptions};
use super::read::ReadTxn;
use super::savepoint::Savepoints;
use super::tables::OwnTables;
use crate::base::error::{Error, Result};
use crate::base::hash::mix;
use crate::base::key::{KeyBuf, TableKind};
use crate::base::life::Moment;
use crate::base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::cursor::KeyRange;
use crate::engine::{Batch, BatchPart, OwnCommits, ReadSet, Reads};
use crate::engine::{Db, Durability, Table};
use crate::format::block::Tag;
use crate::format::expiry::{Content, Expiry};
use crate::format::ranges;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::{Bound, Range};
use std::sync::Arc;

/// So many buffers are looked through for a table's.
const SEARCHED_MAX: usize = 16;

/// A transaction over any number of tables, which it can also make, rename and drop: nothing is visible to
/// others until it is committed, and then everything is. Dropping it rolls it back.
///
/// Several may be open at once, in any threads; none waits for another. It sees its own writes, and otherwise
/// the database as it was when its snapshot began: at its first read, or, under [`Isolation::Snapshot`], when
/// it began itself. From then on others may change what it depends on, and its commit may get
/// [`Error::Conflict`]: it should then be run again. A serializable transaction that only writes, to tables
/// without indexes, never does, and neither does any that has written nothing.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-write-{}.azk", std::process::id()));
/// use azekura::{Db, Options, TableKind};
/// let db = Db::open(&path, Options::new())?;
/// let accounts = db.table("accounts", TableKind::Hash)?;
/// let mut txn = db.write();
/// txn.increment(&accounts, b"alice", -5)?;
/// txn.increment(&accounts, b"bob", 5)?;
/// txn.commit()?;
/// # drop(accounts); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub struct WriteTxn {
    pub(super) db: Db,
    pub(super) options: WriteOptions,
    pub(super) buffers: Vec<TableBuffer>,
    /// Where each table's buffer is, once there are too many to look through.
    places: HashMap<u32, usize>,
    /// The snapshot, once something was read, or from the beginning.
    pub(super) read: OnceCell<ReadTxn>,
    /// When the snapshot was taken, or before.
    pub(super) since: Cell<Moment>,
    /// What was read. Reading needs no exclusive reference, so a cell.
    pub(super) reads: RefCell<Reads>,
    /// See `ReadSet::own`.
    own_commits: OwnCommits,
    /// What the tables of the buffers are called.
    pub(super) names: Vec<(u32, Arc<str>)>,
    pub(super) savepoints: Savepoints,
    pub(super) indexed: Indexed,
    /// What it does with tables; none if it has not looked for any.
    pub(super) tables: Option<Box<OwnTables>>,
    /// A write failed half-way (out of space for a large value, or a range whose records could not all be
    /// read for their indexes): it can only be rolled back.
    broken: Option<Error>,
    /// A merge has read, so a conflict is one.
    pub(super) has_merged_reading: bool,
    /// What a record that expires is written from.
    scratch: Vec<u8>,
    /// Bytes of large values that go to the log.
    logged_bytes: usize,
}

impl Drop for WriteTxn {
    fn drop(&mut self) {
        self.end();
    }
}

/// Refuses keys over the limit.
#[inline(always)]
pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    if key.len() > KEY_BYTES_MAX {
        return Err(Error::TooLarge { what: "key", found: key.len() as u64, limit: KEY_BYTES_MAX as u64 });
    }
    Ok(())
}

/// Refuses bounds over the limit of keys.
pub(super) fn check_bounds(start: Bound<&[u8]>, end: Bound<&[u8]>) -> Result<()> {
    for bound in [start, end] {
        if let Bound::Included(k) | Bound::Excluded(k) = bound {
            check_key(k)?;
        }
    }
    Ok(())
}

#[inline(always)]
fn check_value(value: &[u8]) -> Result<()> {
    if value.len() as u64 > VALUE_BYTES_MAX {
        return Err(Error::TooLarge { what: "value", found: value.len() as u64, limit: VALUE_BYTES_MAX });
    }
    Ok(())
}

/// Adds a write to the buffer of its table.
#[inline(always)]
pub(super) fn push(buffer: &mut TableBuffer, kind: TableKind, seed: u64, key: &[u8], tag: Tag, value: &[u8]) {
    if let Ok(b) = <[u8; 8]>::try_from(key) {
        let number = u64::from_be_bytes(b);
        let head = if kind == TableKind::Hash { mix(number ^ seed) } else { number };
        return buffer.push8(head, tag, value);
    }
    let mut buf = KeyBuf::new();
    buffer.push(kind.sort_key(key, seed, &mut buf).bytes, tag, value);
}

impl WriteTxn {
    pub(crate) fn new(db: Db, options: WriteOptions) -> WriteTxn {
        let forked = db.engine.life.is_forked();
        let (read, since) = (OnceCell::new(), Cell::default());
        if options.isolation == Isolation::Snapshot && !forked {
            since.set(db.engine.life.now().unwrap_or_default());
            read.get_or_init(|| begin_snapshot(&db));
        }
        WriteTxn {
            db,
            options,
            buffers: Vec::new(),
            places: HashMap::new(),
            read,
            since,
            reads: RefCell::default(),
            own_commits: OwnCommits::default(),
            names: Vec::new(),
            savepoints: Savepoints::default(),
            indexed: Indexed::default(),
            tables: None,
            broken: None,
            has_merged_reading: false,
            scratch: Vec::new(),
            logged_bytes: 0,
        }
    }

    /// Tells the engine that this snapshot needs no more watching.
    fn end(&mut self) {
        // In a forked child nobody watches, and nobody may be there to let go of the lock.
        if let Some(read) = self.read.take()
            && !self.db.engine.life.is_forked()
        {
            self.db.engine.committer.untrack_snapshot(read.snapshot.seq());
        }
    }

    /// The buffer of a table, which is of this database and there.
    #[inline(always)]
    pub(super) fn buffer(&mut self, table: &Table) -> Result<&mut TableBuffer> {
        if Arc::ptr_eq(&self.db.engine, &table.db.engine)
            && let Some(i) = self.place_of(table.id)
            && self.db.engine.life.is_still(self.buffers[i].seen)
        {
            return Ok(&mut self.buffers[i]);
        }
        self.look_for(table)
    }

    /// As `buffer`, for the first write to a table, or the first since a table was dropped.
    #[cold]
    fn look_for(&mut self, table: &Table) -> Result<&mut TableBuffer> {
        self.db.expect(table)?;
        // Before the look: what is dropped after it is noticed by the next write.
        let seen = self.db.engine.life.now()?;
        let (indexes, ttl_ms) = match &self.tables {
            Some(own) if own.has_made(table.id) => (None, 0),
            own => {
                own.iter().try_for_each(|own| own.expect(table))?;
                let state = self.db.engine.state.load();
                let known = table.of(&state)?;
                (known.indexes.clone(), known.ttl_ms)
            }
        };
        let i = match self.place_of(table.id) {
            Some(i) => i,
            None => {
                let pool = self.db.engine.memory.pool.clone();
                self.buffers.push(TableBuffer::new(table.id, pool).of(indexes, ttl_ms));
                self.names.push((table.id, table.name.clone()));
                self.note_place(table.id)
            }
        };
        self.buffers[i].seen = seen;
        Ok(&mut self.buffers[i])
    }

    /// Where the buffer stands that was made last, to be found there later.
    pub(super) fn note_place(&mut self, id: u32) -> usize {
        let last = self.buffers.len() - 1;
        if last == SEARCHED_MAX {
            self.places = self.buffers.iter().enumerate().map(|(i, b)| (b.table, i)).collect();
        } else if last > SEARCHED_MAX {
            self.places.insert(id, last);
        }
        last
    }

    /// Where the buffer of a table is, if it has one.
    #[inline]
    pub(super) fn place_of(&self, id: u32) -> Option<usize> {
        if self.buffers.len() <= SEARCHED_MAX {
            self.buffers.iter().position(|b| b.table == id)
        } else {
            self.places.get(&id).copied()
        }
    }

    /// Commits that were made by the caller's code while this transaction was open.
    pub(crate) fn set_own_commits(&mut self, commits: Vec<Range<u64>>, table: &Table, key: &[u8]) {
        if !commits.is_empty() {
            let (seed, mut buf) = (self.db.engine.store.hash_seed, KeyBuf::new());
            let only_read = Some((table.id, table.kind.sort_key(key, seed, &mut buf).bytes.to_vec()));
            self.own_commits = OwnCommits { commits, only_read };
        }
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// `TooLarge`, `ReadOnly`, `NoSuchTable` if the table was dropped, `Invalid` if it is of another
    /// database, `Closed`, `Forked`, what storing a large value meets, or an error that an index has for the
    /// record. In a table with indexes also what reading the old value meets: `Corrupt` if it is damaged.
    #[inline]
    pub fn put(&mut self, table: &Table, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_here(table, key.as_ref(), value.as_ref())
    }

    /// As `put`, compiled anew for each caller, so that it knows the lengths that its caller knows.
    #[inline(always)]
    pub(crate) fn put_here(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        check_key(key)?;
        if value.len() >= self.db.engine.config.large_value_bytes {
            return self.put_large(table, key, value);
        }
        self.write(table, key, Tag::Put, value)
    }

    #[cold]
    fn put_large(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        let expiry = self.usual_expiry(table)?;
        self.put_large_until(table, key, value, expiry)
    }

    pub(super) fn put_large_until(
        &mut self,
        table: &Table,
        key: &[u8],
        value: &[u8],
        expiry: Expiry,
    ) -> Result<()> {
        check_value(value)?;
        self.db.engine.check_writable()?;
        self.reindex(table, key, Some((value, expiry)))?;
        if !self.db.engine.config.is_stored_apart(value.len(), self.is_durable(), self.logged_bytes) {
            self.logged_bytes += value.len();
            return self.write_content(table, key, Content { tag: Tag::Put, value, expiry });
        }
        match self.db.engine.store_large(value, false) {
            Ok((at, segment)) => {
                self.write_content(table, key, Content { tag: Tag::Large, value: &at.encode(), expiry })?;
                let buffer = self.buffer(table)?;
                buffer.hold(segment);
                buffer.user_bytes += value.len() as u64 - 16;
                Ok(())
            }
            Err(e) => {
                self.broken = Some(e.clone());
                Err(e)
            }
        }
    }

    #[inline(always)]
    pub(super) fn write(&mut self, table: &Table, key: &[u8], tag: Tag, value: &[u8]) -> Result<()> {
        let seed = self.db.engine.store.hash_seed;
        let buffer = self.buffer(table)?;
        if !buffer.is_plain() {
            return self.write_more(table, key, tag, value);
        }
        push(buffer, table.kind, seed, key, tag, value);
        Ok(())
    }

    /// As `write`, of a table that has indexes, or says how long records live.
    #[cold]
    #[inline(never)]
    fn write_more(&mut self, table: &Table, key: &[u8], tag: Tag, value: &[u8]) -> Result<()> {
        let expiry = if tag == Tag::Put { self.usual_expiry(table)? } else { Expiry::NEVER };
        self.reindex(table, key, (tag != Tag::Tombstone).then_some((value, expiry)))?;
        self.write_content(table, key, Content { tag, value, expiry })
    }

    /// When a record that is put now expires, if nothing else is said.
    pub(super) fn usual_expiry(&mut self, table: &Table) -> Result<Expiry> {
        match self.buffer(table)?.ttl_ms {
            0 => Ok(Expiry::NEVER),
            ttl_ms => Ok(Expiry::at(self.now().saturating_add(ttl_ms))),
        }
    }

    /// Writes a record whose entries in indexes were written.
    pub(super) fn write_content(&mut self, table: &Table, key: &[u8], content: Content<'_>) -> Result<()> {
        let seed = self.db.engine.store.hash_seed;
        let mut scratch = std::mem::take(&mut self.scratch);
        let (tag, stored) = content.stored(&mut scratch);
        if tag == Tag::Expiring {
            self.db.engine.config.clock.use_it();
        }
        let pushed = self.buffer(table).map(|buffer| push(buffer, table.kind, seed, key, tag, stored));
        self.scratch = scratch;
        pushed
    }

    /// Removes a key, whether it is there or not.
    ///
    /// # Errors
    /// As [`put`](WriteTxn::put).
    pub fn remove(&mut self, table: &Table, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        check_key(key)?;
        self.write(table, key, Tag::Tombstone, &[])
    }

    /// Removes all keys of a range. Ordered tables only. It costs the same however many there are, unless the
    /// table has indexes: then the range is read.
    ///
    /// # Errors
    /// `WrongType` for a hash table; as [`put`](WriteTxn::put).
    pub fn remove_range(&mut self, table: &Table, range: impl KeyRange) -> Result<()> {
        table.expect_ordered("a range")?;
        let (start, end) = (range.start(), range.end());
        check_bounds(start, end)?;
        self.remove_keys(table, ranges::Range::between(start, end))
    }

    /// Removes all sort keys of a range.
    pub(crate) fn remove_keys(&mut self, table: &Table, range: ranges::Range) -> Result<()> {
        if self.buffer(table)?.indexes.is_some() && !range.is_empty() {
            // Entries of the first records may be gone then.
            if let Err(e) = self.unindex(table, &range) {
                self.broken = Some(e.clone());
                return Err(e);
            }
        }
        self.remove_keys_alone(table, range)
    }

    /// Removes all sort keys of a range that have no entries in indexes.
    pub(super) fn remove_keys_alone(&mut self, table: &Table, range: ranges::Range) -> Result<()> {
        let buffer = self.buffer(table)?;
        if !range.is_empty() {
            buffer.remove_range(range);
        }
        Ok(())
    }

    /// Removes all records of a table.
    ///
    /// # Errors
    /// As [`remove`](WriteTxn::remove).
    pub fn clear(&mut self, table: &Table) -> Result<()> {
        self.remove_keys(table, ranges::Range { start: Vec::new(), end: None })
    }

    /// Makes all writes visible at once, and durable as was chosen.
    ///
    /// # Errors
    /// `Conflict` if another transaction has changed what this one depends on, a name that it has looked up
    /// stands for another table, or a table that it has written to has got or lost an index meanwhile;
    /// `NotUnique` (nothing was written in these cases); `NoSuchTable` if a table was dropped since it was
    /// written to; `NoSpace`, `Io`, `Poisoned` if the log cannot be written; `Closed`, `Forked`.
    /// `MirrorBehind`, where a mirror is required, after it was committed.
    pub fn commit(mut self) -> Result<()> {
        match self.take_batch()? {
            Some(batch) => self.commit_batch(batch),
            None => Ok(()),
        }
    }

    pub(super) fn commit_batch(&mut self, batch: Batch) -> Result<()> {
        let done = gather::commit(&self.db, batch).map_err(|e| self.named(e))?;
        // What it has read is not kept while it waits.
        self.end();
        done.wait(&self.db.engine)
    }

    /// Whether its commit is durable when it returns.
    fn is_durable(&self) -> bool {
        self.options.durability.unwrap_or(self.db.engine.config.durability) == Durability::Sync
    }

    /// What is to be committed; none if nothing was written.
    pub(super) fn take_batch(&mut self) -> Result<Option<Batch>> {
        self.db.engine.life.check()?;
        if let Some(e) = &self.broken {
            return Err(e.clone());
        }
        let looked = if self.indexed.is_checked() { self.check_unique()? } else { Vec::new() };
        let buffers = std::mem::take(&mut self.buffers);
        let mut user_bytes = 0;
        let mut parts = Vec::with_capacity(buffers.len());
        for buffer in buffers.into_iter().filter(|b| !b.is_empty()) {
            let sorted = buffer.sorted();
            user_bytes += sorted.user_bytes;
            parts.push(sorted.into_part());
        }
        let changes_tables = self.tables.as_ref().is_some_and(|own| own.has_changes());
        if parts.is_empty() && !changes_tables {
            return Ok(None);
        }
        let durable = self.is_durable();
        let snapshot = self.read.get().map(|r| r.snapshot.seq());
        if self.options.isolation == Isolation::Snapshot && snapshot.is_some() {
            let is_shared = |p: &&BatchPart| self.tables.iter().all(|own| !own.is_alone_with(p.table));
            let shared = || parts.iter().filter(is_shared);
            let (keys, ranges) =
                (shared().flat_map(BatchPart::marks), shared().flat_map(BatchPart::range_marks));
            *self.reads.get_mut() =
                Reads { keys: keys.collect(), ranges: ranges.collect(), sets: Vec::new() };
        }
        if let Some(own) = self.tables.as_ref().filter(|own| own.has_undone()) {
            // Reads of tables that this transaction made and rolled back conflict with nothing.
            self.reads.get_mut().retain(|table| !own.is_alone_with(table));
        }
        self.reads.get_mut().sets.extend(looked);
        let (reads, own) = (self.reads.take(), std::mem::take(&mut self.own_commits));
        let reads = snapshot.map(|snapshot| ReadSet { snapshot, since: self.since.get(), reads, own });
        let tables = self.tables.take().map(|own| own.settle(&mut parts));
        if parts.is_empty() && !changes_tables {
            // All of it was in tables that came and went.
            return Ok(None);
        }
        Ok(Some(Batch { parts, tables, durable, reads, user_bytes, ..Batch::default() }))
    }

    /// The name of the table that the engine has not found.
    #[cold]
    pub(super) fn named(&self, e: Error) -> Error {
        let state = self.db.engine.state.load();
        match (&e, self.names.iter().find(|(id, _)| state.table(*id).is_err())) {
            (Error::NoSuchTable { .. }, Some((_, name))) => Error::NoSuchTable { name: name.to_string() },
            _ => e,
        }
    }

    /// Forgets all writes.
    pub fn rollback(self) {
        drop(self);
    }
}
