//! Cursors: all sources of a table merged on the fly, in both directions.
//!
//! Each source (own writes, active buffer, chunks, levels; newest first) stands at a record. Going forward,
//! every source stands at its first record above the cursor's place, and the smallest is next. Going back, it
//! stands at its last record below it, and the largest is next. A change of direction seeks all sources anew.
//!
//! The sources are kept in the order of their records. So a source that has stepped is compared only with the
//! one after it, and with others only where runs interleave. The record that was given out is read where it
//! stands. So the sources pass it only when the next one is asked for.
//!
//! Records of older sources with the same key are stepped over. Tombstones are skipped. Records that a newer
//! source's range delete covers are skipped one by one, and if there are many by a seek.
//!
//! Most steps look at none of this: it is known how many records the first source has before that of the
//! second.

mod direction;
mod folded;
mod limits;
mod range;
mod records;
mod seek;
mod source;
mod value;

pub(crate) use direction::Direction;
pub(crate) use limits::Limits;
pub use range::KeyRange;
pub use records::Records;
pub(crate) use records::Way;
pub use value::LazyValue;

use crate::base::error::{Error, Result};
use crate::base::key::{SortKey, TableKind, compare_keys};
use crate::engine::Db;
use crate::engine::state::{Level, State, TableState};
use crate::format::block::Tag;
use crate::format::expiry::Expiry;
use crate::memtable::chunk::Chunk;
use direction::CursorPosition;
use source::CursorSource;
use std::sync::Arc;
use std::time::SystemTime;
use value::{FoldedValue, Reader, Sources};

/// A moving place in a table as of one snapshot.
///
/// A new cursor stands before the first record. [`next`](Cursor::next) and [`prev`](Cursor::prev) give
/// records by reference. Their values are read when they are asked for. [`owned`](Cursor::owned) makes an
/// ordinary iterator.
///
/// A cursor keeps the page at which it stands in memory, so it should not be kept for long.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-cursor-{}.azk", std::process::id()));
/// use azekura::{Db, Options, TableKind};
/// let db = Db::open(&path, Options::new())?;
/// let t = db.table("t", TableKind::Ordered)?;
/// t.put_many([(b"a", b"1"), (b"b", b"2"), (b"c", b"3")])?;
/// let mut cursor = t.cursor()?;
/// cursor.seek(b"b")?;
/// let (key, value) = cursor.next()?.unwrap();
/// assert_eq!((key, value.bytes()?), (&b"b"[..], &b"2"[..]));
/// let (key, _) = cursor.prev()?.unwrap();
/// assert_eq!(key, b"b");
/// let (key, _) = cursor.prev()?.unwrap();
/// assert_eq!(key, b"a");
/// # drop(cursor); drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub struct Cursor {
    /// Newest first. They borrow from the state.
    sources: Vec<CursorSource>,
    limits: Limits,
    kind: TableKind,
    direction: Direction,
    place: CursorPosition,
    /// The sort key of the place, if that is `Before` or `After` it.
    at: Vec<u8>,
    /// The places in `sources` of those that stand at a record. The nearest comes first, and of equal keys
    /// the newest.
    order: Vec<usize>,
    /// The first of them, and how many of its records may be given out before anything else is looked at.
    front: usize,
    open: usize,
    /// The key given out last, if it is not the sort key.
    key: Vec<u8>,
    reader: Reader,
    any_ranges: bool,
    /// How many records it has passed over: tombstones, and what is hidden.
    passed: usize,
    failed: Option<Error>,
    /// What the operands of the record given out last have made.
    folded: FoldedValue,
    db: Db,
    view: View,
}

/// Room for the sources of most tables.
const SOURCES: usize = 16;
/// So many records that a range delete hides are stepped over. After that a seek to its end is cheaper.
const HIDDEN_MAX: usize = 16;

/// What a cursor walks over.
#[derive(Clone)]
struct View {
    state: Arc<State>,
    /// The sources borrow from it, and from `own` and `few`.
    table: Arc<TableState>,
    seq: u64,
    /// What has expired by then is not there. 0: nothing has.
    now: u64,
    /// The writes of the transaction whose cursor it is, the newest first.
    own: Vec<Arc<Chunk>>,
    /// The few records of a table that has no runs.
    few: Option<Arc<Chunk>>,
}

