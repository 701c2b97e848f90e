//! Moving the file's tail into its holes: whatever ends highest, a run, a value segment or the log.
//!
//! Runs and value segments are named by their ids, so that they can stand in any number of extents, and parts
//! of them are copied as they are. The copy is named by a checkpoint; only then may what was copied be used
//! again, when nobody reads it any more. The log goes on in a lower segment; the others of its chain go when
//! what is in them is in runs.

use super::Engine;
use super::checkpoint::{PendingFree, Purpose, ValueMove};
use super::state::{Level, State};
use crate::base::codec::usize_of64;
use crate::base::error::{Error, Result};
use crate::base::limits::{PAGE_BYTES, SEGMENT_BYTES};
use crate::format::manifest::RunInfo;
use crate::run::Run;
use crate::space::Extent;
use crate::values::Segment;
use std::sync::Arc;

/// Parts that are smaller are not worth a place of their own; only where larger ones have left too many
/// holes.
pub(super) const PARTS_BYTES_MIN: [u64; 2] = [4 * PAGE_BYTES as u64, PAGE_BYTES as u64];
/// So much is moved by one checkpoint, or less.
const STEP_BYTES_MAX: u64 = 64 << 20;

/// What may be moved, so that moving ends however fast others write, and whoever holds what was moved.
pub(super) struct Allowance {
    /// One of `PARTS_BYTES_MIN`.
    pub(super) part_min: u64,
    bytes: u64,
    /// Of that, by the checkpoint to come.
    step: u64,
    logs: u32,
    /// Of runs, moved since the last checkpoint.
    unnamed: u64,
}

/// The log is written to meanwhile, and may stand at the end again at once.
const LOG_MOVES_MAX: u32 = 3;

impl Allowance {
    pub(super) fn new(bytes: u64) -> Allowance {
        Allowance {
            part_min: PARTS_BYTES_MIN[0],
            bytes,
            step: STEP_BYTES_MAX,
            logs: LOG_MOVES_MAX,
            unnamed: 0,
        }
    }
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

impl Engine {
    /// Moves what ends the file, or a part of it, into a hole; false if there is none for it, or as much was
    /// moved as may be. REQUIRES: merges are held back.
    pub(super) fn move_tail(&self, left: &mut Allowance) -> Result<bool> {
        let moved = self.move_last(left)?;
        if moved || left.unnamed == 0 {
            return Ok(moved);
        }
        // There may be a hole where they stood.
        self.name_moved(left)?;
        Ok(true)
    }

    /// Runs that were moved are named by a checkpoint, so that what they have left is free.
    pub(super) fn name_moved(&self, left: &mut Allowance) -> Result<()> {
        let is_due = std::mem::take(&mut left.unnamed) > 0;
        if is_due { self.checkpoint(Purpose::Plain) } else { Ok(()) }
    }

    fn move_last(&self, left: &mut Allowance) -> Result<bool> {
        let state = self.state.load_full();
        let run = last_run(&state);
        let values = self.last_values();
        let log = self.log.tail();
        let run_at = run.as_ref().map(|r| r.extent.offset);
        let values_at = values.as_ref().map(|v| v.extents[v.n].offset);
        match (run, values) {
            _ if log > run_at.max(values_at) => self.move_log(left),
            (_, Some(values)) if values_at > run_at => self.move_values(values, left),
            (Some(run), _) => self.move_run(&run, left),
            (None, _) => Ok(false),
        }
    }

    fn last_values(&self) -> Option<LastValues> {
        // What the file was cut of is damaged, and may be as long as a forged manifest says.
        let whole = self.values.whole_segments().into_iter().filter(|s| !s.is_cut());
        let all = whole.map(|segment| {
            let extents = segment.place().extents().to_vec();
            let n = highest(&extents);
            LastValues { segment, extents, n }
        });
        all.max_by_key(|v| v.extents[v.n].offset)
    }

    fn move_log(&self, left: &mut Allowance) -> Result<bool> {
        let Some(logs) = left.logs.checked_sub(1) else { return Ok(false) };
        left.logs = logs;
        let moved = self.log.move_down()?;
        if moved {
            self.checkpoint(Purpose::Plain)?;
        }
        Ok(moved)
    }

