//! Cursors: all sources of a table merged on the fly, in both directions.
//!
//! Each source (own writes, active buffer, chunks, sorted runs; newest first) stands at a record.
//! Going forward, every source stands at its first record above the cursor's place, and the
//! smallest is next; going back, at its last record below it, and the largest is next. The record that
//! was given out is read where it stands, so the sources pass it only when the next one is asked for.
//! A change of direction seeks all sources anew. Records of older sources with the same key are stepped over,
//! deletes are skipped, and so is what a newer source's range delete covers.

mod limits;
mod source;

pub(crate) use limits::Limits;

use crate::api::Db;
use crate::base::error::{Error, Result};
use crate::base::key::Kind;
use crate::engine::state::{State, TableState};
use crate::format::block::Tag;
use crate::memtable::chunk::Chunk;
use crate::values::LargeValue;
use crate::values::ahead::Ahead;
use source::Source;
use std::cmp::Ordering;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Direction {
    Forward,
    Backward,
}

impl Direction {
    /// Where a cursor stands that has seen all records this way.
    fn end(self) -> Place {
        match self {
            Direction::Forward => Place::End,
            Direction::Backward => Place::Start,
        }
    }
}

/// Where the cursor stands between records.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    /// The sources are where the direction wants them.
    Ready,
    /// Before the first record.
    Start,
    /// After the last record.
    End,
    /// At `at`: the next record forward is the first at or above it, backward the last below.
    Before,
    /// Just after the record with key `at`.
    After,
}

/// Where the record given out stands.
enum Given {
    /// A large value.
    Large,
    /// Its value where a source stands.
    InPlace(usize),
}

/// A moving place in a table as of one snapshot.
///
/// A new cursor stands before the first record. [`next`](Cursor::next) and [`prev`](Cursor::prev)
/// give records by reference; [`owned`](Cursor::owned) makes an ordinary iterator.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-cursor-{}.azk", std::process::id()));
/// use azekura::{Db, Kind, Options};
/// let db = Db::open(&path, Options::new())?;
/// let t = db.table("t", Kind::Ordered)?;
/// t.put_many([(b"a", b"1"), (b"b", b"2"), (b"c", b"3")])?;
/// let mut cursor = t.cursor()?;
/// cursor.seek(b"b")?;
/// assert_eq!(cursor.next()?, Some((&b"b"[..], &b"2"[..])));
/// assert_eq!(cursor.prev()?, Some((&b"b"[..], &b"2"[..])));
/// assert_eq!(cursor.prev()?, Some((&b"a"[..], &b"1"[..])));
/// # drop(cursor); drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub struct Cursor {
    /// Newest first. They borrow from the state.
    sources: Vec<Source>,
    limits: Limits,
    kind: Kind,
    direction: Direction,
    place: Place,
    /// The sort key of the place, or of the record given out last.
    at: Vec<u8>,
    /// The sources still stand at the record given out last: they pass it when the next one is asked for.
    owed: bool,
    /// The key given out last, if it is not the sort key, and the value, if it is a large one.
    key: Vec<u8>,
    value: Option<LargeValue>,
    any_ranges: bool,
    failed: Option<Error>,
    ahead: Ahead,
    db: Db,
    _state: Arc<State>,
}

impl Cursor {
    pub(crate) fn new(
        db: Db,
        state: Arc<State>,
        table: Arc<TableState>,
        seq: u64,
        own: Option<Arc<Chunk>>,
        limits: Limits,
    ) -> Result<Cursor> {
        let mut sources = Vec::new();
        sources.extend(own.map(Source::chunk));
        if let Some(active) = table.active.as_ref().filter(|a| !a.list.is_empty()) {
            sources.push(Source::active(active.clone(), seq));
        }
        sources.extend(table.chunks.iter().chain(table.frozen.iter()).map(|c| Source::chunk(c.clone())));
        sources.extend(table.few_chunk().map(Source::chunk));
        sources.extend(table.levels.iter().map(|l| Source::level(l.clone())));
        let any_ranges = sources.iter().any(|s| !s.ranges().is_empty());
        Ok(Cursor {
            sources,
            limits,
            kind: table.kind,
            direction: Direction::Forward,
            place: Place::Start,
            at: Vec::new(),
            owed: false,
            key: Vec::new(),
            value: None,
            any_ranges,
            failed: None,
            ahead: Ahead::default(),
            db,
            _state: state,
        })
    }

