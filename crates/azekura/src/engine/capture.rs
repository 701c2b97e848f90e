//! What a copy of the database is made of: the state after one commit, and a manifest of it.
//!
//! Runs never change, and the used bytes of a value segment neither. While a run, or the place of a segment,
//! is held, nobody else uses its extents. So they are copied while others write. A copy is packed: each run
//! and each segment has one extent, in the order of the manifest, behind the superblocks.
//!
//! Who writes the file flushes first, and the manifest is that of a closed file, without a log. A follower
//! cannot flush: its copy has a log (`beside`). What is committed later it reads from the file's log
//! (`since`).
//!
//! Lock order: the lock of those who change tables is held while the state is found, before all others.

mod beside;
mod increment;
mod since;

pub(crate) use increment::{Increment, IncrementPlace, SealedIncrement};
pub(crate) use since::{LogSince, Reading, TakeCommit};

use super::catalog::Catalog;
use super::compaction::merges::Merges;
use super::flush::Flush;
use super::state::{State, TableState};
use crate::base::clock::Clock;
use crate::base::codec::usize_of64;
use crate::base::error::{Error, Result};
use crate::base::limits::{SUPERBLOCKS_BYTES, align_up};
use crate::format::hidden::is_hidden;
use crate::format::manifest::{LevelInfo, Manifest, RunInfo, TableInfo, ValueInfo};
use crate::format::point::{PartId, Tables};
use crate::run::Run;
use crate::space::{Extent, scattered};
use crate::storage::File;
use crate::values::{Segment, ValueStore};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A run, what of a value segment is used, or a log: bytes that never change.
pub(crate) struct CapturePart {
    pub(crate) id: PartId,
    /// Where it begins in the copy.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    place: PartPlace,
}

/// Where a part stands.
enum PartPlace {
    /// In these extents of the file.
    File(Vec<Extent>),
    /// In memory: it was made for the copy.
    Memory(Vec<u8>),
}

/// A state of the database that stays readable for as long as this lives.
pub(crate) struct Capture {
    /// That of the copy.
    pub(crate) manifest: Manifest,
    /// What the manifest names, by the offset in the copy.
    pub(crate) parts: Vec<CapturePart>,
    /// The newest checkpoint, which has this state or a later one, or an earlier one that the log completes.
    pub(crate) checkpoint: u64,
    /// The last commit.
    pub(crate) commit: u64,
    /// The first one after which the log can be cut: the manifest has tables of no later one.
    pub(crate) first_commit: u64,
    /// The tables after `commit`.
    pub(crate) tables: Tables,
    file: Arc<dyn File>,
    /// What keeps the extents: runs hold their segments, but a segment may be moved.
    _held: (Vec<Arc<Run>>, Vec<Arc<dyn Send + Sync>>),
}

impl Capture {
    /// The length of all parts.
    pub(crate) fn bytes(&self) -> u64 {
        self.parts.iter().map(|p| p.bytes).sum()
    }

    /// Fills `buf` from byte `at` of a part on.
    pub(crate) fn read(&self, part: &CapturePart, at: u64, buf: &mut [u8]) -> Result<()> {
        let is_read = match &part.place {
            PartPlace::File(extents) => scattered::read(extents, self.file.as_ref(), at, buf)?,
            PartPlace::Memory(bytes) => {
                let from = bytes.get(usize_of64(at)..).and_then(|rest| rest.get(..buf.len()));
                from.map(|from| buf.copy_from_slice(from)).is_some()
            }
        };
        if is_read {
            return Ok(());
        }
        Err(Error::corrupt("manifest", 0, format!("{} is longer than its extents", part.id)))
    }

    /// Says that a stretch of a part will be read soon.
    pub(crate) fn will_read(&self, part: &CapturePart, at: u64, len: u64) {
        let PartPlace::File(extents) = &part.place else { return };
        if let Some((offset, together)) = scattered::stretch(extents, at) {
            self.file.will_read(offset, len.min(together));
        }
    }
}

/// Gives each part its place in the copy.
struct Packing {
    parts: Vec<CapturePart>,
    end: u64,
}

impl Packing {
    fn new() -> Packing {
        Packing { parts: Vec::new(), end: SUPERBLOCKS_BYTES }
    }

    /// The extent of a part in the copy.
    fn place(&mut self, id: PartId, bytes: u64, place: PartPlace) -> Extent {
        let extent = Extent { offset: self.end, len: align_up(bytes.max(1)) };
        self.parts.push(CapturePart { id, offset: extent.offset, bytes, place });
        self.end = extent.end();
        extent
    }

