//! Giving space back: cutting the file's end, punching holes, and moving the tail down.

use super::Engine;
use super::checkpoint::{Purpose, Retired};
use super::state::SortedRun;
use crate::base::codec::usize_of64;
use crate::base::error::{Error, Result};
use crate::base::limits::{PAGE_BYTES, SEGMENT_BYTES};
use crate::run::Run;
use crate::space::Extent;
use std::sync::Arc;

/// How far a long operation has come, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes handled so far.
    pub done: u64,
    /// Bytes to be handled in all; it may grow as the operation learns more.
    pub total: u64,
}

/// Idle time moves the tail down while holes take more than this part of the file, and this much.
const LOOSE_PART: u64 = 1024;
const LOOSE_BYTES_MIN: u64 = 8 << 20;
/// Holes smaller than this are not worth a call.
const PUNCH_BYTES_MIN: u64 = 64 << 10;

impl Engine {
    /// Cuts free space off the file's end.
    pub(super) fn trim(&self) -> Result<()> {
        self.space.with_end(|end| {
            let len = self.file.len().map_err(|e| Error::io("reading the file's length", e))?;
            if end < len { self.file.set_len(end).map_err(|e| Error::io("shortening the file", e)) } else { Ok(()) }
        })
    }

    /// Rewrites and moves what is needed so that the file is no larger than its contents.
    pub(crate) fn compact(&self, mut progress: impl FnMut(Progress)) -> Result<()> {
        self.check_writable()?;
        self.settle()?;
        self.lock_commit().clear_spares();
        self.values.close_open()?;
        self.drain_values()?;
        let total = self.space.end();
        progress(Progress { done: 0, total });
        let _paused = self.pause_merges();
        while self.move_tail()? {
            self.check_open()?;
            progress(Progress { done: total - self.space.end().min(total), total });
        }
        self.checkpoint(Purpose::Plain)?;
        self.checkpoint(Purpose::Plain)?;
        self.trim()?;
        self.space.with_holes(|hole| {
            if hole.len < PUNCH_BYTES_MIN {
                return Ok(());
            }
            self.file.punch(hole.offset, hole.len).map_err(|e| Error::io("punching a hole", e))
        })?;
        progress(Progress { done: total, total });
        Ok(())
    }

    /// Whether enough of the file is holes that moving its tail into them is worth while.
    pub(super) fn is_loose(&self) -> bool {
        let free = self.space.free_bytes();
        free > LOOSE_BYTES_MIN && free > self.space.end() / LOOSE_PART
    }

    /// Moves the file's tail into its holes as long as these are many and `go_on` says so, and cuts it.
    /// REQUIRES: merges are held back.
    pub(super) fn tighten(&self, go_on: impl Fn() -> bool) -> Result<()> {
        while self.is_loose() && go_on() && !self.stopping() && self.move_tail()? {}
        self.trim()
    }

    /// Rewrites runs whose values stand in mostly dead segments, so that these go.
    fn drain_values(&self) -> Result<()> {
        let sparse = self.sparse_segments();
        if sparse.is_empty() {
            return Ok(());
        }
        let state = self.state.load_full();
        for table in &state.tables {
            let [level] = table.levels.as_slice() else { continue };
            let refers = |r: &Arc<Run>| r.info.large.iter().any(|l| sparse.contains(&l.0));
            if level.runs.iter().any(refers) {
                let inputs = vec![level.clone()];
                let _paused = self.pause_merges();
                self.run_job(&super::pick::Job { table: table.id, inputs, bottom: true })?;
            }
        }
        Ok(())
    }

    /// Moves a part of the run that ends the file into a hole; false if none fits.
    pub(super) fn move_tail(&self) -> Result<bool> {
        let state = self.state.load_full();
        let runs = state.tables.iter().flat_map(|t| {
            t.levels.iter().flat_map(move |l| l.runs.iter().enumerate().map(move |(i, r)| (t.id, l, i, r)))
        });
        let last = runs
            .filter_map(|(t, l, i, r)| {
                let (n, e) = r.info.extents.iter().enumerate().max_by_key(|(_, e)| e.offset)?;
                Some((t, l, i, r, n, *e))
            })
            .max_by_key(|x| x.5.offset);
        let Some((table, level, place, run, n, extent)) = last else { return Ok(false) };
        let Some((moved, to)) = self.copy_part(extent)? else { return Ok(false) };
        let mut parts = level.runs.clone();
        let replaced = self.open_run(moved_run(run, n, moved, to)).and_then(|next| {
            parts[place] = Arc::new(next);
            let fresh = Arc::new(SortedRun::new(parts.clone(), level.updates)?);
            self.replace_levels(table, std::slice::from_ref(level), vec![fresh], Vec::new())
        });
        if !matches!(replaced, Ok(true)) {
            // Somebody was faster, or the copy cannot be read; nobody has seen it.
            self.space.free(to);
            return replaced.map(|_| true);
        }
        run.succeeded_by(parts.swap_remove(place));
        self.retired.lock().push(Retired::parts(run.clone(), vec![moved]));
        drop(state);
        self.checkpoint(Purpose::Plain)?;
        Ok(true)
    }

    /// Copies the end of an extent to a lower place: what was copied, and where to.
    fn copy_part(&self, extent: Extent) -> Result<Option<(Extent, Extent)>> {
        let page = PAGE_BYTES as u64;
        let mut len = extent.len;
        loop {
            if let Some(to) = self.space.alloc_below(len, extent.offset) {
                let from = Extent { offset: extent.offset + extent.len - len, len };
                let copied = self.copy(from, to);
                if copied.is_err() {
                    self.space.free(to);
                }
                return copied.map(|()| Some((from, to)));
            }
            if len <= page * 4 {
                return Ok(None);
            }
            // Keep the parts whole pages: the last part takes what the extent has beyond them.
            len = extent.len - (extent.len - len / 2).div_ceil(page) * page;
        }
    }

    fn copy(&self, from: Extent, to: Extent) -> Result<()> {
        let mut buf = vec![0; SEGMENT_BYTES.min(usize_of64(from.len))];
        let mut at = 0;
        while at < from.len {
            let n = usize_of64((from.len - at).min(buf.len() as u64));
            let part = &mut buf[..n];
            self.file.read_at(part, from.offset + at).map_err(|e| crate::run::read_error(e, from.offset + at))?;
            self.file.write_at(part, to.offset + at).map_err(|e| Error::io("moving a run", e))?;
            self.file.write_back(to.offset + at, n as u64);
            at += n as u64;
        }
        Ok(())
    }
}

/// The run with the end of its extent `n` moved.
fn moved_run(run: &Run, n: usize, moved: Extent, to: Extent) -> crate::format::manifest::RunInfo {
    let mut info = run.info.clone();
    let whole = info.extents[n];
    let mut parts = Vec::new();
    if moved.len < whole.len {
        parts.push(Extent { offset: whole.offset, len: whole.len - moved.len });
    }
    parts.push(to);
    info.extents.splice(n..=n, parts);
    info
}