impl View {
    /// All that has records of the table.
    ///
    /// # Safety
    /// The caller keeps the view, or a copy, until the sources have been dropped.
    unsafe fn sources(&self) -> Vec<CursorSource> {
        let table = &self.table;
        // SAFETY: the view keeps the chunks: its own, and by the table, which does not change.
        let chunk = |c: &Arc<Chunk>| unsafe { CursorSource::chunk(c) };
        // SAFETY: likewise.
        let level = |l: &Arc<Level>| unsafe { CursorSource::level(l) };
        let active = table.active.iter().filter(|a| !a.list.is_empty());
        let chunks = table.chunks.iter().chain(table.frozen.iter()).chain(&self.few);
        let mut sources = Vec::with_capacity(SOURCES);
        sources.extend(self.own.iter().map(chunk));
        sources.extend(active.map(|active| CursorSource::active(active.clone(), self.seq)));
        sources.extend(chunks.map(chunk));
        sources.extend(table.levels.iter().map(level));
        sources.iter_mut().for_each(|source| source.set_now(self.now));
        sources
    }
}

impl Cursor {
    pub(crate) fn new(
        db: Db,
        state: Arc<State>,
        table: Arc<TableState>,
        seq: u64,
        now: u64,
        own: Vec<Arc<Chunk>>,
        limits: Limits,
    ) -> Result<Cursor> {
        let few = table.few_chunk();
        Cursor::over(db, View { state, table, seq, now, own, few }, limits)
    }

    fn over(db: Db, view: View, limits: Limits) -> Result<Cursor> {
        // SAFETY: the cursor keeps the view, and drops the sources first.
        let sources = unsafe { view.sources() };
        let any_ranges = sources.iter().any(|s| !s.ranges().is_empty());
        Ok(Cursor {
            sources,
            limits,
            kind: view.table.kind,
            direction: Direction::Forward,
            place: CursorPosition::Start,
            at: Vec::new(),
            order: Vec::new(),
            front: 0,
            open: 0,
            key: Vec::new(),
            reader: Reader::default(),
            any_ranges,
            passed: 0,
            failed: None,
            folded: FoldedValue::default(),
            db,
            view,
        })
    }

    /// Another one over the same records, before the first of them.
    fn twin(&self) -> Result<Cursor> {
        Cursor::over(self.db.clone(), self.view.clone(), self.limits.clone())
    }

