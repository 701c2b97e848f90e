//! Moving the file's tail into its holes. The tail is what ends highest: a run, a value segment or the log.
//!
//! References name runs and value segments by their ids. So these can stand in any number of extents, and
//! parts of them are copied as they are. A checkpoint names the copy. After that the place that was copied
//! is free, as soon as nobody reads there. The log goes on in a lower segment. The other segments of its
//! chain go when their commits are in runs.

use super::checkpoint::{Checkpoints, PendingFree, ValueMove};
use super::compaction::install::Installer;
use super::compaction::merges::Merges;
use super::compaction::output::Outlet;
use super::state::{Level, State};
use crate::base::codec::usize_of64;
use crate::base::error::{Error, Result};
use crate::base::limits::{PAGE_BYTES, SEGMENT_BYTES};
use crate::base::poison::Poison;
use crate::format::manifest::RunInfo;
use crate::log::Log;
use crate::run::Run;
use crate::space::{Extent, Space};
use crate::values::Segment;
use std::ops::Range;
use std::sync::Arc;

/// Smaller parts are not worth a place of their own. The second size is for where the first has left too many
/// holes.
const PARTS_BYTES_MIN: [u64; 2] = [4 * PAGE_BYTES as u64, PAGE_BYTES as u64];
/// Holes may be this part of the rest of the file, and so many bytes.
const LOOSE_PART: u64 = 32;
const LOOSE_BYTES_MIN: u64 = 24 << 10;
/// Idle time also fills fewer holes: from so many bytes on, if they are a larger part than this.
const IDLE_LOOSE_PART: u64 = 1024;
const IDLE_LOOSE_BYTES: u64 = 8 << 20;
/// So much is moved by one checkpoint, or less.
const STEP_BYTES_MAX: u64 = 64 << 20;

/// The log is written to meanwhile, and may stand at the end again at once: it is moved so often at most.
const LOG_MOVES_MAX: u32 = 3;

/// Moves the file's tail. It has an allowance of bytes, so moving ends, however fast others write and
/// whatever readers still hold. REQUIRES: merges are held back while it lives.
pub(super) struct Relocator<'a> {
    installer: Installer<'a>,
    /// The runs and the value segments.
    outlet: Outlet<'a>,
    log: &'a Log,
    space: &'a Space,
    poison: &'a Poison,
    checkpoints: Checkpoints<'a>,
    /// One of `PARTS_BYTES_MIN`.
    part_min: u64,
    /// How many bytes may still be moved.
    bytes: u64,
    /// How much of that may be moved by the next checkpoint.
    step: u64,
    logs: u32,
    /// Bytes of runs that were moved since the last checkpoint.
    unnamed: u64,
    /// Whether readers may come to what was moved.
    for_readers: bool,
}

/// A run of the state and the highest of its extents.
struct LastRun<'a> {
    table: u32,
    level: &'a Arc<Level>,
    place: usize,
    run: &'a Arc<Run>,
    n: usize,
    extent: Extent,
}

/// A value segment and the highest of its extents.
struct LastValues {
    segment: Arc<Segment>,
    extents: Vec<Extent>,
    n: usize,
}

