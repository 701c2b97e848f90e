//! What the feed gets of a commit: its changes, gathered before the commit lock is taken.
//!
//! If they are not what the feed is to have when the commit gets its number, they are gathered anew
//! (`engine/fed.rs`), as often as it takes. So what commits do to tables that are fed meets no conflict that
//! it would not meet elsewhere, but for one with the beginning of the feed itself.
//!
//! Values before are read from a snapshot. What the commit writes counts as read from it then, so no other
//! commit has come between.

use super::get::{FoundValue, lookup};
use super::value::resolve;
use crate::base::error::{Error, Result};
use crate::base::key::{KeyBuf, SortKey};
use crate::cursor::{Cursor, Limits};
use crate::engine::state::{State, TableState};
use crate::engine::{
    Again, Batch, BatchPart, Db, Engine, Gathered, OwnCommits, ReadSet, Reads, conflict_error, now_ms,
};
use crate::format::block::{Block, Tag};
use crate::format::expiry::Content;
use crate::format::feed::{FeedContent, PartWriter};
use crate::format::frame::TableChange;
use crate::format::ranges::Range;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

/// A part is about so long, if the commit has so many changes. It stands apart, as a large value does.
const PART_BYTES: usize = 256 << 10;
/// The parts of a durable commit stand in its own records up to so many bytes: what stands apart has to be
/// made durable first, by a sync of its own. (Commits of 100 records of 60 bytes: 376K records/s where the
/// parts stand apart, 723K in the records.)
const INLINE_BYTES_MAX: u64 = 64 << 10;
/// Then a part is about so long: three fill a page.
const INLINE_PART_BYTES: usize = 4 << 10;

/// A commit that was made. Synchronous mirrors need not have it yet.
#[must_use]
pub(crate) struct Committed {
    seq: u64,
    is_durable: bool,
}

impl Committed {
    /// Waits until synchronous mirrors have it, if it is durable.
    #[inline(always)]
    pub(crate) fn wait(self, engine: &Engine) -> Result<()> {
        if self.is_durable { engine.wait_for_mirrors(self.seq) } else { Ok(()) }
    }
}

/// Commits a batch, with what the feed is to have of it.
#[inline(always)]
pub(crate) fn commit(db: &Db, batch: Batch) -> Result<Committed> {
    let is_durable = batch.durable || batch.changes_tables();
    let seq = if db.engine.feed.is_on() { commit_fed(db, batch) } else { commit_batch(&db.engine, batch) }?;
    Ok(Committed { seq, is_durable })
}

fn commit_batch(engine: &Engine, batch: Batch) -> Result<u64> {
    if batch.changes_tables() { engine.table_changer().commit(batch) } else { engine.commit(batch) }
}

#[inline(never)]
fn commit_fed(db: &Db, mut batch: Batch) -> Result<u64> {
    let engine = &db.engine;
    if let Some(seq) = engine.commit_told(&mut batch)? {
        return Ok(seq);
    }
    loop {
        engine.check_writable()?;
        (batch.feed, batch.again) = (None, None);
        let fed = engine.feed.fed();
        let is_fed = |id: u32| fed.content_of(id).is_some();
        let is_told = batch.parts.iter().any(|part| is_fed(part.table));
        if !is_told && !batch.changes().iter().any(|change| change.is_seen() && is_fed(change.id())) {
            return commit_batch(engine, batch);
        }
        engine.feeder().renew()?;
        let keeps_old = batch.parts.iter().any(|part| fed.content_of(part.table) == Some(FeedContent::Both));
        let before = keeps_old.then(|| Before::new(engine));
        let mut gathered = Gathered::new(fed, now_ms());
        gathered.frees = batch.only_deletes();
        {
            let state =
                before.as_ref().map_or_else(|| engine.state.load_full(), |before| before.state.clone());
            let written = batch.parts.iter().map(|part| part.block.bytes() + 64).sum::<usize>();
            let part = PartWriter::with_capacity((written + written / 8).min(PART_BYTES + PART_BYTES / 8));
            let before = before.as_ref();
            // Its own values, where they stand apart, have a sync of their own anyway.
            let is_apart = batch.parts.iter().any(|part| !part.segments.is_empty());
            let is_inline = batch.durable && !is_apart && written as u64 <= INLINE_BYTES_MAX;
            let mut gatherer = Gatherer { db, state: &state, before, part, is_inline };
            gatherer.gather(&batch, &mut gathered).inspect_err(|_| batch.give_back())?;
        }
        let again = Arc::new(Again::default());
        batch.feed = Some(Box::new(gathered));
        batch.again = Some(again.clone());
        let done = commit_batch(engine, batch);
        match again.take() {
            Some(refused) if matches!(done, Err(Error::Conflict { .. })) => batch = refused,
            _ => return done,
        }
    }
}

