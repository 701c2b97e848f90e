//! Doing a merge: from sources to runs of bounded size, a step at a time.

use super::sizes::partition_bytes;
use crate::base::codec::usize_of64;
use crate::base::error::{Error, Result};
use crate::base::fault::fault;
use crate::engine::ids::Ids;
use crate::format::block::Block;
use crate::format::manifest::RunInfo;
use crate::format::ranges::Ranges;
use crate::merge::Merger;
use crate::run::label::Origin;
use crate::run::writer::RunWriter;
use crate::run::{Run, Store};
use crate::values::{Segment, VALUE_POINTER_BYTES, ValuePointer, ValueStore};
use std::sync::Arc;

mod folded;

/// A step handles about this much.
const STEP_BYTES: u64 = 1 << 20;
/// A step handles at most this many records.
const STEP_RECORDS_MAX: u64 = 32_768;

/// Runs that no checkpoint names and no state has yet, in key order. Dropped, they give their extents
/// back.
#[derive(Default)]
pub(in crate::engine) struct UninstalledRuns(Vec<Arc<Run>>);

impl UninstalledRuns {
    pub(in crate::engine) fn runs(&self) -> &[Arc<Run>] {
        &self.0
    }

    /// Takes them into the page cache, if there is room, before readers meet them.
    pub(in crate::engine) fn warm(&self) {
        for run in &self.0 {
            // Only a favour. A reader that meets a page that cannot be read gets the error.
            let _warmed = run.warm();
        }
    }

    /// Opens a run that was written, and keeps it.
    fn keep(&mut self, to: &Outlet<'_>, info: RunInfo) -> Result<()> {
        let extents = info.extents.clone();
        match to.open_run(info) {
            Ok(run) => self.0.push(Arc::new(run)),
            Err(e) => {
                extents.into_iter().for_each(|extent| to.store.room.space.free(extent));
                return Err(e);
            }
        }
        Ok(())
    }

    /// The state has them now.
    pub(in crate::engine) fn installed(mut self) {
        self.0.clear();
    }
}

impl Drop for UninstalledRuns {
    fn drop(&mut self) {
        for run in &self.0 {
            run.free_on_drop();
        }
    }
}

/// Where runs are written.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Outlet<'a> {
    pub(in crate::engine) store: &'a Store,
    pub(in crate::engine) values: &'a ValueStore,
    pub(in crate::engine) ids: &'a Ids,
    /// See `Division::flush_bytes`.
    pub(in crate::engine) flush_bytes: u64,
    /// From this length on values stand apart.
    pub(in crate::engine) large_value_bytes: usize,
}

/// The writing end of a merge.
pub(in crate::engine) struct OutputWriter<'a> {
    to: Outlet<'a>,
    origin: Origin,
    /// Whether runs get filters, and for how many records at most.
    filtered: bool,
    records_left: u64,
    /// See `partition_bytes`.
    partition_bytes: u64,
    /// A partition is ended at this size wherever that is.
    end_bytes: u64,
    partition_records: u64,
    step_records: usize,
    block: Block,
    writer: RunWriter,
    done: UninstalledRuns,
    /// The largest key of the last partition that was finished.
    before: Option<Vec<u8>>,
    /// Segments into which records of this output refer, kept until their run holds them.
    held: Vec<Arc<Segment>>,
    /// Value segments whose values are to be moved elsewhere.
    draining: Vec<u32>,
    /// Values that are so long or longer are stored apart. None: there are none.
    apart_from: Option<usize>,
}