impl<'a> Relocator<'a> {
    /// Moves up to so many bytes. REQUIRES: merges are held back.
    pub(super) fn new(merges: &Merges<'a>, log: &'a Log, bytes: u64) -> Relocator<'a> {
        Relocator {
            installer: merges.installer,
            outlet: merges.outlet(),
            log,
            space: &merges.store.room.space,
            poison: merges.poison,
            checkpoints: merges.checkpoints,
            part_min: PARTS_BYTES_MIN[0],
            bytes,
            step: STEP_BYTES_MAX,
            logs: LOG_MOVES_MAX,
            unnamed: 0,
            for_readers: true,
        }
    }

    /// The same for a file that is being closed.
    pub(super) fn for_nobody(self) -> Relocator<'a> {
        Relocator { for_readers: false, ..self }
    }

    /// Moves the tail as far down as it goes. `say` is told where the file ends, first and after each step.
    pub(super) fn move_down(&mut self, mut say: impl FnMut(u64) -> Result<()>) -> Result<()> {
        say(self.space.end())?;
        for part_min in PARTS_BYTES_MIN {
            self.part_min = part_min;
            while self.move_tail()? {
                say(self.space.end())?;
            }
        }
        Ok(())
    }

    /// Moves the tail as long as `go_on` says so, and names what was moved.
    pub(super) fn move_while(&mut self, go_on: impl Fn() -> bool) -> Result<()> {
        for part_min in PARTS_BYTES_MIN {
            self.part_min = part_min;
            while go_on() && self.move_tail()? {}
        }
        self.name_moved()
    }

    /// Moves what ends the file, or a part of it, into a hole. False if there is no such hole, or no more
    /// may be moved.
    pub(super) fn move_tail(&mut self) -> Result<bool> {
        let end = self.space.end();
        let moved = self.move_step()?;
        if self.for_readers {
            // It is cut off when all is moved. Until then its memory is wanted for what stays.
            let freed = end.saturating_sub(self.space.end());
            self.outlet.store.room.forget_free(vec![Extent { offset: end - freed, len: freed }]);
        }
        Ok(moved)
    }

    fn move_step(&mut self) -> Result<bool> {
        // What was moved before a failure is named all the same.
        let moved = self.move_last().inspect_err(|_| {
            let _later = self.name_moved();
        })?;
        if moved || self.unnamed == 0 {
            return Ok(moved);
        }
        // There may be a hole where they stood.
        self.name_moved()?;
        Ok(true)
    }

    /// Names the runs that were moved, by a checkpoint. Then the places that they have left are free.
    fn name_moved(&mut self) -> Result<()> {
        let is_due = std::mem::take(&mut self.unnamed) > 0;
        if is_due { self.checkpoints.write() } else { Ok(()) }
    }

    fn move_last(&mut self) -> Result<bool> {
        let state = self.installer.state.load_full();
        let run = last_run(&state);
        let values = self.last_values();
        let log = self.log.tail();
        let run_at = run.as_ref().map(|r| r.extent.offset);
        let values_at = values.as_ref().map(|v| v.extents[v.n].offset);
        match (run, values) {
            _ if log > run_at.max(values_at) => self.move_log(),
            (_, Some(values)) if values_at > run_at => self.move_values(values),
            (Some(run), _) => self.move_run(&run),
            (None, _) => Ok(false),
        }
    }

    fn last_values(&self) -> Option<LastValues> {
        // What was cut off the file is damaged. It may be as long as a forged manifest says.
        let whole = self.outlet.values.whole_segments().into_iter().filter(|s| !s.is_cut());
        let all = whole.map(|segment| {
            let extents = segment.place().extents().to_vec();
            let n = highest(&extents);
            LastValues { segment, extents, n }
        });
        all.max_by_key(|v| v.extents[v.n].offset)
    }

    fn move_log(&mut self) -> Result<bool> {
        let Some(logs) = self.logs.checked_sub(1) else { return Ok(false) };
        self.logs = logs;
        let moved = self.log.move_down()?;
        if moved {
            self.log.wait_for_making()?;
            self.checkpoints.write()?;
        }
        Ok(moved)
    }

    fn move_run(&mut self, last: &LastRun<'_>) -> Result<bool> {
        let &LastRun { table, level, place, run, n, extent } = last;
        let copied = self.copy_parts(extent)?;
        if copied.is_empty() {
            return Ok(false);
        }
        let mut parts = level.runs.clone();
        let info = RunInfo { extents: relocated(&run.info.extents, n, &copied), ..run.info.clone() };
        let replaced = self.outlet.open_run(info).and_then(|next| {
            if self.for_readers {
                next.know_as(run, &moved_bytes(&run.info.extents, n, &copied))?;
            }
            parts[place] = Arc::new(next);
            let fresh =
                Arc::new(Level::new(parts.clone(), level.updates, level.newest)?.joined_by(level.joined));
            self.installer.replace(table, std::slice::from_ref(level), &[Some(fresh)], Vec::new())
        });
        if !matches!(replaced, Ok(true)) {
            // Somebody was faster, or the copy cannot be read, or is not whole. Nobody has seen the copy.
            self.free_copies(&copied);
            return replaced.map(|_| true);
        }
        run.succeeded_by(parts.swap_remove(place));
        let left_behind = copied.iter().map(|p| p.0).collect();
        self.installer.checkpointer.free_later([PendingFree::parts(run.clone(), left_behind)]);
        self.unnamed += copied.iter().map(|p| p.0.len).sum::<u64>();
        // Many small runs are named together: a manifest may be longer than all of them.
        if self.unnamed >= self.installer.checkpointer.manifest_bytes() {
            self.name_moved()?;
        }
        Ok(true)
    }

    fn move_values(&mut self, last: LastValues) -> Result<bool> {
        let LastValues { segment, extents, n } = last;
        let copied = self.copy_parts(extents[n])?;
        if copied.is_empty() {
            return Ok(false);
        }
        let from = copied.iter().map(|p| p.0).collect();
        let step = ValueMove { segment, extents: relocated(&extents, n, &copied), left: from };
        let done = self.checkpoints.write_move(&step);
        // Unless it is known that no checkpoint names the copy, the handle is poisoned.
        if done.is_err() && self.poison.check().is_ok() {
            self.free_copies(&copied);
        }
        done.map(|()| true)
    }

    fn free_copies(&self, copied: &[(Extent, Extent)]) {
        copied.iter().for_each(|p| self.space.free(p.1));
    }

    /// Copies the end of an extent, or all of it, to as many holes as it takes. Gives what was copied and
    /// where to, from the end on.
    fn copy_parts(&mut self, extent: Extent) -> Result<Vec<(Extent, Extent)>> {
        let mut copied = Vec::new();
        let mut rest = extent;
        while rest.len > 0 && extent.len - rest.len < STEP_BYTES_MAX {
            self.step = STEP_BYTES_MAX - (extent.len - rest.len);
            match self.copy_part(rest) {
                Ok(Some(part)) => {
                    rest.len -= part.0.len;
                    copied.push(part);
                }
                Ok(None) => break,
                Err(e) => {
                    self.free_copies(&copied);
                    return Err(e);
                }
            }
        }
        Ok(copied)
    }

    /// Copies the end of an extent to a lower place. Gives what was copied, and where to.
    fn copy_part(&mut self, extent: Extent) -> Result<Option<(Extent, Extent)>> {
        let at_most = |bytes| part_of(extent.len, bytes);
        let mut len = at_most(self.bytes.min(self.step));
        while len > 0 {
            if let Some(to) = self.space.alloc_below(len, extent.offset) {
                let from = Extent { offset: extent.offset + extent.len - len, len };
                let copied = self.copy(from, to);
                if copied.is_err() {
                    self.space.free(to);
                }
                self.bytes -= len;
                return copied.map(|()| Some((from, to)));
            }
            len = if len > self.part_min { at_most(len / 2) } else { 0 };
        }
        Ok(None)
    }

    fn copy(&self, from: Extent, to: Extent) -> Result<()> {
        let store = self.outlet.store;
        let mut buf = vec![0; SEGMENT_BYTES.min(usize_of64(from.len))];
        let mut at = 0;
        while at < from.len {
            let (source, goal) = (from.offset + at, to.offset + at);
            // The parts end at multiples of this, so that they cut no block of `write_settled_at`.
            let to_multiple = SEGMENT_BYTES as u64 - goal % SEGMENT_BYTES as u64;
            let n = usize_of64((from.len - at).min(to_multiple));
            let part = &mut buf[..n];
            store.file.read_at(part, source).map_err(|e| crate::storage::read_error(e, source))?;
            let written = store.bulk.write_settled_at(part, goal);
            written.map_err(|e| Error::io("moving the end of the file", e))?;
            store.file.write_back(goal, n as u64);
            at += n as u64;
        }
        Ok(())
    }
}