    /// Goes before the first record.
    pub fn seek_first(&mut self) {
        self.place = Place::Start;
        self.failed = None;
    }

    /// Goes after the last record.
    pub fn seek_last(&mut self) {
        self.place = Place::End;
        self.failed = None;
    }

    /// Goes to a key: `next` then gives the first record at or above it, `prev` the last below.
    /// Ordered tables only.
    ///
    /// # Errors
    /// `WrongType` for a hash table.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        if self.kind != Kind::Ordered {
            return Err(Error::WrongType { detail: "a hash table has no order to seek in".into() });
        }
        self.at.clear();
        self.at.extend_from_slice(key);
        self.place = Place::Before;
        self.failed = None;
        Ok(())
    }

    /// The next record, as key and value; none after the last one (and again from then on).
    ///
    /// # Errors
    /// `Corrupt` or `Io` if it cannot be read, `Closed`, `Forked`.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.go(Direction::Forward)
    }

    /// The record before, as key and value; none before the first one.
    ///
    /// # Errors
    /// As [`next`](Cursor::next).
    #[inline]
    pub fn prev(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.go(Direction::Backward)
    }

    #[inline(always)]
    fn go(&mut self, to: Direction) -> Result<Option<(&[u8], &[u8])>> {
        self.check()?;
        let plain = self.sources.len() == 1 && !self.any_ranges;
        let given = if plain && self.place == Place::Ready && self.direction == to {
            self.step_of_one(to)
        } else {
            self.turn(to).and_then(|()| self.step(to))
        };
        self.give(given)
    }

    /// An error once the database is closed. After another one the sources may stand anywhere, so it is repeated
    /// until the next seek.
    #[inline(always)]
    fn check(&self) -> Result<()> {
        self.db.engine.life.check()?;
        match &self.failed {
            None => Ok(()),
            Some(e) => Err(e.clone()),
        }
    }

    #[inline(always)]
    fn give(&mut self, given: Result<Option<Given>>) -> Result<Option<(&[u8], &[u8])>> {
        match given {
            Ok(None) => Ok(None),
            Ok(Some(given)) => {
                let key = if self.kind == Kind::Hash { &self.key } else { &self.at };
                match given {
                    Given::Large => Ok(self.value.as_deref().map(|value| (key.as_slice(), value))),
                    Given::InPlace(source) => Ok(Some((key, self.sources[source].value()))),
                }
            }
            Err(e) => {
                self.failed = Some(e.clone());
                Err(e)
            }
        }
    }

    /// As an iterator over copies of the records from here on.
    pub fn owned(self) -> Records {
        Records { cursor: self, failed: false }
    }

    /// Counts the records from here on.
    pub(crate) fn count_rest(&mut self) -> Result<u64> {
        self.check()?;
        let mut n = 0;
        while self.next_raw()?.is_some() {
            n += 1;
        }
        Ok(n)
    }

    /// The common case: one source, the same direction as before, nothing but puts.
    #[inline(always)]
    fn step_of_one(&mut self, to: Direction) -> Result<Option<Given>> {
        if std::mem::take(&mut self.owed) {
            self.sources[0].step(to)?;
        }
        loop {
            let source = &self.sources[0];
            if !source.valid() {
                self.place = to.end();
                return Ok(None);
            }
            if source.tag() == Tag::Put {
                break;
            }
            if source.tag() == Tag::Large {
                return self.step(to);
            }
            self.sources[0].step(to)?;
        }
        self.sources[0].copy_key(&mut self.at);
        if !self.limits.allows(to, &self.at) {
            self.place = to.end();
            return Ok(None);
        }
        self.owed = true;
        if self.kind == Kind::Hash {
            self.kind.user_key(&self.at, self.db.engine.hash_seed, &mut self.key)?;
        }
        Ok(Some(Given::InPlace(0)))
    }

    /// The next record's source, key in `self.key`; the source has not moved on yet.
    fn next_raw(&mut self) -> Result<Option<usize>> {
        self.turn(Direction::Forward)?;
        self.pick(Direction::Forward)
    }

    /// Brings all sources to where a direction wants them.
    fn turn(&mut self, to: Direction) -> Result<()> {
        if self.place == Place::Ready && self.direction == to {
            return if std::mem::take(&mut self.owed) { self.pass(to) } else { Ok(()) };
        }
        self.owed = false;
        if self.place == Place::Ready {
            // The sources stand at the record given out last or beyond; the key tells where that was.
            self.place = if self.direction == Direction::Forward { Place::After } else { Place::Before };
        }
        let at = std::mem::take(&mut self.at);
        let moved = self.place_sources(to == Direction::Forward, &at);
        self.at = at;
        moved?;
        self.direction = to;
        self.place = Place::Ready;
        Ok(())
    }

    /// Seeks all sources from the place; `at` is its key.
    fn place_sources(&mut self, forward: bool, at: &[u8]) -> Result<()> {
        for source in &mut self.sources {
            match (self.place, forward) {
                (Place::Start | Place::Ready, true) => self.limits.to_start(source)?,
                (Place::End, false) => self.limits.to_end(source)?,
                (Place::Start | Place::Ready, false) => self.limits.to_before_start(source)?,
                (Place::End, true) => source.invalidate(),
                (Place::Before, true) => source.seek_ge(self.limits.raise(at))?,
                (Place::Before, false) => self.limits.seek_lt(source, at)?,
                (Place::After, true) => source.seek_ge(&[at, &[0]].concat())?,
                (Place::After, false) => self.limits.seek_lt(source, &[at, &[0]].concat())?,
            }
        }
        Ok(())
    }

    /// Gives out the next record of the direction.
    fn step(&mut self, to: Direction) -> Result<Option<Given>> {
        let Some(i) = self.pick_unhidden(to)? else { return Ok(None) };
        self.owed = true;
        if self.kind == Kind::Hash {
            self.kind.user_key(&self.at, self.db.engine.hash_seed, &mut self.key)?;
        }
        if self.sources[i].tag() != Tag::Large {
            return Ok(Some(Given::InPlace(i)));
        }
        // What was read ahead is filled anew only if nobody holds it.
        self.value = None;
        self.value = Some(self.ahead.read(&self.db.engine.values, self.sources[i].value())?);
        Ok(Some(Given::Large))
    }

    /// As `pick_unhidden`, then steps over the record: for counting.
    fn pick(&mut self, to: Direction) -> Result<Option<usize>> {
        let found = self.pick_unhidden(to)?;
        if found.is_some() {
            self.pass(to)?;
        }
        Ok(found)
    }

    /// The source of the next record that is neither a delete nor deleted; its key is in `at`.
    fn pick_unhidden(&mut self, to: Direction) -> Result<Option<usize>> {
        loop {
            let Some(i) = self.best(to) else {
                self.place = to.end();
                return Ok(None);
            };
            self.sources[i].copy_key(&mut self.at);
            if !self.limits.allows(to, &self.at) {
                self.place = to.end();
                return Ok(None);
            }
            let hidden = self.any_ranges && self.sources[..i].iter().any(|s| s.ranges().covers(&self.at));
            if !hidden && self.sources[i].tag() != Tag::Delete {
                return Ok(Some(i));
            }
            self.pass(to)?;
        }
    }

    /// The newest source among those whose record is nearest.
    fn best(&self, to: Direction) -> Option<usize> {
        let mut best: Option<usize> = None;
        for (i, source) in self.sources.iter().enumerate().filter(|(_, s)| s.valid()) {
            let nearer = match best {
                None => true,
                Some(b) => {
                    let order = source.compare(&self.sources[b]);
                    order == if to == Direction::Forward { Ordering::Less } else { Ordering::Greater }
                }
            };
            if nearer {
                best = Some(i);
            }
        }
        best
    }

    /// Moves every source that stands at the key `at` past it.
    fn pass(&mut self, to: Direction) -> Result<()> {
        for source in &mut self.sources {
            if source.valid() && source.key_is(&self.at) {
                source.step(to)?;
            }
        }
        Ok(())
    }
}

/// An iterator over copies of a cursor's records.
pub struct Records {
    cursor: Cursor,
    failed: bool,
}

impl Iterator for Records {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        match self.cursor.next() {
            Ok(record) => record.map(|(k, v)| Ok((k.to_vec(), v.to_vec()))),
            Err(e) => {
                self.failed = true;
                Some(Err(e))
            }
        }
    }
}
