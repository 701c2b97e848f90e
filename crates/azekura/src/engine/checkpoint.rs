//! Checkpoints: making a state of the tables the one that recovery starts from.
//!
//! The manifest goes to the file first, if it does not fit the superblock; then everything written
//! so far (runs among it) is synced; then superblock A is written durably. Only then are the
//! extents freed that the checkpoint no longer names. Superblock B follows, unsynced: the next
//! checkpoint's sync makes it durable before A is touched again.
//!
//! The manifest needs room, and values that are still to be written. If the disk has none for them,
//! nothing has happened yet and the checkpoint can be tried again; whatever fails after that
//! poisons the handle.

use super::Engine;
use super::commit::Commit;
use super::found::Found;
use super::state::{Level, State};
use crate::base::checksum::crc;
use crate::base::codec::{u32_of, usize_of64};
use crate::base::error::{Error, Result};
use crate::base::fault::fault;
use crate::base::limits::{ALIGN_BYTES, align_up};
use crate::format::manifest::{LevelInfo, LogChain, Manifest, TableInfo, ValueInfo};
use crate::format::superblock::{INLINE_BYTES_MAX, ManifestAt, Superblock};
use crate::run::Run;
use crate::space::Extent;
use crate::values::Segment;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const WRITING_MANIFEST: &str = "writing the manifest";
/// Room for the next manifest is twice what the last one took, and no less.
const SPARE_BYTES_MIN: u64 = 16 << 10;
/// It is not taken from the last of the reserve: this part of it.
const SPARED_PART: u64 = 4;

/// What the checkpoint lock guards.
pub(super) struct Checkpoint {
    /// The number of the newest durable superblock.
    pub(super) number: u64,
    /// The extent of its manifest, if it has one.
    pub(super) manifest: Option<Extent>,
    /// Room for the next one: on a nearly full disk what is free may be in pieces, and without a checkpoint
    /// nothing that was merged gives its room back.
    pub(super) spare: Option<Extent>,
    /// Chains of earlier handles, until a flush has made them needless.
    pub(super) old_logs: Vec<OldLog>,
    /// The state's `flushed_seq` when it was written.
    pub(super) flushed_seq: u64,
    /// Whether it named no log chain.
    pub(super) clean: bool,
    /// The number that was found when the file was opened.
    pub(super) opened: u64,
}

impl Checkpoint {
    /// The one that opening has found.
    pub(super) fn found(found: &Found) -> Checkpoint {
        Checkpoint {
            number: found.block.number,
            manifest: found.extent,
            spare: None,
            old_logs: Vec::new(),
            flushed_seq: found.manifest.flushed_seq,
            clean: found.manifest.logs.is_empty(),
            opened: found.block.number,
        }
    }
}

/// A chain that recovery has read.
pub(super) struct OldLog {
    pub(super) chain: LogChain,
    pub(super) segments: Vec<Extent>,
    pub(super) last_seq: u64,
}

/// Bytes of the file that chains take.
pub(super) fn old_log_bytes(logs: &[OldLog]) -> u64 {
    logs.iter().flat_map(|l| &l.segments).map(|s| s.len).sum()
}

/// What the state has dropped and the newest checkpoint, or the log after it, may still name.
pub(super) enum PendingFree {
    /// A run, and what of it is free once no checkpoint names it.
    Run { run: Arc<Run>, extents: Vec<Extent> },
    /// Chunks, with the value segments to which only the log still refers.
    Memory { _state: Arc<State> },
}

impl PendingFree {
    /// All of it goes.
    pub(super) fn whole(run: Arc<Run>) -> PendingFree {
        PendingFree::Run { extents: run.info.extents.clone(), run }
    }

    /// Only these extents go; the rest lives on in the run's successor.
    pub(super) fn parts(run: Arc<Run>, extents: Vec<Extent>) -> PendingFree {
        PendingFree::Run { run, extents }
    }

    /// What an earlier state had in memory.
    pub(super) fn memory(state: Arc<State>) -> PendingFree {
        PendingFree::Memory { _state: state }
    }
}

/// Parts of a value segment that have been copied elsewhere.
pub(super) struct ValueMove {
    pub(super) segment: Arc<Segment>,
    /// Where the segment's bytes stand then.
    pub(super) extents: Vec<Extent>,
    /// What of its former extents is free then.
    pub(super) left: Vec<Extent>,
}