/// Whether holes are more than they may be of a file that nobody writes.
pub(super) fn is_loose(space: &Space) -> bool {
    let (taken, free) = space.taken_and_free();
    free > taken / LOOSE_PART + LOOSE_BYTES_MIN
}

/// Whether moving the tail into holes is worth while where there is time for it.
pub(super) fn is_loose_for_idle_time(space: &Space) -> bool {
    let free = space.free_bytes();
    is_loose(space) || free > IDLE_LOOSE_BYTES && free > space.end() / IDLE_LOOSE_PART
}

/// How much of an extent's end may be moved, no more than `bytes`. What is left of it is whole pages: what
/// the extent has beyond them goes with the part.
fn part_of(extent_len: u64, bytes: u64) -> u64 {
    let page = PAGE_BYTES as u64;
    extent_len.saturating_sub(extent_len.saturating_sub(bytes).div_ceil(page) * page)
}

/// The run that stands highest.
fn last_run(state: &State) -> Option<LastRun<'_>> {
    let levels = state.tables.with_runs().flat_map(|t| t.levels.iter().map(move |level| (t.id, level)));
    let runs = levels.flat_map(|(table, level)| {
        level.runs.iter().enumerate().filter(|(_, run)| !run.is_cut()).map(move |(place, run)| {
            let n = highest(&run.info.extents);
            (table, level, place, run, n)
        })
    });
    let found = runs.filter_map(|(table, level, place, run, n)| {
        let extent = *run.info.extents.get(n)?;
        Some(LastRun { table, level, place, run, n, extent })
    });
    found.max_by_key(|r| r.extent.offset)
}

