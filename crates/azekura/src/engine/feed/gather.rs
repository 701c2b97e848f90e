//! Gathering the changes of a commit, as they will stand in the feed.

use crate::base::error::Result;
use crate::engine::Engine;
use crate::engine::batch::{Batch, BatchPart};
use crate::engine::fed::Gathered;
use crate::engine::history::conflict_error;
use crate::engine::state::State;
use crate::format::block::Tag;
use crate::format::expiry::Content;
use crate::format::feed::{FeedContent, PartWriter};
use crate::format::frame::TableChange;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A part is about so long, if the commit has so many changes.
const PART_BYTES: usize = 256 << 10;

/// Writes the parts.
struct Gatherer<'a> {
    engine: &'a Engine,
    state: &'a State,
    part: PartWriter,
    out: Gathered,
}

impl Engine {
    /// The changes of a batch, if any of its tables is fed.
    ///
    /// # Errors
    /// What storing large parts meets, and reading large values.
    #[cold]
    pub(in crate::engine) fn gather(&self, batch: &Batch) -> Result<Option<Box<Gathered>>> {
        let fed = self.feed.fed();
        let is_fed = |id: u32| fed.content_of(id).is_some();
        let changes: Vec<_> = batch.changes().iter().filter(|change| is_fed(change.id())).collect();
        if changes.is_empty() && !batch.parts.iter().any(|part| is_fed(part.table)) {
            return Ok(None);
        }
        let time_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64);
        let state = self.state.load_full();
        let out = Gathered { fed: fed.clone(), time_ms, parts: Vec::new(), segments: Vec::new(), bytes: 0 };
        let mut gatherer = Gatherer { engine: self, state: &state, part: PartWriter::default(), out };
        gatherer.part.begin(time_ms);
        for part in &batch.parts {
            if let Some(content) = fed.content_of(part.table) {
                gatherer.changes(part, content)?;
            }
        }
        for change in changes {
            gatherer.table(change)?;
        }
        gatherer.end_part()?;
        Ok(Some(Box::new(gatherer.out)))
    }
}

impl Gatherer<'_> {
    fn begin_section(&mut self, table: u32) -> Result<()> {
        let table = self.state.table(table)?;
        self.part.begin_section(table.kind, &table.name);
        Ok(())
    }

    fn changes(&mut self, part: &BatchPart, content: FeedContent) -> Result<()> {
        let (kind, seed) = (self.state.table(part.table)?.kind, self.engine.hash_seed);
        self.begin_section(part.table)?;
        for range in part.ranges.iter() {
            self.part.remove_range(&range.start, range.end.as_deref());
            self.break_if_long(part.table)?;
        }
        let (mut tmp, mut key) = ([0; 8], Vec::new());
        for i in 0..part.block.len() {
            kind.user_key(part.block.key(i, &mut tmp), seed, &mut key)?;
            let Content { tag, value, expiry } = part.block.content(i);
            match (tag, content) {
                (Tag::Tombstone, _) => self.part.remove(&key),
                (_, FeedContent::Keys) => self.part.put(&key, None, expiry),
                // The table is fed only now. A merge that is made again knows.
                (Tag::Operand, FeedContent::Values) => {
                    return Err(conflict_error(self.state.name_in_conflict(part.table)));
                }
                (Tag::Large, FeedContent::Values) => {
                    let value = self.engine.values.read(value)?;
                    self.part.put(&key, Some(&value), expiry);
                }
                (Tag::Put | Tag::Expiring, FeedContent::Values) => self.part.put(&key, Some(value), expiry),
            }
            self.break_if_long(part.table)?;
        }
        self.part.end_section();
        Ok(())
    }

    /// What becomes of a table: after what was done in it, by the name that it had.
    fn table(&mut self, change: &TableChange) -> Result<()> {
        self.begin_section(change.id())?;
        match change.name() {
            Some(name) => self.part.rename(name),
            None => self.part.drop_table(),
        }
        self.part.end_section();
        Ok(())
    }

    /// Goes on in another part if this one is long.
    fn break_if_long(&mut self, table: u32) -> Result<()> {
        if self.part.bytes().len() < PART_BYTES {
            return Ok(());
        }
        self.part.end_section();
        self.end_part()?;
        self.part.begin(self.out.time_ms);
        self.begin_section(table)
    }

    fn end_part(&mut self) -> Result<()> {
        let bytes = self.part.bytes();
        self.out.bytes += bytes.len() as u64;
        if bytes.len() < self.engine.config.large_value_bytes {
            self.out.parts.push((Tag::Put, bytes.to_vec()));
            return Ok(());
        }
        let (at, segment) = self.engine.store_large(bytes)?;
        self.out.parts.push((Tag::Large, at.encode().to_vec()));
        if !self.out.segments.iter().any(|known| Arc::ptr_eq(known, &segment)) {
            self.out.segments.push(segment);
        }
        Ok(())
    }
}
