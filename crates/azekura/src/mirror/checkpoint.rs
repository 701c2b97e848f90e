//! Shipping a checkpoint: what the mirror lacks of its extents, and the frames that it knows to be durable.
//!
//! These frames are written before the superblock that needs them. Until it is there, who opens the mirror
//! finds them as the log of the checkpoint before. That is right if they were written while that one was the
//! newest. If they know of one in between, the chain is closed first (`seal`): else a table might be seen
//! with the name that it had before, and with commits that came after.

use super::chain::{Arrival, LogReader};
use super::dest::{Dest, Going, Stop};
use super::going::{Mirror, Told};
use super::named::{common_segments, pieces, reach};
use super::places::goal_of;
use super::source::MirrorSource;
use crate::base::error::{Error, Result};
use crate::format::manifest::Manifest;
use crate::format::point::PartId;
use crate::format::superblock::{Role, Superblock};

impl Mirror {
    /// Brings the mirror to a newer checkpoint.
    pub(super) fn ship_checkpoint(&mut self, block: Superblock, told: Told<'_>) -> Going<()> {
        let pin = self.source.pin(block.number)?;
        if self.source.newest()?.as_ref() != Some(&block) {
            return Err(Stop::Overtaken);
        }
        // Until all is done. What was copied of value segments is sure as long as something is pinned.
        let was_doubtful = std::mem::replace(&mut self.is_doubtful, true);
        self.ship_pinned(&block, was_doubtful, told)?;
        self.is_doubtful = false;
        self.pins.insert(block.number, pin);
        self.let_go()?;
        self.gauge.goes_on();
        self.note_lag();
        Ok(())
    }

    fn ship_pinned(&mut self, block: &Superblock, was_doubtful: bool, told: Told<'_>) -> Going<()> {
        let named = self.source.manifest(block);
        let (manifest, extent) = self.unless_overtaken(block.number, named)?;
        self.log = None;
        self.prepare(block, &manifest, was_doubtful)?;
        let is_good = |source: &MirrorSource| source.honours(block);
        let pieces = pieces(&manifest);
        let ends = pieces.iter().map(|p| p.offset + p.bytes).chain(extent.iter().map(|e| e.end()));
        let reach = reach(&manifest);
        let end = ends.max().unwrap_or(0).max(reach);
        let dest = self.dest()?;
        dest.next = Some(super::spans::Spans::default());
        dest.reach(end)?;
        let lacking: u64 = pieces.iter().flat_map(|p| dest.copied.lacks(p)).map(|p| p.bytes).sum();
        let behind = manifest.flushed_seq.saturating_sub(dest.commit);
        let common = common_segments(&dest.manifest, &manifest);
        self.gauge.lacks(behind, lacking);
        for piece in &pieces {
            if matches!(piece.part, PartId::Values(id) if !common.contains(&id)) {
                self.copy(piece, &is_good, told)?;
            } else {
                self.copy_or_move(piece, &is_good, told)?;
            }
            self.dest()?.claim(piece.offset, piece.bytes);
        }
        if let Some(extent) = extent {
            let bytes = self.source.read(extent.offset, extent.len);
            if !is_good(&self.source)? {
                return Err(Stop::Overtaken);
            }
            let dest = self.dest()?;
            dest.put_bytes(&bytes?, extent.offset)?;
            dest.claim(extent.offset, extent.len);
        }
        let (log, commit, reach) = self.ship_named(block, &manifest, reach, told)?;
        self.finish(block, manifest, log, commit, reach)
    }

    /// The superblock, when all else is in place.
    fn finish(
        &mut self,
        block: &Superblock,
        manifest: Manifest,
        mut log: LogReader,
        commit: u64,
        reach: u64,
    ) -> Going<()> {
        let before = self.old.as_ref().map_or(0, |old| old.commit);
        let dest = self.dest()?;
        let before = dest.commit.max(before);
        if commit < before {
            let detail = format!("the source has commits up to {commit}, and its mirror up to {before}");
            return Err(Error::Invalid { detail }.into());
        }
        let mut open = manifest.logs.iter().filter(|log| log.end_frame == u64::MAX);
        open.try_for_each(|log| dest.clear_tail(log))?;
        let own = Superblock { role: Role::Mirror, ..block.clone() };
        dest.publish(own, manifest.clone(), commit)?;
        dest.places.keep(&manifest, reach);
        dest.copied.keep_values(|id, piece| log.has_placed(id, piece));
        for open in manifest.logs.iter().filter(|log| log.end_frame == u64::MAX) {
            dest.vouch(open.chain)?;
        }
        log.forget_before();
        self.log = Some(log);
        self.is_end_checked = false;
        Ok(())
    }