/// Whether a commit writes a sort key.
fn has(block: &Block, key: &[u8]) -> bool {
    let (mut low, mut high, mut tmp) = (0, block.len(), [0; 8]);
    while low < high {
        let middle = low + (high - low) / 2;
        match block.key(middle, &mut tmp).cmp(key) {
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
            Ordering::Equal => return true,
        }
    }
    false
}

/// The snapshot from which old values are read. While it is there, others' commits leave a trace.
struct Before<'a> {
    engine: &'a Engine,
    state: Arc<State>,
    seq: u64,
    /// What has expired by then counts as gone.
    now: u64,
}

impl<'a> Before<'a> {
    fn new(engine: &'a Engine) -> Before<'a> {
        let (state, seq) = engine.committer.track_snapshot(&engine.state);
        Before { engine, state, seq, now: engine.config.clock.now_if_used() }
    }
}

impl Drop for Before<'_> {
    fn drop(&mut self) {
        self.engine.committer.untrack_snapshot(self.seq);
    }
}

/// Writes the parts.
struct Gatherer<'a> {
    db: &'a Db,
    state: &'a Arc<State>,
    before: Option<&'a Before<'a>>,
    part: PartWriter,
    /// Whether parts stand in the commit's records, as long as they are few.
    is_inline: bool,
}