    fn move_run(&self, last: &LastRun<'_>, left: &mut Allowance) -> Result<bool> {
        let &LastRun { table, level, place, run, n, extent } = last;
        let copied = self.copy_parts(extent, left)?;
        if copied.is_empty() {
            return Ok(false);
        }
        let mut parts = level.runs.clone();
        let info = RunInfo { extents: relocated(&run.info.extents, n, &copied), ..run.info.clone() };
        let replaced = self.open_run(info).and_then(|next| {
            parts[place] = Arc::new(next);
            let fresh =
                Arc::new(Level::new(parts.clone(), level.updates, level.newest)?.joined_by(level.joined));
            self.replace_levels(table, std::slice::from_ref(level), &[Some(fresh)], Vec::new())
        });
        if !matches!(replaced, Ok(true)) {
            // Somebody was faster, or the copy cannot be read; nobody has seen it.
            self.free_copies(&copied);
            return replaced.map(|_| true);
        }
        run.succeeded_by(parts.swap_remove(place));
        self.pending_free.lock().push(PendingFree::parts(run.clone(), copied.iter().map(|p| p.0).collect()));
        left.unnamed += copied.iter().map(|p| p.0.len).sum::<u64>();
        // Many small runs are named together: a manifest may be longer than all of them.
        if left.unnamed >= self.manifest_bytes() {
            self.name_moved(left)?;
        }
        Ok(true)
    }

    fn move_values(&self, last: LastValues, left: &mut Allowance) -> Result<bool> {
        let LastValues { segment, extents, n } = last;
        let copied = self.copy_parts(extents[n], left)?;
        if copied.is_empty() {
            return Ok(false);
        }
        let from = copied.iter().map(|p| p.0).collect();
        let step = ValueMove { segment, extents: relocated(&extents, n, &copied), left: from };
        let done = self.checkpoint_move(&step);
        // Unless it is known that no checkpoint names the copy, the handle is poisoned.
        if done.is_err() && self.poison.check().is_ok() {
            self.free_copies(&copied);
        }
        done.map(|()| true)
    }

    fn free_copies(&self, copied: &[(Extent, Extent)]) {
        copied.iter().for_each(|p| self.space.free(p.1));
    }

    /// Copies the end of an extent, or all of it, to as many holes as it takes: what was copied and where to,
    /// from the end on.
    fn copy_parts(&self, extent: Extent, left: &mut Allowance) -> Result<Vec<(Extent, Extent)>> {
        let mut copied = Vec::new();
        let mut rest = extent;
        while rest.len > 0 && extent.len - rest.len < STEP_BYTES_MAX {
            left.step = STEP_BYTES_MAX - (extent.len - rest.len);
            match self.copy_part(rest, left) {
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

    /// Copies the end of an extent to a lower place: what was copied, and where to.
    fn copy_part(&self, extent: Extent, left: &mut Allowance) -> Result<Option<(Extent, Extent)>> {
        let at_most = |bytes| part_of(extent.len, bytes);
        let mut len = at_most(left.bytes.min(left.step));
        while len > 0 {
            if let Some(to) = self.space.alloc_below(len, extent.offset) {
                let from = Extent { offset: extent.offset + extent.len - len, len };
                let copied = self.copy(from, to);
                if copied.is_err() {
                    self.space.free(to);
                }
                left.bytes -= len;
                return copied.map(|()| Some((from, to)));
            }
            len = if len > left.part_min { at_most(len / 2) } else { 0 };
        }
        Ok(None)
    }

    fn copy(&self, from: Extent, to: Extent) -> Result<()> {
        let mut buf = vec![0; SEGMENT_BYTES.min(usize_of64(from.len))];
        let mut at = 0;
        while at < from.len {
            let n = usize_of64((from.len - at).min(buf.len() as u64));
            let part = &mut buf[..n];
            self.file
                .read_at(part, from.offset + at)
                .map_err(|e| crate::storage::read_error(e, from.offset + at))?;
            self.store
                .bulk
                .write_at(part, to.offset + at)
                .map_err(|e| Error::io("moving the end of the file", e))?;
            self.file.write_back(to.offset + at, n as u64);
            at += n as u64;
        }
        Ok(())
    }
}

/// How much of an extent's end may be moved if that is to be no more than `bytes`: what is left is whole
/// pages, and the last part takes what the extent has beyond them.
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
    use super::{PAGE_BYTES, part_of};

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