    /// Says which readers of the mirror are not honoured any more, as the source has done, and forgets what
    /// may have become something else.
    fn prepare(&mut self, block: &Superblock, manifest: &Manifest, was_doubtful: bool) -> Result<()> {
        let (number, revoked) = (self.number(), block.pins.revoked());
        let is_sure = !was_doubtful && self.has_kept(block);
        let dest = self.dest()?;
        if dest.states.keys().any(|state| *state != number && revoked.contains(state)) {
            dest.revoke(&revoked)?;
        }
        if !is_sure {
            let common = common_segments(&dest.manifest, manifest);
            dest.copied.keep_values(|id, _| common.contains(&id));
        }
        Ok(())
    }

    /// Whether a pin has kept what the newest state needs, up to this checkpoint. The state's own superblock
    /// says whether its pins may be revoked: those of a writer without limits say nothing of pins any more.
    fn has_kept(&self, block: &Superblock) -> bool {
        let own = self.dest.as_ref().and_then(|dest| dest.block.as_ref());
        own.is_some_and(|own| {
            let is_honoured = own.pins.revocable_from == 0 || block.pins.honoured_from <= own.number;
            self.pins.contains_key(&own.number) && is_honoured
        })
    }

    /// Whether a pin keeps what the newest state needs, whatever the source does.
    fn is_kept(&self) -> bool {
        let own = self.dest.as_ref().and_then(|dest| dest.block.as_ref());
        own.is_some_and(|own| own.pins.revocable_from == 0 && self.pins.contains_key(&own.number))
    }

    /// Ships the frames that a manifest knows to be durable, and what belongs to those that have come
    /// already. Gives the newest commit, and how far the segments reach.
    fn ship_named(
        &mut self,
        block: &Superblock,
        manifest: &Manifest,
        reach: u64,
        told: Told<'_>,
    ) -> Going<(LogReader, u64, u64)> {
        let is_good = |source: &MirrorSource| source.honours(block);
        let mut log = LogReader::new(block.file_id, manifest);
        // Values that are needed no more are kept by its pin, unless that may be revoked.
        let is_kept = self.is_kept();
        let dest = self.dest()?;
        if dest.block.is_some() {
            log = log.after(&dest.manifest);
        }
        let (mut commit, mut reach) = (manifest.flushed_seq, reach);
        loop {
            let file_len = self.source.len()?;
            let read = log.read(self.source.log.as_ref(), file_len);
            let any = self.unless_overtaken(block.number, read)?;
            let places = &self.dest()?.places;
            let batch = log.take_below(|chain| places.durable_below(chain));
            if batch.is_empty() {
                if log.has_below(|chain| places.durable_below(chain)) {
                    return Ok((log, commit, reach));
                }
                if !any {
                    let checked = log.check(self.source.log.as_ref()).and_then(|()| missing());
                    self.unless_overtaken(block.number, checked)?;
                }
            }
            self.ship_values(&batch, &is_good, is_kept, told)?;
            if !is_good(&self.source)? {
                return Err(Stop::Overtaken);
            }
            if self.dest()?.must_be_sealed(&batch) {
                self.seal(block.number - 1)?;
            } else if !is_kept {
                self.check_shown(&batch)?;
            }
            self.ship_frames(&batch)?;
            commit = batch.iter().filter_map(|arrival| arrival.commit).fold(commit, u64::max);
            reach = batch.iter().filter_map(goal_of).map(|goal| goal.end()).fold(reach, u64::max);
        }
    }

    /// Closes the chains of the newest state where they end in the mirror, by a superblock with a number
    /// that lies between the newest and the one to come.
    fn seal(&mut self, number: u64) -> Going<()> {
        let (own, end) = (self.number(), self.source.len()?);
        let pin = self.pins.get(&own).cloned();
        let dest = self.dest()?;
        let Some(block) = dest.block.clone().filter(|_| number > own) else { return Err(Stop::Taken) };
        let mut manifest = dest.manifest.clone();
        for log in manifest.logs.iter_mut().filter(|log| log.end_frame == u64::MAX) {
            let end = dest.places.at(log.chain).map_or(log.first_frame, |at| at.end.max(log.first_frame));
            (log.end_frame, log.durable_below) = (end, end);
        }
        let spans = dest.states.get(&own).cloned().unwrap_or_default();
        let next = dest.next.replace(spans);
        let at = dest.place_manifest(&manifest, end)?;
        let commit = dest.commit;
        dest.publish(Superblock { number, manifest: at, ..block }, manifest, commit)?;
        dest.next = next;
        if let Some(pin) = pin {
            self.pins.insert(number, pin);
        }
        Ok(())
    }
}

/// What a manifest knows to be durable cannot be read.
fn missing() -> Result<()> {
    Err(Error::corrupt("log", 0, "frames are missing that were durable"))
}

impl Dest {
    /// Whether frames would be found as part of a state to which they do not belong.
    fn must_be_sealed(&self, batch: &[Arrival]) -> bool {
        let is_newer = |arrival: &Arrival| {
            let frame = &arrival.placed.frame;
            frame.checkpoint > self.number() && frame.number >= self.places.durable_below(arrival.chain)
        };
        self.block.is_some() && batch.iter().any(|arrival| is_newer(arrival) && self.is_open(arrival.chain))
    }
}