/// Which of some extents stands highest.
fn highest(extents: &[Extent]) -> usize {
    extents.iter().enumerate().max_by_key(|(_, e)| e.offset).map_or(0, |(n, _)| n)
}

/// Which bytes of something were moved, of whose extent `n` these parts have moved, from its end on.
fn moved_bytes(extents: &[Extent], n: usize, parts: &[(Extent, Extent)]) -> Range<u64> {
    let end = extents[..=n].iter().map(|e| e.len).sum::<u64>();
    end - parts.iter().map(|p| p.0.len).sum::<u64>()..end
}

/// The extents of something of whose extent `n` these parts have moved, from its end on.
fn relocated(extents: &[Extent], n: usize, parts: &[(Extent, Extent)]) -> Vec<Extent> {
    let kept = extents[n].len - parts.iter().map(|p| p.0.len).sum::<u64>();
    let kept = (kept > 0).then_some(Extent { len: kept, ..extents[n] });
    let moved = parts.iter().rev().map(|p| p.1);
    let mut out = extents.to_vec();
    out.splice(n..=n, kept.into_iter().chain(moved));
    out
}

#[cfg(test)]
mod tests {
    use super::{Extent, PAGE_BYTES, moved_bytes, part_of, relocated};
    use crate::space::scattered::stretch;

    #[test]
    fn what_was_moved_and_nothing_else_stands_elsewhere() {
        let extents = [(80, 4), (10, 6), (40, 12), (0, 2)].map(|(offset, len)| Extent { offset, len });
        let to = [30, 20, 70].map(|offset| Extent { offset, len: 3 });
        for n in 0..extents.len() {
            for parts in 1..=to.len().min(extents[n].len as usize / 3) {
                let end = extents[n].offset + extents[n].len;
                let from = |i: usize| Extent { offset: end - 3 * (i as u64 + 1), len: 3 };
                let copied: Vec<_> = (0..parts).map(|i| (from(i), to[i])).collect();
                let (moved, after) = (moved_bytes(&extents, n, &copied), relocated(&extents, n, &copied));
                for at in 0..24 {
                    let place = |extents: &[Extent]| stretch(extents, at).unwrap().0;
                    let old = place(&extents);
                    let goal = copied.iter().find(|(from, _)| (from.offset..from.offset + 3).contains(&old));
                    let new = goal.map_or(old, |(from, to)| to.offset + (old - from.offset));
                    assert_eq!(place(&after), new, "byte {at}, {parts} parts of extent {n}");
                    assert_eq!(moved.contains(&at), new != old, "byte {at}, {parts} parts of extent {n}");
                }
            }
        }
    }

    #[test]
    fn a_part_leaves_whole_pages_and_is_never_more_than_allowed() {
        let page = PAGE_BYTES as u64;
        for extent_len in [4096, page, page + 4096, 7 * 4096, 10 * page + 8192] {
            for bytes in [0, 1, 4096, 8192, page - 4096, page, 3 * page, extent_len, u64::MAX] {
                let part = part_of(extent_len, bytes);
                assert!(
                    part <= bytes.min(extent_len) && (extent_len - part).is_multiple_of(page) || part == 0
                );
            }
            assert_eq!(part_of(extent_len, extent_len), extent_len);
        }
    }
}