/// What a checkpoint says before the state does: if there is no room for it, nothing has happened.
#[derive(Clone, Copy)]
enum Change<'a> {
    Nothing,
    Tables(&'a dyn Fn(&State) -> State),
    Values(&'a ValueMove),
}

/// What the checkpoint is for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Purpose {
    /// Record the state as it is.
    Plain,
    /// Also name the log's chain, so that frames may be written.
    StartLog,
    /// Everything is flushed: end the chain.
    Close,
}

impl Engine {
    /// Writes a checkpoint of the state as it is now.
    pub(super) fn checkpoint(&self, purpose: Purpose) -> Result<()> {
        self.checkpoint_with(&mut self.checkpoint.lock(), purpose, Change::Nothing)
    }

    /// Writes a checkpoint with other tables, which are those of the state afterwards; after `NoSpace`
    /// nothing has changed. `change` says under the checkpoint lock whether it may be made, and gives what
    /// makes it of a state: it is made twice, since commits and merges go on meanwhile. `changed` gets the
    /// state that had it not.
    pub(super) fn checkpoint_tables<F: Fn(&State) -> State>(
        &self,
        change: impl FnOnce(&State) -> Result<F>,
        changed: impl FnOnce(&mut Commit, &State),
    ) -> Result<()> {
        let mut guard = self.checkpoint.lock();
        self.check_open()?;
        let change = change(&self.state.load())?;
        let armed = self.poison.armed("changing the tables");
        if let Err(e) = self.checkpoint_with(&mut guard, Purpose::Plain, Change::Tables(&change)) {
            armed.disarm();
            return Err(e);
        }
        let mut commit = self.lock_commit();
        let before = self.state.load_full();
        self.state.store(Arc::new(change(&before)));
        changed(&mut commit, &before);
        armed.disarm();
        // Without the locks: a dropped table may have much memory to give back.
        drop((commit, guard));
        drop(before);
        Ok(())
    }

    /// Writes a checkpoint in which a value segment stands in another place, and then moves it there. Before
    /// that nobody else names the new place, and what is logged later may name either: the checkpoint's word
    /// counts. An error that does not poison the handle leaves it where it is.
    pub(super) fn checkpoint_move(&self, step: &ValueMove) -> Result<()> {
        let mut guard = self.checkpoint.lock();
        let armed = self.poison.armed("moving large values");
        let done = self.checkpoint_with(&mut guard, Purpose::Plain, Change::Values(step));
        if done.is_ok() {
            step.segment.moved(step.extents.clone(), step.left.clone());
        }
        armed.disarm();
        done
    }

    fn checkpoint_with(&self, guard: &mut Checkpoint, purpose: Purpose, change: Change<'_>) -> Result<()> {
        self.poison.check()?;
        if purpose == Purpose::StartLog {
            self.log.begin_chain(self.new_id())?;
        }
        // Runs that were replaced before the state is looked at are not in it.
        let pending_free = std::mem::take(&mut *self.pending_free.lock());
        let mut state = self.state.load_full();
        if let Change::Tables(change) = change {
            state = Arc::new(change(&state));
        }
        let flushed = state.flushed_seq;
        let mut freed = if purpose == Purpose::Close { self.log.end_chain(flushed) } else { Vec::new() };
        let chain = self.log.chain_after(flushed);
        let kept = guard.old_logs.iter().filter(|l| l.last_seq > flushed).map(|l| &l.chain);
        let manifest = self.manifest(&state, kept.chain(&chain).cloned().collect(), change);
        let (at, extent) = match self.make_room(guard, &manifest, purpose) {
            Err(e @ Error::NoSpace { .. }) if purpose != Purpose::Close => {
                self.pending_free.lock().extend(pending_free);
                return Err(e);
            }
            placed => self.poison.guard(placed)?,
        };
        let bytes = match &at {
            ManifestAt::Extent { len, .. } => align_up(u64::from(*len)),
            ManifestAt::Inline(_) => 0,
        };
        let armed = self.poison.armed("writing a checkpoint");
        let done = self.write_checkpoint(guard, at, extent);
        armed.disarm();
        let old = self.poison.guard(done)?;
        self.keep_spare(guard, old, bytes, purpose);
        freed.extend(chain.into_iter().flat_map(|c| self.log.release(c.first_frame)));
        let (needless, kept): (Vec<_>, _) =
            std::mem::take(&mut guard.old_logs).into_iter().partition(|l| l.last_seq <= flushed);
        guard.old_logs = kept;
        self.counters.old_log_bytes.store(old_log_bytes(&guard.old_logs), Ordering::Relaxed);
        freed.extend(needless.into_iter().flat_map(|l| l.segments));
        for extent in freed {
            self.space.free(extent);
        }
        for old in pending_free {
            if let PendingFree::Run { run, extents } = old {
                run.free_parts_on_drop(extents);
            }
        }
        if purpose == Purpose::StartLog {
            self.log.published();
        }
        self.log.set_checkpoint(guard.number);
        self.log.flushed(state.flushed_seq);
        guard.flushed_seq = state.flushed_seq;
        guard.clean = manifest.logs.is_empty();
        Ok(())
    }