impl<'a> OutputWriter<'a> {
    /// For up to `records` records of `bytes` in all. `passes`: they will be merged again.
    pub(in crate::engine) fn new(
        to: Outlet<'a>,
        origin: Origin,
        filtered: bool,
        passes: bool,
        records: u64,
        bytes: u64,
    ) -> OutputWriter<'a> {
        let mean = (bytes / records.max(1)).max(1);
        let partition_bytes = partition_bytes(to.flush_bytes, bytes, passes);
        // Records may be smaller in pages than they were in memory, so a partition may hold more.
        let partition_records = (partition_bytes * 11 / 10 / mean).max(1);
        let first = if filtered { records.min(partition_records) } else { 0 };
        OutputWriter {
            to,
            origin: origin.clone(),
            filtered,
            records_left: records,
            partition_bytes,
            end_bytes: partition_bytes / 4 * 3,
            partition_records,
            step_records: step_records(partition_bytes, mean),
            block: Block::new(None),
            writer: RunWriter::new(to.store, to.ids.next(), origin, first),
            done: UninstalledRuns::default(),
            before: None,
            held: Vec::new(),
            draining: Vec::new(),
            apart_from: None,
        }
    }

    /// Values of `from` bytes or more, which are in the log and in memtables, are stored apart. `mean`: the
    /// bytes of a record in memory.
    pub(in crate::engine) fn store_apart(&mut self, from: usize, mean: u64) {
        self.apart_from = Some(from);
        self.step_records = step_records(self.partition_bytes, mean.max(1));
    }

    /// Values in these segments are written anew elsewhere.
    pub(in crate::engine) fn drain(&mut self, segments: Vec<u32>) {
        self.draining = segments;
    }

    /// Takes one step of the merge. True when it is done.
    pub(in crate::engine) fn step(&mut self, merger: &mut Merger) -> Result<bool> {
        self.block.reset(merger.fixed());
        let end = merger.fill(&mut self.block, self.step_records)?;
        if fault!("drop_record") {
            self.lose_a_record();
        }
        if merger.is_long() || self.apart_from.is_some() {
            self.settle_long()?;
        }
        self.settle_values()?;
        self.writer.append(&self.block)?;
        if self.writer.bytes() >= self.end_bytes {
            self.cut()?;
        }
        Ok(end)
    }

    /// Drops the last record of a step, if it has many: a fault.
    fn lose_a_record(&mut self) {
        let n = self.block.len();
        if n < 20 {
            return;
        }
        let mut fewer = Block::new(self.block.fixed);
        match self.block.fixed {
            Some(_) => fewer.append_same(&self.block, 0, n - 1),
            None => fewer.append_general(&self.block, 0, n - 1),
        }
        self.block = fewer;
    }

    /// Partitions are ended where those of the inputs end, if that comes in time. So what replaces a
    /// partition of three quarters of the largest size mostly ends where that one did.
    pub(in crate::engine) fn ends_with_inputs(&mut self) {
        self.end_bytes = self.partition_bytes;
    }

    /// Whether the partition under way may be ended where one of the inputs has ended: it is large enough.
    /// It may be small if two others wait to take the place of their inputs, and empty if one does.
    pub(in crate::engine) fn may_end(&self) -> bool {
        match (self.writer.bytes(), self.done.0.len()) {
            (0, done) => done > 0,
            (bytes, 0 | 1) => bytes >= self.partition_bytes / 3,
            (bytes, _) => bytes >= self.partition_bytes / 16,
        }
    }

    /// Ends the partition under way, if anything is in it.
    pub(in crate::engine) fn cut(&mut self) -> Result<()> {
        if self.writer.records() == 0 {
            return Ok(());
        }
        self.records_left = self.records_left.saturating_sub(self.writer.records());
        let keys = if self.filtered { self.records_left.clamp(1, self.partition_records) } else { 0 };
        let (store, id) = (self.to.store, self.to.ids.next());
        let fresh = RunWriter::new(store, id, self.origin.clone(), keys);
        let full = std::mem::replace(&mut self.writer, fresh);
        let before = self.before.take();
        if let Some(info) = full.finish(&Ranges::default(), before.as_deref(), false)? {
            self.before = Some(info.max.clone());
            self.done.keep(&self.to, info)?;
        }
        Ok(())
    }

    /// The partitions finished so far.
    pub(in crate::engine) fn take_done(&mut self) -> UninstalledRuns {
        std::mem::take(&mut self.done)
    }

    /// Ends the merge. `ranges` are what the output goes on deleting. Gives the runs that were not taken yet.
    pub(in crate::engine) fn finish(self, ranges: &Ranges) -> Result<UninstalledRuns> {
        let OutputWriter { to, writer, mut done, before, held, .. } = self;
        if let Some(info) = writer.finish(ranges, before.as_deref(), true)? {
            done.keep(&to, info)?;
        }
        // The run holds them now.
        drop(held);
        Ok(done)
    }

    /// Counts what the step's records refer to, and moves what stands in draining segments.
    fn settle_values(&mut self) -> Result<()> {
        if !self.block.may_refer() {
            return Ok(());
        }
        for i in 0..self.block.len() {
            let Some(reference) = self.block.reference(i) else { continue };
            let mut at = ValuePointer::decode(reference)?;
            if self.draining.contains(&at.segment) {
                at = self.relocate(at)?;
                self.block.replace_reference(i, &at.encode());
            }
            self.writer.refer(at.segment, u64::from(at.len));
        }
        Ok(())
    }

    fn relocate(&mut self, at: ValuePointer) -> Result<ValuePointer> {
        let old = self.to.values.segment(at.segment).ok_or_else(|| missing_segment(at.segment))?;
        // Before its length is believed.
        old.check(at)?;
        let mut value = vec![0; crate::base::codec::usize_of(at.len)];
        old.read(at, &mut value)?;
        self.store(&value)
    }

    /// Stores bytes apart.
    fn store(&mut self, bytes: &[u8]) -> Result<ValuePointer> {
        let (at, segment) = self.to.values.append(bytes)?;
        if !self.held.iter().any(|s| Arc::ptr_eq(s, &segment)) {
            self.held.push(segment);
        }
        Ok(at)
    }
}

/// How many records of `mean` bytes make a step.
fn step_records(partition_bytes: u64, mean: u64) -> usize {
    usize_of64((STEP_BYTES.min(partition_bytes / 4) / mean).clamp(64, STEP_RECORDS_MAX))
}

fn missing_segment(id: u32) -> Error {
    Error::corrupt("value reference", 0, format!("there is no value segment {id}"))
}

impl Outlet<'_> {
    /// An open run, holding the value segments that it refers to.
    pub(in crate::engine) fn open_run(&self, info: RunInfo) -> Result<Run> {
        let find = |&(id, _): &(u32, u64)| self.values.segment(id).ok_or_else(|| missing_segment(id));
        let segments = info.large.iter().map(find).collect::<Result<Vec<_>>>()?;
        Ok(Run::new(info, self.store, segments))
    }
}

const _: () = assert!(VALUE_POINTER_BYTES == 16);