    /// The next record, as key and value; none after the last one (and again from then on).
    ///
    /// # Errors
    /// `Corrupt` or `Io` if it cannot be read, `Closed`, `Forked`.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Result<Option<(&[u8], LazyValue<'_>)>> {
        self.go(Direction::Forward)
    }

    /// The record before, as key and value; none before the first one.
    ///
    /// # Errors
    /// As [`next`](Cursor::next).
    #[inline]
    pub fn prev(&mut self) -> Result<Option<(&[u8], LazyValue<'_>)>> {
        self.go(Direction::Backward)
    }

    /// The record that was given out last, once more. None after a seek, and where a step has come to an end.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-cursor-current-{}.azk", std::process::id()));
    /// use azekura::{Db, Options, TableKind};
    /// let db = Db::open(&path, Options::new())?;
    /// let t = db.table("t", TableKind::Ordered)?;
    /// t.put_many([("ada", "1815"), ("alan", "1912")])?;
    /// let mut cursor = t.cursor()?;
    /// assert!(cursor.current()?.is_none());
    /// cursor.next()?;
    /// let (key, value) = cursor.current()?.unwrap();
    /// assert_eq!((key, value.bytes()?), (&b"ada"[..], &b"1815"[..]));
    /// assert_eq!(cursor.next()?.unwrap().0, b"alan");
    /// # drop(cursor); drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`next`](Cursor::next): the error of a step that has failed is repeated.
    pub fn current(&mut self) -> Result<Option<(&[u8], LazyValue<'_>)>> {
        self.db.engine.life.check()?;
        if let Some(e) = &self.failed {
            return Err(e.clone());
        }
        if self.place == CursorPosition::Given { self.given().map(Some) } else { Ok(None) }
    }

    /// When the record given out last expires; none if it stays until it is removed, or where
    /// [`current`](Cursor::current) gives none.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-cursor-expires-{}.azk", std::process::id()));
    /// # use azekura::{Db, Options, TableKind};
    /// use std::time::{Duration, SystemTime};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// t.put_for("rain", "today", Duration::from_secs(60))?;
    /// let mut cursor = t.cursor()?;
    /// while cursor.next()?.is_some() {
    ///     let expires = cursor.expires();
    ///     let (key, value) = cursor.current()?.unwrap();
    ///     assert_eq!((key, value.bytes()?), (&b"rain"[..], &b"today"[..]));
    ///     assert!(expires.is_some_and(|time| time > SystemTime::now()));
    /// }
    /// # drop(cursor); drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    pub fn expires(&self) -> Option<SystemTime> {
        let is_given = self.place == CursorPosition::Given && self.failed.is_none();
        if is_given { self.expiry().time() } else { None }
    }

    #[inline(always)]
    fn go(&mut self, to: Direction) -> Result<Option<(&[u8], LazyValue<'_>)>> {
        self.db.engine.life.check()?;
        if self.step_open(to) || self.advance(to)? { self.given().map(Some) } else { Ok(None) }
    }

    /// Goes to the first source's next record, if that is known to be next of all.
    #[inline(always)]
    fn step_open(&mut self, to: Direction) -> bool {
        let is_open = self.open > 0 && self.direction == to;
        if is_open {
            self.open -= 1;
            self.sources[self.front].step_open(to);
        }
        is_open
    }

    /// The record at which the first source stands.
    #[inline(always)]
    fn given(&mut self) -> Result<(&[u8], LazyValue<'_>)> {
        let source = &self.sources[self.front];
        let mut key = source.key();
        if self.kind == TableKind::Hash {
            self.kind.user_key(key, self.db.engine.store.hash_seed, &mut self.key)?;
            key = &self.key;
        }
        let value = match source.tag() {
            Tag::Large => {
                let sources = Sources { all: &self.sources, front: self.front };
                let engine = self.db.engine.behind(&self.view.state);
                LazyValue::apart(sources, &mut self.reader, engine)?
            }
            Tag::Operand => LazyValue::folded(&self.folded),
            _ => LazyValue::here(source.value(), self.direction),
        };
        Ok((key, value))
    }

    /// Goes to the next record, whichever source has it; false if there is none.
    #[inline(never)]
    fn advance(&mut self, to: Direction) -> Result<bool> {
        if let Some(e) = &self.failed {
            return Err(e.clone());
        }
        self.open = 0;
        match self.turn(to).and_then(|()| self.pick(to)) {
            Ok(true) => {
                self.place = CursorPosition::Given;
                Ok(true)
            }
            Ok(false) => {
                self.place = to.end();
                Ok(false)
            }
            Err(e) => self.fail(e),
        }
    }

    /// The sources may stand anywhere now, so the error is repeated until the next seek.
    #[cold]
    fn fail(&mut self, e: Error) -> Result<bool> {
        self.failed = Some(e.clone());
        Err(e)
    }

    /// When the record given out last expires. REQUIRES: one was, and the cursor has not been sought since.
    pub(crate) fn expiry(&self) -> Expiry {
        match self.sources.get(self.front) {
            Some(source) if source.valid() && source.tag() == Tag::Operand => self.folded.expiry(),
            source => source.map_or(Expiry::NEVER, CursorSource::expiry),
        }
    }

    /// Counts the records from here on.
    pub(crate) fn count_rest(&mut self) -> Result<u64> {
        self.db.engine.life.check()?;
        let mut n = 0;
        while self.step_open(Direction::Forward) || self.advance(Direction::Forward)? {
            n += 1;
        }
        Ok(n)
    }

    /// Brings all sources to where a direction wants them.
    fn turn(&mut self, to: Direction) -> Result<()> {
        if self.place == CursorPosition::Given {
            if self.direction == to {
                return self.pass(to);
            }
            self.at.clear();
            self.at.extend_from_slice(self.sources[self.order[0]].key());
            self.place = if self.direction == Direction::Forward {
                CursorPosition::After
            } else {
                CursorPosition::Before
            };
        }
        self.place_sources(to)?;
        self.direction = to;
        self.sort_sources(to);
        Ok(())
    }

    /// Puts all sources that stand at a record in their order.
    fn sort_sources(&mut self, to: Direction) {
        self.order.clear();
        for i in 0..self.sources.len() {
            if self.sources[i].valid() {
                self.order.insert(0, i);
                self.sift(0, to);
            }
        }
    }

    /// Seeks all sources from the place, in steps: so the processor waits for all levels' memory at once.
    fn place_sources(&mut self, to: Direction) -> Result<()> {
        let goal = self.limits.goal(self.place, to, &self.at);
        self.sources.iter_mut().for_each(|source| source.face(to));
        if let Some(key) = goal.key().map(SortKey::new) {
            for source in &mut self.sources {
                source.find_page(key)?;
            }
            for source in &mut self.sources {
                source.take_page(key)?;
            }
        }
        self.sources.iter_mut().try_for_each(|source| goal.send(source))
    }

    /// Passes over tombstones and what is hidden; false if no record is left.
    fn pick(&mut self, to: Direction) -> Result<bool> {
        let mut hidden_in_row = 0;
        loop {
            let Some(&first) = self.order.first() else { return Ok(false) };
            let source = &self.sources[first];
            if !self.limits.allows(to, source.key()) {
                return Ok(false);
            }
            let hider = if self.any_ranges { self.hider(first) } else { None };
            if hider.is_none() && source.tag() != Tag::Tombstone {
                self.front = first;
                if source.tag() == Tag::Operand {
                    self.fold_front()?;
                }
                self.open = self.count_open(to);
                return Ok(true);
            }
            self.passed += 1;
            hidden_in_row = if hider.is_some() { hidden_in_row + 1 } else { 0 };
            match hider {
                Some(newest) if hidden_in_row > HIDDEN_MAX => {
                    self.leave_range(newest, to)?;
                    hidden_in_row = 0;
                }
                _ => self.pass(to)?,
            }
        }
    }

    /// The newest source with a range delete that hides the record of a source.
    fn hider(&self, of: usize) -> Option<usize> {
        let key = self.sources[of].key();
        self.sources[..of].iter().position(|source| source.ranges().covers(key))
    }

    /// Some source has a range delete that covers the first record of all. Sends all older sources that stand
    /// in its range out of it.
    fn leave_range(&mut self, newest: usize, to: Direction) -> Result<()> {
        let key = self.sources[self.order[0]].key();
        let Some(range) = self.sources[newest].ranges().covering(key).cloned() else { return self.pass(to) };
        for source in &mut self.sources[newest + 1..] {
            if !source.valid() || !range.covers(source.key()) {
                continue;
            }
            source.face(to);
            match (to, &range.end) {
                (Direction::Forward, Some(end)) => source.seek_ge(end)?,
                (Direction::Forward, None) => source.invalidate(),
                (Direction::Backward, _) => source.seek_lt(&range.start)?,
            }
        }
        self.sort_sources(to);
        Ok(())
    }

    /// How many more records of the first source may be given out one after the other.
    fn count_open(&self, to: Direction) -> usize {
        let second = self.order.get(1).map(|&second| self.sources[second].key());
        self.sources[self.front].count_open(|key| {
            !self.any_ranges
                && second.is_none_or(|second| compare_keys(key, second) == to.order())
                && self.limits.allows(to, key)
        })
    }

    /// Moves every source that stands at the first one's key past it.
    fn pass(&mut self, to: Direction) -> Result<()> {
        while let [first, second, ..] = self.order[..]
            && self.sources[first].compare(&self.sources[second]).is_eq()
        {
            self.step(1, to)?;
        }
        self.step(0, to)
    }

    /// Moves the source at a place of the order, and puts it where it now belongs.
    fn step(&mut self, rank: usize, to: Direction) -> Result<()> {
        let source = &mut self.sources[self.order[rank]];
        source.step(to)?;
        if source.valid() {
            self.sift(rank, to);
        } else {
            self.order.remove(rank);
        }
        Ok(())
    }

    /// Puts a source that went on where it belongs in the order; those after it are in order.
    #[inline(always)]
    fn sift(&mut self, rank: usize, to: Direction) {
        let moved = self.order[rank];
        let mut rank = rank;
        while let Some(&next) = self.order.get(rank + 1) {
            let order = self.sources[moved].compare(&self.sources[next]);
            if order == to.order() || order.is_eq() && moved < next {
                break;
            }
            self.order[rank] = next;
            rank += 1;
        }
        self.order[rank] = moved;
    }
}
