//! One step of building an index: the entries of some records of its table.
//!
//! From the commit on that made the index, every write to the table keeps it. So a builder has to know only
//! that nobody has changed the records that it has read. It need not know of new records.
//!
//! Entries come in the order of the table, which is none for the index. So a step is long where it can be:
//! what it writes is sorted once, and becomes one chunk.

use super::entries::Added;
use super::indexed::{entry_of, push_entry};
use super::write::WriteTxn;
use crate::base::codec::usize_of64;
use crate::base::error::{Error, Result};
use crate::base::limits::INLINE_VALUE_BYTES_MAX;
use crate::cursor::Limits;
use crate::engine::{Durability, Table, key_mark};
use crate::format::block::Tag;
use crate::format::hidden::{IndexState, STATE_KEY};
use crate::format::ranges::Range;
use crate::index::IndexSpec;
use std::time::{Duration, Instant};

/// The entries of a step take this part of a memtable: sorting needs as much again.
const STEP_PART: u64 = 2;
/// What a record takes in memory beside its entry: its place, and that it was read.
const RECORD_BYTES: usize = 48;
/// A step ends after this time, so that the progress is seen, and a crash costs no more.
const STEP_TIME: Duration = Duration::from_secs(1);
/// And after this time if others have committed meanwhile: their commits leave a trace until it has ended.
const STEP_TIME_BESIDE_OTHERS: Duration = Duration::from_millis(50);
/// The clock is looked at each time so many records were read.
const LOOK_RECORDS: u64 = 256;
/// The last step has so many records at most: meanwhile nobody makes or drops tables.
const LAST_RECORDS: u64 = 1024;

/// What a step has found.
pub(crate) struct Step {
    /// How many records it has read.
    pub(crate) records: u64,
    /// With this step, or before, the index is ready.
    pub(crate) is_ready: bool,
}

impl WriteTxn {
    /// Writes the entries of the next records, `most` of them at most, and notes in the state record how far
    /// it has come. The last step says that the index is ready, durably.
    pub(crate) fn build_step(
        &mut self,
        table: &Table,
        entries: &Table,
        spec: &IndexSpec,
        most: u64,
    ) -> Result<Step> {
        // Another builder has given it up.
        let missing = || Error::NoSuchTable { name: entries.name.to_string() };
        let state = self.get_with(entries, STATE_KEY, IndexState::decode)?.ok_or_else(missing)??;
        let Some(next) = state.next else { return Ok(Step { records: 0, is_ready: true }) };
        let mut cursor = self.untracked(table, Limits::from(Range { start: next, end: None }))?;
        let (mut records, mut bytes, mut entry, mut last) = (0, 0, Vec::new(), Vec::new());
        let most_bytes = usize_of64(self.db.engine.config.memtable_bytes / STEP_PART);
        let (mut is_ready, began) = (false, Instant::now());
        while records < most && bytes < most_bytes {
            if records % LOOK_RECORDS == LOOK_RECORDS - 1 && self.is_long(began.elapsed()) {
                break;
            }
            let Some((key, value)) = cursor.next()? else {
                is_ready = records <= LAST_RECORDS;
                break;
            };
            entry.clear();
            records += 1;
            bytes += RECORD_BYTES;
            if let Some(fields) = entry_of(spec, key, value.bytes()?, &mut entry)? {
                bytes += entry.len();
                push_entry(self.hidden_buffer(entries.id), &entry, Tag::Put, cursor.expiry());
                if spec.is_unique() && spec.is_checked(&entry[..fields]) {
                    bytes += RECORD_BYTES + entry.len();
                    self.indexed.added.push(Added { id: entries.id, entry: entry.clone(), fields });
                }
            }
            last.clear();
            last.extend_from_slice(cursor.sort_key().unwrap_or_default());
            self.reads.get_mut().keys.push((table.id, key_mark(table.id, &last)));
        }
        last.push(0);
        let state = IndexState { next: (!is_ready).then_some(last), spec: state.spec };
        let state = state.encode();
        if state.len() < INLINE_VALUE_BYTES_MAX {
            // Salvage finds it there even if large values are lost.
            self.write(entries, STATE_KEY, Tag::Put, &state)?;
        } else {
            self.put(entries, STATE_KEY, &state)?;
        }
        if is_ready {
            self.options.durability = Some(Durability::Sync);
        }
        Ok(Step { records, is_ready })
    }

    /// Whether a step that takes so long is to end.
    fn is_long(&self, time: Duration) -> bool {
        let is_beside_others = || self.db.engine.state.load().visible() > self.snapshot().snapshot.seq();
        time > STEP_TIME || (time > STEP_TIME_BESIDE_OTHERS && is_beside_others())
    }
}
