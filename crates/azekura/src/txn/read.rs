//! The read transaction: a snapshot of all tables.

use super::ValueRef;
use super::get::{FoundValue, is_gone, lookup};
use super::snapshot::Snapshot;
use super::value::resolve;
use crate::base::error::Result;
use crate::base::fault::fault;
use crate::base::key::{KeyBuf, SortKey, TableKind};
use crate::cursor::{Cursor, KeyRange, Limits, Records, Way};
use crate::engine::Engine;
use crate::engine::state::{State, TableState};
use crate::engine::{Db, Table};
use crate::format::block::Tag;
use crate::format::expiry::{Content, Expiry};
use crate::run::{HeldPage, Hit, Run};
use crate::values::LargeValue;
use crate::values::ahead::ReadAhead;
use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

/// A consistent view of every table as of the moment it was begun. It blocks nobody and nobody blocks it. It
/// does not see later commits. While it lives, the space of what it sees is kept. So a long-lived one makes
/// the file larger than it needs to be.
///
/// Gets in ascending key order are recognised and cost a fraction of random ones.
///
/// A transaction may move between threads, but is used by one at a time. Threads that read in parallel each
/// begin their own, which costs nanoseconds.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-read-{}.azk", std::process::id()));
/// use azekura::{Db, Options, TableKind};
/// let db = Db::open(&path, Options::new())?;
/// let t = db.table("t", TableKind::Ordered)?;
/// t.put(b"a", b"1")?;
/// let snapshot = db.read();
/// t.put(b"a", b"2")?;
/// assert_eq!(snapshot.get(&t, b"a")?.as_deref(), Some(&b"1"[..]));
/// # drop(snapshot); drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub struct ReadTxn {
    hint: RefCell<Option<Box<Hint>>>,
    /// Table, page and place of the record found last: the next one in order starts a hint.
    last: Cell<(u32, usize, usize)>,
    ahead: RefCell<ReadAhead>,
    pub(crate) snapshot: Snapshot,
    /// The time by which records have expired or not: that at which it began. (None where nothing expired
    /// then: the snapshot has no record that expires.)
    now: OnceCell<u64>,
    pub(crate) db: Db,
}

/// The page in which keys have been found one after the other, in a table that is one level and nothing else.
/// The next key in order stands at `next`.
struct Hint {
    table: u32,
    next: usize,
    held: HeldPage,
}

impl ReadTxn {
    pub(crate) fn new(db: Db) -> ReadTxn {
        let state = db.engine.newest_state();
        let seq = state.visible();
        ReadTxn::from_state(db, state, seq)
    }

    /// The snapshot of the commits up to `seq`, which `state` shows.
    pub(crate) fn from_state(db: Db, state: Arc<State>, seq: u64) -> ReadTxn {
        let (hint, last) = (RefCell::new(None), Cell::new((0, 0, 0)));
        let seq = if fault!("late_snapshot") { u64::MAX } else { seq };
        let snapshot = Snapshot::new(state, seq);
        // After the state: nothing in it was dropped by a later time.
        let clock = &db.engine.config.clock;
        let now = if clock.is_used() { OnceCell::from(clock.now()) } else { OnceCell::new() };
        ReadTxn { hint, last, ahead: RefCell::default(), snapshot, now, db }
    }

    /// The time by which records have expired or not, the same in all of the transaction.
    pub(crate) fn now(&self) -> u64 {
        *self.now.get_or_init(|| self.engine().config.clock.now())
    }

    /// The same, or 0 where nothing expires.
    pub(crate) fn now_if_used(&self) -> u64 {
        if self.engine().config.clock.is_used() { self.now() } else { 0 }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.db.engine
    }

    /// The table as this snapshot shows it: an error if it is of another database or not there.
    #[inline(always)]
    fn state_of(&self, table: &Table) -> Result<&Arc<TableState>> {
        self.db.expect(table)?;
        table.of(self.snapshot.state())
    }

    /// The value of a key.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if it cannot be read, `NoSuchTable` if the table was dropped or made later,
    /// `Invalid` if it is of another database, `Closed`, `Forked`; `WrongType` if what was
    /// [merged](Table::merge) into a value does not suit it.
    pub fn get(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.copy_of(table, key.as_ref())
    }

    fn copy_of(&self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(table, key, <[u8]>::to_vec)
    }