    /// The manifest of a state, without value segments.
    fn manifest(&mut self, state: &State, next_id: u64, clock: &Clock) -> Manifest {
        let mut tables = Vec::new();
        for t in state.tables.iter().filter(|t| !is_without_record(t)) {
            let mut levels = Vec::new();
            for level in t.levels.iter() {
                let runs = level.runs.iter().map(|r| self.run(&r.info)).collect();
                levels.push(LevelInfo { newest: level.newest, runs });
            }
            tables.push(TableInfo { id: t.id, kind: t.kind, name: t.name.clone(), levels, ttl_ms: t.ttl_ms });
        }
        Manifest {
            next_id,
            next_table: state.next_table,
            flushed_seq: state.flushed_seq,
            logs: Vec::new(),
            tables,
            values: Vec::new(),
            few: state.tables.iter().filter_map(|t| Some((t.id, t.few.clone()?))).collect(),
            // A copy has no log, and goes on from here.
            tables_seq: Some(state.flushed_seq),
            clock_ms: clock.is_used().then(|| clock.now()),
        }
    }

    fn run(&mut self, info: &RunInfo) -> RunInfo {
        let bytes = info.meta_at() + u64::from(info.meta_bytes);
        let extent = self.place(PartId::Run(info.id), bytes, PartPlace::File(info.extents.clone()));
        RunInfo { extents: vec![extent], ..info.clone() }
    }

    fn segment(&mut self, id: u32, used: u64, extents: &[Extent]) -> ValueInfo {
        let extent = self.place(PartId::Values(id), used, PartPlace::File(extents.to_vec()));
        ValueInfo { id, extents: vec![extent], used }
    }
}

/// Captures a database that this process writes, or that nobody does.
pub(super) struct Capturer<'a> {
    pub(super) flush: Flush<'a>,
    pub(super) catalog: &'a Catalog,
    pub(super) source: CaptureSource<'a>,
}

impl Capturer<'_> {
    /// The state after the newest commit or a later one, which is durable then. Tables are not made, renamed
    /// or dropped meanwhile, so that tables and records are of one commit.
    pub(super) fn capture(&self) -> Result<Capture> {
        let _changing = self.catalog.changing.lock();
        let Flush { config, merges: Merges { checkpoints, .. }, .. } = self.flush;
        if !config.read_only {
            self.flush.flush()?;
        }
        let state = checkpoints.state.load_full();
        if config.read_only && state.flushed_seq < state.visible() {
            return Err(Error::ReadOnly);
        }
        let mut capture = self.source.capture(&state)?;
        if !config.read_only {
            // What was captured must not be lost by a crash that the copy survives: ids would be given anew.
            // And values that are still in memory are written by this.
            checkpoints.write()?;
        }
        capture.checkpoint = checkpoints.checkpointer.lock().number;
        Ok(capture)
    }
}

/// What the file and its engine add to a state.
pub(super) struct CaptureSource<'a> {
    pub(super) file: &'a Arc<dyn File>,
    pub(super) values: &'a ValueStore,
    pub(super) next_id: u64,
    pub(super) clock: &'a Clock,
}

impl CaptureSource<'_> {
    /// What a state is made of. A checkpoint has it, or will: its number is filled in then.
    fn capture(&self, state: &State) -> Result<Capture> {
        let runs: Vec<Arc<Run>> = runs_of(state).cloned().collect();
        let segments = self.segments_of(&runs)?;
        let mut packing = Packing::new();
        let mut manifest = packing.manifest(state, self.next_id, self.clock);
        let mut places: Vec<Arc<dyn Send + Sync>> = Vec::new();
        for segment in &segments {
            let (used, place) = (segment.used(), segment.place());
            manifest.values.push(packing.segment(segment.id, used, place.extents()));
            places.push(place);
        }
        let (commit, tables) = (manifest.flushed_seq, Tables::of(&manifest));
        let (file, held) = (self.file.clone(), (runs, places));
        let (parts, checkpoint) = (packing.parts, 0);
        Ok(Capture { manifest, parts, checkpoint, commit, first_commit: commit, tables, file, _held: held })
    }

    /// The value segments to which runs refer.
    fn segments_of(&self, runs: &[Arc<Run>]) -> Result<Vec<Arc<Segment>>> {
        let ids: BTreeSet<u32> = runs.iter().flat_map(|r| r.info.large.iter().map(|l| l.0)).collect();
        let missing = |id| Error::corrupt("manifest", 0, format!("there is no value segment {id}"));
        ids.into_iter().map(|id| self.values.segment(id).ok_or_else(|| missing(id))).collect()
    }
}

fn runs_of(state: &State) -> impl Iterator<Item = &Arc<Run>> {
    state.tables.iter().flat_map(|t| t.levels.iter()).flat_map(|l| &l.runs)
}

/// Whether it is the table of an index whose state record only the log has: a copy has no log.
fn is_without_record(table: &TableState) -> bool {
    is_hidden(&table.name) && table.levels.is_empty() && table.few.is_none()
}