impl Gatherer<'_> {
    fn gather(&mut self, batch: &Batch, out: &mut Gathered) -> Result<()> {
        self.part.begin(out.time_ms);
        let fed = out.fed.clone();
        let gone: HashSet<u32> = batch
            .changes()
            .iter()
            .filter(|change| matches!(change, TableChange::Dropped(_)))
            .map(TableChange::id)
            .collect();
        let mut reads = Reads::default();
        for part in batch.parts.iter().filter(|part| !gone.contains(&part.table)) {
            let Some(content) = fed.content_of(part.table) else { continue };
            if content == FeedContent::Both {
                reads.keys.extend(part.marks());
                reads.ranges.extend(part.range_marks());
            }
            let table = self.state.table(part.table)?.clone();
            out.names.push((table.id, table.name.clone()));
            self.changes(&table, part, content, out)?;
        }
        let told = |change: &&TableChange| change.is_seen() && fed.content_of(change.id()).is_some();
        for change in batch.changes().iter().filter(told) {
            let table = self.state.table(change.id())?.clone();
            out.names.push((table.id, table.name.clone()));
            self.table(&table, change);
        }
        if let Some(before) = self.before {
            let (since, own) = (self.db.engine.life.now()?, OwnCommits::default());
            out.reads = Some(ReadSet { snapshot: before.seq, since, reads, own });
        }
        self.end_part(out)
    }

    fn end_part(&mut self, out: &mut Gathered) -> Result<()> {
        // (What a range had may be any number of records.)
        self.is_inline &= out.bytes + self.part.bytes().len() as u64 <= INLINE_BYTES_MAX;
        self.db.engine.feeder().add_part(out, &mut self.part, self.is_inline)
    }

    fn changes(
        &mut self,
        table: &Arc<TableState>,
        part: &BatchPart,
        content: FeedContent,
        out: &mut Gathered,
    ) -> Result<()> {
        let engine = &self.db.engine;
        self.part.begin_section(table.kind, &table.name);
        for range in part.ranges.iter() {
            if content == FeedContent::Both {
                self.removed(table, range, part, out)?;
            } else {
                self.part.remove_range(&range.start, range.end.as_deref());
                self.break_if_long(table, out)?;
            }
        }
        let (mut tmp, mut key, mut old) = ([0; 8], Vec::new(), Vec::new());
        for i in 0..part.block.len() {
            let sort_key = part.block.key(i, &mut tmp);
            table.kind.user_key(sort_key, engine.store.hash_seed, &mut key)?;
            let has_old = content == FeedContent::Both && self.old(table, sort_key, &mut old)?;
            let old = has_old.then_some(&old[..]);
            let record = part.block.content(i);
            match record.tag {
                // The table is fed with values only now. A merge that is made again knows.
                Tag::Operand if content != FeedContent::Keys => return Err(conflict_error(&table.name)),
                Tag::Large if content != FeedContent::Keys => {
                    let value = &engine.values.read(record.value)?;
                    self.part.change(content, &key, Content { value, ..record }, old);
                }
                _ => self.part.change(content, &key, record, old),
            }
            self.break_if_long(table, out)?;
        }
        self.part.end_section();
        Ok(())
    }

    /// The value that a record has in the snapshot. False if it has none.
    fn old(&self, table: &TableState, sort_key: &[u8], old: &mut Vec<u8>) -> Result<bool> {
        let Some(before) = self.before else { return Ok(false) };
        old.clear();
        let large = |reference: &[u8]| self.db.engine.read_large(self.state, reference);
        let take = |tag, slot: FoundValue<'_>, _| {
            resolve(tag, slot.bytes(), large, |value| old.extend_from_slice(value))
        };
        match lookup(table, before.seq, SortKey::new(sort_key), || before.now, take) {
            Ok(found) => found.transpose().map(|found| found.is_some()),
            // Operands on what is no number, or gets too long: nobody can read it, and a put is what mends
            // it.
            Err(Error::WrongType { .. } | Error::TooLarge { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The records of a range that is removed, but those that the commit writes besides.
    fn removed(
        &mut self,
        table: &Arc<TableState>,
        range: &Range,
        part: &BatchPart,
        out: &mut Gathered,
    ) -> Result<()> {
        let Some(before) = self.before else { return Ok(()) };
        let (db, limits) = (self.db.clone(), Limits::from(range.clone()));
        let mut cursor =
            Cursor::new(db, self.state.clone(), table.clone(), before.seq, before.now, Vec::new(), limits)?;
        let mut buf = KeyBuf::new();
        while let Some((key, value)) = cursor.next()? {
            let sort_key = table.kind.sort_key(key, self.db.engine.store.hash_seed, &mut buf);
            if !has(&part.block, sort_key.bytes) {
                let old = match value.bytes() {
                    Ok(old) => Some(old),
                    Err(Error::WrongType { .. } | Error::TooLarge { .. }) => None,
                    Err(error) => return Err(error),
                };
                self.part.remove(key, old);
                self.break_if_long(table, out)?;
            }
        }
        Ok(())
    }

    /// What becomes of a table: after what was done in it, by the name that it had.
    fn table(&mut self, table: &TableState, change: &TableChange) {
        self.part.begin_section(table.kind, &table.name);
        match change.name() {
            Some(name) => self.part.rename(name),
            None => self.part.drop_table(),
        }
        self.part.end_section();
    }

    /// Goes on in another part if this one is long.
    #[inline(always)]
    fn break_if_long(&mut self, table: &TableState, out: &mut Gathered) -> Result<()> {
        if self.part.bytes().len() < if self.is_inline { INLINE_PART_BYTES } else { PART_BYTES } {
            return Ok(());
        }
        self.part.end_section();
        self.end_part(out)?;
        self.part.begin(out.time_ms);
        self.part.begin_section(table.kind, &table.name);
        Ok(())
    }
}