    /// Replaces the contents of `out` by the value of a key. If there is none, it is false and `out` is
    /// empty. Allocates only if the value does not fit.
    ///
    /// # Errors
    /// As [`get`](ReadTxn::get).
    pub fn get_into(&self, table: &Table, key: impl AsRef<[u8]>, out: &mut Vec<u8>) -> Result<bool> {
        self.copy_into(table, key.as_ref(), out)
    }

    fn copy_into(&self, table: &Table, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        Ok(self.get_with(table, key, |v| out.extend_from_slice(v))?.is_some())
    }

    /// The value of a key without copying it.
    ///
    /// # Errors
    /// As [`get`](ReadTxn::get).
    pub fn get_ref(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<ValueRef<'_>>> {
        self.borrow_at(table, key.as_ref())
    }

    fn borrow_at(&self, table: &Table, key: &[u8]) -> Result<Option<ValueRef<'_>>> {
        let t = self.state_of(table)?;
        let mut buf = KeyBuf::new();
        // SAFETY: the states live as long as `self`, from which the result borrows.
        let give = |tag, slot: FoundValue<'_>, _| unsafe {
            ValueRef::resolve(tag, slot, None, |reference| self.large(reference))
        };
        match self.follow_hint(t, key)?.filter(|&(_, place)| !self.is_operand(place)) {
            Some((page_number, place)) => match self.pin_hinted(page_number, place)? {
                Some((tag, slot)) => give(tag, slot, Expiry::NEVER).map(Some),
                None => Ok(None),
            },
            None => {
                let t = self.snapshot.newer(t, self.engine())?;
                self.find(t, t.kind.sort_key(key, self.engine().store.hash_seed, &mut buf), give)?.transpose()
            }
        }
    }

    /// Whether a key is there.
    ///
    /// # Errors
    /// As [`get`](ReadTxn::get).
    pub fn contains(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<bool> {
        self.has(table, key.as_ref())
    }

    fn has(&self, table: &Table, key: &[u8]) -> Result<bool> {
        let mut buf = KeyBuf::new();
        let t = self.snapshot.newer(self.state_of(table)?, self.engine())?;
        let sort = t.kind.sort_key(key, self.engine().store.hash_seed, &mut buf);
        Ok(self.find(t, sort, |_, _, _| ())?.is_some())
    }

    /// Calls `f` with the value of a key where it stands, and gives what `f` made of it. It is the cheapest
    /// way to read.
    ///
    /// # Errors
    /// As [`get`](ReadTxn::get).
    #[inline]
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
        let t = self.state_of(table)?;
        if let Some((_, place)) = self.follow_hint(t, key)? {
            // Taken out while `f` runs, for `f` may read from this transaction too.
            let Some(hint) = self.hint.take() else { return Ok(None) };
            let Content { tag, value, expiry } = hint.held.page().content(place);
            // (What an operand makes is looked for, and the hint is gone.)
            if tag != Tag::Operand {
                let out = match tag {
                    Tag::Tombstone => Ok(None),
                    _ if is_gone(expiry, || self.now()) => Ok(None),
                    _ => resolve(tag, value, |reference| self.large(reference), |v| f(v, expiry)).map(Some),
                };
                self.hint.borrow_mut().get_or_insert(hint);
                return out;
            }
        }
        let t = self.snapshot.newer(t, self.engine())?;
        let mut buf = KeyBuf::new();
        let sort = t.kind.sort_key(key, self.engine().store.hash_seed, &mut buf);
        let large = |reference: &[u8]| self.large(reference);
        self.find(t, sort, |tag, slot, expiry| resolve(tag, slot.bytes(), large, |v| f(v, expiry)))?
            .transpose()
    }

    /// The value of a sort key, or the reference to it, or what was gathered of it, and when it expires.
    pub(super) fn base_of(&self, table: &Table, sort: SortKey<'_>) -> Result<Option<(Tag, Vec<u8>, Expiry)>> {
        let t = self.snapshot.newer(self.state_of(table)?, self.engine())?;
        self.find(t, sort, |tag, slot, expiry| (tag, slot.bytes().to_vec(), expiry))
    }

    /// Reads a large value, and ahead of it if they are read in order.
    #[cold]
    pub(super) fn large(&self, reference: &[u8]) -> Result<LargeValue> {
        let engine = self.engine().behind(self.snapshot.state());
        self.ahead.borrow_mut().read(&engine.values, reference)
    }

    /// If the key stands where the hint expects it, its page and place; the hint moves on.
    #[inline(always)]
    fn follow_hint(&self, t: &TableState, key: &[u8]) -> Result<Option<(usize, usize)>> {
        if t.kind == TableKind::Ordered { self.follow_hint_ordered(t, key) } else { Ok(None) }
    }

    #[inline]
    fn follow_hint_ordered(&self, t: &TableState, key: &[u8]) -> Result<Option<(usize, usize)>> {
        let mut slot = self.hint.borrow_mut();
        let Some(hint) = slot.as_mut().filter(|h| h.table == t.id) else { return Ok(None) };
        // A page that cannot be read is an error only for those who ask for a key in it.
        if hint.next >= hint.held.page().len() && !hint.turn_page().unwrap_or(false) {
            *slot = None;
            return Ok(None);
        }
        if !hint.held.page().key_is(hint.next, SortKey::new(key)) {
            *slot = None;
            return Ok(None);
        }
        hint.next += 1;
        Ok(Some((hint.held.number, hint.next - 1)))
    }

    /// Whether an operand stands at a place of the hinted page.
    fn is_operand(&self, place: usize) -> bool {
        let hint = self.hint.borrow();
        hint.as_ref().is_some_and(|hint| hint.held.page().content(place).tag == Tag::Operand)
    }

    /// Pins the hinted page once more, for a reference that outlives the hint.
    fn pin_hinted(&self, page_number: usize, place: usize) -> Result<Option<(Tag, FoundValue<'_>)>> {
        let hint = self.hint.borrow();
        let Some(hint) = &*hint else { return Ok(None) };
        let Content { tag, value, expiry } = hint.held.page().content(place);
        if tag == Tag::Tombstone || is_gone(expiry, || self.now()) {
            return Ok(None);
        }
        let start = hint.held.place_of(value);
        let value = start..start + value.len();
        // SAFETY: the run lives as long as the states of this transaction, from which the result borrows.
        let page = unsafe { hint.held.run().page(page_number)?.extend() };
        Ok(Some((tag, FoundValue::Page(Hit { page, tag, value, page_number, place }))))
    }

    /// Hands the record of a sort key to `f`. Finding records side by side starts a hint.
    #[inline(always)]
    fn find<'a, R>(
        &'a self,
        t: &'a TableState,
        key: SortKey<'_>,
        f: impl FnOnce(Tag, FoundValue<'a>, Expiry) -> R,
    ) -> Result<Option<R>> {
        let now = || self.now();
        if t.kind == TableKind::Hash {
            return lookup(t, self.snapshot.seq(), key, now, f);
        }
        let mut here = None;
        let found = lookup(t, self.snapshot.seq(), key, now, |tag, slot, expiry| {
            if let FoundValue::Page(hit) = &slot {
                here = Some((hit.page_number, hit.place));
            }
            f(tag, slot, expiry)
        })?;
        if let Some((page_number, place)) = here {
            let (table, page, before) = self.last.replace((t.id, page_number, place));
            let beside = page == page_number && before + 1 == place || page + 1 == page_number && place == 0;
            if table == t.id && beside {
                self.start_hint(t, key, page_number, place)?;
            }
        }
        Ok(found)
    }

    #[cold]
    fn start_hint(&self, t: &TableState, key: SortKey<'_>, page_number: usize, place: usize) -> Result<()> {
        let plain = t.memtable_is_empty() && t.levels.len() == 1 && t.levels[0].ranges.is_empty();
        let Some(run) = t.levels[0].run_for(key).filter(|_| plain) else { return Ok(()) };
        *self.hint.borrow_mut() = Some(Box::new(Hint::new(t.id, run.clone(), page_number, place + 1)?));
        Ok(())
    }

    /// The values of several keys, in their order. Much faster than one by one.
    ///
    /// # Errors
    /// As [`get`](ReadTxn::get), if one of the values cannot be read: then none is given. The others can be
    /// read one by one.
    pub fn get_many<K: AsRef<[u8]>>(&self, table: &Table, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut out = vec![None; keys.len()];
        self.get_many_with(table, keys, |i, v| out[i] = v.map(<[u8]>::to_vec))?;
        Ok(out)
    }

    /// Calls `f` for each of several keys, in no particular order, with the key's index among them and its
    /// value.
    ///
    /// # Errors
    /// As [`get`](ReadTxn::get), if one of the values cannot be read: `f` may have had some of the others
    /// before. They can be read one by one.
    pub fn get_many_with<K: AsRef<[u8]>>(
        &self,
        table: &Table,
        keys: &[K],
        mut f: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        self.get_many_expiring(table, keys, |i, found| f(i, found.map(|(value, _)| value)))
    }

    /// As `get_many_with`, with the times at which the records expire.
    pub(super) fn get_many_expiring<K: AsRef<[u8]>>(
        &self,
        table: &Table,
        keys: &[K],
        f: impl FnMut(usize, Option<(&[u8], Expiry)>),
    ) -> Result<()> {
        let t = self.snapshot.newer(self.state_of(table)?, self.engine())?;
        let (state, seq, now) = (self.snapshot.state(), self.snapshot.seq(), || self.now());
        super::many::get_many(self.engine(), state, t, seq, keys, now, f)
    }

    /// A cursor over the whole table, before its first record.
    ///
    /// # Errors
    /// As [`get`](ReadTxn::get).
    pub fn cursor(&self, table: &Table) -> Result<Cursor> {
        self.limited(table, Limits::none())
    }

    /// An iterator over copies of the records, from both ends.
    ///
    /// # Errors
    /// As [`get`](ReadTxn::get).
    pub fn iter(&self, table: &Table) -> Result<Records> {
        self.cursor(table).map(Cursor::owned)
    }

    /// The first record of the table. Of a hash table it may be any.
    ///
    /// # Errors
    /// As [`get`](ReadTxn::get).
    pub fn first(&self, table: &Table) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.edge(table, Way::Forward, |key, value| Ok((key.to_vec(), value.to_vec())))
    }

    /// The last record of the table. Of a hash table it may be any.
    ///
    /// # Errors
    /// As [`get`](ReadTxn::get).
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
        self.cursor(table)?.edge(way, f)
    }

    /// A cursor over the keys of a range, before its first record. Ordered tables only.
    ///
    /// # Errors
    /// As [`get`](ReadTxn::get); `WrongType` for a hash table.
    pub fn range(&self, table: &Table, range: impl KeyRange) -> Result<Cursor> {
        table.expect_ordered("a range")?;
        self.limited(table, Limits::range(range.start(), range.end()))
    }

    /// A cursor over the keys that begin with `prefix`. Ordered tables only.
    ///
    /// # Errors
    /// As [`range`](ReadTxn::range).
    pub fn prefix(&self, table: &Table, prefix: impl AsRef<[u8]>) -> Result<Cursor> {
        table.expect_ordered("a prefix")?;
        self.limited(table, Limits::prefix(prefix.as_ref()))
    }

    /// How many records the table has. Cheap where its runs do not overlap, else a scan.
    ///
    /// # Errors
    /// As [`get`](ReadTxn::get).
    pub fn count(&self, table: &Table) -> Result<u64> {
        let t = self.state_of(table)?;
        match t.levels.as_slice() {
            [] if t.memtable_is_empty() => Ok(t.few.as_ref().map_or(0, |few| few.records())),
            [one] if t.memtable_is_empty() && one.deletes() == 0 && !one.may_be_past(self.now_if_used()) => {
                Ok(one.records())
            }
            _ => self.cursor(table)?.count_rest(),
        }
    }

    pub(crate) fn limited(&self, table: &Table, limits: Limits) -> Result<Cursor> {
        let t = self.state_of(table)?.clone();
        let state = self.snapshot.state();
        let now = self.now_if_used();
        Cursor::new(self.db.clone(), state.clone(), t, self.snapshot.seq(), now, Vec::new(), limits)
    }
}

impl Hint {
    fn new(table: u32, run: Arc<Run>, page_number: usize, next: usize) -> Result<Hint> {
        Ok(Hint { table, next, held: HeldPage::new(run, page_number)? })
    }

    /// Goes to the first record of the next page; false at the end of the run.
    fn turn_page(&mut self) -> Result<bool> {
        let (run, next) = (self.held.run(), self.held.number + 1);
        if next >= run.meta()?.pages() {
            return Ok(false);
        }
        *self = Hint::new(self.table, run.clone(), next, 0)?;
        Ok(true)
    }
}
