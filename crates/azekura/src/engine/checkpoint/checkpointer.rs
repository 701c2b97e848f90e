//! The checkpointer: what the newest checkpoint named, and where the next manifest and superblocks go.
//!
//! It knows the file and its room, and neither tables nor log: `checkpoint.rs` tells it what to write.

use super::Purpose;
use crate::base::checksum::crc;
use crate::base::clock::Clock;
use crate::base::codec::{u32_of, usize_of64};
use crate::base::error::{Error, Result};
use crate::base::fault::fault;
use crate::base::limits::{ALIGN_BYTES, align_up};
use crate::base::sync::{Instant, Mutex, MutexGuard, Rank};
use crate::engine::checkpoint::OldLog;
use crate::engine::found::Found;
use crate::format::manifest::Manifest;
use crate::format::superblock::{
    INLINE_BYTES_MAX, ManifestAt, PLAIN_VERSION, PinRules, Role, Superblock, WORDS_VERSION,
};
use crate::run::Run;
use crate::space::{Extent, PinLimits, Room};
use crate::storage::{File, pins_of_others, without};
use std::ops::Range;
use std::sync::Arc;

const WRITING_MANIFEST: &str = "writing the manifest";
/// Room for the next manifest is twice what the last one took, and no less.
const SPARE_BYTES_MIN: u64 = 16 << 10;

/// Writes checkpoints.
pub(crate) struct Checkpointer {
    file: Arc<dyn File>,
    room: Arc<Room>,
    file_id: u64,
    lineage: u64,
    hash_seed: u64,
    newest: Mutex<Checkpoint>,
    /// What followers may keep at most.
    limits: PinLimits,
    clock: Arc<Clock>,
    /// What the state has dropped and the newest durable checkpoint may still name.
    pending_free: Mutex<Vec<PendingFree>>,
}

/// What the checkpoint lock guards.
pub(crate) struct Checkpoint {
    /// The number of the newest durable superblock.
    pub(in crate::engine) number: u64,
    /// The extent of its manifest, if it has one.
    pub(in crate::engine) manifest: Option<Extent>,
    /// Room for the next one. On a nearly full disk what is free may be in small pieces. And without a
    /// checkpoint nothing that was merged gives its room back.
    pub(in crate::engine) spare: Option<Extent>,
    /// Chains of earlier handles, until a flush has made them needless.
    pub(in crate::engine) old_logs: Vec<OldLog>,
    /// The state's `flushed_seq` when it was written.
    pub(in crate::engine) flushed_seq: u64,
    /// Whether it named no log chain.
    pub(in crate::engine) clean: bool,
    /// See `Manifest::version`.
    pub(in crate::engine) version: u32,
    /// The number that was found when the file was opened.
    pub(in crate::engine) opened: u64,
    /// Which pins are honoured, as its superblock says.
    pins: PinRules,
    /// Checkpoints whose pins are not honoured.
    revoked: Range<u64>,
}

impl Checkpoint {
    /// The one that opening has found.
    pub(in crate::engine) fn found(found: &Found) -> Checkpoint {
        Checkpoint {
            number: found.block.number,
            manifest: found.extent,
            spare: None,
            old_logs: Vec::new(),
            flushed_seq: found.manifest.flushed_seq,
            version: found.manifest.version(),
            clean: found.manifest.logs.is_empty(),
            opened: found.block.number,
            pins: found.block.pins,
            revoked: found.block.pins.revoked(),
        }
    }
}

/// What the state has dropped and the newest checkpoint, or the log after it, may still name.
pub(in crate::engine) enum PendingFree {
    /// A run, and what of it is free once no checkpoint names it.
    Run { run: Arc<Run>, extents: Vec<Extent> },
    /// What has chunks, or value segments to which only the log still refers.
    Memory { _holder: Arc<dyn Send + Sync> },
}

impl PendingFree {
    /// All extents of the run go.
    pub(in crate::engine) fn whole(run: Arc<Run>) -> PendingFree {
        PendingFree::Run { extents: run.info.extents.clone(), run }
    }

    /// Only these extents go. The rest lives on in the run's successor.
    pub(in crate::engine) fn parts(run: Arc<Run>, extents: Vec<Extent>) -> PendingFree {
        PendingFree::Run { run, extents }
    }

    /// What an earlier state, or a table of one, had in memory.
    pub(in crate::engine) fn memory(holder: Arc<impl Send + Sync + 'static>) -> PendingFree {
        PendingFree::Memory { _holder: holder }
    }
}