    /// Whether the newest checkpoint names no log: all is in runs.
    pub(super) fn is_clean(&self) -> bool {
        self.checkpoint.lock().clean
    }

    /// Whether a manifest of its own ends the file, and there is a hole for the next.
    pub(super) fn manifest_ends_the_file(&self) -> bool {
        let manifest = self.checkpoint.lock().manifest;
        manifest.is_some_and(|m| m.end() == self.space.end() && self.space.fits_below(m.len, m.offset))
    }

    /// What the newest manifest takes of the file.
    pub(super) fn manifest_bytes(&self) -> u64 {
        self.checkpoint.lock().manifest.map_or(ALIGN_BYTES, |m| m.len)
    }

    /// The number of the newest durable superblock.
    pub(super) fn checkpoint_number(&self) -> u64 {
        self.checkpoint.lock().number
    }

    /// No checkpoint is written while the result lives.
    pub(crate) fn hold_checkpoints(&self) -> impl Sized + '_ {
        self.checkpoint.lock()
    }

    /// Extents that belong to no run and no value segment, for `check`.
    pub(crate) fn live_extents(&self) -> Vec<Extent> {
        let guard = self.checkpoint.lock();
        let mut live: Vec<Extent> = guard.manifest.into_iter().chain(guard.spare).collect();
        live.extend(guard.old_logs.iter().flat_map(|l| l.segments.iter().copied()));
        live.extend(self.log.extents());
        live
    }

    /// Whether nothing is on its way between memory and file.
    pub(crate) fn is_quiet(&self) -> bool {
        self.config.read_only
    }

    /// Names the log's chain in the manifest.
    pub(super) fn publish_log(&self) -> Result<()> {
        self.checkpoint(Purpose::StartLog)
    }

    fn manifest(&self, state: &State, logs: Vec<LogChain>, change: Change<'_>) -> Manifest {
        let tables = state.tables.iter().map(|t| TableInfo {
            id: t.id,
            kind: t.kind,
            name: t.name.clone(),
            levels: t.levels.iter().map(level_info).collect(),
        });
        let values = self.values.segments().into_iter().map(|s| {
            let extents = match change {
                Change::Values(step) if Arc::ptr_eq(&step.segment, &s) => step.extents.clone(),
                _ => s.place().extents().to_vec(),
            };
            let mut info = ValueInfo { id: s.id, extents, used: 0 };
            info.used = s.used().min(info.bytes());
            info
        });
        Manifest {
            next_id: self.next_id.load(Ordering::Relaxed),
            next_table: state.next_table,
            flushed_seq: state.flushed_seq,
            logs,
            tables: tables.collect(),
            values: values.collect(),
            few: state.tables.iter().filter_map(|t| Some((t.id, t.few.clone()?))).collect(),
        }
    }

    /// Makes durable what a checkpoint names.
    fn sync_checkpoint(&self) -> Result<()> {
        if fault!("skip_sync") {
            return Ok(());
        }
        self.file.sync_data().map_err(|e| Error::io("syncing a checkpoint", e))
    }

    /// Does what needs room on the disk.
    fn make_room(
        &self,
        guard: &mut Checkpoint,
        manifest: &Manifest,
        purpose: Purpose,
    ) -> Result<(ManifestAt, Option<Extent>)> {
        let (at, extent) = self.place_manifest(guard, manifest, purpose)?;
        match self.values.sync() {
            Ok(()) => Ok((at, extent)),
            Err(e) => {
                extent.into_iter().for_each(|extent| self.put_aside(guard, extent));
                Err(e)
            }
        }
    }

    /// Room in which no manifest came to stand is the spare, if there is none.
    fn put_aside(&self, guard: &mut Checkpoint, extent: Extent) {
        if guard.spare.is_none() && self.room.is_tight() {
            guard.spare = Some(extent);
        } else {
            self.space.free(extent);
        }
    }

    /// Nothing is kept aside any more.
    pub(super) fn free_spare(&self) {
        if let Some(spare) = self.checkpoint.lock().spare.take() {
            self.space.free(spare);
        }
    }

    /// Room of so many bytes for a manifest: the spare, if it is large enough. The last one of a handle takes
    /// no more than it needs, if there is such a place.
    fn manifest_room(&self, guard: &mut Checkpoint, len: u64, purpose: Purpose) -> Result<Extent> {
        let taken = || self.room.take(len, len, WRITING_MANIFEST);
        let fits = |spare: &mut Extent| spare.len >= len;
        if purpose == Purpose::Close {
            return taken().or_else(|e| guard.spare.take_if(fits).ok_or(e));
        }
        guard.spare.take_if(fits).map_or_else(taken, Ok)
    }

    /// Keeps room for the next manifest, which has about `bytes`, if the disk is nearly full: twice as much
    /// if there is any, or as much as was kept until now or is free by now, which is `old`. It is as near to
    /// the file's beginning as it can be.
    fn keep_spare(&self, guard: &mut Checkpoint, old: Option<Extent>, bytes: u64, purpose: Purpose) {
        let is_wanted = purpose != Purpose::Close && self.room.is_tight();
        let wanted = (2 * bytes).max(SPARE_BYTES_MIN);
        let kept = guard.spare.take().into_iter().chain(old);
        let most = kept.map(|extent| {
            self.space.free(extent);
            extent.len
        });
        let most = most.max().unwrap_or(0);
        if is_wanted {
            // Flushes come first.
            let has_room =
                self.room.bytes() >= self.flush_need() + self.reserve_bytes() / SPARED_PART + wanted;
            let lens = [if has_room { wanted } else { 0 }, most.min(wanted)];
            let mut lens = lens.into_iter().filter(|&len| len > 0);
            guard.spare = lens.find_map(|len| self.room.take(len, len, WRITING_MANIFEST).ok());
        }
    }

    /// Room that is kept aside goes where there is some nearer to the file's beginning.
    pub(super) fn lower_spare(&self) {
        let mut guard = self.checkpoint.lock();
        if let Some(spare) = guard.spare.take() {
            self.space.free(spare);
            guard.spare = self.room.take(spare.len, spare.len, WRITING_MANIFEST).ok();
        }
    }

    /// Writes the manifest where no checkpoint has one, unless it fits the superblock.
    fn place_manifest(
        &self,
        guard: &mut Checkpoint,
        manifest: &Manifest,
        purpose: Purpose,
    ) -> Result<(ManifestAt, Option<Extent>)> {
        let bytes = manifest.encode();
        if bytes.len() <= INLINE_BYTES_MAX {
            return Ok((ManifestAt::Inline(bytes), None));
        }
        let len = align_up(bytes.len() as u64);
        let extent = self.manifest_room(guard, len, purpose)?;
        let (sum, n) = (crc(0, &bytes), u32_of(bytes.len()));
        let mut padded = bytes;
        padded.resize(usize_of64(len), 0);
        self.file.write_at(&padded, extent.offset).map_err(|e| {
            self.put_aside(guard, extent);
            Error::io(WRITING_MANIFEST, e)
        })?;
        Ok((ManifestAt::Extent { offset: extent.offset, len: n, crc: sum }, Some(extent)))
    }

    /// Gives the extent of the manifest before, which is needless then.
    fn write_checkpoint(
        &self,
        guard: &mut Checkpoint,
        at: ManifestAt,
        extent: Option<Extent>,
    ) -> Result<Option<Extent>> {
        let old = std::mem::replace(&mut guard.manifest, extent);
        self.sync_checkpoint()?;
        let number = guard.number + 1;
        let block = Superblock {
            file_id: self.store.file_id,
            lineage: self.store.lineage,
            number,
            hash_seed: self.hash_seed,
            manifest: at,
        }
        .encode();
        self.file.write_durable_at(&block, 0).map_err(|e| Error::io("writing the superblock", e))?;
        guard.number = number;
        self.file.write_at(&block, ALIGN_BYTES).map_err(|e| Error::io("writing the superblock", e))?;
        Ok(old)
    }
}

fn level_info(level: &Arc<Level>) -> LevelInfo {
    LevelInfo { newest: level.newest, runs: level.runs.iter().map(|r| r.info.clone()).collect() }
}