impl Checkpointer {
    pub(in crate::engine) fn new(
        file: Arc<dyn File>,
        room: Arc<Room>,
        found: &Found,
        limits: PinLimits,
        clock: Arc<Clock>,
    ) -> Checkpointer {
        Checkpointer {
            file,
            room,
            file_id: found.block.file_id,
            lineage: found.block.lineage,
            hash_seed: found.block.hash_seed,
            newest: Mutex::ranked(Rank::Checkpoint, Checkpoint::found(found)),
            limits,
            clock,
            pending_free: Mutex::new(Vec::new()),
        }
    }

    /// No checkpoint is written while the result lives.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Checkpoint> {
        self.newest.lock()
    }

    /// The same, if no checkpoint is being written.
    pub(in crate::engine) fn try_lock(&self) -> Option<MutexGuard<'_, Checkpoint>> {
        self.newest.try_lock()
    }

    /// The chains of logs that opening has found.
    pub(in crate::engine) fn found_logs(&mut self, logs: Vec<OldLog>) {
        self.newest.get_mut().old_logs = logs;
    }

    /// What goes when no durable checkpoint names it any more.
    pub(in crate::engine) fn free_later(&self, dropped: impl IntoIterator<Item = PendingFree>) {
        self.pending_free.lock().extend(dropped);
    }

    /// What has gone since the last checkpoint. The next one lets go of it.
    pub(in crate::engine) fn take_pending(&self) -> Vec<PendingFree> {
        std::mem::take(&mut *self.pending_free.lock())
    }

    /// The extents that the next checkpoint frees.
    pub(crate) fn pending_extents(&self) -> Vec<Extent> {
        let pending = self.pending_free.lock();
        let runs = pending.iter().filter_map(|old| match old {
            PendingFree::Run { extents, .. } => Some(extents),
            PendingFree::Memory { .. } => None,
        });
        runs.flatten().copied().collect()
    }

    /// Whether a checkpoint would free something.
    pub(in crate::engine) fn has_pending(&self) -> bool {
        !self.pending_free.lock().is_empty()
    }

    /// Whether the newest checkpoint names no log: all is in runs.
    pub(in crate::engine) fn is_clean(&self) -> bool {
        self.lock().clean
    }

    /// Whether a manifest of its own ends the file, and there is a hole for the next.
    pub(in crate::engine) fn manifest_ends_the_file(&self) -> bool {
        let manifest = self.lock().manifest;
        manifest
            .is_some_and(|m| m.end() == self.room.space.end() && self.room.space.fits_below(m.len, m.offset))
    }

    /// What the newest manifest takes of the file.
    pub(in crate::engine) fn manifest_bytes(&self) -> u64 {
        self.lock().manifest.map_or(ALIGN_BYTES, |m| m.len)
    }

    /// Makes durable what a checkpoint names.
    fn sync(&self) -> Result<()> {
        if fault!("skip_sync") {
            return Ok(());
        }
        self.file.sync_data().map_err(|e| Error::io("syncing a checkpoint", e))
    }

    /// Keeps an extent that was taken for a manifest and not used, if the disk is nearly full and none is
    /// kept yet.
    pub(super) fn put_aside(&self, guard: &mut Checkpoint, extent: Extent) {
        if guard.spare.is_none() && self.room.is_tight() {
            guard.spare = Some(extent);
        } else {
            self.room.space.free(extent);
        }
    }

    /// Nothing is kept aside any more.
    pub(in crate::engine) fn free_spare(&self) {
        if let Some(spare) = self.lock().spare.take() {
            self.room.space.free(spare);
        }
    }

    /// Room of so many bytes for a manifest: the spare, if it is large enough. A handle's last manifest
    /// takes no more than it needs, if there is such a place.
    fn manifest_room(&self, guard: &mut Checkpoint, len: u64, purpose: Purpose) -> Result<Extent> {
        let taken = || self.room.take(len, len, WRITING_MANIFEST);
        let fits = |spare: &mut Extent| spare.len >= len;
        if purpose == Purpose::Close {
            return taken().or_else(|e| guard.spare.take_if(fits).ok_or(e));
        }
        guard.spare.take_if(fits).map_or_else(taken, Ok)
    }

    /// Keeps room for the next manifest, which has about `bytes`, if the disk is nearly full. That is twice
    /// as much if there is so much beside what `others` need. Else it is as much as was kept until now, or
    /// as the last manifest had, whose room `old` is free by now. It is as near to the file's beginning as
    /// it can be.
    pub(super) fn keep_spare(
        &self,
        guard: &mut Checkpoint,
        old: Option<Extent>,
        bytes: u64,
        purpose: Purpose,
        others: impl FnOnce() -> u64,
    ) {
        let is_wanted = purpose != Purpose::Close && self.room.is_tight();
        let wanted = (2 * bytes).max(SPARE_BYTES_MIN);
        let kept = guard.spare.take().into_iter().chain(old);
        let most = kept.map(|extent| {
            self.room.space.free(extent);
            extent.len
        });
        let most = most.max().unwrap_or(0);
        if is_wanted {
            let has_room = self.room.bytes() >= others() + wanted;
            let lens = [if has_room { wanted } else { 0 }, most.min(wanted)];
            let mut lens = lens.into_iter().filter(|&len| len > 0);
            guard.spare = lens.find_map(|len| self.room.take(len, len, WRITING_MANIFEST).ok());
        }
    }

    /// Moves the room that is kept aside nearer to the file's beginning, if there is some.
    pub(in crate::engine) fn lower_spare(&self) {
        let mut guard = self.lock();
        if let Some(spare) = guard.spare.take() {
            self.room.space.free(spare);
            guard.spare = self.room.take(spare.len, spare.len, WRITING_MANIFEST).ok();
        }
    }

    /// Writes the manifest where no checkpoint has one, unless it fits the superblock.
    pub(super) fn place_manifest(
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

    /// Asks which checkpoints others have pinned. What no pin means is free. REQUIRES: a follower finds the
    /// newest superblock by now.
    pub(in crate::engine) fn find_pins(&self, guard: &Checkpoint) {
        // After an error any checkpoint may be pinned, as far as is known.
        let pins = pins_of_others(self.file.as_ref()).ok().map(|pins| without(pins, &guard.revoked));
        self.room.space.pins_found(guard.number, pins.as_deref(), Instant::now());
    }

    /// Which pins are honoured once checkpoint `number` is there, so that the others keep what they may keep.
    /// The superblock says so before anything of that is used again.
    fn pin_rules(&self, guard: &Checkpoint, number: u64) -> PinRules {
        let honoured_from = guard.pins.honoured_from;
        if !self.limits.are_set() {
            return PinRules { revocable_from: 0, honoured_from };
        }
        let revocable_from = if guard.pins.revocable_from == 0 { number } else { guard.pins.revocable_from };
        PinRules { revocable_from, honoured_from: self.to_honour(guard, revocable_from).max(honoured_from) }
    }

    /// Pins of this checkpoint and of later ones may keep what they keep.
    fn to_honour(&self, guard: &Checkpoint, revocable_from: u64) -> u64 {
        if self.room.space.kept_bytes() == 0 && self.limits.age_max.is_none() {
            return 0;
        }
        // Some may have gone.
        self.find_pins(guard);
        self.room.space.honoured_from(revocable_from, self.limits)
    }

    /// Whether a checkpoint would revoke pins, or say for the first time that they may be revoked.
    pub(in crate::engine) fn has_to_revoke(&self) -> bool {
        if !self.limits.are_set() {
            return false;
        }
        let guard = self.lock();
        let revocable_from = guard.pins.revocable_from;
        revocable_from == 0 || self.to_honour(&guard, revocable_from) > guard.pins.honoured_from
    }

    /// Makes a manifest that stands in its place the newest. Gives the extent of the one before, which is
    /// needless then. `check` fails if a sync of another thread has failed: that may have forgotten what
    /// this one's should have made safe.
    pub(super) fn publish(
        &self,
        guard: &mut Checkpoint,
        at: ManifestAt,
        extent: Option<Extent>,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<Option<Extent>> {
        let old = std::mem::replace(&mut guard.manifest, extent);
        self.sync().and_then(|()| check())?;
        // A pinned number was used for another checkpoint.
        let number = guard.number.max(self.room.space.highest_pin()) + 1;
        let Checkpointer { file_id, lineage, hash_seed, .. } = *self;
        let pins = self.pin_rules(guard, number);
        let said = if fault!("revoke_silently") { PinRules { honoured_from: 0, ..pins } } else { pins };
        let version = guard.version.max(if self.clock.is_used() { WORDS_VERSION } else { PLAIN_VERSION });
        let role = Role::Database;
        let block =
            Superblock { file_id, lineage, number, hash_seed, manifest: at, pins: said, version, role }
                .encode();
        self.file.write_durable_at(&block, 0).map_err(|e| Error::io("writing the superblock", e))?;
        guard.number = number;
        guard.pins = pins;
        if !pins.revoked().is_empty() {
            guard.revoked = pins.revoked();
        }
        self.find_pins(guard);
        self.file.write_at(&block, ALIGN_BYTES).map_err(|e| Error::io("writing the superblock", e))?;
        Ok(old)
    }
}
